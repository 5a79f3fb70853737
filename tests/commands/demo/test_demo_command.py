"""`hermes demo` as a newcomer starts it: an answered question within a minute, and nothing left of it at the end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hermes.hook import runtime, spool
from hermes.storage import process_lock
from tests.commands.demo.browser import visiting
from tests.harness.listeners import running
from tests.harness.processes import Proc, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("page")

PATIENCE_S = 60.0


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Proc]]:
    """Start `hermes demo`; its temporary folders are made in `tmp` of this test."""
    (tmp_path / "tmp").mkdir()
    started: list[Proc] = []

    def start(*options: str) -> Proc:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path / "tmp"),
            "LANG": "C.UTF-8",
        }
        # What a person has set for the own Hermes is nothing to the demo.
        environ |= {"HERMES_TELEGRAM__TOKEN": "1:x", "HERMES_QUESTIONS__TTL": "1s", "http_proxy": "http://127.0.0.1:9"}
        command = [sys.executable, "-I", "-m", "hermes", "demo", *options]
        proc = Proc(command, cwd=tmp_path, environ=environ, log_dir=tmp_path / "logs", name=f"demo-{len(started)}")
        started.append(proc)
        return proc

    yield start
    for proc in started:
        if proc.alive():
            proc.sigterm(PATIENCE_S)  # it ends its listener, which is in a session of its own
        proc.close()


def address(proc: Proc) -> str:
    """The URL that it prints."""
    return proc.wait_line("Hermes in your browser: ", PATIENCE_S).split()[-1]


def seen(url: str) -> dict[str, Any]:
    """The first that the page is told."""
    with httpx.stream("GET", f"{url}events", timeout=PATIENCE_S) as told:
        line = next(line for line in told.iter_lines() if line.startswith("data: "))
        state: dict[str, Any] = json.loads(line.removeprefix("data: "))
    return state


@pytest.mark.story
def test_a_newcomer_has_answered_within_a_minute(demo: Callable[..., Proc], browser: Browser) -> None:
    """No token, no account, no agent: the page that is printed has a question, and a tap reaches the agent."""
    began = time.monotonic()
    with visiting(browser, address(demo())) as visitor:
        visitor.tap("Which database", "SQLite ⭐")
        assert visitor.received("Fix login flow") == ["SQLite (Recommended)"]
    assert time.monotonic() - began < 60


def asked_by_plugin(url: str) -> None:
    """Let the agent without a port ask, and wait until its question is on the phone."""
    ask = {"do": "ask", "scene": "plugin"}
    httpx.post(f"{url}do", json=ask, headers={"Origin": url[: url.index("/", 8)]}).raise_for_status()
    until(lambda: "Port 8080" in str(seen(url)["messages"]), PATIENCE_S, "the question of the plugin")


@pytest.mark.parametrize(
    "end", ["SIGINT", *(pytest.param(end, marks=pytest.mark.nightly) for end in ("SIGTERM", "SIGHUP"))]
)
def test_the_end_leaves_nothing(end: str, demo: Callable[..., Proc], tmp_path: Path) -> None:
    """After Ctrl-C or with its terminal nothing of it is left: process, folder, lock, socket; nor a complaint."""
    proc = demo()
    url = address(proc)
    asked_by_plugin(url)
    (config,) = (tmp_path / "tmp").glob("hermes-demo-*/config.toml")
    assert config.stat().st_mode & 0o777 == 0o600
    token = tomllib.loads(config.read_text())["telegram"]["token"]
    lock = process_lock.bot_lock(int(token.partition(":")[0]), "/elsewhere")
    assert lock.exists()
    folder = Path(runtime.folder("/elsewhere"))

    def sockets() -> list[Path]:
        return list(folder.glob(f"{spool._key(str(config.parent / 'store'))}*"))

    until(lambda: len(sockets()) == 2, PATIENCE_S, "the listener's socket and the hook's")
    mine = sockets()
    assert running("listen", tmp_path / "tmp")
    proc.signal(signal.Signals[end])
    assert proc.wait(PATIENCE_S) == 0
    assert not list((tmp_path / "tmp").iterdir())
    assert not lock.exists()
    assert not running("listen", tmp_path / "tmp")
    until(lambda: not running("hook", tmp_path / "tmp"), PATIENCE_S, "the end of the hook")
    until(lambda: not any(one.exists() for one in mine), PATIENCE_S, "the end of its sockets")
    assert len(proc.output().splitlines()) == 2
    assert token not in proc.output()


def test_several_machines_have_scripted_agents(demo: Callable[..., Proc]) -> None:
    """Two options that contradict each other are one sentence and status 2."""
    proc = demo("--machines", "2", "--opencode")
    assert proc.wait(PATIENCE_S) == 2
    assert proc.output() == "hermes: --machines has scripted agents: leave --opencode out\n"


def test_its_processes_end_by_themselves_if_it_is_killed(demo: Callable[..., Proc], tmp_path: Path) -> None:
    """`kill -9`: listener and hook end, and no hook can start another listener; the folder stays."""
    proc = demo()
    asked_by_plugin(address(proc))
    assert running("hook", tmp_path / "tmp")
    assert running("listen", tmp_path / "tmp")
    proc.sigkill()
    for word in ("hook", "listen"):
        until(lambda word=word: not running(word, tmp_path / "tmp"), PATIENCE_S, f"the end of the {word}")  # type: ignore[misc]
    assert not list((tmp_path / "tmp").glob("hermes-demo-*/config.toml"))


def test_a_port_that_is_taken_is_one_sentence(demo: Callable[..., Proc]) -> None:
    """Status 1, one sentence, and no listener is left."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        proc = demo("--port", str(port))
        assert proc.wait(PATIENCE_S) == 1
    assert re.fullmatch(rf"hermes: port {port} cannot be used: [^\n]+\n", proc.output())


def test_without_opencode_it_says_so(demo: Callable[..., Proc], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--opencode` where there is none is one sentence and status 1."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    proc = demo("--opencode")
    assert proc.wait(PATIENCE_S) == 1
    assert proc.output() == (
        "hermes: no `opencode` is on the PATH: install it, or leave --opencode out for a scripted agent\n"
    )
