"""The needs of the listener to bring prompts to an agent: sessions, their state, and the agent's own record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from hermes.agents.http import Api
from hermes.errors import AgentRefused
from hermes.model.ask import Source
from hermes.model.card import Listed
from hermes.model.prompt import Content, Sight

Excludes = Callable[[str], bool]
"""Tells whether an agent's permissions keep the file with this whole path from it; can take a second or two."""

MOST_CHARACTERS: Final = 1 << 16
"""All patterns of the rules for one session have so many characters at most."""


class PromptWay(Protocol):
    """The way of prompts to the sessions of one server, or to those of an agent that have no server.

    Each method raises AgentAway (another try can help) or AgentRefused (`said` are words for the person); a session
    that does not exist any more raises NotThere.
    """

    async def look(self, source: Source, record_id: str) -> Sight:
        """Return the state of the session, and in its record that of the prompt with this id ("": of none)."""

    async def check(self, source: Source, content: Content) -> None:
        """Raise AgentRefused if it is known that the agent, or the model of this session, does not take this prompt."""

    async def send(self, source: Source, record_id: str, content: Content) -> None:
        """Send a prompt under this id. A normal return proves nothing: `look` does."""

    async def stop(self, source: Source) -> bool:
        """End the turn that runs; return whether one ran and was told to end."""

    async def new_session(self, directory: str) -> str:
        """Make a session in this directory; return its id."""

    async def words(self, source: Source) -> str:
        """Return the agent's last words in this session, "" if there are none."""

    async def exclusions(self, source: Source) -> Excludes:
        """Return which files the agent's permissions do not let it read in this session."""

    async def listed(self, since_s: float) -> tuple[Listed, ...]:
        """Return the sessions that run, or were used since then (epoch); no subagent's."""


class HasPrompts(Protocol):
    """A server of an agent, or an agent without one."""

    @property
    def agent(self) -> str:
        """The name of the agent."""

    async def way(self) -> PromptWay:
        """Return the way of prompts to its sessions. Raises AgentAway, AgentRefused."""


class Serving(Protocol):
    """A server of an agent as its own way of prompts needs it."""

    name: str

    @property
    def api(self) -> Api:
        """The connections to it."""

    def origin(self, directory: str) -> Source:
        """Return a Source, without ids, for the sessions in a directory."""

    async def busy(self, directory: str) -> frozenset[str]:
        """Return the ids of the sessions of a directory that are not idle."""


def nothing_excluded(_: str) -> bool:
    """Exclude no file; see `Excludes`."""
    return False


def check_length(patterns: Iterable[str]) -> None:
    """Raise AgentRefused if these patterns, which may be words of a repository, are too long to compare with."""
    if sum(map(len, patterns)) > MOST_CHARACTERS:
        raise AgentRefused("the rules of the permissions are too long", said="there are too many rules to compare with")


def way_name(source: Source) -> str:
    """Return the name of the way to this session: its server, or its agent without one."""
    return source.server or without_server(source.agent)


def without_server(agent: str) -> str:
    """Return the name of the way to the sessions of an agent that have no server; no server has such a name."""
    return f"{agent} without a port"
