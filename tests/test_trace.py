"""What runs, seen by tracing: the modules that one question enters on its way, and who of them calls whom.

A question of the server route comes from the agent's server, one of the hook route from a hook that waits. Both are
traced in the listener alone, from the ask to the confirmed reply, with a clock that stands. A call through a library or
the standard library is a call of the module that reached it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hermes
from tests.agents.speaking import CLAUDE_CODE, SINGLE
from tests.listening import House, house, question, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

# Nothing but the question is traced: no looks for a server of another agent.
ALONE = {"opencode2": {"enabled": False}}
home = house("new", started=True, sections=ALONE)
alone = house(started=True, sections=ALONE)
ROOT = str(Path(hermes.__file__).parent) + "/"
SANDBOX = ROOT + "sandbox/"

MODULES = {"server": 72, "hook": 56}
"""At most so many modules of Hermes are entered. The goal is 30; a server can be of two versions, which costs three,
seven look at what the turn came to that ends with the answer, four at the prompts that may wait for its session, one at
the topic in which it is posted, one at what cannot be seen in its texts, and the ask itself tells its session.
"""
CIRCLE = {"server": 4, "hook": 4}
"""At most so many modules call each other in a circle: the steps, the entries, and the store, which calls the pure
change that a step hands it."""


class Trace:
    """The modules that were entered, and for each the modules that it called.

    `aside` are functions that do the regular work: whether they run meanwhile depends on the speed of the machine, so
    all that they call is left out. `keep_time` is always one of them.
    """

    def __init__(self, *aside: str) -> None:
        self.entered: set[str] = set()
        self._aside = {"keep_time", *aside}
        self.calls: defaultdict[str, set[str]] = defaultdict(set)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Trace this thread in the block."""
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        called = _module(frame) if event == "call" else ""
        if not called or self._is_aside(frame):
            return
        self.entered.add(called)
        above = frame.f_back
        while above is not None and not _module(above):
            above = above.f_back
        if above is not None and _module(above) != called:
            self.calls[_module(above)].add(called)

    def _is_aside(self, frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code.co_name not in self._aside:
            frame = frame.f_back
        return frame is not None


def _module(frame: FrameType) -> str:
    """`core.errand` for code of that module, "" for code that is not Hermes' own."""
    place = frame.f_code.co_filename
    if not place.startswith(ROOT) or place.startswith(SANDBOX):
        return ""
    return place.removeprefix(ROOT).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def reached(calls: Mapping[str, set[str]], start: str) -> set[str]:
    """All that is called from there, at any distance."""
    found: set[str] = set()
    todo = [start]
    while todo:
        new = calls.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def largest_circle(calls: Mapping[str, set[str]]) -> set[str]:
    """The most modules of which each calls every other one, at any distance."""
    below = {name: reached(calls, name) for name in calls}
    circles = [{other for other in below[name] if name in below.get(other, ())} for name in calls]
    return max(circles, key=len, default=set())


def judge(trace: Trace, route: str) -> None:
    """Compare with the bounds; what is wrong is listed whole."""
    circle = largest_circle(trace.calls)
    inner = sorted(f"{name} > {other}" for name in circle for other in trace.calls[name] & circle)
    assert len(trace.entered) <= MODULES[route], f"{route}: {len(trace.entered)} modules: {sorted(trace.entered)}"
    assert len(circle) <= CIRCLE[route], f"{route}: a circle of {len(circle)}: {sorted(circle)}; {inner}"


async def test_a_question_of_a_server_enters_few_modules(home: House) -> None:
    """It comes as an event, is posted, answered by a tap, sent, and confirmed by the agent's own record."""
    trace = Trace("read_inbox")
    # An ask that comes while the listener still reads the list is taken in twice, and merged.
    await until(lambda: home.listener._parts.agent.followers[0].is_connected, "the end of the list")
    await introduced()
    with home.clock.standing(), trace.running():
        home.agent.ask([question()])
        shown = await home.person.sees("Which database?", buttons=True)
        await home.noted(shown)  # a tap before that is taken in another way
        home.person.tap(shown, "SQLite")
        await home.closed()
    assert len(home.agent.effects) == 1
    judge(trace, "server")


async def test_a_question_of_a_hook_enters_few_modules(alone: House) -> None:
    """It comes through the inbox, is posted, answered by a tap, laid ready, taken, and reported by another hook."""
    payload = CLAUDE_CODE.ask([dict(SINGLE)])
    trace = Trace()
    await introduced()
    with alone.clock.standing(), trace.running():
        waiting = await hook(alone, payload)
        assert waiting.stdout is not None
        shown = await alone.person.sees("Which database?", buttons=True)
        await alone.noted(shown)
        alone.person.tap(shown, "SQLite")
        line = (await waiting.stdout.readline()).decode()
        assert CLAUDE_CODE.took(payload, line) == [["SQLite"]]
        (told,) = CLAUDE_CODE.tells(payload, [["SQLite"]])
        await (await hook(alone, told)).communicate()
        await alone.closed()
    await waiting.communicate()
    judge(trace, "hook")


async def introduced() -> None:
    """Wait until the listener has registered its commands with Telegram, which is no part of a question's way."""
    await until(lambda: all("introduce" not in repr(task.get_coro()) for task in asyncio.all_tasks()), "the commands")


async def hook(home: House, payload: Any) -> asyncio.subprocess.Process:
    """Start a hook of Claude Code, and hand this over."""
    places = ["--store", str(home.store), "--log", str(home.root / "log"), "--config", str(home.root / "config.toml")]
    command = [sys.executable, "-I", "-m", "hermes", "hook", CLAUDE_CODE.name, *places]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    process.stdin.write(json.dumps(payload).encode() + b"\n")
    process.stdin.close()
    return process


def test_the_largest_circle_is_found() -> None:
    """Calls in one direction alone make none."""
    calls = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}
    assert largest_circle(calls) == {"a", "b", "c"}
    assert largest_circle({"a": {"b", "c"}, "b": {"c"}}) == set()
