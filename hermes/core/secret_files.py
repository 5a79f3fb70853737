"""The files of a project that never go to the phone, because their names say that they hold secrets. Pure."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Final

FOLDERS: Final = frozenset({".git", ".ssh", ".gnupg", ".aws", ".docker", ".kube"})
FILES: Final = (
    ".env*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "id_*",
    ".netrc", ".npmrc", ".pypirc", ".git-credentials", "credentials", ".credentials.json",
    "auth.json", ".pgpass", ".pg_service.conf", ".htpasswd", ".dockercfg", "*.kdbx", "*.keystore", "*.jks",
    "service-account*.json", "service_account*.json", "*.tfstate", ".vault-token",
    *(f"{name}.{end}" for name in ("secret", "secrets", "credentials") for end in ("json", "yaml", "yml", "toml")),
)  # fmt: skip
# Editors and people add these endings to the name of a copy.
_COPY = re.compile(r"(~|\.(bak|backup|old|orig|save|sw[op]))+\Z")


def is_secret(path: str) -> bool:
    """Tell whether a path, with slashes, names such a file, or one in such a folder; capitals count as small ones."""
    parts = [part for part in path.lower().split("/") if part]
    named = _COPY.sub("", parts[-1]) if parts else ""
    # Some editors also put a dot before the name of a copy.
    names = (named, named.removeprefix("."))
    return not FOLDERS.isdisjoint(parts) or any(fnmatchcase(one, pattern) for one in names for pattern in FILES)
