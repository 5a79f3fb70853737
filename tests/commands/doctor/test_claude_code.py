"""Claude Code's settings under the doctor's eyes."""

import json
import sys
from typing import Any

import pytest

from hermes import __version__
from hermes.agents.claude_code import install
from hermes.commands.doctor import claude_code, plugin
from hermes.commands.doctor.checkup import mend
from tests.commands.doctor.patient import Patient, named, told

WELL = dict.fromkeys(["hooks", "python", "paths"], "good")


def put(patient: Patient, **other: Any) -> None:
    """Install the hooks, with other paths than those in use where they are named."""
    paths = patient.around().plugin_paths()
    given = {"config_path": paths["config"], "store": paths["store"], "log": paths["log"]} | other
    install.install(environ=patient.environ, python=sys.executable, **given)


async def look(patient: Patient) -> dict[str, str]:
    """The verdict of each check."""
    return told(await claude_code.look(patient.around()))


async def test_all_is_well(patient: Patient) -> None:
    """As `install` wrote it."""
    put(patient)
    found = await claude_code.look(patient.around())
    assert told(found) == WELL
    assert named(found, "python").seen == f"{sys.executable} loads Hermes {__version__}"


async def test_where_there_is_no_claude_code_nothing_is_said(patient: Patient) -> None:
    """Where there is one that is not connected, it is a warning with its command."""
    assert await look(patient) == {}
    program = patient.bin / "claude"
    program.touch(mode=0o755)
    (found,) = await claude_code.look(patient.around())
    assert found.verdict == "warning"
    assert found.mend == f"hermes install claude-code --config {patient.config_file}"


async def test_hooks_that_are_never_run_are_broken(patient: Patient) -> None:
    """Claude Code's own switch."""
    put(patient)
    place = install.settings_path(patient.environ)
    place.write_text(json.dumps({**json.loads(place.read_text()), "disableAllHooks": True}))
    assert await look(patient) == WELL | {"hooks": "broken"}


async def test_the_hooks_of_an_older_hermes_are_broken_and_mended(patient: Patient) -> None:
    """They ask, but tell of no end of a turn and take no prompts: `hermes status` says so, too."""
    put(patient)
    place = install.settings_path(patient.environ)
    settings = json.loads(place.read_text())
    new = ("Stop", "SessionStart")
    place.write_text(json.dumps({"hooks": {name: one for name, one in settings["hooks"].items() if name not in new}}))
    found = await claude_code.look(patient.around())
    assert told(found) == WELL | {"version": "broken"}
    assert named(found, "version").mend == f"hermes install claude-code --config {patient.config_file}"
    assert named(found, "version").fix is not None
    await mend(found)
    assert (await look(patient), json.loads(place.read_text())) == (WELL, settings)


async def test_settings_that_cannot_be_read_are_broken(patient: Patient) -> None:
    """In one sentence."""
    place = install.settings_path(patient.environ)
    place.parent.mkdir()
    place.write_text("{} // mine")
    (found,) = await claude_code.look(patient.around())
    assert (found.verdict, found.seen) == (
        "broken",
        f"{place} is not JSON (line 1, column 4: Extra data); nothing was changed. Correct the file first.",
    )


async def test_a_python_that_is_gone_is_broken_and_mended(patient: Patient) -> None:
    """No hook would start."""
    put(patient)
    place = install.settings_path(patient.environ)
    place.write_text(place.read_text().replace(sys.executable, "/nowhere/python"))
    found = await claude_code.look(patient.around())
    assert told(found) == WELL | {"python": "broken"}
    assert "were updated" in (await mend(found))[0]
    assert await look(patient) == WELL


async def test_a_python_that_is_gone_is_mended_for_the_configuration_that_asks(patient: Patient) -> None:
    """Hooks that are there for another configuration go on asking there, after `--fix`, too."""
    elsewhere = patient.root / "elsewhere"
    put(patient, config_path=elsewhere / "config.toml", store=elsewhere / "store", log=elsewhere / "log")
    place = install.settings_path(patient.environ)
    before = place.read_text()
    place.write_text(before.replace(sys.executable, "/nowhere/python"))
    found = await claude_code.look(patient.around())
    assert named(found, "python").mend == f"hermes install claude-code --config {elsewhere / 'config.toml'}"
    await mend(found)
    assert place.read_text() == before


@pytest.mark.parametrize(("name", "verdict"), [("store", "broken"), ("log", "warning"), ("config_path", "warning")])
async def test_another_store_is_broken_and_another_log_a_warning(patient: Patient, name: str, verdict: str) -> None:
    """It may be meant: nothing mends it unasked."""
    put(patient, **{name: patient.root / "elsewhere"})
    found = named(await claude_code.look(patient.around()), "paths")
    assert (found.verdict, found.fix) == (verdict, None)


async def test_without_opencode_something_can_ask_all_the_same(patient: Patient) -> None:
    """Nothing is missed where Claude Code is connected."""
    put(patient)
    assert await plugin.look(patient.around()) == ()
