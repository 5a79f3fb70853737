"""Asking from a command of Hermes: through a real hook process and a listener, to the phone and back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.commands.ask.phone_question import TEST, Told, ask, asking
from hermes.config.settings import Config
from hermes.errors import PayloadError
from tests.at_once import at_once
from tests.listening import House, house, until

home = house(started=True)
still = house()

BOTH: dict[str, Any] = {
    "agent": "Nightly build",
    "title": "Release two",
    "directory": "/srv/shop-api",
    "questions": [
        {
            "question": "Which checks?",
            "header": "Checks",
            "multiple": True,
            "options": [{"label": "Unit"}, {"label": "Load"}],
        },
        {"question": "What is it called?", "header": "Name"},
    ],
}


@pytest.fixture
def config(home: House) -> Config:
    """The configuration of the listener that runs."""
    return home.config()


async def test_an_answer_comes_back_and_is_confirmed_by_its_handing_over(home: House, config: Config) -> None:
    """Nobody but the hook can tell what became of it: that it was printed settles the question."""
    asking = asyncio.create_task(ask(config, home.root / "config.toml", TEST, timeout_s=60))
    asked = await home.person.sees("Does this question reach you?", buttons=True)
    assert "Hermes on" in asked.text
    home.person.tap(asked, "Yes")
    assert await asking == Told("answer", (("Yes",),))
    assert "✅ Yes" in (await home.person.sees("Does this question reach you?", buttons=False)).text
    await home.closed()


async def test_picks_and_typed_words_come_back_to_the_letter(home: House, config: Config) -> None:
    """Labels in the order chosen, a typed text with its newline; the message says who asks."""
    asking = asyncio.create_task(ask(config, home.root / "config.toml", BOTH, timeout_s=60))
    asked = await home.person.sees("Which checks?", buttons=True)
    assert "shop-api · Release two · Nightly build" in asked.text
    for label in ("Load", "Unit", "Name ▶"):
        await home.person.taps(asked, label)
    home.person.write("Owl\nof the north", to=asked)
    await home.person.sees("Ready to send?")
    await home.person.taps(asked, "Send")
    assert await asking == Told("answer", (("Load", "Unit"), ("Owl\nof the north",)))


@pytest.mark.parametrize(("button", "sure", "kind"), [("⏹ Stop", "Yes, stop", "reject"), ("⏭ Skip", "Yes", "skip")])
async def test_a_refusal_and_a_skip_come_back(home: House, config: Config, button: str, sure: str, kind: Any) -> None:
    """Both are confirmed by a second tap."""
    asking = asyncio.create_task(ask(config, home.root / "config.toml", TEST, timeout_s=60))
    asked = await home.person.sees("Does this question reach you?", buttons=True)
    await home.person.taps(asked, button)
    await until(lambda: "Back" in str(home.person.message(asked.message_id).labels), "the second question")
    await home.person.taps(asked, sure)
    assert await asking == Told(kind)


async def test_a_timer_that_refused_is_told_as_one(still: House) -> None:
    """So that nobody takes it for the person's own word."""
    await still.start(questions={"ttl": "2s"})
    told = await ask(still.config(), still.root / "config.toml", TEST, timeout_s=60)
    assert told == Told("reject", by="timer")


async def test_who_asks_no_longer_closes_the_question(home: House, config: Config) -> None:
    """Out of time, or interrupted: the buttons go within seconds, and the message says why."""
    assert await ask(config, home.root / "config.toml", TEST, timeout_s=8) == Told("unanswered")
    assert "no longer needs this" in (await home.person.sees("Does this question reach you?", buttons=False)).text


async def test_what_was_on_the_phone_is_known_afterwards(home: House, config: Config) -> None:
    """Its message is nobody's to wait for once it is over, and it had been there."""
    async with asking(config, home.root / "config.toml", TEST) as it:
        assert not await it.was_on_phone()
        await until(lambda: at_once(it.was_on_phone()), "the message")
        await it.stopped()
        assert await it.was_on_phone()


async def test_an_answer_of_which_only_the_reader_is_left_was_delivered(home: House, config: Config) -> None:
    """Who has read its line may kill the hook at once: the phone does not say that the answer came too late."""
    hook = await asking_by_hand(home, TEST)
    asked = await home.person.sees("Does this question reach you?", buttons=True)
    home.person.tap(asked, "Yes")
    assert hook.stdout is not None
    assert json.loads(await hook.stdout.readline()) == {"kind": "answer", "answers": [["Yes"]]}
    with contextlib.suppress(ProcessLookupError):
        hook.kill()
    await hook.wait()
    await home.closed()
    assert "✅ Yes" in home.person.message(asked.message_id).text


async def test_a_program_that_nobody_reads_from_any_more_is_gone(home: House) -> None:
    """Its end of the pipe is closed: the question leaves the phone."""
    hook = await asking_by_hand(home, TEST)
    asked = await home.person.sees("Does this question reach you?", buttons=True)
    hook._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
    await home.closed()
    assert "no longer needs this" in home.person.message(asked.message_id).text
    await hook.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
async def test_a_hook_that_was_started_by_hand_can_be_interrupted(home: House, number: signal.Signals) -> None:
    """Ctrl-C, a closed terminal: it takes its question back."""
    hook = await asking_by_hand(home, TEST)
    await home.person.sees("Does this question reach you?", buttons=True)
    assert os.getsid(hook.pid) == os.getsid(0)
    hook.send_signal(number)
    out, _ = await hook.communicate()
    assert (hook.returncode, out) == (0, b"")
    await home.closed()


@pytest.mark.parametrize(
    "wrong",
    [
        {"questions": [{"text": "hi"}]},
        {"questions": [], "title": 5},
        {"questions": [{"question": "Which?", "options": ["x", "y"]}]},
        {"questions": [5], "type": "receipt", "waitID": "x"},
    ],
)
async def test_a_question_of_another_shape_is_refused_at_once(home: House, config: Config, wrong: Any) -> None:
    """Nobody would ever see it: who asked is told where it is wrong, and waits for nothing."""
    with pytest.raises(PayloadError, match=r"no answer can come: payload\."):
        await ask(config, home.root / "config.toml", wrong, timeout_s=60)
    assert home.entries() == []


async def test_where_there_is_no_computer_to_leave_it_to_it_is_refused(still: House) -> None:
    """`keep` would let a program wait for ever for what nobody can answer any more."""
    await still.start(questions={"ttl": "2s", "on_expiry": "keep"})
    told = await ask(still.config(), still.root / "config.toml", TEST, timeout_s=60)
    assert told == Told("reject", by="timer")
    await still.closed()
    texts = " ".join(message.text for message in still.person.shown())
    assert "told to stop" in texts
    assert "on the computer" not in texts


@pytest.mark.parametrize(
    ("stays", "told", "words"),
    [
        ({}, Told("reject", by="timer"), "told to stop"),
        ({"stays": False}, Told("reject", by="timer"), "told to stop"),
        ({"stays": True}, Told("unanswered"), "it can still be answered on the computer."),
    ],
)
async def test_a_program_says_whether_it_can_still_be_answered_itself(
    home: House, config: Config, stays: dict[str, bool], told: Told, words: str
) -> None:
    """Where it does not say so, `keep` is a no: nobody is sent to a computer where nothing waits."""
    asked = {**TEST, "ttl_s": 2, "on_expiry": "keep", **stays}
    assert await ask(config, home.root / "config.toml", asked, timeout_s=60) == told
    await home.closed()
    texts = " ".join(message.text for message in home.person.shown())
    assert words in texts
    assert ("on the computer" in texts) == (told.kind == "unanswered")


async def asking_by_hand(home: House, asked: Mapping[str, Any]) -> asyncio.subprocess.Process:
    """Start a hook as a program does that Hermes has never heard of: its store comes from the configuration."""
    pipe = asyncio.subprocess.PIPE
    telegram = f'[telegram]\ntoken = "{home.api.token}"\nchat_id = 1001\nusers = [1001]\n'
    config = home.root / "hand.toml"
    config.write_text(f'{telegram}[store]\npath = "{home.store}"\n[log]\nfile = "{home.root / "log"}"\n')
    command = [sys.executable, "-I", "-m", "hermes", "hook", "generic", "--config", str(config)]
    hook = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert hook.stdin is not None
    hook.stdin.write(json.dumps(asked).encode() + b"\n")
    hook.stdin.close()
    return hook


async def test_a_question_that_cannot_be_kept_is_an_error(
    home: House, config: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The store is a file: nobody waits for an answer that can never come, and nothing else is complained of."""
    (tmp_path / "taken").write_text("")
    broken = home.config(store={"path": str(tmp_path / "taken")})
    with pytest.raises(PayloadError, match=r"it could not be kept: Not a directory \(.*taken"):
        await ask(broken, home.root / "config.toml", TEST, timeout_s=20)
    assert "child process" not in caplog.text
