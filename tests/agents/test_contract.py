"""What every agent can rely on: real hooks and a listener, each agent's own payloads and its own form of an answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hermes.agents.claude_code import adapter as claude_code
from hermes.agents.registry import ADAPTERS
from hermes.core.graces import HOOK_GRACE_S, LEFT_GRACE_S, PLACES_GRACE_S
from hermes.hook import run, spool
from hermes.listener.phone.permission_queue import FRESH_S
from hermes.model.ask import Ask
from hermes.model.signals import Asked
from hermes.sandbox.phone_values import ShownMessage
from tests.agents.speaking import CLAUDE_CODE, SEVERAL, SINGLE, SPEAKING, Answers, Json, Speaking
from tests.harness.folders import remove
from tests.harness.listeners import end
from tests.listening import House, house, until

home = house(started=True)
still = house()
EACH = pytest.mark.parametrize("agent", SPEAKING.values(), ids=SPEAKING)
Process = asyncio.subprocess.Process

ASKED = SINGLE["question"]
# The program that starts the hook: what is killed where an agent dies, all at once.
PARENT = "import subprocess, sys; sys.exit(subprocess.Popen(sys.argv[1:]).wait())"


def test_every_agent_keeps_the_contract() -> None:
    """None is left out: not of those whose payloads are understood, nor of those whose hooks are.

    OpenCode 2 starts no hook; what it keeps is in tests/listener/agent/test_opencode2.py.
    """
    assert set(SPEAKING) == set(ADAPTERS) - {"opencode2"} == set(run.NAMES)


def command(home: House, agent: Speaking, *options: str) -> list[str]:
    """How its plugin starts a hook."""
    places = ["--store", str(home.store), "--log", str(home.root / "log"), "--config", str(home.root / "config.toml")]
    return [sys.executable, "-I", "-m", "hermes", "hook", agent.name, *places, *options]


async def started(*command: str, payload: Json) -> Process:
    """Start a hook, and hand this over; its stdin stays open."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    process.stdin.write(json.dumps(payload).encode() + b"\n")
    await process.stdin.drain()
    return process


@contextlib.asynccontextmanager
async def asking(home: House, agent: Speaking, *questions: Json) -> AsyncIterator[tuple[Process, Json]]:
    """The agent's hook waits for an answer to these."""
    payload = agent.ask([dict(one) for one in questions or (SINGLE,)])
    process = await started(*command(home, agent, *agent.options), payload=payload)
    try:
        yield process, payload
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
        # The hook may have started a listener, which would take the place of the test's own after the test.
        await asyncio.to_thread(end, "listen", home.root, signal.SIGKILL)


async def tells(home: House, agent: Speaking, payload: Json, answers: Answers | None) -> None:
    """Let the agent tell what took effect."""
    for told in agent.tells(payload, answers):
        process = await started(*command(home, agent), payload=told)
        await process.communicate()
        assert process.returncode == 0


async def printed(process: Process) -> str:
    """The one line that the hook prints."""
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 60)
    assert line.endswith(b"\n")
    return line.decode()


def after(home: House, message: ShownMessage) -> ShownMessage | None:
    """The newest question on the phone, if this message is not it."""
    newest = home.person.find(ASKED, buttons=True)
    return newest if newest and newest.message_id != message.message_id else None


async def picks(home: House, *labels: str) -> None:
    """Tap these one after the other."""
    asked = await home.person.sees(ASKED, buttons=True)
    for label in labels:
        await home.person.taps(asked, label)


# --- what comes, and every kind of answer -------------------------------------------------------------------------


@EACH
async def test_questions_reach_the_phone(home: House, agent: Speaking) -> None:
    """With the agent's name, options and descriptions."""
    async with asking(home, agent):
        asked = await home.person.sees(ASKED, buttons=True)
        ask = home.entry().ask
    assert [option.label for option in ask.questions[0].options] == ["SQLite", "Postgres"]
    assert "one file" in asked.text
    assert ask.capabilities.agent_name in asked.text


@EACH
async def test_a_choice_goes_out_in_its_form(home: House, agent: Speaking) -> None:
    """Its exact label; and what it came to is confirmed, and told."""
    async with asking(home, agent) as (process, payload):
        await picks(home, "Postgres")
        assert agent.took(payload, await printed(process)) == [["Postgres"]]
        await tells(home, agent, payload, [["Postgres"]])
        await home.person.sees("✅ Postgres", buttons=False)
        await home.closed()


@EACH
async def test_words_go_out_in_its_form(home: House, agent: Speaking) -> None:
    """With their newline and their quotes."""
    async with asking(home, agent) as (process, payload):
        home.person.write('Neither: "DuckDB",\nplease', to=await home.person.sees(ASKED, buttons=True))
        assert agent.took(payload, await printed(process)) == [['Neither: "DuckDB",\nplease']]


@EACH
async def test_several_questions_go_out_in_its_form(home: House, agent: Speaking) -> None:
    """One choice of the first, several of the second with words beside them, in the order chosen."""
    async with asking(home, agent, SINGLE, SEVERAL) as (process, payload):
        await picks(home, "SQLite", "☐ Cache", "☐ Auth")
        home.person.write("and logs", to=await home.person.sees("Which features?"))
        await picks_on(home, "and logs", "Review ▶")
        await picks_on(home, "Ready to send?", "Send")
        assert agent.took(payload, await printed(process)) == [["SQLite"], ["Cache", "Auth", "and logs"]]


async def picks_on(home: House, text: str, label: str) -> None:
    """Tap a button of the message that shows this."""
    await home.person.taps(await home.person.sees(text), label)


@EACH
async def test_a_no_goes_out_in_its_form(home: House, agent: Speaking) -> None:
    """In the words that say what it does to this agent; told as a no."""
    async with asking(home, agent) as (process, payload):
        asked = await home.person.sees(ASKED, buttons=True)
        stops = home.entry().ask.capabilities.reject_stops
        await home.person.taps(asked, "⏹ Stop" if stops else "✋ Refuse")
        await home.person.taps(asked, "Yes, stop" if stops else "Yes, refuse")
        assert agent.took(payload, await printed(process)) is None
        await tells(home, agent, payload, None)
        await home.person.sees("⏹ Stopped" if stops else "✋ Refused", buttons=False)
        await home.closed()


@EACH
async def test_a_skip_goes_out_in_its_form(home: House, agent: Speaking) -> None:
    """Where the agent can go on without an answer; where it cannot, nobody is offered it."""
    async with asking(home, agent) as (process, payload):
        asked = await home.person.sees(ASKED, buttons=True)
        if not home.entry().ask.capabilities.can_skip:
            assert "Skip" not in str(asked.labels)
            return
        await home.person.taps(asked, "⏭ Skip")
        await home.person.taps(asked, "Yes")
        took = agent.took(payload, await printed(process))
        assert took is not None
        assert not any(took)


# --- time, the desk, and deaths -----------------------------------------------------------------------------------


@EACH
async def test_nobody_in_time_is_no_answer(still: House, agent: Speaking) -> None:
    """Told no where that stops it, or where nobody else could ever answer; else left to the desk, without a word."""
    await still.start(questions={"ttl": "2s"})
    async with asking(still, agent) as (process, payload):
        await still.person.sees(ASKED)
        can = still.entry().ask.capabilities
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        if can.reject_stops or not can.desk_stays_open:
            assert agent.took(payload, line.decode()) is None
            await tells(still, agent, payload, None)
        else:
            assert line == b""
        await still.person.sees("⌛ Expired", buttons=False)
        await still.closed()


@EACH
async def test_the_desk_may_be_first(home: House, agent: Speaking) -> None:
    """The buttons go, the message says what was answered there, and the hook leaves."""
    async with asking(home, agent) as (process, payload):
        await home.person.sees(ASKED, buttons=True)
        if agent.second_line:
            assert process.stdin is not None
            process.stdin.write(b'{"answers": [["SQLite"]]}\n')
            assert json.loads(await printed(process)) == {"kind": "desk"}
        else:
            await tells(home, agent, payload, [["SQLite"]])
        await home.person.sees("SQLite", buttons=False)
        await home.closed()
        assert "🖥" in home.person.shown()[0].text
        if ADAPTERS[agent.name].goodbye is not None:
            await asyncio.wait_for(process.wait(), 60)


async def stays_away(home: House) -> None:
    """Wait until it is known that the hook was left by its agent, and then for longer than another one may take."""
    await until(lambda: home.listener._parts.agent.errands.get(home.entry().id).has_left, "its leaving noticed")
    home.pass_time(LEFT_GRACE_S + 1)


@EACH
async def test_a_hook_that_is_released_closes_its_question(home: House, agent: Speaking) -> None:
    """SIGTERM: its agent no longer wants to know; OpenCode's plugin tells that by itself."""
    async with asking(home, agent) as (process, _):
        await home.person.sees(ASKED, buttons=True)
        process.terminate()
        assert await process.wait() == 0
        if ADAPTERS[agent.name].goodbye is not None:
            await stays_away(home)
            await home.person.sees("no longer needs this", buttons=False)
            await home.closed()


@EACH
async def test_an_agent_that_dies_closes_its_question(home: House, agent: Speaking) -> None:
    """All at once, its end of the pipes with it."""
    payload = agent.ask([dict(SINGLE)])
    process = await started(sys.executable, "-c", PARENT, *command(home, agent, *agent.options), payload=payload)
    await home.person.sees(ASKED, buttons=True)
    process.kill()
    process._transport.close()  # type: ignore[attr-defined]
    await stays_away(home)
    await home.person.sees("no longer needs this", buttons=False)
    await home.closed()


@EACH
async def test_a_hook_that_is_killed_loses_nothing_of_others(home: House, agent: Speaking) -> None:
    """Kill -9: what it asked is closed once it is sure that nobody waits; the next is answered."""
    async with asking(home, agent) as (process, _):
        await home.person.sees(ASKED, buttons=True)
        entry = home.entry()
        await until(lambda: home.entry().waits, "the hook noticed")
        process.kill()
        await process.wait()
        spool.nudge(home.store)  # it looks for hooks at once
        await until(lambda: home.listener._parts.agent.errands.get(entry.id).alone_since_s, "its end noticed")
        home.pass_time(HOOK_GRACE_S + 1)
        await home.closed()


@EACH
async def test_a_hook_that_dies_with_the_store_closes_its_question(home: House, agent: Speaking) -> None:
    """Its place goes with the folder, and it takes no other one in the store that the listener makes again."""
    async with asking(home, agent) as (process, _):
        await home.person.sees(ASKED, buttons=True)
        remove(home.store)
        process.kill()
        await process.wait()
        spool.nudge(home.store)  # it looks for hooks at once
        await until(lambda: home.listener._parts.agent.errands.get(home.entry().id).alone_since_s, "its end noticed")
        home.pass_time(max(PLACES_GRACE_S, HOOK_GRACE_S) + 1)
        await home.closed()


@EACH
async def test_a_hook_that_lives_on_without_its_store_gets_its_answer(home: House, agent: Speaking) -> None:
    """Its place went with the folder, and for a moment nobody is seen who waits."""
    async with asking(home, agent) as (process, payload):
        shown = await home.person.sees(ASKED, buttons=True)
        remove(home.store)
        spool.nudge(home.store)
        await until(
            lambda: home.listener._parts.agent.errands.get(home.entry().id).alone_since_s, "that its place is gone"
        )
        home.clock.advance(PLACES_GRACE_S / 2)
        await until(lambda: spool.waited_for(home.store), "its place again")
        await home.person.taps(shown, "SQLite")
        assert agent.took(payload, await printed(process)) == [["SQLite"]]


@EACH
async def test_a_listener_that_starts_anew_brings_the_answer(home: House, agent: Speaking) -> None:
    """The hook waits on, whoever listens."""
    async with asking(home, agent) as (process, payload):
        await home.person.sees(ASKED, buttons=True)
        await home.stop()
        await home.start()
        await picks(home, "SQLite")
        assert agent.took(payload, await printed(process)) == [["SQLite"]]


async def test_news_that_comes_between_two_listeners_is_kept(home: House) -> None:
    """Its hook has left and its receipt was read: nothing else tells the next listener what came of the answer."""
    async with asking(home, CLAUDE_CODE) as (process, payload):
        await picks(home, "SQLite")
        await printed(process)
        await process.wait()
        await until(lambda: home.entry().waiter_taken, "its receipt")
        await home.stop()
        await tells(home, CLAUDE_CODE, payload, [["SQLite"]])
        await home.start()
        await home.person.sees("✅ SQLite", buttons=False)


@EACH
async def test_a_question_waits_for_a_listener(still: House, agent: Speaking) -> None:
    """Nobody listens when it is asked: nothing is lost."""
    await still.start()
    await still.stop()
    async with asking(still, agent) as (process, payload):
        await until(lambda: spool.listing(still.store), "the ask kept")
        await still.start()
        await picks(still, "SQLite")
        assert agent.took(payload, await printed(process)) == [["SQLite"]]


@EACH
async def test_a_hook_that_died_before_it_was_heard_is_not_waited_for(still: House, agent: Speaking) -> None:
    """A machine that lost its power: nobody is left to answer to. OpenCode's plugin may start its hook again."""
    await still.start()
    await still.stop()
    async with asking(still, agent) as (process, _):
        await until(lambda: spool.listing(still.store), "the ask kept")
        process.kill()
        await process.wait()
        await still.start()
        if ADAPTERS[agent.name].goodbye is None:
            await still.person.sees(ASKED, buttons=True)
            return
        await until(
            lambda: not still.entries() or still.listener._parts.agent.errands.get(still.entry().id).alone_since_s,
            "its end noticed",
        )
        still.pass_time(LEFT_GRACE_S + 1)
        await still.closed()


# --- Claude Code: what it does not name, and what it does not tell -------------------------------------------------


async def test_two_identical_questions_of_one_turn_are_two_asks(home: House) -> None:
    """Each hook gets the answer that was given to its own question, and news of one settles that one."""
    async with asking(home, CLAUDE_CODE) as (older, _):
        first = await home.person.sees(ASKED, buttons=True)
        async with asking(home, CLAUDE_CODE) as (newer, payload):
            await until(lambda: len(home.entries()) == 2, "the second")
            await home.person.taps(first, "SQLite")
            assert CLAUDE_CODE.took(payload, await printed(older)) == [["SQLite"]]
            await tells(home, CLAUDE_CODE, payload, [["SQLite"]])
            await home.person.sees("✅ SQLite", buttons=False)
            await until(lambda: len(home.entries()) == 1, "the first one closed")
            assert home.entry().state.phase == "open"
            await home.person.taps(await home.person.sees(ASKED, buttons=True), "Postgres")
            assert CLAUDE_CODE.took(payload, await printed(newer)) == [["Postgres"]]
            await tells(home, CLAUDE_CODE, payload, [["Postgres"]])
            await home.closed()


async def test_news_of_an_answer_that_was_taken_does_not_end_its_twin(home: House) -> None:
    """Both are answered, and the older hook stands still: it prints its answer all the same, once it goes on."""
    async with asking(home, CLAUDE_CODE) as (older, payload):
        first = await home.person.sees(ASKED, buttons=True)
        async with asking(home, CLAUDE_CODE) as (newer, _):
            second = await until(lambda: after(home, first), "the second")
            older.send_signal(signal.SIGSTOP)
            await home.person.taps(first, "SQLite")
            await home.person.taps(second, "SQLite")
            assert CLAUDE_CODE.took(payload, await printed(newer)) == [["SQLite"]]
            await tells(home, CLAUDE_CODE, payload, [["SQLite"]])
            await until(lambda: len(home.entries()) == 1, "one of them closed")
            older.send_signal(signal.SIGCONT)
            assert CLAUDE_CODE.took(payload, await printed(older)) == [["SQLite"]]
            await tells(home, CLAUDE_CODE, payload, [["SQLite"]])
            await home.closed()


async def test_two_identical_commands_of_one_turn_are_two_asks(home: House) -> None:
    """The news of the first comes when it has run: then the second is open, and stays so."""
    told = {"session_id": "s1", "prompt_id": "p1", "cwd": "/home/dev/project", "hook_event_name": "PermissionRequest"}
    payload = told | {"tool_name": "Bash", "tool_input": {"command": "make deploy"}}
    hooks = []
    try:
        first = await started(*command(home, CLAUDE_CODE), payload=payload)
        hooks.append(first)
        await until(lambda: len(home.entries()) == 1, "the first")
        second = await started(*command(home, CLAUDE_CODE), payload=payload)
        hooks.append(second)
        await until(lambda: len(home.entries()) == 2, "the second")
        await home.person.taps(await home.person.sees("make deploy", buttons=True), "Allow once")
        allowed = await printed(first)
        home.clock.advance(claude_code.capabilities.silence_s)
        await until(lambda: len(home.entries()) == 1, "the first one closed")
        news = payload | {"hook_event_name": "PostToolUse"}
        await (await started(*command(home, CLAUDE_CODE), payload=news)).communicate()
        await until(lambda: not spool.listing(home.store), "an empty inbox")
        assert [entry.state.phase for entry in home.entries()] == ["open"]
        asked = await home.person.sees("make deploy", buttons=True)
        home.clock.advance(FRESH_S)
        await home.person.taps(asked, "Allow once")
        assert await printed(second) == allowed
    finally:
        for process in hooks:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


async def test_a_record_that_is_read_again_closes_nothing(home: House) -> None:
    """A listener that died between taking it in and taking it away reads it once more."""
    older, newer = (CLAUDE_CODE.ask([dict(SINGLE)]) | {"id": name} for name in ("older", "newer"))
    with home.waiting("newer", CLAUDE_CODE.name):
        for payload in (older, newer, older):
            spool.drop(home.store, spool.record(CLAUDE_CODE.name, payload))
            spool.nudge(home.store)
            await until(lambda: not spool.listing(home.store), "an empty inbox")
        await until(lambda: len(home.entries()) == 1, "the older one closed")
        assert home.entry().ask.source.request_id == "newer"
        assert home.entry().state.phase == "open"


async def test_an_answer_of_which_nothing_is_heard_came_too_late(home: House) -> None:
    """Every answer that counts is told: silence, or the end of the turn, means that nobody took this one."""
    async with asking(home, CLAUDE_CODE) as (process, payload):
        await picks(home, "SQLite")
        await printed(process)
        over = payload | {"hook_event_name": "Stop"}
        await (await started(*command(home, CLAUDE_CODE), payload=over)).communicate()
        await home.person.sees("came too late")
        await home.closed()


async def test_news_may_be_longer_than_what_is_kept_of_it(home: House) -> None:
    """The results of tools are told with it, and whole files stand in them."""
    async with asking(home, CLAUDE_CODE) as (_, payload):
        await home.person.sees(ASKED, buttons=True)
        (news,) = CLAUDE_CODE.tells(payload, [["SQLite"]])
        process = await started(*command(home, CLAUDE_CODE), payload=news | {"tool_response": "x" * 3_000_000})
        await process.communicate()
        await home.person.sees("🖥", buttons=False)
        await home.closed()


# --- what is malformed --------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("wrong", [{}, "x", [{}], [{"question": 5}], [{"question": "x", "options": ["y"]}]])
async def test_a_malformed_payload_gets_in_nobodys_way(home: House, agent: Speaking, wrong: Any) -> None:
    """Status 0, no traceback, nothing on the phone; what is waited for ends."""
    payload = agent.ask([dict(SINGLE)])
    _put(payload, wrong)
    process = await started(*command(home, agent, *agent.options), payload=payload)
    assert process.stderr is not None
    assert await process.stderr.readline() in {b"kept\n", b"refused\n"}
    if ADAPTERS[agent.name].goodbye is None:
        await until(lambda: not spool.listing(home.store), "an empty inbox")
        with contextlib.suppress(ProcessLookupError):
            process.terminate()  # as its plugin does, which looks for itself
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    assert b"Traceback" not in err
    assert home.person.shown() == []


def _put(payload: Json, wrong: Any) -> None:
    """Put this in the place of the questions, wherever the agent has them."""
    for key, value in payload.items():
        if key == "questions":
            payload[key] = wrong
        elif isinstance(value, dict):
            _put(value, wrong)


@EACH
def test_its_payload_is_one_ask(agent: Speaking) -> None:
    """Read twice it is the same; a machine's name is the listener's."""
    payload = agent.ask([dict(SINGLE)]) | ({} if agent.name == "opencode" else {"id": "0123"})
    signal = ADAPTERS[agent.name].read(payload, machine="laptop")
    assert isinstance(signal, Asked)
    assert isinstance(signal.ask, Ask)
    assert signal == ADAPTERS[agent.name].read(payload, machine="laptop")
    assert (signal.ask.source.agent, signal.ask.source.machine) == (agent.name, "laptop")
