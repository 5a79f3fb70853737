"""What becomes of a prompt that no agent can be asked about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agents.prompting import PromptWay, way_name, without_server
from hermes.core import prompts
from hermes.core.notices import NoticeRules
from hermes.core.prompts import STARTS_S
from hermes.errors import AgentAway, AgentRefused
from hermes.listener.agent.prompting import BEHIND_LOOK_S, FILE_GONE, Prompting
from hermes.listener.agent.turn_reports import TurnReports
from hermes.listener.kept import Kept
from hermes.listener.wakes import Wakes
from hermes.listener.workers import LOCKED_LOOK_S
from hermes.model.ask import Source
from hermes.model.files import File
from hermes.model.notice import Turn
from hermes.model.prompt import Content, Prompt, PromptAbilities, Sight, Target
from hermes.model.prompt_events import Addressed, Seen, Trying
from hermes.model.signals import TurnEnded
from hermes.model.state import Part
from tests.asks import ANN, CHAT_ID
from tests.prompted import Desk
from tests.stores import a_store

TARGET = Target(Source("opencode", "laptop", "ses_1"), "OpenCode", PromptAbilities())
FRESH = Prompt("prompt_a", ANN, CHAT_ID, (Part(7, "fix it"),), 0.0)
QUEUED = prompts.step(FRESH, Addressed(0.0, TARGET))
BEGUN = prompts.step(QUEUED, Seen(0.0, Sight("idle", next_id="msg_1")))
TRIED = prompts.step(BEGUN, Trying(0.0))
RUNNING = prompts.step(TRIED, Seen(1.0, Sight("busy", "running")))


class House:
    """A store with prompts, its clock, and no agent."""

    def __init__(self, root: Path) -> None:
        self.now_s = 2.0
        self.store = a_store(root, now=lambda: self.now_s)
        self.kept = Kept(self.store, NoticeRules(), Wakes())
        self.prompts, self.notices = self.kept.prompts, self.kept.notices
        self.prompting = Prompting(self.kept, {}, {}, self.store, ())

    async def keep(self, prompt: Prompt) -> None:
        """Keep a prompt."""
        await self.prompts.make(lambda _: False, lambda: prompt, lambda one: one)


@pytest.fixture
async def house(tmp_path: Path) -> House:
    """A store that is open."""
    made = House(tmp_path / "store")
    await made.store.open()
    return made


@pytest.mark.parametrize("prompt", [QUEUED, BEGUN, TRIED, RUNNING], ids=lambda one: one.phase)
async def test_a_prompt_of_an_agent_that_is_not_followed_any_more_ends(house: House, prompt: Prompt) -> None:
    """However far it has come: nobody will ever tell."""
    await house.keep(prompt)
    assert await house.prompting.step(prompt.id) == 0.0
    ended = house.prompts.get(prompt.id)
    assert ended is not None
    assert (ended.phase, ended.reason) == ("failed", "this Hermes no longer follows that agent")
    assert await house.prompting.step(prompt.id) is None


class Refusing:
    """A server that refuses its first request, so that nobody knows its way."""

    agent = "opencode"

    async def way(self) -> PromptWay:
        """Refuse."""
        raise AgentRefused("refused", said="the password is wrong")


async def test_a_new_session_at_a_server_that_refuses_ends_its_prompt(house: House) -> None:
    """The person hears why."""
    source = Source("opencode", "laptop", "", directory="/home/dev/shop", server="work")
    await house.keep(prompts.step(FRESH, Addressed(0.0, replace(TARGET, source=source))))
    prompting = Prompting(house.kept, {way_name(source): Refusing()}, {}, house.store, ())
    assert await prompting.step(FRESH.id) == 0.0
    ended = house.prompts.get(FRESH.id)
    assert ended is not None
    assert (ended.phase, ended.reason) == ("failed", "the password is wrong")


async def test_a_stop_at_a_server_that_refuses_is_told_as_failed(house: House) -> None:
    """It is not tried for ever: the person can stop the turn at the computer."""
    await house.keep(replace(RUNNING, stop="asked"))
    prompting = Prompting(house.kept, {way_name(TARGET.source): Refusing()}, {}, house.store, ())
    assert await prompting.step(RUNNING.id) == 0.0
    after = house.prompts.get(RUNNING.id)
    assert after is not None
    assert after.stop == "refused"


async def test_a_prompt_behind_another_one_looks_again_by_itself(house: House) -> None:
    """The other one may become stale, which nothing tells."""
    await house.keep(QUEUED)
    behind = prompts.step(replace(FRESH, id="prompt_b", asked_s=9.0), Addressed(9.0, TARGET))
    await house.keep(behind)
    assert await house.prompting.step(behind.id) == BEHIND_LOOK_S
    house.now_s = STARTS_S
    assert house.prompts.is_next(behind)
    assert await house.prompting.step(QUEUED.id) is None, "only the person can begin it now"


async def test_a_file_that_is_gone_before_the_next_try_counts_as_a_try(house: House) -> None:
    """So the next look decides whether an earlier one has arrived, and nothing turns in a circle."""
    desk = Desk()
    source = desk.session("Fix login flow")
    ways = {way_name(source): desk}
    prompting = Prompting(house.kept, ways, {}, house.store, ())
    target = replace(TARGET, source=source, can=desk.can)
    part = Part(7, "look", file=File("f", mime="image/jpeg", size=1, is_here=True))
    await house.keep(replace(TRIED, target=target, parts=(part,), is_clear=True, seen_s=house.now_s))
    assert await prompting.step(TRIED.id) == 0.0
    after = house.prompts.get(TRIED.id)
    assert after is not None
    assert (after.tries, after.is_clear, after.reason) == (2, False, FILE_GONE)
    assert desk.received == []


async def with_picture(house: House, desk: Desk) -> tuple[Source, Prompting]:
    """A prompt with a picture for a session of this desk, which is sent next."""
    source = desk.session("Fix login flow")
    target = replace(TARGET, source=source, can=desk.can)
    part = Part(7, "look", file=File("f", mime="image/jpeg", size=1, is_here=True))
    await house.store.files.write(BEGUN.id, 7, b"x")
    await house.keep(replace(BEGUN, target=target, parts=(part,), is_clear=True, seen_s=house.now_s))
    return source, Prompting(house.kept, {way_name(source): desk}, {}, house.store, ())


async def test_a_session_that_goes_to_work_while_the_files_are_read_gets_no_prompt(house: House) -> None:
    """It has to wait for its turn."""
    desk = Desk()
    source, prompting = await with_picture(house, desk)
    assert isinstance(prompts.due(house.prompts.all()[0], is_next=True, now_s=house.now_s), prompts.Send)
    desk.sessions[source.session_id].is_busy = True
    assert await prompting.step(BEGUN.id) == 0.0
    assert desk.received == []
    desk.end(source.session_id)
    for _ in range(3):
        await prompting.step(BEGUN.id)
    assert [content.files[0].data for _, content in desk.received] == [b"x"]


@pytest.mark.parametrize("is_bare", [False, True], ids=["files", "words"])
async def test_a_lock_that_comes_right_before_it_is_sent_holds_a_prompt(house: House, *, is_bare: bool) -> None:
    """Its files may be large, an agent may need seconds to say what it takes, and nothing has left yet."""

    class Locking(Desk):
        async def check(self, source: Source, content: Content) -> None:
            await super().check(source, content)
            await house.store.lock_phone()

    desk = Locking()
    _, prompting = await with_picture(house, desk)
    if is_bare:
        await house.prompts.change(BEGUN.id, lambda found: replace(found, parts=(Part(7, "fix it"),)))
    assert await prompting.step(BEGUN.id) == 0.0
    assert await house.store.is_phone_locked()
    assert desk.received == []
    assert await prompting.step(BEGUN.id) == LOCKED_LOOK_S


class Shared:
    """A session on a disk that two processes of an agent share. The prompt is for the process "served"."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.served, self.plugged = Desk(), Desk()
        for desk in (self.served, self.plugged):
            desk.session("Fix login flow")
        ways = {"served": self.served, without_server("opencode"): self.plugged}
        self.prompting = Prompting(house.kept, ways, {}, house.store, ())

    async def keep(self, prompt: Prompt = QUEUED, *, server: str = "served") -> None:
        """Keep the prompt."""
        target = replace(TARGET, source=replace(TARGET.source, server=server), can=self.served.can)
        await self.house.keep(replace(prompt, target=target))

    async def told(self, server: str, ended_s: float) -> None:
        """A process tells of the end of a turn of the session; without a server, its plugin does."""
        turn = Turn(replace(TARGET.source, server=server), "OpenCode", f"turn_{ended_s}", None, ended_s)
        await self.house.notices.take(TurnEnded(turn))

    async def steps(self, count: int = 6) -> Prompt:
        """Do so many steps, without a pause; the prompt."""
        for _ in range(count):
            await self.prompting.step("prompt_a")
        found = self.house.prompts.get("prompt_a")
        assert found is not None
        return found


@pytest.fixture
async def shared(house: House) -> Shared:
    """A session that both processes have."""
    return Shared(house)


@pytest.mark.parametrize("prompt", [QUEUED, BEGUN], ids=lambda one: one.phase)
async def test_a_prompt_waits_for_the_process_that_works_on_its_session(shared: Shared, prompt: Prompt) -> None:
    """And goes to that one: the other would run a second turn of the session beside it."""
    shared.plugged.sessions["ses_1"].is_busy = True
    shared.house.now_s += 60.0  # what was seen before is old
    await shared.keep(prompt)
    waiting = await shared.steps()
    assert waiting.phase == "queued"
    assert waiting.target is not None
    assert way_name(waiting.target.source) == without_server("opencode")
    shared.plugged.end("ses_1")
    assert (await shared.steps()).phase == "running"
    assert shared.plugged.texts() == ["fix it"]
    assert not shared.served.received


async def test_a_hurried_prompt_joins_the_turn_of_the_process_that_works(shared: Shared) -> None:
    """Under an id that this process has given."""
    shared.plugged.sessions["ses_1"].is_busy = True
    await shared.keep(replace(QUEUED, is_hurried=True))
    await shared.steps()
    assert shared.plugged.texts() == ["fix it"]
    assert not shared.served.received


@pytest.mark.parametrize("how", ["idle", "away", "it does not know the session", "of another agent"])
async def test_a_prompt_stays_with_its_process_if_no_other_is_known_to_work(shared: Shared, how: str) -> None:
    """One that cannot be asked holds nothing up."""
    shared.plugged.sessions["ses_1"].is_busy = how != "idle"
    shared.plugged.is_away = how == "away"
    if how == "it does not know the session":
        shared.plugged.sessions.clear()
    elif how == "of another agent":
        shared.plugged.agent = "claude-code"
    await shared.keep()
    await shared.steps()
    assert shared.served.texts() == ["fix it"]


async def test_a_prompt_goes_to_the_process_that_worked_on_its_session_last(shared: Shared) -> None:
    """Though it was written for another one, and none works now: that one's screen shows the session."""
    shared.plugged.is_own = True
    await shared.told("served", 1.0)
    await shared.told("", 2.0)
    await shared.keep()
    await shared.steps()
    assert shared.plugged.texts() == ["fix it"]
    assert not shared.served.received


async def test_a_turn_that_is_told_of_during_the_look_counts(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin takes up to a second to answer."""
    look = shared.plugged.look

    async def slow(source: Source, record_id: str) -> Sight:
        await shared.told("", 2.0)
        return await look(source, record_id)

    monkeypatch.setattr(shared.plugged, "look", slow)
    shared.plugged.is_own = True
    await shared.told("served", 1.0)
    await shared.keep()
    await shared.steps()
    assert shared.plugged.texts() == ["fix it"]
    assert not shared.served.received


@pytest.mark.parametrize("last", ["its own", "one that has ended since"])
async def test_a_prompt_stays_with_its_process_if_the_one_that_worked_last_is_not_there(
    shared: Shared, last: str
) -> None:
    """Another terminal of the folder would take the session, which it does not show."""
    shared.plugged.is_own = last == "its own"
    await shared.told("", 1.0)
    if last == "its own":
        await shared.told("served", 2.0)
    await shared.keep()
    await shared.steps()
    assert shared.served.texts() == ["fix it"]
    assert not shared.plugged.received


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "not-told"])
async def test_a_prompt_whose_terminal_is_closed_goes_to_the_server(shared: Shared, *, is_told: bool) -> None:
    """It waits there until the session is idle, though another process told of the last turn, or none."""
    if is_told:
        await shared.told("", 2.0)
    shared.plugged.has_ended = True
    shared.served.sessions["ses_1"].is_busy = True
    await shared.keep(server="")
    assert (await shared.steps()).phase == "queued"
    shared.served.end("ses_1")
    await shared.steps()
    assert shared.served.texts() == ["fix it"]


async def test_a_prompt_whose_terminal_is_closed_begins_on_a_server_that_is_idle(shared: Shared) -> None:
    """Nobody has worked on the session meanwhile."""
    shared.plugged.has_ended = True
    await shared.keep(server="")
    await shared.steps()
    assert shared.served.texts() == ["fix it"]


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "out-of-reach"])
async def test_a_prompt_whose_terminal_is_not_known_to_be_closed_fails(shared: Shared, *, is_deleted: bool) -> None:
    """It may work on the session where Hermes cannot see it: the server would run a second turn beside it."""
    shared.plugged.sessions.clear()
    if is_deleted:
        shared.served.sessions.clear()
    await shared.keep(server="")
    assert (await shared.steps(1)).phase == "failed"
    assert not shared.served.received


@pytest.mark.parametrize("begins_in", ["served", "plugged"])
async def test_a_turn_that_begins_while_a_further_process_is_asked_counts(
    shared: Shared, house: House, begins_in: str
) -> None:
    """One that does not answer takes seconds: wherever the prompt goes, the session is looked at again."""
    asked = {"served": shared.served, "plugged": shared.plugged}[begins_in]

    class Silent(Desk):
        async def look(self, source: Source, record_id: str) -> Sight:
            asked.sessions["ses_1"].is_busy = True
            raise AgentAway("nobody answers there")

    shared.plugged.is_own = begins_in == "plugged"
    await shared.told("", 2.0)
    ways = {"served": shared.served, without_server("opencode"): shared.plugged, "silent": Silent()}
    shared.prompting = Prompting(house.kept, ways, {}, house.store, ())
    await shared.keep()
    waiting = await shared.steps(1)
    assert waiting.phase == "queued"
    assert waiting.target is not None
    assert waiting.target.source.server == ("served" if begins_in == "served" else "")
    assert not asked.received


async def test_a_prompt_that_was_tried_stays_where_it_is(shared: Shared) -> None:
    """Its record is there, and the other process may answer something else."""
    await shared.keep()
    shared.served.keeps = False
    await shared.steps(3)
    shared.plugged.sessions["ses_1"].is_busy = True
    tried = await shared.steps()
    assert tried.tries
    assert tried.target is not None
    assert tried.target.source.server == "served"


@pytest.mark.parametrize(("failure", "phase"), [("", "finished"), ("rate limit", "running")])
async def test_the_report_of_a_turn_ends_the_prompt_that_it_answers(house: House, failure: str, phase: str) -> None:
    """Its process may end before the next look; after a failure, that look tells whether the agent goes on."""
    await house.keep(RUNNING)
    turn = Turn(TARGET.source, "OpenCode", "turn_1", None, 2.0, failure=failure, prompt_id=RUNNING.record_id)
    await TurnReports(house.kept).take(TurnEnded(turn))
    found = house.prompts.get(RUNNING.id)
    assert found is not None
    assert found.phase == phase
