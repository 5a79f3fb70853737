"""Steps run until nothing is left to do, one run an entry, and come again after a growing pause."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from hermes.errors import AgentAway, ChatAway, ChatRefused, NotSaved
from hermes.listener import workers as steps_module
from hermes.listener.wakes import Wakes
from hermes.listener.workers import FIRST_PAUSE_S, LONGEST_PAUSE_S, Steps
from tests.listening import until


class Scripted:
    """A step that does what it was told, one thing a call, and is done when nothing is left."""

    def __init__(self, *behaviours: float | Exception | None) -> None:
        self.left = list(behaviours)
        self.calls: list[str] = []
        self.at_s: list[float] = []

    async def __call__(self, entry_id: str) -> float | None:
        self.calls.append(entry_id)
        self.at_s.append(asyncio.get_running_loop().time())
        behaviour = self.left.pop(0) if self.left else None
        if isinstance(behaviour, Exception):
            raise behaviour
        return behaviour


async def run(step: Scripted) -> None:
    """Kick the step once and wait until it is done."""
    steps = Steps({"phone": step}, Wakes())
    steps.kick("phone", "e1")
    assert steps.busy
    await steps.idle(20)
    assert not steps.busy


async def test_a_step_is_called_until_it_is_done() -> None:
    """At once where it says 0, later where it says so."""
    step = Scripted(0.0, 0.05, None, 7.0)
    await run(step)
    assert step.calls == ["e1"] * 3
    assert step.at_s[2] - step.at_s[1] >= 0.05


async def test_a_kick_ends_a_pause_and_none_is_lost() -> None:
    """One during a run makes it look once more; one in a pause makes it look now."""
    under_way, go_on = asyncio.Event(), asyncio.Event()
    calls = 0

    async def step(_: str) -> float | None:
        nonlocal calls
        calls += 1
        under_way.set()
        await go_on.wait()
        return 60.0 if calls == 2 else None

    steps = Steps({"phone": step}, Wakes())
    steps.kick("phone", "e1")
    await under_way.wait()
    steps.kick("phone", "e1")
    go_on.set()
    await until(lambda: calls == 2, "the second look")
    steps.kick("phone", "e1")
    await steps.idle(20)
    assert calls == 3


async def test_entries_do_not_wait_for_each_other() -> None:
    """One that hangs holds up nobody else; giving up waiting is no error."""
    seen: list[str] = []

    async def step(entry_id: str) -> float | None:
        if entry_id == "stuck":
            await asyncio.Event().wait()
        seen.append(entry_id)
        return None

    steps = Steps({"phone": step}, Wakes())
    for entry_id in ("stuck", "e1", "e2"):
        steps.kick("phone", entry_id)
    await until(lambda: seen == ["e1", "e2"], "the steps of the others")
    await steps.idle(0.05)
    assert steps.busy
    await steps.close()
    steps.kick("phone", "e3")
    await steps.idle(20)
    assert seen == ["e1", "e2"], "nothing begins after the end"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each pause was meant to be; how long it was depends on the machine, too."""
    noted: list[float] = []
    paused = steps_module._pause

    async def pause(kicked: asyncio.Event, pause_s: float) -> None:
        noted.append(pause_s)
        await paused(kicked, pause_s)

    monkeypatch.setattr(steps_module, "_pause", pause)
    return noted


async def test_pauses_grow_with_each_error_and_start_anew(
    pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """0.3 s, 0.6 s; an outage is one line in the log, whatever its length."""
    away = AgentAway("nobody answers")
    step = Scripted(away, away, 0.0, away)
    await run(step)
    gaps = [after - before for before, after in zip(step.at_s, step.at_s[1:], strict=False)]
    assert pauses == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 0.0, FIRST_PAUSE_S]
    assert all(gap >= pause_s for gap, pause_s in zip(gaps, pauses, strict=True))
    assert caplog.text.count("nobody answers") == 2


async def test_a_full_disk_is_said_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """It is no outage of somebody else: somebody here has to do something."""
    await run(Scripted(NotSaved("the disk is full"), NotSaved("the disk is full")))
    assert caplog.text.count("the disk is full") == 2


async def test_telegrams_own_pause_is_obeyed(pauses: list[float]) -> None:
    """Shorter or longer than ours."""
    step = Scripted(ChatAway("slow down", retry_after_s=0.05))
    await run(step)
    assert pauses == [0.05]
    assert step.at_s[1] - step.at_s[0] >= 0.05


async def test_what_will_not_pass_by_itself_is_tried_rarely() -> None:
    """A refusal waits as long as any pause is; a kick is what ends it."""
    step = Scripted(ChatRefused("forbidden", blocked=True))
    steps = Steps({"phone": step}, Wakes())
    steps.kick("phone", "e1")
    await steps.idle(4 * FIRST_PAUSE_S)
    assert step.calls == ["e1"]
    assert LONGEST_PAUSE_S > 4 * FIRST_PAUSE_S
    steps.kick("phone", "e1")
    await steps.idle(20)
    assert len(step.calls) == 2


async def test_a_defect_in_one_step_stops_no_other(pauses: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """Logged with its traceback, and tried again after a longer pause."""
    odd, fine = Scripted(ZeroDivisionError("a defect")), Scripted(None)
    steps = Steps({"phone": odd, "errand": fine}, Wakes())
    steps.kick("phone", "e1")
    steps.kick("errand", "e1")
    await until(lambda: fine.calls and pauses, "both steps")
    assert pauses == [16 * FIRST_PAUSE_S]
    assert "ZeroDivisionError: a defect" in caplog.text
    steps.kick("phone", "e1")
    await steps.idle(20)
    assert len(odd.calls) == 2


async def test_other_work_is_done_between_the_steps_of_many_entries() -> None:
    """A hundred entries that are kicked at once hold nobody else up for longer than one step takes."""
    done: list[str] = []

    async def step(entry_id: str) -> None:
        done.append(entry_id)

    async def other() -> None:
        while len(done) < 300:
            done.append("other")
            await asyncio.sleep(0)

    steps = Steps({"phone": step}, Wakes())
    for number in range(100):
        steps.kick("phone", str(number))
    await asyncio.gather(other(), steps.idle(60))
    assert sum(one != "other" for one in done) == 100
    assert all("other" in pair for pair in pairwise(done))


async def test_entries_that_wait_to_be_looked_at_count_as_work() -> None:
    """Whoever waits for the end of all work waits for them, too."""
    wakes, step = Wakes(), Scripted()
    steps = Steps({"phone": step}, wakes)
    wakes.put("e1")
    wakes.put("e1")
    assert steps.busy

    async def read() -> None:
        for wake in await wakes.take():
            steps.kick("phone", wake.entry_id)

    await asyncio.gather(steps.idle(20), read())
    assert step.calls == ["e1"]
    assert not steps.busy


async def test_a_step_that_pauses_ends_with_the_listener() -> None:
    """At once, and it is not called again; one under way has a moment to note what it has done."""
    pausing, under_way, noted = Scripted(30.0), asyncio.Event(), []

    async def working(_: str) -> None:
        under_way.set()
        await asyncio.sleep(0)
        noted.append("a message")

    steps = Steps({"phone": pausing, "notice": working}, Wakes())
    steps.kick("phone", "e1")
    await until(lambda: bool(pausing.calls), "a pause")
    steps.kick("notice", "n1")
    await under_way.wait()
    await steps.close()
    assert pausing.calls == ["e1"]
    assert noted == ["a message"]


async def test_without_a_grace_a_step_writes_nothing_more() -> None:
    """Its request is answered in the very moment in which the store is lost."""
    under_way, answered, written = asyncio.Event(), asyncio.Event(), []

    async def step(_: str) -> None:
        under_way.set()
        await answered.wait()
        written.append("a note")

    steps = Steps({"phone": step}, Wakes())
    steps.kick("phone", "e1")
    await under_way.wait()
    answered.set()
    await steps.close(grace_s=0.0)
    assert not written
