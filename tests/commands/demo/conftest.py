"""The browser and the stage of the page's scenes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes.commands.demo.computer import ScriptedComputer
from hermes.commands.demo.page import serving
from hermes.commands.demo.stage import Spans, Stage, staged
from tests.commands.demo.browser import Visitor, running_browser, visiting

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from playwright.sync_api import Browser

SPANS = Spans(hurried=6.0, down=1.5, away=3.0)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a module: Playwright's loop lives as long, and no asynchronous test may run beside it."""
    with running_browser() as running:
        yield running


@pytest.fixture
def stage() -> Iterator[Stage]:
    """All that runs behind the page, with shorter waits than a visitor's."""
    with staged(ScriptedComputer(), spans=SPANS) as ready:
        yield ready


@pytest.fixture
def url(stage: Stage) -> Iterator[str]:
    """The page's address."""
    with serving(stage) as address:
        yield address


@pytest.fixture
def visitor(browser: Browser, url: str) -> Iterator[Visitor]:
    """A visitor before the page."""
    with visiting(browser, url) as there:
        yield there


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a scene that failed what its phone showed, and the end of Hermes' own log."""
    report = yield
    ready = next((one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Stage)), None)
    if report.failed and ready is not None:
        texts = [f"{message.text!r} {message.labels}" for message in ready.api.control.messages()]
        report.sections += [("The phone", "\n".join(texts)), ("Hermes' log", ready.log_text()[-6000:])]
    return report
