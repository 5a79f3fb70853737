"""The prompts from the phone: the phone side takes them in, the agent side delivers them. `core.prompts` decides."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import Final

from hermes.core import prompt_files, prompts
from hermes.errors import StoreError
from hermes.listener.records import Records
from hermes.model.notice import Turn
from hermes.model.prompt import Prompt, PromptPhase
from hermes.model.prompt_events import PromptEvent

log = logging.getLogger(__name__)

_OPEN_S: Final = 1e12
"""Prompts that are not over count as so much younger."""


class Prompts(Records[Prompt]):
    """All prompts that are known."""

    of_phone = ("line", "joining", "file")
    of_agent = ("prompt",)
    most = 500

    def _age_s(self, record: Prompt) -> float:
        return record.asked_s + (0.0 if prompts.is_over(record) else _OPEN_S)

    def written_s(self) -> float:
        """Return the time of a prompt that is written now: after all that wait, even if the clock was set back."""
        waiting = [_turn_s(one) for one in self.all() if not prompts.is_over(one)]
        return max([self.now(), *(math.nextafter(turn_s, math.inf) for turn_s in waiting)])

    async def apply(self, prompt_id: str, event: PromptEvent) -> Prompt | None:
        """Apply an event; the result is on disk when this returns. Raises NotSaved."""
        before = self.get(prompt_id)
        after = await self.change(prompt_id, lambda found: self._step(found, event))
        if before is not None and after is not None and before.phase != after.phase:
            log.info("prompt %s: %s", after.id, after.phase)
            if prompts.is_over(after):
                self._wake_behind(after)
        return after

    def _step(self, prompt: Prompt, event: PromptEvent) -> Prompt:
        after = prompts.step(prompt, event)
        is_agreed = prompt_files.waits_for_yes(prompt) and prompt_files.is_complete(after)
        return replace(after, agreed_s=self.written_s()) if is_agreed else after

    def of_message(self, chat_id: int, message_id: int) -> Prompt | None:
        """Return the prompt with this message of a person, or None; of several, the one that was made last."""
        mine = (one for one in self.all() if one.chat_id == chat_id)
        found = (one for one in mine if message_id in {part.message_id for part in one.parts})
        return max(found, key=lambda one: one.asked_s, default=None)

    def of_line(self, chat_id: int, message_id: int) -> Prompt | None:
        """Return the prompt whose line is this message, or None."""
        return next((one for one in self.all() if one.line_place == (chat_id, message_id)), None)

    def of_record(self, record_id: str) -> Prompt | None:
        """Return the prompt with this id in its agent's record, or None."""
        return next((one for one in self.all() if record_id and one.record_id == record_id), None)

    def at(self, agent: str, session_id: str, *phases: PromptPhase) -> list[Prompt]:
        """Return the prompts that were sent to this session on this machine, and are in one of these phases."""
        known = ((one, one.target.source) for one in self.ours() if one.tries and one.phase in phases and one.target)
        return [one for one, source in known if (source.agent, source.session_id) == (agent, session_id)]

    def is_with_agent(self, session_id: str) -> bool:
        """Tell whether a prompt was sent to this session of this machine, and is not over."""
        sent = (one for one in self.ours() if _is_with_agent(one))
        return any(one.target is not None and one.target.source.session_id == session_id for one in sent)

    def is_next(self, prompt: Prompt) -> bool:
        """Tell whether no prompt of its session that comes before it is under way or waits for its turn.

        One that waits for the person's yes holds nobody up, and comes when they have said it.
        """
        now_s = self.now()
        there = (one for one in self._of_session(prompt) if not prompt_files.waits_for_yes(one))
        ahead = (one for one in there if (_turn_s(one), one.id) < (_turn_s(prompt), prompt.id))
        return all(prompts.is_stale(one, now_s) for one in ahead)

    def wake_session(self, session_id: str) -> None:
        """Let the agent side look at the prompts of this session soon: something happened there."""
        for prompt in self.all():
            if not prompts.is_over(prompt) and prompt.target and prompt.target.source.session_id == session_id:
                self.wake(prompt.id)

    def has_begun(self, turn: Turn) -> bool:
        """Tell whether a prompt from the phone began this turn."""
        same = (one for one in self.all() if one.target and one.target.source.session == turn.source.session)
        return any(_is_of(prompt, turn) for prompt in same)

    async def draw_again(self) -> None:
        """Let the line of each prompt that is not over be drawn again: nobody knows what it shows."""
        for prompt in self.all():
            if not prompts.is_over(prompt) and prompt.line.message_id is not None:
                try:
                    await self.change(prompt.id, lambda found: replace(found, line=replace(found.line, drawn="")))
                except StoreError as error:
                    log.error("prompt %s is not drawn afresh: %s", prompt.id, error)  # noqa: TRY400 (a full disk)

    async def forget_before(self, at_s: float) -> None:
        """Forget the prompts that are over and were written before this time (epoch). Raises NotSaved."""
        await self.forget(lambda one: prompts.is_over(one) and one.asked_s < at_s)

    def _of_session(self, prompt: Prompt) -> list[Prompt]:
        target = prompt.target
        if target is None or not target.source.session_id:
            return []
        return [
            one
            for one in self.all()
            if one.target and one.target.source.session == target.source.session and not prompts.is_over(one)
        ]

    def _wake_behind(self, prompt: Prompt) -> None:
        for one in self._of_session(prompt):
            self.wake(one.id)


def _turn_s(prompt: Prompt) -> float:
    return prompt.agreed_s or prompt.asked_s


def _is_of(prompt: Prompt, turn: Turn) -> bool:
    if turn.prompt_id:
        return prompt.record_id == turn.prompt_id
    return _is_with_agent(prompt)


def _is_with_agent(prompt: Prompt) -> bool:
    return prompt.phase in prompts.WITH_AGENT and prompt.tries > 0
