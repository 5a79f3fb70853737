"""Takes in prompts: their texts, the edits of these, and the taps on the buttons of their lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from hermes.chat.outbox import Outbox
from hermes.chat.screens import hints
from hermes.chat.screens.topics import takes_no_prompts
from hermes.core import prompt_files, prompt_routing, prompts
from hermes.core.answers import SPLIT_UNITS, utf16_units
from hermes.core.dialog import JOIN_S
from hermes.core.prompt_routing import Sessions, ToPrompt, ToSession
from hermes.errors import NotSaved
from hermes.listener.kept import Kept
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.topics import Topics
from hermes.model.actions import Action, Address, Back, SendAgain, SendHeard, SendNow, StopTurn, Withdraw
from hermes.model.answer import User
from hermes.model.ask import Source
from hermes.model.events import Tap, Text, TextEdit
from hermes.model.prompt import Prompt, PromptAbilities, Target
from hermes.model.prompt_events import Addressed, Agreed, Continued, Edited, Hurried, PromptEvent, StopWanted, Withdrawn
from hermes.model.state import Part
from hermes.storage.names import random_id

log = logging.getLogger(__name__)

ARRIVING_S: Final = 2.0
"""A text about a message that is not noted yet waits at most this long: that may be on the phone already."""
TOASTS: Final = {
    "withdrawn": "Cancelled",
    "late": "It is already on its way",
    "now": "All right, I send it",
    "again": "I send it again",
    "stopping": "Stopping",
    "moved": "All right",
}


class PromptTexts:
    """Takes in a person's texts for agents. `abilities` are those of each agent; none if prompts are off.

    `hears`: a program turns voice notes into text.
    """

    def __init__(
        self,
        kept: Kept,
        outbox: Outbox,
        messenger: Messenger,
        topics: Topics,
        abilities: Mapping[str, PromptAbilities],
        projects: tuple[str, ...],
        *,
        hears: bool = False,
    ) -> None:
        self._kept = kept
        self._prompts = kept.prompts
        self._outbox = outbox
        self._messenger = messenger
        self._topics = topics
        self._abilities = abilities
        self._projects = projects
        self._hears = hears

    @property
    def is_on(self) -> bool:
        """Tell whether the phone may send prompts."""
        return bool(self._abilities)

    def sessions(self) -> Sessions:
        """Return all sessions that a person can mean."""
        kept = self._kept
        return Sessions(kept.prompts.all(), kept.cards.all(), kept.notices.all(), self._abilities, self._projects)

    async def was_seen(self, text: Text) -> bool:
        """Tell whether this message is a prompt already: Telegram has sent it again. Raises NotSaved.

        The tap before it may have come again, too, and armed a card for a text that is taken in already.
        """
        is_known = self._prompts.of_message(text.chat_id, text.message_id) is not None
        if is_known:
            await self._kept.cards.disarm(text.user.id)
        return is_known

    async def take(self, text: Text) -> bool:
        """Take a text in if it is a prompt, and tell whether it is one; on disk when this returns. Raises NotSaved."""
        if not self.is_on:
            return False
        to = prompt_routing.route(text, self.sessions(), self._topics.target(text, self.sessions()))
        if to is None and await self._may_be_noted_by_now(text):
            to = prompt_routing.route(text, self.sessions())
        match to:
            case ToPrompt(prompt_id):
                # Also after the last part, only the worker ends the joining: it alone knows whether a part was lost.
                due_s = self._due_s(text) or self._prompts.now()
                await self._prompts.apply(prompt_id, Continued(_part(text), due_s))
                # Its parts may have been joined meanwhile: then this text is none of them, and goes its own way.
                is_in = self._prompts.of_message(text.chat_id, text.message_id) is not None
                return is_in or await self.take(text)
            case ToSession() if not _has_content(text):
                self._messenger.say(hints.ONLY_WORDS, reply_to=text.message_id)
                return True
            case ToSession() if self._refuses_voice(text):
                return True
            case ToSession() if self._is_of_unmade(text):
                self._messenger.say(hints.NOT_BEGUN, reply_to=text.message_id)
                return True
            case ToSession(target, card_id, about):
                await self._make(text, target=target, about=about)
                if card_id:
                    await self._disarm(text)
                return True
            case _:
                replied = prompt_routing.replied_to(text, self.sessions())
                if replied is None or not self.is_left_out(replied.source):
                    return False
                self._messenger.say(hints.other_projects(self._messenger.machine), reply_to=text.message_id)
                return True

    def is_left_out(self, source: Source) -> bool:
        """Tell whether this session is in a project to which the phone may not write, although it may to others."""
        return self.is_on and not prompt_routing.is_in(source, self._projects)

    def plain_target(self, text: Text) -> Target | None:
        """Return the session to which a plain text goes because of its topic alone, None if there is none."""
        to = prompt_routing.route(text, self.sessions(), self._topics.target(text, self.sessions()))
        if not self.is_on or text.reply_to is not None or not isinstance(to, ToSession) or to.card_id:
            return None
        return to.target

    def may_be_prompt(self, text: Text) -> bool:
        """Tell whether this text may be a prompt: by its reply or its topic, or because it is forwarded to a topic."""
        there = replace(text, thread_id=text.thread_id or text.forwarded_to)
        return prompt_routing.route(there, self.sessions(), self._topics.target(there, self.sessions())) is not None

    async def _may_be_noted_by_now(self, text: Text) -> bool:
        """Tell whether it helps to look again: the message that it replies to was on the phone, and not noted yet."""
        if text.reply_text:
            await self._outbox.arrived(text.chat_id, ARRIVING_S)
            await self._kept.at_rest()
        return bool(text.reply_text)

    async def session_of(self, text: Text) -> Target | None:
        """Return the session that a text is about by its reply or its topic, None if there is none."""
        target = prompt_routing.session_of(text, self.sessions(), self._topics.target(text, self.sessions()))
        if target is None and await self._may_be_noted_by_now(text):
            target = prompt_routing.session_of(text, self.sessions())
        return target

    def _refuses_voice(self, text: Text) -> bool:
        """Tell whether this is a voice note that no program can hear; the person reads how to change that."""
        is_unheard = text.file is not None and text.file.is_voice and not self._hears
        if is_unheard:
            self._messenger.say(hints.voice_off(self._messenger.machine), reply_to=text.message_id)
        return is_unheard

    def refuse(self, text: Text) -> bool:
        """Say so if a plain text stands in the topic of a session that takes none; tell whether it does."""
        topic = self._topics.at(text.chat_id, text.thread_id)
        if topic is None or not topic.about.session_id or text.reply_to is not None:
            return False
        off = hints.prompts_off(self._messenger.machine)
        self._messenger.say(takes_no_prompts(topic.agent_name) if self.is_on else off, reply_to=text.message_id)
        return True

    def _is_of_unmade(self, text: Text) -> bool:
        """Tell whether a text replies to a prompt whose session is still to be made: it would begin another one."""
        prompt = None if text.reply_to is None else self._prompts.of_line(text.chat_id, text.reply_to)
        if prompt is None or prompt.target is None or prompts.is_over(prompt):
            return False
        return not prompt.target.source.session_id

    async def _disarm(self, text: Text) -> None:
        """Let no card take the person's next text. The prompt is saved: a full disk must not tell them to repeat it."""
        try:
            await self._kept.cards.disarm(text.user.id)
        except NotSaved as error:
            log.error("a card still takes the next text: %s", error)  # noqa: TRY400 (a full disk, not a defect)

    async def offer(self, text: Text, first: Target | None = None) -> bool:
        """Ask which session a text without a target is for; tell whether there is one to ask about. Raises NotSaved."""
        choices = prompt_routing.offered(self.sessions(), first)
        if not self.is_on or not choices or not _has_content(text):
            return False
        if self._refuses_voice(text):
            return True
        await self._make(text, choices=choices)
        return True

    def target(self, source: Source, agent_name: str) -> Target | None:
        """Return the session of an ask as a target; None if it takes no prompts."""
        return prompt_routing.target_of(source, agent_name, self.sessions()) if self.is_on else None

    async def make(self, parts: tuple[Part, ...], by: Tap, target: Target, *, about: str = "") -> Prompt:
        """Make a prompt that Hermes itself writes down for a person, once for these messages. Raises NotSaved."""
        fresh = Prompt(random_id(), by.user, by.chat_id, parts, self._prompts.written_s(), about=about)
        fresh = prompts.step(replace(fresh, thread_id=by.thread_id), Addressed(self._prompts.now(), target))
        return await self._once(fresh, lambda one: one.chat_id == by.chat_id and one.parts == parts)

    async def _make(
        self, text: Text, *, target: Target | None = None, choices: tuple[Target, ...] = (), about: str = ""
    ) -> None:
        part, asked_s = _part(text), self._prompts.written_s()
        fresh = Prompt(random_id(), text.user, text.chat_id, (part,), asked_s, choices=choices, about=about)
        fresh = replace(fresh, due_s=self._due_s(text), thread_id=text.thread_id)
        if target is not None:
            # Hermes may have been away for hours since it was written. If its clock is behind Telegram's, now counts.
            fresh = prompts.step(fresh, Addressed(min(self._prompts.now(), text.date_s), target))
        await self._once(fresh, lambda one: (one.chat_id, one.parts[0]) == (text.chat_id, part))

    async def _once(self, fresh: Prompt, is_it: Callable[[Prompt], bool]) -> Prompt:
        """Save a new prompt, unless one is there that was made for the same; return that one. Raises NotSaved."""
        return await self._prompts.make(is_it, lambda: fresh, lambda found: found)

    def _due_s(self, text: Text) -> float | None:
        """Return until when a further part may come; None after a short text, which is the last part."""
        has_more = text.album or utf16_units(text.text or "") >= SPLIT_UNITS
        return self._prompts.now() + JOIN_S if has_more else None

    def joining(self, text: Text) -> list[str]:
        """Return the ids of the prompts of this person whose parts are still arriving."""
        return [one.id for one in self._prompts.all() if one.due_s is not None and one.user.id == text.user.id]

    async def tear(self, prompt_id: str) -> None:
        """Cancel a prompt that lacks a part: the rest is not what the person said. Raises NotSaved."""
        await self._prompts.apply(prompt_id, Withdrawn(hints.TORN))

    async def edit(self, edit: TextEdit, *, is_locked: bool = False) -> bool:
        """Let an edit have its effect, on disk when this returns; False if it is none of a prompt. Raises NotSaved.

        While the phone is locked, an edit cancels a prompt that was not sent: it may be a thief's, and the agent must
        not get other words than those that the chat shows.
        """
        before = self._prompts.of_message(edit.chat_id, edit.message_id)
        if before is not None:
            await self._edit(before, edit, is_locked=is_locked)
        return before is not None

    async def _edit(self, before: Prompt, edit: TextEdit, *, is_locked: bool) -> None:
        event = Edited(edit.message_id, edit.text, edit.file)
        is_same = any(part.text == edit.text for part in before.parts if part.message_id == edit.message_id)
        if is_same and not prompt_files.brings_file(before.parts, event):
            return
        if edit.file is not None and edit.file.is_voice:
            self._messenger.say(hints.EDITED_VOICE, reply_to=edit.message_id)
        elif is_locked:
            await self._prompts.apply(before.id, Withdrawn(hints.EDITED_WHILE_LOCKED))
        else:
            after = await self._prompts.apply(before.id, event) or before
            if prompt_files.edited(after.parts, event) != after.parts:
                self._messenger.say(hints.EDITED_TOO_LATE, reply_to=edit.message_id)

    async def take_tap(self, record_id: str, action: Action, tap: Tap) -> bool:
        """Apply a tap on a button of a prompt; tell whether it is one. Raises NotSaved."""
        prompt = self._prompts.get(record_id)
        if prompt is None:
            return False
        self._outbox.answer(tap.query_id, await self._acted(prompt, action, tap))
        if tap.message_id < (prompt.line.message_id or 0):  # an earlier send, which Telegram never confirmed
            self._messenger.delete(tap.chat_id, tap.message_id)
        return True

    async def _acted(self, prompt: Prompt, action: Action, tap: Tap) -> str:
        match action:
            case Withdraw():
                after = await self._prompts.apply(prompt.id, Withdrawn())
                is_off = after is not None and after.phase == "withdrawn"
                return TOASTS["withdrawn" if is_off else "late"]
            case SendNow():
                return await self._changed(prompt, Hurried(tap.at_s), TOASTS["now"])
            case SendHeard():
                return await self._changed(prompt, Agreed(tap.at_s), TOASTS["now"])
            case SendAgain() if prompt.phase == "failed" and prompt.target is not None:
                again = await self._again(prompt, prompt.target, tap.user)
                return hints.TOASTS["page_changed"] if prompts.is_over(again) else TOASTS["again"]
            case StopTurn(is_sure):
                return await self._changed(
                    prompt, StopWanted(is_sure), TOASTS["stopping"] if is_sure else hints.TOASTS["sure"]
                )
            case Back():
                return await self._changed(prompt, StopWanted(on=False), TOASTS["moved"])
            case Address(choice) if choice < len(prompt.choices):
                return await self._changed(prompt, Addressed(tap.at_s, prompt.choices[choice]), TOASTS["now"])
            case _:
                return hints.TOASTS["page_changed"]

    async def _changed(self, prompt: Prompt, event: PromptEvent, said: str) -> str:
        after = await self._prompts.apply(prompt.id, event)
        return said if after is not None and after != prompt else hints.TOASTS["page_changed"]

    async def _again(self, prompt: Prompt, target: Target, user: User) -> Prompt:
        """Send a failed prompt again, as one of this user, once for each failure. Its files were removed with it."""
        parts = tuple(replace(one, file=one.file and replace(one.file, is_here=False)) for one in prompt.parts)
        fresh = Prompt(random_id(), user, prompt.chat_id, parts, self._prompts.written_s(), about=prompt.about)
        fresh = replace(fresh, again_of=prompt.id, thread_id=prompt.thread_id)
        fresh = prompts.step(fresh, Addressed(self._prompts.now(), target))
        return await self._once(fresh, lambda one: one.again_of == prompt.id)


def _has_content(text: Text) -> bool:
    return text.file is not None or bool((text.text or "").strip())


def _part(text: Text) -> Part:
    return Part(text.message_id, text.text or text.caption, text.date_s, text.file)
