"""`python -m tests.sandbox.opencode2.compare FILE`: how a recorded OpenCode 2 differs from the one that Hermes knows.

FILE is what `hermes doctor --record FILE` wrote. It is compared with the same recording of the stand-in, in the shape
that differs least. A key more is no difference, because Hermes does not read it. Exit status 1: there are differences.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from hermes.agents.opencode2.discovery import Address
from hermes.agents.opencode2.recording import record
from hermes.sandbox.opencode2.server import running_opencode2
from hermes.sandbox.opencode2.turns import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json = dict[str, Any]
QUESTION = {"question": "Which?", "header": "One", "options": [{"label": "A", "description": "a"}]}


async def known(shape: Shape) -> Json:
    """Record the stand-in, which asks a question, leave for a command, and shows the form of an MCP server."""
    with running_opencode2(shape=shape) as agent:
        agent.ask([QUESTION, {**QUESTION, "multiple": True}], say="I ask.")
        agent.ask_permission("shell", ["ls"], given={"command": "ls"}, save=["ls *"])
        metadata = {"kind": "mcp-elicitation", "server": "one", "message": "Who?"}
        agent.form([{"key": "name", "type": "string", "title": "Name"}], session="global", metadata=metadata)
        return await record(Address(agent.url, agent.password))


def differences(recorded: Json, wanted: Json) -> list[str]:
    """Say in one line each what of `wanted` is another way in `recorded`."""
    there = {_without_names(route) for route in recorded["routes"]}
    missing = [route for route in wanted["routes"] if _without_names(route) not in there]
    found = [f"there is no {route}" for route in missing] if there else ["it does not name its routes"]
    if wanted["event"] is not None:
        found += _missing(wanted["event"], recorded["event"], "its first event")
    for answer in recorded["answers"]:
        alike = [one for one in wanted["answers"] if one["route"] == answer["route"]]
        fitting = [one for one in alike if one["status"] == answer["status"]]
        if fitting:
            nearest = min((_of_answer(one, answer) for one in fitting), key=len)
            found += nearest
        elif alike:
            found.append(f"{answer['route']}: {answer['status']} instead of {alike[0]['status']}")
    return list(dict.fromkeys(found))


def _of_answer(wanted: Json, answer: Json) -> list[str]:
    if answer["type"] != wanted["type"]:
        return [f"{answer['route']}: {answer['type'] or 'nothing'} instead of {wanted['type'] or 'nothing'}"]
    return list(_missing(wanted["body"], answer["body"], answer["route"]))


def _missing(wanted: Any, told: Any, where: str) -> Iterator[str]:
    match wanted, told:
        case dict(), dict():
            for key, value in wanted.items():
                if re.match(r"(call|evt|frm|msg|per|ses)_", key):
                    continue
                if key in told:
                    yield from _missing(value, told[key], f"{where}: {key}")
                else:
                    yield f"{where}: {key} is missing"
        case list(), list():
            for one in told if wanted else ():
                yield from min((list(_missing(each, one, where)) for each in wanted), key=len)
        case _ if type(wanted) is not type(told):
            yield f"{where}: {type(told).__name__} instead of {type(wanted).__name__}"
        case str(), str() if where.endswith(": _tag") and wanted != told:
            yield f"{where}: {told} instead of {wanted}"


def _without_names(route: str) -> str:
    return re.sub(r"\{\w+\}", "{}", route)


def main(arguments: Sequence[str]) -> int:
    """Print the differences, and return the exit status."""
    (file,) = arguments
    recorded = json.loads(Path(file).read_text(encoding="utf-8"))
    found = {shape: differences(recorded, asyncio.run(known(shape))) for shape in get_args(Shape)}
    nearest = min(found, key=lambda shape: len(found[shape]))
    sys.stdout.write(
        f"OpenCode {recorded['version']} against the shape {nearest!r}: {len(found[nearest])} differences\n"
    )
    sys.stdout.writelines(f"  {line}\n" for line in found[nearest])
    return 1 if found[nearest] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
