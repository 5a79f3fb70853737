"""The first step: choose the bot. A token is accepted once Telegram has named its bot."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from hermes.chat.bot import Bot, Me
from hermes.chat.failures import is_unauthorized
from hermes.commands.setup.file import Draft
from hermes.commands.setup.given import Changes, Given
from hermes.commands.setup.terminal import Terminal
from hermes.config.settings import is_token
from hermes.config.values import secret_or_file
from hermes.errors import ChatAway, ChatError, ConfigError

T = TypeVar("T")
OPTION = "--token-file FILE"
_WRONG_FORM = "that is not a bot token; one looks like 123456789:AAF…, digits, a colon, and 35 signs"
_UNKNOWN = "Telegram does not know this token; copy it again from @BotFather (/mybots, API Token)"

Connect = Callable[[str], Bot]
"""Returns the bot of a token. Raises ConfigError: the proxy cannot be used."""


class Run(Protocol):
    """Runs a coroutine to its end; Ctrl-C cancels it and raises KeyboardInterrupt."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T:
        """Return the result of the coroutine."""


@dataclass(frozen=True, slots=True)
class ChosenBot:
    """A bot that answered, and the changes to the configuration that it needs."""

    token: str = field(repr=False)
    me: Me
    changes: Changes


def choose_bot(terminal: Terminal, given: Given, draft: Draft, *, connect: Connect, run: Run) -> ChosenBot:
    """Take the token from the options, the configuration or the person, and ask Telegram for its bot.

    Raises:
        ConfigError: the token of an option cannot be used, or no person can be asked.
        ChatError: Telegram cannot be reached, or refuses for another reason than the token.
    """
    terminal.title("Your bot")

    def known(token: str) -> Me | None:
        return _me(terminal, token, connect, run)

    if given.token is not None or given.token_file is not None:
        return _of_options(terminal, given, draft, known)
    return _kept(terminal, draft, known) or _typed(terminal, known)


def _of_options(terminal: Terminal, given: Given, draft: Draft, known: Callable[[str], Me | None]) -> ChosenBot:
    try:
        token = secret_or_file(given.token or "", given.token_file, "--token-file")
    except ValueError as error:
        raise ConfigError(f"the token {error}.") from None
    place = given.token_file or given.token_from
    if not is_token(token):
        raise ConfigError(f"{place}: {_WRONG_FORM}.")
    me = known(token)
    if me is None:
        raise ConfigError(f"{place}: {_UNKNOWN}.")
    terminal.done(f"@{me.username} answers.")
    if given.token_file:
        return ChosenBot(token, me, Changes(token_file=given.token_file))
    # A token that is already configured, perhaps as `token_file`, stays in its place.
    is_known = draft.config is not None and draft.config.telegram.token.get_secret_value() == token
    return ChosenBot(token, me, Changes() if is_known else Changes(token=token))


def _kept(terminal: Terminal, draft: Draft, known: Callable[[str], Me | None]) -> ChosenBot | None:
    if draft.config is None:
        return None
    token = draft.config.telegram.token.get_secret_value()
    me = known(token)
    if me is None:
        terminal.warn("Telegram no longer knows the token in the configuration.")
        return None
    terminal.done(f"@{me.username} answers.")
    if terminal.ask("Keep this bot?", default=True, option=OPTION):
        return ChosenBot(token, me, Changes())
    return None


def _typed(terminal: Terminal, known: Callable[[str], Me | None]) -> ChosenBot:
    terminal.say("Hermes speaks to you through a Telegram bot of your own, which is made in a minute:")
    terminal.say("1. Open https://t.me/BotFather in Telegram and send /newbot.")
    terminal.say("2. Choose a name. It gives you a token; copy it.")
    while True:
        token = terminal.hidden("Paste the token (it stays hidden):", option=OPTION)
        me = known(token) if is_token(token) else None
        if me is not None:
            terminal.done(f"@{me.username} answers.")
            return ChosenBot(token, me, Changes(token=token))
        reason = _UNKNOWN if is_token(token) else _WRONG_FORM
        terminal.warn(f"{reason[0].upper()}{reason[1:]}.")


def _me(terminal: Terminal, token: str, connect: Connect, run: Run) -> Me | None:
    """Return the bot of this token, or None if Telegram does not know the token. Raises ChatError."""
    while True:
        try:
            with terminal.waiting("Asking Telegram…"):
                return run(_asked(token, connect))
        except ChatAway as error:
            terminal.warn(f"{error}.")
            terminal.say("Behind a proxy? Give it with `hermes setup --proxy http://HOST:PORT` (or socks5://…).")
            if not terminal.again():
                raise
        except ChatError as error:
            if is_unauthorized(error):
                return None
            raise


async def _asked(token: str, connect: Connect) -> Me:
    async with connect(token) as bot:
        return await bot.me()
