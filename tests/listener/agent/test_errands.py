"""One step of the way back at a time: what is true at the agent meets an entry that changes meanwhile."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import pytest

from hermes.agents.registry import ADAPTERS
from hermes.agents.server import Pending
from hermes.config.settings import Matching
from hermes.core.graces import (
    CONFIRM_S,
    FIRST_RETRY_S,
    HOOK_GRACE_S,
    HOOK_LOOK_S,
    LAY_AGAIN_S,
    QUIET_LOOK_S,
    TAKEN_GRACE_S,
    UNCONFIRMED_S,
)
from hermes.errors import AgentAway, NotSaved
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import WaitingHooks, wait_id
from hermes.model.actions import Pick
from hermes.model.ask import Ask
from hermes.model.entry import Entry
from hermes.model.errand import Doubted, Errand, HookTook, NewsCame, RequestCame, Woke
from hermes.model.events import Ended, Tapped
from hermes.model.signals import Quiet, Replied
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict, WasDismissed
from tests.asks import ANN, ask, question
from tests.at_once import at_once
from tests.books import a_book, entry_of
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes.agents.server import AgentServer
    from hermes.model.errand import Fact

SQLITE = AnsweredWith((("SQLite",),))


@dataclass
class Desk:
    """A server with these verdicts, the last one for ever; `meanwhile` happens before one is told."""

    verdicts: list[Verdict]
    meanwhile: Callable[[], object] | None = None
    replies: list[object] = field(default_factory=list)
    agent: str = "opencode"

    def sees_open(self, _: Ask) -> bool:
        return False

    async def verdict(self, _: Ask) -> Verdict:
        if self.meanwhile is not None:
            self.meanwhile()
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]

    async def reply(self, _: Ask, answers: tuple[tuple[str, ...], ...]) -> None:
        self.replies.append(answers)

    async def reject(self, _: Ask) -> None:
        self.replies.append(None)

    async def pending(self, _: str) -> Pending:
        return Pending(())

    async def busy(self, _: str) -> frozenset[str]:
        return frozenset()

    async def context(self, ask: Ask) -> Ask:
        return ask


class Hooks(WaitingHooks):
    """A waiting room, and what was laid ready in it."""

    there: bool = False
    ready: str | None = None
    is_full: bool = False

    def waiting(self, _: Ask) -> bool:
        return self.there

    def all_waiting(self) -> set[str]:
        return {wait_id(ask())} if self.there else set()

    def put(self, _: Ask, text: str) -> None:
        if self.is_full:
            raise NotSaved("the disk is full")
        self.ready = text

    def is_ready(self, _: Ask) -> bool:
        return self.ready is not None


class Way:
    """A book with one ask of the server "desk", and its way back."""

    def __init__(self, root: Path) -> None:
        self.now_s = 1_757_000_000.0
        self.began_s = self.now_s
        self.back_s = 0.0  # how far the wall clock was set back
        self.servers: dict[str, Desk] = {}
        self.hooks = Hooks(root)
        self.book = a_book(a_store(root, now=lambda: self.now_s))
        one = ask(question())
        self.id = at_once(self.book.create(replace(one, source=replace(one.source, server="desk")))).id
        servers = cast("dict[str, AgentServer]", self.servers)
        self.errands = Errands(
            self.book, servers, self.hooks, ADAPTERS, Matching(), monotonic=lambda: self.now_s + self.back_s
        )

    def entry(self) -> Entry:
        """The ask as it stands."""
        entry = self.book.get(self.id)
        assert entry is not None
        return entry

    def tap(self) -> None:
        """Tap the second option."""
        at_once(
            self.book.apply(
                self.id, Tapped(self.entry().revision, self.now_s, ANN, Pick(0, 1), self.entry().state.epoch)
            )
        )

    def sent_by(self, route: str) -> None:
        """Let the ask be answered, its answer being on this route."""
        self.tap()
        assert route in {"server", "waiter"}
        at_once(
            self.book.change(self.id, lambda found: replace(found, route="server" if route == "server" else "waiter"))
        )

    async def step(self, fact: Fact | None = None) -> float | None:
        """Take in this fact, and do what follows; return the next pause, None if nothing is left to do."""
        await self.errands.tell(self.id, fact or Woke())
        pause_s: float | None = 0.0
        while pause_s == 0.0:
            pause_s = await self.errands.step(self.id)
        return pause_s

    def outcome(self) -> str:
        """How it ended."""
        outcome = self.entry().state.outcome
        return outcome.kind if outcome is not None else ""

    def ended(self) -> tuple[str, str]:
        """How it ended, and how that is known."""
        outcome = self.entry().state.outcome
        return (outcome.kind, outcome.proof) if outcome is not None else ("", "")


@pytest.fixture
def way(tmp_path: Path) -> Way:
    """An open ask whose server is not there yet."""
    return Way(tmp_path / "store")


async def test_what_was_proven_while_the_disk_was_full_is_noted_later(way: Way) -> None:
    """By then the session was deleted, and its server proves nothing any more."""
    way.servers["desk"] = Desk([SQLITE, Dead()])
    way.sent_by("server")
    (pending,) = (way.book.store.home.root / "pending").glob("*.json")
    blocked = pending.with_name(f".{pending.name}.{os.getpid()}.tmp")
    blocked.mkdir()
    with pytest.raises(NotSaved):
        await way.step()
    blocked.rmdir()
    await way.step()
    assert way.outcome() == "answered"


async def test_a_hook_that_waits_beside_one_that_left_is_news(way: Way) -> None:
    """It is heard of at the next look."""
    source = replace(way.entry().ask.source, server="")
    await way.book.change(way.id, lambda found: replace(found, ask=replace(found.ask, source=source)))
    way.hooks.there = True
    way.errands.look_for_hooks()
    await way.step()
    await way.errands.hear_hook("waiter.gone", wait_id(way.entry().ask))
    assert way.errands.get(way.id).has_left
    way.errands.look_for_hooks()
    assert not way.errands.get(way.id).has_left


async def test_a_look_at_a_frozen_server_is_given_up_for_what_is_wanted_now(way: Way) -> None:
    """The list of another server does not come; meanwhile the request of the call came by an event."""
    source = replace(ask(question()).source, request_id=None, call_id="call_1")
    call = await way.book.create(replace(ask(question()), source=source), matching=True)
    asked = asyncio.Event()

    class Frozen(Desk):
        async def pending(self, _: str) -> Pending:
            asked.set()
            await asyncio.Event().wait()
            return Pending(())

    way.servers["frozen"] = Frozen([StillOpen()])
    look = asyncio.create_task(way.errands.step(call.id))
    await asked.wait()
    await way.errands.tell(call.id, RequestCame(replace(call.ask, source=replace(source, request_id="que_9"))))
    found = way.book.get(call.id)
    assert found is not None
    assert found.state.phase == "open"
    for _ in range(2):
        way.errands.changed(found)  # a second change while the look is about to end harms nothing
    assert await asyncio.wait_for(look, 5.0) == 0.0


async def test_of_what_is_settled_nothing_is_remembered(way: Way) -> None:
    """A listener that runs for years does not grow by its asks."""
    way.servers["desk"] = Desk([StillOpen(), SQLITE])
    way.sent_by("server")
    await way.step(NewsCame(Replied("que_1", "ses_1", (("SQLite",),))))
    assert way.outcome() == "answered"
    await way.book.close(entry_of(way.book, way.id))
    way.errands.forget_closed()
    assert way.errands.get(way.id) == Errand()


# --- how an end is known ------------------------------------------------------------------------------------------


async def test_how_a_servers_verdict_is_known_is_kept(way: Way) -> None:
    """By the record of the call; by an event where nothing else tells."""
    way.servers["desk"] = Desk([SQLITE])
    way.sent_by("server")
    await way.step()
    assert way.ended() == ("answered", "record")


async def test_an_event_alone_is_told_as_that(way: Way) -> None:
    """No call proves it."""
    way.servers["desk"] = Desk([Unproven()])
    await way.step(NewsCame(Replied("que_1", "ses_1", (("Redis",),))))
    assert way.ended() == ("answered_at_desk", "event")


async def test_the_word_of_a_plugin_is_told_as_that(way: Way) -> None:
    """There is no server that could prove it."""
    way.sent_by("waiter")
    await way.errands.tell(way.id, NewsCame(Replied("que_1", "ses_1", (("SQLite",),))))
    assert way.ended() == ("answered", "plugin")


async def test_a_reply_that_was_only_accepted_is_told_as_that(way: Way) -> None:
    """It went out, its ask is listed no more, and neither a call nor an event tells."""
    way.servers["desk"] = Desk([StillOpen(), Unproven()])
    way.sent_by("server")
    await way.step()
    way.now_s += UNCONFIRMED_S + 1
    await way.step()
    assert way.ended() == ("answered", "accepted")


async def test_what_was_handed_over_is_told_as_that(way: Way) -> None:
    """Nobody reports what the program does with it."""
    mute = replace(way.entry().ask, capabilities=replace(way.entry().ask.capabilities, reports=False))
    await way.book.change(way.id, lambda found: replace(found, ask=mute))
    way.sent_by("waiter")
    await way.errands.tell(way.id, HookTook())
    assert way.ended() == ("answered", "receipt")


async def test_an_agent_that_left_is_told_as_that(way: Way) -> None:
    """Its hook is gone, and nobody else knows it."""
    await gone_for(way, HOOK_GRACE_S + 1)
    assert way.ended() == ("gone", "left")


# --- verdicts of a past moment ------------------------------------------------------------------------------------


async def test_a_tap_while_the_verdict_is_awaited_counts(way: Way) -> None:
    """Tapped and delivered by another step meanwhile: the answer that took effect is the person's, not the desk's."""
    way.servers["desk"] = Desk([SQLITE], meanwhile=way.tap)
    assert await way.step(Doubted()) is None
    assert way.outcome() == "answered"


async def test_what_was_settled_while_the_verdict_was_awaited_stays_settled(way: Way) -> None:
    """And what was put away is not looked at again."""

    def settle() -> None:
        at_once(way.book.apply(way.id, Ended(way.now_s, "answered_at_desk")))

    def close() -> None:
        settle()
        at_once(way.book.close(entry_of(way.book, way.id)))

    way.servers["desk"] = Desk([Dead()], meanwhile=settle)
    await way.step(Doubted())
    assert way.outcome() == "answered_at_desk"
    assert await way.step(Doubted()) is None
    again = (await way.book.create(way.entry().ask)).id
    way.id, way.servers["desk"].meanwhile = again, close
    await way.step(Doubted())
    assert way.book.get(again) is None


async def test_an_open_ask_that_its_server_lists_is_looked_at_again_after_a_silence(way: Way) -> None:
    """It may take a moment to leave the list; without a hint one look is enough."""
    way.servers["desk"] = Desk([StillOpen()])
    assert await way.step(NewsCame(Quiet("ses_1"))) == QUIET_LOOK_S
    assert await way.step(Doubted()) is None
    assert way.entry().state.phase == "open"


async def test_what_an_event_said_outlasts_a_silence(way: Way) -> None:
    """No call proves it, and the session fell silent after it: what was heard of this very request counts."""
    way.servers["desk"] = Desk([Unproven()])
    await way.errands.tell(way.id, NewsCame(Replied("que_1", "ses_1", (("Redis",),))))
    await way.step(NewsCame(Quiet("ses_1")))
    assert way.outcome() == "answered_at_desk"


# --- a server that is no longer named -----------------------------------------------------------------------------


async def test_a_server_of_another_name_proves_nothing(way: Way) -> None:
    """Renamed in the configuration: the answer waits until a server lists the request again."""
    way.tap()
    first = await way.step()
    assert first == FIRST_RETRY_S
    way.now_s += first
    assert await way.step() == 2 * first
    assert (way.entry().route, way.entry().state.away) == (None, True)
    way.servers["laptop"] = desk = Desk([StillOpen(), SQLITE])
    assert (await way.step() or 0) > 0
    assert desk.replies == []
    way.now_s += 2 * first
    listed = replace(way.entry().ask, source=replace(way.entry().ask.source, server="laptop"))
    await way.book.change(way.id, lambda found: replace(found, ask=listed))
    assert await way.step() is None
    assert desk.replies == [(("SQLite",),)]
    assert way.outcome() == "answered"


async def test_a_waiting_hook_carries_what_no_named_server_can(way: Way) -> None:
    """It needs no name in a configuration."""
    way.hooks.there = True
    way.tap()
    assert await way.step() == HOOK_LOOK_S
    assert way.entry().route == "waiter"
    assert '"SQLite"' in str(way.hooks.ready)


async def test_a_hook_that_cannot_be_released_is_tried_again_after_a_pause(way: Way) -> None:
    """The disk is full: the step fails, so that its worker waits; then the hook gets its word."""
    generic = replace(way.entry().ask, source=replace(way.entry().ask.source, agent="generic", server=""))
    await way.book.change(way.id, lambda found: replace(found, ask=generic, waits=True))
    way.hooks.there = True
    await way.step()
    await way.book.apply(way.id, Ended(way.now_s, "answered_at_desk"))
    way.hooks.is_full = True
    with pytest.raises(NotSaved):
        await way.errands.step(way.id)
    way.hooks.is_full = False
    assert await way.errands.step(way.id) == 0.0
    assert way.hooks.ready == ""
    assert await way.errands.step(way.id) is None


# --- a hook that is gone ------------------------------------------------------------------------------------------


async def gone_for(way: Way, seconds: float) -> float | None:
    """Look twice, with so much time between."""
    way.sent_by("waiter")
    assert await way.step() == HOOK_LOOK_S
    way.now_s += seconds
    return await way.step()


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [(SQLITE, "answered"), (AnsweredWith((("Redis",),)), "answered_at_desk"), (Dead(), "gone")],
)
async def test_without_its_hook_the_server_tells_what_became_of_the_answer(
    way: Way, verdict: Verdict, outcome: str
) -> None:
    """The hook took it and died, or never took it: only its agent knows."""
    way.servers["desk"] = Desk([verdict])
    assert await gone_for(way, HOOK_GRACE_S + 1) is None
    assert way.outcome() == outcome
    assert way.servers["desk"].replies == []


async def test_without_its_hook_the_server_carries_what_is_still_open(way: Way) -> None:
    """Once, by the other route."""
    way.servers["desk"] = Desk([StillOpen(), StillOpen(), SQLITE])
    assert await gone_for(way, HOOK_GRACE_S + 1) == pytest.approx(CONFIRM_S)
    assert way.entry().route == "server"
    way.now_s += CONFIRM_S
    assert await way.step() is None
    assert way.servers["desk"].replies == [(("SQLite",),)]
    assert way.outcome() == "answered"


async def test_without_its_hook_and_without_proof_it_is_looked_at_again(way: Way) -> None:
    """Nothing is settled by not knowing."""
    way.servers["desk"] = Desk([Unproven(), WasDismissed()])
    assert await gone_for(way, HOOK_GRACE_S + 1) == HOOK_LOOK_S
    assert way.entry().state.phase == "sending"
    way.now_s += HOOK_LOOK_S
    assert await way.step() is None
    assert way.outcome() == "rejected_at_desk"


async def test_a_clock_that_is_set_back_holds_no_answer_up(way: Way) -> None:
    """How long a hook is missed is no matter of the wall clock."""
    way.servers["desk"] = Desk([SQLITE])
    assert await gone_for(way, 1) == HOOK_LOOK_S
    way.now_s -= 3600
    way.back_s += 3600 + HOOK_GRACE_S
    assert await way.step() is None
    assert way.outcome() == "answered"


async def test_an_effect_that_does_not_come_is_looked_for_less_and_less_often(way: Way) -> None:
    """A server that lies, or is slow, is not asked twenty times a second."""
    way.servers["desk"] = Desk([StillOpen()])
    way.sent_by("server")
    assert await way.step() == pytest.approx(CONFIRM_S)
    for waited_s in (0.1, 0.4, 1.6):
        way.now_s = way.began_s + waited_s
        assert await way.step() == pytest.approx(waited_s)
    assert len(way.servers["desk"].replies) == 1


async def test_what_the_stream_told_needs_no_hook(way: Way) -> None:
    """Its hook was released when the agent had its answer: the proof is there at once."""
    way.servers["desk"] = Desk([SQLITE])
    assert await gone_for(way, 1) == HOOK_LOOK_S
    assert await way.step(NewsCame(Replied("que_1", "ses_1", (("SQLite",),)))) is None
    assert way.outcome() == "answered"


async def test_a_hook_may_come_back_within_its_time(way: Way) -> None:
    """A taken answer is reported sooner than a new hook is started."""
    way.servers["desk"] = Desk([Dead()])
    assert await gone_for(way, HOOK_GRACE_S - 1) == HOOK_LOOK_S
    assert way.entry().state.phase == "sending"
    await way.book.change(way.id, lambda found: replace(found, waiter_taken=True))
    way.now_s += TAKEN_GRACE_S - HOOK_GRACE_S + 2
    assert await way.step() is None
    assert way.outcome() == "gone"


async def test_an_answer_that_was_taken_is_not_laid_ready_again_at_once(way: Way) -> None:
    """Its hook needs a moment to leave; one that still waits after that gets it again."""
    way.servers = {}
    way.hooks.there = True
    way.tap()
    await way.step()
    way.hooks.ready = None
    way.now_s += LAY_AGAIN_S - 1
    await way.step()
    assert way.hooks.ready is None
    way.now_s += 2
    await way.step()
    assert way.hooks.ready is not None


async def test_a_server_that_is_away_leaves_the_route_to_a_waiting_hook(way: Way) -> None:
    """And to the server where there is none, which is waited for."""

    def away() -> None:
        raise AgentAway("nobody answers there")

    way.servers["desk"] = Desk([StillOpen()], meanwhile=away)
    way.hooks.there = True
    way.tap()
    assert await way.step() == HOOK_LOOK_S
    assert way.entry().route == "waiter"
    await way.book.change(way.id, lambda found: replace(found, route=None))
    way.hooks.there = False
    way.now_s += HOOK_LOOK_S
    assert (await way.step() or 0) > 0
    assert (way.entry().route, way.entry().state.away) == (None, True)
