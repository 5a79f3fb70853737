"""Plain English in all that a person reads: messages, help, pages and the example of a configuration."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.harness.home import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AVOIDED = {
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more than\b)\w": "is not a …",
    r"\banew\b": "again; restart",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\blies? in\b": "is stored in",
    r"\bgoes away\b|\b(?:is|are|was) gone\b": "disappears; was deleted",
    r"\b(?:is|are) over\b": "has ended; expired",
    r'(?<!["/])\bdesk\b': "computer; terminal",  # /desk is the name of a command
    r"\bwho came\b|\bwhat is asked\b|\bwho answers\b": "a noun",
    r"\bstands? (?:in|above|where)\b": "is in; overrides",
    r"\bpassed over\b": "ignored",
}
"""What people had to read twice, and a plain form of it."""

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "hermes").rglob("*.md"), *(ROOT / "tests").glob("*.md")])
PAGES += [ROOT / "config.example.toml", *(ROOT / "hermes/commands/demo/web").glob("*.html")]
CODE = [file for file in sorted((ROOT / "hermes").rglob("*.py")) if "sandbox" not in file.parts]


@cache
def texts(file: Path) -> tuple[tuple[int, str], ...]:
    """The literals of a module that are sentences, and the docstrings of commands, which are their help."""
    return tuple(_texts(ast.parse(file.read_text(encoding="utf-8"))))


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("command" in ast.dump(each) for each in node.decorator_list):
            yield node.lineno, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.lineno, node.value if " " in node.value else ""


def avoided(text: str) -> list[str]:
    """The words in a text that have a plainer form."""
    return [found[0] for pattern in AVOIDED for found in re.finditer(pattern, text, re.IGNORECASE)]


@pytest.mark.parametrize("file", CODE, ids=lambda file: str(file.relative_to(ROOT)))
def test_messages_and_help_are_plain(file: Path) -> None:
    """No literal and no help of a command has such words."""
    assert [(line, found) for line, text in texts(file) for found in avoided(text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_plain(page: Path) -> None:
    """README and what it leads to; the changelog; the example of a configuration."""
    assert avoided(page.read_text(encoding="utf-8")) == []


def test_the_list_finds_what_it_is_for() -> None:
    """One sentence for each entry of the list, and its plain form."""
    for sentence, plain in (
        ("ttl is no duration", "ttl is not a duration"),
        ("start it anew", "restart it"),
        ("the command that mends it", "the command that fixes it"),
        ("what is open lies in the store", "open questions are stored in the store"),
        ("the folder is gone", "the folder was removed"),
        ("the time is over", "the time has ended; there is no other"),
        ("the word from the desk", 'it prints {"kind": "desk"}'),
        ("you are at the desk", "you are away, until /desk"),
        ("whether it is you who came", "whether it is you"),
        ("what stands in the file", "what is in the file"),
        ("it was passed over", "it was ignored"),
    ):
        assert avoided(sentence)
        assert avoided(plain) == []
