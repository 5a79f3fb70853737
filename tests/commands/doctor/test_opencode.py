"""Configured OpenCode servers under the doctor's eyes: the scripted agent, in both manners."""

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

from hermes.agents.opencode2.discovery import port_of
from hermes.commands.doctor import opencode
from hermes.sandbox.botapi import RunningBotApi
from hermes.sandbox.opencode.events import Manner
from hermes.sandbox.opencode.server import ScriptedAgent, running_agent
from tests.commands.doctor.patient import Patient, named, told
from tests.listening import question

WELL = {"opencode": "good", "opencode: password": "good", "opencode: questions": "good", "opencode: events": "good"}


@pytest.fixture(params=["old", "new"])
def agent(request: pytest.FixtureRequest) -> Iterator[ScriptedAgent]:
    """A server of each manner."""
    manner: Manner = request.param
    with running_agent(manner=manner) as agent:
        yield agent


async def test_all_is_well(patient: Patient, agent: ScriptedAgent) -> None:
    """Version and address; the list; the stream."""
    agent.ask([question()])
    patient.serve(agent.url)
    found = await opencode.look(patient.around())
    assert told(found) == WELL
    assert f"OpenCode {agent.version} at {agent.url}" in named(found, "opencode").seen
    assert named(found, "opencode: questions").seen == "listed: 1 open in /home/dev/project"


async def test_a_project_that_rested_for_long_is_not_woken_up(patient: Patient, agent: ScriptedAgent) -> None:
    """To ask for a directory starts an instance there: only one that a listener would ask for is asked for."""
    agent.ask([question()])
    patient.serve(agent.url)
    for session in agent.sessions.values():
        session.updated_ms -= 3_600_000
    found = named(await opencode.look(patient.around()), "opencode: questions")
    assert found.seen.endswith(" open and no project of the last 30 min")


async def test_without_a_server_there_is_one_good_line(patient: Patient) -> None:
    """A plugin needs none."""
    assert told(await opencode.look(patient.around())) == {"servers": "good"}


async def test_a_server_that_is_away_is_one_line(patient: Patient, agent: ScriptedAgent) -> None:
    """With the command that starts it; another one is looked at all the same."""
    agent.away()
    with running_agent() as other:
        patient.serve(agent.url, name="one")
        patient.serve(other.url, name="two")
        found = await opencode.look(patient.around())
    assert [one.verdict for one in found] == ["broken", "good", "good", "good", "good"]
    assert "nobody answers there" in found[0].seen
    assert found[0].mend == f"opencode serve --port {agent.url.rpartition(':')[2]}"


async def test_a_server_elsewhere_is_started_there(patient: Patient) -> None:
    """Who listens on a port of this machine says nothing about it."""
    patient.serve("http://hermes.invalid:4096")
    (found,) = await opencode.look(patient.around())
    assert found.mend == "start it there, or correct the url of [[opencode]] 'opencode'"


async def test_something_else_on_that_port_is_told(patient: Patient) -> None:
    """A process that listens and never answers: given up in a second."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        patient.serve(f"http://127.0.0.1:{mute.getsockname()[1]}")
        (found,) = await opencode.look(patient.around())
    assert found.verdict == "broken"
    assert found.mend.startswith("is url of")


async def test_another_program_that_speaks_http_is_told(patient: Patient, api: RunningBotApi) -> None:
    """It is no OpenCode."""
    patient.serve(api.base_url)
    (found,) = await opencode.look(patient.around())
    assert (found.verdict, found.mend.startswith("is url of")) == ("broken", True)


async def test_a_wrong_password_is_told_without_it(patient: Patient, agent: ScriptedAgent) -> None:
    """And where the right one belongs."""
    agent.password = "the-right-one"
    patient.serve(agent.url, password="the-wrong-one")
    (found,) = await opencode.look(patient.around())
    assert found.verdict == "broken"
    assert found.mend == "set password of [[opencode]] 'opencode' to the server's OPENCODE_SERVER_PASSWORD"
    assert "the-wrong" not in str(found)


async def test_a_right_password_is_well(patient: Patient, agent: ScriptedAgent) -> None:
    """It was wanted."""
    agent.password = "the-right-one"
    patient.serve(agent.url, password="the-right-one")
    found = await opencode.look(patient.around())
    assert told(found) == WELL
    assert named(found, "opencode: password").seen == "wanted, and right"


async def test_a_password_that_nobody_wants_is_a_warning(patient: Patient, agent: ScriptedAgent) -> None:
    """Whoever set it believes the server closed."""
    patient.serve(agent.url, password="hush-hush")
    assert told(await opencode.look(patient.around())) == {**WELL, "opencode: password": "warning"}


@pytest.mark.parametrize(("bound", "verdict"), [("0.0.0.0", "warning"), ("127.0.0.1", "good")])  # noqa: S104
async def test_no_password_and_open_to_other_machines_is_a_warning(patient: Patient, bound: str, verdict: str) -> None:
    """It listens on all addresses, or on loopback alone."""
    with socket.create_server((bound, 0)) as server:
        patient.serve(f"http://127.0.0.1:{server.getsockname()[1]}")
        (configured,) = patient.around().config.opencode
        (found,) = await opencode._password(configured)
    assert (found.verdict, "other machines" in found.seen) == (verdict, verdict == "warning")


async def test_an_older_version_than_was_ever_run_is_a_warning(patient: Patient, agent: ScriptedAgent) -> None:
    """It may work."""
    agent.version = "1.0.150"
    patient.serve(agent.url)
    found = named(await opencode.look(patient.around()), "opencode")
    assert (found.verdict, found.mend) == ("warning", "opencode upgrade")


async def test_a_list_that_fails_is_broken(patient: Patient, agent: ScriptedAgent) -> None:
    """The rest is told as it is."""
    agent.fault("questions", "error", status=500)
    patient.serve(agent.url)
    assert told(await opencode.look(patient.around())) == {**WELL, "opencode: questions": "broken"}


async def test_a_stream_that_says_nothing_is_given_up(patient: Patient, agent: ScriptedAgent) -> None:
    """After three seconds; one that breaks is told at once."""
    patient.serve(agent.url)
    agent.fault("events", "slow", delay_s=60)
    began_s = time.monotonic()
    found = await opencode.look(patient.around())
    assert told(found) == {**WELL, "opencode: events": "broken"}
    assert 2.5 < time.monotonic() - began_s < 30
    agent.fault("events", "cut")
    assert told(await opencode.look(patient.around())) == {**WELL, "opencode: events": "broken"}


def test_a_port_follows_from_the_scheme_where_none_is_written() -> None:
    """The URL's own counts first."""
    urls = ("http://127.0.0.1:1", "http://localhost", "https://example.org")
    assert [port_of(url) for url in urls] == [1, 80, 443]


def test_everything_is_looked_at_at_once(patient: Patient) -> None:
    """Five servers that never answer take no longer than one: one after another they would take ten seconds."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        for number in range(5):
            patient.serve(f"http://127.0.0.1:{mute.getsockname()[1]}", name=f"oc{number}")
        began_s = time.monotonic()
        found = asyncio.run(opencode.look(patient.around()))
    assert [one.verdict for one in found] == ["broken"] * 5
    assert time.monotonic() - began_s < 9
