"""/away and /desk: whether asks and notices wait for a person at the computer."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from tests.listener.test_turn_notices import Claude
from tests.listening import House, house, question, until

if TYPE_CHECKING:
    from typing import Any

home = house("new", sections={"opencode2": {"enabled": False}})
WAITING: dict[str, Any] = {"questions": {"post_after": "20s"}}
AWAY, BACK = "🚶 You are away", "wait 20 s for you at the computer"


async def said(home: House, command: str, answer: str) -> None:
    """Send this command, and wait for its answer."""
    before = len([one for one in home.person.shown() if answer in one.text])
    home.person.write(command)
    await until(lambda: len([one for one in home.person.shown() if answer in one.text]) > before, f"{answer!r}")


async def waits(home: House, text: str) -> None:
    """Ask this; wait until its step has looked at it and pauses."""
    before = len(home.entries())
    home.agent.ask([question(text)])
    await until(lambda: len(home.entries()) > before and all(one.code for one in home.entries()), "the entry")
    await home.polled()
    assert home.person.find(text) is None


async def test_away_posts_at_once_what_waits_and_what_comes(home: House) -> None:
    """Also after a restart; back at the computer the next one waits again."""
    await home.start(**WAITING)
    with home.clock.standing():
        await waits(home, "Which first?")
        await said(home, "/away", AWAY)
        await home.person.sees("Which first?")
        await home.stop()
        await home.start(**WAITING)
        home.agent.ask([question("Which second?")])
        await home.person.sees("Which second?")
        await said(home, "/desk", BACK)
        await waits(home, "Which third?")
        home.pass_time(20.0)
        await home.person.sees("Which third?")


async def test_away_posts_a_notice_that_waits(home: House) -> None:
    """A notice waits as a question does."""
    await home.start(**WAITING)
    claude = Claude(home)
    with home.clock.standing():
        await claude.works("p1", 300.0)
        await claude.phase("waiting")
        await said(home, "/away", AWAY)
        await home.person.sees("shop is done · 5 min")


async def test_status_says_where_the_person_is(home: House) -> None:
    """By the last command, and what that means."""
    await home.start(**WAITING)
    await said(home, "/status", "🖥 Everything waits 20 s at the computer first (/away ends that)")
    await said(home, "/away", AWAY)
    await said(home, "/status", "🚶 You are away: everything comes at once (/desk ends that)")


async def test_at_the_computer_nothing_waits_unless_it_is_configured(home: House) -> None:
    """The answer says so, and how to change it."""
    await home.start()
    await said(home, "/desk", "still come here at once, because nothing is set to wait.")
    assert 'set post_after = "30s" below [questions]' in (await home.person.sees("still come here at once")).text
    home.agent.ask([question()])
    await home.person.sees("Which database?")
    await said(home, "/status", "1 open")
    assert "at the computer" not in (await home.person.sees("1 open")).text


async def test_the_commands_are_in_the_menu(home: House) -> None:
    """Behind the slash of every client."""
    await home.start()
    calls = await until(lambda: home.api.control.calls("setMyCommands"), "the registration")
    assert {"away", "desk"} <= {one["command"] for one in json.loads(calls[0].params["commands"])}


async def test_an_away_that_could_not_be_saved_does_not_hold(home: House) -> None:
    """Nor later, when the memory of the chat is saved again."""
    await home.start(**WAITING)
    folder = home.store / f".telegram.json.{os.getpid()}.tmp"
    folder.mkdir()
    home.person.write("/away")
    await home.person.sees("I could not save that")
    folder.rmdir()
    assert not home.listener._parts.phone.memory.at.is_away
    await said(home, "/status", "wait")
