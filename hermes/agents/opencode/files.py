"""The files of a prompt as OpenCode takes them, and what it tells of its models about files.

A text goes as a text part: 1.1.53 puts nonsense before the text of a file part, and 1.18.33 gives the model the same
words as for a text part. If a model takes no pictures, OpenCode sends it an error in place of each, and says nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from hermes.agents.http import BOOT, Api
from hermes.agents.opencode import wire
from hermes.model.files import Attachment

_TEXT: Final = "text/"
_WORDS: Final = {"image": "pictures", "pdf": "PDFs"}


def part_of(file: Attachment) -> dict[str, Any]:
    """Return the part of a prompt for this file."""
    if file.mime.startswith(_TEXT):
        return {"type": "text", "text": f"{file.name}:\n\n{file.data.decode(errors='replace')}"}
    data = base64.b64encode(file.data).decode("ascii")
    return {"type": "file", "mime": file.mime, "filename": file.name, "url": f"data:{file.mime};base64,{data}"}


async def objection(
    api: Api, attached: Sequence[Attachment], messages: Sequence[wire.TurnMessage], directory: str
) -> str:
    """Return why the model that works on a session does not take these files, "" if nothing is known against it.

    It is the model of the newest prompt among `messages`, else the one of the configuration. Raises AgentError.
    """
    wanted = {_input(file) for file in attached} - {"text"}
    if not wanted:
        return ""
    provider_id, model_id = await _model(api, messages, directory)
    listed = await api.get(wire.Providers, "/config/providers", directory, timeout=BOOT)
    model = next((one.models.get(model_id) for one in listed.providers if one.id == provider_id), None)
    takes = model.capabilities.input if model is not None and model.capabilities is not None else None
    lacks = [word for kind, word in _WORDS.items() if kind in wanted and (takes or {}).get(kind) is False]
    named = model.name if model is not None and model.name else model_id
    return f"the model {named} takes no {' and no '.join(lacks)}" if lacks else ""


async def _model(api: Api, messages: Sequence[wire.TurnMessage], directory: str) -> tuple[str, str]:
    """Return the ids of a provider and its model, which take the next prompt."""
    infos = sorted((one.info for one in messages), key=lambda info: info.time.created, reverse=True)
    chosen = next((info.model for info in infos if info.model is not None), None)
    if chosen is not None:
        return chosen.provider_id, chosen.model_id
    config = await api.get(wire.Config, "/config", directory, timeout=BOOT)
    provider_id, _, model_id = (config.model or "").partition("/")
    return provider_id, model_id


def _input(file: Attachment) -> str:
    """Return the name of what the model must take for this file."""
    if file.mime.startswith("image/"):
        return "image"
    return "text" if file.mime.startswith(_TEXT) else "pdf"
