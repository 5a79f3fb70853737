"""What a service manager is told: real listeners, and a socket of our own where systemd's would be."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from hermes.commands import cli
from hermes.listener import sd_notify as supervisor_module
from hermes.listener.sd_notify import Supervisor
from hermes.sandbox.botapi import RunningBotApi, running_botapi
from tests.at_once import at_once
from tests.harness.processes import Proc, until
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Manager:
    """The end of the notify protocol that a service manager has. `heard` is all that came, one datagram each."""

    def __init__(self, name: str) -> None:
        self.address = name
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(name.replace("@", "\0", 1) if name.startswith("@") else name)
        self._socket.settimeout(0)

    def close(self) -> None:
        self._socket.close()

    def listen(self) -> list[str]:
        """Take in what came, and return all."""
        while True:
            try:
                self.heard.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return self.heard

    def hears(self, words: str, *, times: int = 1, timeout_s: float = 60) -> None:
        """Wait until this was said so often."""
        until(lambda: sum(words in one for one in self.listen()) >= times, timeout_s, f"{words} in {self.heard}")

    def forget(self) -> None:
        """Begin anew."""
        self.listen()
        self.heard.clear()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    """A manager with an address of each kind."""
    made = Manager(str(tmp_path / "notify") if request.param == "path" else f"@hermes-{secrets.token_hex(8)}")
    yield made
    made.close()


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A Bot API, with a bot of its own."""
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with running_botapi(token=token) as running:
        yield running


@pytest.fixture
def config(api: RunningBotApi, tmp_path: Path) -> Path:
    """A configuration file."""
    path = tmp_path / "config.toml"
    path.write_text(
        f'[telegram]\ntoken = "{api.token}"\nchat_id = 1001\nusers = [1001]\napi_base = "{api.base_url}"\n'
        f'[store]\npath = "{tmp_path / "store"}"\n[log]\nfile = "{tmp_path / "hermes.log"}"\n'
    )
    path.chmod(0o600)
    return path


@pytest.fixture
def start(config: Path, tmp_path: Path, manager: Manager) -> Iterator[Callable[..., Proc]]:
    """Start a listener as a service manager does; arguments are further words of its command line."""
    with ExitStack() as running:

        def started(*words: str, watchdog_s: float = 60, command: tuple[str, ...] = ("-I", "-m", "hermes")) -> Proc:
            told = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": f"{watchdog_s * 1e6:.0f}"}
            return running.enter_context(
                Proc(
                    [sys.executable, *command, "listen", *words, "--config", config],
                    cwd=tmp_path,
                    environ={**os.environ, **told},
                    log_dir=tmp_path,
                    name="listener",
                )
            )

        yield started


@pytest.mark.parametrize("status", [500, 401])
@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_ready_is_who_was_answered_by_telegram(
    start: Callable[..., Proc], manager: Manager, api: RunningBotApi, status: int
) -> None:
    """Until then it says what is wrong, and asks for more time after each try; the watchdog hears of each, too."""
    api.control.fault(method="getUpdates", action="error", status=status, times=100)
    process = start()
    manager.hears("STATUS=no updates from Telegram: ")
    manager.hears("WATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000", times=2)
    assert "READY" not in str(manager.heard)
    api.control.clear_faults()
    manager.hears("READY=1")
    manager.hears("STATUS=Telegram answers")
    manager.forget()
    api.control.inject({"poll": {}})
    manager.hears("WATCHDOG=1")
    assert "EXTEND" not in str(manager.heard)
    assert process.alive()


def test_the_watchdog_is_fed_by_the_rounds_of_the_poll_loop(
    start: Callable[..., Proc], manager: Manager, api: RunningBotApi
) -> None:
    """Whenever one has ended, and by nothing else: a frozen process feeds nobody, and a thawed one goes on."""
    process = start()
    manager.hears("READY=1")
    for _ in range(2):
        until(lambda: api.control.state().polling, 60, "a long poll")
        manager.forget()
        api.control.inject({"poll": {}})
        manager.hears("WATCHDOG=1")
    until(lambda: api.control.state().polling, 60, "a long poll")
    process.freeze()
    manager.forget()
    api.control.inject({"poll": {}})
    with pytest.raises(AssertionError, match="waited 1 s for WATCHDOG=1"):
        manager.hears("WATCHDOG=1", timeout_s=1)
    process.thaw()
    manager.hears("WATCHDOG=1")


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_trouble_does_not_starve_the_watchdog(start: Callable[..., Proc], manager: Manager, api: RunningBotApi) -> None:
    """Telegram wants an hour's pause: it is fed all along, and told why. Nothing dies for want of a network."""
    process = start(watchdog_s=0.4)
    manager.hears("READY=1")
    api.control.fault(method="getUpdates", action="error", status=429, retry_after_s=3600, times=1)
    api.control.inject({"poll": {}})
    manager.hears("STATUS=no updates from Telegram: ")
    manager.forget()
    manager.hears("WATCHDOG=1", times=5)
    assert process.alive()


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_the_end_is_told(start: Callable[..., Proc], manager: Manager) -> None:
    """Stopping first, then everything is saved; status 0."""
    process = start()
    manager.hears("READY=1")
    assert process.sigterm() == 0
    manager.hears("STOPPING=1")


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_a_listener_that_a_hook_started_says_nothing(start: Callable[..., Proc], manager: Manager) -> None:
    """The agent may run as a service itself: what its hook leaves behind is not that service."""
    process = start("--until-idle", "--idle-after-s", "0")
    assert process.wait() == 0
    assert manager.listen() == []


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_a_service_waits_for_the_listener_that_is_there(
    start: Callable[..., Proc], manager: Manager, tmp_path: Path
) -> None:
    """Such as one that a hook started a moment ago: it says which, is given time, and takes over."""
    store = a_store(tmp_path / "store")
    at_once(store.open())
    with store.home.hold("hermes listen, on the sofa"):
        start()
        manager.hears("STATUS=waiting: hermes listen, on the sofa")
        manager.hears("EXTEND_TIMEOUT_USEC=60000000")
        assert "READY" not in str(manager.heard)
    manager.hears("READY=1")


UPGRADED = """
import os, sys
from hermes.listener.sd_notify import Supervisor
supervisor = Supervisor(os.environ)
assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & set(os.environ)
supervisor.polled()
sys.argv = ["hermes", *sys.argv[1:]]
supervisor.restart()
"""


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_one_that_starts_itself_anew_goes_on_speaking(start: Callable[..., Proc], manager: Manager) -> None:
    """The address is hidden from what a process starts, but not from what it becomes; it never says that it stops."""
    process = start(command=("-c", UPGRADED))
    manager.hears("READY=1", times=2)
    assert "STATUS=Hermes was installed again: starting again" in manager.heard
    assert "STOPPING=1" not in str(manager.heard)
    process.signal(signal.SIGTERM)
    manager.hears("STOPPING=1")


# --- by itself ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manager", ["path"], indirect=True)
async def test_the_watchdog_of_another_process_is_none_of_ours(manager: Manager) -> None:
    """WATCHDOG_PID says whose it is: then there is no hurry. Ours is fed twice within its time."""
    for pid, times in ((1, 1), (os.getpid(), 4)):
        manager.forget()
        told = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "100000", "WATCHDOG_PID": str(pid)}
        await Supervisor(told).pause(0.2)
        assert abs(len(manager.listen()) - times) <= 1


async def test_without_a_manager_nothing_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And one that is gone is one warning, until it is back."""
    silent = Supervisor({})
    silent.polled()
    await silent.pause(0)
    assert not silent.watches
    assert not caplog.records
    forlorn = Supervisor({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    forlorn.polled()
    forlorn.stopping()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    back = Manager(str(tmp_path / "notify"))
    await forlorn.pause(0)
    back.close()
    (tmp_path / "notify").unlink()
    await forlorn.pause(0)
    assert back.heard == []
    assert len(caplog.records) == 2


async def test_a_pause_lasts_as_long_as_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fed or not."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(supervisor_module, "asyncio", SimpleNamespace(sleep=sleep))
    manager = Manager(str(tmp_path / "notify"))
    fed = Supervisor({"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "50000"})
    for supervisor, times in ((fed, 8), (Supervisor(), 1)):
        slept.clear()
        await supervisor.pause(0.18)
        assert sum(slept) == pytest.approx(0.18)
        assert len(slept) == times
    manager.close()


def test_a_listener_of_ones_own_terminal_leaves_when_another_is_there(config: Path, tmp_path: Path) -> None:
    """Nobody watches over it, so it does not wait: status 3."""
    store = a_store(tmp_path / "store")
    at_once(store.open())
    with (
        store.home.hold("hermes listen, on the sofa"),
        Proc(
            [sys.executable, "-I", "-m", "hermes", "listen", "--config", config],
            cwd=tmp_path,
            environ=os.environ,
            log_dir=tmp_path,
            name="second",
        ) as process,
    ):
        assert process.wait() == cli.TAKEN
