"""The rooms of the house: which module may import which, and what stays pure."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

CONNECTED = ("opencode", "claude_code", "oh_my_pi", "neovate")

# A module imports only what stands above it; a folder's modules may import its face, and the face its own.
ROWS = (
    *("errors", "disk", "spool", "model", "dialog", "routing", "permitting"),
    *("agents", "agents.shapes", "agents.questions", "agents.generic"),
    *("agents.claude_code", "agents.oh_my_pi", "agents.neovate"),
    *("agents.opencode", "agents.opencode.permissions", "agents.opencode.adapter", "agents.opencode.matching"),
    *("agents.opencode.proof", "agents.opencode.wire", "agents.opencode.living", "agents.opencode.sessions"),
    *("agents.opencode.api", "agents.opencode.client", "agents.opencode.events"),
    *("chat", "chat.text", "chat.buttons", "chat.screen", "chat.deed", "chat.page", "chat.review", "chat.sides"),
    *("chat.ending", "chat.words", "chat.render"),
    *("chat.access", "chat.bot", "chat.poll", "chat.outbox"),
    *("clock", "settings", "config", "logs", "archive", "holding", "codec", "store", "book", "room", "steps"),
    *("memory", "expiry", "timekeeper", "intake", "row", "posting", "delivery", "commands"),
    *("supervisor", "monitor", "phone_side", "connection", "agent_side", "waiting", "hook", "listener"),
    *(
        "asking",
        "placing",
        *(f"agents.{name}.connect" for name in CONNECTED),
        "service",
        "install",
        "status",
        "status_view",
        "history",
        "history_view",
    ),
    *("demo", "doctor", "setup", "ask", "cli", "__main__"),
)
CHAT_WORDS = ("text", "buttons", "screen", "deed", "page", "review", "sides", "ending", "words", "render")
PURE = (
    "dialog",
    "permitting",
    "routing",
    *(f"chat.{name}" for name in CHAT_WORDS),
    "agents.*.adapter",
    "agents.shapes",
    "agents.questions",
    "agents.*.permissions",
    "agents.*.matching",
    "agents.*.living",
    "ask.typed",
)
IMPURE = {"asyncio", "os", "time", "logging", "httpx", "telegram", "pydantic", "filelock"}
STANDARD_ALONE = {
    "disk": {"errors"},
    "spool": {"disk"},
    "waiting": {"disk", "spool"},
    "hook": {"disk", "spool", "waiting"},
    "errors": None,
    "model": None,
}

FILES = sorted((ROOT / "hermes").rglob("*.py"))


def name_of(file: Path) -> str:
    """`agents.opencode.client` for its file; "" for the face of the whole house."""
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


def row(name: str) -> int:
    """The place in ROWS of the module, or of the folder that it is in."""
    while name and name not in ROWS:
        name = name.rpartition(".")[0]
    assert name, "every module has a row"
    return ROWS.index(name)


def may_import(name: str, other: str) -> bool:
    """Whether the order lets `name` import `other` (both without "hermes.")."""
    if other in ("hermes", "") or name.startswith(f"{other}.") or other.startswith(f"{name}."):
        return True
    return row(other) < row(name) or (row(other) == row(name) and ROWS[row(name)] not in (name, other))


def trespasses(name: str, source: str) -> list[str]:
    """What this source, as module `name`, imports and must not."""
    found = imports(source)
    ours = {each.removeprefix("hermes.") for each in found if each.partition(".")[0] == "hermes"}
    foreign = {each.partition(".")[0] for each in found} - {"hermes"}
    wrong = {other for other in ours if not may_import(name, other)}
    if any(Path(name.replace(".", "/")).match(pure.replace(".", "/")) for pure in PURE):
        wrong |= foreign & IMPURE
    if name in STANDARD_ALONE:
        allowed = STANDARD_ALONE[name]
        wrong |= foreign - sys.stdlib_module_names
        wrong |= set() if allowed is None else ours - allowed
    return sorted(wrong)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_module_imports_only_what_stands_above_it(file: Path) -> None:
    """The order of the rooms, the purity of the decisions, the hook on the standard library alone."""
    if name := name_of(file):
        assert row(name) >= 0
        assert trespasses(name, file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("name", "source", "wrong"),
    [
        ("model", "from hermes.dialog import step", ["dialog"]),
        ("dialog", "import hermes.model, re, os.path", ["os"]),
        ("agents.opencode.adapter", "def late():\n    from time import monotonic", ["time"]),
        ("agents.opencode.client", "import httpx, hermes.agents, hermes.agents.opencode.adapter", []),
        ("agents.opencode.adapter", "import hermes.agents.opencode.client", ["agents.opencode.client"]),
        ("agents", "import hermes.agents.opencode.adapter", []),
        ("agents", "import hermes.chat.render", ["chat.render"]),
        ("spool", "import hermes.errors, filelock", ["errors", "filelock"]),
        ("hook", "import json, hermes.spool, hermes.model", ["model"]),
        ("demo.phone", "import hermes.demo.bot_api, hermes.cli", ["cli"]),
    ],
)
def test_a_trespass_is_seen(name: str, source: str, wrong: list[str]) -> None:
    """The test above can fail."""
    assert trespasses(name, source) == wrong
