"""Read the sessions, messages and tool calls of an OpenCode 2 server.

Every function raises what `hermes.agents.http.Api` raises, unless its docstring says otherwise.
"""

from __future__ import annotations

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from itertools import dropwhile, takewhile
from typing import Any, Final, TypeVar

from hermes.agents.http import BOOT, Api, path_of
from hermes.agents.opencode2 import adapter, wire
from hermes.agents.opencode2.forms import GLOBAL
from hermes.agents.turns import GOES_ON, Beginnings
from hermes.agents.wire import Data, shaped
from hermes.errors import AgentError, AgentRefused, NotThere
from hermes.model.ask import Ask, Source
from hermes.model.notice import Changes, Turn

_LOG = logging.getLogger(__name__)

T = TypeVar("T")
_LOOKS, _LOOK_S = 5, 0.1
_ANCESTORS: Final = 10
_RECENT: Final = 8
_LAST_WORDS: Final = 3000
_KEPT: Final = 500


def keep(where: OrderedDict[str, T], key: str, value: T) -> None:
    """Remember a value under its key, and forget the first of more than 500."""
    where[key] = value
    while len(where) > _KEPT:
        where.popitem(last=False)


def session_path(session_id: str) -> str:
    """Return the path of a session."""
    return path_of("api", "session", session_id)


def at(directory: str) -> dict[str, str | int]:
    """Return the query of a directory, exactly as the server names it: another spelling is another place there."""
    return {"location[directory]": directory} if directory else {}


@contextlib.contextmanager
def known_routes() -> Iterator[None]:
    """Turn the NotThere of a route that this version does not have into AgentRefused: no `_tag` tells it apart."""
    try:
        yield
    except NotThere as error:
        if error.tag:
            raise
        said = "this version of OpenCode has no such route"
        raise AgentRefused(f"{error}: {said}", said=said) from None


async def get(api: Api, kind: type[Data[T]], path: str, directory: str = "", **params: str | int) -> T:
    """Return the data that the server has about a directory ("": without one)."""
    return (await api.get(kind, path, params=at(directory) | params or None, timeout=BOOT)).data


def sound(sessions: Iterable[object]) -> Iterator[wire.Session]:
    """Yield the sessions of a shape that is known: one odd session hides no other."""
    for one in sessions:
        with contextlib.suppress(ValueError):
            yield shaped(wire.Session, one)


async def newest(api: Api) -> list[wire.Session]:
    """Return the newest fifty sessions of all directories."""
    return [*sound(await get(api, Data[list[Any]], "/api/session"))]


async def loaded(api: Api) -> tuple[str, ...]:
    """Return the directories that the server has loaded, none if it does not tell."""
    with contextlib.suppress(AgentRefused):
        return tuple(one.directory for one in await api.get(list[wire.Located], "/api/debug/location", timeout=BOOT))
    return ()


async def info(api: Api, session_id: str) -> wire.Session:
    """Return a session."""
    return await get(api, Data[wire.Session], session_path(session_id))


async def call(api: Api, source: Source) -> wire.ToolState | None:
    """Return the state of the tool's call that asked; None if the ask names none."""
    if source.message_id is None or source.session_id == GLOBAL:
        return None
    path = session_path(source.session_id) + path_of("message", source.message_id)
    parts = (await get(api, Data[wire.Message], path)).content
    states = [part.state for part in parts if part.id == source.call_id and part.state is not None]
    return states[-1] if states else None


async def context(api: Api, ask: Ask, sleep: Callable[[float], Awaitable[object]]) -> Ask:
    """Return the ask with its session's title, the root session's title, the last words, and its tool's input.

    Raises no AgentError: a fact that cannot be read stays as it was.
    """
    if ask.source.session_id == GLOBAL:
        return replace(ask, source=replace(ask.source, session_title=ask.source.session_title or "MCP"))
    try:
        ask = replace(ask, source=await _titled(api, ask.source))
        ask = replace(ask, source=replace(ask.source, last_text=await last_words(api, ask.source)))
        for _ in range(_LOOKS):
            if ask.permission is None or not ask.permission.partial:
                break
            asking = await call(api, ask.source)
            if asking is not None and asking.status != "streaming":
                ask = adapter.with_input(ask, asking.input)
                break
            await sleep(_LOOK_S)
    except AgentError as error:
        _LOG.info("request %s goes without all of its context: %s", ask.source.request_id, error)
    return ask


async def _titled(api: Api, source: Source) -> Source:
    own = root = await info(api, source.session_id)
    for _ in range(_ANCESTORS):
        if root.parent_id is None:
            break
        root = await info(api, root.parent_id)
    directory = source.directory or own.location.directory
    titled = replace(source, session_title=own.title, directory=directory)
    return titled if root is own else replace(titled, root_title=root.title, root_id=root.id)


async def last_words(api: Api, source: Source) -> str:
    """Return the model's last text: of the message that asked, else of an earlier one."""
    path = f"{session_path(source.session_id)}/message"
    for message in await get(api, Data[list[wire.Message]], path, limit=_RECENT):
        if message.type == "assistant" and (said := _said(message)):
            return said[-_LAST_WORDS:]
    return ""


def _said(message: wire.Message) -> str:
    return "\n\n".join(part.text for part in message.content if part.type == "text").strip()


# --- turns ----------------------------------------------------------------------------------------------------------

_STEPS: Final = 200


async def last_turn(api: Api, session_id: str, source: Source, beginnings: Beginnings) -> Turn | None:
    """Return the last turn of a session if it has ended by itself; None if not, or if the session is a subagent's.

    Each step of the model says how it finished, and which files it changed; the server counts no lines.
    """
    session = await info(api, session_id)
    if session.parent_id is not None:
        return None
    messages = await get(api, Data[list[wire.Message]], f"{session_path(session_id)}/message", limit=_STEPS)
    newest = next((one for one in messages if one.type == "assistant"), None)
    if newest is None or newest.time.completed is None or newest.finish in GOES_ON:
        return None
    if newest.error is not None and newest.error.type == "aborted":
        return None
    before = list(dropwhile(lambda one: one is not newest, messages))
    steps = list(takewhile(lambda one: one.type != "user", before))
    prompt = next((one for one in before if one.type == "user"), None)
    files = {str(file) for one in steps if one.snapshot is not None for file in one.snapshot.files}
    return Turn(
        replace(
            source,
            session_id=session_id,
            session_title=session.title,
            directory=source.directory or session.location.directory,
        ),
        adapter.capabilities.agent_name,
        newest.id,
        beginnings.of(session_id, None if prompt is None else prompt.time.created / 1000),
        newest.time.completed / 1000,
        words="" if newest.error else _said(newest),
        failure=(newest.error.message or newest.error.type) if newest.error else "",
        changes=Changes(len(files)) if files else None,
        prompt_id="" if prompt is None else prompt.id,
    )
