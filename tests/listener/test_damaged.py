"""Damaged files that cannot be put away: each holds up its own ask alone, and is said in the log, not screamed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.hook import spool
from tests.listening import House, a_request, house, question, until

if TYPE_CHECKING:
    from hermes.model.entry import Entry

ASKED = "Which database?"
home = house("new")
manners = pytest.mark.parametrize("trouble", ["no quarantine", "a folder in its place"])


def spoil(home: House, entry: Entry, trouble: str) -> None:
    """Damage the entry's file so that it can neither be read nor be put into quarantine."""
    file = home.store / "pending" / f"{entry.id}.json"
    file.unlink()
    if trouble == "no quarantine":
        (home.store / "quarantine").rmdir()
        (home.store / "quarantine").write_text("in the way")
        file.write_text("{")
    else:
        file.mkdir()


@manners
async def test_the_inbox_goes_on(home: House, trouble: str, caplog: pytest.LogCaptureFixture) -> None:
    """News of the damaged ask stays; a question behind it is posted; the log says it once, without a traceback."""
    await home.start()
    home.hook("question.asked", a_request("que_1", session="ses_1"))
    shown = await home.person.sees(ASKED)
    await home.noted(shown)
    spoil(home, home.entry(), trouble)
    home.hook("question.replied", {"sessionID": "ses_1", "requestID": "que_1", "answers": [["SQLite"]]})
    home.hook("question.asked", a_request("que_2", question("Another one?"), session="ses_2", call="call_2"))
    await home.person.sees("Another one?")
    home.hook("question.asked", a_request("que_3", question("A third one?"), session="ses_3", call="call_3"))
    await home.person.sees("A third one?")
    assert "Traceback" not in caplog.text
    assert caplog.text.count("could not be taken in") <= 1


@manners
async def test_a_servers_events_go_on(home: House, trouble: str, caplog: pytest.LogCaptureFixture) -> None:
    """The end of the damaged ask cannot be noted; the next question of the same session is posted, and answered."""
    await home.start()
    first = home.agent.ask([question()])
    await home.noted(await home.person.sees(ASKED))
    spoil(home, home.entry(), trouble)
    home.agent.answer(first, [["SQLite"]])
    home.agent.ask([question("Another one?")])
    await home.person.taps(await home.person.sees("Another one?"), "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    assert "stumbled" not in caplog.text


@manners
async def test_a_server_that_comes_back_is_followed(home: House, trouble: str) -> None:
    """Its list of open questions names the damaged one first; those behind it are posted all the same."""
    await home.start()
    home.agent.ask([question()])
    await home.noted(await home.person.sees(ASKED))
    await home.stop()
    await home.start()
    spoil(home, home.entry(), trouble)
    home.agent.away()
    home.agent.back()
    home.agent.ask([question("Another one?")])
    await home.person.sees("Another one?")


async def test_a_damaged_record_that_cannot_be_put_away_holds_up_no_other(
    home: House, caplog: pytest.LogCaptureFixture
) -> None:
    """There is no quarantine: the file stays, said once."""
    await home.start()
    (home.store / "quarantine").rmdir()
    (home.store / "quarantine").write_text("in the way")
    damaged = Path(spool.drop(home.store, {"v": 1}))
    for number in range(3):
        asked = a_request(f"que_{number}", question(f"Question {number}?"), session=f"ses_{number}", call=f"c{number}")
        home.hook("question.asked", asked)
        await home.person.sees(f"Question {number}?")
    assert damaged.exists()
    assert caplog.text.count(damaged.name) == 1
    assert "Traceback" not in caplog.text


async def test_a_pipe_in_the_inbox_makes_nobody_wait(home: House) -> None:
    """To open one without a writer would hold up all questions and taps; it is put away as a damaged record."""
    await home.start()
    pipe = home.store / "inbox" / "00000000000000000001-1-abcdef01.json"
    pipe.parent.mkdir(mode=0o700, exist_ok=True)
    os.mkfifo(pipe, 0o600)
    home.hook("question.asked", a_request())
    await home.person.taps(await home.person.sees(ASKED), "SQLite")
    assert not pipe.exists()


async def test_strange_files_among_the_locks_of_hooks_stop_nobody(home: House) -> None:
    """A folder with the name of a lock, at the start and while hooks are looked for."""
    (home.store / "wait" / f"{home.wait_id('que_0')}.1.lock").mkdir(parents=True)
    await home.start()
    with home.waiting("que_1"):
        home.hook("question.asked", a_request())
        await home.person.taps(await home.person.sees(ASKED), "SQLite")
        await until(lambda: spool.take_answer(home.store, home.wait_id("que_1")), "the answer")


async def test_an_answer_that_cannot_be_laid_ready_holds_up_no_other(home: House) -> None:
    """A folder stands where the answer belongs: its record stays, and the next question is posted."""
    await home.start()
    wait = home.wait_id("que_1", "generic")
    (home.store / "wait" / f"{wait}.answer" / "x").mkdir(parents=True)
    with home.waiting("que_1", "generic"):
        spool.drop(home.store, spool.record("generic", {"id": "que_1", "questions": "none"}))
        home.hook("question.asked", a_request("que_2"))
        await home.person.sees(ASKED)
