"""Gives texts to the asks that they belong to, runs commands, and replies."""

from __future__ import annotations

from dataclasses import replace

from hermes.chat.outbox import Outbox
from hermes.chat.screens import hints
from hermes.core import routing
from hermes.core.answers import open_to_people
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.chat_commands import Commands
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.prompt_texts import ARRIVING_S, PromptTexts
from hermes.listener.phone.taps import notice_copy
from hermes.listener.phone.topics import Topics
from hermes.model.entry import Entry
from hermes.model.events import Text, TextEdit
from hermes.model.notice import Place
from hermes.model.prompt import Target


class Texts:
    """Takes in texts."""

    def __init__(
        self,
        entries: Entries,
        outbox: Outbox,
        messenger: Messenger,
        commands: Commands,
        prompts: PromptTexts,
        topics: Topics,
        kept: Kept,
    ) -> None:
        self._entries = entries
        self._outbox = outbox
        self._messenger = messenger
        self.commands = commands
        self.prompts = prompts
        self._topics = topics
        self._kept = kept
        self._told_album = ""

    async def take(self, text: Text) -> None:
        """Let a text have its effect, which is on disk when this returns. Raises StoreError."""
        text = self._topics.seen(text)
        if self._entries.was_seen(text.update_id) or await self.prompts.was_seen(text):
            return
        if await self.commands.take(text, is_answer=self._is_answer(text)):
            return
        if self._is_to_an_ask(text) or not (await self._is_late(text) or await self.prompts.take(text)):
            await self._take_for_asks(text)

    def _is_answer(self, text: Text) -> bool:
        """Tell whether the person means this text for an ask, also for one that is over by now."""
        return self._is_to_an_ask(text) or routing.route(text, self._entries.all()) == routing.Tell("settled")

    def _is_to_an_ask(self, text: Text) -> bool:
        """Tell whether the text is for an ask: a reply to it, a part of an answer, or the first plain text after ✏️."""
        to = routing.route(text, self._entries.all())
        return isinstance(to, routing.ToAsk) and to.event.how != "offered"

    async def _is_late(self, text: Text) -> bool:
        """Ask what a plain text in a topic is for if a question of its session ended while it may have been typed."""
        target = self.prompts.plain_target(text)
        if target is None:
            return False
        over = await self._entries.over_lately(target.source)
        is_late = any(routing.may_be_late(text, entry) for entry in over)
        return is_late and await self.prompts.offer(text, first=target)

    async def _take_for_asks(self, text: Text) -> None:
        if routing.route(text, self._entries.all()) == routing.Tell("too_early"):
            await self._outbox.arrived(text.chat_id, ARRIVING_S)  # its question may be on the phone by then
            await self._entries.at_rest()  # the message of the question is noted
        to = routing.route(text, self._entries.all())
        if isinstance(to, routing.ToAsk):
            await self._apply(to, text)
        elif not await self._is_for_a_session(to, text) and isinstance(to, routing.Tell):
            if to == routing.Tell("how_to_answer") and (text.text or "").startswith("/"):
                self._messenger.say(hints.UNKNOWN_COMMAND, reply_to=text.message_id)
            else:
                self._tell(to.kind, to.entry_ids, text)

    async def _apply(self, to: routing.ToAsk, text: Text) -> None:
        entry = self._entries.get(to.entry_id)
        if to.event.how == "reply" and text.reply_to is not None and entry is not None:
            await notice_copy(self._entries, self._kept, entry, Place(text.chat_id, text.reply_to), text.thread_id)
        step = await self._entries.apply(to.entry_id, to.event)
        if step.hint is None:
            return
        self._tell(step.hint, (to.entry_id,), text)
        if entry is not None and step.hint == "settled" and self._asking(entry) is not None:
            await self.prompts.offer(text, first=self._asking(entry))

    def _asking(self, entry: Entry) -> Target | None:
        """Return the session that has asked, if it takes prompts."""
        return self.prompts.target(entry.ask.source, entry.ask.capabilities.agent_name)

    async def _is_for_a_session(self, to: routing.Tell | routing.Ignore, text: Text) -> bool:
        """Tell whether the person was asked which session a text is for, or told that its session takes none."""
        match to:
            case routing.Ignore() | routing.Tell("none_open" | "how_to_answer") if self.prompts.refuse(text):
                return True
            case routing.Tell("settled"):
                closed = await self._entries.closed_with_code(routing.replied_code(text))
                if closed is not None and self.prompts.is_left_out(closed.ask.source):
                    return False
                return await self.prompts.offer(text, first=None if closed is None else self._asking(closed))
            case routing.Tell("none_open" | "how_to_answer"):
                return await self.prompts.offer(text)
            case routing.Tell("no_words") if not self._is_asked():
                return await self.prompts.offer(text)
            case routing.Ignore() | routing.Tell("too_early" | "two_open") | routing.Tell("no_words", ()):
                return await self._offer_unknown(text)
            case _:
                return False

    def _is_asked(self) -> bool:
        """Tell whether an ask is open that a message without words may be meant for."""
        return any(open_to_people(entry.ask, entry.state) for entry in self._entries.all())

    async def _offer_unknown(self, text: Text) -> bool:
        """Ask what a text is for that was forwarded to a topic, or that replies to an unknown message of ours.

        Telegram may never have confirmed a notice.
        """
        there = replace(text, thread_id=text.forwarded_to)
        is_to_topic = self._topics.at(there.chat_id, there.thread_id) is not None
        first = self.prompts.plain_target(there) if is_to_topic else None
        return (is_to_topic or bool(text.reply_text)) and await self.prompts.offer(text, first=first)

    def is_to_bot(self, text: Text) -> bool:
        """Tell whether a person writes this to Hermes: in a group, people also talk to each other."""
        if not text.group or self.commands.is_command(text):
            return True
        seen = self._topics.seen(text)
        return routing.route(seen, self._entries.all()) != routing.Ignore() or self.prompts.may_be_prompt(seen)

    async def edit(self, edit: TextEdit, *, is_locked: bool = False) -> bool:
        """Let the edit of a prompt have its effect; say that any other edit has none, unless the phone is locked.

        Return whether it is the edit of a text to Hermes. Raises StoreError.
        """
        is_prompt = await self.prompts.edit(edit, is_locked=is_locked)
        if not is_prompt and edit.is_to_bot and not is_locked:
            self._messenger.say(hints.EDITED_IN_VAIN, reply_to=edit.message_id)
        return is_prompt or edit.is_to_bot

    def _tell(self, kind: hints.HintWord, entry_ids: tuple[str, ...], text: Text) -> None:
        """Say why a text changed nothing; of an album, whose pieces come one by one, below the first piece alone."""
        if text.album and text.album == self._told_album:
            return
        self._told_album = text.album
        entry = self._entries.get(entry_ids[0]) if len(entry_ids) == 1 else None
        self._messenger.say(hints.hint(kind, entry, count=len(entry_ids)), reply_to=text.message_id)
