"""The notices of sessions: the agent side reports turns, the phone side posts. `core.notices` decides."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hermes.core import notices
from hermes.core.notices import NoticeRules
from hermes.errors import NotSaved
from hermes.listener.records import Records
from hermes.listener.wakes import Wakes
from hermes.model.ask import Source
from hermes.model.notice import Begun, Notice, Retry
from hermes.model.signals import Busy, Quiet, Retrying, SessionEnded, TurnBegan, TurnEnded, TurnReport, TurnStopped
from hermes.storage.names import random_id
from hermes.storage.store import RecordStore

log = logging.getLogger(__name__)


class Notices(Records[Notice]):
    """The notice of each session whose turns Hermes has heard of."""

    of_phone = ("notice",)
    most = 200

    def __init__(
        self,
        store: RecordStore[Notice],
        rules: NoticeRules,
        wakes: Wakes,
        *,
        now: Callable[[], float],
        machine: str | None = None,
    ) -> None:
        super().__init__(store, wakes, now=now, machine=machine)
        self.rules = rules

    def _age_s(self, record: Notice) -> float:
        """Return when Hermes last heard of a turn of this session, or first of the session (epoch)."""
        return max([record.heard_s, *(one.at_s for one in record.begun)])

    async def forget_before(self, at_s: float) -> None:
        """Forget the notices whose turns were all heard of before this time (epoch) and are told. Raises NotSaved.

        Of a muted session all but its words stays: it may go on after weeks.
        """

        def is_old(one: Notice) -> bool:
            return not notices.is_behind(one) and self._age_s(one) < at_s

        await self.forget(lambda one: is_old(one) and not one.is_muted)
        for muted in [one for one in self.all() if is_old(one) and one.phase != "dropped"]:
            await self.change(muted.id, notices.dropped)

    async def take(self, signal: TurnReport, *, is_ours: bool = False) -> None:
        """Keep an agent's report of its turns; on disk when this returns.

        `is_ours`: the turn that works, begins or has ended is that of a prompt from the phone. Raises NotSaved, but not
        for Busy and Quiet.
        """
        if not self.rules.is_watching:
            return
        match signal:
            case Busy(session_id):
                await self._all_of(session_id, partial(notices.busy, now_s=self.now(), is_ours=is_ours))
            case Quiet(session_id, ""):
                await self._all_of(session_id, notices.quiet)
            case Retrying(retry):
                await self._retrying(retry)
            case TurnBegan(agent, session_id, turn_id, at_s, prompt_id, goes_on=goes_on):
                began = partial(
                    notices.began, turn_id=turn_id, at_s=at_s, prompt_id=prompt_id, is_ours=is_ours, goes_on=goes_on
                )
                await self.of(agent, session_id, began)
            case TurnStopped(agent, session_id) | SessionEnded(agent, session_id):
                after = self.of_session(agent, session_id)
                if after is not None:
                    fn = notices.stopped if isinstance(signal, TurnStopped) else notices.left
                    await self.change(after.id, fn)
            case TurnEnded(turn):
                source, rules, now_s = turn.source, self.rules, self.now()
                after = await self.of(
                    source.agent,
                    source.session_id,
                    lambda found: notices.ended(found, turn, rules, now_s, is_ours=is_ours),
                )
                log.info("notice %s: a turn of session %s: %s", after.id, after.session_id, after.phase)

    async def _retrying(self, retry: Retry) -> None:
        rules, now_s, source = self.rules, self.now(), retry.source
        if retry.attempt >= notices.KEEPS_TRYING:
            await self.of(source.agent, source.session_id, lambda found: notices.retrying(found, retry, rules, now_s))

    async def _all_of(self, session_id: str, fn: Callable[[Notice], Notice]) -> None:
        with suppress(NotSaved):  # then a notice is posted that nobody needs
            for notice in [one for one in self.ours() if one.session_id == session_id]:
                await self.change(notice.id, fn)

    def of_session(self, agent: str, session_id: str) -> Notice | None:
        """Return the notice of this session on this machine, or None."""
        return next((one for one in self.ours() if (one.agent, one.session_id) == (agent, session_id)), None)

    def trying_at(self, server: str) -> list[Source]:
        """Return the sessions of this server whose turns keep trying to reach their model, as far as Hermes knows."""
        retries = (one.retry for one in self.ours() if one.retry is not None)
        return [retry.source for retry in retries if retry.source.server == server]

    def begun(self, agent: str, session_id: str, turn_id: str) -> Begun | None:
        """Return the beginning of this turn, None if Hermes has not heard of it."""
        notice = self.of_session(agent, session_id)
        return None if notice is None else notices.begun(notice, turn_id)

    async def mute(self, source: Source, *, on: bool) -> None:
        """Post no notices of this session, of whatever machine, or post them again. Raises NotSaved."""
        machine = None if self._machine is None else source.machine
        await self._of(source.agent, machine, source.session_id, partial(notices.muted, on=on))

    def is_muted(self, source: Source) -> bool:
        """Tell whether the person wants no notices of this session, of whatever machine and process."""
        known = (one for one in self.all() if (one.agent, one.session_id) == (source.agent, source.session_id))
        return any(one.is_muted and one.machine in {"", source.machine} for one in known)

    async def of(self, agent: str, session_id: str, fn: Callable[[Notice], Notice]) -> Notice:
        """Change the notice of this session on this machine; `fn` is pure. Raises NotSaved."""
        return await self._of(agent, self._machine, session_id, fn)

    async def _of(self, agent: str, machine: str | None, session_id: str, fn: Callable[[Notice], Notice]) -> Notice:
        return await self.make(
            lambda one: (one.agent, one.session_id) == (agent, session_id) and machine in {None, one.machine},
            lambda: Notice(random_id(), agent, session_id, heard_s=self.now(), machine=machine or ""),
            fn,
        )
