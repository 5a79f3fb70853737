"""Gives texts to the asks that they belong to, runs commands, and replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes.chat.screens import hints
from hermes.core import routing
from hermes.listener.phone.taps import notice_copy

if TYPE_CHECKING:
    from hermes.chat.outbox import Outbox
    from hermes.chat.screens.screen import Look
    from hermes.listener.entries import Entries
    from hermes.listener.phone.chat_commands import Commands
    from hermes.listener.phone.messenger import Messenger
    from hermes.listener.phone.prompt_texts import PromptTexts
    from hermes.model.events import Text, TextEdit

ARRIVING_S: Final = 2.0
"""A text that seems too early waits at most this long: its question may be on the phone, but not confirmed yet."""


class Texts:
    """Takes in texts."""

    def __init__(
        self,
        entries: Entries,
        outbox: Outbox,
        look: Look,
        messenger: Messenger,
        commands: Commands,
        prompts: PromptTexts,
    ) -> None:
        self._entries = entries
        self._outbox = outbox
        self._look = look
        self._messenger = messenger
        self._commands = commands
        self._prompts = prompts

    async def take(self, text: Text) -> None:
        """Let a text have its effect, which is on disk when this returns. Raises StoreError."""
        if self._entries.was_seen(text.update_id) or await self._prompts.was_seen(text):
            return
        told = await self._commands.take(text)
        if told is not None:
            if told.screen is not None:
                self._messenger.say(told.screen, reply_to=text.message_id)
            return
        if self._is_to_an_ask(text) or not await self._prompts.take(text):
            await self._take_for_asks(text)

    def _is_to_an_ask(self, text: Text) -> bool:
        """Tell whether the text replies to an ask, or is a further part of an answer: then it is no prompt."""
        to = routing.route(text, self._entries.all())
        return isinstance(to, routing.ToAsk) and to.event.how in {"reply", "part"}

    async def _take_for_asks(self, text: Text) -> None:
        if routing.route(text, self._entries.all()) == routing.Tell("too_early"):
            await self._outbox.arrived(text.chat_id, ARRIVING_S)
            await self._entries.at_rest()  # the message of the question is noted
        match routing.route(text, self._entries.all()):
            case routing.ToAsk(entry_id, event):
                entry = self._entries.get(entry_id)
                if event.how == "reply" and text.reply_to is not None and entry is not None:
                    await notice_copy(self._entries, entry, text.reply_to)
                step = await self._entries.apply(entry_id, event)
                if step.hint is not None:
                    self._tell(step.hint.kind, (entry_id,), text.message_id)
            case routing.Tell("none_open" | "settled" | "how_to_answer") if await self._prompts.offer(text):
                return
            case routing.Ignore() | routing.Tell("too_early" | "two_open") if await self._offer_unknown(text):
                return
            case routing.Tell(kind, entry_ids):
                self._tell(kind, entry_ids, text.message_id)
            case routing.Ignore():
                return

    async def _offer_unknown(self, text: Text) -> bool:
        """Ask what a reply to an unknown message of ours is for: Telegram may never have confirmed a notice."""
        return bool(text.reply_text) and await self._prompts.offer(text)

    async def edit(self, edit: TextEdit) -> None:
        """Let the edit of a text have its effect, if the text is a prompt. Raises StoreError."""
        await self._prompts.edit(edit)

    def joining_prompts(self, text: Text) -> list[str]:
        """Return the ids of the prompts of which this text may be a part."""
        return self._prompts.joining(text)

    async def tear(self, prompt_id: str) -> None:
        """Cancel a prompt that lacks a part. Raises StoreError."""
        await self._prompts.tear(prompt_id)

    def _tell(self, kind: hints.HintWord, entry_ids: tuple[str, ...], reply_to: int) -> None:
        entry = self._entries.get(entry_ids[0]) if len(entry_ids) == 1 else None
        self._messenger.say(hints.hint(kind, entry, self._look, count=len(entry_ids)), reply_to=reply_to)
