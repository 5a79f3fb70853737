"""Posts the notices of turns that have ended, and keeps their buttons on the newest one of each session."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from hermes.chat.failures import is_about_bot
from hermes.chat.outbox import Outbox
from hermes.chat.screens import hints, notices as screens
from hermes.chat.screens.screen import Look, Screen
from hermes.core import notices
from hermes.core.answer_clock import AnswerTimes
from hermes.core.notices import Pause, Post, TakeButtons, TellRetry, Update
from hermes.errors import ChatRefused
from hermes.listener.entries import Entries
from hermes.listener.notices import Notices
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.topics import Topics
from hermes.model.actions import Action, ShowChanges, ShowWhole
from hermes.model.events import Tap
from hermes.model.notice import Notice, Retry, RetryShown, Shown, Turn

log = logging.getLogger(__name__)

AT_ONCE = 0.0


class TurnNotices:
    """The worker for notices, and the taps on their buttons."""

    def __init__(
        self,
        notices: Notices,
        entries: Entries,
        outbox: Outbox,
        topics: Topics,
        look: Look,
        times: AnswerTimes,
        messenger: Messenger,
    ) -> None:
        self._notices = notices
        self._entries = entries
        self._outbox = outbox
        self._topics = topics
        self._look = look
        self._times = times
        self._link = messenger.link
        self._messenger = messenger
        # The changes that note sent messages, by notice id, while the disk is full: they must not be sent again.
        self._unnoted: dict[str, Callable[[Notice], Notice]] = {}

    async def step(self, notice_id: str) -> float | None:
        """Step: make the next change. Raises ChatError and NotSaved."""
        notice = self._notices.get(notice_id)
        if notice is None:
            return None
        if notice_id in self._unnoted:
            await self._note(notice_id, self._unnoted[notice_id])
            return AT_ONCE
        async with self._link.heeding_refusals():
            match notices.due(notice, self._times.post_after_s, self._notices.now()):
                case Pause(pause_s):
                    return pause_s
                case Post(turn):
                    await self._post(notice, turn)
                    return AT_ONCE
                case Update(shown, turn):
                    await self._update(notice, shown, turn)
                    return AT_ONCE
                case TakeButtons(shown):
                    await self._take_buttons(notice, shown)
                    return AT_ONCE
                case TellRetry(retry, is_over):
                    await self._tell_retry(notice, retry, is_over=is_over)
                    return AT_ONCE
                case None:
                    return None

    async def _post(self, notice: Notice, turn: Turn) -> None:
        chat_id = self._entries.chat_id
        screen = screens.turn_ended(notice.id, turn, self._look, heard_s=notice.heard_s)
        silent = self._times.is_quiet()
        sent = await self._topics.post(chat_id, screen, turn.source, turn.agent_name, silent=silent)
        self._entries.note_message(sent.message_id)
        self._link.sent()
        log.info("notice %s is message %d", notice.id, sent.message_id)
        shown = Shown(turn, notice.heard_s, chat_id, sent.message_id)
        await self._note(notice.id, lambda found: notices.posted(found, shown))

    async def _note(self, notice_id: str, change: Callable[[Notice], Notice]) -> None:
        """Note what was sent. Raises NotSaved: the next step begins with that."""
        self._unnoted[notice_id] = change
        await self._notices.change(notice_id, change)
        del self._unnoted[notice_id]

    async def _update(self, notice: Notice, shown: Shown, turn: Turn) -> None:
        screen = screens.turn_ended(notice.id, turn, self._look, heard_s=shown.heard_s)
        if await self._edit(notice, shown, screen):
            await self._note(notice.id, lambda found: notices.updated(found, shown, turn))
        else:
            await self._post(notice, turn)

    async def _edit(self, notice: Notice, shown: Shown | RetryShown, screen: Screen) -> bool:
        """Edit the message of a notice; return False if the chat does not have it any more, or is another one."""
        if shown.chat_id != self._entries.chat_id:
            return False
        try:
            return await self._outbox.edit(shown.chat_id, shown.message_id, screen)
        except ChatRefused as error:
            if error.blocked or error.moved_to is not None or is_about_bot(error):
                raise
            log.info("notice %s: message %d stays as it is: %s", notice.id, shown.message_id, error)
            return True

    async def _take_buttons(self, notice: Notice, shown: Shown) -> None:
        screen = screens.turn_ended(notice.id, shown.turn, self._look, heard_s=shown.heard_s)
        if screen.rows:
            await self._edit(notice, shown, replace(screen, rows=()))
        await self._notices.change(notice.id, lambda found: notices.without_buttons(found, shown))

    async def _tell_retry(self, notice: Notice, retry: Retry, *, is_over: bool) -> None:
        """Post the message about a turn that keeps trying, or edit it; a message that was deleted stays deleted.

        It is posted again in the supergroup that its group became.
        """
        chat_id, before = self._entries.chat_id, notice.retry_shown
        if before is None or (before.chat_id != chat_id and not is_over):
            shown = RetryShown(retry, chat_id, 0, is_over)
            screen = screens.keeps_trying(notice.id, shown, self._look)
            silent = self._times.is_quiet()
            sent = await self._topics.post(chat_id, screen, retry.source, retry.agent_name, silent=silent)
            self._entries.note_message(sent.message_id)
            shown = replace(shown, message_id=sent.message_id)
        else:
            shown = replace(before, retry=retry, is_over=is_over)
            await self._edit(notice, shown, screens.keeps_trying(notice.id, shown, self._look))
        await self._note(notice.id, lambda found: notices.retry_told(found, shown))

    async def take_tap(self, notice_id: str, action: Action, tap: Tap) -> bool:
        """Show the agent's last words, whole, or its changes below the notice; return False if this is no notice."""
        notice = self._notices.get(notice_id)
        if notice is None or not isinstance(action, ShowWhole | ShowChanges):
            return False
        turn = _turn_of(notice, tap.message_id)
        if turn is None:
            self._outbox.answer(tap.query_id, hints.TOASTS["page_changed"])
            return True
        self._outbox.answer(tap.query_id, hints.TOASTS["whole"])
        whole = isinstance(action, ShowWhole)
        screen, file = screens.whole_words(turn) if whole else screens.changed(turn)
        if file is None:
            self._messenger.say(screen, reply_to=tap.message_id)
        else:
            self._messenger.attach(screen, file, reply_to=tap.message_id)
        return True


def _turn_of(notice: Notice, message_id: int) -> Turn | None:
    """Return the turn of this message with buttons; None if a newer one has taken its place.

    A person can tap before the message is noted: one newer than the noted one tells of the turn to be told next.
    """
    shown = notice.shown
    if shown is None or message_id > shown.message_id:
        return notice.untold[0] if notice.untold else notice.turn
    return shown.turn if message_id == shown.message_id else None
