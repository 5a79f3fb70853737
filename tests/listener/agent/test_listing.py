"""Sessions that several processes list are listed once, with the one that should get their prompts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from hermes.agents.prompting import PromptWay, way_name, without_server
from hermes.agents.registry import BY_HOOK
from hermes.listener.agent.listing import Listing
from hermes.listener.sessions import SessionLists
from hermes.listener.wakes import Wakes
from hermes.model.ask import Source
from hermes.model.card import Listed, MachineList
from hermes.model.prompt import PromptAbilities, Target
from hermes.storage.records import MemoryRecords
from tests.listening import House, house
from tests.stores import a_store

if TYPE_CHECKING:
    from hermes.listener.kept import Cards
    from hermes.model.prompt import SessionState

home = house("new")


class Agent:
    """An agent that lists these sessions, and does nothing else."""

    agent = "opencode"

    def __init__(self, *listed: Listed) -> None:
        self._listed = listed

    async def way(self) -> PromptWay:
        """Itself."""
        return cast("PromptWay", self)

    async def listed(self, since_s: float) -> tuple[Listed, ...]:
        """Return the sessions."""
        assert since_s < 0
        return self._listed


def a_session(server: str, state: SessionState = "idle", session: str = "ses_1", *, is_own: bool = False) -> Listed:
    """Return a session as its agent lists it."""
    source = Source("opencode", "laptop", session, server=server)
    return Listed(Target(source, "OpenCode", PromptAbilities()), state, 1.0, is_own=is_own)


@pytest.mark.parametrize(
    ("served", "plugged", "wanted"),
    [
        (a_session("desk"), a_session(""), "desk"),
        (a_session("desk"), a_session("", is_own=True), ""),
        (a_session("desk"), a_session("", "busy"), ""),
        (a_session("desk", "busy"), a_session("", is_own=True), "desk"),
        (a_session("desk", "busy"), a_session("", "busy"), "desk"),
    ],
)
async def test_a_session_is_listed_where_it_runs_or_ran_last(
    served: Listed, plugged: Listed, wanted: str, tmp_path: Path
) -> None:
    """Whichever is found first; other sessions stay."""
    other = a_session("", session="ses_2")
    for ways in (
        {"desk": Agent(served), without_server("opencode"): Agent(plugged, other)},
        {without_server("opencode"): Agent(plugged, other), "desk": Agent(served)},
    ):
        lists = SessionLists(MemoryRecords(), Wakes(), now=lambda: 9.0, machine=None)
        made = MachineList("laptop", "Laptop")
        await lists.make(lambda _: False, lambda made=made: made, lambda one: one)  # type: ignore[misc]
        await lists.want("sessions", 5)
        store = a_store(tmp_path)
        cards = cast("Cards", store.cards)
        assert await Listing(ways, lists, cards, store, (), now=lambda: 0.0).list_all("laptop") is None
        assert lists.silent(lists.requests[0]) == ()
        assert lists.missing_s(lists.requests[0]) == 0
        found = {one.target.source.session_id: one.target.source.server for one in lists.found()}
        assert found == {"ses_1": wanted, "ses_2": ""}


async def test_each_agent_that_takes_prompts_without_a_server_has_a_way(home: House) -> None:
    """Under the name by which it is looked for."""
    await home.start(prompts={"enabled": True})
    for agent in (*BY_HOOK, "opencode"):
        assert way_name(Source(agent, "laptop", "ses_1")) in home.listener._parts.agent.prompting._ways
        assert way_name(Source(agent, "laptop", "ses_1")) in home.listener._parts.agent.listing._ways


def test_a_server_may_have_the_name_of_its_agent() -> None:
    """It is another way than the one to sessions without a server."""
    named = Source("opencode", "laptop", "ses_1", server="opencode")
    assert way_name(named) == "opencode"
    assert way_name(Source("opencode", "laptop", "ses_1")) == without_server("opencode") != "opencode"
