"""Worlds whose chat has topics, trouble with these, and the laws of where messages stand.

A person who deletes a topic asks for what is open with /open, and again if something of it does not come.
"""

from __future__ import annotations

import contextlib
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tests.faults.person import View
from tests.faults.world import GROUP, created

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from hermes.core.topics import TopicMode
    from hermes.sandbox.phone_values import ShownMessage
    from tests.faults.asks import Ask
    from tests.faults.round import Round
    from tests.faults.world import World

    Lift = Callable[[], None]

VERSION: Final = "topics"
"""The version of rounds with topics."""
MODES: Final[tuple[TopicMode, ...]] = ("session", "session", "project")
FORUM_LATE: Final = "topics switched on"
"""The chat has no topics when such a round begins."""
SWITCHES: Final = frozenset({FORUM_LATE, "topics switched off"})
DELETED: Final = "topic deleted"
OFTEN: Final = 0.75
"""How likely there is trouble with topics in a round that has some."""
SEEN_S: Final = 3.0
"""A topic of this round is there within this, if one comes."""
ASKS_AGAIN_S: Final = 4.0
"""After so long without the question whose topic they deleted, people ask for it again."""
TOKEN: Final = re.compile(r"Q\d+[a-z]+")
QUOTED: Final = re.compile("“[^”]*”")


# --- worlds -----------------------------------------------------------------------------------------------------------


@contextmanager
def with_topics(root: Path, number: int, *, fleeting: bool) -> Iterator[World]:
    """Set up a world with topics for each session, or for each project; every other one has a group for a phone."""
    mode, is_group = MODES[number % len(MODES)], number % 2 == 1
    with created(root, fleeting=fleeting, group=is_group, tables={"telegram": {"topics": mode}}) as world:
        world.topics = mode
        if is_group:
            world.stage.phone.rule(chat=GROUP.id, standing="administrator", manages_topics=True)
        switch(world, on=True)
        yield world


def switch(world: World, *, on: bool) -> None:
    """Switch the topics of the chat on or off."""
    world.is_forum = on
    if world.is_group:
        world.stage.phone.rule(chat=GROUP.id, forum=on)
    else:
        world.stage.phone.topics_mode(on=on)


# --- trouble ----------------------------------------------------------------------------------------------------------


@dataclass
class Deletions:
    """What people removed together with its topic, in one round: the messages by their ids, and the topics."""

    swept: dict[int, ShownMessage] = field(default_factory=dict)
    threads: set[int] = field(default_factory=set)
    _asked_s: float = 0.0

    def delete(self, world: World, thread_id: int) -> None:
        """Delete a topic, and all that stands in it."""
        phone = world.stage.phone
        before = {one.message_id for one in phone.messages() if one.deleted}
        phone.topic("delete", thread_id)
        gone = [one for one in phone.messages() if one.thread_id == thread_id and one.message_id not in before]
        self.swept |= {one.message_id: one for one in gone}
        self.threads.add(thread_id)
        self._asked_s = time.monotonic()

    def seen(self, view: View) -> View:
        """Return what the phone shows, with what was removed here."""
        return View(view.messages, view.toasts, self.swept)

    def step(self, play: Round, view: View) -> None:
        """Ask for what is open, if a question has gone with its topic and is not there again."""
        if not self.swept or time.monotonic() < self._asked_s + ASKS_AGAIN_S:
            return
        self._asked_s = time.monotonic()
        hidden = [one for one in play.persons if is_hidden(one.ask, view) and not play.world.came_of(one.ask)]
        if hidden or any(not one.is_over for one in play.twins):
            play.world.stage.phone.write("/open")


def is_hidden(ask: Ask, view: View) -> bool:
    """Tell whether all messages of an ask have gone with their topic."""
    return not view.about(ask) and bool(view.removed_about(ask))


def _threads(play: Round) -> list[int]:
    """Return the topics in which something of this round stands."""
    of_round, shown = set(owners(play)), View.of(play.world.stage.phone).shown()
    found = {one.thread_id for one in shown if one.thread_id and of_round & set(TOKEN.findall(one.text))}
    return sorted(found)


def deleted(play: Round) -> Lift:
    """A person deletes the topic of a session under way, and soon asks for what is open."""
    play.meanwhile(lambda: bool(_threads(play)), SEEN_S)
    threads = _threads(play) if play.world.is_forum else []
    if threads:
        play.deletions.delete(play.world, play.rng.choice(threads))
    return lambda: _write_open(play)


def _write_open(play: Round) -> None:
    play.world.stage.phone.write("/open")


def closed(play: Round) -> Lift:
    """A person closes a topic, and opens it again after a while."""
    phone = play.world.stage.phone
    play.meanwhile(lambda: bool(_threads(play)), SEEN_S)
    threads = _threads(play)
    thread_id = play.rng.choice(threads) if threads else 0

    def act(what: str) -> None:
        with contextlib.suppress(LookupError):  # it was deleted meanwhile, or there was none
            phone.topic(what, thread_id)  # type: ignore[arg-type]

    act("close")
    return lambda: act("reopen")


def switched_off(play: Round) -> Lift:
    """The chat has no topics for a while."""
    switch(play.world, on=False)
    return lambda: switch(play.world, on=True)


def switched_on(play: Round) -> None:
    """The chat turns into a forum: it gets topics when messages are there already (see `FORUM_LATE`)."""
    switch(play.world, on=True)


def no_right(play: Round) -> Lift:
    """In a group the bot may make no topics for a while."""
    phone = play.world.stage.phone
    phone.rule(chat=GROUP.id, standing="member")
    return lambda: phone.rule(chat=GROUP.id, standing="administrator")


FAULTS: Final[Mapping[str, Callable[[Round], Lift | None]]] = {
    DELETED: deleted,
    "topic closed": closed,
    "topics switched off": switched_off,
    FORUM_LATE: switched_on,
    "no right to topics": no_right,
}
IN_GROUPS: Final = frozenset({"topic closed", "no right to topics"})


# --- the laws ---------------------------------------------------------------------------------------------------------


def judge(play: Round, view: View) -> None:
    """Note in a round where its messages stand, and what of that violates a law, if its chat has topics."""
    if play.world.topics == "off":
        return
    if play.world.topics == "session":
        play.violations += apart(view, owners(play))
    may_leave = bool(SWITCHES & set(play.kinds))
    for person in play.persons:
        if play.is_sure and not person.asked_again:
            play.violations += stays(person.ask, view, play.deletions.threads, may_leave=may_leave)
        places = [one.thread_id for one in view.ever_about(person.ask)]
        play.ends += ["asked in a topic" if places[0] else "asked in the chat itself"] if places else []


def owners(play: Round) -> dict[str, str]:
    """Return the session of each token of a round; asks whose sessions are the same have the same."""
    found = {one.ask.token: one.ask.session or one.ask.token for one in play.persons}
    found |= {one.token: one.token for one in play.twins}
    for talk in play.talks:
        found |= dict.fromkeys((talk.token, *(letter.token for letter in talk.letters)), talk.token)
    return found


def apart(view: View, sessions: Mapping[str, str]) -> Iterator[str]:
    """No topic has messages about two sessions; `sessions` are those of the tokens in their texts."""
    about: dict[int, dict[str, int]] = {}
    for message in view.messages:
        if message.from_bot and message.thread_id:
            said = QUOTED.sub("", message.text)  # a person's words may be offered to the question of another session
            named = {sessions[token] for token in TOKEN.findall(said) if token in sessions}
            about.setdefault(message.thread_id, {}).update(dict.fromkeys(named, message.message_id))
    for thread_id, found in about.items():
        if len(found) > 1:
            yield f"the topic {thread_id} has messages about several sessions: {found}"


def stays(ask: Ask, view: View, lost: set[int], *, may_leave: bool) -> Iterator[str]:
    """What is asked stays where it is: in the chat itself for good, in a topic for as long as that is there.

    `lost` are the topics that were deleted; `may_leave`: all of them went, since the chat had none for a while.
    """
    places = [one.thread_id for one in view.ever_about(ask)]
    for first, then in pairwise(places):
        if first != then and (first is None or not (may_leave or first in lost)):
            yield f"{ask.token} stood in the topic {first}, and then in {then}"
            return
