"""Two OpenCode 2 as the agents of a world, one of each shape: stand-ins, with the words of the scripted ones.

The one of 7 August is given by hand; the released one is found by its file.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from hermes.sandbox.opencode2.turns import Shape
from tests.faults.faults import CATALOGUE
from tests.faults.world import DIRECTORY, World, created, write_clock
from tests.harness.agents import AgentProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.asks import Json

VERSION: Final = "2"
PASSWORD: Final = "a-password-of-its-own"
KINDS: Final = tuple(kind for kind in CATALOGUE if kind not in {"agent lies", "tools end late", "prompts kept late"})
"""Its "204" is true, a call ends at once with its answer, and a prompt is kept before it is accepted."""
ACTS: Final = {"dispose": "evict"}
ROUTES: Final = {
    "questions": "forms",
    "reject": "cancel",
    "status": "active",
    "all_sessions": "sessions",
    "abort": "interrupt",
}
NAMED: Final = {"bash": "shell"}


class SecondAgent(AgentProcess):
    """A stand-in for OpenCode 2 in a process of its own, given by hand or found by its file."""

    keeps_permissions = True  # only its forms are known to go with their folder

    def __init__(self, shape: Shape, file: Path | None, test_clock: Path) -> None:
        self._is_found = file is not None
        arguments = ["hermes.sandbox.opencode2.server", "--shape", shape, "--directory", DIRECTORY]
        arguments += ["--test-clock", str(test_clock)]
        super().__init__(shape, [*arguments, *(["--file", str(file)] if file else [])])

    def table(self, name: str) -> Json | None:
        """Return its table of the configuration; it has none if it is found by its file."""
        return None if self._is_found else {"name": name, "url": self.url, "password": PASSWORD}

    def do(self, act: str, **wish: Any) -> Any:
        """Do something; what came of it. Raises LookupError where it is impossible."""
        match act:
            case "answer" | "dismiss":
                wish["form_id"] = wish.pop("request_id")
            case "ask_permission":
                wish = _permission(**wish)
            case "fault":
                wish["route"] = ROUTES.get(wish["route"], wish["route"])
            case "away":
                wish["killed"] = True  # out of reach, but not gone: its file stays
        return super().do(ACTS.get(act, act), **wish)


def _permission(kind: str, patterns: list[str], session: str, **more: Any) -> Json:
    change = more.get("metadata")
    given = {"path": change["filepath"], "patch": change["diff"]} if change else {"command": patterns[0]}
    return {
        "action": NAMED.get(kind, kind),
        "resources": patterns,
        "save": more.get("always", []),
        "given": given,
        "session": session,
    }


@contextmanager
def with_opencode2(root: Path, *, fleeting: bool, group: bool) -> Iterator[World]:
    """Set up a world around both."""
    root.mkdir(parents=True, exist_ok=True)
    file = root / "service.json"
    clock_file = write_clock(root)
    agents = {
        "august": SecondAgent("august", None, clock_file),
        "released": SecondAgent("released", file, clock_file),
    }
    tables = {"opencode2": {"file": str(file)}}
    with created(root, fleeting=fleeting, group=group, agents=agents, tables=tables) as world:
        world.kinds = KINDS
        world.routes = ("server", "terminal", "program")
        yield world
