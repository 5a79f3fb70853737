"""The service: offered where it can run, started with the settings that were just written."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from hermes.commands.setup.background import Background
from hermes.commands.setup.terminal import Terminal
from hermes.commands.stores import home_of
from hermes.storage import process_lock
from tests.commands.setup.a_context import a_config, a_context
from tests.commands.setup.desk import ANN, BOB, CTRL_C, Desk, pairs
from tests.harness.processes import Proc
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def unit(desk: Desk) -> Path:
    """Where the service's file belongs."""
    return desk.root / ".config" / "systemd" / "user" / "hermes.service"


def test_a_service_is_offered_and_started(desk: Desk) -> None:
    """Enter installs it; it begins when the configuration is written, and says how it is."""
    desk.has_systemd()
    with desk.setup("--no-agents", "--no-prompts", "--no-test") as terminal:
        pairs(terminal, desk)
        terminal.sees("A service keeps Hermes ready")
        assert not unit(desk).exists()
        terminal.answers("Install the service?", "")
        terminal.sees("hermes.service is active: all well")
        assert terminal.ends() == 0
    assert str(desk.config) in unit(desk).read_text()
    assert any("start" in line for line in desk.systemd_did())


def test_a_service_that_is_not_wanted(desk: Desk) -> None:
    """Nothing of it is there."""
    desk.has_systemd()
    with desk.setup("--no-agents", "--no-prompts", "--no-test") as terminal:
        pairs(terminal, desk)
        terminal.answers("Install the service?", "n")
        assert terminal.ends() == 0
    assert not unit(desk).exists()
    assert desk.systemd_did() == []


def test_where_no_service_can_run(desk: Desk) -> None:
    """It is said what happens instead; asked for by an option, it fails after all else is done: status 1."""
    desk.has_config()
    status, said = desk.unattended("--yes", "--no-agents")
    assert status == 0
    assert "No service can run here: let `hermes listen` run all the time." in said
    assert "`hermes install service`" not in said
    status, said = desk.unattended("--yes", "--no-agents", "--service")
    assert status == 1
    assert "Saved, but not all of it works yet" in said


def test_a_token_in_the_environment_does_not_keep_the_service_away(desk: Desk) -> None:
    """It was written down, so the service sees it too."""
    desk.has_systemd()
    options = ("--chat", "1001", "--no-agents", "--service")
    # What only the tests set: a service would not see the address of their Bot API, if it were no option.
    status, said = desk.unattended(*options, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, unit(desk).exists()) == (0, True), said


def test_a_service_takes_the_place_of_a_listener(desk: Desk) -> None:
    """Both would want the same store and bot; only the service is there afterwards."""
    desk.has_systemd()
    desk.has_config()
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(desk.config)]
    with Proc(command, cwd=desk.root, environ=desk.environ, log_dir=desk.root / "logs", name="listener") as listener:
        desk.api.phone.wait_for_poll(30)
        status, said = desk.unattended("--yes", "--no-agents", "--service")
        assert (status, listener.wait()) == (0, 0)
    assert "hermes.service is active" in said
    assert "The listener was started again" not in said


@contextmanager
def listening(desk: Desk, *options: str) -> Iterator[Proc]:
    """A listener at work."""
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(desk.config), *options]
    with Proc(command, cwd=desk.root, environ=desk.environ, log_dir=desk.root / "logs", name="listener") as listener:
        desk.api.phone.wait_for_poll(30)
        yield listener


@contextmanager
def serving(desk: Desk) -> Iterator[Proc]:
    """A listener that systemd says is the service; what it did until now is forgotten."""
    (desk.root / "service").write_text("active\n")
    (desk.root / "systemctl.log").unlink(missing_ok=True)
    with listening(desk) as listener:
        (desk.root / "pid").write_text(f"{listener.pid}\n")
        yield listener


STARTED_ANEW = ["stop hermes.service", "reset-failed hermes.service", "--no-block start hermes.service"]


def test_a_service_that_runs_takes_in_what_was_changed(desk: Desk) -> None:
    """The listener with the old settings is stopped, and the service started again."""
    desk.has_systemd()
    desk.has_config()
    assert desk.unattended("--yes", "--no-agents", "--service")[0] == 0
    with serving(desk) as listener:
        assert desk.unattended("--yes", "--no-agents")[0] == 0
        assert listener.alive()  # nothing was changed
        status, said = desk.unattended("--yes", "--no-agents", "--user", str(ANN.id), "--user", str(BOB.id))
        assert (status, listener.wait()) == (0, 0)
    assert "The service is installed (active: all well)" in said
    assert "The service was started again: hermes.service is active: all well." in said
    assert desk.systemd_did() == STARTED_ANEW


@pytest.mark.parametrize("ours", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_service_is_brought_back_as_it_is(desk: Desk, *, ours: bool) -> None:
    """Copied by hand or for another configuration, with settings in the shell, after Ctrl-C: nothing is written."""
    desk.has_systemd()
    desk.has_config()
    unit(desk).parent.mkdir(parents=True)
    other = desk.root / "other.toml"
    unit(desk).write_text(f"[Service]\nExecStart=/bin/hermes listen --config {desk.config if ours else other}\n")
    before = unit(desk).read_bytes()
    with serving(desk) as listener, desk.setup("--no-agents", HERMES_LOG__LEVEL="debug") as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "")
        terminal.answers("Let it pause?", "")
        terminal.link()
        assert listener.wait() == 0
        terminal.presses(CTRL_C)
        assert terminal.ends() == 130
        assert "The service was started again" in terminal.said()
    assert desk.systemd_did() == STARTED_ANEW
    assert unit(desk).read_bytes() == before


def test_a_service_that_cannot_be_brought_back_is_said(desk: Desk) -> None:
    """And what ends the setup stays what it was."""
    desk.has_systemd()
    desk.has_config()
    unit(desk).parent.mkdir(parents=True)
    unit(desk).write_text("[Service]\n")
    with serving(desk), desk.setup("--no-agents") as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "")
        terminal.answers("Let it pause?", "")
        terminal.link()
        desk.has("systemctl", "#!/bin/sh\necho no bus\nexit 1\n")
        terminal.presses(CTRL_C)
        assert terminal.ends() == 130
        assert "`systemctl --user stop hermes.service` failed: no bus" in terminal.said()
        assert "Stopped: the configuration stays as it was." in terminal.said()


def test_a_service_that_failed_is_started(desk: Desk) -> None:
    """Also where nothing else was changed: setup does not end well while nobody listens."""
    desk.has_systemd()
    desk.has_config()
    assert desk.unattended("--yes", "--no-agents", "--service")[0] == 0
    (desk.root / "service").write_text("failed\n")
    (desk.root / "systemctl.log").unlink()
    status, said = desk.unattended("--yes", "--no-agents")
    assert status == 0
    assert "! The service is installed, but does not run (failed" in said
    assert "The service did not run and was started: hermes.service is active" in said
    assert desk.systemd_did() == STARTED_ANEW


def test_a_service_of_another_configuration_is_left_alone(desk: Desk) -> None:
    """It is said, and counts for nobody who listens."""
    desk.has_systemd()
    desk.has_config()
    unit(desk).parent.mkdir(parents=True)
    unit(desk).write_text("[Service]\nExecStart=/bin/hermes listen --config /other.toml\n")
    status, said = desk.unattended("--yes", "--no-agents")
    assert (status, desk.systemd_did()) == (0, [])
    assert "! It uses /other.toml, not" in said
    assert "Saved, but nothing listens yet" in said


@pytest.mark.parametrize("until_idle", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_listener_comes_back_as_it_was(desk: Desk, *, until_idle: bool) -> None:
    """One that stays for good is not replaced by one that leaves when it is idle."""
    desk.has_config()
    with listening(desk, *(["--until-idle"] if until_idle else [])):
        status, said = desk.unattended("--yes", "--no-agents", "--user", str(ANN.id), "--user", str(BOB.id))
        assert status == 0
        assert "The listener was started again" in said
        desk.api.phone.wait_for_poll(30)
    holder = a_store(desk.store).home.listener()
    assert holder is not None
    assert holder.who.startswith("hermes listen --until-idle") is until_idle


def test_nobody_listens(desk: Desk) -> None:
    """Neither a service, an agent's plugin nor a listener: that is no good end. With a plugin it is."""
    desk.has_config()
    assert "All set." not in desk.unattended("--yes", "--no-agents")[1]
    desk.has_opencode()
    assert "All set." in desk.unattended("--yes", "--agent", "opencode")[1]


def test_a_listener_of_another_store_keeps_the_bot(desk: Desk) -> None:
    """As that of another configuration: no listener could start here, so not all is set, and it is not touched."""
    elsewhere, other = desk.root / "elsewhere", desk.root / "other.toml"
    other.write_bytes(desk.has_config(f'[store]\npath = "{elsewhere}"\n'))
    desk.has_config()
    desk.has_opencode()
    with listening(desk, "--config", str(other)):
        status, said = desk.unattended("--yes", "--agent", "opencode", "--user", str(ANN.id), "--user", str(BOB.id))
        assert a_store(elsewhere).home.listener() is not None
    told = "".join(said.split())  # a long path is broken at the end of a line
    assert status == 1
    assert f"store{elsewhere}(pid" in told
    assert "holdsthisbot,foranotherstore,sonolistenercanstarthere." in told
    assert "Allset." not in told


def test_a_listener_that_waits_for_the_bot_is_no_listener(tmp_path: Path) -> None:
    """As our service, which holds its store while it tries to get the bot: the other one still keeps the bot."""
    environ = {"HOME": str(tmp_path), "PATH": ""}
    config = a_config(store={"path": str(tmp_path / "ours")})
    terminal = Terminal(Console(file=io.StringIO()), interactive=False)
    background = Background(a_context(terminal, tmp_path / "config.toml", config=config, environ=environ))
    waiting = home_of(config).hold("hermes listen")
    with waiting, process_lock.hold_bot(1234567, tmp_path / "ours", "hermes listen, store /elsewhere"):
        other = background.other_listener(1234567)
    assert other is not None
    assert other.who.endswith("/elsewhere")
