"""Turns and prompts on the page of the demo, in a real Chromium: an agent ends, and the phone tells it what is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from hermes.commands.demo.computer import ScriptedComputer

if TYPE_CHECKING:
    from hermes.commands.demo.stage import Stage
    from tests.commands.demo.browser import Visitor

pytestmark = pytest.mark.xdist_group("page")

DONE, FAILED = "Sign in again is done", "Describe the products stopped"


def work_for(stage: Stage, seconds: float) -> None:
    """Let each turn that begins now take so long."""
    assert isinstance(stage.computer, ScriptedComputer)
    stage.computer.agent.work_s = seconds


def wait_for_turn(visitor: Visitor, title: str, state: str) -> None:
    """Wait until the computer shows that this session's newest turn came to this state."""
    visitor.row(title).and_(visitor.page.locator(f"[data-state={state}]")).wait_for()


@pytest.mark.story
def test_a_notice_is_answered_with_the_next_prompt(visitor: Visitor) -> None:
    """Notice, reply, its line at work and then done, the next notice; the computer has the prompt to the letter."""
    visitor.ask("finishes")
    notice = visitor.sees(DONE)
    expect(notice.locator(".words")).to_contain_text("12 min · 4 files, +120 −31")
    expect(notice.locator(".fold")).to_contain_text("Users stay signed in now.")
    wait_for_turn(visitor, "Sign in again", "done")
    prompt = "Make it 30 days,\nand <b>say so</b> in the README."
    visitor.write(prompt, to=DONE)
    visitor.key("▶️ Working · bash", "⏹ Stop").wait_for()
    row = visitor.row("Sign in again")
    expect(row.locator(".prompt small")).to_have_text("You, from the phone")
    expect(row.locator(".prompt p")).to_have_text(prompt)
    expect(row.locator(".tools")).to_contain_text("make test")
    visitor.sees("✅ Done")
    expect(visitor.sees("You asked: “Make it 30 days")).to_contain_text("1 file, +12 −3")
    wait_for_turn(visitor, "Sign in again", "done")
    expect(row.locator(".end")).to_contain_text("and <b>say so</b> in the README.”")
    expect(visitor.page.locator("#messages b")).to_have_count(0)


def test_a_failed_turn_says_why(visitor: Visitor, stage: Stage) -> None:
    """The provider's words are on the phone and at the computer; the agent goes on when a reply says so."""
    visitor.ask("fails")
    expect(visitor.sees(FAILED)).to_contain_text("Your credit balance is too low (402)")
    wait_for_turn(visitor, "Describe the products", "failed")
    expect(visitor.row("Describe the products").locator(".end")).to_have_text("Your credit balance is too low (402)")
    work_for(stage, 1.0)
    visitor.write("I have paid: go on.", to=FAILED)
    visitor.sees("You asked: “I have paid: go on.”")


def test_a_prompt_at_work_is_stopped(visitor: Visitor, stage: Stage) -> None:
    """⏹ Stop asks once more; then the turn ends on both sides, and no notice tells of it."""
    visitor.ask("finishes")
    visitor.sees(DONE)
    work_for(stage, 600.0)
    visitor.write("Rewrite all of it.", to=DONE)
    visitor.tap("▶️ Working", "⏹ Stop")
    visitor.tap("Stop the agent?", "Yes, stop")
    visitor.sees("⏹ Stopped")
    wait_for_turn(visitor, "Sign in again", "stopped")
    expect(visitor.page.locator("#messages .theirs")).to_have_count(2)


def test_a_prompt_that_waits_is_edited(visitor: Visitor, stage: Stage) -> None:
    """It waits behind a question, in the session that was picked from a list; the agent gets what it was edited to."""
    work_for(stage, 1.0)
    visitor.ask("one")
    visitor.sees("Which database")
    visitor.write("/sessions")
    visitor.tap("Your sessions", "Fix login flow")
    visitor.tap("Fix login flow ▶️ is working", "✏️ Write a prompt")
    visitor.sees("Type your prompt for Fix login flow")
    visitor.write("Then deploy it.")
    visitor.sees("⏳ Waits for the current turn")
    page, field = visitor.page, visitor.page.get_by_label("Message", exact=True)
    mine = page.locator("#messages .mine", has_text="Then deploy it.")
    mine.get_by_label("Edit this message").click()
    expect(page.locator("#replying")).to_contain_text("Edit message")
    expect(field).to_have_value("Then deploy it.")
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    mine.get_by_label("Edit this message").click()
    field.fill("Then test it.")
    page.keyboard.press("Enter")
    visitor.sees("⏳ Waits for the current turn · edited")
    visitor.tap("Which database", "SQLite ⭐")
    visitor.sees("You asked: “Then test it.”")
    expect(visitor.row("Fix login flow").locator(".prompt p")).to_have_text("Then test it.")


def test_a_session_is_begun_and_stopped_from_the_phone(visitor: Visitor, stage: Stage) -> None:
    """/new lists the projects, the first prompt gives the session its title, /stop lists what runs."""
    work_for(stage, 600.0)
    visitor.ask("one")
    visitor.sees("Which database")
    visitor.write("/new")
    visitor.tap("Where should the new session begin?", "shop-api")
    visitor.sees("Type your prompt for a new session in shop-api")
    visitor.write("Add a health check")
    visitor.sees("▶️ Working")
    wait_for_turn(visitor, "Add a health check", "working")
    visitor.write("/stop")
    visitor.tap("What should stop?", "Add a health check")
    visitor.tap("Add a health check ▶️ is working", "Yes, stop")
    wait_for_turn(visitor, "Add a health check", "stopped")
    visitor.sees("⏹ Stopped")
