"""The way of prompts to the sessions of an agent without a server: a hook waits in each, and takes what lies ready.

The state of a prompt is known from files, and from what the agent's hooks tell of their turns (`turns`):

    it lies ready, or a hook has       "waiting"
    taken it and left no receipt yet
    the receipt was read               "admitted": the prompt is in that phase
    its turn began                     "running": the prompt is in that phase
    nothing of these                   "absent": no hook has taken it, and it can be laid ready again
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from hermes import disk
from hermes.agents.prompting import Excludes, nothing_excluded
from hermes.agents.registry import ADAPTERS, EXCLUSIONS, INTERRUPTED_AT, PROMPT_ABILITIES
from hermes.core import notices
from hermes.errors import AgentAway, AgentRefused
from hermes.hook import prompt_files, spool
from hermes.listener.kept import Kept
from hermes.model.ask import Source
from hermes.model.card import Listed
from hermes.model.notice import Notice
from hermes.model.prompt import Content, Prompt, RecordState, SessionState, Sight, Target
from hermes.storage.home import Home

LIES_S: Final = 60.0
"""No hook takes a prompt that has lain ready for longer: the session may have been closed and opened again."""
HELD_S: Final = 7200.0
"""A prompt that an agent may hold for the next step of its turn counts as lost after this time."""
STARTING_S: Final = 10.0
"""The hook that is started with a resumed session needs no longer until it waits; a turn may begin meanwhile."""
LOST_S: Final = 30.0
"""If nobody waits in a session for so long after a prompt was sent there, its program is gone."""
TAKES_S: Final = 5.0
"""A hook takes at once what lies ready, or at its next look."""
_STEP_S: Final = 0.1


class HookPrompts:
    """The way to the sessions of one agent on this machine; see `PromptWay`. `host` is its name for people."""

    def __init__(
        self,
        agent: str,
        *,
        home: Home,
        host: str,
        kept: Kept,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.can = PROMPT_ABILITIES[agent]
        self.agent = agent
        self._agent_name = ADAPTERS[agent].capabilities.agent_name
        self._root = home.root
        self._now = home.now  # as the hook that reads it: the clock of a database may be another one
        self._host = host
        self._interrupted_at = INTERRUPTED_AT.get(agent)
        self._notices = kept.notices
        self._prompts = kept.prompts
        self._sleep = sleep

    async def way(self) -> HookPrompts:
        return self

    async def look(self, source: Source, record_id: str) -> Sight:
        name = _name(source)
        prompt = self._prompts.of_record(record_id)
        lies = prompt is not None and prompt.phase == "sending" and self._lies(name, record_id)
        notice = self._notices.of_session(self.agent, source.session_id)
        is_there = prompt_files.is_waiting(self._root, name)
        if prompt is not None and prompt.phase in {"admitted", "running"}:
            return self._taken(name, prompt, notice, is_there=is_there)
        if is_there or lies:
            record: RecordState = "waiting" if lies else "absent"
            return Sight(self._state(name, notice), record, next_id=secrets.token_hex(8))
        if self._has_left(name, notice):
            return Sight("gone", reason="the session was ended on the computer")
        if prompt is not None and self._prompts.now() - prompt.tried_s > LOST_S:
            return Sight("gone", reason=f"{self._agent_name} no longer runs there")
        raise AgentAway(f"no hook of {self._agent_name} waits in session {source.session_id}")

    def _state(self, name: str, notice: Notice | None) -> SessionState:
        """Return the state of a session in which a hook waits."""
        if notice is None or not notices.is_running(notice):
            return "idle"
        said, began_s = prompt_files.session_of(self._root, name), notice.begun[-1].at_s
        if said.get("resumed") and began_s + STARTING_S < float(said.get("since") or 0) <= self._now():
            return "idle"  # the program was killed in the middle of that turn
        record = said.get("record")
        at_s = self._interrupted_at(record) if self._interrupted_at is not None and record else None
        return "busy" if at_s is None or at_s < began_s else "idle"

    def _lies(self, name: str, record_id: str) -> bool:
        """Tell whether the prompt lies ready, or was taken and its receipt is not read yet; take back what stays."""
        with disk.saving(self._root):
            text = prompt_files.lying(self._root, name)
            given = None if text is None else prompt_files.read(text)
            lies = given is not None and given["id"] == record_id
            is_late = given is not None and self._now() > given["until"]
            if lies and not is_late and prompt_files.is_waiting(self._root, name):
                return True
            if lies and prompt_files.take_back(self._root, name):
                return False
            # In this order: the hook writes its receipt before it is no longer seen taking the prompt.
            return prompt_files.is_being_taken(self._root, name) or self._has_receipt(record_id)

    def _has_receipt(self, record_id: str) -> bool:
        """Tell whether the inbox has, or may have, a receipt for this prompt."""
        for path in spool.listing(self._root):
            try:
                if record_id.encode() in disk.read(path):
                    return True
            except FileNotFoundError:
                continue  # it has just been read
            except OSError:
                return True
        return False

    def _taken(self, name: str, prompt: Prompt, notice: Notice | None, *, is_there: bool) -> Sight:
        """Return the sight of a prompt that a hook has taken; the end of its turn is told by the agent alone."""
        if not is_there and self._has_left(name, notice):
            return Sight("gone", reason="the session was ended on the computer")
        state = self._state(name, notice) if is_there else "idle"
        if prompt.phase != "running":
            return Sight("busy" if self._is_held(name, prompt) else state, "admitted")
        is_stopped = is_there and state == "idle" and notice is not None and notices.is_running(notice)
        return Sight(state, "stopped" if is_stopped else "running")

    def _has_left(self, name: str, notice: Notice | None) -> bool:
        """Tell whether the session has ended and was not resumed. A mark tells that if hooks leave with prompts."""
        return prompt_files.has_ended(self._root, name) if self.can.holds else notice is not None and notice.is_left

    def _is_held(self, name: str, prompt: Prompt) -> bool:
        """Tell whether the agent may hold a prompt that it was given; one that has resumed the session since cannot."""
        is_lost = prompt_files.session_of(self._root, name).get("resumed")
        return self.can.holds and not is_lost and 0 <= self._prompts.now() - prompt.tried_s < HELD_S

    async def check(self, source: Source, content: Content) -> None:
        """Object to nothing: these agents take no files, so that no prompt with one comes here."""

    async def send(self, source: Source, record_id: str, content: Content) -> None:
        """Lay a prompt ready for the hook that waits in the session. `look` has shown that no hook has taken it."""
        name = _name(source)
        if not prompt_files.is_waiting(self._root, name) or prompt_files.has_ended(self._root, name):
            raise AgentAway(f"no hook of {self._agent_name} waits in session {source.session_id}")
        self._lay(name, {"id": record_id, "text": content.text})

    def _lay(self, name: str, given: dict[str, object]) -> None:
        with disk.saving(self._root):
            prompt_files.lay(self._root, name, json.dumps(given | {"until": self._now() + LIES_S}))

    async def stop(self, source: Source) -> bool:
        name, notice = _name(source), self._notices.of_session(self.agent, source.session_id)
        is_running = prompt_files.is_waiting(self._root, name) and self._state(name, notice) == "busy"
        if not self.can.stops or not is_running or prompt_files.lying(self._root, name) is not None:
            return False
        self._lay(name, {"stop": True})
        for _ in range(int(TAKES_S / _STEP_S)):
            await self._sleep(_STEP_S)
            if prompt_files.lying(self._root, name) is None:
                return True
        with disk.saving(self._root):
            return not prompt_files.take_back(self._root, name)

    async def new_session(self, directory: str) -> str:  # noqa: ARG002 (demanded by the protocol)
        """Refuse: only a person begins one, in a terminal."""
        raise AgentRefused("no new session", said=f"{self._agent_name} begins a new session only at the computer")

    async def words(self, source: Source) -> str:
        """Return the agent's last words in this session, as far as a notice has them."""
        notice = self._notices.of_session(self.agent, source.session_id)
        return notice.turn.words if notice is not None and notice.turn is not None else ""

    async def exclusions(self, source: Source) -> Excludes:
        read = EXCLUSIONS.get(self.agent)
        if read is None:
            return nothing_excluded
        record = prompt_files.session_of(self._root, _name(source)).get("record", "")
        return await asyncio.to_thread(read, source.directory, record)

    async def listed(self, since_s: float) -> tuple[Listed, ...]:  # noqa: ARG002 (what is open counts)
        """Return the sessions that are open: those in which a hook waits."""
        waiting = [said for said in prompt_files.waiting(self._root).values() if said.get("agent") == self.agent]
        return tuple(self._listed(said) for said in waiting if said.get("session"))

    def _listed(self, said: dict[str, str]) -> Listed:
        notice = self._notices.of_session(self.agent, said["session"])
        turn = None if notice is None else notice.turn
        source = turn.source if turn is not None else self._source(said)
        used_s = max([float(said.get("since") or 0), *(one.at_s for one in (notice.begun if notice else ()))])
        return Listed(Target(source, self._agent_name, self.can), self._state(_name(source), notice), used_s)

    def _source(self, said: dict[str, str]) -> Source:
        return Source(
            agent=self.agent,
            machine=said.get("machine", ""),
            session_id=said["session"],
            directory=said.get("directory", ""),
            session_title=said.get("title", ""),
            host=self._host,
        )


def _name(source: Source) -> str:
    return prompt_files.name_of(source.agent, source.machine, source.session_id)
