"""The first step: choose the bot. A token is accepted once Telegram has named its bot."""

from dataclasses import dataclass, field

from hermes.chat.bot import Me
from hermes.chat.failures import is_unauthorized
from hermes.commands.setup.context import Context
from hermes.commands.setup.given import Changes
from hermes.commands.setup.terminal import capital
from hermes.config.settings import is_token
from hermes.config.values import secret_or_file
from hermes.errors import ChatAway, ChatError, ConfigError

OPTION = "--token-file FILE"
_WRONG_FORM = "that is not a bot token; one looks like 123456789:AAF…, digits, a colon, and 35 signs"
_UNKNOWN = "Telegram does not know this token; copy it again from @BotFather (/mybots, API Token)"


@dataclass(frozen=True, slots=True)
class ChosenBot:
    """A bot that answered, and the changes to the configuration that it needs."""

    token: str = field(repr=False)
    me: Me
    changes: Changes


def choose_bot(context: Context) -> ChosenBot:
    """Take the token from the options, the configuration or the person, and ask Telegram for its bot.

    Raises:
        ConfigError: the token of an option cannot be used, or no person can be asked.
        ChatError: Telegram cannot be reached, or refuses for another reason than the token.
    """
    context.terminal.title("Your bot")
    if context.given.token is not None or context.given.token_file is not None:
        return _of_options(context)
    return _kept(context) or _typed(context)


def _of_options(context: Context) -> ChosenBot:
    given, config = context.given, context.draft.config
    try:
        token = secret_or_file(given.token or "", given.token_file, "--token-file")
    except ValueError as error:
        raise ConfigError(f"the token {error}.") from None
    place = given.token_file or given.token_from
    if not is_token(token):
        raise ConfigError(f"{place}: {_WRONG_FORM}.")
    me = _me(context, token)
    if me is None:
        raise ConfigError(f"{place}: {_UNKNOWN}.")
    context.terminal.done(f"@{me.username} answers.")
    if given.token_file:
        return ChosenBot(token, me, Changes(token_file=given.token_file))
    # A token that is already configured, perhaps as `token_file`, stays in its place.
    is_known = config is not None and config.telegram.token.get_secret_value() == token
    return ChosenBot(token, me, Changes() if is_known else Changes(token=token))


def _kept(context: Context) -> ChosenBot | None:
    if context.draft.config is None:
        return None
    token = context.draft.config.telegram.token.get_secret_value()
    me = _me(context, token)
    if me is None:
        context.terminal.warn("Telegram no longer knows the token in the configuration.")
        return None
    context.terminal.done(f"@{me.username} answers.")
    if context.terminal.ask("Keep this bot?", default=True, option=OPTION):
        return ChosenBot(token, me, Changes())
    return None


def _typed(context: Context) -> ChosenBot:
    terminal = context.terminal
    terminal.say("Hermes speaks to you through a Telegram bot of your own, which is made in a minute:")
    terminal.say("1. Open https://t.me/BotFather in Telegram and send /newbot.")
    terminal.say("2. Choose a name. It gives you a token; copy it.")
    while True:
        token = terminal.line("Paste the token (it stays hidden):", option=OPTION, hidden=True)
        me = _me(context, token) if is_token(token) else None
        if me is not None:
            terminal.done(f"@{me.username} answers.")
            return ChosenBot(token, me, Changes(token=token))
        reason = _UNKNOWN if is_token(token) else _WRONG_FORM
        terminal.warn(f"{capital(reason)}.")


def _me(context: Context, token: str) -> Me | None:
    """Return the bot of this token, or None if Telegram does not know the token. Raises ChatError."""

    async def asked() -> Me:
        async with context.connect(token) as bot:
            return await bot.me()

    while True:
        try:
            with context.terminal.waiting("Asking Telegram…"):
                return context.run(asked())
        except ChatAway as error:
            context.terminal.warn(f"{error}.")
            context.terminal.say(
                "Behind a proxy? Give it with `hermes setup --proxy http://HOST:PORT` (or socks5://…)."
            )
            if not context.terminal.again():
                raise
        except ChatError as error:
            if is_unauthorized(error):
                return None
            raise
