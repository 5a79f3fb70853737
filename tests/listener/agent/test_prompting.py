"""What becomes of a prompt that no agent can be asked about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agents.prompting import way_name
from hermes.core import prompts
from hermes.core.prompts import STARTS_S
from hermes.listener.agent.prompting import BEHIND_LOOK_S, FILE_GONE, Prompting
from hermes.listener.prompts import Prompts
from hermes.listener.wakes import Wakes
from hermes.model.ask import Source
from hermes.model.files import File
from hermes.model.prompt import Prompt, PromptAbilities, Sight, Target
from hermes.model.prompt_events import Addressed, Seen, Trying
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
        self.prompts = Prompts(self.store.prompts, Wakes(), now=self.store.now)
        self.prompting = Prompting(self.prompts, {}, self.store, ())

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
    prompting = Prompting(house.prompts, ways, house.store, ())
    target = replace(TARGET, source=source, can=desk.can)
    part = Part(7, "look", file=File("f", mime="image/jpeg", size=1, is_here=True))
    await house.keep(replace(TRIED, target=target, parts=(part,), is_clear=True, seen_s=house.now_s))
    assert await prompting.step(TRIED.id) == 0.0
    after = house.prompts.get(TRIED.id)
    assert after is not None
    assert (after.tries, after.is_clear, after.reason) == (2, False, FILE_GONE)
    assert desk.received == []


async def test_a_session_that_goes_to_work_while_the_files_are_read_gets_no_prompt(house: House) -> None:
    """It has to wait for its turn."""
    desk = Desk()
    source = desk.session("Fix login flow")
    target = replace(TARGET, source=source, can=desk.can)
    part = Part(7, "look", file=File("f", mime="image/jpeg", size=1, is_here=True))
    await house.store.files.write(BEGUN.id, 7, b"x")
    await house.keep(replace(BEGUN, target=target, parts=(part,), is_clear=True, seen_s=house.now_s))
    prompting = Prompting(house.prompts, {way_name(source): desk}, house.store, ())
    assert isinstance(prompts.due(house.prompts.all()[0], is_next=True, now_s=house.now_s), prompts.Send)
    desk.sessions[source.session_id].is_busy = True
    assert await prompting.step(BEGUN.id) == 0.0
    assert desk.received == []
    desk.end(source.session_id)
    for _ in range(3):
        await prompting.step(BEGUN.id)
    assert [content.files[0].data for _, content in desk.received] == [b"x"]
