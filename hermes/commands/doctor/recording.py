"""`--record`: write down how the OpenCode 2 of this user answers, so that a version that nobody ran can be compared."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hermes import disk
from hermes.agents.opencode2 import discovery, recording
from hermes.config import reading as configuration
from hermes.errors import HermesError

_OK: Final = 200


def record(path: Path | None, file: Path, *, environ: Mapping[str, str]) -> str:
    """Write the recording to a new `file`, and return what was done, in words.

    Raises HermesError: no OpenCode 2 runs or answers, the file is there already, or it cannot be written.
    """
    if disk.is_there(file):
        raise HermesError(f"{file} is there already; name a new file")
    found = configuration.load(path, environ=environ).opencode2.file
    told = asyncio.run(recording.record(discovery.read(found)))
    with disk.saving(file.absolute().parent):
        disk.write(file.absolute(), f"{json.dumps(told, indent=1)}\n".encode())
    seen = f"Wrote {len(told['answers'])} answers of OpenCode {told['version']} to {file}."
    left_out = "Texts, names, paths, numbers and the password are left out; have a look before you pass it on."
    asked = {one["route"] for one in told["answers"] if one["status"] == _OK}
    has_ask = any(route.endswith(("/form/ID", "/permission/ID")) for route in asked)
    hint = "" if has_ask else " No question was open; it tells more while OpenCode asks one."
    return f"{seen} {left_out}{hint}"
