"""The plugin under the doctor's eyes."""

import sys
from pathlib import Path

import pytest

from hermes import __version__
from hermes.agents.opencode import install
from hermes.agents.plugin_file import MARKER, PLUGIN_NAME, settings_of
from hermes.commands.doctor import plugin
from hermes.commands.doctor.checkup import mend
from hermes.commands.doctor.placed import Placed
from hermes.sandbox.opencode.server import running_agent
from tests.commands.doctor.patient import Patient, named, told
from tests.listening import question

WELL = dict.fromkeys(["file", "version", "python", "paths", "projects"], "good")


async def test_all_is_well(patient: Patient) -> None:
    """As `install` wrote it."""
    patient.install()
    found = await plugin.look(patient.around())
    assert told(found) == WELL
    assert named(found, "python").seen == f"{sys.executable} loads Hermes {__version__}"


async def test_no_plugin_is_broken_without_servers_and_else_a_warning(patient: Patient) -> None:
    """Where nothing could ask, nothing works."""
    (found,) = await plugin.look(patient.around())
    assert (found.verdict, found.mend) == ("broken", f"hermes install opencode --config {patient.config_file}")
    patient.serve("http://127.0.0.1:9")
    (found,) = await plugin.look(patient.around())
    assert found.verdict == "warning"


async def test_a_foreign_file_of_that_name_is_left_alone(patient: Patient) -> None:
    """It is named, and the way to put it aside."""
    patient.plugin.parent.mkdir(parents=True)
    patient.plugin.write_text("// somebody else's")
    (found,) = await plugin.look(patient.around())
    assert (found.verdict, found.fix) == ("broken", None)
    assert found.mend.startswith(f"mv {patient.plugin} ")


async def test_an_outdated_plugin_is_broken_and_mended(patient: Patient) -> None:
    """Its settings stay the same; other plugins of the folder too."""
    text = patient.install()
    patient.plugin.write_text(text.replace("const PATIENCE_MS", "const PATIENCE_OF_OLD_MS"))
    found = named(await plugin.look(patient.around()), "version")
    assert found.verdict == "broken"
    assert "was updated." in (await mend([found]))[0]
    assert patient.plugin.read_text() == text
    assert told(await plugin.look(patient.around())) == WELL


@pytest.mark.parametrize("settings", ["const settings = 7 //", "const settings = {", ""])
async def test_settings_that_cannot_be_read_are_an_outdated_plugin(patient: Patient, settings: str) -> None:
    """Whatever they were."""
    patient.plugin.parent.mkdir(parents=True)
    patient.plugin.write_text(f"{MARKER}\n{settings}\n")
    found = told(await plugin.look(patient.around()))
    assert (found["version"], found["python"], found["paths"]) == ("broken", "broken", "broken")


def altered(patient: Patient, **paths: str) -> None:
    """Install a plugin with these paths in place of the usual ones."""
    patient.plugin.write_text(install.PLUGIN.text(settings_of(patient.install()) | paths))


async def test_a_python_that_is_gone_is_broken_and_mended(patient: Patient) -> None:
    """As after an upgrade of the interpreter."""
    altered(patient, python="/opt/python3.9/bin/python")
    found = await plugin.look(patient.around())
    assert told(found) == {**WELL, "python": "broken"}
    assert "is no program (any more)" in named(found, "python").seen
    await mend(found)
    assert told(await plugin.look(patient.around())) == WELL


@pytest.mark.parametrize("check", ["version", "python"])
async def test_a_mended_plugin_keeps_its_paths(patient: Patient, check: str) -> None:
    """It may be of another configuration: its questions go where they went, and the command says so too."""
    theirs = {name: f"/theirs/{name}" for name in ("store", "log", "config")}
    altered(patient, **theirs, **({"python": "/opt/python3.9/bin/python"} if check == "python" else {}))
    if check == "version":
        patient.plugin.write_text(patient.plugin.read_text().replace("const PATIENCE_MS", "const PATIENCE_OF_OLD_MS"))
    found = named(await plugin.look(patient.around()), check)
    assert found.mend == "hermes install opencode --config /theirs/config"
    await mend([found])
    assert settings_of(patient.plugin.read_text()) == {"python": sys.executable, **theirs}
    assert told(await plugin.look(patient.around())) == {**WELL, "paths": "broken"}


async def test_a_python_without_hermes_is_broken(patient: Patient) -> None:
    """It is asked itself."""
    altered(patient, python=str(patient.program("python", "exit 1")))
    found = await plugin.look(patient.around())
    assert told(found) == {**WELL, "python": "broken"}
    assert "cannot load Hermes" in named(found, "python").seen


async def test_a_python_with_another_hermes_is_a_warning(patient: Patient) -> None:
    """Nothing is written over: it may be meant."""
    altered(patient, python=str(patient.program("python", "echo 0.0.9")))
    found = named(await plugin.look(patient.around()), "python")
    assert (found.verdict, found.fix) == ("warning", None)
    assert f"has Hermes 0.0.9, this is {__version__}" in found.seen


async def test_another_store_is_broken_and_another_log_a_warning(patient: Patient) -> None:
    """Questions would go where nobody listens; the other configuration may be meant, so nothing is mended."""
    altered(patient, store="/elsewhere")
    found = named(await plugin.look(patient.around()), "paths")
    assert (found.verdict, found.fix) == ("broken", None)
    assert f"its store is /elsewhere, not {patient.root / 'store'}" in found.seen
    altered(patient, log="/elsewhere.log")
    assert named(await plugin.look(patient.around()), "paths").verdict == "warning"


@pytest.mark.parametrize("folder", ["plugin", "plugins"])
async def test_a_projects_plugin_of_that_name_is_found_above_the_folder(patient: Patient, folder: str) -> None:
    """Another text is broken; our own, copied there, is a warning."""
    text = patient.install()
    twin = patient.root / ".opencode" / folder / PLUGIN_NAME
    twin.parent.mkdir(parents=True)
    twin.write_text("// of the project")
    found = named(await plugin.look(patient.around()), "projects")
    assert (found.verdict, found.mend) == ("broken", f"rm {twin}")
    twin.write_text(text)
    assert named(await plugin.look(patient.around()), "projects").verdict == "warning"


async def test_projects_of_the_servers_are_looked_at_too(patient: Patient, tmp_path: Path) -> None:
    """Those with a session of this week; a server that is away hides no other."""
    patient.install()
    project = tmp_path / "elsewhere" / "shop"
    twin = project / ".opencode" / "plugin" / PLUGIN_NAME
    twin.parent.mkdir(parents=True)
    twin.write_text("// of the project")
    with running_agent(directory=str(project)) as agent:
        agent.ask([question()])
        patient.serve("http://127.0.0.1:9", name="away")
        patient.serve(agent.url)
        assert str(twin) in named(await plugin.look(patient.around()), "projects").seen


async def test_a_plugin_that_is_linked_is_not_its_own_twin(patient: Patient) -> None:
    """As those have it who keep their configuration in a repository that they work in."""
    patient.install()
    twin = patient.project / ".opencode" / "plugin" / PLUGIN_NAME
    twin.parent.mkdir(parents=True)
    twin.symlink_to(patient.plugin)
    assert told(await plugin.look(patient.around())) == WELL


OTHERS = pytest.mark.parametrize("agent", plugin.OTHERS, ids=lambda one: one.agent.name)
OH_MY_PI = next(agent for agent in plugin.OTHERS if agent.agent.name == "oh-my-pi")
FOUND = dict.fromkeys(["file", "version", "python", "paths"], "good")


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
    assert told(await agent.look(patient.around())) == FOUND
    text = place.read_text()
    place.write_text(text.replace("function phone(", "function phone_of_old("))
    found = await agent.look(patient.around())
    assert told(found) == FOUND | {"version": "broken"}
    assert "was updated." in (await mend(found))[0]
    assert place.read_text() == text
    place.write_text(text.replace(sys.executable, "/nowhere/python"))
    found = await agent.look(patient.around())
    assert told(found) == FOUND | {"python": "broken"}
    await mend(found)
    assert place.read_text() == text
    place.write_text(text.replace(str(patient.root / "store"), "/elsewhere"))
    assert told(await agent.look(patient.around())) == FOUND | {"paths": "broken"}


async def test_a_mended_extension_of_oh_my_pi_asks_where_it_did(patient: Patient) -> None:
    """What was said when it was installed stays."""
    place = await put(patient, OH_MY_PI)
    text = OH_MY_PI.plugin.text(settings_of(place.read_text()) | {"headless": True})
    place.write_text(text)
    assert told(await OH_MY_PI.look(patient.around())) == FOUND
    place.write_text(text.replace(sys.executable, "/nowhere/python"))
    await mend(await OH_MY_PI.look(patient.around()))
    assert place.read_text() == text
