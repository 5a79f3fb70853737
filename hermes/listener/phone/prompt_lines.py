"""Keeps the line of each prompt on the phone up to date."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from hermes.chat.bot import Sent
from hermes.chat.outbox import Outbox
from hermes.chat.screens.prompts import may_be_held, prompt_line
from hermes.chat.screens.screen import Screen
from hermes.core import prompts
from hermes.core.answer_clock import AnswerTimes
from hermes.listener.entries import Entries
from hermes.listener.phone.machines import LOOK_S, Machines
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.topics import Topics
from hermes.listener.prompts import Prompts
from hermes.listener.workers import LOCKED_LOOK_S
from hermes.model.prompt import Prompt, PromptLine, Sight
from hermes.model.prompt_events import Seen

log = logging.getLogger(__name__)

SETTLING_S: Final = 0.6
"""Wait this long before the first line: most often the prompt is with the agent by then."""
PROGRESS_S: Final = 10.0
"""The line of a turn that runs is edited at most this often."""
AT_ONCE: Final = 0.0


class PromptLines:
    """The worker for the lines of prompts."""

    def __init__(
        self,
        prompts: Prompts,
        entries: Entries,
        outbox: Outbox,
        topics: Topics,
        times: AnswerTimes,
        machines: Machines,
        messenger: Messenger,
    ) -> None:
        self._prompts = prompts
        self._entries = entries
        self._outbox = outbox
        self._topics = topics
        self._times = times
        self._link = messenger.link
        self._machines = machines
        self._messenger = messenger
        # Messages that were sent but could not be noted (a full disk), by prompt id: they must not be sent again.
        self._unnoted: dict[str, PromptLine] = {}

    async def step(self, prompt_id: str) -> float | None:
        """Step: make the next change. Raises ChatError and NotSaved."""
        prompt = self._prompts.get(prompt_id)
        if prompt is None or prompt.due_s is not None:
            return None
        async with self._link.heeding_refusals():
            await self._machines.look(prompt.machine)
            if prompt.target is not None and not prompts.is_over(prompt) and self._machines.is_removed(prompt.machine):
                gone = Sight("gone", reason="its machine was removed")
                await self._prompts.apply(prompt_id, Seen(self._prompts.now(), gone))
                return AT_ONCE
            return await self._next(prompt, self._prompts.now())

    async def _next(self, prompt: Prompt, now_s: float) -> float | None:
        is_away = prompt.is_away or (prompt.target is not None and self._machines.is_away(prompt.machine))
        is_locked = may_be_held(prompt, now_s) and await self._entries.store.is_phone_locked()
        screen = prompt_line(replace(prompt, is_away=is_away), now_s, is_locked=is_locked)
        if prompt.line.message_id is not None and prompt.line.chat_id != self._entries.chat_id:
            if prompt.line.is_over:
                return None
            return await self._post(prompt, screen, now_s)  # in the supergroup: the group's messages are out of reach
        if prompt.line.message_id is None:
            age_s = now_s - prompt.asked_s
            if 0 <= age_s < SETTLING_S and prompt.phase in {"queued", "sending"}:
                return SETTLING_S - age_s
            return await self._post(prompt, screen, now_s)
        if screen.digest == prompt.line.drawn:
            again_s = _look_again_s(prompt, now_s)
            may_be_away = bool(self._machines.all and prompt.machine) and not prompts.is_over(prompt)
            return min(again_s or LOOK_S, LOOK_S) if may_be_away else again_s
        since_s = now_s - prompt.line.drawn_s
        if prompt.phase == "running" and prompt.stop == "" and 0 <= since_s < PROGRESS_S and prompt.line.is_running:
            return PROGRESS_S - since_s
        change = self._post if _must_ring(prompt, now_s) else self._edit
        return await change(prompt, screen, now_s)

    async def _post(self, prompt: Prompt, screen: Screen, now_s: float) -> float:
        line = self._unnoted.get(prompt.id)
        if line is None:  # else the next step draws on it what has changed since
            chat_id = self._entries.chat_id
            sent = await self._send(prompt, screen, chat_id, now_s)
            self._entries.note_message(sent.message_id)
            line = self._unnoted[prompt.id] = _drawn(prompt, screen, chat_id, sent.message_id, now_s)
        before = prompt.line
        await self._note(prompt, line)
        del self._unnoted[prompt.id]
        if before.message_id is not None and before.chat_id == line.chat_id:
            self._messenger.delete(before.chat_id or 0, before.message_id)
        self._link.sent()
        return AT_ONCE

    async def _send(self, prompt: Prompt, screen: Screen, chat_id: int, now_s: float) -> Sent:
        """Send the line below the person's text; without that text, into its topic or that of the session."""
        silent = not _must_ring(prompt, now_s) or self._times.is_quiet()
        is_there, target = chat_id == prompt.chat_id, prompt.target
        reply_to, place = (prompt.parts[0].message_id, prompt.thread_id) if is_there else (None, None)
        if target is None:
            return await self._outbox.send(chat_id, screen, reply_to=reply_to, silent=silent)
        about = target.source, target.agent_name
        return await self._topics.post(chat_id, screen, *about, thread_id=place, reply_to=reply_to, silent=silent)

    async def _edit(self, prompt: Prompt, screen: Screen, now_s: float) -> float:
        chat_id, message_id = prompt.line.chat_id or 0, prompt.line.message_id or 0
        line = _drawn(prompt, screen, chat_id, message_id, now_s)
        if not await self._outbox.edit(chat_id, message_id, screen):
            log.info("prompt %s: its line was deleted on the phone", prompt.id)
            if not prompts.is_over(prompt):
                line = replace(prompt.line, message_id=None, drawn="")  # the next step posts it again
        await self._note(prompt, line)
        return AT_ONCE

    async def _note(self, prompt: Prompt, line: PromptLine) -> None:
        await self._prompts.change(prompt.id, lambda found: replace(found, line=line))


def _drawn(prompt: Prompt, screen: Screen, chat_id: int, message_id: int, now_s: float) -> PromptLine:
    is_running, is_over = prompt.phase == "running", prompts.is_over(prompt)
    return PromptLine(message_id, chat_id, screen.digest, now_s, is_running=is_running, is_over=is_over)


def _must_ring(prompt: Prompt, now_s: float) -> bool:
    """Tell whether the line has to be a new message: an edit makes no sound, and no notice tells of this.

    A notice tells of a turn that began and was seen to end.
    """
    if prompt.phase == "failed":
        return None in {prompt.began_s, prompt.ended_s} and not prompt.line.is_over
    return prompts.is_stale(prompt, now_s) and prompt.line.drawn_s < prompt.starts_until_s


def _look_again_s(prompt: Prompt, now_s: float) -> float | None:
    """Return the seconds after which time alone changes the line, or a lock, of which nobody tells."""
    if prompt.phase == "running":
        return PROGRESS_S
    if may_be_held(prompt, now_s):
        return LOCKED_LOOK_S
    if prompt.phase == "queued" and not prompts.is_stale(prompt, now_s):
        return max(1.0, prompt.starts_until_s - now_s)
    return None
