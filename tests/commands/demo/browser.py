"""A real Chromium before the page of the demo, and a visitor who looks, presses and types there."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

import pytest
from playwright.sync_api import expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, FloatRect, Locator, Page, Request

FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
WIDE: Final = (1240, 860)
NARROW: Final = (390, 844)
PATIENCE_MS: Final = 30_000


def chromium() -> str:
    """The system's Chromium; without it the test is skipped, or fails where scenes are required."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        sentence = "no Chromium: install the package chromium"
        if os.environ.get("HERMES_REQUIRE_SCENES") == "1":
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)
    return found


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A Chromium with a profile of its own."""
    program = chromium()
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield browser
        browser.close()


class Visitor:
    """Somebody before the page; `asked_for` are the addresses that it made the browser ask for."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.asked_for: list[str] = []
        self.troubles: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.context.on("request", self._note)
        page.on("console", lambda said: self.troubles.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))

    def _note(self, request: Request) -> None:
        self.asked_for.append(request.url)

    def come(self) -> None:
        """Open the page, and wait until the server has told what there is."""
        self.page.goto(self.url)
        self.page.locator("#listener[data-on=true]").wait_for(state="attached")
        self.page.locator("#scenes button").last.wait_for(state="attached")

    # what is there

    def message(self, text: str) -> Locator:
        """The newest message on the phone with this text."""
        return self.page.locator("#messages > li", has=self.page.locator(".words", has_text=text)).last

    def place(self, text: str) -> FloatRect | None:
        """Where the newest message with this text stands once it has arrived: it moves for a fifth of a second."""
        message = self.message(text)
        message.evaluate("message => Promise.all(message.getAnimations().map(moving => moving.finished))")
        return message.bounding_box()

    def key(self, text: str, label: str) -> Locator:
        """The button of the newest message with this text."""
        return self.message(text).locator(".key", has_text=re.compile(re.escape(label)))

    def row(self, title: str) -> Locator:
        """What the computer shows of this session's newest ask."""
        return self.page.locator("#rows > li", has=self.page.get_by_text(title, exact=True)).first

    def received(self, title: str, *, state: str = "received") -> list[str]:
        """Wait until this session's ask came to this state; the exact words that it received."""
        row = self.row(title)
        row.and_(self.page.locator(f"[data-state={state}]")).wait_for()
        return row.locator(".received code").all_text_contents()

    def sees(self, text: str) -> Locator:
        """Wait for this text in a message on the phone."""
        found = self.message(text)
        found.wait_for()
        return found

    def focused(self) -> str:
        """The words of what has the focus."""
        words: str = self.page.evaluate("document.activeElement.innerText || document.activeElement.ariaLabel || ''")
        return words.strip()

    # what a visitor does

    def ask(self, scene: str) -> None:
        """Press the button of this scene."""
        self.page.locator(f"[data-scene={scene}]").click()

    def tap(self, text: str, label: str) -> None:
        """Tap a button of the newest message with this text, once it is there."""
        self.key(text, label).first.click()

    def toast(self, words: str) -> None:
        """Wait for this acknowledgement."""
        self.page.locator("#toast", has_text=words).wait_for()

    def write(self, text: str, *, to: str = "") -> None:
        """Write this (in reply to the message with the text `to`) and press Enter."""
        if to:
            self.message(to).get_by_label("Reply to this message").click()
        field = self.page.get_by_label("Message", exact=True)
        field.click()
        for place, line in enumerate(text.split("\n")):
            if place:
                self.page.keyboard.press("Shift+Enter")
            self.page.keyboard.type(line)
        self.page.keyboard.press("Enter")


@contextmanager
def visiting(
    browser: Browser,
    url: str,
    *,
    size: tuple[int, int] = WIDE,
    scheme: Literal["light", "dark"] = "light",
    **more: object,
) -> Iterator[Visitor]:
    """A visitor before the page; afterwards nothing was asked of anybody else, and the browser had no complaint."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)  # type: ignore[arg-type]
    visitor = Visitor(context.new_page(), url)
    try:
        visitor.come()
        yield visitor
    finally:
        context.close()
    assert [asked for asked in visitor.asked_for if not asked.startswith(url)] == []
    assert visitor.troubles == []
