"""Claude Code's record of a session tells which turn was interrupted, when each one began, and the title."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.claude_code.transcript import began_at, interrupted_at, title_of

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-11-25T01:50:24.767Z"
AT_S = 1795571424.767


def entry(text: str, kind: str = "user", **more: Any) -> str:
    """One line, as 2.1.330 writes it."""
    message = {"role": kind, "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": kind, "isSidechain": False, "message": message, "timestamp": AT, **more})


STOPPED = entry("[Request interrupted by user for tool use]")
NEWS = json.dumps({"type": "mode", "mode": "normal"})


@pytest.mark.parametrize(
    ("lines", "at_s"),
    [
        ([entry("Go on"), STOPPED, NEWS], AT_S),
        ([entry("Go on"), entry("[Request interrupted by user]"), "{", "[]"], AT_S),
        ([entry("x" * 90_000), STOPPED], AT_S),
        ([STOPPED, entry("Done.", "assistant", isSidechain=True)], AT_S),
        ([entry("", message={"content": "[Request interrupted by user]"})], AT_S),
        ([STOPPED, entry("Go on"), NEWS], None),
        ([STOPPED, entry("Done.", "assistant")], None),
        ([entry("", message=None)], None),
        ([entry("", message={"content": [{"type": "tool_result"}]})], None),
        ([entry("[Request interrupted by user]", timestamp="yesterday")], None),
        ([], None),
    ],
)
def test_only_the_last_word_counts(tmp_path: Path, lines: list[str], at_s: float | None) -> None:
    """A prompt or an answer after it says that the session went on; a subagent's says nothing."""
    (tmp_path / "record.jsonl").write_text("\n".join(lines))
    assert interrupted_at(tmp_path / "record.jsonl") == at_s


def test_a_record_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    """It may be another program's words, too."""
    assert interrupted_at(tmp_path / "none.jsonl") is None
    assert interrupted_at(tmp_path) is None
    assert interrupted_at("\0") is None
    (tmp_path / "empty.jsonl").touch()
    os.mkfifo(tmp_path / "pipe")
    for name in ("none.jsonl", "", "empty.jsonl", "pipe"):
        assert began_at(tmp_path / name, "id_1") is None
        assert title_of(tmp_path / name) == ""
    assert interrupted_at(tmp_path / "pipe") is None


def test_the_first_line_of_a_prompt_tells_when_its_turn_began(tmp_path: Path) -> None:
    """What a message says about ids is a text."""
    record = tmp_path / "record.jsonl"
    later = entry("x", timestamp="2026-11-25T01:55:00.000Z", promptId="id_2")
    said = entry('"promptId":"id_2"', timestamp="2026-11-25T01:00:00.000Z")
    lines = [entry("Go on", promptId="id_1"), said, entry("Go on", promptId="id_2"), later]
    record.write_text("\n".join(json.dumps(json.loads(line), separators=(",", ":")) for line in lines))
    assert began_at(record, "id_1") == began_at(record, "id_2") == AT_S
    assert began_at(record, "id_3") is None
    record.write_text('"promptId":"id_1"')
    assert began_at(record, "id_1") is None


OWN = json.dumps({"type": "custom-title", "customTitle": "Fix the build", "sessionId": "s"}, separators=(",", ":"))
MADE = json.dumps({"type": "ai-title", "aiTitle": "Check the tests", "sessionId": "s"}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([MADE], "Check the tests"),
        ([MADE.replace("Check", "Run"), NEWS, MADE], "Check the tests"),
        ([OWN, MADE], "Fix the build"),
        ([OWN, MADE, OWN.replace("Fix the build", "")], "Check the tests"),
        ([OWN.replace("Fix", "F" * 300)], "F" * 200),
        ([entry(OWN), json.dumps({"type": "user", "input": {"type": "custom-title"}})], ""),
        (['"-title"', '{"type":"ai-title","aiTitle":7}', '{"type":["x-title"],"aiTitle":"y"}', '{-title"'], ""),
        ([entry("x" * 2_000_000), MADE, entry("y" * 1_500_000)], "Check the tests"),
        ([], ""),
    ],
)
def test_a_title_of_the_person_counts_before_one_of_claude_codes_own(
    tmp_path: Path, lines: list[str], title: str
) -> None:
    """The last of each kind; what a message says about titles is a text."""
    (tmp_path / "record.jsonl").write_text("\n".join(lines))
    assert title_of(tmp_path / "record.jsonl") == title
