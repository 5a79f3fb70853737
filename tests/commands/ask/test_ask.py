"""`hermes ask`: as a script runs it, and as a person in a terminal does."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pexpect
import pytest
from hypothesis import given, strategies as st

from hermes.commands.ask import typed
from hermes.commands.ask.given import of_file, of_options, payload
from hermes.commands.ask.terminal import LATE_S, LOOK_S
from hermes.errors import ConfigError
from hermes.model.ask import Option, Question
from tests.listening import House, house, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

home = house(started=True)
still = house()

ASKED = "Deploy to production?"
CHOICE = ("ask", ASKED, "-o", "Yes::ship it", "-o", "No")
TWO: list[dict[str, Any]] = [
    {
        "question": "Which checks?",
        "header": "Checks",
        "multiple": True,
        "options": [{"label": "Unit"}, {"label": "Load"}],
    },
    {"question": "What is it called?", "header": "Name"},
]


def configured(home: House) -> str:
    """The configuration of the listener that runs, as a file."""
    telegram = (
        f'[telegram]\ntoken = "{home.api.token}"\nchat_id = 1001\nusers = [1001]\napi_base = "{home.api.base_url}"\n'
    )
    config = home.root / "hermes.toml"
    config.write_text(f'{telegram}[store]\npath = "{home.store}"\n[log]\nfile = "{home.root / "log"}"\n')
    config.chmod(0o600)
    return str(config)


async def script(home: House, *words: str, said: bytes | None = None) -> asyncio.subprocess.Process:
    """Start Hermes as a script does: nobody sits there."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "hermes", *words, "--config", configured(home))
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    process.stdin.write(said or b"")
    process.stdin.close()
    return process


async def until_line(stream: asyncio.StreamReader, last: bytes) -> AsyncIterator[bytes]:
    """What is said before this line."""
    while (line := await stream.readline()) not in {last, b""}:
        yield line


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """What it came to: its status and what it printed."""
    out, _ = await process.communicate()
    return process.returncode, out.decode()


async def runs_out(home: House) -> None:
    """Let thirty seconds of the listener's pass once the question is on the phone."""
    await home.person.sees(ASKED, buttons=True)
    await until(lambda: home.entry().timing.posted_s, "its time to answer begins")
    home.clock.advance(21)
    await home.person.sees("⏰")
    home.clock.advance(10)


# --- in a script --------------------------------------------------------------------------------------------------


async def test_the_answer_is_all_that_is_printed(home: House) -> None:
    """On standard output, the exact label; what is said besides goes to standard error."""
    asking = await script(home, *CHOICE)
    asked = await home.person.sees(ASKED, buttons=True)
    assert "A script on" in asked.text
    assert "ship it" in asked.text
    assert asking.stderr is not None
    while (said := await asking.stderr.readline()) != b"Asked on your phone.\n":
        assert said.startswith(b"It is not on your phone yet"), said  # a slow machine
    home.person.tap(asked, "Yes")
    assert await ended(asking) == (0, "Yes\n")
    await home.closed()


async def test_several_questions_come_from_a_file(home: House) -> None:
    """In the shape of OpenCode's `questions`; each answer is a line, and all of it one JSON object where wanted."""
    asking = await script(home, "ask", "--file", "-", "--json", said=json.dumps({"questions": TWO}).encode())
    asked = await home.person.sees("Which checks?", buttons=True)
    for label in ("Load", "Unit", "Name ▶"):
        await home.person.taps(asked, label)
    home.person.write("Owl", to=asked)
    await home.person.sees("Ready to send?")
    await home.person.taps(asked, "Send")
    status, out = await ended(asking)
    assert (status, json.loads(out)) == (0, {"kind": "answer", "answers": [["Load", "Unit"], ["Owl"]], "by": "phone"})


async def test_what_comes_by_standard_input_is_utf_8_as_a_file_is(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is, whatever the encoding of the terminal."""
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    text = json.dumps([{"question": "Größe?", "options": [{"label": "Übergroß"}]}], ensure_ascii=False)
    asking = await script(home, "ask", "--file", "-", said=text.encode())
    home.person.tap(await home.person.sees("Größe?", buttons=True), "Übergroß")
    out, _ = await asking.communicate()
    assert (asking.returncode, out) == (0, "Übergroß\n".encode("latin-1"))


@pytest.mark.parametrize(
    ("button", "sure", "status", "words"),
    [("⏹ Stop", "Yes, stop", 10, "Stopped on the phone."), ("⏭ Skip", "Yes", 12, "Skipped on the phone.")],
)
async def test_a_stop_and_a_skip_print_no_answer(home: House, button: str, sure: str, status: int, words: str) -> None:
    """Each has a status of its own, and a line about it."""
    asking = await script(home, *CHOICE)
    asked = await home.person.sees(ASKED, buttons=True)
    await home.person.taps(asked, button)
    await until(lambda: "Back" in str(home.person.message(asked.message_id).labels), "the second question")
    await home.person.taps(asked, sure)
    out, err = await asking.communicate()
    assert (asking.returncode, out) == (status, b"")
    assert err.decode().splitlines()[-1] == words


@pytest.mark.parametrize(("label", "status", "words"), [("Yes", 0, ""), ("No", 13, "The answer is no.")])
async def test_yes_or_no_is_told_by_the_status(home: House, label: str, status: int, words: str) -> None:
    """So that `hermes ask --yes-no … && ./deploy` deploys after a yes alone; other words are no answer."""
    asking = await script(home, "ask", ASKED, "--yes-no")
    asked = await home.person.sees(ASKED, buttons=True)
    assert not [label for label in asked.labels if "Other" in str(label)]
    await home.person.taps(asked, label)
    out, err = await asking.communicate()
    assert (asking.returncode, out.decode()) == (status, f"{label}\n")
    assert words in err.decode()


async def test_an_option_that_says_no_is_an_answer(home: House) -> None:
    """The script compares what is printed."""
    asking = await script(home, *CHOICE)
    await home.person.taps(await home.person.sees(ASKED, buttons=True), "No")
    assert await ended(asking) == (0, "No\n")


@pytest.mark.parametrize(
    ("rule", "status", "printed"),
    [
        (("--on-expiry", "recommended", "--recommended", "2"), 0, "No\n"),
        (("--on-expiry", "keep"), 11, ""),
        ((), 11, ""),
    ],
)
async def test_time_that_ran_out_is_told(home: House, rule: tuple[str, ...], status: int, printed: str) -> None:
    """By a status of its own, unless what was recommended is to be taken; the time is the script's own."""
    asking = await script(home, *CHOICE, "--timeout", "30s", *rule)
    await runs_out(home)
    assert await ended(asking) == (status, printed)
    await home.closed()


async def test_a_script_without_a_terminal_cannot_be_left_to_the_computer(home: House) -> None:
    """It is gone once its time has run out: nobody is sent to it, before the end or after."""
    asking = await script(home, *CHOICE, "--timeout", "30s", "--on-expiry", "keep", "--json")
    await home.person.sees(ASKED, buttons=True)
    home.clock.advance(21)
    assert "will be told to stop" in (await home.person.sees("⏰")).text
    home.clock.advance(10)
    status, out = await ended(asking)
    assert (status, json.loads(out)) == (11, {"kind": "reject", "answers": [], "by": "timer"})
    await home.closed()
    texts = " ".join(message.text for message in home.person.shown())
    assert "was told to stop" in texts
    assert "computer" not in texts


async def test_a_question_that_reaches_no_phone_is_given_up_in_its_time(still: House) -> None:
    """Its time to answer never begins, and the script does not wait for ever."""
    # The hook starts a listener where there is none: that one reaches nobody either.
    still.api.control.fault(method="*", action="error", status=502, times=10_000)
    asking = await script(still, *CHOICE, "--timeout", "5s")
    _, err = await asking.communicate()
    assert asking.returncode == 11
    assert "It did not reach your phone in that time; `hermes status` says why." in err.decode().splitlines()
    assert "Asked on your phone." not in err.decode()


async def test_a_question_to_a_locked_phone_is_given_up_in_its_time(home: House) -> None:
    """Its time to answer stands still under the lock, and the script does not wait for ever."""
    await home.listener._store.lock_phone()
    asking = await script(home, *CHOICE, "--timeout", "3s")
    _, err = await asking.communicate()
    assert asking.returncode == 11
    assert "The phone is locked: it takes no answer until `hermes unlock`." in err.decode().splitlines()
    await home.closed()


async def test_a_time_that_is_over_before_the_question_is_kept_is_no_error(still: House) -> None:
    """On a busy machine the hook may not have begun by then: nobody answered, and the store is blamed for nothing."""
    asking = await script(still, *CHOICE, "--timeout", "1ms")
    _, err = await asking.communicate()
    assert asking.returncode == 11
    assert err.decode().splitlines() == [
        "It did not reach your phone in that time; `hermes status` says why.",
        "Nobody answered in time.",
    ]


async def test_a_hook_that_is_ended_from_outside_is_an_error(home: House) -> None:
    """It is no answer, and no end of the time."""
    asking = await script(home, *CHOICE)
    await home.person.sees(ASKED, buttons=True)
    (lock,) = (home.store / "wait").glob("*.lock")
    os.kill(int(lock.name.split(".")[1]), signal.SIGKILL)
    _, err = await asking.communicate()
    assert asking.returncode == 1
    assert "was ended from outside" in err.decode()


async def test_a_script_that_is_stopped_takes_its_question_back(home: House) -> None:
    """Interrupted, with 130; the phone says that nobody needs it any more."""
    asking = await script(home, *CHOICE)
    asked = await home.person.sees(ASKED, buttons=True)
    asking.send_signal(signal.SIGINT)
    assert (await ended(asking))[0] == 130
    await home.closed()
    assert "no longer needs this" in home.person.message(asked.message_id).text


async def test_a_script_that_is_killed_takes_its_question_back(home: House) -> None:
    """Whatever happens to it, its hook sees that it is gone."""
    asking = await script(home, *CHOICE)
    asked = await home.person.sees(ASKED, buttons=True)
    asking.kill()
    await asking.wait()
    await home.closed()
    assert "no longer needs this" in home.person.message(asked.message_id).text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("ask",), "give the question, or --file"),
        (("ask", "x", "--file", "y"), "not both"),
        (("ask", "x", "--timeout", "soon"), '--timeout is "soon", which is not a duration; write 90s'),
        (("ask", "x", "--timeout", "0s"), "nobody answers in no time"),
        (("ask", "x", "-o", "a", "--recommended", "2"), "--recommended: there is no choice 2; the last one is 1."),
        (("ask", "x", "--yes-no", "--recommended", "3"), "--recommended: there is no choice 3; the last one is 2."),
        (("ask", "x", "--recommended", "1"), "--recommended: there is no choice to mark; give -o."),
        (("ask", "x", "--multiple"), "without options (-o) there is nothing to choose"),
        (("ask", "--file", "/nowhere"), "/nowhere cannot be read (No such file"),
        (("ask", "--file", "-"), "standard input is not JSON (line 1, column 1: Expecting value)"),
        (("ask", "x", "--no-custom"), "without options (-o)"),
        (("ask", " "), "the question is empty"),
        (("ask", "x", "-o", "a", "-o", "::why"), "an option (-o) is empty"),
        (("ask", "x", "-o", "a\udcfe.txt"), "an option (-o) is not UTF-8"),
        (("ask", "--file", "y", "-o", "a"), "--file says all of its questions"),
        (("ask", "--file", "y", "--header", "h"), "--file says all of its questions"),
        (("ask", "x", "--yes-no", "-o", "a"), "--yes-no brings its own two choices"),
        (("ask", "x", "--yes-no", "--multiple"), "--yes-no brings its own two choices"),
        (("ask", "--file", "y", "--yes-no"), "--yes-no brings its own two choices"),
    ],
)
async def test_what_cannot_be_asked_is_said_in_a_sentence(still: House, words: tuple[str, ...], why: str) -> None:
    """Status 2, and nothing is asked."""
    asking = await script(still, *words)
    _, err = await asking.communicate()
    assert asking.returncode == 2
    assert why in err.decode()
    assert not still.store.exists()


# --- in a terminal ------------------------------------------------------------------------------------------------


@pytest.fixture
async def terminal(home: House) -> AsyncIterator[Any]:
    """Start Hermes where somebody sits."""
    started: list[pexpect.spawn[str]] = []

    def start(*words: str) -> pexpect.spawn[str]:
        arguments = ["-m", "hermes", *words, "--config", configured(home)]
        process = pexpect.spawn(sys.executable, arguments, timeout=30, encoding="utf-8", dimensions=(40, 100))
        started.append(process)
        return process

    yield start
    for process in started:
        process.close(force=True)


async def shows(process: pexpect.spawn[str], text: str) -> None:
    """Wait for this on the screen."""
    await asyncio.to_thread(process.expect_exact, text)


async def status_of(process: pexpect.spawn[str]) -> int | None:
    """Wait for its end."""
    await asyncio.to_thread(process.expect, pexpect.EOF)
    process.close()
    return process.exitstatus


async def test_the_terminal_may_answer_first(home: House, terminal: Any) -> None:
    """The same question, by its number; the phone says that it was answered on the computer."""
    process = terminal(*CHOICE)
    await shows(process, "Type a number, or your own words.")
    asked = await home.person.sees(ASKED, buttons=True)
    await shows(process, "It is on your phone, too")
    process.sendline("7 eleven")
    await shows(process, "7 eleven")
    assert await status_of(process) == 0
    await home.closed()
    assert "🖥" in home.person.message(asked.message_id).text
    assert "7 eleven" in home.person.message(asked.message_id).text


async def test_the_phone_may_answer_first(home: House, terminal: Any) -> None:
    """The terminal says so, prints the answer and takes no more."""
    process = terminal(*CHOICE)
    await shows(process, "Type a number, or your own words.")
    home.person.tap(await home.person.sees(ASKED, buttons=True), "Yes")
    await shows(process, "Answered on the phone.")
    await shows(process, "Yes")
    assert await status_of(process) == 0


async def test_several_questions_are_answered_one_after_the_other(home: House, terminal: Any, tmp_path: Path) -> None:
    """What is no answer is said to be none, also a number that names no choice; several choices are several numbers."""
    file = tmp_path / "questions.json"
    file.write_text(json.dumps([{**TWO[0], "custom": False}, TWO[1]]))
    process = terminal("ask", "--file", str(file))
    await shows(process, "1/2 Which checks?")
    process.sendline("what")
    await shows(process, "That is not an answer here. Type numbers, such as 1,2.")
    process.sendline("1,3")
    await shows(process, "There is no choice 3. Type numbers, such as 1,2.")
    process.sendline("2,1")
    await shows(process, "2/2 What is it called?")
    process.sendline("Owl")
    await shows(process, "Checks: Load, Unit")
    await shows(process, "Name: Owl")
    assert await status_of(process) == 0
    await home.closed()


async def test_who_types_no_more_waits_for_the_phone(home: House, terminal: Any) -> None:
    """Ctrl-D; the question stays on the phone."""
    process = terminal(*CHOICE)
    await shows(process, "Type a number")
    process.sendeof()
    await shows(process, "I wait for your phone.")
    home.person.tap(await home.person.sees(ASKED, buttons=True), "No")
    await shows(process, "No")
    assert await status_of(process) == 0


async def test_a_question_that_the_phone_let_go_stays_in_the_terminal(home: House, terminal: Any) -> None:
    """Nobody answered in time: the buttons go, the phone says where it can be answered, and there it can."""
    process = terminal(*CHOICE, "--timeout", "30s", "--on-expiry", "keep")
    await runs_out(home)
    await shows(process, "You still can, here.")
    await home.closed()
    await home.person.sees("it can still be answered on the computer.")
    process.sendline("2")
    await shows(process, "No")
    assert await status_of(process) == 0


async def test_who_waited_for_the_phone_alone_is_asked_again(home: House, terminal: Any) -> None:
    """The phone and the terminal both say that it can still be answered there."""
    process = terminal(*CHOICE, "--timeout", "30s", "--on-expiry", "keep")
    await shows(process, "Type a number")
    process.sendeof()
    await shows(process, "I wait for your phone.")
    await runs_out(home)
    await shows(process, "You still can, here.")
    await shows(process, "Type a number")
    process.sendline("2")
    await shows(process, "No")
    assert await status_of(process) == 0


async def test_what_the_phone_let_go_had_reached_it(home: House, terminal: Any) -> None:
    """The terminal's own watch over the time, for what reaches no phone, says nothing then."""
    process = terminal(*CHOICE, "--timeout", "5s", "--on-expiry", "keep")
    await shows(process, "It is on your phone, too")
    home.clock.advance(4)
    await home.person.sees("⏰")
    home.clock.advance(4)
    await shows(process, "You still can, here.")
    await asyncio.sleep(5)  # the terminal's own watch is over by then: nothing tells that it says nothing
    process.sendline("2")
    assert await status_of(process) == 0
    assert "did not reach" not in process.before


async def test_a_question_that_reaches_no_phone_ends_in_the_terminal_too(home: House, terminal: Any) -> None:
    """In the time that was given, with its status; nobody is told that it could still be answered."""
    home.api.control.fault(method="*", action="error", status=502, times=10_000)
    process = terminal(*CHOICE, "--timeout", "5s")
    await shows(process, "It did not reach your phone in that time; `hermes status` says why.")
    assert await status_of(process) == 11
    assert "You still can" not in process.before


async def test_what_reaches_no_phone_stays_in_the_terminal_if_it_is_kept(home: House, terminal: Any) -> None:
    """As `keep` says; no word comes of the phone any more."""
    home.api.control.fault(method="*", action="error", status=502, times=10_000)
    process = terminal(*CHOICE, "--timeout", f"{LATE_S - 3:.0f}s", "--on-expiry", "keep")
    await shows(process, "You still can, here.")
    said_s = time.monotonic() + 3 + 2 * LOOK_S
    await until(lambda: time.monotonic() > said_s, "the moment at which it would be said")
    process.sendline("2")
    assert await status_of(process) == 0
    assert "It is not on your phone yet" not in process.before


async def test_a_terminal_of_another_session_takes_no_answers(home: House) -> None:
    """As after `setsid`, or where a program starts scripts in sessions of their own: somebody else types there."""
    main, other = pty.openpty()
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "hermes", *CHOICE, "--config", configured(home))
    asking = await asyncio.create_subprocess_exec(
        *command, stdin=other, stdout=pipe, stderr=other, start_new_session=True
    )
    os.close(other)
    home.person.tap(await home.person.sees(ASKED, buttons=True), "Yes")
    assert await ended(asking) == (0, "Yes\n")
    assert b"Type a number" not in os.read(main, 65536)
    os.close(main)


async def test_ctrl_c_takes_the_question_back(home: House, terminal: Any) -> None:
    """In a word, without a traceback."""
    process = terminal(*CHOICE)
    asked = await home.person.sees(ASKED, buttons=True)
    process.sendintr()
    await shows(process, "Stopped; the question is taken back.")
    assert await status_of(process) == 130
    await home.closed()
    assert "no longer needs this" in home.person.message(asked.message_id).text


# --- what was given, and what was typed ---------------------------------------------------------------------------

COLOURS = Question("Which?", options=(Option("Red"), Option("Dark blue"), Option("1")), multiple=True, custom=False)


EITHER = Question("Which?", options=(Option("Yes"), Option("No")))


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("1\n", ("1",)),  # a label comes before a number
        ("2", ("Dark blue",)),
        ("2 3", ("Dark blue", "1")),
        ("Dark blue, Red", ("Dark blue", "Red")),
        ("2,2", ("Dark blue",)),
        ("Green", None),
        ("Red, Green", None),
        ("red, DARK BLUE", ("Red", "Dark blue")),
        ("", None),
    ],
)
def test_what_a_line_means(line: str, labels: tuple[str, ...] | None) -> None:
    """Labels and numbers, in the order typed; what is neither is none where words of one's own are none."""
    assert typed.answer(COLOURS, line) == labels


@given(st.text())
def test_any_line_with_a_letter_is_an_answer(line: str) -> None:
    """Where words of one's own count."""
    assert typed.answer(EITHER, f"{line}x") == (f"{line}x".strip(),)


@pytest.mark.parametrize(
    ("question", "line", "labels"),
    [
        (EITHER, "3", None),
        (EITHER, "1 2", None),
        (EITHER, "3 days", ("3 days",)),
        (EITHER, "-1", ("-1",)),
        (replace(EITHER, multiple=True), "1,3", None),
        (replace(EITHER, multiple=True), "1 2 foo", ("1 2 foo",)),
        (Question("How many?"), "3", ("3",)),
    ],
)
def test_a_mistyped_number_is_no_answer(question: Question, line: str, labels: tuple[str, ...] | None) -> None:
    """Where there are options, numbers alone name some of them; with a word beside them, they are one's own words."""
    assert typed.answer(question, line) == labels


@pytest.mark.parametrize(
    ("line", "labels"),
    [("y", ("Yes",)), ("N", ("No",)), ("yes", ("Yes",)), ("NO", ("No",)), ("nope", None), ("s", None)],
)
def test_yes_and_no_are_typed_as_in_any_terminal(line: str, labels: tuple[str, ...] | None) -> None:
    """In capital or small letters, or by the first one."""
    assert typed.answer(replace(EITHER, custom=False), line) == labels


@pytest.mark.parametrize(
    ("labels", "line", "answer"),
    [(("Y", "N"), "y", "Y"), (("y", "n"), "Y", "y"), (("N", "No"), "n", "N"), (("Yes", ""), "y", "Yes")],
)
def test_a_letter_that_is_a_label_is_that_one(labels: tuple[str, str], line: str, answer: str) -> None:
    """Only else it is the beginning of yes or no."""
    question = Question("Which?", options=tuple(map(Option, labels)), custom=False)
    assert typed.answer(question, line) == (answer,)


def test_a_line_that_could_be_two_labels_is_neither() -> None:
    """Only their letters tell these two apart: a line that is exactly one of them is that one."""
    question = Question("Which?", options=(Option("Us"), Option("US")), custom=False)
    assert [typed.answer(question, line) for line in ("us", "US")] == [None, ("US",)]


def test_an_option_may_say_why() -> None:
    """After two colons; all that follows is the reason."""
    (asked,) = of_options("Which?", ["a::b::c", "d"], recommended=2)
    assert asked["options"] == [{"label": "a", "description": "b::c"}, {"label": "d", "description": ""}]
    assert asked["recommended"] == 1


@pytest.mark.parametrize("wrong", [None, [], {}, [5], [{"question": "x", "recommended": 0}], [{"question": 1}]])
def test_questions_of_another_shape_are_refused(wrong: object, tmp_path: Path) -> None:
    """With the place that is wrong, before anything is asked."""
    file = tmp_path / "file.json"
    file.write_text(json.dumps(wrong))
    with pytest.raises(ConfigError, match=r"questions|there is no question"):
        payload(of_file(str(file), sys.stdin.buffer), asker="x", directory="/", timeout=None, on_expiry=None)
