"""The units under a real `systemd --user`: ready, watched, restarted, and started anew by themselves."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hermes.sandbox.botapi import RunningBotApi, running_botapi
from tests.harness.processes import until
from tests.harness.systemd import UserManager, user_manager

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HURRIED = "[Service]\nWatchdogSec=8\nTimeoutStartSec=20\nRestartSec=100ms\nTimeoutStopSec=3\n"
"""What takes minutes for a person takes seconds here; a poll must end as often, see `lively`."""


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A Bot API, with a bot of its own."""
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with running_botapi(token=token) as running:
        yield running


class Desk:
    """A person's machine: their systemd, their configuration, and the `hermes` that they type."""

    def __init__(self, manager: UserManager, home: Path, api: RunningBotApi) -> None:
        self.manager, self.home, self.api = manager, home, api
        folder = home / 'my "50 %" of $HOME'
        folder.mkdir()
        self.config = folder / "config.toml"
        self.configure(f'token = "{api.token}"\n')

    def configure(self, token: str) -> None:
        """Write the configuration anew."""
        self.config.write_text(
            f'[telegram]\n{token}chat_id = 1001\nusers = [1001]\napi_base = "{self.api.base_url}"\n',
        )
        self.config.chmod(0o600)

    def hermes(self, *words: str) -> tuple[int, str]:
        """Type a command; its status and what it prints."""
        ran = self.manager.run(sys.executable, "-I", "-m", "hermes", *words)
        return ran.returncode, ran.stdout

    def overridden(self, text: str = HURRIED) -> None:
        """Change the unit as `systemctl edit` does."""
        folder = self.home / ".config" / "systemd" / "user" / "hermes.service.d"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "test.conf").write_text(text)

    def shown(self, key: str) -> str:
        return self.manager.shown("hermes.service", key)

    def becomes(self, state: str, *, restarts: int = 0) -> None:
        """Wait until the service is in this state, after at least so many restarts."""

        def now() -> tuple[str, int]:
            return self.shown("ActiveState"), int(self.shown("NRestarts"))

        until(lambda: now()[0] == state and now()[1] >= restarts, 90, f"{state}; it is {now()}")

    def install(self) -> str:
        """Install the service; what was said."""
        status, said = self.hermes("install", "service", "--config", str(self.config))
        assert status == 0, said
        return said


@pytest.fixture
def desk(tmp_path: Path, api: RunningBotApi) -> Iterator[Desk]:
    """A desk with a systemd of its own."""
    with user_manager(tmp_path / "machine", {"PATH": os.environ["PATH"]}) as manager:
        yield Desk(manager, tmp_path / "machine" / "home", api)


@contextmanager
def lively(api: RunningBotApi) -> Iterator[None]:
    """A Telegram where something happens three times a second, so that no poll is long."""
    over = threading.Event()

    def happen() -> None:
        while not over.wait(0.3):
            api.control.inject({"poll": {}})

    happening = threading.Thread(target=happen)
    happening.start()
    try:
        yield
    finally:
        over.set()
        happening.join()


def test_a_person_installs_looks_and_uninstalls(desk: Desk) -> None:
    """Every command says what is; a path with any sign in it does no harm; nothing is left."""
    assert "hermes.service is active: Telegram answers.\n" in desk.install()
    assert (desk.shown("ActiveState"), desk.shown("UnitFileState")) == ("active", "enabled")
    assert desk.shown("StatusText") == "Telegram answers"
    until(lambda: desk.hermes("status", "--check", "--config", str(desk.config)) == (0, "all is well, 0 open\n"), 60)
    pid = desk.shown("MainPID")
    assert "already installed and up to date" in desk.install()
    assert desk.shown("MainPID") == pid
    status, said = desk.hermes("uninstall", "service")
    assert (status, said.splitlines()[-1]) == (0, "hermes.service is stopped.")
    assert desk.shown("LoadState") == "not-found"
    assert not [place for place in (desk.home / ".config").rglob("*") if not place.is_dir()]


def test_the_stuck_and_the_killed_are_started_anew(desk: Desk, api: RunningBotApi) -> None:
    """Frozen: the watchdog finds out. Killed: at once. The healthy one is left alone for longer than the watchdog."""
    desk.overridden()
    with lively(api):
        desk.install()
        polls = api.control.state().calls["getUpdates"]
        until(lambda: api.control.state().calls["getUpdates"] > polls + 30, 60, "ten seconds of polls")
        assert desk.shown("NRestarts") == "0"
        desk.manager.systemctl("kill", "--signal=STOP", "hermes")
        until(lambda: desk.shown("NRestarts") == "1", 60, "the watchdog")
        desk.becomes("active", restarts=1)
        desk.manager.systemctl("kill", "--signal=KILL", "hermes")
        desk.becomes("active", restarts=2)


def test_a_machine_that_boots_without_a_network_waits(desk: Desk, api: RunningBotApi) -> None:
    """Longer than a start may take: it says why, nobody restarts it, and it is ready when Telegram answers."""
    desk.install()
    desk.manager.systemctl("stop", "hermes")
    desk.overridden(HURRIED.replace("TimeoutStartSec=20", "TimeoutStartSec=10"))
    desk.manager.systemctl("daemon-reload")
    api.control.fault(method="getUpdates", action="error", status=502, times=1000)
    desk.manager.systemctl("--no-block", "start", "hermes")
    began_s = time.monotonic()
    until(lambda: time.monotonic() - began_s > 13, 60, "more time than a start may take")
    assert (desk.shown("ActiveState"), desk.shown("NRestarts")) == ("activating", "0")
    assert desk.shown("StatusText").startswith("no updates from Telegram: ")
    api.control.clear_faults()
    with lively(api):
        desk.becomes("active")
        assert desk.shown("NRestarts") == "0"


def test_an_upgrade_keeps_the_service(desk: Desk, api: RunningBotApi, tmp_path: Path) -> None:
    """The process becomes the new version under the same number; systemd goes on hearing of it."""
    script = tmp_path / "old.py"
    script.write_text(
        "import os, sys\n"
        "from hermes.listener.sd_notify import Supervisor\n"
        "supervisor = Supervisor(os.environ)\n"
        "supervisor.polled()\n"
        "supervisor.restart()\n"
    )
    desk.install()
    # What takes its place is ready from its first moment in systemd's eyes: its start counts as silence.
    patient = HURRIED.replace("WatchdogSec=8", "WatchdogSec=12")
    desk.overridden(f"{patient}ExecStart=\nExecStart={sys.executable} {script} listen --config ${{CONFIG}}\n")
    desk.manager.systemctl("set-environment", f"CONFIG={desk.config}")
    desk.manager.systemctl("daemon-reload")
    desk.manager.systemctl("restart", "hermes")
    pid = desk.shown("MainPID")
    with lively(api):
        until(lambda: desk.shown("StatusText") == "Telegram answers", 60, "the new version")
        polls = api.control.state().calls["getUpdates"]
        until(lambda: api.control.state().calls["getUpdates"] > polls + 45, 120, "15 seconds of polls")
        assert (desk.shown("MainPID"), desk.shown("NRestarts")) == (pid, "0")


def test_a_wrong_configuration_is_not_tried_again(desk: Desk) -> None:
    """It stays failed; installing says which sentence to mend before anything is written."""
    desk.install()
    desk.configure("")
    desk.overridden()
    desk.manager.run("systemctl", "--user", "restart", "hermes")
    desk.becomes("failed")
    assert (desk.shown("ExecMainStatus"), desk.shown("NRestarts")) == ("2", "0")
    status, said = desk.hermes("install", "service", "--config", str(desk.config))
    assert (status, "[telegram] token is missing" in said) == (2, True)


def test_the_token_may_be_a_credential(desk: Desk, tmp_path: Path) -> None:
    """As the unit's own words say."""
    token = tmp_path / "telegram-token"
    token.write_text(desk.api.token)
    desk.install()
    desk.overridden(
        f"[Service]\nLoadCredential=telegram-token:{token}\nEnvironment=HERMES_TELEGRAM__TOKEN_FILE=%d/telegram-token\n"
    )
    desk.configure("")
    desk.manager.systemctl("daemon-reload")
    desk.manager.systemctl("restart", "hermes")
    assert desk.shown("ActiveState") == "active"


def test_the_reaper_is_a_timer(desk: Desk) -> None:
    """It is started, and what it runs comes to a good end."""
    status, said = desk.hermes("install", "reap", "--config", str(desk.config))
    assert (status, "hermes-reap.timer is active.\n" in said) == (0, True)
    desk.manager.systemctl("start", "hermes-reap.service")
    assert desk.manager.shown("hermes-reap.service", "Result") == "success"
    assert desk.hermes("uninstall", "reap")[0] == 0
