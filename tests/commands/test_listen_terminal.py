"""A command in a terminal speaks to the person who started it; elsewhere `hermes listen` writes its log."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.commands.setup.desk import CTRL_C, Desk, Terminal, a_desk
from tests.harness.processes import Proc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "Which\x1b[2J\u202e one?"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk that is set up."""
    with a_desk(tmp_path) as ready:
        ready.has_config()
        yield ready


def listens(desk: Desk, *options: str, word: str = "listen") -> Terminal:
    """`hermes listen`, or another command, in a terminal."""
    command = [sys.executable, "-I", "-m", "hermes", word, "--config", str(desk.config), *options]
    return Terminal(command, desk.environ, desk.root, columns=desk.columns, lines=desk.lines)


def asks(desk: Desk, question: str) -> Proc:
    """A program that asks."""
    asked = desk.root / "asked.json"
    options = [{"label": "Yes"}, {"label": "No"}]
    asked.write_text(json.dumps({"questions": [{"question": question, "options": options}], "directory": "/x/shop"}))
    hook = [sys.executable, "-I", "-m", "hermes", "hook", "generic", "--config", str(desk.config)]
    command = ["/bin/sh", "-c", 'exec "$@" <"$0"', str(asked), *hook]
    return Proc(command, cwd=desk.root, environ=desk.environ, log_dir=desk.root / "logs", name="asks")


def test_a_person_reads_who_listens_and_what_is_asked(desk: Desk) -> None:
    """Who, for whom, how to stop it; a line for each question and each answer; nothing of the log."""
    with listens(desk) as terminal:
        terminal.sees("Listening as @hermes_demo_bot for Ann. Ctrl-C stops.")
        with asks(desk, HOSTILE):
            terminal.sees("On your phone: Which one? (shop)")
            desk.api.phone.tap(desk.api.phone.message_with("one?", 30), "Yes")
            terminal.sees("Which one? (shop): ✅ Yes")
        terminal.presses(CTRL_C)
        assert terminal.ends() == 0
        shown = [line for line in terminal.screen().splitlines() if line]
    assert [re.sub(r"^(\^C)?\d\d:\d\d  ", "", line) for line in shown] == [
        "Listening as @hermes_demo_bot for Ann. Ctrl-C stops.",
        "On your phone: Which one? (shop)",
        "Which one? (shop): ✅ Yes",
        "Stopped. What is open stays on the phone.",
    ]
    assert "one?" not in (desk.root / ".local/state/hermes/log/hermes.log").read_text()


def test_a_reaper_has_no_words_for_a_person_if_all_is_well(desk: Desk) -> None:
    """Its log goes to the file."""
    with listens(desk, word="reap") as terminal:
        assert terminal.ends() == 0
        assert not terminal.screen().strip()
    assert "INFO" in (desk.root / ".local/state/hermes/log/hermes.log").read_text()


@pytest.mark.parametrize("word", ["lock", "unlock", "stop"])
def test_a_log_that_cannot_be_opened_is_told_as_to_a_person(desk: Desk, word: str) -> None:
    """Without the level and the module of the event."""
    (desk.root / ".local/state/hermes/log/hermes.log").mkdir(parents=True)
    with listens(desk, word=word) as terminal:
        assert terminal.ends() == 0
        assert "! the log file " in terminal.screen()
        assert "WARNING" not in terminal.screen()


def test_trouble_is_told(desk: Desk) -> None:
    """Telegram is away from the first call on."""
    desk.api.control.fault(method="getMe", action="cut", times=9)
    desk.api.control.fault(method="getUpdates", status=409, times=1)
    with listens(desk) as terminal:
        terminal.sees("Listening, but: Telegram cannot be reached (getMe). It is tried again. Ctrl-C stops.")
        terminal.sees("! no updates from Telegram: another program receives the updates of this bot")


@pytest.mark.parametrize(
    ("option", "line"), [("--log-lines", "INFO hermes.listener.daemon: "), ("--log-json", '{"at"')]
)
def test_the_log_comes_if_it_is_asked_for(desk: Desk, option: str, line: str) -> None:
    """Also at a terminal."""
    with listens(desk, option) as terminal:
        terminal.sees(line)
        terminal.sees("listening for bot")


def test_the_log_comes_where_no_terminal_is(desk: Desk) -> None:
    """As a service has it."""
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(desk.config)]
    with Proc(command, cwd=desk.root, environ=desk.environ, log_dir=desk.root / "logs", name="listener") as process:
        desk.api.phone.wait_for_poll(30)
        process.sigterm()
        assert "INFO hermes.listener.daemon: listening for bot" in process.output()
