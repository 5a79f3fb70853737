"""The plugin under the doctor's eyes."""

import sys
from pathlib import Path

import pytest

from hermes import __version__
from hermes.agents.opencode import install
from hermes.agents.plugin_file import MARKER, settings_of
from hermes.commands.doctor import plugin
from hermes.commands.doctor.checkup import mend
from hermes.commands.doctor.plugin import Placed
from hermes.sandbox.opencode2.server import running_opencode2
from tests.commands.doctor.patient import Patient, named, told

WELL = dict.fromkeys(["file", "version", "python", "paths"], "good")
OPENCODE = plugin.PLUGINS[0]


async def test_all_is_well(patient: Patient) -> None:
    """As `install` wrote it."""
    patient.install()
    found = await OPENCODE.look(patient.around())
    assert told(found) == WELL
    assert named(found, "python").seen == f"{sys.executable} loads Hermes {__version__}"


async def test_nothing_that_could_ask_is_broken(patient: Patient) -> None:
    """Neither a connected agent nor a server; either is enough."""
    (found,) = await plugin.look(patient.around())
    assert (found.verdict, found.mend) == ("broken", f"hermes install opencode --config {patient.config_file}")
    patient.install()
    assert await plugin.look(patient.around()) == ()
    patient.plugin.unlink()
    patient.serve("http://127.0.0.1:9")
    assert await plugin.look(patient.around()) == ()


async def test_an_opencode_2_is_an_agent_that_can_ask(patient: Patient) -> None:
    """It runs, or its program is here; it needs no connection."""
    file = patient.root / "service.json"
    patient.tables["opencode2"] = {"file": str(file)}
    patient.write()
    with running_opencode2(file=file):
        assert await plugin.look(patient.around()) == ()
    assert len(await plugin.look(patient.around())) == 1
    patient.program("opencode", "echo 2.0.3")
    assert await plugin.look(patient.around()) == ()


async def test_a_foreign_file_of_that_name_is_left_alone(patient: Patient) -> None:
    """It is named, and the way to put it aside."""
    patient.plugin.parent.mkdir(parents=True)
    patient.plugin.write_text("// somebody else's")
    (found,) = await OPENCODE.look(patient.around())
    assert (found.verdict, found.fix) == ("broken", None)
    assert found.mend.startswith(f"mv {patient.plugin} ")


async def test_an_outdated_plugin_is_broken_and_mended(patient: Patient) -> None:
    """Its settings stay the same; other plugins of the folder too."""
    text = patient.install()
    patient.plugin.write_text(text.replace("const PATIENCE_MS", "const PATIENCE_OF_OLD_MS"))
    found = named(await OPENCODE.look(patient.around()), "version")
    assert found.verdict == "broken"
    assert "was updated." in (await mend([found]))[0]
    assert patient.plugin.read_text() == text
    assert told(await OPENCODE.look(patient.around())) == WELL


@pytest.mark.parametrize("settings", ["const settings = 7 //", "const settings = {", ""])
async def test_settings_that_cannot_be_read_are_an_outdated_plugin(patient: Patient, settings: str) -> None:
    """Whatever they were."""
    patient.plugin.parent.mkdir(parents=True)
    patient.plugin.write_text(f"{MARKER}\n{settings}\n")
    found = told(await OPENCODE.look(patient.around()))
    assert (found["version"], found["python"], found["paths"]) == ("broken", "broken", "broken")


def altered(patient: Patient, **paths: str) -> None:
    """Install a plugin with these paths in place of the usual ones."""
    patient.plugin.write_text(install.PLUGIN.text(settings_of(patient.install()) | paths))


async def test_a_python_that_is_gone_is_broken_and_mended(patient: Patient) -> None:
    """As after an upgrade of the interpreter."""
    altered(patient, python="/opt/python3.9/bin/python")
    found = await OPENCODE.look(patient.around())
    assert told(found) == {**WELL, "python": "broken"}
    assert "is not a program" in named(found, "python").seen
    await mend(found)
    assert told(await OPENCODE.look(patient.around())) == WELL


@pytest.mark.parametrize("check", ["version", "python"])
async def test_a_mended_plugin_keeps_its_paths(patient: Patient, check: str) -> None:
    """It may be of another configuration: its questions go where they went, and the command says so too."""
    theirs = {name: f"/theirs/{name}" for name in ("store", "log", "config")}
    altered(patient, **theirs, **({"python": "/opt/python3.9/bin/python"} if check == "python" else {}))
    if check == "version":
        patient.plugin.write_text(patient.plugin.read_text().replace("const PATIENCE_MS", "const PATIENCE_OF_OLD_MS"))
    found = named(await OPENCODE.look(patient.around()), check)
    assert found.mend == "hermes install opencode --config /theirs/config"
    await mend([found])
    assert settings_of(patient.plugin.read_text()) == {"python": sys.executable, **theirs}
    assert told(await OPENCODE.look(patient.around())) == {**WELL, "paths": "broken"}


async def test_a_python_without_hermes_is_broken(patient: Patient) -> None:
    """It is asked itself."""
    altered(patient, python=str(patient.program("python", "exit 1")))
    found = await OPENCODE.look(patient.around())
    assert told(found) == {**WELL, "python": "broken"}
    assert "cannot load Hermes" in named(found, "python").seen


async def test_a_python_with_another_hermes_is_a_warning(patient: Patient) -> None:
    """Nothing is written over: it may be meant. The command keeps the configuration that asks."""
    altered(patient, python=str(patient.program("python", "echo 0.0.9")), config="/theirs/config")
    found = named(await OPENCODE.look(patient.around()), "python")
    assert (found.verdict, found.fix) == ("warning", None)
    assert found.mend == "hermes install opencode --config /theirs/config"
    assert f"has Hermes 0.0.9, this is {__version__}" in found.seen


async def test_another_store_is_broken_and_another_log_a_warning(patient: Patient) -> None:
    """Questions would go where nobody listens; the other configuration may be meant, so nothing is mended."""
    altered(patient, store="/elsewhere")
    found = named(await OPENCODE.look(patient.around()), "paths")
    assert (found.verdict, found.fix) == ("broken", None)
    assert f"its store is /elsewhere, not {patient.root / 'store'}" in found.seen
    altered(patient, log="/elsewhere.log")
    assert named(await OPENCODE.look(patient.around()), "paths").verdict == "warning"


OTHERS = pytest.mark.parametrize("agent", plugin.PLUGINS[1:], ids=lambda one: one.agent.name)
OH_MY_PI = next(agent for agent in plugin.PLUGINS if agent.agent.name == "oh-my-pi")


async def put(patient: Patient, agent: Placed) -> Path:
    """Install the plugin of another agent; where it is."""
    await patient.around().put(agent.plugin.install, patient.around().plugin_paths())
    return agent.plugin.path(patient.environ)


@OTHERS
async def test_of_an_agent_that_is_not_here_nothing_is_said(patient: Patient, agent: Placed) -> None:
    """Where there is one that is not connected, it is a warning with its command."""
    assert await agent.look(patient.around()) == ()
    patient.program(agent.agent.program, "exit 1")
    (found,) = await agent.look(patient.around())
    assert (found.area, found.verdict) == (agent.area.name, "warning")
    assert found.mend == f"hermes install {agent.agent.name} --config {patient.config_file}"


@OTHERS
async def test_another_agents_plugin_is_looked_at_too(patient: Patient, agent: Placed) -> None:
    """As `install` wrote it; then one of another version, whose Python is gone, and which says another store."""
    place = await put(patient, agent)
    assert told(await agent.look(patient.around())) == WELL
    text = place.read_text()
    place.write_text(text.replace("function phone(", "function phone_of_old("))
    found = await agent.look(patient.around())
    assert told(found) == WELL | {"version": "broken"}
    assert "was updated." in (await mend(found))[0]
    assert place.read_text() == text
    place.write_text(text.replace(sys.executable, "/nowhere/python"))
    found = await agent.look(patient.around())
    assert told(found) == WELL | {"python": "broken"}
    await mend(found)
    assert place.read_text() == text
    place.write_text(text.replace(str(patient.root / "store"), "/elsewhere"))
    assert told(await agent.look(patient.around())) == WELL | {"paths": "broken"}


async def test_a_mended_extension_of_oh_my_pi_asks_where_it_did(patient: Patient) -> None:
    """What was said when it was installed stays."""
    place = await put(patient, OH_MY_PI)
    text = OH_MY_PI.plugin.text(settings_of(place.read_text()) | {"headless": True})
    place.write_text(text)
    assert told(await OH_MY_PI.look(patient.around())) == WELL
    place.write_text(text.replace(sys.executable, "/nowhere/python"))
    await mend(await OH_MY_PI.look(patient.around()))
    assert place.read_text() == text
