"""The file of an OpenCode 2 server: read, never written, and never trusted further than it should be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.opencode2.discovery import Address, found_by, read
from hermes.errors import AgentAway, AgentRefused, NotRunning, Unauthorized
from hermes.sandbox.opencode2.server import running_opencode2

if TYPE_CHECKING:
    from pathlib import Path

KEPT: dict[str, Any] = {"id": "one", "version": "2.0.26", "url": "http://127.0.0.1:49374", "password": "pw"}


def written(folder: Path, mode: int = 0o600, **changes: Any) -> Path:
    """A file of a process that lives: this one."""
    file = folder / "service.json"
    file.write_text(json.dumps(KEPT | {"pid": os.getpid()} | changes))
    file.chmod(mode)
    return file


def test_a_file_tells_where_the_server_is(tmp_path: Path) -> None:
    """Its password stays out of the text of the address."""
    found = read(written(tmp_path))
    assert found == Address(KEPT["url"], "pw", pid=os.getpid(), id="one")
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
    with pytest.raises(AgentRefused):
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
