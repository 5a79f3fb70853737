"""The answers that the options give, and the changes to the configuration that all answers lead to."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TextIO

from hermes.config.reading import absolute
from hermes.config.values import checked_proxy, checked_url
from hermes.errors import ConfigError
from hermes.storage.postgres.address import Tls

TOKEN = "HERMES_TELEGRAM__TOKEN"  # noqa: S105 (a name)
TOKEN_FILE = "--token-file"  # noqa: S105 (an option)
STORE_URL = "HERMES_STORE__URL"
STORE_PASSWORD_FILE = "HERMES_STORE__PASSWORD_FILE"  # noqa: S105 (a name)
_DESCRIPTORS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""The folders that name the open files of a process."""


@dataclass(frozen=True, slots=True)
class GivenStore:
    """The options about the database that several machines share; None means that the option is not given.

    - `url`: the database, of --join or --store-url. `joins`: this machine has no bot of its own, and joins the others.
    - `one_machine`: agents run on this machine alone, so there is no need to ask.
    """

    url: str | None = None
    joins: bool = False
    password_file: Path | None = None
    tls: Tls | None = None
    ca_file: Path | None = None
    one_machine: bool = False

    @property
    def says_how(self) -> bool:
        """Tell whether an option says how to reach the database."""
        return any(option is not None for option in (self.password_file, self.tls, self.ca_file))


@dataclass(frozen=True, slots=True)
class Given:
    """The options; None means that the option is not given.

    - `token_from`: the place of the token: --token-file, or what `checked` found instead.
    - `token`: set by `checked`, if standard input or the environment has it; it is written into the configuration. Of
      `token_file` the path is written.
    - `agents`: the names of the agents to connect; () means none of them.
    """

    token_from: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    chat_id: int | None = None
    users: tuple[int, ...] = ()
    agents: tuple[str, ...] | None = None
    prompts: bool | None = None
    service: bool | None = None
    test: bool | None = None
    yes: bool = False
    api_base: str | None = None
    proxy: str | None = None
    store: GivenStore = GivenStore()


@dataclass(frozen=True, slots=True)
class StoreChange:
    """The database to use from now on, as keys of [store].

    - `password` is written into a file beside the configuration. With `password_file`, it stays where it is; if both
      are empty, the key is removed.
    - `tls` and `ca_file` None leave a key as it is.
    """

    url: str
    password: str = field(default="", repr=False)
    password_file: Path | None = None
    tls: Tls | None = None
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """The new values of keys of [telegram], [store], [prompts] and [opencode2]; None leaves a key as it is.

    `opencode2_file` is only for a configuration that does not name that file.
    """

    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    chat_id: int | None = None
    users: tuple[int, ...] | None = None
    api_base: str | None = None
    proxy: str | None = None
    prompts: bool | None = None
    store: StoreChange | None = None
    opencode2_file: Path | None = None


def checked(given: Given, *, environ: Mapping[str, str], stdin: TextIO) -> Given:
    """Return the options with full paths, and with the token and the database of the environment if no option has them.

    No option is the token itself: it comes from a file, `stdin` ("-") or the environment.
    Raises ConfigError: the proxy or the Bot API server is not the URL of one, or has a password, which others could see
    in a command line; or the path of a file is not UTF-8.
    """
    file, token, where = None, None, given.token_from
    if given.token_from == "-":  # noqa: S105 (a place, no token)
        token, where = stdin.readline().strip(), "standard input"
    elif given.token_from is not None:
        file = _file(TOKEN_FILE, Path(given.token_from))
    else:
        token, where = environ.get(TOKEN), TOKEN
    form = (
        "give http://HOST:PORT or socks5://HOST:PORT; a URL with a password goes into the configuration, telegram.proxy"
    )
    return replace(
        given,
        token_from=where,
        token=token,
        token_file=file,
        proxy=_url("--proxy", given.proxy, partial(checked_proxy, login=False), form),
        api_base=_url("--api-base", given.api_base, checked_url, "give http://HOST:PORT or https://HOST:PORT"),
        store=_store(given.store, environ),
    )


def _url(option: str, text: str | None, check: Callable[[object], str], form: str) -> str | None:
    try:
        return None if text is None else check(text)
    except ValueError as error:
        raise ConfigError(f"{option} {error}; {form}.") from None


def _file(option: str, path: Path | None) -> Path | None:
    """Return the full path of an option.

    Raises ConfigError: the configuration, which is UTF-8, cannot hold it; or nobody can read there again.
    """
    if path is None:
        return None
    full = absolute(path)
    if _is_stream(full):
        raise ConfigError(
            f"{option} {full} can be read only once, and the configuration would name it; give a file that stays"
            f"{', or - and the token on standard input' if option == TOKEN_FILE else ''}."
        )
    try:
        str(full).encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"{option} {full} is not UTF-8, and the configuration cannot hold such a path; rename or move it."
        ) from None
    return full


def _is_stream(path: Path) -> bool:
    """Tell whether this is a pipe, or names a descriptor of this process, as `<(…)` of a shell does."""
    with suppress(OSError):  # the error comes when it is read
        return path.parent in _DESCRIPTORS or path.is_fifo()
    return False


def _store(given: GivenStore, environ: Mapping[str, str]) -> GivenStore:
    said = environ.get(STORE_PASSWORD_FILE, "none")
    file = given.password_file or (None if said in ("", "none") else Path(said))
    return replace(
        given,
        url=environ.get(STORE_URL) if given.url is None else given.url,
        password_file=_file("--store-password-file", file),
        ca_file=_file("--store-ca-file", given.ca_file),
    )
