"""Prompts for the sessions of every OpenCode that has Hermes' plugin: a terminal without a port, too.

All OpenCodes of a user share their sessions on the disk, but each knows only of the turns that it runs itself. Two must
never run turns of one session at the same time. So a session belongs to the process that has worked on it last, as long
as that lives, however slow it is. If it has ended, or none has worked on it, the session belongs to the process that
was used last of those that are open in the session's folder. If there is none, nobody can take a prompt for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hermes.agents.http import Api
from hermes.agents.opencode import wire
from hermes.agents.opencode.folder_transport import FolderTransport
from hermes.agents.opencode.prompting import OpenCodePrompts
from hermes.agents.prompting import Excludes, PromptWay
from hermes.errors import AgentAway, AgentError, AgentRefused, NotThere
from hermes.hook import plugin_folders
from hermes.hook.plugin_folders import Plugin
from hermes.model.ask import Source
from hermes.model.card import Listed
from hermes.model.prompt import Content, Sight

_LOG = logging.getLogger(__name__)

CLOSED: Final = "its OpenCode was closed"
UNKNOWN: Final = (
    "no OpenCode that runs takes prompts for it: it was closed, or its plugin is of an older Hermes "
    "(run “hermes install opencode”, then restart OpenCode)"
)
MOST_BYTES: Final = 5 << 20
"""A call of the plugin, and its answer, take 8 MiB at most, and files are a third larger in them."""
TOO_LARGE: Final = "an OpenCode without a port takes files of 5 MB at most"
PATIENCE_S: Final = 3.0
"""An OpenCode that does not answer within this time is left out of a list."""
_SESSIONS: Final = 100


class PluggedServer:
    """An OpenCode with Hermes' plugin, as `OpenCodePrompts` needs it."""

    def __init__(self, plugin: Plugin, origin: Source) -> None:
        self.name = f"process {plugin.pid}"
        self.api = Api(self.name, "http://plugin", transport=FolderTransport(plugin.folder))
        self._plugin = plugin
        self._origin = origin

    def origin(self, directory: str) -> Source:
        return replace(self._origin, directory=directory)

    async def updated(self, since_ms: float) -> list[wire.Session]:
        """Return the sessions of the directories that are open there, and were updated since then, newest first."""
        found: dict[str, wire.Session] = {}
        for directory in self._plugin.directories:
            listed = await self.api.get(list[wire.Session], "/session", directory, params={"limit": _SESSIONS})
            found |= {one.id: one for one in listed if one.directory in self._plugin.directories}
        recent = [one for one in found.values() if one.time.updated >= since_ms]
        return sorted(recent, key=lambda one: one.time.updated, reverse=True)

    async def busy(self, directory: str) -> frozenset[str]:
        return frozenset(await self.api.get(dict[str, wire.Status], "/session/status", directory))


class PluginPrompts:
    """The way of prompts to sessions that have no server; see `PromptWay`. `root` is the folder of the store."""

    def __init__(self, root: Path, *, agent: str, machine: str, host: str = "", patience_s: float = PATIENCE_S) -> None:
        self.agent = agent
        self._root = root
        self._origin = Source(agent, machine, session_id="", host=host)
        self._patience_s = patience_s

    async def way(self) -> PromptWay:
        return self

    async def look(self, source: Source, record_id: str) -> Sight:
        known = plugin_folders.plugins(self._root)
        owner = owner_of(source.session_id, source.directory, known)
        if owner is None:
            has_ended = {one.is_alive for one in known if source.session_id in one.sessions} == {False}
            return Sight("gone", reason=_why(source.session_id, known), is_own=has_ended)
        sight = await self._to(owner).look(source, record_id)
        return replace(sight, is_own=source.session_id in owner.sessions)

    async def check(self, source: Source, content: Content) -> None:
        """Raise AgentRefused if there is no such command or agent, or the files are too large for the plugin.

        The abilities of its model are unknown here.
        """
        if sum(len(file.data) for file in content.files) > MOST_BYTES:
            raise AgentRefused("files too large for the plugin", said=TOO_LARGE)
        await self._way(source).check(source, replace(content, files=()))

    async def send(self, source: Source, record_id: str, content: Content) -> None:
        await self._way(source).send(source, record_id, content)

    async def stop(self, source: Source) -> bool:
        return await self._way(source).stop(source)

    async def new_session(self, directory: str) -> str:
        return await self._way(replace(self._origin, directory=directory)).new_session(directory)

    async def words(self, source: Source) -> str:
        return await self._way(source).words(source)

    async def exclusions(self, source: Source) -> Excludes:
        return await self._way(source).exclusions(source)

    async def listed(self, since_s: float) -> tuple[Listed, ...]:
        known = plugin_folders.plugins(self._root)
        alive = [one for one in known if one.is_alive]
        answers = await asyncio.gather(*(self._listed(plugin, known, since_s) for plugin in alive))
        found = [listed for listed in answers if listed is not None]
        if alive and not found:
            raise AgentAway("no OpenCode with Hermes' plugin answers")
        return tuple(one for listed in found for one in listed)

    async def _listed(self, plugin: Plugin, known: Sequence[Plugin], since_s: float) -> list[Listed] | None:
        """Return the sessions that belong to this plugin, None if it does not answer."""
        try:
            async with asyncio.timeout(self._patience_s):
                found = await self._to(plugin).listed(since_s)
        except (AgentError, TimeoutError) as error:
            _LOG.info("the sessions of OpenCode, process %d, are not listed: %s", plugin.pid, error)
            return None
        own = plugin.sessions.keys()
        marked = [replace(one, is_own=one.target.source.session_id in own) for one in found]
        sources = ((one, one.target.source) for one in marked)
        return [one for one, source in sources if owner_of(source.session_id, source.directory, known) == plugin]

    def _way(self, source: Source) -> OpenCodePrompts:
        """Return the way to the owner of this session. Raises NotThere: there is none."""
        known = plugin_folders.plugins(self._root)
        owner = owner_of(source.session_id, source.directory, known)
        if owner is None:
            raise NotThere("no OpenCode with Hermes' plugin has this session", said=_why(source.session_id, known))
        return self._to(owner)

    def _to(self, plugin: Plugin) -> OpenCodePrompts:
        return OpenCodePrompts(PluggedServer(plugin, self._origin))


def owner_of(session_id: str, directory: str, known: Sequence[Plugin]) -> Plugin | None:
    """Return the live plugin that this session belongs to, None if there is none. `session_id` is "" for a new one."""
    here = [one for one in known if one.is_alive and directory in one.directories]
    return max(here, key=lambda one: (one.sessions.get(session_id, 0.0), one.used_ms, one.folder), default=None)


def _why(session_id: str, known: Sequence[Plugin]) -> str:
    return CLOSED if any(session_id in one.sessions for one in known) else UNKNOWN
