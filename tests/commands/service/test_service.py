"""`hermes install service`: what is written, what is asked of the service manager, and what a person is told."""

from __future__ import annotations

import plistlib
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.commands.loading import shipped
from hermes.commands.service import JOBS, install_service, restart_service, service_state, systemd, uninstall_service
from hermes.commands.service.machine import Machine, Ran, ServiceState
from hermes.config.reading import config_path
from hermes.errors import ConfigError, ServiceError
from hermes.listener.daemon import REAPING_S
from hermes.listener.phone.polling import ABSENCE_S
from tests.harness.home import ROOT
from tests.harness.systemd import analyze

if TYPE_CHECKING:
    from collections.abc import Sequence

WELL = "ActiveState=active\nSubState=running\nStatusText=Telegram answers\nUnitFileState=enabled\n"
STARTING = "ActiveState=activating\nSubState=start\nStatusText=no updates from Telegram: no network\nResult=success\n"
FAILED = "ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=1\n"


@dataclass
class Seat:
    """A machine whose commands answer as told: the first answer whose key begins the command, else nothing at all."""

    home: Path
    platform: str = "linux"
    answers: dict[str, Ran] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    clock_s: float = 5000.0

    def run(self, command: Sequence[str]) -> Ran:
        said = " ".join(command)
        self.asked.append(said)
        return next((self.answers[key] for key in self.answers if said.startswith(key)), Ran(0, ""))

    def sleep(self, seconds: float) -> None:
        self.clock_s += seconds

    @property
    def machine(self) -> Machine:
        return Machine(
            environ={"HOME": str(self.home), **self.environ},
            platform=self.platform,
            run=self.run,
            monotonic=lambda: self.clock_s,
            sleep=self.sleep,
        )

    def install(self, what: str = "service", config: str = "config.toml") -> list[str]:
        place, log = self.home / config, self.home / "hermes.log"
        return list(install_service(what, python=sys.executable, config_path=place, log=log, machine=self.machine))

    def restart(self) -> str:
        return restart_service(log=self.home / "hermes.log", machine=self.machine)

    def uninstall(self, what: str = "service") -> list[str]:
        return list(uninstall_service(what, machine=self.machine))

    def unit(self, name: str = "hermes.service") -> Path:
        return self.home / ".config" / "systemd" / "user" / name

    def agent(self, name: str = "listen") -> Path:
        return self.home / "Library" / "LaunchAgents" / f"hermes-telegram-phone.{name}.plist"


@pytest.fixture
def seat(tmp_path: Path) -> Seat:
    """A Linux machine where all goes well."""
    return Seat(tmp_path, answers={"systemctl --user show hermes": Ran(0, WELL)})


@pytest.fixture
def mac(tmp_path: Path) -> Seat:
    """A Mac where nothing is loaded yet."""
    return Seat(tmp_path, "darwin", {"launchctl print": Ran(113, "Could not find service")})


# --- systemd ------------------------------------------------------------------------------------------------------


def test_the_unit_names_this_very_hermes_and_is_started(seat: Seat) -> None:
    """By its absolute interpreter, isolated, with the configuration; nobody waits for Telegram in a command."""
    said = seat.install()
    assert said[:2] == [f"{seat.unit()} is installed.", "hermes.service is active: Telegram answers."]
    text = seat.unit().read_text()
    assert text.startswith(f"{systemd.MARKER} written by `hermes install`")
    assert f"\nExecStart={sys.executable} -I -m hermes listen --config {seat.home}/config.toml\n" in text
    assert text.count("ExecStart=") == 1
    assert stat.S_IMODE(seat.unit().stat().st_mode) == 0o600
    manager = [one.removeprefix("systemctl --user ") for one in seat.asked if one.startswith("systemctl --user ")]
    assert [one for one in manager if not one.startswith("show")] == [
        "daemon-reload",
        "stop hermes.service",
        "enable hermes.service",
        "reset-failed hermes.service",
        "--no-block start hermes.service",
    ]


def test_installing_again_says_so(seat: Seat) -> None:
    """Up to date: nothing is written, nothing is stopped; older: it is updated and started anew."""
    seat.install()
    before = seat.unit().stat().st_mtime_ns
    seat.asked.clear()
    assert seat.install()[0] == f"{seat.unit()} is already installed and up to date."
    assert seat.unit().stat().st_mtime_ns == before
    assert not {"systemctl --user stop hermes.service", "systemctl --user daemon-reload"} & set(seat.asked)
    seat.unit().write_text(f"{systemd.MARKER} of an older version\n")
    assert seat.install()[0] == f"{seat.unit()} was updated."
    assert "systemctl --user stop hermes.service" in seat.asked


def test_a_foreign_unit_stays(seat: Seat) -> None:
    """In both directions; nothing is asked of systemd but whether it is there."""
    seat.unit().parent.mkdir(parents=True)
    seat.unit().write_text("[Service]\nExecStart=/usr/bin/somebody-elses\n")
    for change in (seat.install, seat.uninstall):
        with pytest.raises(ConfigError, match="was not written by Hermes; it stays as it is"):
            change()
    assert "somebody-elses" in seat.unit().read_text()
    assert {one.split()[2] for one in seat.asked} <= {"show"}


def test_the_place_follows_the_configuration_folder(seat: Seat, tmp_path: Path) -> None:
    """XDG_CONFIG_HOME for the unit; a store of the shell's own goes into it, or the service would have another."""
    seat.environ |= {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "XDG_STATE_HOME": f"{tmp_path}/50 %"}
    seat.install()
    text = (tmp_path / "xdg" / "systemd" / "user" / "hermes.service").read_text()
    assert f'\nEnvironment="XDG_STATE_HOME={tmp_path}/50 %%"\n' in text
    assert not seat.unit().exists()


def test_without_a_user_manager_nothing_is_written(seat: Seat) -> None:
    """One sentence: what it may be, and what to do instead."""
    seat.answers = {"systemctl --user show": Ran(1, "Failed to connect to bus: No medium found")}
    with pytest.raises(ServiceError, match=r"a container, WSL without systemd.*run `hermes listen`\.$"):
        seat.install()
    with pytest.raises(ServiceError, match=r"run `hermes reap` every 90 s\.$"):
        seat.install("reap")
    assert not (seat.home / ".config").exists()
    assert service_state(machine=seat.machine) == ServiceState(
        "none",
        installed=False,
        enabled=False,
        active=False,
        detail="systemd does not run here for this user",
    )


def test_settings_of_the_shell_alone_are_refused(seat: Seat) -> None:
    """No service would see them; their values are not repeated."""
    seat.environ |= {"HERMES_TELEGRAM__TOKEN": "1:hush", "HERMES_CONFIG": "/x", "HERMES_REQUIRE_SCENES": "1"}
    with pytest.raises(
        ConfigError, match=r"^HERMES_TELEGRAM__TOKEN is set in this shell alone.*config.toml"
    ) as refused:
        seat.install()
    assert "hush" not in str(refused.value)
    assert seat.asked == []


def test_one_that_fails_is_shown_with_its_last_words(seat: Seat) -> None:
    """From the journal, or where that is silent, from the log."""
    seat.answers = {"systemctl --user show hermes": Ran(0, FAILED), "journalctl": Ran(0, "hermes: no room\n")}
    with pytest.raises(ServiceError, match=r"is failed: exit-code \(status 1\); the end of its log:\nhermes: no room$"):
        seat.install()
    seat.answers["journalctl"] = Ran(1, "No journal files were found.")
    (seat.home / "hermes.log").write_text("".join(f"line {number}\n" for number in range(20)))
    with pytest.raises(ServiceError, match=r"its log:\nline 12\n(line \d+\n)+line 19$"):
        seat.install()


def test_restarting_takes_what_is_there(seat: Seat) -> None:
    """A unit that somebody copied by hand, settings in the shell: nothing is written, enabled or refused."""
    seat.environ["HERMES_LOG__LEVEL"] = "debug"
    seat.unit().parent.mkdir(parents=True)
    seat.unit().write_text("[Service]\nExecStart=%h/.local/bin/hermes listen\n")
    assert seat.restart() == "hermes.service is active: Telegram answers."
    assert "somebody" not in seat.unit().read_text()
    assert [one.removeprefix("systemctl --user ") for one in seat.asked if " show " not in one] == [
        "stop hermes.service",
        "reset-failed hermes.service",
        "--no-block start hermes.service",
    ]
    seat.answers = {"systemctl --user show hermes": Ran(0, FAILED)}
    with pytest.raises(ServiceError, match=r"is failed: exit-code \(status 1\)"):
        seat.restart()


def test_the_state_tells_process_and_command(seat: Seat) -> None:
    """The command as it was given, whatever signs are in it; where no unit is, or it is broken, none."""
    assert (service_state(machine=seat.machine).pid, service_state(machine=seat.machine).command) == (0, ())
    odd = 'it\'s "50 %" of $HOME \\ é'
    (seat.home / odd).mkdir()
    seat.install(config=f"{odd}/config.toml")
    seat.answers = {"systemctl --user show hermes": Ran(0, f"{WELL}MainPID=4711\n")}
    state = service_state(machine=seat.machine)
    assert (state.pid, state.command[-2:]) == (4711, ("--config", f"{seat.home}/{odd}/config.toml"))
    seat.unit().write_text('[Service]\nExecStart="hermes\n')
    assert service_state(machine=seat.machine).command == ()


def test_one_that_waits_for_another_listener_is_well(seat: Seat) -> None:
    """One that a hook started leaves when it is idle: nobody has to wait for that."""
    waits = "ActiveState=activating\nStatusText=waiting: hermes listen (pid 3) holds the bot\n"
    seat.answers = {"systemctl --user show hermes": Ran(0, waits)}
    began_s = seat.clock_s
    assert seat.install()[1] == "hermes.service is activating: waiting: hermes listen (pid 3) holds the bot."
    assert seat.clock_s == began_s


def test_one_that_is_not_ready_yet_goes_on_trying(seat: Seat) -> None:
    """After half a minute: installed, and what it waits for."""
    seat.answers = {"systemctl --user show hermes": Ran(0, STARTING)}
    began_s = seat.clock_s
    with pytest.raises(ServiceError, match=r"not ready yet \(activating: no updates from Telegram: no network\)"):
        seat.install()
    assert 30 <= seat.clock_s - began_s < 31
    assert seat.unit().exists()


def test_a_command_that_fails_is_named(seat: Seat) -> None:
    """With what it said."""
    seat.answers["systemctl --user daemon-reload"] = Ran(1, "Access denied\n")
    with pytest.raises(ServiceError, match="`systemctl --user daemon-reload` failed: Access denied"):
        seat.install()


def test_lingering_is_mentioned_where_it_is_not_switched_on(seat: Seat) -> None:
    """Else the service ends with the login."""
    assert "loginctl enable-linger" in seat.install()[-1]
    seat.answers["loginctl show-user"] = Ran(0, "Linger=yes\n")
    assert "loginctl" not in "".join(seat.install())


def test_uninstalling_takes_exactly_our_units(seat: Seat) -> None:
    """Stopped and disabled first; safe to repeat."""
    seat.install("reap")
    (seat.unit().parent / "mine.service").touch()
    seat.asked.clear()
    assert seat.uninstall("reap") == [
        f"{seat.unit('hermes-reap.service')} was removed.",
        f"{seat.unit('hermes-reap.timer')} was removed.",
        "hermes-reap.timer is stopped.",
    ]
    assert "systemctl --user disable --now hermes-reap.timer" in seat.asked
    assert [place.name for place in seat.unit().parent.iterdir()] == ["mine.service"]
    assert seat.uninstall("reap")[0].endswith("is not there; nothing was changed.")


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (WELL, (True, True, "active: Telegram answers")),
        (STARTING, (False, False, "activating: no updates from Telegram: no network")),
        ("ActiveState=failed\nResult=watchdog\nExecMainStatus=6\n", (False, False, "failed: watchdog (status 6)")),
        ("ActiveState=inactive\nResult=success\n", (False, False, "inactive")),
    ],
)
def test_the_state_is_what_systemd_tells(seat: Seat, shown: str, state: tuple[bool, bool, str]) -> None:
    """Enabled, active, and plain words."""
    seat.install()
    seat.answers = {"systemctl --user show hermes": Ran(0, shown)}
    found = service_state(machine=seat.machine)
    assert (found.kind, found.installed) == ("systemd", True)
    assert (found.enabled, found.active, found.detail) == state


def test_a_linked_unit_goes_with_its_link(seat: Seat, tmp_path: Path) -> None:
    """As it was written through the link."""
    target = tmp_path / "kept" / "hermes.service"
    seat.install()
    target.parent.mkdir()
    seat.unit().rename(target)
    seat.unit().symlink_to(target)
    seat.uninstall()
    assert not target.exists()
    assert not seat.unit().is_symlink()


def test_it_can_be_taken_away_where_no_systemd_runs(seat: Seat) -> None:
    """Over a bare connection, say: the unit and the link that enables it go."""
    seat.install()
    link = seat.unit().parent / "default.target.wants" / "hermes.service"
    link.parent.mkdir()
    link.symlink_to(seat.unit())
    seat.answers = {"systemctl --user show": Ran(1, "Failed to connect to bus")}
    assert seat.uninstall() == [f"{seat.unit()} was removed."]
    assert not link.is_symlink()


# --- the units themselves -----------------------------------------------------------------------------------------


def test_systemd_accepts_what_is_installed(seat: Seat) -> None:
    """Each unit, with real paths, some of them odd."""
    odd = 'it\'s "50 %" of $HOME \\ é'
    (seat.home / odd).mkdir()
    for what in ("service", "reap"):
        seat.install(what, config=f"{odd}/config.toml")
    units = sorted(seat.unit().parent.iterdir())
    assert [unit.name for unit in units] == ["hermes-reap.service", "hermes-reap.timer", "hermes.service"]
    assert analyze("verify", "--man=no", *units) == ""


def test_the_units_differ_from_the_delivered_ones_in_nothing_but_the_command(seat: Seat) -> None:
    """Whoever copies one by hand gets the same service."""
    seat.install()
    seat.install("reap")
    for unit in seat.unit().parent.iterdir():
        ours, delivered = unit.read_text().splitlines(), shipped(f"systemd/{unit.name}").read_text().splitlines()
        delivered = delivered[delivered.index("[Unit]") :]
        different = [(mine, theirs) for mine, theirs in zip(ours[1:], delivered, strict=True) if mine != theirs]
        assert all(mine.startswith("ExecStart=") and theirs.startswith("ExecStart=%h") for mine, theirs in different)


def test_the_reaper_comes_back_before_taps_are_lost() -> None:
    """From poll to poll, however late and long a run is, it is less than an absence; launchd the same."""
    timer = dict(re.findall(r"^(\w+Sec)=(\d+)s$", shipped("systemd/hermes-reap.timer").read_text(), re.MULTILINE))
    assert int(timer["OnUnitInactiveSec"]) == JOBS["reap"].every_s
    assert int(timer["OnUnitInactiveSec"]) + int(timer["AccuracySec"]) + REAPING_S < ABSENCE_S


def test_the_system_unit_is_accepted_and_closed(tmp_path: Path) -> None:
    """Systemd finds nothing wrong, and puts its exposure at 2.0 of 10 at most."""
    delivered = (ROOT / "systemd" / "system" / "hermes.service").read_text()
    unit = tmp_path / "hermes.service"
    unit.write_text(delivered.replace("/usr/local/bin/hermes", str(Path(sys.executable).with_name("hermes"))))
    assert analyze("verify", "--man=no", unit) == ""
    exposure = analyze("security", "--offline=true", "--no-pager", "--threshold=20", unit)
    found = re.search(r"Overall exposure level for hermes.service: (\d+\.\d)", exposure)
    assert found
    assert float(found[1]) <= 2.0


# --- launchd ------------------------------------------------------------------------------------------------------


def test_a_mac_gets_a_launchd_agent(mac: Seat) -> None:
    """It starts at the login, comes back when it failed, stays away when it was told to stop; its errors are logged."""
    assert mac.install()[0] == f"{mac.agent()} is installed."
    assert plistlib.loads(mac.agent().read_bytes()) == {
        "Label": "hermes-telegram-phone.listen",
        "ProgramArguments": [sys.executable, "-I", "-m", "hermes", "listen", "--config", f"{mac.home}/config.toml"],
        "RunAtLoad": True,
        "Umask": 0o077,
        "StandardErrorPath": f"{mac.home}/hermes.log",
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
    }
    assert stat.S_IMODE(mac.agent().stat().st_mode) == 0o600
    assert [one.split()[1] for one in mac.asked] == ["bootout", "bootstrap", "print"]
    assert re.fullmatch(rf"launchctl bootstrap gui/\d+ {mac.agent()}", mac.asked[1])


def test_a_mac_reaps_now_and_then(mac: Seat) -> None:
    """Every 90 s, as by systemd."""
    mac.install("reap")
    agent = plistlib.loads(mac.agent("reap").read_bytes())
    assert (agent["StartInterval"], agent["ProgramArguments"][4]) == (90, "reap")
    assert "KeepAlive" not in agent


def test_a_mac_that_has_it_says_so(mac: Seat) -> None:
    """Loaded and the same: nothing is started anew. Another command: it is."""
    mac.install()
    mac.answers = {"launchctl print": Ran(0, "\tstate = running\n\tpid = 1\n")}
    mac.asked.clear()
    assert mac.install() == [
        f"{mac.agent()} is already installed and up to date.",
        "hermes-telegram-phone.listen: running.",
    ]
    assert {one.split()[1] for one in mac.asked} == {"print"}
    assert mac.install(config="other.toml")[0] == f"{mac.agent()} was updated."
    state = service_state(machine=mac.machine)
    assert (state.installed, state.enabled, state.active, state.detail, state.pid) == (True, True, True, "running", 1)
    assert state.command[-2:] == ("--config", f"{mac.home}/other.toml")


def test_a_mac_that_has_it_stopped_starts_it(mac: Seat) -> None:
    """Loaded and the same, but not running: launchd itself would never start one that left as it was told to."""
    mac.install()
    mac.answers = {"launchctl print": Ran(0, "\tstate = not running\n")}
    mac.asked.clear()
    mac.install()
    assert [one.split()[1] for one in mac.asked] == ["print", "kickstart", "print"]
    mac.asked.clear()
    assert mac.restart() == "hermes-telegram-phone.listen: not running."
    assert re.fullmatch(r"launchctl kickstart -k gui/\d+/hermes-telegram-phone.listen", mac.asked[0])
    mac.answers["launchctl kickstart"] = Ran(113, "Could not find service\n")
    with pytest.raises(ServiceError, match="Could not find service"):
        mac.restart()


def test_a_mac_finds_a_folder_for_the_log(mac: Seat) -> None:
    """Launchd makes none: without it, the job would not start."""
    log = mac.home / "state" / "hermes" / "hermes.log"
    list(install_service(python=sys.executable, config_path=mac.home / "config.toml", log=log, machine=mac.machine))
    assert log.parent.is_dir()


def test_a_mac_that_refuses_is_quoted(mac: Seat) -> None:
    """With launchd's own words."""
    mac.answers["launchctl bootstrap"] = Ran(5, "Bootstrap failed: 5: Input/output error\n")
    with pytest.raises(ServiceError, match="Bootstrap failed: 5: Input/output error"):
        mac.install()
    assert service_state(machine=mac.machine).detail == "not loaded"


@pytest.mark.parametrize("foreign", [plistlib.dumps({"Label": "other"}), b"\xff", b"<plist", plistlib.dumps([1])])
def test_a_foreign_agent_stays(mac: Seat, foreign: bytes) -> None:
    """In both directions."""
    mac.agent().parent.mkdir(parents=True)
    mac.agent().write_bytes(foreign)
    for change in (mac.install, mac.uninstall):
        with pytest.raises(ConfigError, match="was not written by Hermes"):
            change()
    assert mac.agent().read_bytes() == foreign


def test_a_mac_gives_it_back(mac: Seat) -> None:
    """Stopped and removed; safe to repeat."""
    mac.install()
    assert mac.uninstall() == [f"{mac.agent()} was removed, and what it ran is stopped."]
    assert not mac.agent().exists()
    assert mac.uninstall() == [f"{mac.agent()} is not there; nothing was changed."]


# --- commands -----------------------------------------------------------------------------------------------------


def test_commands_tell_how_they_ended(tmp_path: Path) -> None:
    """Their status and all they said; none of that name is 127, one that cannot be started 126."""
    run = Machine().run
    assert run(["sh", "-c", "echo one; echo two >&2; exit 3"]) == Ran(3, "one\ntwo\n")
    assert run(["no-such-command"]).status == 127
    (tmp_path / "closed").touch()
    assert run([str(tmp_path / "closed")]).status == 126


def test_a_service_whose_command_cannot_be_read_is_not_of_each_configuration(tmp_path: Path) -> None:
    """Else a setup with another configuration would start it again in place of the listener that it has stopped."""
    state = ServiceState("systemd", installed=True, enabled=True, active=True, detail="active (running)")
    assert state.is_of(config_path(None, environ={}))
    assert not state.is_of(tmp_path / "config.toml")
