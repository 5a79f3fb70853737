"""Every edge of every reachable state of small prompts, beside a small world in which their agent lives."""

from __future__ import annotations

import gc
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pytest

from hermes.core import prompt_files, prompts
from hermes.core.prompts import FRESH_S, MOST_TRIES, NO_EFFECT_S, SETTLE_S, STARTS_S, Look, MakeSession, Send, Stop
from hermes.model.ask import Source
from hermes.model.files import File
from hermes.model.prompt import Prompt, PromptAbilities, RecordState, SessionState, Sight, Target
from hermes.model.prompt_events import (
    Accepted,
    Addressed,
    Agreed,
    Continued,
    Declined,
    Edited,
    Fetched,
    Heard,
    Hurried,
    Joined,
    Seen,
    SessionMade,
    StopTold,
    StopWanted,
    Trying,
    Unreached,
    Withdrawn,
)
from hermes.model.state import Part
from tests.asks import ANN, CHAT_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.core.prompts import PromptOrder
    from hermes.model.prompt_events import PromptEvent

EVERYTHING = PromptAbilities(("text", "note"), steers=True, stops=True, makes_sessions=True, files=("picture", "text"))
PICTURE = File("f1", "picture.jpg", "image/jpeg", 10, unique_id="u1")
OTHER = replace(PICTURE, unique_id="u2")
VOICE = File("f1", "voice note", "audio/ogg", 10, is_voice=True)
ALONE = PromptAbilities(("text",))
QUIET_AGES_S = (0.0, SETTLE_S, NO_EFFECT_S)
PAUSES_S = (SETTLE_S, NO_EFFECT_S, STARTS_S)
"""Time passes in these steps; other events take none."""
ENDS: tuple[RecordState, ...] = ("finished", "failed", "stopped")
FAILURE = "the model says no"
"""The reason of a turn that failed. All other reasons say that the prompt had no effect."""


def target(session_id: str = "ses_1", can: PromptAbilities = EVERYTHING) -> Target:
    """A session."""
    return Target(Source("opencode", "laptop", session_id, "/home/dev/shop-api"), "OpenCode", can)


NEW = Prompt("p1", ANN, CHAT_ID, (Part(7, "a"),), 0.0)
CASES: dict[str, Prompt] = {
    "a text": prompts.step(NEW, Addressed(0.0, target())),
    "a note": prompts.step(replace(NEW, parts=(Part(7, "/note a"),)), Addressed(0.0, target())),
    "a long text without a session": replace(NEW, due_s=1.0, choices=(target(),)),
    "a text for a new session": prompts.step(NEW, Addressed(0.0, target(""))),
    "a picture": prompts.step(replace(NEW, parts=(Part(7, "a", file=PICTURE),)), Addressed(0.0, target())),
    "a voice note": prompts.step(replace(NEW, parts=(Part(7, "", file=VOICE),)), Addressed(0.0, target(can=ALONE))),
    "a text for an agent that takes one prompt at a time": prompts.step(NEW, Addressed(0.0, target(can=ALONE))),
}

BRIEF = set(CASES) - {"a text", "a note"}
"""The walk over these does not go on once they are sent: they are then as any other text."""


@pytest.fixture(autouse=True)
def _without_a_collector() -> Iterator[None]:
    """A walk keeps many values and drops none: to look for rings among them takes long."""
    gc.disable()
    yield
    ONES.clear()
    for known in KNOWN:
        known.clear()
    gc.enable()


T = TypeVar("T")

ONES: dict[Prompt, Prompt] = {}
KNOWN: list[dict[int, Any]] = []


def one(prompt: Prompt) -> Prompt:
    """Return the object that stands for all prompts that are equal to this one. To hash a prompt takes long."""
    return ONES.setdefault(prompt, prompt)


def asked_once(fn: Callable[[Prompt], T]) -> Callable[[Prompt], T]:
    """Ask a pure function once about each prompt of `ONES`, which its id stands for."""
    known: dict[int, T] = {}
    KNOWN.append(known)

    def asked(prompt: Prompt) -> T:
        if id(prompt) not in known:
            known[id(prompt)] = fn(prompt)
        return known[id(prompt)]

    return asked


class World(NamedTuple):
    """What is true, whatever Hermes knows of it.

    - `record`: the agent's record of the prompt. `is_written`: a look finds it there. `is_dead`: the agent was killed
      and does not answer it any more. `was_lost`: the record had it and lost it.
    - `has_begun`: its turn began a moment ago, so that the next look may still take the session for idle.
    - `sends`: how often it left Hermes. `left`: the text that left first, and the id.
    - `was_missing`: a look since it left last has told that the record does not have it.
    - `found_idle`: a look a moment ago has told that the session is idle.
    - `taps`: the taps of the person on Stop, in their right order.
    """

    session: SessionState = "idle"
    record: RecordState = "absent"
    is_written: bool = True
    is_dead: bool = False
    was_lost: bool = False
    has_begun: bool = False
    sends: int = 0
    left: tuple[str, str] | None = None
    was_missing: bool = False
    found_idle: bool = False
    taps: int = 0


class Place(NamedTuple):
    """A reachable moment, its clock at 0. The prompt is of `ONES`."""

    prompt: Prompt
    world: World


@dataclass(frozen=True)
class Edge:
    """What happens at one place. `event` is None if Hermes hears nothing; `is_sent`: the prompt leaves Hermes."""

    before: Place
    event: PromptEvent | None
    after: Place
    is_sent: bool = False


# --- the world ------------------------------------------------------------------------------------------------------


def moved(world: World) -> Iterator[World]:
    """All that the agent, and others in its session, may do next."""
    if world.session == "gone":
        return
    yield world._replace(session="gone")
    if world.record == "running" and not world.is_dead:
        yield world._replace(session="idle", is_dead=True, has_begun=False)
        yield from (world._replace(session="idle", record=end, has_begun=False) for end in ENDS)
    elif world.session == "busy":
        yield world._replace(session="idle")
    elif world.record != "admitted" or world.is_dead:  # an agent that is idle begins with a prompt that it has
        yield world._replace(session="busy")
    if world.record == "admitted" and not world.is_dead:
        yield world._replace(is_dead=True)
        yield world._replace(record="running", session="busy", is_written=True, has_begun=True)
    if world.record != "absent":
        yield world._replace(record="absent", session="idle", is_dead=False, was_lost=True, has_begun=False)


def reached(world: World) -> World:
    """The prompt arrives; one that the record has already replaces itself."""
    if world.record != "absent" or world.session == "gone":
        return world
    return world._replace(record="admitted", is_written=False)


def sights(world: World) -> Iterator[Sight]:
    """All that a look may tell."""
    if world.session == "gone":
        yield Sight("gone")
        return
    yield Sight(world.session, world.record, "msg_1", reason=FAILURE if world.record == "failed" else "")
    if not world.is_written:
        yield Sight(world.session, "absent", "msg_1")
    if world.has_begun:
        yield Sight("idle", "running", "msg_1")


def later(here: Place, seconds: float) -> Place | None:
    """That much later; None if the agent does something before that."""
    prompt, world = here
    is_due = world.record == "admitted" and world.session == "idle" and not world.is_dead
    if is_due and seconds >= NO_EFFECT_S:
        return None
    return Place(aged(prompt)[seconds], world._replace(is_written=True, has_begun=False, found_idle=False))


@asked_once
def aged(prompt: Prompt) -> dict[float, Prompt]:
    """The prompt after each pause."""
    after = {}
    for seconds in PAUSES_S:
        quiet_s = prompt.quiet_s
        if quiet_s is not None:
            quiet_s = -max(age_s for age_s in QUIET_AGES_S if age_s <= seconds - quiet_s)
        starts_until_s = 0.0 if seconds >= STARTS_S else prompt.starts_until_s
        after[seconds] = one(replace(prompt, seen_s=-FRESH_S, quiet_s=quiet_s, starts_until_s=starts_until_s))
    return after


def plain(here: Place) -> Place:
    """Forget what nothing depends on any more, so that the walk ends."""
    prompt, world = _plain(here.prompt), here.world
    if world.left is not None and world.left[0] == "b" == prompts.content(here.prompt).text:
        world = world._replace(left=("a", world.left[1]))
    if prompt.tries or not prompt.is_clear:
        world = world._replace(found_idle=False)
    if prompt.phase in {"admitted", "running"}:
        world = world._replace(sends=1, was_missing=False)
    return Place(prompt, world if world.sends else world._replace(was_missing=False))


@asked_once
def _plain(prompt: Prompt) -> Prompt:
    prompt = replace(prompt, tried_s=0.0, began_s=None, is_away=False)
    if not prompt.is_clear:
        prompt = replace(prompt, seen_s=0.0)
    if prompt.tries:
        tries = MOST_TRIES if prompt.tries == MOST_TRIES else MOST_TRIES - 1  # the first of them is the third
        parts = NEW.parts if prompt.parts[0].text == "b" else prompt.parts
        prompt = replace(prompt, tries=tries, is_hurried=False, parts=parts)
    if prompt.phase in {"admitted", "running"}:
        stop = "" if prompt.stop == "refused" else prompt.stop  # the person may tap again in either
        prompt = replace(prompt, is_accepted=False, reason="", starts_until_s=STARTS_S, stop=stop)
    return one(prompt)


# --- the walk -------------------------------------------------------------------------------------------------------


def by_people(prompt: Prompt) -> Iterator[PromptEvent]:
    """All that a person may do."""
    yield from (Joined(), Withdrawn(), Hurried(0.0), Addressed(0.0, target()), Agreed(0.0))
    yield from (StopWanted(), StopWanted(is_sure=True), StopWanted(on=False))
    texts = ("b", "/run", "/task @x y") if not prompt.parts[0].text.startswith("/note") else ("/note",)
    yield from (Edited(7, text) for text in texts)
    yield from (Edited(7, "b", file) for file in (PICTURE, OTHER))
    if prompt.due_s is not None:
        yield Continued(Part(8, "c"), 0.5)


@asked_once
def done_by_people(prompt: Prompt) -> tuple[tuple[PromptEvent, Prompt], ...]:
    """What comes of that."""
    return tuple((event, one(prompts.step(prompt, event))) for event in by_people(prompt))


def strays() -> Iterator[PromptEvent]:
    """What nobody has ordered. Nothing goes on behind it: it is not true of the world."""
    yield from (Trying(0.0), Accepted(), Declined("no"), Unreached(), SessionMade("ses_2"))
    yield from (StopTold(is_taken=True), StopTold(is_taken=False), Continued(Part(9, "d"), 1.0))
    yield from (Fetched(9, "image/png", 10), Heard(9, "e"))
    for session in ("idle", "busy", "gone"):
        for record in ("absent", "admitted", "running", *ENDS):
            yield Seen(0.0, Sight(session, record, "msg_2"))


def tapped(world: World, event: PromptEvent) -> World:
    """Count the taps on Stop."""
    match event:
        case StopWanted(on=False):
            return world._replace(taps=0 if world.taps == 1 else world.taps)
        case StopWanted(is_sure=False):
            return world._replace(taps=max(world.taps, 1))
        case StopWanted() if world.taps == 1:
            return world._replace(taps=2)
        case _:
            return world


def looked(world: World, sight: Sight) -> World:
    """Note what a look has told."""
    was_missing = world.was_missing or sight.record == "absent"
    is_written = world.is_written or sight.record != "absent"
    found_idle = sight.session == "idle"
    return world._replace(was_missing=was_missing, is_written=is_written, found_idle=found_idle, has_begun=False)


def sent(here: Place) -> Iterator[Edge]:
    """All that may come of a prompt that is sent. Hermes may be killed before it hears of that, or before it sends."""
    prompt, world = here
    trying = one(prompts.step(prompt, Trying(0.0)))
    yield Edge(here, Trying(0.0), Place(trying, world))  # killed before it left
    text = prompts.content(trying).text
    left = world.left or (text, trying.record_id)
    world = world._replace(sends=min(world.sends + 1, 2), left=left, was_missing=False)
    refused = Declined("the agent does not want it")
    for there in {world, reached(world)}:  # it may arrive although nobody hears so, or although the agent said no
        yield Edge(here, Trying(0.0), Place(trying, there), is_sent=True)
        for told in (Accepted(), Unreached(), refused):
            yield Edge(here, told, Place(one(prompts.step(trying, told)), there), is_sent=True)


def ordered(here: Place, order: PromptOrder | None) -> Iterator[Edge]:
    """All that may come of an order."""
    events: list[tuple[PromptEvent, World]] = [(Unreached(), here.world)]
    match order:
        case None:
            return
        case Send():
            yield from sent(here)
            return
        case MakeSession():
            events += [(SessionMade("ses_1"), here.world), (Declined("no such folder"), here.world)]
        case Look():
            events += [(Seen(0.0, sight), looked(here.world, sight)) for sight in sights(here.world)]
        case Stop():
            untapped = here.world._replace(taps=0)
            events.append((StopTold(is_taken=False), untapped))
            if here.world.session == "busy":  # perhaps with the turn of somebody else
                is_its_own = here.world.record == "running"
                ended = untapped._replace(session="idle", has_begun=False)
                ended = ended._replace(record="stopped") if is_its_own else ended
                events.append((StopTold(is_taken=True), ended))
                yield Edge(here, None, Place(here.prompt, ended._replace(taps=2)))  # killed before it heard
    for event, world in events:
        yield Edge(here, event, Place(one(prompts.step(here.prompt, event)), world))


def edges_of(here: Place) -> Iterator[Edge]:
    """All that may happen next."""
    is_note = here.prompt.parts[0].text.startswith("/note")
    for world in moved(here.world):
        if not (is_note and world.record == "running"):  # nothing answers a note
            yield Edge(here, None, Place(here.prompt, world))
    for seconds in PAUSES_S:
        there = later(here, seconds)
        if there is not None:
            yield Edge(here, None, there)
    for event, after in done_by_people(here.prompt):
        yield Edge(here, event, Place(after, tapped(here.world, event)))
    yield from ordered(here, prompts.due(here.prompt, is_next=True, now_s=0.0))
    if prompts.wants_files(here.prompt, 0.0):
        is_voice = here.prompt.parts[0].file == VOICE
        came = Heard(7, "a") if is_voice else Fetched(7, "image/png", 20)
        for event in (came, Declined("Telegram does not have it")):
            yield Edge(here, event, Place(one(prompts.step(here.prompt, event)), here.world))


def walk(case: str) -> Iterator[Edge]:
    """Walk every edge, each once."""
    begun = Place(one(CASES[case]), World())
    known, queue = {(id(begun.prompt), begun.world)}, deque([begun])
    while queue:
        for edge in edges_of(queue.popleft()):
            yield edge
            there = plain(edge.after)
            is_end = prompts.is_over(there.prompt) or (case in BRIEF and there.world.sends)
            if not is_end and (id(there.prompt), there.world) not in known:
                known.add((id(there.prompt), there.world))
                queue.append(there)


# --- the laws -------------------------------------------------------------------------------------------------------


def what_is_over_stays_over(edge: Edge) -> None:
    """No event changes it."""
    after = edge.after.prompt
    if prompts.is_over(after):
        assert _stays(after)


@asked_once
def _stays(prompt: Prompt) -> bool:
    events = (*by_people(prompt), *strays())
    has_orders = prompts.due(prompt, is_next=True, now_s=0.0) is not None
    return not has_orders and all(prompts.step(prompt, event) == prompt for event in events)


def no_second_send_before_a_look_shows_that_it_is_missing(edge: Edge) -> None:
    """It leaves twice only if a look has told so, and only if the record does not have it indeed."""
    world = edge.before.world
    if edge.is_sent and world.sends:
        assert world.was_missing
        assert world.record == "absent"


def only_one_text_leaves(edge: Edge) -> None:
    """That of the first time, under the same id."""
    prompt, left = edge.after.prompt, edge.after.world.left
    if left is not None:
        assert (prompts.content(prompt).text, prompt.record_id) == left


def what_was_tried_is_neither_edited_nor_withdrawn(edge: Edge) -> None:
    """It may have arrived."""
    before, after = edge.before.prompt, edge.after.prompt
    if before.tries:
        assert (after.parts, after.target) == (before.parts, before.target)
        assert after.phase != "withdrawn"
    if after.phase == "withdrawn":
        assert not edge.after.world.sends


def an_event_twice_is_an_event_once(edge: Edge) -> None:
    """Telegram and agents tell things twice. An event that has changed nothing changes nothing again."""
    if edge.event is not None and edge.after.prompt is not edge.before.prompt:
        assert prompts.step(edge.after.prompt, edge.event) == edge.after.prompt


def a_stray_event_twice_is_an_event_once(edge: Edge) -> None:
    """And none raises, or changes what has left."""
    assert edge.event is None or _takes_strays(edge.after.prompt)


@asked_once
def _takes_strays(prompt: Prompt) -> bool:
    once = [(event, prompts.step(prompt, event)) for event in strays()]
    is_once = all(prompts.step(after, event) == after for event, after in once)
    return is_once and all(not prompt.tries or after.parts == prompt.parts for _, after in once)


def nothing_hangs(edge: Edge) -> None:
    """Hermes has something to do, unless a person has."""
    assert not _hangs(edge.after.prompt)


@asked_once
def _hangs(prompt: Prompt) -> bool:
    waits = prompt.phase == "unaddressed" or prompt.due_s is not None or prompts.is_stale(prompt, 0.0)
    waits = waits or prompts.wants_files(prompt, 0.0) or bool(prompt_files.heard(prompt))
    return not prompts.is_over(prompt) and not waits and prompts.due(prompt, is_next=True, now_s=0.0) is None


def finished_is_what_the_record_says(edge: Edge) -> None:
    """Or it is a note, which nothing answers."""
    if edge.after.prompt.phase == "finished" and edge.before.prompt.phase != "finished":
        assert isinstance(edge.event, Seen)
        is_note = prompts.content(edge.after.prompt).kind == "note"
        assert edge.event.sight.record == "finished" or (is_note and edge.event.sight.record == "admitted")


def what_has_an_effect_does_not_fail(edge: Edge) -> None:
    """The person would send it again."""
    prompt, world = edge.after.prompt, edge.after.world
    if prompt.phase == "failed" and prompt.reason != FAILURE:
        has_effect = world.record in {"admitted", "running", "finished", "stopped"} and not world.is_dead
        assert not has_effect or world.was_lost or world.session == "gone"


def a_stale_prompt_does_not_leave(edge: Edge) -> None:
    """Neither the first time nor again."""
    if edge.is_sent:
        assert edge.before.prompt.starts_until_s > 0.0


def a_prompt_leaves_for_a_session_that_is_idle(edge: Edge) -> None:
    """A look a moment ago has told so; unless the person wants it in the turn that runs."""
    prompt = edge.before.prompt
    if edge.is_sent and not prompt.tries:
        assert prompt.target is not None
        assert edge.before.world.found_idle or (prompt.is_hurried and prompt.target.can.steers)


def a_prompt_leaves_with_all_its_files(edge: Edge) -> None:
    """They were downloaded before, and the person has agreed with the words of a voice note."""
    if edge.is_sent:
        assert prompt_files.is_complete(edge.before.prompt)


def a_stop_needs_two_taps(edge: Edge) -> None:
    """The second one after the first."""
    if isinstance(prompts.due(edge.after.prompt, is_next=True, now_s=0.0), Stop):
        assert edge.after.world.taps == 2


LAWS: tuple[Callable[[Edge], None], ...] = (
    what_is_over_stays_over,
    no_second_send_before_a_look_shows_that_it_is_missing,
    only_one_text_leaves,
    what_was_tried_is_neither_edited_nor_withdrawn,
    an_event_twice_is_an_event_once,
    a_stray_event_twice_is_an_event_once,
    nothing_hangs,
    finished_is_what_the_record_says,
    what_has_an_effect_does_not_fail,
    a_stale_prompt_does_not_leave,
    a_prompt_leaves_for_a_session_that_is_idle,
    a_prompt_leaves_with_all_its_files,
    a_stop_needs_two_taps,
)


@pytest.mark.parametrize("case", [pytest.param(one, marks=[pytest.mark.long] * (one not in BRIEF)) for one in CASES])
def test_the_laws_hold_on_every_edge(case: str) -> None:
    """And the walk gets everywhere: a prompt may end in each way, and leave more than once."""
    ends, most = set(), 0
    for edge in walk(case):
        ends.add(edge.after.prompt.phase)
        most = max(most, edge.after.world.sends)
        for law in LAWS:
            law(edge)
    assert ends >= {"queued", "sending", "failed", "withdrawn"}
    assert case in BRIEF or (most == 2 and "finished" in ends)
    assert case != "a text" or ends >= {"admitted", "running", "stopped"}
