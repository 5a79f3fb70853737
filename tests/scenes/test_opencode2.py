"""OpenCode 2 beside OpenCode 1, with processes: what a new user has who installs a bot and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, get_args

import pytest

from hermes.sandbox.opencode.server import running_agent
from hermes.sandbox.opencode2.server import running_opencode2
from hermes.sandbox.opencode2.turns import Shape
from tests.commands.setup.desk import Desk, a_desk
from tests.harness.processes import Proc, until
from tests.listening import question

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATE = (".local", "state", "opencode")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A home that holds a configuration with the bot alone."""
    with a_desk(tmp_path) as made:
        made.has_config()
        yield made


def listening(desk: Desk) -> Proc:
    """What the service runs."""
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(desk.config)]
    return Proc(command, cwd=desk.root, environ=desk.environ, log_dir=desk.root / "logs", name="listener")


def test_a_file_and_a_running_server_are_enough(desk: Desk) -> None:
    """The server is a process of its own that starts after the listener; the file is only read."""
    file = desk.root.joinpath(*STATE, "service.json")
    server = [sys.executable, "-m", "hermes.sandbox.opencode2.server", "--file", str(file)]
    with ExitStack() as both:
        both.enter_context(listening(desk))
        desk.api.phone.wait_for_poll(30)
        agent = both.enter_context(subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert agent.stdin is not None
        until(file.exists, 30, "the server's file")
        before = file.read_bytes(), file.stat().st_mtime_ns
        until(lambda: "following OpenCode 2.0.26" in log(desk), 30, "the events of the server")
        agent.stdin.write(json.dumps({"do": "ask", "questions": [question()]}) + "\n")
        agent.stdin.flush()
        asked = desk.api.phone.message_with("Which database?", 30)
        desk.api.phone.tap(asked, "SQLite")
        desk.api.phone.message_with("✅ SQLite", 30)
        assert (file.read_bytes(), file.stat().st_mtime_ns) == before
        agent.stdin.close()  # which ends it
        password = json.loads(before[0])["password"]
    assert password not in log(desk)


def log(desk: Desk) -> str:
    """What Hermes has logged."""
    file = desk.store / "log" / "hermes.log"
    return file.read_text() if file.exists() else ""


def test_both_versions_at_once(desk: Desk) -> None:
    """A server of version 1 with a port, one of version 2 given by hand, and one that is found: all three ask."""
    file = desk.root.joinpath(*STATE, "service.json")
    with running_agent() as one, running_opencode2(shape="august") as by_hand, running_opencode2(file=file) as found:
        given = f'[[opencode]]\nname = "one"\nurl = "{one.url}"\n'
        given += f'[[opencode]]\nname = "two"\nurl = "{by_hand.url}"\npassword = "{by_hand.password}"\n'
        desk.has_config(given)
        with listening(desk):
            until(lambda: one.sinks and by_hand.sinks and found.sinks, 30, "three event streams")
            for agent, text in ((one, "One?"), (by_hand, "By hand?"), (found, "Found?")):
                request = agent.ask([question(text)])
                desk.api.phone.tap(desk.api.phone.message_with(text, 30), "SQLite")
                until(lambda agent=agent, request=request: agent.came_of(request), 30, "the answer")  # type: ignore[misc]
                assert agent.came_of(request) == [(("SQLite",),)]


@pytest.mark.parametrize("shape", get_args(Shape))
def test_a_reply_to_a_notice_is_the_next_prompt(desk: Desk, shape: Shape) -> None:
    """The model gets exactly the text, once; the end of its turn is a notice again."""
    file = desk.root.joinpath(*STATE, "service.json")
    desk.has_config('[notices]\nfinished = "0s"\n[prompts]\nenabled = true\n')
    with running_opencode2(file=file, shape=shape) as agent, listening(desk):
        until(lambda: agent.sinks, 30, "the event stream")
        session = agent.session("Fix login flow")
        agent.prompt(session, "Begin")
        agent.say(session, "Both tests pass now.")
        notice = desk.api.phone.message_with("✅ Fix login flow is done", 30)
        desk.api.phone.write("Now rename it to “sign in”, please.", reply_to=notice)
        desk.api.phone.message_with("📨 Sent", 30)
        agent.use_tool(session, "shell")
        desk.api.phone.message_with("▶️ Working · shell", 30)
        assert agent.texts_of(session) == ["Begin", "Now rename it to “sign in”, please."]
        agent.say(session, "Renamed it.")
        desk.api.phone.message_with("✅ Done", 30)
        desk.api.phone.message_with("Renamed it.", 30)
        assert agent.texts_of(session) == ["Begin", "Now rename it to “sign in”, please."]
