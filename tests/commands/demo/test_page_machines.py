"""Three machines on the page of the demo, in a real Chromium: one has the phone, and another takes over from it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from hermes.commands.demo.machines import Fleet, fleet
from hermes.commands.demo.page import serving
from hermes.commands.demo.stage import Spans
from tests.commands.demo.browser import Visitor, visiting
from tests.harness import listeners

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.xdist_group("page")

DATABASE, CHECKS = "Which database", "Which checks"
TAKEOVER_S = 20.0


@pytest.fixture
def machines(postgres_programs: Path) -> Iterator[Fleet]:
    """Three machines; one that was killed stays away."""
    with fleet(3, spans=Spans(down=600.0)) as running:
        yield running


@pytest.fixture
def visitor(browser: Browser, machines: Fleet) -> Iterator[Visitor]:
    """A visitor before their page."""
    with serving(machines) as url, visiting(browser, url) as there:
        yield there


def machine(visitor: Visitor, state: str) -> Locator:
    """The machines in this state."""
    return visitor.page.locator(f"#machines [data-state={state}]")


def test_another_machine_takes_the_phone_over(visitor: Visitor, machines: Fleet) -> None:
    """The question that was open is answered by a tap, on the machine that asked; the one that was killed is back."""
    expect(machine(visitor, "phone")).to_have_text("laptophas the phone")
    expect(machine(visitor, "standby")).to_have_count(2)
    visitor.page.locator("[data-machine=server]").click()
    visitor.ask("one")
    visitor.sees(DATABASE)
    began_s = time.monotonic()
    visitor.page.locator("#kill").click()
    expect(machine(visitor, "dead")).to_contain_text("laptop")
    expect(machine(visitor, "phone")).to_be_visible()
    assert time.monotonic() - began_s < TAKEOVER_S
    visitor.tap(DATABASE, "SQLite ⭐")
    assert visitor.received("Fix login flow") == ["SQLite (Recommended)"]
    expect(visitor.row("Fix login flow")).to_contain_text("on the server")
    expect(machine(visitor, "dead")).to_contain_text("laptop")
    machines._machines[0].listener_back_s = 0.0
    expect(visitor.page.locator("[data-machine=laptop]")).to_contain_text("stands by")


def test_without_the_database_nothing_is_lost(visitor: Visitor) -> None:
    """A tap is not acknowledged as saved; once the database is back, a second one answers."""
    visitor.page.locator("[data-machine=workstation]").click()
    visitor.ask("one")
    visitor.sees(DATABASE)
    visitor.page.locator("#database").click()
    expect(visitor.page.locator("#database")).to_contain_text("Start the database")
    visitor.tap(DATABASE, "SQLite ⭐")
    visitor.toast("could not save")
    expect(machine(visitor, "phone")).to_have_count(0)
    visitor.page.locator("#database").click()
    expect(machine(visitor, "phone")).to_be_visible()
    visitor.tap(DATABASE, "SQLite ⭐")
    assert visitor.received("Fix login flow") == ["SQLite (Recommended)"]


def test_the_end_leaves_nothing(postgres_programs: Path) -> None:
    """No listener, no database, no folder."""
    with fleet(2) as running:
        (folder,) = {machine._daemon.root.parent for machine in running._machines}
        assert listeners.running("listen", folder)
    assert not listeners.running("listen", folder)
    assert not folder.exists()
    assert running._server.pid is None
    assert not running._server.folder.exists()
