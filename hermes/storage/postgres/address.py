"""The address of the database, and all parameters of a connection to it.

No environment variable decides anything about the connection. The reasons:

- PGSERVICEFILE, PGSYSCONFDIR, PGSERVICE, PGHOST and PGHOSTADDR choose the server, PGSSLMODE, PGSSLROOTCERT and
  PGGSSENCMODE its proof. With any of them, the environment of an agent, which can come from a repository, would send
  the questions of all machines to another server.
- PGPASSFILE, PGPASSWORD and PGUSER choose who logs in, so they can only make the login fail. But projects set them for
  databases of their own, and a listener that a hook starts never sees them (`hook.starting`): a configuration that
  works in a terminal must work there, too.

So `Address.parameters` has a value for each of these keywords, because libpq looks at a variable only if the keyword is
absent, and Hermes reads the service file of the home itself. A few keywords have no neutral value (`service`,
`require_auth`, the versions of the protocol); their variables could only make the connection fail. `hermes.__main__`
deletes all variables of libpq, so that they do not.

Secrets come from `[store] password_file`, from the password file of libpq (`~/.pgpass`, or `passfile` in the URL), and
from the service file (`service` in the URL), and never from the URL itself: it is copied into files and commands.
"""

from __future__ import annotations

import configparser
import contextlib
import importlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Literal
from urllib.parse import quote, urlencode

from hermes.errors import ConfigError

Tls = Literal["verify-full", "off"]

SCHEMES = ("postgresql://", "postgres://")

_DEFAULTS = {
    "channel_binding": "prefer",
    "connect_timeout": "5",
    "host": "",
    "hostaddr": "",
    "keepalives": "1",
    "keepalives_count": "2",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "options": "",
    "port": "5432",
    "requirepeer": "",
    "ssl_max_protocol_version": "",
    "ssl_min_protocol_version": "TLSv1.2",
    "sslcert": "",
    "sslcertmode": "allow",
    "sslcrl": "",
    "sslcrldir": "",
    "sslkey": "",
    "sslkeylogfile": "",
    "tcp_user_timeout": "15000",
}
"""What the URL may change. libpq takes "" for its own default, but only for the keywords that have it here."""

_ALWAYS = {
    "application_name": "hermes",
    "client_encoding": "UTF8",
    "gssencmode": "disable",  # with Kerberos, libpq would ignore sslmode
    "target_session_attrs": "read-write",
}

_KEYS = (b"scram_client_key", b"scram_server_key")
"""Secrets that libpq does not mark as such."""

_LOGIN = ("user", "password", "passfile", "sslcert", "sslkey", "sslpassword", "sslkeylogfile")
"""What is of one user, or of one machine."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is, and how Hermes logs in.

    - `url`: as in `[store] url`. `password`: the content of `[store] password_file`, or "".
    - `tls`: "off" if the server need not prove who it is. `ca_file`: the authorities that vouch for it, in place of
      `sslrootcert` in the URL, else those of certifi; the file that psycopg names by itself exists on no machine.
    - `home`: the folder of `.pgpass` and `.pg_service.conf`.

    Methods and properties raise ConfigError with the end of a sentence about the URL ("names no user").
    """

    url: str
    password: str = field(default="", repr=False)
    tls: Tls = "verify-full"
    ca_file: Path | None = None
    home: Path = field(default_factory=Path.home)

    @property
    def name(self) -> str:
        """The database and its host, for sentences."""
        said = self._said()
        return f"{said['dbname']} on {said.get('host') or 'this machine'}"

    @property
    def is_local(self) -> bool:
        """Tell whether the database is on this machine: it needs no TLS, and elsewhere its URL means another one."""
        return _is_local(self._said())

    def check(self) -> None:
        """Check that the URL can be used, that it holds no secret, and that the server must prove who it is."""
        self.parameters()

    def parameters(self) -> dict[str, str]:
        """Return all that libpq is told, for `psycopg.connect`. It holds the password."""
        said, known = self._said(), _keywords()
        ours = {keyword: value for keyword, value in (_DEFAULTS | _ALWAYS).items() if keyword in known}
        neutral = {keyword: value for keyword, value in known.items() if value} | ours
        fixed = {keyword: value for keyword, value in _ALWAYS.items() if keyword in known}
        login = {"password": self.password or said.get("password", ""), "passfile": str(self._passfile(said))}
        return neutral | {key: value for key, value in said.items() if value} | fixed | self._proof(said) | login

    def url_of(self, user: str) -> str:
        """Return the URL by which another user reaches the same database, also if a service names it here."""
        said = {key: value for key, value in self._said().items() if key not in _LOGIN}
        host, port, name = said.pop("host", ""), said.pop("port", ""), quote(said.pop("dbname"), safe="")
        if not host or "," in host or "/" in host:  # a list of hosts, or a socket
            said |= {key: value for key, value in (("host", host), ("port", port)) if value}
            place = ""
        else:
            place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
        options = f"?{urlencode(said, quote_via=quote)}" if said else ""
        return f"postgresql://{quote(user, safe='')}@{place}/{name}{options}"

    def secret_files(self) -> tuple[Path, ...]:
        """Return the files of libpq that hold secrets: nobody else may read them."""
        in_url, said = _of_url(self.url), self._said()
        services = (self._service_file(),) if "service" in in_url and said.get("password") else ()
        return tuple(file for file in (self._passfile(said), *services) if file.is_file())

    def _said(self) -> dict[str, str]:
        """Return what the URL says, and the service that it names, if any; the URL wins."""
        said = _of_url(self.url)
        if service := said.pop("service", ""):
            said = _of_service(service, self._service_file()) | said
        for keyword, what in (("user", "user"), ("dbname", "database")):
            if not said.get(keyword):
                raise ConfigError(f"does not name a {what}")
        if said.get("sslrootcert") == "system":
            raise ConfigError("has sslrootcert=system, which depends on the environment: name a file")
        return said

    def _service_file(self) -> Path:
        return self.home / ".pg_service.conf"

    def _passfile(self, said: Mapping[str, str]) -> Path:
        return Path(said.get("passfile") or self.home / ".pgpass")

    def _proof(self, said: Mapping[str, str]) -> dict[str, str]:
        """Return how the server proves who it is. Raises ConfigError: it would not have to."""
        mode = said.get("sslmode", "")
        if self.tls == "off" or _is_local(said):
            mode = mode or "prefer"
        elif mode not in ("", "verify-full"):
            raise ConfigError(
                f"has sslmode={mode}, with which any machine could pose as the database: "
                'write sslmode=verify-full, or set tls = "off" in [store]'
            )
        else:
            mode = "verify-full"
        authorities = str(self.ca_file or said.get("sslrootcert", ""))
        if not authorities and mode.startswith("verify-"):
            import certifi  # noqa: PLC0415 (it belongs to the extra)

            authorities = certifi.where()
        if authorities and not Path(authorities).is_file():
            raise ConfigError(f"needs the certificate authorities in {authorities}, which is not a file")
        return {"sslmode": mode, "sslrootcert": authorities}


def _is_local(said: Mapping[str, str]) -> bool:
    """Tell whether all hosts are this machine: a socket, or an address of the loopback."""
    hosts = f"{said.get('host', '')},{said.get('hostaddr', '')}".split(",")
    return all(not host or host.startswith(("/", "@")) or _is_loopback(host) for host in hosts)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def need_psycopg() -> None:
    """Check that the client library is installed. Raises ConfigError, as the methods of `Address`."""
    _psycopg()


def _psycopg() -> ModuleType:
    try:
        return importlib.import_module("psycopg")  # an extra that most people do not install
    except ImportError:
        raise ConfigError("needs psycopg: install hermes-phone[postgres]") from None


def _keywords() -> dict[str, str]:
    """Return the keywords that this libpq knows, with their defaults ("" for none). Raises ConfigError."""
    defaults = _psycopg().pq.Conninfo.get_defaults()
    return {each.keyword.decode(): (each.compiled or b"").decode() for each in defaults}


def _of_url(url: str) -> dict[str, str]:
    """Return the keywords of the URL. Raises ConfigError, which never repeats the URL."""
    psycopg = _psycopg()
    if not url.startswith(SCHEMES):
        raise ConfigError("is not the URL of a PostgreSQL database")
    options, said = [], {}
    with contextlib.suppress(psycopg.Error, UnicodeError):
        options = psycopg.pq.Conninfo.parse(url.encode())
        said = {each.keyword.decode(): each.val.decode() for each in options if each.val}
    if not options:
        raise ConfigError("is not a URL that PostgreSQL understands")
    if any(each.keyword.decode() in said for each in options if each.dispchar == b"*" or each.keyword in _KEYS):
        raise ConfigError("has a password in it, which others could see: write it into password_file")
    return said


class _Services(configparser.ConfigParser):
    """The service file, with its keywords as they are written."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def _of_service(name: str, file: Path) -> dict[str, str]:
    """Return the keywords of a service. Raises ConfigError, which never repeats a value."""
    services = _Services(delimiters=("=",), comment_prefixes=("#",), interpolation=None, default_section="")
    found: dict[str, str] = {}
    wrong = ""
    try:
        services.read_string(file.read_text(encoding="utf-8"))
        found = dict(services[name])
    except OSError as error:
        wrong = f"names a service, and {file} cannot be read ({error.strerror})"
    except KeyError:
        wrong = f"names a service that {file} does not have"
    except (configparser.Error, UnicodeDecodeError):
        wrong = f"names a service, and {file} is not a service file"
    unknown = {*found} - {*_keywords()} | {*found} & {"service"}
    if unknown:
        wrong = f"names a service that has an unknown keyword in {file}: {min(unknown)}"
    if wrong:
        raise ConfigError(wrong)  # outside the handler: the cause would contain values
    return found
