"""The OpenCode 2 of this user under the doctor's eyes, and in `hermes status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes.commands.doctor import opencode, opencode2, recording
from hermes.commands.status.survey import gather
from hermes.errors import HermesError, NotRunning
from hermes.sandbox.opencode2.server import OpenCode2Agent, running_opencode2
from tests.commands.doctor.patient import Patient, named, told
from tests.commands.status.test_status import lines
from tests.listening import question
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.commands.status.survey import Status


@pytest.fixture(params=["august", "released"])
def agent(patient: Patient, request: pytest.FixtureRequest) -> Iterator[OpenCode2Agent]:
    """A server that keeps its file."""
    file = patient.root / "service.json"
    patient.tables["opencode2"] = {"file": str(file)}
    patient.write()
    with running_opencode2(shape=request.param, file=file) as running:
        yield running


async def status(patient: Patient) -> Status:
    """What `hermes status` shows."""
    config = patient.around().config
    return await gather(config, a_store(config.store.path))


async def test_all_is_well_but_nothing_starts_a_listener(patient: Patient, agent: OpenCode2Agent) -> None:
    """Version, address, process and file; and what starts a listener, because no plugin does."""
    agent.ask([question()])
    found = await opencode2.look(patient.around())
    assert told(found) == {"server": "good", "questions": "good", "listener": "warning"}
    seen = named(found, "server").seen
    for part in (f"OpenCode {agent.version}", agent.url, f"process {agent.pid}", "service.json"):
        assert part in seen
    assert "1 open" in named(found, "questions").seen
    assert "install service" in named(found, "listener").mend
    (server,) = (await status(patient)).servers
    assert (server.name, server.version, server.trouble) == ("opencode2", agent.version, "")


@pytest.mark.parametrize(("named", "verdicts"), [("config.toml", set()), ("other.toml", {"listener"})])
async def test_a_service_starts_a_listener_of_its_own_configuration(
    patient: Patient, agent: OpenCode2Agent, named: str, verdicts: set[str]
) -> None:
    """That of another configuration takes in none of these questions."""
    patient.program("systemctl", '[ "$1 $2" = "--user show" ] && printf "ActiveState=inactive\\n"')
    unit = patient.home / ".config" / "systemd" / "user" / "hermes.service"
    unit.parent.mkdir(parents=True)
    unit.write_text(f"[Service]\nExecStart=/bin/hermes listen --config {patient.root / named}\n")
    found = told(await opencode2.look(patient.around()))
    assert {check for check in found if found[check] == "warning"} == verdicts


async def test_no_server_is_no_trouble(patient: Patient, agent: OpenCode2Agent) -> None:
    """Stopped, killed, or switched off."""
    agent.away(killed=True)
    agent.pid = 2**22 + 1
    agent.write_file(patient.root / "service.json", agent.url)
    assert told(await opencode2.look(patient.around())) == {"server": "good"}
    (server,) = (await status(patient)).servers
    assert server.idle
    assert "was left behind" in server.trouble
    assert any("left behind" in line for line in lines(await status(patient)))
    (patient.root / "service.json").unlink()
    assert told(await opencode2.look(patient.around())) == {"server": "good"}
    assert (await status(patient)).servers == ()


async def test_what_is_wrong_is_said(patient: Patient, agent: OpenCode2Agent) -> None:
    """Another password, a file that others may write, a server that starts, a version of tomorrow."""
    agent.password = "another one"
    assert named(await opencode2.look(patient.around()), "password").verdict == "broken"
    agent.write_file(patient.root / "service.json", agent.url)
    agent.is_starting = True
    assert "503" in named(await opencode2.look(patient.around()), "server").seen
    agent.is_starting, agent.version = False, "3.0.1"
    assert named(await opencode2.look(patient.around()), "server").verdict == "warning"
    (patient.root / "my files").mkdir()
    file = (patient.root / "service.json").rename(patient.root / "my files" / "service.json")
    file.chmod(0o666)
    patient.tables["opencode2"]["file"] = str(file)
    patient.write()
    found = named(await opencode2.look(patient.around()), "file")
    assert found.mend == f"chmod 600 '{file}'"
    assert found.mend in found.seen


def test_its_answers_are_recorded(patient: Patient, agent: OpenCode2Agent) -> None:
    """Into a new file of this user alone, without the password; it says that no question was open."""
    file = patient.root / "recorded.json"
    said = recording.record(patient.config_file, file, environ=patient.environ)
    assert f"answers of OpenCode {agent.version} to {file}" in said
    assert "No question was open" in said
    assert file.stat().st_mode & 0o777 == 0o600
    assert agent.password not in file.read_text()
    with pytest.raises(HermesError, match="is there already"):
        recording.record(patient.config_file, file, environ=patient.environ)
    agent.ask([question()])
    said = recording.record(patient.config_file, patient.root / "more.json", environ=patient.environ)
    assert "No question was open" not in said
    agent.away()
    with pytest.raises(NotRunning, match="no OpenCode 2 runs"):
        recording.record(patient.config_file, patient.root / "none.json", environ=patient.environ)
    with pytest.raises(NotRunning):  # so long a name raises an error, as a closed folder does for all but root
        recording.record(patient.config_file, patient.root / ("x" * 300), environ=patient.environ)
    assert not (patient.root / "none.json").exists()


async def test_a_url_given_by_hand_is_recognised(patient: Patient, agent: OpenCode2Agent) -> None:
    """As an OpenCode 2, by its probe."""
    patient.serve(agent.url, name="mine", password=agent.password)
    found = named(await opencode.look(patient.around()), "mine")
    assert (found.verdict, found.seen) == ("good", f"OpenCode {agent.version} at {agent.url}")
    server = next(one for one in (await status(patient)).servers if one.name == "mine")
    assert server.version == agent.version
