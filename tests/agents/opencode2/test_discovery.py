"""The file of an OpenCode 2 server: read, never written, and never trusted further than it should be."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.opencode2.discovery import Address, found_by, read
from hermes.errors import AgentAway, AgentRefused, NotRunning, Unauthorized
from hermes.sandbox.opencode2.server import running_opencode2
from tests.listening import question

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.model.ask import Ask
    from hermes.sandbox.opencode2.server import OpenCode2Agent

KEPT: dict[str, Any] = {"id": "one", "version": "2.0.26", "url": "http://127.0.0.1:49374", "password": "pw"}


def written(folder: Path, mode: int = 0o600, **changes: Any) -> Path:
    """A file of a process that lives: this one."""
    file = folder / "service.json"
    file.write_text(json.dumps(KEPT | {"pid": os.getpid()} | changes))
    file.chmod(mode)
    return file


def test_a_file_tells_where_the_server_is(tmp_path: Path) -> None:
    """Its password stays out of the text of the address."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        url = f"http://127.0.0.1:{listens.getsockname()[1]}"
        found = read(written(tmp_path, url=url))
    assert found == Address(url, "pw", pid=os.getpid(), id="one")
    assert "pw" not in repr(found)


def test_no_file_and_a_dead_process_are_no_server(tmp_path: Path) -> None:
    """A killed server leaves its file behind; nothing is removed."""
    with pytest.raises(NotRunning, match="no OpenCode 2 runs"):
        read(tmp_path / "service.json")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    file = written(tmp_path, pid=ended.pid)
    with pytest.raises(NotRunning, match="was left behind"):
        read(file)
    assert file.exists()


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """Another user could send the password elsewhere."""
    with pytest.raises(AgentRefused, match="others can write it"):
        read(written(tmp_path, mode=0o622))


def test_a_pipe_in_its_place_holds_nobody_up(tmp_path: Path) -> None:
    """Nor does a folder."""
    os.mkfifo(tmp_path / "service.json", 0o600)
    with pytest.raises(AgentRefused, match="not a file"):
        read(tmp_path / "service.json")
    with pytest.raises(AgentAway, match="Is a directory"):
        read(tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://", "http://ann:pw@127.0.0.1:1"])
def test_a_url_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    """No request is made."""
    with pytest.raises(AgentRefused, match="is not an http"):
        read(written(tmp_path, url=url))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_looked_at_again(tmp_path: Path, content: bytes) -> None:
    """It may be half written just now."""
    file = written(tmp_path)
    file.write_bytes(content)
    with pytest.raises(AgentAway, match="cannot be read"):
        read(file)


async def test_another_process_than_the_files_is_not_followed(tmp_path: Path) -> None:
    """Its port was taken over by something else, or by a server of its own kind."""
    with running_opencode2(file=tmp_path / "service.json") as agent:
        agent.pid += 1
        async with OpenCode2Server("oc", found_by(tmp_path / "service.json"), machine="m") as server:
            with pytest.raises(AgentAway, match="another process answers"):
                await server.connect()


@pytest.mark.parametrize("shape", ["august", "released"])
async def test_a_probe_is_authenticated(tmp_path: Path, shape: str) -> None:
    """A changed password is an error of its own; a server that starts is away."""
    with running_opencode2(file=tmp_path / "service.json", shape=shape) as agent:
        async with OpenCode2Server("oc", found_by(tmp_path / "service.json"), machine="m") as server:
            assert (await server.connect()).version == agent.version
            agent.is_starting = True
            with pytest.raises(AgentAway, match="503"):
                await server.connect()
            agent.is_starting, agent.password = False, "another"
            with pytest.raises(Unauthorized):
                await server.connect()


# --- the password stays with the server -------------------------------------------------------------------------------

PORT = 49374
OURS, THEIRS = os.getuid(), os.getuid() + 1
LISTENS, CONNECTED = "0A", "01"
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"


def row(user: int, port: int = PORT, state: str = LISTENS, address: str = "0100007F") -> str:
    """A socket, as the kernel of Linux lists it."""
    place, counts = f"{address}:{port:04X} 00000000:0000", "00000000:00000000 00:00000000 00000000"
    return f"   0: {place} {state} {counts} {user:5}        0 5464951 1"


def tables(folder: Path, *rows: str) -> tuple[Path, ...]:
    """The table of this machine's sockets; the one of version 6 of the protocol is not there."""
    (folder / "tcp").write_text("\n".join([HEADER, *rows, ""]))
    return folder / "tcp", folder / "tcp6"


@pytest.mark.parametrize(
    "rows",
    [
        (row(THEIRS),),
        (row(OURS), row(THEIRS, address=f"{0:031}1")),
        (row(OURS, PORT + 1),),
        (row(OURS, state=CONNECTED),),
    ],
    ids=["another", "both", "nobody", "a connection"],
)
def test_a_port_that_is_not_this_users_alone_gets_nothing(tmp_path: Path, rows: tuple[str, ...]) -> None:
    """The server was killed, and the number of its process has gone to another process of this user."""
    with pytest.raises(AgentAway, match="or another user does"):
        read(written(tmp_path), tables(tmp_path, *rows))


@pytest.mark.parametrize(
    "rows",
    [(row(OURS),), (row(OURS), row(THEIRS, state=CONNECTED)), (row(OURS), row(THEIRS, PORT + 1)), ()],
    ids=["ours", "a connection", "another port", "none"],
)
def test_a_port_of_this_user_is_one(tmp_path: Path, rows: tuple[str, ...]) -> None:
    """A system that tells of no socket at all is believed as one without such a table."""
    assert read(written(tmp_path), tables(tmp_path, *rows)).pid == os.getpid()
    assert read(written(tmp_path), ()).pid == os.getpid()


async def test_another_user_who_took_the_port_is_sent_nothing(tmp_path: Path) -> None:
    """Not even the probe, which has the password."""
    file = tmp_path / "service.json"
    with running_opencode2(file=file) as agent:
        port = int(agent.url.rpartition(":")[2])
        async with OpenCode2Server("oc", found_by(file, tables(tmp_path, row(THEIRS, port))), machine="m") as server:
            with pytest.raises(AgentAway):
                await server.connect()
        assert agent.received == []


@pytest.mark.parametrize(
    "use",
    [
        lambda server, ask: server.prompts.look(ask.source, ""),
        lambda server, _: server.prompts.listed(0.0),
        lambda server, _: server.pending("/home/dev/project"),
        lambda server, ask: server.reply(ask, (("A",),)),
        lambda server, _: server.connect(),
    ],
)
async def test_a_server_that_was_killed_is_sent_nothing_more(
    tmp_path: Path, use: Callable[[OpenCode2Server, Ask], Any]
) -> None:
    """Its file stays, and another user at its port would be sent the password, and the words of the person."""
    file = tmp_path / "service.json"
    with running_opencode2() as agent, subprocess.Popen([sys.executable, "-c", "input()"], stdin=PIPE) as process:
        agent.pid = process.pid
        agent.write_file(file, agent.url)
        async with OpenCode2Server("oc", found_by(file), machine="m") as server:
            await server.connect()
            ask = await asked(server, agent)
            process.kill()
            process.wait()
            agent.received.clear()
            with pytest.raises(NotRunning):
                await use(server, ask)
            assert await server.context(ask) == ask
            assert agent.received == []


async def asked(server: OpenCode2Server, agent: OpenCode2Agent) -> Ask:
    """Let the agent ask, and return what the server lists."""
    agent.ask([question()])
    (ask,) = (await server.pending(agent.directory)).asks
    return ask


async def test_a_file_of_another_server_ends_the_connection(tmp_path: Path) -> None:
    """It was written since: the next connection goes there."""
    file = tmp_path / "service.json"
    with running_opencode2(file=file) as agent, running_opencode2() as other:
        async with OpenCode2Server("oc", found_by(file), machine="m") as server:
            await server.connect()
            other.write_file(file, other.url)
            with pytest.raises(NotRunning):
                await server.busy("")
            agent.received.clear()
            await server.connect()
            assert await server.busy("") == frozenset()
        assert agent.received == []
