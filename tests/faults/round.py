"""One round: asks, acts and faults in one seeded order; then every fault is lifted, and the laws are looked at."""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final

from hermes.chat.screens.hints import TOASTS
from hermes.core.graces import TAKEN_GRACE_S
from tests.faults import enclosures, fates, laws, letters, prompt_laws, talking, topics, words
from tests.faults.asks import Ask, invented, token
from tests.faults.faults import ALONE, CATALOGUE, DAMAGING, DOWNLOADS, ENDINGS, IN_GROUPS, JUMPS, LONELY, MILD, WORDLESS
from tests.faults.person import Person, View
from tests.faults.topics import Deletions
from tests.faults.world import FLEETING_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from tests.faults.asks import Answers, Route, Shape
    from tests.faults.enclosures import Enclosure
    from tests.faults.talking import Talk
    from tests.faults.twins import Twins
    from tests.faults.world import Agent, World

MOVING_S: Final = 1.4
THINKS_S: Final = (0.1, 0.4, 1.2)
TICK_S: Final = 0.03
SETTLING_S: Final = 200.0
"""After this long without a fault everything must have ended; in Hermes' own seconds."""
PATIENT_S: Final = FLEETING_S + 100.0
"""After this long a person helps an ask that was left alone."""
STALL_S: Final = 1.0
"""A turn of the driver that took longer than this, on the wall, tells of a machine that stood still."""
STALLED: Final = "machine stalled"
FRESH_S: Final = 20.0
FULL: Final = "disk full"
SECOND: Final = "a second listener"
UNSAVING: Final = frozenset({FULL, "folder unwritable"})
LOCK: Final = "the phone locked"
"""A text that is written meanwhile counts for nothing."""
LONG: Final = "a long text, cut in two"
ALBUM: Final = "an album in pieces"
UNCONFIRMING: Final = frozenset(
    {
        *ENDINGS,
        "telegram done, but cut",
        "telegram sent, but timed out",
        "telegram frozen",
        "telegram cut",
        "listener frozen",
        STALLED,
        "store folder removed",
    }
)
"""Faults after which Telegram may have taken a message, and Hermes can not know.

With the store's folder the machine's id is gone: what a hook tells before the listener has put it back is another ask.
"""
OPENING: Final = "plain texts"
"""Among them is /open."""
LEAVING: Final = frozenset({"store folder removed", "configuration away", "a hostile environment", FULL})
"""Faults in which a hook may find nobody who can hear it."""
SPOILT: Final = "configuration bad for a while"
WRITTEN: Final = ("typed", "why")
UNTOLD: Final = JUMPS | {"store folder removed"}
"""Faults after which the end of a turn may be told to nobody.

After a jump of the clocks some turns are too short; without its store, a listener for which nothing is open leaves, and
the next one knows nothing of the time before.
"""
AWAY: Final = 0.25
"""How likely the person says where they are in a round."""
A_TALK: Final = 0.7
"""How likely somebody also writes prompts in a round."""
COPY_S: Final = 8.0
REST_S: Final = 8.0
"""How long the messages of a question that is over may keep their buttons."""
RESTART_S: Final = 0.5
TIDY_S: Final = 20.0
NUDGED_S: Final = 10.0
"""How long a listener may take to bind its socket again: it looks after that within seconds."""


@dataclass
class Outcome:
    """What a round came to."""

    seed: int
    number: int
    faults: list[str] = field(default_factory=list)
    asks: int = 0
    violations: list[str] = field(default_factory=list)
    took_s: float = 0.0
    calls: int = 0
    settled_s: float = 0.0
    ends: list[str] = field(default_factory=list)
    version: str = ""
    """Of OpenCode, where it was played with a real one, or with version 2."""

    def as_json(self) -> dict[str, Any]:
        """Return it for a report."""
        return asdict(self)


@dataclass
class Round:
    """See the module."""

    world: World
    seed: int
    number: int
    settling_s: float = SETTLING_S
    persons: list[Person] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    """The faults of this round, begun or not."""
    ends: list[str] = field(default_factory=list)
    no_hooks: bool = False
    twins: list[Twins] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)
    deletions: Deletions = field(default_factory=Deletions)
    wants_socket: bool = False
    """Whether the listener's socket must be there again at the end."""
    moving_s: float = MOVING_S
    """How long asks and faults come, on the wall; all asks within `asking_s`, all faults within `begins_s`."""
    asking_s: float = 0.6
    talks_wanted: bool = True
    begins_s: float = MOVING_S - 0.2
    lasting_s: tuple[float, float] = (0.05, 0.9)
    """How long a fault lasts that is lifted: from, to."""
    catalogue: Mapping[str, Callable[..., Callable[[], None] | None]] = field(default_factory=lambda: CATALOGUE)
    unconfirming: frozenset[str] = UNCONFIRMING
    _lifts: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    _lasting: list[Callable[[], None]] = field(default_factory=list)
    _due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    _began_s: float = 0.0
    _looked_s: float = 0.0
    _stalled_s: float = 0.0

    def __post_init__(self) -> None:
        self.rng: Random = Random(f"{self.seed}/{self.number}")

    def agent(self) -> Agent:
        """Return one of the agent servers."""
        return self.world.agents[self.rng.choice(self.servers)]

    @property
    def servers(self) -> tuple[str, ...]:
        """Return the names of the agent servers."""
        return tuple(self.world.agents)

    def play(self) -> Outcome:
        """Let it happen."""
        self._began_s = time.monotonic()
        calls, asked = self._calls(), self._asked()
        logged = [_size(stage.log) for stage in self.world.stages]
        self._plan()
        self._move(lambda: time.monotonic() - self._began_s > self.moving_s)
        self._lift_all()
        lifted_s = time.monotonic()
        self._move(lambda: self._is_over(lifted_s), self.settling_s / self.world.pace)
        settled_s = time.monotonic() - lifted_s
        self._judge()
        self._ask_afresh()
        for lift in self._lasting:
            lift()
        self._move(self._is_tidy, TIDY_S)
        took_s = time.monotonic() - self._began_s
        made = self._calls() - calls
        self.violations += laws.spinning("Telegram", made, took_s)
        self.violations += laws.spinning("an agent server", self._asked() - asked, took_s)
        for stage, size in zip(self.world.stages, logged, strict=True):
            log = stage.log.read_bytes()[size:].decode("utf-8", "replace")
            self.violations += laws.words_of_the_log(log, stage.api.token)
            self.violations += laws.files(stage.store, self.world.planted)
            self.violations += enclosures.in_the_log(log, self._enclosed())
            self.violations += [f"the file {name} is kept for no prompt" for name in enclosures.left(stage.store)]
        self.violations += laws.trapped(self.world.trap.heard)
        self.violations += laws.foreign_deletions(self.world.stage.phone)
        if self.wants_socket and not self._becomes(self.world.can_be_nudged, NUDGED_S):
            self.violations.append("the listener's socket is not bound again: every question waits for its next look")
        return Outcome(
            self.seed, self.number, self.kinds, len(self.persons), self.violations, took_s, made, settled_s, self.ends
        )

    def _is_tidy(self) -> bool:
        """Tell whether no store keeps what was taken in, or was sent."""
        stores = [stage.store for stage in self.world.stages]
        return not any(laws.left_in_the_inbox(store) or enclosures.left(store) for store in stores)

    def _enclosed(self) -> list[Enclosure]:
        return [one for talk in self.talks for letter in talk.letters for one in letter.enclosed]

    # --- what happens -----------------------------------------------------------------------------------------

    def _plan(self) -> None:
        rng = self.rng
        self.planned = self._chosen()
        if topics.FORUM_LATE in self.planned:
            topics.switch(self.world, on=False)
        for place in range(0 if LONELY & set(self.planned) else rng.randint(1, 4)):
            named, routes = token(self.number, "wxyz"[place]), self.world.routes
            ask = invented(rng, named, self.servers, fleeting=self.world.fleeting, routes=routes)
            if self.world.is_real and ask.is_permission:
                # "Always" would let all later commands go, by whomever it was said.
                ask.shape = "once" if ask.shape == "always" else ask.shape
                ask.fate = "person" if ask.fate == "desk" else ask.fate
            has_words = any(person.ask.shape in WRITTEN for person in self.persons)
            is_wordless = self.planned[0] in {*WORDLESS, LOCK}
            # Whose words they are would be a riddle for people, too; behind a long text they would be a part of that.
            if (ask.shape in WRITTEN and (has_words or LONG in self.planned or is_wordless)) or (
                ask.shape == "reply" and is_wordless
            ):
                ask.shape = "once" if ask.is_permission else "single"
            acts = ask.fate == "person" or (ask.fate != "nobody" and rng.random() < 0.5)
            person = self._person(ask, acts=acts, thinks_s=rng.choice(THINKS_S))
            at_s = rng.uniform(0.0, self.asking_s)
            self._at(at_s, lambda person=person: self._ask(person))  # type: ignore[misc]
            if ask.fate not in {"person", "nobody"}:
                self._at(at_s + rng.uniform(0.1, 0.8), lambda ask=ask: self._befall(ask))  # type: ignore[misc]
        if rng.random() < AWAY and not set(self.planned) & {*WORDLESS, *ALONE}:
            words.away_and_back(self)
        self._plan_talks()
        for kind in self.planned:
            self._at(rng.uniform(0.0, self.begins_s), lambda kind=kind: self._begin(kind))  # type: ignore[misc]

    def _plan_talks(self) -> None:
        """Let the person write prompts, too, unless a text of another kind must stand alone."""
        rng, planned = self.rng, set(self.planned)
        if not self.talks_wanted or self.world.is_real or planned & {LONG, *ALONE}:
            return
        if rng.random() > A_TALK and not planned & DOWNLOADS:
            return
        shapes = {person.ask.shape for person in self.persons}
        files_first = bool(planned & DOWNLOADS)
        says_much = bool(shapes & {*WRITTEN, "reply"}) or bool(planned & (WORDLESS | UNSAVING))
        for letter in "tu"[: rng.randint(1, 2)]:
            talk = talking.invented(
                rng,
                token(self.number, letter),
                self.agent(),
                self.world.stage.phone,
                in_group=self.world.is_group,
                topics_of_sessions=self.world.topics == "session",
                has_topics=lambda: self.world.is_forum,
                may_arm=not says_much and not planned & JUMPS and not self.talks,
            )
            if files_first:
                letters.enclose(rng, talk.letters[0], enclosures.invented(rng, talk.letters[0].token))
            for one in talk.letters:
                if one.wish == "long" and (says_much or self.talks):
                    one.wish = ""  # another text would be a part of it
                # As in `_chosen`: the next listener would take the other pieces for all of it.
                one.in_pieces = one.in_pieces and not (planned & UNSAVING and planned & ENDINGS)
            self.talks.append(talk)
            self._at(rng.uniform(0.0, 0.5), talk.begin)

    def _chosen(self) -> list[str]:
        """Return the faults of this round. One that is judged while it lasts comes alone, or with mild ones."""
        kinds = [kind for kind in self.world.kinds or CATALOGUE if self.is_possible(kind)]
        chosen = self.rng.sample(kinds, self.rng.randint(1, min(4, len(kinds))))
        if self.world.topics != "off" and not self.world.kinds and self.rng.random() < topics.OFTEN:
            befalls_topics = self.rng.choice([kind for kind in (topics.DELETED, *topics.FAULTS) if kind in kinds])
            chosen = [befalls_topics, *(kind for kind in chosen if kind != befalls_topics)]
        alone = next((kind for kind in chosen if kind in ALONE), None)
        if alone is not None:
            return [alone, *(kind for kind in chosen if kind in MILD)]
        if (WORDLESS | UNSAVING) & set(chosen):  # of what could not be saved Hermes knows nothing after a restart
            chosen = [kind for kind in chosen if kind not in {LONG, ALBUM}]
        if "store folder removed" in chosen:
            # A listener knows what stood there for as long as it lives, and after that not when it last heard a server;
            # a second one that takes the empty place (a hook that cannot ring starts one) knows nothing of it.
            # A file that stands in the place of one of its folders keeps the store from being made again.
            unfit = ENDINGS | JUMPS | {SECOND, "socket removed", "quarantine blocked"}
            chosen = [kind for kind in chosen if kind not in unfit]
        if "quarantine blocked" in chosen:  # the damaged file of an open ask is not written over, so nobody answers it
            chosen = [kind for kind in chosen if kind not in DAMAGING]
        return sorted(chosen, key=lambda kind: kind not in WORDLESS)

    def is_possible(self, kind: str) -> bool:
        """Tell whether this fault can be had in this world."""
        if kind in topics.FAULTS and self.world.topics == "off":
            return False
        if kind in IN_GROUPS:
            return self.world.is_group
        return kind != "host name changed" or self.world.has_hostname

    def _person(self, ask: Ask, **more: Any) -> Person:
        person = Person(ask, self.world.stage.phone, self.rng, in_group=self.world.is_group, **more)
        self.persons.append(person)
        return person

    def ask_more(self, letter: str, shape: Shape, route: Route, **more: Any) -> Person:
        """Let one more ask come, now, and return its person, who answers it at once; `more` as of `Ask`."""
        route = route if route in self.world.routes else "server"
        agent = self.rng.choice(self.servers) if route in {"server", "both"} else route
        ask = Ask(token(self.number, letter), shape, route, agent, **more)
        person = self._person(ask)
        self._ask(person)
        return person

    def meanwhile(self, condition: Callable[[], bool], longest_s: float) -> bool:
        """Let everybody act until this holds, while faults stay as they are; tell whether it came to hold."""
        end_s = time.monotonic() + longest_s
        while not condition() and time.monotonic() < end_s:
            self._step()
            time.sleep(TICK_S)
        return condition()

    _becomes = meanwhile

    def soon(self, after_s: float, act: Callable[[], None]) -> None:
        """Let something happen so many seconds after the beginning of the round."""
        self._at(after_s, act)

    def rests_for(self, for_s: float) -> None:
        """Let nobody start a listener for so long."""
        self._looked_s = time.monotonic() + for_s

    def lasts(self, lift: Callable[[], None]) -> None:
        """Keep a fault until the round has been judged."""
        self._lasting.append(lift)

    def _at(self, after_s: float, act: Callable[[], None]) -> None:
        self._due.append((self._began_s + after_s, act))

    def _ask(self, person: Person) -> None:
        if self.no_hooks and person.ask.route != "server":
            self._at(time.monotonic() - self._began_s + TICK_S, lambda: self._ask(person))
            return
        self.world.ask(person.ask)

    def _befall(self, ask: Ask) -> None:
        fates.befall(self.world, ask)

    def _begin(self, kind: str) -> None:
        self.kinds.append(kind)
        lift = self.catalogue[kind](self)
        if lift is not None:
            self._lifts.append((time.monotonic() + self.rng.uniform(*self.lasting_s), lift))

    def _lift_all(self) -> None:
        """Lift what still lasts, and see that a listener is there."""
        while self._due or self._lifts:
            # An ask that waited for a full disk comes after it, and so on until nothing is left.
            due, self._due = sorted(self._due, key=lambda one: one[0]), []
            lifts, self._lifts = self._lifts, []
            for _, act in [*due, *lifts]:
                act()
        self.world.start()

    def _move(self, is_over: Callable[[], bool], longest_s: float = SETTLING_S) -> None:
        """Let everybody act until it is over."""
        end_s = time.monotonic() + longest_s
        while time.monotonic() < end_s and not is_over():
            now_s = time.monotonic()
            for when in (self._due, self._lifts):
                for one in [one for one in when if one[0] <= now_s]:
                    when.remove(one)
                    one[1]()
            began_s = time.monotonic()
            self._step()
            time.sleep(TICK_S)
            self._note_stall(time.monotonic() - began_s)

    def _note_stall(self, took_s: float) -> None:
        """What no fault of ours did: a send may have timed out meanwhile, and the driver has looked that much late."""
        if took_s > STALL_S:
            self._stalled_s = max(self._stalled_s, took_s)
            if STALLED not in self.kinds:
                self.kinds.append(STALLED)

    def view(self) -> View:
        """Look at the phone."""
        return self.deletions.seen(View.of(self.world.stage.phone))

    def _step(self) -> None:
        view = self.view()
        for person in self.persons:
            if person.ask.request_id:
                person.look(view, lambda ask=person.ask: self.world.came_of(ask))  # type: ignore[misc]
                person.step(view)
        for twins in self.twins:
            twins.step(view)
        for talk in self.talks:
            if talk.session:
                talk.step(view)
        self.deletions.step(self, view)
        self._see_who_left()
        self.world.tell_plugins()
        self.world.terminal.step()
        self.world.programs.step()

    def _see_who_left(self) -> None:
        """A hook leaves if nobody can hear it or its time is up without a "no", and its agent asks at its desk alone.

        If it found the disk full, it cannot tell either that it has handed an answer over. An agent that took an
        answer, and stood still for longer than Hermes waits for its word, counts as silent.
        """
        for person in self.persons:
            waiting = self.world.programs.asks.get(person.ask.request_id)
            if waiting is not None and waiting.late_s * self.world.pace > TAKEN_GRACE_S:
                person.ask.ended_by.add("silent")
            if waiting is None or waiting.alive or not (person.time_was_up or may_leave(set(self.kinds))):
                continue
            if FULL in self.kinds or not waiting.is_answered:
                person.ask.ended_by.add("left")

    # --- how it ends ------------------------------------------------------------------------------------------

    def _is_over(self, lifted_s: float) -> bool:
        self._keep_a_listener()
        helped = time.monotonic() - lifted_s > PATIENT_S / self.world.pace
        for person in self.persons:
            # What was meant to end it came to nothing, or its time was not up.
            alone = not person.ask.ended_by and (helped or person.ask.fate != "nobody")
            person.acts = person.acts or alone
        if not all(self.world.came_of(one.ask) or one.ask.ended_by for one in self.persons):
            return False
        if not all(twins.is_over for twins in self.twins) or not self._all_said():
            return False
        return self.world.terminal.idle and self.world.programs.idle and not self._open_entries() and self._all_told()

    def _all_said(self) -> bool:
        """Tell whether each prompt has come to its end, as the laws want, and Telegram has nothing more of the texts.

        A line that fails is posted anew, and its first message goes a moment later.
        """
        phone = self.world.stage.phone
        view = self.view() if self.talks else View((), {})
        if not all(talk.is_over(view) for talk in self.talks) or (self.talks and phone.state().pending_update_count):
            return False
        return not any(self._broken_by(talk, view) for talk in self.talks)

    def _broken_by(self, talk: Talk, view: View) -> list[str]:
        """Return how a talk breaks the laws."""
        broken = prompt_laws.kept(talk, view, is_sure=self.is_sure)
        return broken if UNTOLD & set(self.kinds) else broken + prompt_laws.told(talk, view, is_sure=self.is_sure)

    @property
    def is_sure(self) -> bool:
        """Whether Telegram has confirmed every message that it took."""
        return not self.unconfirming & set(self.kinds)

    def _all_told(self) -> bool:
        """Tell whether each turn that ended by itself is told."""
        if UNTOLD & set(self.kinds):
            return True
        view = self.view()
        return all(len(view.notices(one.ask)) >= (self.world.turns_of(one.ask) or 0) for one in self.persons)

    def _keep_a_listener(self) -> None:
        """Do what a service manager does; one that was told to end may take a moment for it."""
        if time.monotonic() - self._looked_s > RESTART_S:
            self._looked_s = time.monotonic()
            self.world.start()

    def _open_entries(self) -> list[str]:
        return self.world.open_entries()

    def _judge(self) -> None:
        forgotten = self._take_copies_away()
        for twins in self.twins:
            self.violations += twins.violations()
        view = self._at_rest(forgotten)
        topics.judge(self, view)
        for talk in self.talks:
            self.violations += self._broken_by(talk, view)
            self.ends += [
                f"prompt {talk.end_of(letter, view).split(' ·')[0].splitlines()[0][:12]}"
                if talk.end_of(letter, view)
                else "prompt without an end"
                for letter in talk.letters
            ]
        for person in self.persons:
            came: list[Answers | None] = self.world.came_of(person.ask)
            person.ask.allowed = self.world.allowed_by(person.ask)
            person.look(view, lambda came=came: came)  # type: ignore[misc]
            self.ends.append(laws.end(person, came))
            self.violations += laws.effects(person, came)
            self.violations += laws.shows(person, came, view)
            self.violations += laws.shown_once(person.ask, view) if self.is_sure and not person.asked_again else ()
            turns = None if UNTOLD & set(self.kinds) else self.world.turns_of(person.ask)
            if turns is not None:
                self.violations += laws.turns_told(person.ask, turns, view, is_sure=self.is_sure)
            self.violations += laws.time_ran_out_rightly(
                person,
                fleeting=self.world.fleeting,
                pace=self.world.pace,
                gap_s=self.world.gap_s,
                stalled_s=self._stalled_s,
                reopened=bool({OPENING, topics.DELETED} & set(self.kinds)),
            )

    def _at_rest(self, forgotten: Collection[int]) -> View:
        """Look at the phone once no question has buttons, or REST_S later.

        An agent may give up a question that Hermes has not heard of yet: it is posted and ended a moment later.
        """
        end_s = time.monotonic() + REST_S
        while True:
            view = self.view().without(forgotten)
            is_asked = any(message.rows for person in self.persons for message in view.about(person.ask))
            if not is_asked or time.monotonic() > end_s:
                return view
            time.sleep(TICK_S)

    def _take_copies_away(self) -> set[int]:
        """A copy that Telegram never confirmed is unknown to Hermes; it goes at the first tap, with a word.

        Return the copies of asks that Hermes does not know any more: their store was removed when nothing was open.
        """
        phone, forgotten = self.world.stage.phone, set[int]()
        if self._open_entries():
            return forgotten
        if self.is_sure:
            return forgotten  # nothing here was left unconfirmed: what still has buttons is a fault of Hermes' own
        for message in laws.leftovers(View.of(phone), [person.ask.token for person in self.persons]):
            with contextlib.suppress(LookupError, TimeoutError):
                toast = phone.toast_for(phone.tap(message, row=0, column=0), COPY_S)
                if "store folder removed" in self.kinds and toast.text == TOASTS["page_changed"]:
                    forgotten.add(message.message_id)
                    continue
                phone.wait(lambda copy=message: phone.message(copy.message_id).deleted, COPY_S)  # type: ignore[misc]
        return forgotten

    def _ask_afresh(self) -> None:
        """A fresh question works: nobody has gone deaf."""
        number = len(self.persons)
        route, agent = [("server", self.servers[self.number % len(self.servers)]), ("terminal", "terminal")][
            self.number % 3 == 0
        ]
        ask = Ask(token(self.number, "fresh"), "single", route, agent)  # type: ignore[arg-type]
        self._person(ask)
        self.world.ask(ask)

        def is_over() -> bool:
            self._keep_a_listener()
            return bool(self.world.came_of(ask)) and not self._open_entries()

        self._move(is_over, FRESH_S)
        self.violations += laws.deafness(ask, self.world.came_of(ask))
        self.persons = self.persons[:number]

    def _calls(self) -> int:
        return sum(self.world.stage.phone.state().calls.values())

    def _asked(self) -> int:
        return sum(int(agent.do("request_count")) for agent in self.world.agents.values())


def may_leave(kinds: set[str]) -> bool:
    """Tell whether a hook may find nobody who can hear it: without its configuration no listener starts again."""
    return bool(LEAVING & kinds) or (SPOILT in kinds and bool(ENDINGS & kinds))


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
