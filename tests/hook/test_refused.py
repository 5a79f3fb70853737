"""Nothing can come of an ask: whoever waits learns it within seconds, and nothing is started again and again."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from hermes.hook import refusal, spool, wait as waiter
from tests.agents.speaking import CLAUDE_CODE, GENERIC, OH_MY_PI, SINGLE, SPEAKING, Speaking
from tests.harness.folders import remove
from tests.harness.processes import until
from tests.hook.test_run import WAIT, Desk, Lonely, line, lonely, standard_input, watch
from tests.listening import House, house

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.agents.speaking import Json
    from tests.harness.postgres import Database

__all__ = ["lonely"]  # a fixture
Process = subprocess.Popen[bytes]
home = house()
TOKEN = f"123456789:{'A' * 35}"
REMOVED, BROKEN, WITHOUT_TOKEN = None, "[telegram\n", "[telegram]\nchat_id = 5\nusers = [5]\n"
WHOLE = f'[telegram]\ntoken = "{TOKEN}"\nchat_id = 5\nusers = [5]\napi_base = "http://127.0.0.1:9"\n'
HEADLESS = {"hook_event_name": "PreToolUse"}


@contextmanager
def hooked(
    desk: Desk, agent: Speaking, payload: Json | None = None, before: Callable[[Process], None] = lambda _: None
) -> Iterator[Process]:
    """A hook of this agent that asks; the agent is alive until the end of the block.

    `before` is done with it before it is told what to ask.
    """
    command = [str(desk.python), "-I", "-m", "hermes", "hook", agent.name, *desk.arguments, *agent.options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        before(process)
        assert process.stdin is not None
        process.stdin.write(line(payload or agent.ask([dict(SINGLE)])))
        process.stdin.flush()
        try:
            yield process
        finally:
            process.kill()


def left(process: Process) -> bytes:
    """What a hook has printed that leaves by itself, with status 0."""
    assert process.stdout is not None
    printed = process.stdout.read()
    assert process.wait(60) == 0
    return printed


def configured(desk: Desk, text: str | None) -> None:
    """Write a configuration, or none."""
    if text is not None:
        (desk.root / "config.toml").write_text(text)


def nothing_was_asked(desk: Desk) -> None:
    """The inbox and the waiting room are empty."""
    assert spool.listing(desk.store) == []
    assert list((desk.store / "wait").iterdir()) == []


def said(desk: Desk) -> list[str]:
    """The lines of hooks in the log, but for their time."""
    return [one.split(" WARNING ", 1)[1] for one in desk.log.read_text().splitlines() if " WARNING hook " in one]


WAYS = [(each, each.ask([dict(SINGLE)])) for each in SPEAKING.values()]
WAYS.append((CLAUDE_CODE, CLAUDE_CODE.ask([dict(SINGLE)]) | HEADLESS))
WAYS.append((OH_MY_PI, OH_MY_PI.ask([dict(SINGLE)]) | {"headless": True}))
NAMES = [*SPEAKING, "claude-code, headless", "oh-my-pi, headless"]


@pytest.mark.parametrize(("agent", "payload"), WAYS, ids=NAMES)
def test_a_hook_leaves_where_the_configuration_is_gone(tmp_path: Path, agent: Speaking, payload: Json) -> None:
    """No agent is given an opinion; a program that asked by itself is told why; the log has one line."""
    desk = Desk(tmp_path)
    with hooked(desk, agent, payload) as process:
        printed = left(process)
    why = f"no listener can start: {tmp_path}/config.toml does not exist"
    if agent is GENERIC:
        told = json.loads(printed)
        assert told["kind"] == "refused"
        assert told["error"].startswith(why)
    else:
        assert printed == b""
    nothing_was_asked(desk)
    (only,) = said(desk)
    assert only.startswith(f"hook {agent.name}: not kept: {why}")
    assert stat.S_IMODE((desk.store / "refused").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BROKEN, "config.toml is not TOML"),
        (WITHOUT_TOKEN, "[telegram] token is missing"),
        (f"{WHOLE}[store]\npath = 'x'\n", "[store] path is not absolute"),
        (WHOLE.replace("users = [5]", "users = []"), "[telegram] users is empty"),
    ],
    ids=["broken", "no token", "a wrong key", "no users"],
)
def test_a_program_is_told_what_is_wrong_with_the_configuration(tmp_path: Path, text: str, why: str) -> None:
    """In the words of the error itself, without a secret."""
    desk = Desk(tmp_path)
    configured(desk, text)
    with hooked(desk, GENERIC) as process:
        error = json.loads(left(process))["error"]
    assert why in error
    assert TOKEN not in error
    nothing_was_asked(desk)


def test_a_store_that_no_listener_can_use_is_told(tmp_path: Path) -> None:
    """A file stands where a folder should; the configuration is well."""
    desk = Desk(tmp_path)
    configured(desk, WHOLE)
    desk.store.mkdir(exist_ok=True)
    (desk.store / "pending").touch()
    with hooked(desk, GENERIC) as process:
        error = json.loads(left(process))["error"]
    assert error.startswith("no listener can start: ")
    assert str(desk.store) in error


def test_a_database_that_lets_this_machine_in_no_longer_is_told(tmp_path: Path, database: Database) -> None:
    """As after `hermes store remove` on another machine; a database that is away is waited for."""
    desk, password = Desk(tmp_path), tmp_path / "password"
    password.write_text("of before")
    password.chmod(0o600)
    configured(desk, f'{WHOLE}[store]\nurl = "{database.address().url}"\npassword_file = "{password}"\n')
    with hooked(desk, GENERIC) as process:
        error = json.loads(left(process))["error"]
    assert error == "no listener can start: the database does not accept this user and password"


def test_a_listener_that_a_person_starts_tells_the_person_alone(tmp_path: Path) -> None:
    """A waiting hook goes by what a listener of its kind has left."""
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--store", str(tmp_path / "store")]
    ended = subprocess.run([*command, "--config", str(tmp_path / "none")], capture_output=True, check=False)
    assert ended.returncode == 2
    assert refusal.read(tmp_path / "store") == ""


def test_a_fresh_refusal_is_the_answer_and_nothing_is_started(lonely: Lonely) -> None:
    """So that many asks do not start many listeners."""
    refusal.write(lonely.store, "it is broken")
    with hooked(lonely, GENERIC) as process:
        assert json.loads(left(process)) == {"kind": "refused", "error": "no listener can start: it is broken"}
    assert not lonely.told.exists()
    nothing_was_asked(lonely)


@pytest.mark.parametrize("age_s", [61, -3600], ids=["old", "from a clock that was ahead"])
def test_an_old_refusal_is_tried_again(lonely: Lonely, age_s: float) -> None:
    """It may be mended since; the word is gone, and another listener is started."""
    refusal.write(lonely.store, "it was broken")
    os.utime(lonely.store / "refused", (time.time() - age_s,) * 2)
    with hooked(lonely, GENERIC):
        until(lonely.told.exists, 30, "a listener")
        assert refusal.read(lonely.store) == ""


def test_a_reason_from_before_a_change_of_the_configuration_is_tried_again(lonely: Lonely) -> None:
    """Somebody has mended it, or put it back; a hook whose listener is away for a moment must not leave for it."""
    refusal.write(lonely.store, "it was broken")
    configured(lonely, WHOLE)
    with hooked(lonely, GENERIC):
        until(lonely.told.exists, 30, "a listener")
        assert refusal.read(lonely.store) == ""


def test_a_hook_whose_ask_was_taken_in_says_that_it_is_gone(lonely: Lonely) -> None:
    """A listener has shown it and died, and no other can start: the next one closes it on the phone."""
    with hooked(lonely, GENERIC) as process:
        until(lonely.told.exists, 30, "a listener")
        (record,) = spool.listing(lonely.store)
        record.unlink()
        refusal.write(lonely.store, "it is broken")
        assert json.loads(left(process))["kind"] == "refused"
    (gone,) = lonely.payloads()
    assert isinstance(gone, dict)
    assert gone["type"] == "waiter.gone"


def test_a_refusal_from_before_counts_for_nothing_where_a_listener_is(tmp_path: Path) -> None:
    """It is taken away, so that a short absence of the listener later on sends no hook away."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    refusal.write(desk.store, "it was broken")
    with hooked(desk, GENERIC) as process:
        until(lambda: refusal.read(desk.store) == "", 30, "a look of the hook")
        assert process.poll() is None
    spool.close_socket(bound)


async def test_a_listener_that_starts_takes_the_refusal_away(home: House) -> None:
    """Whoever started it."""
    refusal.write(home.store, "it was broken")
    await home.start()
    assert refusal.read(home.store) == ""


@pytest.mark.parametrize("agent", [GENERIC, CLAUDE_CODE], ids=lambda agent: agent.name)
def test_a_hook_leaves_where_its_store_is_gone(lonely: Lonely, agent: Speaking) -> None:
    """Nobody listens, and there is nothing left that could be answered; the folder is not made again."""
    with hooked(lonely, agent) as process:
        until(lonely.told.exists, 30, "a listener")
        until(lambda: spool.listing(lonely.store), 30, "the record")
        remove(lonely.store)
        printed = left(process)
    error = f"the folder {lonely.store} was removed, and no listener is there"
    assert printed == (
        b"" if agent is CLAUDE_CODE else json.dumps({"kind": "refused", "error": error}).encode() + b"\n"
    )
    assert not lonely.store.exists()


def test_a_hook_takes_its_place_again_where_a_listener_is(tmp_path: Path) -> None:
    """The listener makes its folder again, and knows nothing of the hook: it asks again, and gets its answer."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    with hooked(desk, SPEAKING["opencode"]) as process:
        until(lambda: spool.listing(desk.store), 30, "the record")
        remove(desk.store)
        desk.store.mkdir(mode=0o700)
        until(lambda: spool.waiters(desk.store, WAIT) == [process.pid], 30, "its place")
        until(lambda: len(desk.payloads()) == 1, 30, "the record again")
        (record,) = spool.listing(desk.store)
        assert spool.wait_id("opencode", str(spool.read(record)["machine"]), "que_1") == WAIT
        spool.put_answer(desk.store, WAIT, "at last")
        assert process.stdout is not None
        assert process.stdout.readline() == b"at last\n"
    spool.close_socket(bound)


def test_a_listener_that_never_comes_is_started_after_ever_longer_pauses(tmp_path: Path) -> None:
    """Soon at first, then from half a minute up to ten; one that is there is nudged every half minute."""
    pauses: list[int] = []

    def again() -> bool:
        pauses.append(looking._pause)
        if len(pauses) == 8:
            spool.put_answer(tmp_path, WAIT, "at last")
        return len(pauses) == 7

    released, release = os.pipe()
    with standard_input():
        looking = watch(released, again, tmp_path, look_every_s=0.0001)
        assert looking.answer() == "at last"
    os.close(released)
    os.close(release)
    assert [pause * waiter.LOOK_EVERY_S for pause in pauses] == [6, 30, 60, 120, 240, 480, 600, 30]


# --- who asks through Hermes' own commands ------------------------------------------------------------------------


async def test_hermes_ask_says_why_no_listener_can_start(tmp_path: Path) -> None:
    """A token that stands in this shell alone does not count: no listener that the question starts would have it."""
    config = tmp_path / "config.toml"
    places = f'[store]\npath = "{tmp_path / "store"}"\n[log]\nfile = "{tmp_path / "log"}"\n'
    config.write_text(f"{WITHOUT_TOKEN}{places}")
    refusal.write(tmp_path / "store", "an older word")
    command = (sys.executable, "-m", "hermes", "ask", "Ship it?", "--config", str(config))
    environ = os.environ | {"HERMES_TELEGRAM__TOKEN": TOKEN}
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    asking = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe, env=environ)
    out, told = await asking.communicate()
    assert (asking.returncode, out) == (2, b"")
    assert f"{config}, [telegram] token is missing" in told.decode()


async def test_the_mcp_tool_says_why_no_listener_can_start(tmp_path: Path) -> None:
    """The configuration was removed after the agent had started its server."""
    config = tmp_path / "config.toml"
    places = f'[store]\npath = "{tmp_path / "store"}"\n[log]\nfile = "{tmp_path / "log"}"\n'
    config.write_text(f"{WHOLE}{places}")
    server = StdioServerParameters(command=sys.executable, args=["-I", "-m", "hermes", "mcp", "--config", str(config)])
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        config.unlink()
        questions: list[Any] = [{"question": "Which?", "options": []}]
        result: Any = await session.call_tool("ask_user", {"questions": questions})
    assert result.is_error
    assert f"no listener can start: {config} does not exist" in result.content[0].text


# --- a full disk --------------------------------------------------------------------------------------------------


def resize(process: Process, most: int) -> None:
    """Let no file of this process grow beyond this."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))  # type: ignore[attr-defined,unused-ignore]


ON_A_FULL_DISK = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit, which only Linux has")


@contextmanager
def hooked_on_a_full_disk(desk: Desk, agent: Speaking, payload: Json) -> Iterator[Process]:
    """A hook that asks, and finds no room."""
    with hooked(desk, agent, payload, before=lambda process: resize(process, 0)) as process:
        yield process


WITH_A_DESK = [SPEAKING[name] for name in ("claude-code", "oh-my-pi", "neovate")]


@ON_A_FULL_DISK
@pytest.mark.parametrize("agent", WITH_A_DESK, ids=lambda agent: agent.name)
def test_a_question_waits_for_room_while_the_agents_own_dialog_is_open(tmp_path: Path, agent: Speaking) -> None:
    """It reaches the phone as soon as there is some; one line in the log says that it was late."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    with hooked_on_a_full_disk(desk, agent, agent.ask([dict(SINGLE)])) as process:
        until(lambda: list((desk.store / "wait").glob("*.lock")) == [] and (desk.store / "inbox").exists(), 30, "a try")
        assert spool.listing(desk.store) == []
        assert process.poll() is None
        resize(process, resource.RLIM_INFINITY)
        until(lambda: spool.listing(desk.store), 30, "the question")
        (wait_id,) = spool.waited_for(desk.store)
        until(lambda: desk.log.stat().st_size > 0, 30, "a line in the log")
        spool.put_answer(desk.store, wait_id, '{"an": "answer"}')
        assert left(process) == b'{"an": "answer"}\n'
    assert said(desk) == [f"hook {agent.name}: no room: File too large; the question is kept as soon as there is some"]
    spool.close_socket(bound)


@ON_A_FULL_DISK
@pytest.mark.parametrize(("agent", "payload"), WAYS[-2:], ids=NAMES[-2:])
def test_where_no_dialog_is_open_nobody_waits_for_room(tmp_path: Path, agent: Speaking, payload: Json) -> None:
    """The agent would stand still, and nobody would know why."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    with hooked_on_a_full_disk(desk, agent, payload) as process:
        assert left(process) == b""
    spool.close_socket(bound)


@ON_A_FULL_DISK
def test_what_waits_for_room_ends_with_its_agent(tmp_path: Path) -> None:
    """Nothing is told of it, for nothing was asked."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    with hooked_on_a_full_disk(desk, CLAUDE_CODE, CLAUDE_CODE.ask([dict(SINGLE)])) as process:
        until((desk.store / "inbox").exists, 30, "a try")
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 0
    nothing_was_asked(desk)
    spool.close_socket(bound)


@ON_A_FULL_DISK
def test_what_waits_for_room_can_be_answered_at_the_desk(tmp_path: Path) -> None:
    """The agent is told that its own dialog counts."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    with hooked_on_a_full_disk(desk, OH_MY_PI, OH_MY_PI.ask([dict(SINGLE)])) as process:
        until((desk.store / "inbox").exists, 30, "a try")
        assert process.stdin is not None
        process.stdin.write(b'{"answers": [["SQLite"]]}\n')
        process.stdin.flush()
        assert json.loads(left(process)) == {"kind": "desk"}
    nothing_was_asked(desk)
    spool.close_socket(bound)


# --- a fault while a hook waits -----------------------------------------------------------------------------------


def damage_answer(desk: Desk) -> None:
    """Lay a damaged answer ready for the one hook that waits."""
    (wait_id,) = spool.waited_for(desk.store)
    damaged = desk.store / "damaged"
    damaged.write_bytes(b"\xff\xfe")
    damaged.rename(desk.store / "wait" / f"{wait_id}.answer")


def test_a_program_is_told_that_its_hook_failed(tmp_path: Path) -> None:
    """The phone had the question already, and hears at once that nobody waits for its answer any more."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    with hooked(desk, GENERIC) as process:
        until(lambda: spool.listing(desk.store), 30, "the question")
        (asked,) = spool.listing(desk.store)
        (wait_id,) = spool.waited_for(desk.store)
        asked.unlink()  # as a listener does that has read it
        damage_answer(desk)
        told = json.loads(left(process))
    assert told == {"kind": "refused", "error": f"the answer is damaged ({desk.store})"}
    assert desk.payloads() == [{"type": "waiter.gone", "waitID": wait_id}]
    assert list((desk.store / "wait").iterdir()) == []
    assert said(desk) == [f"hook generic: not kept: the answer is damaged ({desk.store})"]
    spool.close_socket(bound)


@pytest.mark.parametrize("agent", WITH_A_DESK, ids=lambda agent: agent.name)
def test_an_agent_hears_nothing_of_a_fault_of_its_hook(tmp_path: Path, agent: Speaking) -> None:
    """Its own dialog is open: the question is taken back from the inbox before anybody has read it."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    with hooked(desk, agent) as process:
        until(lambda: spool.listing(desk.store), 30, "the question")
        damage_answer(desk)
        assert left(process) == b""
    nothing_was_asked(desk)
    spool.close_socket(bound)


@ON_A_FULL_DISK
def test_an_answer_from_the_desk_counts_where_it_cannot_be_kept(tmp_path: Path) -> None:
    """Only the phone does not hear of it; one line in the log says so."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    with hooked(desk, OH_MY_PI) as process:
        until(lambda: spool.listing(desk.store), 30, "the question")
        resize(process, 0)
        assert process.stdin is not None
        process.stdin.write(b'{"answers": [["SQLite"]]}\n')
        process.stdin.flush()
        assert json.loads(left(process)) == {"kind": "desk"}
    assert len(spool.listing(desk.store)) == 1
    spool.close_socket(bound)


@ON_A_FULL_DISK
def test_an_answer_that_was_printed_is_not_taken_back(tmp_path: Path) -> None:
    """Its receipt finds no room; the hook stays all the same, until its program ends it."""
    desk = Desk(tmp_path)
    bound = spool.listen_socket(desk.store)
    stays = replace(GENERIC, options=(*GENERIC.options, "--wait", "--stay"))
    with hooked(desk, stays) as process:
        until(lambda: spool.listing(desk.store), 30, "the question")
        (wait_id,) = spool.waited_for(desk.store)
        resize(process, 0)
        spool.put_answer(desk.store, wait_id, "x")
        assert process.stdout is not None
        assert process.stdout.readline() == b"x\n"
        process.terminate()
        assert left(process) == b""
    assert len(spool.listing(desk.store)) == 1
    spool.close_socket(bound)


def test_a_program_is_told_of_any_payload_that_is_too_deep(tmp_path: Path) -> None:
    """At some depth it can just be read, and not be written: each is refused in words."""
    desk = Desk(tmp_path)
    command = [str(desk.python), "-I", "-m", "hermes", "hook", "generic", *desk.arguments]
    for deep in range(979, 986):
        payload = f'{{"questions": [{{"question": "Go?", "x": {"[" * deep}{"]" * deep}}}]}}\n'
        ended = subprocess.run(command, input=payload.encode(), capture_output=True, timeout=60, check=True)
        assert json.loads(ended.stdout)["kind"] == "refused", deep
