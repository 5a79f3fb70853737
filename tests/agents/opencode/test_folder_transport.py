"""Odd answers, and folders that cannot be used, are errors of an agent like those of a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from hermes.agents.http import Api
from hermes.agents.opencode.folder_transport import FolderTransport
from hermes.errors import AgentAway, AgentRefused

HERE = "/home/dev/project"
LARGE = 33 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a plugin."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    return tmp_path


async def answered(folder: Path, text: str | None) -> bytes:
    """Make a call that gets this answer; None: a folder is where the answer should be."""
    api = Api("plugin", "http://plugin", transport=FolderTransport(folder))
    calling = asyncio.create_task(api.call("GET", "/agent", HERE, timeout=httpx.Timeout(20)))
    while not (names := [path.name for path in (folder / "in").glob("*.json")]):
        await asyncio.sleep(0.005)
    made = folder / "made"
    made.mkdir() if text is None else made.write_text(text)
    made.rename(folder / "out" / names[0])
    return await calling


async def test_a_good_answer_is_taken_away(folder: Path) -> None:
    """It is read once, and nothing is left."""
    told = {"status": 200, "type": "application/json; charset=utf-8", "body": '["ä"]', "more": 1}
    assert json.loads(await answered(folder, json.dumps(told))) == ["ä"]
    assert list((folder / "in").iterdir()) == list((folder / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", AgentRefused),
        ("[]", AgentRefused),
        ('{"body": "x"}', AgentRefused),
        ('{"status": "many"}', AgentRefused),
        ('{"status": 200, "type": "text/html", "body": "<html>"}', AgentRefused),
        ('{"status": 200, "type": "application/json", "body": "\\ud800"}', AgentRefused),
        ('{"status": 500}', AgentAway),
        (None, AgentAway),
        (" " * LARGE, AgentRefused),
    ],
    ids=["empty", "list", "no status", "odd status", "html", "half a sign", "500", "folder", "large"],
)
async def test_an_odd_answer_is_an_error(folder: Path, text: str | None, error: type[Exception]) -> None:
    """And never one of another kind."""
    with pytest.raises(error):
        await answered(folder, text)


async def test_a_folder_that_is_not_there_is_away(folder: Path) -> None:
    """Its plugin may make it again."""
    (folder / "in").rmdir()
    api = Api("plugin", "http://plugin", transport=FolderTransport(folder))
    with pytest.raises(AgentAway):
        await api.call("GET", "/agent", HERE)
