"""The demo with the real OpenCode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import expect

from hermes.commands.demo.opencode import OpenCodeComputer
from hermes.commands.demo.page import serving
from hermes.commands.demo.stage import Spans, staged
from hermes.errors import HermesError
from tests.commands.demo.browser import visiting
from tests.harness.home import binary

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser


def test_the_real_opencode_asks_and_receives(browser: Browser, opencode_version: str) -> None:
    """By its server, by its plugin, a permission, while it is frozen; and no stranger without the password."""
    computer = OpenCodeComputer(str(binary(opencode_version)))
    with staged(computer, spans=Spans(away=4.0)) as stage, serving(stage) as url, visiting(browser, url) as visitor:
        visitor.page.set_default_timeout(120_000)  # a real agent needs longer for each step
        expect(visitor.page.locator("#agent-name")).to_have_text(f"OpenCode {opencode_version} with a scripted model")
        visitor.ask("one")
        visitor.tap("Which database", "SQLite ⭐")
        assert visitor.received("Fix login flow") == ["SQLite (Recommended)"]
        visitor.ask("permission")
        visitor.tap("OpenCode wants to run:", "Allow once")
        assert visitor.received("Move the tables") == ["Moved 3 tables in staging"]
        visitor.ask("plugin")
        visitor.tap("Port 8080", "9000")
        assert visitor.received("Start the server") == ["9000"]
        assert [httpx.get(f"{server.url}/session").status_code for server in computer._servers] == [401, 401]
        visitor.ask("many")
        visitor.tap("Which checks", "☐ Types")
        visitor.key("Which checks", "Done (1)").wait_for()
        visitor.page.locator("#away").click()
        visitor.tap("Which checks", "Done (1)")
        assert visitor.received("Set up CI") == ["Types"]


def test_an_opencode_that_does_not_work_is_one_sentence(tmp_path: Path) -> None:
    """A program of that name that is something else is told of, and no home of it is left."""
    program = tmp_path / "opencode"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 9.9.9 || { echo no such thing; exit 3; }\n')
    program.chmod(0o755)
    with pytest.raises(HermesError, match="OpenCode did not start: no such thing"):
        OpenCodeComputer(str(program))
    with pytest.raises(HermesError, match="--version` failed"):
        OpenCodeComputer("/bin/false")
