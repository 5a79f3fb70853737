"""Calls to the plugin through its folder: in Node, with an OpenCode that only says what it was asked."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hermes.agents.http import Api
from hermes.agents.opencode import install
from hermes.agents.opencode.folder_transport import FolderTransport
from hermes.errors import AgentAway, AgentRefused, NotThere
from hermes.hook import plugin_folders
from tests.harness.node import node
from tests.harness.processes import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = "/home/dev/ä b 100%"
SHORT = httpx.Timeout(0.5)
DRIVER = """
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"
const [, , file, ...directories] = process.argv
const said = (status, type) => ({ ok: status < 300, status, headers: new Headers(type && { "content-type": type }) })
const json = "application/json"
const send = (method) => async ({ url, ...more }) => {
  console.log(JSON.stringify({ method, url, ...more }))
  if (url.endsWith("away")) throw new Error("away")
  if (url.endsWith("large")) return { data: "x".repeat(9 << 20), response: said(200, json) }
  if (url.endsWith("gone")) return { error: { message: "no" }, response: said(404, json) }
  if (url.endsWith("async")) return { data: {}, response: said(204) }
  return { data: JSON.stringify([method, url]), response: said(200, json) }
}
const client = { _client: { get: send("get"), post: send("post") } }
const [plugin] = Object.values(await import(pathToFileURL(file)))
const hooks = []
for (const directory of directories) hooks.push(await plugin({ client, directory }))
createInterface({ input: process.stdin }).on("line", (line) => hooks[0].event({ event: JSON.parse(line) }))
"""
Json = dict[str, Any]


class Process:
    """A process with the plugin."""

    def __init__(self, root: Path, *directories: str) -> None:
        self.store = root / "store"
        file, driver = root / "plugin.mjs", root / "driver.mjs"
        names = {"store": "store", "log": "hermes.log", "config": "config.toml"}
        settings = {"python": sys.executable} | {key: str(root / name) for key, name in names.items()}
        file.write_text(install.PLUGIN.text(settings))
        driver.write_text(DRIVER)
        self._said = (root / "said").open("wb")
        self.process = subprocess.Popen(
            [node(), driver, file, *directories],
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=subprocess.STDOUT,
        )
        self._root = root

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()
        self._said.close()

    def tell(self, kind: str, **properties: Any) -> None:
        """Let OpenCode tell of an event."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"type": kind, "properties": properties}).encode() + b"\n")
        self.process.stdin.flush()

    def asked(self) -> list[Json]:
        """What OpenCode was asked."""
        return [json.loads(line) for line in (self._root / "said").read_text().splitlines()]

    def folder(self) -> Path:
        """Wait for the one folder of the plugin."""

        def one() -> Path:
            found = plugin_folders.plugins(self.store)
            assert len(found) == 1
            return Path(found[0].folder)

        return until(one, 20, "the folder")

    def api(self) -> Api:
        """Return calls to it."""
        return Api("plugin", "http://plugin", transport=FolderTransport(self.folder()))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Start a process with the plugin in these folders; prompts are on unless the test says otherwise."""
    running = []

    def begin(*directories: str, on: bool = True) -> Process:
        (tmp_path / "store").mkdir(mode=0o700)
        if on:
            (tmp_path / "store" / "takes-prompts").touch()
        running.append(Process(tmp_path, *(directories or (HERE,))))
        return running[-1]

    yield begin
    for process in running:
        process.close()


def lay(folder: Path, name: str = "call.json", text: str | None = None, **more: Any) -> Path:
    """Lay a call by hand; return where its answer will be."""
    usual: Json = {"method": "GET", "path": "/agent", "query": {}, "directory": HERE, "body": None}
    made = folder / f".{name}.tmp"
    made.write_text(json.dumps(usual | more) if text is None else text)
    made.rename(folder / "in" / name)
    return folder / "out" / name


def answer(path: Path) -> Json:
    """Wait for the answer at this path."""
    until(path.exists, 20, "an answer")
    told: Json = json.loads(path.read_text())
    return told


async def test_a_call_reaches_opencode_in_its_folder(start: Callable[..., Process]) -> None:
    """With its directory, its body, and of its query the limit; the answer comes back as it was."""
    process = start(HERE, "/other")
    api = process.api()
    assert json.loads(await api.call("GET", "/session/ses_1/message", HERE, params={"limit": 20, "x": "y"})) == [
        "get",
        "/session/ses_1/message",
    ]
    body = {"parts": [{"text": "ä\U0001f600"}]}
    assert await api.call("POST", "/session/ses_1/prompt_async", "/other", body=body) == b""
    await api.call("POST", "/session", HERE, body={})
    first, second, third = process.asked()
    assert (first["method"], first["query"]) == ("get", {"limit": 20})
    assert first["headers"]["x-opencode-directory"] == "%2Fhome%2Fdev%2F%C3%A4%20b%20100%25"
    assert second["headers"]["x-opencode-directory"] == "%2Fother"
    assert second["body"] == body
    assert third["body"] == {}
    folder = process.folder()
    assert [path.name for path in sorted(folder.rglob("*"))] == ["in", "out", "plugin.json"]


async def test_a_call_does_not_wait_for_the_next_look(start: Callable[..., Process]) -> None:
    """The system tells of it: with looks alone, each of these would take a second."""
    api = start().api()
    began_s = time.monotonic()
    for _ in range(12):
        await api.call("GET", "/agent", HERE)
    assert time.monotonic() - began_s < 8


async def test_refusals_mean_what_they_mean_over_http(start: Callable[..., Process]) -> None:
    """404 is nothing there, too large is refused, and a client that throws is away."""
    api = start().api()
    with pytest.raises(NotThere):
        await api.call("GET", "/session/gone", HERE)
    with pytest.raises(AgentRefused, match="413"):
        await api.call("GET", "/session/large", HERE)
    with pytest.raises(AgentAway):
        await api.call("GET", "/session/away", HERE)
    with pytest.raises(AgentRefused, match="413"):
        await api.call("POST", "/session", HERE, body={"x": "x" * (8 << 20)})


@pytest.mark.parametrize(
    "call",
    [
        {"path": "/session/ses_1/shell", "method": "POST"},
        {"path": "/session/ses_1/command", "method": "POST"},
        {"path": "/session/ses_1", "method": "DELETE"},
        {"path": "/session/ses_1", "method": "POST"},
        {"path": "/session/../config"},
        {"path": "/session/ses_1%2Fshell"},
        {"path": "/session/ses_1/message?directory=/etc"},
        {"path": "/agent\n"},
        {"path": "/config"},
        {"path": ["/agent"]},
        {"path": None},
        {"method": "get"},
        {"method": "constructor"},
        {"directory": "/etc"},
        {"directory": None},
        {"text": "{"},
        {"text": "null"},
        {"text": ""},
        {"text": " " * (8 << 20) + "{}"},
    ],
    ids=lambda call: json.dumps(call)[:60],
)
def test_other_calls_are_refused(start: Callable[..., Process], call: Json) -> None:
    """The folder is a way in: only what prompts need passes, in folders that are open there."""
    process = start()
    folder = process.folder()
    assert answer(lay(folder, **call)) == {"status": 403}
    assert answer(lay(folder, "good.json"))["status"] == 200
    assert [one["url"] for one in process.asked()] == ["/agent"]


def test_what_is_no_file_is_refused(start: Callable[..., Process], tmp_path: Path) -> None:
    """Neither a link, a folder nor a pipe holds the plugin up; nothing else is touched."""
    process = start()
    folder = process.folder()
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"method": "GET", "path": "/agent", "directory": HERE}))
    (folder / "in" / "link.json").symlink_to(secret)
    (folder / "in" / "folder.json").mkdir()
    os.mkfifo(folder / "in" / "pipe.json")
    (folder / "in" / "other.txt").write_text("")
    for name in ("link.json", "folder.json", "pipe.json"):
        assert answer(folder / "out" / name) == {"status": 403}
    assert answer(lay(folder, "good.json"))["status"] == 200
    assert [one["url"] for one in process.asked()] == ["/agent"]
    assert secret.exists()
    assert [path.name for path in (folder / "in").iterdir()] == ["other.txt"]


@pytest.mark.parametrize("which", ["store", "store/plugins", "own", "in", "out"])
def test_folders_that_others_can_reach_are_not_used(start: Callable[..., Process], tmp_path: Path, which: str) -> None:
    """What lies in them is taken when they are private again."""
    process = start()
    folder = process.folder()
    place = {"own": folder, "in": folder / "in", "out": folder / "out"}.get(which, tmp_path / which)
    place.chmod(0o770)
    with suppress(AssertionError):  # a look that had begun before may still take this one
        until(lay(folder, "early.json").exists, 1.0, "an answer")
    asked = process.asked()
    there = lay(folder)
    with pytest.raises(AssertionError):
        until(there.exists, 2.5, "an answer")
    assert process.asked() == asked
    place.chmod(0o700)
    assert answer(there)["status"] == 200


def removed(folder: Path) -> None:
    """Remove a folder at once, as one step: the plugin makes its own again meanwhile."""
    elsewhere = folder.rename(folder.with_name(f"{folder.name}-gone"))
    shutil.rmtree(elsewhere)


def test_a_folder_that_was_removed_is_made_again(start: Callable[..., Process], tmp_path: Path) -> None:
    """Also the store; but the plugin never makes a store itself."""
    process = start()
    folder = process.folder()
    removed(folder)
    assert process.folder() == folder
    assert answer(lay(folder))["status"] == 200
    removed(tmp_path / "store")
    process.tell("session.status", sessionID="ses_1", status={"type": "busy"})
    with pytest.raises(AssertionError):
        until((tmp_path / "store").exists, 2.5, "a store")
    (tmp_path / "store").mkdir(mode=0o700)
    (tmp_path / "store" / "takes-prompts").touch()
    assert process.folder() == folder
    assert answer(lay(folder, "again.json"))["status"] == 200


def test_the_folder_is_there_while_prompts_are_on(start: Callable[..., Process], tmp_path: Path) -> None:
    """Whenever they are turned on; and nothing is taken while they are off."""
    process = start(on=False)
    with pytest.raises(AssertionError):
        until((tmp_path / "store" / "plugins").exists, 2.5, "a folder")
    (tmp_path / "store" / "takes-prompts").touch()
    folder = process.folder()
    assert answer(lay(folder))["status"] == 200
    (tmp_path / "store" / "takes-prompts").unlink()
    # A look that had begun before may still take the first one.
    assert any(is_left_lying(folder, name) for name in ("later.json", "last.json"))


def is_left_lying(folder: Path, name: str) -> bool:
    """Lay a call, and tell whether it gets no answer in the time of two looks."""
    try:
        until(lay(folder, name).exists, 2.5, "an answer")
    except AssertionError:
        return True
    return False


async def test_a_call_that_nobody_took_is_withdrawn(start: Callable[..., Process]) -> None:
    """A process that was stopped does not make it when it goes on."""
    process = start()
    api, folder = process.api(), process.folder()
    process.process.send_signal(signal.SIGSTOP)
    with pytest.raises(AgentAway):
        await api.call("GET", "/agent", HERE, timeout=SHORT)
    cancelled = asyncio.create_task(api.call("GET", "/command", HERE))
    await asyncio.sleep(0.1)
    assert len(list((folder / "in").iterdir())) == 1
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert list((folder / "in").iterdir()) == []
    process.process.send_signal(signal.SIGCONT)
    await api.call("GET", "/session", HERE)
    assert [one["url"] for one in process.asked()] == ["/session"]


def test_a_plugin_tells_where_it_works_and_whether_it_lives(start: Callable[..., Process]) -> None:
    """The sessions of its events, each once; one that was deleted is no more."""
    process = start(HERE, "/other")
    process.folder()
    process.tell("session.status", sessionID="ses_1", status={"type": "busy"})
    process.tell("message.updated", info={"id": "msg_1", "sessionID": "ses_2", "role": "user"})
    process.tell("message.part.updated", part={"sessionID": "ses_3"})
    process.tell("session.created", info={"id": "ses_4"})
    process.tell("session.deleted", info={"id": "ses_1"})
    process.tell("file.edited", file="x")

    def told() -> bool:
        (plugin,) = plugin_folders.plugins(process.store)
        assert set(plugin.sessions) == {"ses_2", "ses_3", "ses_4"}
        assert plugin.directories == (HERE, "/other")
        assert plugin.pid == process.process.pid
        assert plugin.is_alive
        return True

    until(told, 20, "the sessions told")
    process.close()
    assert [one.is_alive for one in plugin_folders.plugins(process.store)] == [False]
    assert all(path.stat().st_mode & 0o077 == 0 for path in (process.store / "plugins").rglob("*"))
