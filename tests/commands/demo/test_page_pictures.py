"""The pictures of README: made by these scenes, and current as long as the scenes still show the same words.

`make pictures` (HERMES_PICTURES=1) makes them anew, with the words that each shows in a JSON file beside it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from hermes.commands.demo.computer import ScriptedComputer
from hermes.commands.demo.stage import Stage, staged
from tests.commands.demo.browser import Visitor, visiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("page")

FOLDER = Path(__file__).with_name("pictures")
MOST_BYTES = 175_000
# What is another time, code, machine or process in every run.
VARIES = {r"\d\d:\d\d": "18:40", r"#\w{5}\b": "#k7x3p", r"on \S+ ·": "on laptop ·", r"process \d+": "process 4711"}


@pytest.fixture
def stage() -> Iterator[Stage]:
    """As a visitor has it: with the usual waits."""
    with staged(ScriptedComputer()) as ready:
        yield ready


def words(visitor: Visitor) -> dict[str, Any]:
    """What a person reads in the picture."""
    page = visitor.page
    found = {
        "messages": page.locator("#messages .words").all_inner_texts(),
        "buttons": page.locator("#messages .key").all_inner_texts(),
        "computer": page.locator(
            "#computer :is(h1, h2, p, small, .choices span, .received code):visible"
        ).all_inner_texts(),
    }
    text = json.dumps(found, ensure_ascii=False, indent=1)
    for pattern, stable in VARIES.items():
        text = re.sub(pattern, stable, text)
    steady: dict[str, Any] = json.loads(text)
    return steady


def compare(visitor: Visitor, name: str) -> None:
    """Make the picture anew where that is wanted; compare the scene's words with those of the picture."""
    told = FOLDER / f"{name}.json"
    visitor.page.mouse.move(0, 0)
    expect(visitor.page.locator("#toast")).to_be_hidden()
    visitor.page.evaluate("document.activeElement.blur()")
    shown = words(visitor)
    if os.environ.get("HERMES_PICTURES") == "1":
        FOLDER.mkdir(exist_ok=True)
        visitor.page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
        told.write_text(json.dumps(shown, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert shown == json.loads(told.read_text(encoding="utf-8")), "the picture is old: run `make pictures`"
    assert (FOLDER / f"{name}.png").stat().st_size < MOST_BYTES


def test_the_picture_of_an_answered_question(browser: Browser, url: str) -> None:
    """chat.png: a question that was answered, a permission that waits, and the computer beside."""
    with visiting(browser, url, size=(1180, 880)) as visitor:
        visitor.ask("one")
        visitor.tap("Which database", "SQLite ⭐")
        visitor.received("Fix login flow")
        visitor.sees("✅ SQLite")
        visitor.sees("the agent is working again")
        visitor.ask("permission")
        visitor.key("OpenCode wants to run:", "Allow once").wait_for()
        compare(visitor, "chat")


def test_the_picture_of_several_questions(browser: Browser, url: str) -> None:
    """several.png: the second of three questions, on a phone's screen in the dark."""
    with visiting(browser, url, size=(390, 640), scheme="dark", device_scale_factor=1.5) as visitor:
        visitor.page.locator("#sides [data-side=computer]").click()
        visitor.ask("three")
        visitor.page.locator("#sides [data-side=phone]").click()
        visitor.tap("Which colour", "Teal")
        for size in ("Small", "Large"):
            visitor.tap("Which sizes", f"☐ {size}")
            visitor.key("Which sizes", f"☑ {size}").wait_for()
        compare(visitor, "several")
