"""Prompts from the phone under the doctor's eyes."""

import os
from pathlib import Path

import pytest

from hermes.commands.doctor import prompts
from hermes.commands.status import command
from hermes.model.ask import Source
from hermes.model.card import Card
from hermes.model.notice import Notice, Turn
from hermes.model.prompt import PromptAbilities, Target
from hermes.storage.process_lock import UNTIL_IDLE
from tests.commands.doctor.patient import Patient, named, told

WAITS = "no listener runs all the time, so what you write on the phone waits"


@pytest.fixture
def patient(patient: Patient) -> Patient:
    """A machine whose phone may send prompts."""
    patient.tables["prompts"] = {"enabled": True}
    patient.write()
    return patient


def systemctl(patient: Patient, active: str = "inactive", *, config: Path | None = None) -> None:
    """Put a systemctl into the PATH; with `config`, a service that reads it is installed."""
    patient.program(
        "systemctl", f'[ "$1 $2" = "--user show" ] && printf "ActiveState={active}\\nUnitFileState=enabled\\n"'
    )
    if config is not None:
        unit = patient.home / ".config" / "systemd" / "user" / "hermes.service"
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text(f"[Service]\nExecStart=/bin/hermes listen --config {config}\n")


async def test_off_is_well(patient: Patient) -> None:
    """It needs nothing."""
    del patient.tables["prompts"]
    patient.write()
    (found,) = await prompts.look(patient.around())
    assert (found.verdict, found.seen) == ("good", "off: the phone can answer, and starts nothing")


@pytest.mark.parametrize("active", ["active", "activating"])
async def test_a_service_takes_them(patient: Patient, active: str) -> None:
    """One that reads this configuration."""
    systemctl(patient, active, config=patient.config_file)
    assert told(await prompts.look(patient.around())) == {"phone": "good", "listener": "good"}


@pytest.mark.parametrize("who", ["", UNTIL_IDLE])
@pytest.mark.parametrize("service", ["none", "failed", "another"])
async def test_a_problem_without_a_listener_that_always_runs(patient: Patient, who: str, service: str) -> None:
    """No service, one that failed, one of another configuration; a listener that leaves when it is idle is none."""
    if service == "none":
        systemctl(patient)
    else:
        broken = service == "failed"
        config = patient.config_file if broken else patient.root / "other.toml"
        systemctl(patient, "failed" if broken else "active", config=config)
    held = patient.store.home.hold(who) if who else None
    found = named(await prompts.look(patient.around()), "listener")
    if held is not None:
        held.release()
    mend = f"hermes install service --config {patient.config_file}"
    assert (found.verdict, found.seen, found.mend) == ("broken", WAITS, mend)


async def test_a_listener_without_a_service_is_a_warning(patient: Patient) -> None:
    """It takes prompts until the machine starts again."""
    systemctl(patient)
    with patient.store.home.hold("hermes listen"):
        found = named(await prompts.look(patient.around()), "listener")
    assert (found.verdict, found.mend) == ("warning", f"hermes install service --config {patient.config_file}")
    assert found.seen == f"hermes listen (pid {os.getpid()}) takes them, and no service starts it again if it ends"


async def test_where_no_service_can_run_a_listener_is_enough(patient: Patient) -> None:
    """As in a container; without one it is started by hand."""
    found = named(await prompts.look(patient.around()), "listener")
    assert (found.verdict, found.mend) == ("broken", f"hermes listen --config {patient.config_file}")
    with patient.store.home.hold("hermes listen"):
        assert named(await prompts.look(patient.around()), "listener").verdict == "good"


async def test_the_projects_are_named(patient: Patient) -> None:
    """One that no known session matches is no fault, and said; as long as no session is known, nothing is."""
    assert named(await prompts.look(patient.around()), "phone").seen == "on: it may start work in all projects"
    patient.tables["prompts"]["projects"] = ["shop", "/srv/docs/", "shpo"]
    patient.write()
    on = "on: it may start work in shop, /srv/docs/, shpo"
    found = named(await prompts.look(patient.around()), "phone")
    assert (found.verdict, found.seen) == ("good", on)
    listed = Target(Source("opencode2", "laptop", "s1", directory="/home/me/shop"), "OpenCode", PromptAbilities())
    await patient.store.cards.create(Card("abcdefgh", 1001, listed))
    turn = Turn(Source("opencode2", "laptop", "s2", directory="/srv/docs"), "OpenCode", "t", 1.0, 2.0, "")
    await patient.store.notices.create(Notice("abcdefgh", "opencode2", "s2", "posted", turn=turn))
    await patient.store.notices.create(Notice("bbcdefgh", "opencode2", "s3", "none"))
    found = named(await prompts.look(patient.around()), "phone")
    assert (found.verdict, found.seen) == ("good", f"{on}; no session of shpo is known yet")


@pytest.mark.parametrize("is_on", [True, False])
def test_with_prompts_no_listener_is_not_idle(
    patient: Patient, capsys: pytest.CaptureFixture[str], *, is_on: bool
) -> None:
    """An agent's question starts one, but a prompt does not."""
    patient.tables["prompts"] = {"enabled": is_on}
    patient.write()
    patient.install()
    command.run(patient.config_file, environ=patient.environ, watch=False, as_json=False, check=False)
    assert ("nobody listens: answers and prompts wait" in capsys.readouterr().out) is is_on


async def test_a_program_that_hears_voice_notes_must_be_there(patient: Patient) -> None:
    """By its whole path or in one of the usual folders, as a listener starts it: the PATH of the shell is not used."""
    systemctl(patient, "active", config=patient.config_file)
    hears = patient.program("hears", "true")
    for program, is_there in (
        (str(hears), True),
        ("sh", True),
        ("hears", False),
        ("/nowhere/hears", False),
        ("", False),
    ):
        patient.tables["prompts"] = {"enabled": True, "transcribe": [program, "-f"]}
        patient.write()
        found = named(await prompts.look(patient.around()), "voice notes")
        assert found.verdict == ("good" if is_there else "broken"), program
        assert f"{program!r} in prompts.transcribe cannot be started" in found.seen or is_there
