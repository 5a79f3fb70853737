"""Takes in the turns that agents tell of: their notices, and the prompts that began them."""

from __future__ import annotations

from dataclasses import replace

from hermes.listener.kept import Kept
from hermes.model.prompt import Prompt, RecordState, Sight
from hermes.model.prompt_events import Seen
from hermes.model.signals import Busy, TurnBegan, TurnEnded, TurnReport, TurnStopped


class TurnReports:
    """Takes in turns. Each report may come twice; a turn may be told to begin or to end again if it goes on."""

    def __init__(self, kept: Kept) -> None:
        self._notices = kept.notices
        self._prompts = kept.prompts

    async def taken(self, record_id: str) -> None:
        """A hook has taken this prompt into its session. Raises NotSaved."""
        prompt = self._prompts.of_record(record_id)
        if prompt is not None:
            await self._see(prompt, Sight("busy", "admitted"))

    async def take(self, signal: TurnReport) -> None:
        """Keep the report of a turn; on disk when this returns. Raises StoreError."""
        match signal:
            case Busy(session_id):
                await self._notices.take(signal, is_ours=self._prompts.is_with_agent(session_id))
            case TurnBegan():
                await self._began(signal)
            case TurnEnded():
                await self._ended(signal)
            case TurnStopped(agent, session_id):
                await self._notices.take(signal)
                await self._interrupt(agent, session_id)
            case _:
                await self._notices.take(signal)

    async def _began(self, signal: TurnBegan) -> None:
        agent, session_id = signal.agent, signal.session_id
        known = self._notices.begun(agent, session_id, signal.turn_id)
        named = known.prompt_id if known is not None else ""
        came = self._prompt_of(signal)
        prompt_id = came or named
        is_ours = bool(came) or self._prompts.is_with_agent(session_id)
        await self._notices.take(replace(signal, prompt_id=came), is_ours=is_ours)
        prompt = self._prompts.of_record(prompt_id)
        await self._interrupt(agent, session_id, but=prompt_id)
        if prompt is not None:
            await self._see(prompt, Sight("busy", "running"))

    def _prompt_of(self, signal: TurnBegan) -> str:
        """Return the id of the prompt that began this turn or came into it, "" if none did.

        A session has one prompt at a time.
        """
        sent = self._prompts.at(signal.agent, signal.session_id, "sending", "admitted")
        mine = [one.record_id for one in sent if signal.from_phone or one.record_id == signal.prompt_id]
        return mine[0] if mine else ""

    async def _interrupt(self, agent: str, session_id: str, *, but: str = "") -> None:
        """A prompt that runs is stopped if its turn is, or if another turn begins."""
        for prompt in self._prompts.at(agent, session_id, "running"):
            if prompt.record_id != but:
                await self._see(prompt, Sight("idle", "stopped"))

    async def _ended(self, signal: TurnEnded) -> None:
        turn = signal.turn
        begun = self._notices.begun(turn.source.agent, turn.source.session_id, turn.id)
        if begun is None:
            await self._notices.take(signal, is_ours=self._prompts.has_begun(turn))
            # A look may come too late if the process ends. After a failure, only a look tells if the agent goes on.
            prompt = None if turn.failure else self._prompts.of_record(turn.prompt_id)
        else:
            named = replace(signal, turn=replace(turn, prompt_id=begun.prompt_id))
            await self._notices.take(named, is_ours=bool(begun.prompt_id))
            prompt = self._prompts.of_record(begun.prompt_id)
        if prompt is not None:
            record: RecordState = "failed" if turn.failure else "finished"
            await self._see(prompt, Sight("idle", record, reason=turn.failure, ended_s=turn.ended_s))

    async def _see(self, prompt: Prompt, sight: Sight) -> None:
        await self._prompts.apply(prompt.id, Seen(self._prompts.now(), sight))
