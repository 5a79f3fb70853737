"""The questions of the v2 engine in OpenCode 1.18.33: Hermes reads them, and only its terminal can answer them."""

from __future__ import annotations

from typing import Any

from hermes.agents.http import Api, path_of
from hermes.agents.opencode import proof, wire
from hermes.agents.opencode.proof import Evidence, ToolPart
from hermes.agents.wire import Data
from hermes.errors import NotThere
from hermes.model.answer import Response
from hermes.model.ask import Source
from hermes.model.verdicts import Dead, StillOpen, Unproven, Verdict


async def verdict(api: Api, source: Source, heard: Response | None) -> Verdict:
    """Return the state of an ask, of which the event stream has told this reply. Raises what `Api.get` raises."""
    ours = source.server == api.name
    session = path_of("api", "session", source.session_id)
    try:
        pending = await api.get(Data[list[Any]], f"{session}/question", source.directory)
        if any(isinstance(one, dict) and one.get("id") == source.request_id for one in pending.data):
            return StillOpen()
        part = await _tool(api, session, source)
    except NotThere:
        return Dead() if ours else Unproven()
    found = proof.judge(Evidence(listed=False, ours=ours, busy=False, part=part, heard=heard))
    return Unproven() if isinstance(found, proof.Settling) else found


async def _tool(api: Api, session: str, source: Source) -> ToolPart | None:
    if source.message_id is None:
        return None
    path = session + path_of("message", source.message_id)
    content = (await api.get(Data[wire.V2Content], path, source.directory)).data.content
    states = [(one.name, one.state) for one in content if one.id == source.call_id and one.state]
    return proof.read_part(*states[-1]) if states else None
