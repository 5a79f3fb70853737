"""The page of the demo with topics (`hermes demo --topics`), in a real Chromium: each session has a tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from hermes.commands.demo.computer import ScriptedComputer
from hermes.commands.demo.stage import Stage, staged
from tests.commands.demo.test_page_prompts import wait_for_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.commands.demo.browser import Visitor

pytestmark = pytest.mark.xdist_group("page")


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A stage whose bot has topics."""
    with staged(ScriptedComputer(), topics=True) as ready:
        yield ready


def tab(visitor: Visitor, name: str) -> None:
    """Choose a tab."""
    visitor.page.locator("#topics button", has_text=name).click()


@pytest.mark.story
def test_each_session_has_a_tab(visitor: Visitor) -> None:
    """All messages carry the name of their topic; a tab shows those of its own, and a text in it is a prompt."""
    visitor.ask("one")
    visitor.sees("Which database")
    visitor.ask("finishes")
    expect(visitor.sees("Which database").locator(".topic")).to_have_text("Fix login flow")
    expect(visitor.sees("Sign in again is done").locator(".topic")).to_have_text("Sign in again")
    tab(visitor, "Sign in again")
    expect(visitor.page.locator("#messages > li")).to_have_count(1)
    visitor.write("Make it 30 days.")
    wait_for_turn(visitor, "Sign in again", "done")
    expect(visitor.row("Sign in again").locator(".prompt p")).to_have_text("Make it 30 days.")
    tab(visitor, "All")
    topics = visitor.page.locator("#messages .topic").all_inner_texts()
    assert topics[:2] == ["Fix login flow", "Sign in again"], "in the order in which they came"
    tab(visitor, "Fix login flow")
    expect(visitor.message("Make it 30 days.")).to_have_count(0)
    visitor.tap("Which database", "SQLite ⭐")
    visitor.received("Fix login flow")
