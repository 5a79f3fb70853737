"""A real OpenCode under the doctor's eyes."""

from pathlib import Path

from hermes.commands.doctor import opencode as servers
from tests.commands.doctor.patient import Patient, named, told
from tests.harness.opencode import OpenCode


async def test_a_real_server_is_well(patient: Patient, opencode: OpenCode, project: Path) -> None:
    """Its version, its list and its stream."""
    patient.serve(opencode.url)
    found = await servers.look(patient.around())
    assert told(found) == dict.fromkeys(
        ["opencode", "opencode: password", "opencode: questions", "opencode: events"], "good"
    )
    assert named(found, "opencode").seen == f"OpenCode {opencode.home.version} at {opencode.url}"
