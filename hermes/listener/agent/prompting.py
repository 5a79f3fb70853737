"""Delivers prompts to the sessions of agents, one order of `core.prompts` at a time.

The processes of an agent share their sessions on the disk, and each knows only of the turns that it runs itself. So a
prompt goes to the process that works on its session, whichever it was written for. If none does, it goes to the
terminal that worked on the session last, if that still runs. If that one has ended, any other process may take it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from hermes.agents.prompting import HasPrompts, PromptWay, way_name, without_server
from hermes.agents.server import AgentServer
from hermes.core import prompt_files, prompts
from hermes.core.prompt_routing import moved, refusal
from hermes.core.prompts import CONFIRM_S, LOOK_S, Look, MakeSession, Send, Stop
from hermes.errors import AgentAway, AgentError, AgentRefused, Missing, NotThere
from hermes.listener.agent.turn_reports import TurnReports
from hermes.listener.kept import Kept
from hermes.listener.workers import LOCKED_LOOK_S
from hermes.model.ask import Source
from hermes.model.files import Attachment
from hermes.model.prompt import Prompt, Sight, Target
from hermes.model.prompt_events import Accepted, Declined, PromptEvent, Seen, SessionMade, StopTold, Trying, Unreached
from hermes.model.signals import TurnEnded
from hermes.storage.store import Store

log = logging.getLogger(__name__)

FILE_GONE: Final = "I don't have its file any more; please send it again"
BEHIND_LOOK_S: Final = 10.0
"""A prompt behind another one looks again by itself: the other one may become stale, and nothing tells of that."""
PATIENCE_S: Final = 3.0
"""Another process of the agent that does not answer within this time holds no prompt up."""


class Prompting:
    """The worker for prompts. `ways` has the ways to sessions by their names, see `way_name`."""

    def __init__(
        self,
        kept: Kept,
        ways: Mapping[str, HasPrompts],
        servers: Mapping[str, AgentServer],
        store: Store,
        projects: tuple[str, ...] | None,
    ) -> None:
        """`projects` are those that the phone may write to, () for all; None if prompts are off."""
        self._prompts = kept.prompts
        self._notices = kept.notices
        self._turn_reports = TurnReports(kept)
        self._ways = ways
        self._servers = servers
        self._store = store
        self._projects = projects
        # The new sessions of prompts, by prompt id, that could not be noted: they must not be made again.
        self._unnoted: dict[str, SessionMade] = {}

    async def step(self, prompt_id: str) -> float | None:
        """Do the next thing; return the seconds until the next step, or None if nothing is left to do.

        Raises AgentError and StoreError: try the step again.
        """
        prompt = self._prompts.get(prompt_id)
        if prompt is None or prompt.target is None or prompts.is_over(prompt):
            return None
        order = prompts.due(prompt, is_next=self._prompts.is_next(prompt), now_s=self._prompts.now())
        if order is None:
            is_behind = prompt.phase == "queued" and not prompts.is_stale(prompt, self._prompts.now())
            return BEHIND_LOOK_S if is_behind else None
        if isinstance(order, Send) or prompts.is_free(prompt):
            if why := refusal(prompt.target.source, self._projects):
                return await self._given_up(prompt, why)
            if await self._store.is_phone_locked():
                return LOCKED_LOOK_S
        has = self._ways.get(way_name(prompt.target.source))
        if has is None:
            return await self._given_up(prompt, "this Hermes no longer follows that agent")
        try:
            return await self._do(order, prompt, prompt.target, has)
        except AgentAway:
            await self._prompts.apply(prompt_id, Unreached())
            raise

    async def _given_up(self, prompt: Prompt, reason: str) -> float:
        """Let a prompt fail that can go no further."""
        return await self._happen(prompt, Seen(self._prompts.now(), Sight("gone", reason=reason)))

    async def _do(
        self, order: MakeSession | Look | Send | Stop, prompt: Prompt, target: Target, has: HasPrompts
    ) -> float:
        match order:
            case MakeSession():
                return await self._make_session(prompt, target, has)
            case Look(pause_s):
                return await self._look(prompt, target, await has.way(), pause_s)
            case Send():
                return await self._send(prompt, target, await has.way())
            case Stop():
                return await self._stop(prompt, target, has)

    async def _make_session(self, prompt: Prompt, target: Target, has: HasPrompts) -> float:
        try:
            if prompt.id not in self._unnoted:
                made = SessionMade(await (await has.way()).new_session(target.source.directory))
                self._unnoted[prompt.id] = made
        except AgentRefused as error:
            return await self._happen(prompt, Declined(_why(error)))
        await self._prompts.apply(prompt.id, self._unnoted[prompt.id])
        del self._unnoted[prompt.id]
        return 0.0

    async def _stop(self, prompt: Prompt, target: Target, has: HasPrompts) -> float:
        if await self._store.is_phone_locked():
            return await self._happen(prompt, StopTold(is_taken=False))
        try:
            way = await has.way()
        except AgentRefused:
            return await self._happen(prompt, StopTold(is_taken=False))
        try:
            after = await self._seen(prompt, target, way)
        except AgentError:
            after = prompt  # its record cannot be read: what the person wants counts
        if after is None or prompts.is_over(after):
            return 0.0  # the turn that runs by now is not the one that the person meant
        return await self._happen(prompt, StopTold(await self._stopped(target, way)))

    async def _happen(self, prompt: Prompt, event: PromptEvent) -> float:
        await self._prompts.apply(prompt.id, event)
        return 0.0

    async def _seen(self, prompt: Prompt, target: Target, way: PromptWay) -> Prompt | None:
        source = target.source
        sight = await _sight(prompt, source, way)
        others = self._others(source) if prompts.is_free(prompt) else {}
        if others and (sight.session == "idle" or (sight.session == "gone" and sight.is_own)):
            server = await self._elsewhere(prompt, source, others, is_gone=sight.session == "gone")
            if server is not None:
                source, way = replace(source, server=server), await others[server].way()
            # A process that does not answer takes seconds, in which a turn may have begun.
            sight = await _sight(prompt, source, way)
        return await self._prompts.apply(prompt.id, Seen(self._prompts.now(), sight))

    def _others(self, source: Source) -> dict[str, HasPrompts]:
        """Return the other processes of the agent, by their servers ("": without one)."""
        own, plain = way_name(source), without_server(source.agent)
        ways = ((name, has) for name, has in self._ways.items() if has.agent == source.agent and name != own)
        return {"" if name == plain else name: has for name, has in ways}

    async def _elsewhere(
        self, prompt: Prompt, source: Source, others: Mapping[str, HasPrompts], *, is_gone: bool
    ) -> str | None:
        """Move the prompt to the other process that has its session now; return its server, None if none has.

        That is the one that works on it or, if none does, the one that told of its last turn and has not ended since.
        `is_gone`: the process that had the session has ended, so any that can take it has it.
        """
        idle: list[str] = []
        for server, has in others.items():
            try:
                async with asyncio.timeout(PATIENCE_S):
                    sight = await (await has.way()).look(replace(source, server=server), "")
            except (AgentError, TimeoutError) as error:
                log.info("prompt %s: %s was not asked about its session: %s", prompt.id, server or "no port", error)
                continue
            if sight.session == "busy":
                return await self._move(prompt, server)
            if sight.session == "idle" and (sight.is_own or is_gone):
                idle.append(server)
        # Read after the looks: a turn may have ended, and been told of, while they were under way.
        told = self._notices.of_session(source.agent, source.session_id)
        last = source.server if told is None or told.turn is None else told.turn.source.server
        if is_gone and idle and last not in idle:
            last = idle[0]
        return await self._move(prompt, last) if last in idle else None

    async def _move(self, prompt: Prompt, server: str) -> str:
        log.info("prompt %s: its session is in another process: %s", prompt.id, server or "no port")
        await self._prompts.change(prompt.id, partial(moved, server=server))
        return server

    async def _look(self, prompt: Prompt, target: Target, way: PromptWay, pause_s: float) -> float:
        after = await self._seen(prompt, target, way)
        if after is None or (after.phase, after.is_clear) != (prompt.phase, prompt.is_clear):
            return 0.0
        waited_s = abs(self._prompts.now() - max(after.seen_s, after.tried_s))
        return max(pause_s, min(LOOK_S, waited_s)) if pause_s else max(CONFIRM_S, LOOK_S)

    async def _send(self, prompt: Prompt, target: Target, way: PromptWay) -> float:
        files: tuple[Attachment, ...] | None = None
        try:
            if prompts.is_free(prompt):  # nothing has left yet: what the agent does not take is said before it does
                files = await self._files(prompt)
                await way.check(target.source, replace(prompts.content(prompt), files=files))
                await self._tell_last_turn(prompt, target.source)
        except AgentRefused as error:
            return await self._happen(prompt, Declined(_why(error)))
        # The agent may have taken long to say what it takes, and its session may be at work since then.
        has_changed = bool(files) and not self._is_due(await self._seen(prompt, target, way), target)
        if has_changed or await self._store.is_phone_locked():
            return 0.0
        after = await self._prompts.apply(prompt.id, Trying(self._prompts.now()))
        if after is None or after.tries == prompt.tries:  # it was withdrawn in the meantime
            return 0.0
        try:
            files = await self._files(after) if files is None else files
            await way.send(target.source, after.record_id, replace(prompts.content(after), files=files))
        except AgentRefused as error:
            log.info("prompt %s was refused: %s", prompt.id, error)
            return await self._happen(prompt, Declined(_why(error)))
        return await self._happen(prompt, Accepted())

    async def _tell_last_turn(self, prompt: Prompt, source: Source) -> None:
        """Take in how the turn before the prompt ended: once the prompt's own turn has begun, no server can tell."""
        server = self._servers.get(way_name(source))
        if server is None:
            return  # hooks and plugins tell each end
        with suppress(AgentRefused):
            turn = await server.turn(source.session_id, source.directory)
            if turn is not None and (turn.ended_s >= prompts.typed_s(prompt) or self._prompts.has_begun(turn)):
                await self._turn_reports.take(TurnEnded(turn))

    def _is_due(self, prompt: Prompt | None, target: Target) -> bool:
        """Tell whether a prompt may be sent to this session now."""
        if prompt is None or prompt.target != target:
            return False
        order = prompts.due(prompt, is_next=self._prompts.is_next(prompt), now_s=self._prompts.now())
        return isinstance(order, Send)

    async def _files(self, prompt: Prompt) -> tuple[Attachment, ...]:
        """Return the files with their content. Raises AgentRefused: one is missing; StoreError: try it again."""
        files = [(part.message_id, part.file) for part in prompt.parts if part.file is not None]
        try:
            found = [await self._store.files.read(prompt.id, message_id) for message_id, _ in files]
        except Missing as error:
            raise AgentRefused(f"prompt {prompt.id}: {error}", said=FILE_GONE) from error
        return tuple(
            Attachment(prompt_files.called(file), file.mime, data) for (_, file), data in zip(files, found, strict=True)
        )

    async def _stopped(self, target: Target, way: PromptWay) -> bool:
        try:
            return await way.stop(target.source)
        except AgentRefused as error:
            log.info("session %s could not be stopped: %s", target.source.session_id, error)
            return False


async def _sight(prompt: Prompt, source: Source, way: PromptWay) -> Sight:
    try:
        return await way.look(source, prompt.record_id)
    except NotThere:
        return Sight("gone")


def _why(error: AgentRefused) -> str:
    """Return why an agent refused, in the words that it gave, if it gave some."""
    return error.said or "the agent refused it"
