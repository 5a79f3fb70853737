"""The answers that the options give, and the changes to the configuration that all answers lead to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from hermes.config.values import checked_proxy
from hermes.errors import ConfigError

TOKEN = "HERMES_TELEGRAM__TOKEN"  # noqa: S105 (a name)


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


@dataclass(frozen=True, slots=True)
class Changes:
    """The new values of keys of [telegram], and of prompts.enabled; None leaves a key as it is."""

    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    chat_id: int | None = None
    users: tuple[int, ...] | None = None
    api_base: str | None = None
    proxy: str | None = None
    prompts: bool | None = None


def of_options(
    *,
    token_from: str | None,
    users: Iterable[int],
    agents: Iterable[str] | None,
    environ: Mapping[str, str],
    stdin: TextIO,
    proxy: str | None,
    **rest: Any,
) -> Given:
    """Return the options. No option is the token itself: it comes from a file, `stdin` ("-") or the environment.

    Raises ConfigError: the proxy is not the URL of one, or has a password, which others could see in a command line.
    """
    try:
        proxy = None if proxy is None else checked_proxy(proxy, login=False)
    except ValueError as error:
        form = "give http://HOST:PORT or socks5://HOST:PORT; a URL with a password goes into the configuration"
        raise ConfigError(f"--proxy {error}; {form}, telegram.proxy.") from None
    file, token, where = None, None, "standard input"
    if token_from == "-":  # noqa: S105 (a place, no token)
        token = stdin.readline().strip()
    elif token_from is not None:
        file = Path(token_from).expanduser().absolute()
    else:
        token, where = environ.get(TOKEN), TOKEN
    chosen = None if agents is None else tuple(agents)
    return Given(token, file, where, users=tuple(users), agents=chosen, proxy=proxy, **rest)
