"""The lists of sessions and their cards on the phone, and the taps on their buttons."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from hermes.chat.bot import Sent
from hermes.chat.failures import is_about_bot
from hermes.chat.outbox import Outbox
from hermes.chat.screens import hints, sessions as screens
from hermes.chat.screens.screen import Look, Screen, header
from hermes.chat.screens.sessions import PAGE, Page
from hermes.core import prompt_routing
from hermes.errors import ChatError, ChatRefused, InUse, NotSaved
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.prompt_texts import PromptTexts
from hermes.listener.phone.topics import Topics
from hermes.listener.sessions import ID, PATIENCE_S, ListRequest, is_recent
from hermes.model.actions import Action, Back, ListPage, Mute, ShowCard, StopTurn, WriteTo
from hermes.model.card import Card, Listed, Wanted
from hermes.model.events import Tap, Text
from hermes.model.notice import Notice
from hermes.model.prompt import Target
from hermes.storage.names import random_id

log = logging.getLogger(__name__)

MESSAGES: Final = 5
"""So many messages of a card are known, the newest ones."""
LISTS: Final = 20
"""So many lists on the phone can be turned over."""
AT_ONCE: Final = 0.0

COMMANDS: Final[dict[str, Wanted]] = {"sessions": "sessions", "new": "new", "stop": "stop"}


class SessionCards:
    """The workers for lists and cards, and the taps on their buttons."""

    def __init__(
        self,
        kept: Kept,
        entries: Entries,
        outbox: Outbox,
        topics: Topics,
        look: Look,
        background: Background,
        messenger: Messenger,
        prompts: PromptTexts,
    ) -> None:
        self._prompts = prompts
        self._notices = kept.notices
        self._cards = kept.cards
        self._lists = kept.lists
        self._entries = entries
        self._outbox = outbox
        self._topics = topics
        self._look = look
        self._link = messenger.link
        self._background = background
        self._messenger = messenger
        # Cards that were sent but could not be noted (a full disk), by their ids: (chat, message, digest).
        self._unnoted: dict[str, tuple[int, int, str]] = {}

    async def want(self, command: str, text: Text) -> None:
        """Show the list that this command asks for, as soon as it is made. Raises NotSaved."""
        await self._lists.want(COMMANDS[command], text.message_id)

    # --- lists --------------------------------------------------------------------------------------------------------

    async def show_lists(self, _: str) -> float | None:
        """Step: show the newest list to all who asked for one. Raises ChatError and NotSaved."""
        while self._lists.requests:
            request = self._lists.requests[0]
            if wait_s := self._lists.missing_s(request):
                return wait_s
            screen = screens.session_list(await self._page(request, 0), self._look, self._entries.now())
            sent = await self._sent_list(screen, request.message_id)
            self._lists.requests.pop(0)
            if sent is None:
                continue
            self._entries.note_message(sent.message_id)
            self._lists.shown[sent.message_id] = request
            while len(self._lists.shown) > LISTS:
                del self._lists.shown[next(iter(self._lists.shown))]
        return None

    async def _sent_list(self, screen: Screen, reply_to: int) -> Sent | None:
        """Send a list; return None if Telegram refuses this one for good, so that later ones do not wait behind it."""
        try:
            return await self._outbox.send(self._entries.chat_id, screen, reply_to=reply_to, silent=True)
        except ChatRefused as error:
            await self._link.refused(error)
            if error.blocked or error.moved_to is not None or is_about_bot(error):
                raise
            log.warning("a list was not sent: %s", error)
            self._messenger.say(screens.NOT_LISTED, reply_to=reply_to)
            return None

    async def _page(self, request: ListRequest, number: int) -> Page:
        listed = _chosen(request.wanted, self._lists.found())
        pages = max(1, -(-len(listed) // PAGE))
        number = min(number, pages - 1)
        cards = [await self._card(one) for one in listed[number * PAGE : (number + 1) * PAGE]]
        return Page(request.wanted, tuple(cards), self._lists.silent(request), number, pages)

    async def _card(self, listed: Listed) -> Card:
        """Return the card of a listed session, with the state that the list gives. Raises NotSaved."""

        def seen(found: Card) -> Card:
            # The list does not tell the agent's last words: those of before are read again if the state is another.
            words, is_old = found.target.source.last_text, found.shown is not None and found.state != listed.state
            target = replace(listed.target, source=replace(listed.target.source, last_text=words))
            is_stale = found.is_stale or is_old
            return replace(found, target=target, state=listed.state, used_s=listed.used_s, is_stale=is_stale)

        return await self._card_of(listed.target, seen)

    async def _card_of(self, target: Target, change: Callable[[Card], Card]) -> Card:
        """Return the card of a session after this change; a session that has none gets one. Raises NotSaved."""
        source = target.source

        def is_it(card: Card) -> bool:
            known = card.target.source
            same = (known.session, known.server) == (source.session, source.server)
            return same and (bool(source.session_id) or known.directory == source.directory)

        fresh = Card(random_id(), self._entries.chat_id, target)
        try:
            return await self._cards.make(is_it, lambda: fresh, change)
        except InUse:  # its user keeps it locked: the list is shown nevertheless
            known = next((card for card in self._cards.all() if is_it(card)), None)
            if known is None:
                raise
            return change(known)

    async def _turn(self, tap: Tap, number: int) -> None:
        request = self._lists.shown.get(tap.message_id)
        if request is None:
            self._outbox.answer(tap.query_id, hints.TOASTS["page_changed"])
            return
        screen = screens.session_list(await self._page(request, number), self._look, self._entries.now())
        self._outbox.answer(tap.query_id)  # not before the cards of the page are saved
        self._background.spawn(self._edited(tap, screen))

    async def _edited(self, tap: Tap, screen: Screen) -> None:
        try:
            if not await self._outbox.edit(tap.chat_id, tap.message_id, screen):
                log.info("a list could not be turned over: it was deleted on the phone")
        except ChatError as error:  # the person sees the page as it was, and can tap again
            log.info("a list could not be turned over: %s", error)

    # --- cards --------------------------------------------------------------------------------------------------------

    async def step(self, card_id: str) -> float | None:
        """Step: post or redraw the card. Raises ChatError and NotSaved."""
        card = self._cards.get(card_id)
        if card is not None and card.typing is not None and not card.armed_for:
            try:
                await self._outbox.delete(card.chat_id, card.typing)
            except ChatRefused as error:  # most often it is too old to be deleted, or deleted already
                if is_about_bot(error):
                    raise
            await self._cards.change(card.id, lambda found: replace(found, typing=None))
            return AT_ONCE
        if card is None or (card.is_stale and not card.is_wanted):
            return None  # it is woken when its session was looked at
        if card.is_stale and (wait_s := PATIENCE_S - abs(self._entries.now() - card.wanted_s)) > 0:
            return wait_s
        screen = screens.session_card(card, self._open_asks(card), self._look)
        async with self._link.heeding_refusals():
            if card.is_wanted:
                await self._post(card, screen)
                return AT_ONCE
            if card.shown is not None and card.drawn != screen.digest:
                await self._redraw(card, card.shown, screen)
        return None

    async def _post(self, card: Card, screen: Screen) -> None:
        posted = self._unnoted.get(card.id)
        if posted is None:
            sent = await self._say(card, screen)
            self._entries.note_message(sent.message_id)
            posted = self._unnoted[card.id] = (self._entries.chat_id, sent.message_id, screen.digest)
        chat_id, message_id, digest = posted

        def shown(found: Card) -> Card:
            messages = (*found.messages, message_id)[-MESSAGES:]
            return replace(found, chat_id=chat_id, messages=messages, shown=message_id, drawn=digest, is_wanted=False)

        await self._cards.change(card.id, shown)
        del self._unnoted[card.id]

    async def _say(self, card: Card, screen: Screen) -> Sent:
        target = card.target
        chat_id = self._entries.chat_id
        return await self._topics.post(chat_id, screen, target.source, target.agent_name, silent=True)

    async def _redraw(self, card: Card, message_id: int, screen: Screen) -> None:
        shown = message_id if await self._outbox.edit(card.chat_id, message_id, screen) else None
        await self._cards.change(card.id, lambda found: replace(found, shown=shown, drawn=screen.digest))

    def _open_asks(self, card: Card) -> list[str]:
        session = card.target.source.session
        asks = [one.ask for one in self._entries.all() if one.state.phase == "open"]
        return [header(ask, 0) if ask.questions else "Go on?" for ask in asks if ask.source.session == session]

    # --- taps ---------------------------------------------------------------------------------------------------------

    async def take_tap(self, record_id: str, action: Action, tap: Tap) -> bool:
        """Apply a tap on a button of a list or a card; tell whether it is one. Raises NotSaved."""
        if record_id == ID and isinstance(action, ListPage):
            await self._turn(tap, action.page)
            return True
        card, notice = self._cards.get(record_id), self._notices.get(record_id)
        if card is None and isinstance(action, StopTurn) and notice is not None:
            self._outbox.answer(tap.query_id, await self._stop_trying(notice))
            return True
        if card is None:
            return False
        match action:
            case ShowCard():
                await self._cards.change(card.id, lambda found: self._wanted(replace(found, stop="")))
                said = hints.TOASTS["in_topic"] if self._topics.is_apart(card.target.source) else ""
            case StopTurn(is_sure):
                said = await self._stop(card, tap, is_sure=is_sure)
            case Back():
                await self._cards.change(card.id, lambda found: replace(found, stop=""))
                said = ""
            case Mute(on):
                source = card.target.source
                await self._notices.mute(source, on=on)
                await self._cards.change(card.id, lambda found: replace(found, is_muted=on))
                said = "No more notices of this one" if on else "Notices are on again"
            case WriteTo(on):
                said = await (self._arm(card, tap) if on else self._disarm(tap))
            case _:
                said = hints.TOASTS["page_changed"]
        self._outbox.answer(tap.query_id, said)
        return True

    async def _stop_trying(self, notice: Notice) -> str:
        """Ask for the second tap on the card of a session whose turn keeps trying, if a look finds it at work."""
        retry = notice.retry
        target = None if retry is None else self._prompts.target(retry.source, retry.agent_name)
        if target is None:
            return hints.TOASTS["page_changed"]
        now_s = self._entries.now()
        card = await self._card(Listed(target, "busy", now_s))
        await self._cards.change(card.id, lambda found: self._wanted(replace(found, stop="sure", sure_s=now_s)))
        return hints.TOASTS["sure"]

    def _wanted(self, card: Card) -> Card:
        """Return the card as one that is to be posted after a look at its session."""
        is_muted = self._notices.is_muted(card.target.source)
        return replace(card, is_wanted=True, wanted_s=self._entries.now(), is_stale=True, is_muted=is_muted)

    async def _stop(self, card: Card, tap: Tap, *, is_sure: bool) -> str:
        now_s = self._entries.now()
        if is_sure and card.stop != "sure":
            return hints.TOASTS["page_changed"]
        if not is_sure or not is_recent(card.sure_s, now_s):
            is_elsewhere = card.shown != tap.message_id  # a list, or an older card: the newest one may be far above

            def asked(found: Card) -> Card:
                sure = replace(found, stop="sure", sure_s=now_s)
                return replace(sure, is_wanted=True, wanted_s=now_s) if is_elsewhere else sure

            await self._cards.change(card.id, asked)
            return hints.TOASTS["sure"]
        await self._cards.change(card.id, lambda found: replace(found, stop="asked", stop_s=now_s))
        return "Stopping"

    async def arm_for(self, target: Target, tap: Tap, *, about: str) -> str:
        """Let the person's next text be a prompt for this session, about this question; return the toast."""
        card = await self._card_of(target, lambda found: replace(found, used_s=tap.at_s))
        return await self._arm(card, tap, about=about)

    async def _disarm(self, tap: Tap) -> str:
        await self._cards.disarm(tap.user.id)
        self._background.spawn(self._outbox.discard(tap.chat_id, tap.message_id))
        return hints.TOASTS["typing_off"]

    async def _arm(self, card: Card, tap: Tap, *, about: str = "") -> str:
        """Let the card take the person's next text, and no other card and no question."""
        await self._cards.disarm(tap.user.id, but=card.id)

        def armed(found: Card) -> Card:
            # The message that asks another person for a text stays: they may be replying to it.
            typing = found.typing if found.armed_for in {0, tap.user.id} else None
            after = replace(found, armed_for=tap.user.id, armed_s=tap.at_s, armed_in=tap.thread_id)
            return replace(after, about=about, typing=typing)

        await self._cards.change(card.id, armed)
        await self._entries.disarm(tap.user.id)
        self._background.spawn(self._asked_for_text(replace(card, about=about)))
        return "Reply with your prompt" if self._look.group else "Type your prompt as your next message"

    async def _asked_for_text(self, card: Card) -> None:
        try:
            await self._ask_for_text(card)
        except (ChatError, NotSaved) as error:  # the toast has said it, too, and the person can tap again
            log.info("the message that asks for a prompt was not sent, or not noted: %s", error)

    async def _ask_for_text(self, card: Card) -> None:
        """Send the message that asks for the text; a reply to it is a prompt, too."""
        chat_id = self._entries.chat_id
        sent = await self._say(card, screens.write_now(card, self._look))
        self._entries.note_message(sent.message_id)
        before = self._cards.get(card.id)
        if before is not None and before.typing is not None:
            await self._outbox.discard(before.chat_id, before.typing)

        def noted(found: Card) -> Card:
            messages = (*found.messages, sent.message_id)[-MESSAGES:]
            return replace(found, chat_id=chat_id, messages=messages, typing=sent.message_id)

        await self._cards.change(card.id, noted)


def _chosen(wanted: Wanted, found: Iterable[Listed]) -> list[Listed]:
    """Return what a list shows, of all sessions: those that run, or each project of each machine once."""
    if wanted == "stop":
        return [one for one in found if one.state == "busy" and one.target.can.stops]
    if wanted == "sessions":
        return list(found)
    places: dict[tuple[str, ...], Listed] = {}
    for one in found:
        source = one.target.source
        if prompt_routing.makes_sessions(one.target):
            place = Listed(prompt_routing.beside(one.target), "idle", one.used_s)
            places.setdefault((source.agent, source.machine, source.server, source.directory), place)
    return list(places.values())
