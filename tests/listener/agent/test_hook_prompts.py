"""Prompts for agents without a server: what lies ready, what was taken, and what their hooks tell of turns."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.agents.registry import PROMPT_ABILITIES
from hermes.core import notices, prompts
from hermes.core.notices import NoticeRules, Post
from hermes.errors import AgentAway, AgentRefused
from hermes.hook import prompt_files, spool
from hermes.listener.agent.hook_prompts import HELD_S, LIES_S, LOST_S, STARTING_S, HookPrompts
from hermes.listener.agent.turn_reports import TurnReports
from hermes.listener.kept import Kept
from hermes.listener.wakes import Wakes
from hermes.model.ask import Source
from hermes.model.notice import Turn
from hermes.model.prompt import Content, Prompt, Sight, Target
from hermes.model.prompt_events import Addressed, Seen, Trying
from hermes.model.signals import SessionEnded, TurnBegan, TurnEnded, TurnStopped
from hermes.model.state import Part
from tests.asks import ANN, CHAT_ID
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

AGENT, ID = "oh-my-pi", "id_1"
SOURCE = Source(AGENT, "laptop", "ses_1", "/home/dev/shop")
NAME = prompt_files.name_of(AGENT, "laptop", "ses_1")
CAN = PROMPT_ABILITIES[AGENT]
QUEUED = prompts.step(
    Prompt("prompt_a", ANN, CHAT_ID, (Part(7, "Go on"),), 1000.0),
    Addressed(1000.0, Target(SOURCE, "oh-my-pi", CAN)),
)
TRIED = prompts.step(prompts.step(QUEUED, Seen(1000.0, Sight("idle", next_id=ID))), Trying(1000.0))


class House:
    """A store with one prompt, and a hook that waits or not."""

    def __init__(self, root: Path) -> None:
        self.now_s = 1001.0
        self.root = root
        self.store = a_store(root, now=lambda: self.now_s)
        self.kept = Kept(self.store, NoticeRules(has_prompts=True), Wakes())
        self.turns = TurnReports(self.kept)
        home, kept = self.store.home, self.kept
        self.way = HookPrompts(AGENT, home=home, host="laptop", kept=kept, sleep=self.sleep)
        self.held: int | None = None
        self.takes_stop = False

    async def sleep(self, _: float) -> None:
        """Let the hook take what lies there."""
        if self.takes_stop:
            prompt_files.take(self.root, NAME)

    async def keep(self, prompt: Prompt = TRIED) -> None:
        """Keep a prompt."""
        await self.kept.prompts.make(lambda _: False, lambda: prompt, lambda one: one)

    def sit(self, **more: str) -> None:
        """Let a hook wait."""
        said = {"agent": AGENT, "session": "ses_1", "machine": "laptop", "directory": "/home/dev/shop", **more}
        self.held = prompt_files.take_place(self.root, NAME, said)
        assert self.held is not None

    def leave(self) -> None:
        """Let it leave."""
        if self.held is not None:
            prompt_files.leave_place(self.root, NAME, self.held)
        self.held = None

    def prompt(self) -> Prompt:
        """The one prompt."""
        (prompt,) = self.kept.prompts.all()
        return prompt

    async def look(self) -> tuple[str, str]:
        """The state of the session and of the prompt."""
        sight = await self.way.look(SOURCE, self.prompt().record_id)
        return sight.session, sight.record

    async def lay(self) -> None:
        """Send the prompt."""
        await self.way.send(SOURCE, ID, Content("text", "Go on"))

    async def begins(self, turn_id: str, prompt_id: str = "", *, from_phone: bool = False) -> None:
        """A turn begins."""
        await self.turns.take(TurnBegan(AGENT, "ses_1", turn_id, self.now_s, prompt_id, from_phone))
        self.now_s += 1

    async def ends(self, turn_id: str, failure: str = "") -> None:
        """A turn ends."""
        turn = Turn(SOURCE, "oh-my-pi", turn_id, None, self.now_s, words="Done.", failure=failure)
        await self.turns.take(TurnEnded(turn))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A store that is open, with a prompt that was tried."""
    made = House(tmp_path / "store")
    await made.store.open()
    await made.kept.open()
    yield made
    made.leave()


async def test_a_prompt_lies_ready_until_a_hook_takes_it(house: House) -> None:
    """It is unknown while the hook writes its receipt, and admitted once that is read: never absent again."""
    await house.keep()
    house.sit()
    assert await house.look() == ("idle", "absent")
    await house.lay()
    assert await house.look() == ("idle", "waiting")
    given = json.loads(prompt_files.take(house.root, NAME) or "")
    assert (given["id"], given["text"]) == (ID, "Go on")
    assert await house.look() == ("idle", "waiting"), "a hook has it in its hands"
    spool.drop(house.root, spool.record(AGENT, {"type": "prompt.taken", "prompt": ID}))
    prompt_files.confirm_taken(house.root, NAME)
    assert await house.look() == ("idle", "waiting"), "its receipt is not read yet"
    await house.turns.taken(ID)
    (receipt,) = spool.listing(house.root)
    receipt.unlink()
    assert await house.look() == ("idle", "admitted")
    assert house.prompt().phase == "admitted"


async def test_what_no_hook_takes_is_taken_back(house: House) -> None:
    """Its hook has left, or it has lain for long: it is absent, and can be laid ready again."""
    await house.keep()
    house.sit()
    await house.lay()
    house.now_s += LIES_S + 1
    assert await house.look() == ("idle", "absent")
    await house.kept.prompts.change("prompt_a", lambda one: replace(one, tried_s=house.now_s))
    await house.lay()
    house.leave()
    with pytest.raises(AgentAway):
        await house.look()
    assert prompt_files.lying(house.root, NAME) is None
    house.now_s += LOST_S + 1
    with pytest.raises(AgentAway):
        await house.lay()
    assert await house.look() == ("gone", "absent")


async def test_a_hook_that_died_with_it_lets_it_be_sent_again(house: House) -> None:
    """It had left no receipt, so the agent has not got it."""
    await house.keep()
    house.sit()
    await house.lay()
    prompt_files.take(house.root, NAME)
    house.leave()
    house.sit()
    prompt_files.confirm_taken(house.root, NAME)
    assert await house.look() == ("idle", "absent")


@pytest.mark.parametrize("named", [True, False], ids=["with its id", "from the phone"])
@pytest.mark.parametrize("failure", ["", "overloaded"])
async def test_its_turn_runs_and_ends(house: House, named: bool, failure: str) -> None:
    """The agent names the prompt that began a turn, or only says that one did; told twice is told once."""
    await house.keep()
    house.sit()
    await house.turns.taken(ID)
    for _ in range(2):
        await house.begins("turn_1", ID if named else "", from_phone=not named)
        assert await house.look() == ("busy", "running")
    for _ in range(2):
        await house.ends("turn_1", failure)
        assert (house.prompt().phase, house.prompt().reason) == ("failed" if failure else "finished", failure)
    notice = house.kept.notices.of_session(AGENT, "ses_1")
    assert notice is not None
    assert notice.is_ours
    assert notice.turn is not None
    assert notice.turn.prompt_id == ID
    assert (await house.way.look(SOURCE, "")).session == "idle"


async def test_a_turn_of_the_desk_is_not_that_of_the_prompt(house: House) -> None:
    """It was typed at the moment when the hook took the prompt: the prompt has the next one."""
    await house.keep()
    house.sit()
    await house.turns.taken(ID)
    await house.begins("typed")
    assert await house.look() == ("busy", "admitted")
    await house.ends("typed")
    notice = house.kept.notices.of_session(AGENT, "ses_1")
    assert notice is not None
    assert not notice.is_ours
    await house.begins("ours", from_phone=True)
    await house.ends("ours")
    assert house.prompt().phase == "finished"


async def test_a_turn_that_goes_on_by_itself_is_still_that_of_the_prompt(house: House) -> None:
    """Its end is told."""
    await house.keep()
    house.sit()
    await house.turns.taken(ID)
    await house.begins("turn_1", ID)
    await house.ends("turn_1")
    house.now_s += 1
    await house.turns.take(TurnBegan(AGENT, "ses_1", "turn_2", house.now_s, goes_on=True))
    assert (await house.way.look(SOURCE, "")).session == "busy"
    assert house.prompt().phase == "finished"
    house.now_s += 1
    await house.ends("turn_2")
    notice = house.kept.notices.of_session(AGENT, "ses_1")
    assert notice is not None
    assert notice.turn is not None
    assert (notice.is_ours, notice.turn.id, notice.turn.began_s) == (True, "turn_2", 1001.0)
    assert [one.id for one in notice.untold] == ["turn_1"]


async def test_a_prompt_that_was_interrupted_is_not_that_of_a_background_task(house: House) -> None:
    """Esc is not told; the next turn shows that the one before is over."""
    await house.keep()
    house.sit()
    await house.turns.taken(ID)
    await house.begins("turn_1", ID)
    await house.turns.take(TurnBegan(AGENT, "ses_1", "turn_2", house.now_s, goes_on=True))
    assert house.prompt().phase == "stopped"


async def test_the_end_of_a_turn_is_told_although_a_prompt_from_the_phone_follows_at_once(house: House) -> None:
    """The prompt was sent while the turn ran, and did not come into it."""
    await house.keep()
    await house.turns.taken(ID)
    await house.begins("typed")
    house.now_s += 200
    await house.ends("typed")
    await house.begins("ours", from_phone=True)
    notice = house.kept.notices.of_session(AGENT, "ses_1")
    assert notice is not None
    assert notice.turn is not None
    assert notices.due(notice, 30.0, house.now_s) == Post(notice.turn)
    assert (notice.turn.id, notice.turn.words) == ("typed", "Done.")


async def test_the_prompt_may_be_named_after_its_turn_began(house: House) -> None:
    """As oh-my-pi does."""
    await house.keep()
    house.sit()
    await house.turns.taken(ID)
    await house.begins("turn_1")
    await house.begins("turn_1", ID)
    assert await house.look() == ("busy", "running")
    await house.begins("turn_1")
    assert await house.look() == ("busy", "running")


@pytest.mark.parametrize("told", [True, False], ids=["told", "another turn begins"])
async def test_an_interrupted_turn_stops_its_prompt(house: House, told: bool) -> None:
    """Some agents tell nothing of it."""
    await house.keep()
    house.sit()
    await house.turns.taken(ID)
    await house.begins("turn_1", ID)
    if told:
        await house.turns.take(TurnStopped(AGENT, "ses_1"))
        assert (await house.way.look(SOURCE, "")).session == "idle"
    else:
        await house.begins("turn_2")
    assert house.prompt().phase == "stopped"


async def test_an_agent_s_own_record_tells_of_an_interrupted_turn(house: House) -> None:
    """If that was after its beginning; the prompt is stopped then, and the session can have the next one."""
    times: list[float | None] = [None]
    house.way._interrupted_at = lambda path: times[0] if path == "/record" else None
    await house.keep()
    house.sit(record="/record")
    await house.turns.taken(ID)
    await house.begins("turn_1", ID)
    for at_s, seen in ((None, ("busy", "running")), (1000.0, ("busy", "running")), (1001.5, ("idle", "stopped"))):
        times[0] = at_s
        assert await house.look() == seen
    assert (await house.way.look(SOURCE, "")).session == "idle"


async def test_a_session_that_ended_is_gone(house: House) -> None:
    """With what was sent there, unless a hook waits in it again; a turn in it shows that it was resumed."""
    await house.keep()
    await house.turns.taken(ID)
    await house.begins("turn_1", ID)
    await house.turns.take(SessionEnded(AGENT, "ses_1"))
    assert (await house.way.look(SOURCE, "")).session == "gone"
    assert (await house.way.look(SOURCE, ID)).session == "gone"
    house.sit()
    assert (await house.way.look(SOURCE, "")).session == "idle"
    house.leave()
    await house.begins("turn_2")
    with pytest.raises(AgentAway):
        await house.way.look(SOURCE, "")


async def test_a_killed_agent_leaves_its_prompt_without_an_answer(house: House) -> None:
    """Nobody waits in its session: it is idle, so the prompt is given up; one without a turn yet, only after long."""
    await house.keep()
    await house.turns.taken(ID)
    assert await house.look() == ("idle", "admitted")
    await house.begins("turn_1", ID)
    assert await house.look() == ("idle", "running")


async def test_an_agent_may_hold_a_prompt_until_the_next_step_of_its_turn(house: House) -> None:
    """Whether or not a hook waits, but not if the program was started later; also in a session that was resumed."""
    house.way.can = replace(CAN, holds=True)
    await house.keep()
    await house.begins("turn_1")
    await house.turns.take(SessionEnded(AGENT, "ses_1"))
    await house.turns.taken(ID)
    for more, state in (({}, "busy"), ({"resumed": "yes"}, "idle")):
        house.sit(**more)
        assert await house.look() == (state, "admitted")
        house.leave()
    assert await house.look() == ("busy", "admitted")
    mark = house.root / "wait" / f"{NAME}.ended"
    mark.touch()
    assert (await house.way.look(SOURCE, ID)).session == "gone"
    mark.unlink()
    house.now_s += HELD_S
    assert await house.look() == ("idle", "admitted")


async def test_a_turn_that_was_killed_does_not_run_in_the_session_that_is_resumed(house: House) -> None:
    """If it began before that; the first turn may begin while the hook of the start is still on its way."""
    await house.keep()
    await house.turns.taken(ID)
    await house.begins("turn_1", ID)
    began_s = house.now_s - 1
    house.now_s = began_s + STARTING_S + 2
    for more in ({"since": began_s + STARTING_S + 1}, {"resumed": "yes", "since": began_s + STARTING_S}):
        house.sit(**{key: str(value) for key, value in more.items()})
        assert await house.look() == ("busy", "running")
        house.leave()
    house.sit(resumed="yes", since=str(began_s + STARTING_S + 3))
    assert await house.look() == ("busy", "running"), "the clock was set back since then"
    house.leave()
    house.sit(resumed="yes", since=str(began_s + STARTING_S + 1))
    assert await house.look() == ("idle", "stopped")
    await house.begins("turn_2")
    assert (await house.way.look(SOURCE, "")).session == "busy"


async def test_a_prompt_may_come_into_a_turn_that_has_ended_once(house: House) -> None:
    """A hook of the user's own has sent the agent on: the turn runs, and answers the prompt."""
    await house.keep()
    house.sit()
    await house.begins("turn_1")
    await house.ends("turn_1")
    await house.turns.taken(ID)
    house.now_s += 1
    await house.begins("turn_1")
    assert await house.look() == ("busy", "admitted"), "somebody typed, so the turn runs"
    await house.begins("turn_1", from_phone=True)
    assert await house.look() == ("busy", "running")
    await house.ends("turn_1")
    assert house.prompt().phase == "finished"
    assert (await house.way.look(SOURCE, "")).session == "idle"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_an_inbox_that_cannot_be_read_may_hold_the_receipt(house: House) -> None:
    """So nothing is sent again."""
    await house.keep()
    house.sit()
    Path(spool.drop(house.root, spool.record(AGENT, {}))).chmod(0)
    assert await house.look() == ("idle", "waiting")


async def test_open_sessions_are_listed(house: House) -> None:
    """Also one without a turn, and not those of another agent."""
    house.sit(title="Shop", since="990.0")
    other = prompt_files.take_place(house.root, "0" * 16, {"agent": "claude-code", "session": "x"})
    (listed,) = await house.way.listed(0.0)
    source = replace(SOURCE, session_title="Shop", host="laptop")
    assert (listed.target.source, listed.state, listed.used_s) == (source, "idle", 990.0)
    await house.begins("turn_1")
    assert [(one.state, one.used_s) for one in await house.way.listed(0.0)] == [("busy", 1001.0)]
    await house.ends("turn_1")
    assert [one.target.source for one in await house.way.listed(0.0)] == [SOURCE]
    assert await house.way.words(SOURCE) == ""
    assert other is not None
    prompt_files.leave_place(house.root, "0" * 16, other)


async def test_a_turn_is_ended_by_the_hook(house: House) -> None:
    """If one runs and the hook takes the word; what no hook takes is taken back."""
    house.sit()
    assert not await house.way.stop(SOURCE)
    await house.begins("turn_1")
    assert not await house.way.stop(SOURCE)
    assert prompt_files.lying(house.root, NAME) is None
    house.takes_stop = True
    assert await house.way.stop(SOURCE)


async def test_no_session_is_begun_from_the_phone(house: House) -> None:
    """The person is told."""
    with pytest.raises(AgentRefused) as refused:
        await house.way.new_session("/home/dev/shop")
    assert refused.value.said == "oh-my-pi begins a new session only at the computer"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"until": "x"}'])
def test_a_damaged_file_is_no_prompt_of_ours(text: str) -> None:
    """It is replaced by the next one."""
    assert prompt_files.read(text) is None


async def test_nothing_is_laid_for_a_session_that_has_just_ended(house: House) -> None:
    """Its hook may not have left yet, and would give the text to the session after it."""
    house.sit()
    (house.root / "wait" / f"{NAME}.ended").touch()
    with pytest.raises(AgentAway):
        await house.way.send(SOURCE, ID, Content("text", "Go on"))
    assert prompt_files.lying(house.root, NAME) is None
    prompt_files.begin_session(house.root, NAME)
    await house.way.send(SOURCE, ID, Content("text", "Go on"))
    assert prompt_files.lying(house.root, NAME) is not None


async def test_the_settings_of_an_agent_keep_files(house: House, tmp_path: Path) -> None:
    """Of one that has settings for that."""
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"deny": ["Read(plan.md)"]}}')
    source, plan = replace(SOURCE, directory=str(tmp_path)), str(tmp_path / "plan.md")
    excludes = await house.way.exclusions(source)
    assert not excludes(plan)
    way = HookPrompts("claude-code", home=house.store.home, host="laptop", kept=house.kept)
    excludes = await way.exclusions(source)
    assert excludes(plan)
