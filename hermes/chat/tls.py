"""The TLS settings of the connections to the Bot API and to the monitor."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx

from hermes.errors import ConfigError


def tls_context(ca_file: Path | None, *urls: str | None) -> ssl.SSLContext:
    """Return the TLS settings for these URLs (of the server and the proxy): trust this PEM file, else the usual CAs.

    Environment variables are not read. If no URL is https, no CAs are loaded. Raises ConfigError: the file is unusable.
    """
    if not any(url.lower().startswith("https:") for url in urls if url):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is None:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:  # SSLError is a subclass
        why = "not a PEM file of certificate authorities" if isinstance(error, ssl.SSLError) else error.strerror
    raise ConfigError(f"telegram.ca_file {ca_file} cannot be used ({why}); it must be a PEM file that you may read")
