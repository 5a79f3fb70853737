"""What becomes of a prompt that no agent can be asked about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.core import prompts
from hermes.core.prompts import STARTS_S
from hermes.listener.agent.prompting import BEHIND_LOOK_S, Prompting
from hermes.listener.prompts import Prompts
from hermes.listener.wakes import Wakes
from hermes.model.ask import Source
from hermes.model.prompt import Prompt, PromptAbilities, Sight, Target
from hermes.model.prompt_events import Addressed, Seen, Trying
from hermes.model.state import Part
from tests.asks import ANN, CHAT_ID
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
