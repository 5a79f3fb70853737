"""The floors of the house: a folder imports only from a lower floor, and what is pure stays pure."""

import ast
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FLOORS = (
    {"errors", "disk", "clock", "model", "hook"},
    {"core", "storage"},
    {"agents", "chat", "config", "sandbox"},
    {"listener"},
    {"commands"},
)
"""From the ground up. A room imports from lower floors, and from itself; on the ground floor each stands alone."""
NEIGHBOURS = {"hook": {"disk"}, "disk": {"errors"}}
"""What may be imported on the same floor: the hook shares one writer with the store, which has errors of its own."""
SIDES = ("listener.phone", "listener.agent")
"""They meet only in `listener.entries`."""
PURE = ("core.*", "model.*", "chat.screens.*", "agents.fields", "agents.questions", "commands.ask.typed")
PURE_IN_AGENTS = ("agents.*.adapter", "agents.*.permissions", "agents.opencode.events", "agents.opencode.stream_memory")
IMPURE = {"asyncio", "os", "time", "logging", "httpx", "telegram", "pydantic", "filelock"}
STANDARD_LIBRARY_ALONE = ("errors", "disk", "model.*", "hook.*", "agents.*.shape")
"""The hook loads the `shape` of its agent, by its name, and nothing else of another room but the writer."""

LONGEST = 400
"""Lines of a module."""
DATABASE = "psycopg"
"""Only people who have several machines have it, so only their store may load it."""

FILES = sorted((ROOT / "hermes").rglob("*.py"))


def name_of(file: Path) -> str:
    """`agents.opencode.client` for its file; "" for the package itself."""
    return ".".join(file.relative_to(ROOT / "hermes").with_suffix("").parts).removesuffix("__init__").strip(".")


NAMES = {name_of(file) for file in FILES}


def imports(source: str) -> set[str]:
    """Full names of all that is imported anywhere in it, `hermes.x` for modules of the house."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in inner if name.removeprefix("hermes.") in NAMES}
            found |= modules | ({str(node.module)} if modules != inner else set())
    return found


def floor(room: str) -> int:
    """The number of the floor that a room is on, from 0."""
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def may_import(name: str, other: str) -> bool:
    """Whether the floors let module `name` import module `other` (both without "hermes.")."""
    room, other_room = name.partition(".")[0], other.partition(".")[0]
    if room == "__main__" or other in ("hermes", ""):
        return True
    if room == other_room:
        return not any(name.startswith(one) and other.startswith(two) for one in SIDES for two in SIDES if one != two)
    return floor(other_room) < floor(room) or other_room in NEIGHBOURS.get(room, ())


def is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns (`chat.screens.*`) names this module."""
    return any(Path(name.replace(".", "/")).match(pattern.replace(".", "/")) for pattern in patterns)


def trespasses(name: str, source: str) -> list[str]:
    """What this source, as module `name`, imports and must not."""
    found = imports(source)
    ours = {each.removeprefix("hermes.") for each in found if each.partition(".")[0] == "hermes"}
    foreign = {each.partition(".")[0] for each in found} - {"hermes"}
    wrong = {other for other in ours if not may_import(name, other)}
    if is_one_of(name, PURE + PURE_IN_AGENTS):
        wrong |= foreign & IMPURE
    if not name.startswith("storage.postgres"):
        wrong |= foreign & {DATABASE}
    if is_one_of(name, STANDARD_LIBRARY_ALONE):
        wrong |= foreign - sys.stdlib_module_names
    return sorted(wrong)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_room_imports_only_from_lower_floors(file: Path) -> None:
    """The two sides of the listener stay apart; decisions are pure; the hook has the standard library alone."""
    if name := name_of(file):
        assert trespasses(name, file.read_text(encoding="utf-8")) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even for a type alone: the error names the circle."""
    ours = {name_of(file): imports(file.read_text(encoding="utf-8")) for file in FILES}
    below = {name: {other.removeprefix("hermes.") for other in found} & NAMES for name, found in ours.items()}
    TopologicalSorter(below).prepare()


def test_no_module_is_long() -> None:
    """What outgrows that is two rooms."""
    lengths = {name_of(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert not {name: length for name, length in lengths.items() if length > LONGEST}


@pytest.mark.parametrize(
    ("name", "source", "wrong"),
    [
        ("model.ask", "from hermes.core.dialog import step", ["core.dialog"]),
        ("core.dialog", "import hermes.model.ask, re, os.path", ["os"]),
        ("agents.opencode.adapter", "def late():\n    from time import monotonic", ["time"]),
        ("agents.opencode.client", "import httpx, hermes.agents.registry, hermes.storage.store", []),
        ("agents.registry", "import hermes.chat.outbox", ["chat.outbox"]),
        ("chat.outbox", "import hermes.config.settings", ["config.settings"]),
        ("hook.spool", "import hermes.disk, filelock", ["filelock"]),
        ("hook.run", "import json, hermes.hook.spool, hermes.model.ask", ["model.ask"]),
        ("storage.store", "import hermes.core.dialog", ["core.dialog"]),
        ("storage.files", "from psycopg import sql", ["psycopg"]),
        ("storage.postgres.feed", "from psycopg import sql", []),
        ("sandbox.phone", "import hermes.commands.cli", ["commands.cli"]),
        ("listener.agent.errands", "import hermes.listener.phone.polling", ["listener.phone.polling"]),
        ("listener.agent.errands", "import hermes.listener.entries, hermes.listener.agent.hooks", []),
    ],
)
def test_a_trespass_is_seen(name: str, source: str, wrong: list[str]) -> None:
    """The test above can fail."""
    assert trespasses(name, source) == wrong


ENDS = {"Ended": {"core.ends"}, "Delivered": {"core.ends"}, "Failed": {"core.errand"}, "Matched": {"core.errand"}}
"""The events of the agent's side, and the module that alone makes each: nobody else decides that an ask has ended."""


@pytest.mark.parametrize("event", ENDS)
def test_the_errand_alone_decides_what_the_agent_did(event: str) -> None:
    """All others are told by it."""
    makers = {name_of(file) for file in FILES if event in calls(file)}
    assert makers == ENDS[event]


@cache
def calls(file: Path) -> set[str]:
    """The names that are called in it; the patterns of a `match` call nothing."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in found if isinstance(node, ast.Name)}
