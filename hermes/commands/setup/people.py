"""The second step: choose the chat for the questions, and the users who may answer there.

A user may answer only if an option or the configuration names them, or the person at the terminal approved them.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from hermes.chat.bot import Bot
from hermes.chat.failures import is_webhook
from hermes.chat.screens import hints
from hermes.commands.setup.bot import ChosenBot
from hermes.commands.setup.context import Context
from hermes.commands.setup.file import Draft
from hermes.commands.setup.given import Given
from hermes.commands.setup.pairing import Code, Heard, Watch, claimed, is_start, new_code
from hermes.commands.setup.terminal import Terminal, capital
from hermes.config.settings import Telegram
from hermes.errors import ChatError, ChatRefused, ConfigError, HermesError

OPTION = "--chat ID and --user ID"
MENTIONED = 5
# The ids of all anonymous senders in groups and of all channels: each is the same for everyone on Telegram.
_NOBODY = frozenset({1087968824, 136817688, 777000})
_GROUP_OPEN = "In a group, only those may answer whom you let in here. Taps and replies to a question both count."
_GROUP_PRIVATE = (
    "In a group, only those may answer whom you let in here. Taps always work; typed answers must be replies to the "
    "question, unless you turn privacy mode off for this bot (@BotFather, /setprivacy) and add it to the group again."
)


@dataclass(frozen=True, slots=True)
class ChosenPeople:
    """The chat and the users who may answer in it; `is_new`: paired now, or not configured before."""

    chat_id: int
    users: tuple[int, ...]
    is_new: bool = True


def choose_people(
    context: Context, bot: ChosenBot, alone: Callable[[int], AbstractContextManager[None]]
) -> ChosenPeople:
    """Take chat and users from the options or the configuration, or pair. `alone(bot_id)` keeps listeners from the bot.

    Raises:
        ConfigError: a group is given without users, or no person can be asked.
        Held: another process listens to the bot.
        HermesError: no user was paired.
    """
    terminal, given = context.terminal, context.given
    terminal.title("Your phone")
    before = _before(context.draft, bot)
    known = _given(given, before)
    if known is None and before is not None:
        known = _kept(context, bot, before)
    if known is not None:
        _warn_of_nobody(terminal, known)
        return known
    terminal.need("which chat questions go to", OPTION)
    terminal.say("Questions come to your private chat with the bot, or to a group.")
    is_group = terminal.ask("Use a group?", default=False, option=OPTION)
    with alone(bot.me.id), _pairing(context, bot) as pairing:
        chosen = pairing.group() if is_group else pairing.private()
    return replace(chosen, users=tuple(dict.fromkeys((*chosen.users, *given.users))))


def _before(draft: Draft, bot: ChosenBot) -> Telegram | None:
    """Return the configured [telegram] if it is for this bot, else None."""
    telegram = draft.config and draft.config.telegram
    return telegram if telegram and telegram.bot_id == bot.me.id else None


def _given(given: Given, before: Telegram | None) -> ChosenPeople | None:
    chat_id = given.chat_id
    if chat_id is None:
        return None
    if chat_id == 0:
        raise ConfigError("--chat 0 is not a chat: give the id of a person, or the (negative) id of a group.")
    users = given.users or (before.users if before else ())
    if chat_id > 0 and chat_id not in users and not given.users:
        users = (chat_id,)  # the id of a private chat is the id of its user
    if not users:
        raise ConfigError("in a group not everybody may answer: add --user ID for each person who may.")
    return ChosenPeople(chat_id, users, is_new=before is None or before.chat_id != chat_id)


def _warn_of_nobody(terminal: Terminal, chosen: ChosenPeople) -> None:
    person = chosen.chat_id
    if person > 0 and person not in chosen.users:
        terminal.warn(
            f"Nobody can answer in the private chat {person}: only its own person is there. Add --user {person}."
        )


def _kept(context: Context, bot: ChosenBot, telegram: Telegram) -> ChosenPeople | None:
    terminal, given = context.terminal, context.given
    if given.users:
        return ChosenPeople(telegram.chat_id, given.users, is_new=False)
    chat, *users = context.run(_names(context, bot, (telegram.chat_id, *telegram.users)))
    where = f"the group {chat}" if telegram.chat_id < 0 else f"the private chat with {chat}"
    terminal.say(f"Questions go to {where}; {_listed(users)} may answer.")
    if terminal.ask("Keep this?", default=True, option=OPTION):
        return ChosenPeople(telegram.chat_id, telegram.users, is_new=False)
    return None


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


async def _names(context: Context, bot: ChosenBot, ids: tuple[int, ...]) -> list[str]:
    """Return the names of these users and groups with their ids; the id alone of each that Telegram does not name."""
    found = []
    async with context.connect(bot.token) as api:
        for one in ids:
            name = ""
            with suppress(ChatError):
                name = await api.name(one)
            found.append(f"{name} (id {one})" if name else str(one))
    return found


# --- pairing ------------------------------------------------------------------------------------------------


class _Pairing:
    """Shows codes, and accepts each user who sends one and is approved by the person at the terminal."""

    def __init__(self, context: Context, bot: ChosenBot, api: Bot, watch: Watch) -> None:
        self._terminal, self._run, self._now = context.terminal, context.run, context.now
        self._bot, self._api, self._watch = bot, api, watch
        self._mentioned: set[tuple[int, bool]] = set()
        self._trouble = ""

    def private(self) -> ChosenPeople:
        """Pair with the private chat of one person."""
        claim = self._let_in("Scan this with your phone, or open the link there; then press Start:", in_group=False)
        return ChosenPeople(claim.text.chat_id, (claim.text.user.id,))

    def group(self) -> ChosenPeople:
        """Pair with a group, and with each user who may answer in it."""
        self._terminal.say(_GROUP_OPEN if self._bot.me.reads_groups else _GROUP_PRIVATE)
        claim = self._let_in("Open this link, choose the group, and add the bot to it:", in_group=True, adds=True)
        users = [claim.text.user.id]
        while self._terminal.ask("May somebody else answer there, too?", default=False, option=OPTION):
            users.append(self._let_in("Let them open this link and press Start:", in_group=None).text.user.id)
        return ChosenPeople(claim.text.chat_id, tuple(dict.fromkeys(users)))

    def _let_in(self, invitation: str, *, in_group: bool | None, adds: bool = False) -> Heard:
        """Show a link until a user has opened it and is approved. Raises HermesError: the person gave up."""
        while True:
            code = new_code(self._now())
            self._terminal.say(invitation)
            link = code.link(self._bot.me.username, group=adds)
            self._terminal.qr(link)
            self._terminal.copyable(link)
            claim = self._claim(code, in_group)
            if claim is None:
                self._terminal.warn("The link is no longer valid: it lasts for ten minutes.")
            elif self._approved(claim, adds=adds):
                return claim
            else:
                self._terminal.say("Nobody was let in.")
            if not self._terminal.ask("Show a new link?", default=True, option=OPTION):
                raise HermesError("nobody was paired; the configuration stays as it was")

    def _claim(self, code: Code, in_group: bool | None) -> Heard | None:
        while True:
            try:
                with self._terminal.waiting("Waiting…") as show:
                    is_claim, shown = partial(self._is_claim, in_group), partial(self._show, show, in_group)
                    return self._run(claimed(self._watch, code, is_claim=is_claim, shown=shown, now=self._now))
            except ChatRefused as error:
                if not is_webhook(error):
                    raise
            self._remove_webhook()

    def _show(self, show: Callable[[str], None], in_group: bool | None, left_s: float, trouble: str) -> None:
        """Show the time that is left; say each trouble once, above it."""
        if trouble and trouble != self._trouble:
            self._terminal.warn(f"{capital(trouble)}.")
        self._trouble = trouble
        waiting = f"Waiting for you to {'add the bot to the group' if in_group else 'press Start'}…"
        show(f"{'Trying again…' if trouble else waiting} ({math.ceil(left_s / 60)} min left)")

    async def _is_claim(self, in_group: bool | None, heard: Heard, has_code: bool) -> bool:
        user = heard.text.user
        if has_code and user.id in _NOBODY:
            self._terminal.warn("Somebody opened the link anonymously: in that group, turn off “Remain anonymous”.")
        elif has_code and in_group in {None, heard.group is not None}:
            return True
        elif has_code:
            where = "in your private chat with the bot" if heard.group is not None else "in a group"
            self._terminal.warn(f"{user.name} (id {user.id}) opened the link, but not {where}.")
        else:
            await self._mention(heard, in_group=bool(in_group))
        return False

    async def _mention(self, heard: Heard, *, in_group: bool) -> None:
        """Say once that somebody wrote without the link; tell a person who pressed Start what to do instead."""
        user, started = heard.text.user, heard.group is None and is_start(heard.text.text)
        if (user.id, started) in self._mentioned or len(self._mentioned) > MENTIONED:
            return
        self._mentioned.add((user.id, started))
        if len(self._mentioned) > MENTIONED:
            self._terminal.warn("Others write to the bot as well, without the link; they get no answer.")
        elif started:
            then = "add the bot to the group" if in_group else "press Start again"
            self._terminal.warn(
                f"{user.name} (id {user.id}) pressed Start without the link. If that is you: scan the code above "
                f"with your phone, or open the link there, and {then}."
            )
            with suppress(ChatError):
                await self._api.send(heard.text.chat_id, hints.open_the_link(in_group=in_group))
        else:
            self._terminal.warn(f"{user.name} (id {user.id}) wrote to the bot without the link, and got no answer.")

    def _approved(self, claim: Heard, *, adds: bool) -> bool:
        user = claim.text.user
        who = f"{user.name} (id {user.id})"
        if adds:
            self._terminal.say(f"{who} added the bot to the group “{claim.group}” ({claim.text.chat_id}).")
            return self._terminal.approve(f"Post questions there, and let {user.name} answer?", option=OPTION)
        self._terminal.say(f"{who} opened the link.")
        return self._terminal.approve(f"Let {user.name} answer your agents?", option=OPTION)

    def _remove_webhook(self) -> None:
        """Remove the webhook if the person agrees. Raises HermesError: the person does not agree."""
        self._terminal.warn("This bot is set to hand its messages to a web address (a webhook), so none come here.")
        if not self._terminal.ask("Remove the webhook? Messages that wait are kept.", default=True, option=OPTION):
            raise HermesError("beside a webhook Hermes hears nothing; make another bot with @BotFather")
        self._run(self._api.delete_webhook())


@contextmanager
def _pairing(context: Context, bot: ChosenBot) -> Iterator[_Pairing]:
    api = context.connect(bot.token)
    try:
        yield _Pairing(context, bot, api, Watch(api))
    finally:
        context.run(api.close())
