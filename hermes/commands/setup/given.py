"""The answers that the options give, and the changes to the configuration that all answers lead to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from hermes.config.reading import absolute
from hermes.config.values import checked_proxy, checked_url
from hermes.errors import ConfigError
from hermes.storage.postgres.address import Tls

TOKEN = "HERMES_TELEGRAM__TOKEN"  # noqa: S105 (a name)
STORE_URL = "HERMES_STORE__URL"
STORE_PASSWORD_FILE = "HERMES_STORE__PASSWORD_FILE"  # noqa: S105 (a name)


@dataclass(frozen=True, slots=True)
class GivenStore:
    """The options about the database that several machines share; None means that the option is not given.

    - `url`: the database. `joins`: this machine has no bot of its own, and joins the others there.
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

    `token` comes from the environment or standard input (`token_from` says which) and is written into the
    configuration; of `token_file` the path is written. `agents` names the agents to connect, () means none of them.
    """

    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    token_from: str = ""
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
    """The new values of keys of [telegram], of [store], and of prompts.enabled; None leaves a key as it is."""

    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    chat_id: int | None = None
    users: tuple[int, ...] | None = None
    api_base: str | None = None
    proxy: str | None = None
    prompts: bool | None = None
    store: StoreChange | None = None


def of_options(
    *,
    token_from: str | None,
    users: Iterable[int],
    agents: Iterable[str] | None,
    environ: Mapping[str, str],
    stdin: TextIO,
    proxy: str | None,
    api_base: str | None,
    store: GivenStore,
    **rest: Any,
) -> Given:
    """Return the options. No option is the token itself: it comes from a file, `stdin` ("-") or the environment.

    Raises ConfigError: the proxy or the Bot API server is not the URL of one, or has a password, which others could see
    in a command line.
    """
    try:
        proxy = None if proxy is None else checked_proxy(proxy, login=False)
    except ValueError as error:
        form = "give http://HOST:PORT or socks5://HOST:PORT; a URL with a password goes into the configuration"
        raise ConfigError(f"--proxy {error}; {form}, telegram.proxy.") from None
    try:
        api_base = None if api_base is None else checked_url(api_base)
    except ValueError as error:
        raise ConfigError(f"--api-base {error}; give http://HOST:PORT or https://HOST:PORT.") from None
    file, token, where = None, None, "standard input"
    if token_from == "-":  # noqa: S105 (a place, no token)
        token = stdin.readline().strip()
    elif token_from is not None:
        file = absolute(Path(token_from))
    else:
        token, where = environ.get(TOKEN), TOKEN
    chosen = None if agents is None else tuple(agents)
    return Given(
        token,
        file,
        where,
        users=tuple(dict.fromkeys(users)),
        agents=chosen,
        api_base=api_base,
        proxy=proxy,
        store=store,
        **rest,
    )


def of_store_options(
    *,
    url: str | None,
    join: str | None,
    password_file: Path | None,
    environ: Mapping[str, str],
    one_machine: bool,
    **rest: Any,
) -> GivenStore:
    """Return the options about the database. The environment can have its URL and its password file, too.

    Raises ConfigError: options that exclude each other.
    """
    if sum((url is not None, join is not None, one_machine)) > 1:
        raise ConfigError("give one of --join, --store-url and --one-machine.")
    known = [text for text in (join, url, environ.get(STORE_URL)) if text is not None]
    said = environ.get(STORE_PASSWORD_FILE, "none")
    file = password_file or (None if said in ("", "none") else Path(said))
    place = file and absolute(file)
    return GivenStore(
        known[0] if known else None, joins=join is not None, password_file=place, one_machine=one_machine, **rest
    )
