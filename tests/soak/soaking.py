"""One long round of the fault suite: asks come and go all the time, and trouble is light."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from tests.faults import laws
from tests.faults.asks import Ask, invented
from tests.faults.person import Person, View
from tests.faults.round import Round
from tests.faults.world import created
from tests.harness.listeners import running
from tests.soak.growth import Sample, figures, growth, sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.faults.asks import Answers
    from tests.faults.world import World

AT_ONCE: Final = 6
"""So many asks are open at once."""
TTL_S: Final = 150
"""How long an ask can be answered, in Hermes' own seconds: those that nobody answers end by that."""
UNSEEN_S: Final = 60.0
"""Every question is on the phone within this, on the wall."""
ENDED_S: Final = 240.0
"""And it has ended within this."""
HELPED_S: Final = 20.0
"""After this long its person helps an ask that nothing else has ended; at the end of the soak, every ask."""
LEFT_ALONE_S: Final = 100.0
"""And this long after it was asked one that was left to its time: each trouble may give it ten minutes more."""
SHOWN_S: Final = 60.0
"""The phone tells how it ended within this."""
FORGET_S: Final = 5.0
TICK_S: Final = 0.05
TROUBLE_S: Final = (2.0, 8.0)
BIG: Final = 0.08
"""How likely an ask is a permission with a change of 300 KB."""
BIG_BYTES: Final = 300_000
LEFT: Final = 0.03
"""How likely nobody answers, while not too many are left alone already."""
MOST_LEFT: Final = 10
SAMPLES: Final = 80
LIGHT: Final = (
    *("telegram 429", "telegram 500", "telegram 502, a page", "telegram cut", "telegram frozen", "an odd update"),
    *("updates again", "taps on old pages", "listener frozen", "agent 500", "agent slow", "agent cut", "agent frozen"),
    *("events cut", "events doubled", "tools end late", "clock ahead", "clock back", "identical calls"),
)


@dataclass
class Open:
    """An ask that is not over yet, its person, and when it began."""

    person: Person
    began_s: float
    first_id: int
    """The highest message id when it began."""
    came: list[Answers | None] = field(default_factory=list)
    over_s: float = 0.0


@dataclass
class Report:
    """What a soak came to."""

    seed: int
    took_s: float = 0.0
    asks: int = 0
    closed: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    troubles: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it for a file."""
        told = dict(vars(self))
        return told | {"samples": [one.as_json() for one in self.samples], "quarters": figures(self.samples)}


class Soak(Round):
    """A round whose asks are never all there at once. `until_s` and `asks` end it: the first that is reached."""

    def __init__(self, world: World, seed: int, *, for_s: float, most: int, report: Report) -> None:
        super().__init__(world, seed, 0)
        self.report = report
        self._for_s, self._most = for_s, most
        self._open: list[Open] = []
        self.started = 0
        self._started_s = time.monotonic()
        self._trouble_s = self._started_s + TROUBLE_S[0]
        self._sampled = 0
        self._forgotten: list[tuple[float, str]] = []
        self._newest_id = 0
        (self._pid,) = world.listeners()

    def soak(self) -> None:
        """Play to the end."""
        while self._goes_on():
            if self._may_ask():
                self._ask_one()
            self._be_light()
            for lift in [one for one in self._lifts if one[0] <= time.monotonic()]:
                self._lifts.remove(lift)
                lift[1]()
            self._step()
            self._sample()
            time.sleep(TICK_S)
        self._finish()

    def _goes_on(self) -> bool:
        if self.report.violations:
            return False
        return self._may_ask_more() or bool(self._open)

    def _may_ask_more(self) -> bool:
        return self.started < self._most and time.monotonic() - self._started_s < self._for_s

    def _may_ask(self) -> bool:
        return self._may_ask_more() and len(self._open) - self._left() < AT_ONCE

    def _left(self) -> int:
        return sum(one.person.ask.fate == "nobody" for one in self._open)

    def _ask_one(self) -> None:
        rng, token = self.rng, f"s{self.started}z"
        self.started += 1
        is_big = rng.random() < BIG
        ask = self._big(token) if is_big else invented(rng, token, self.servers, fleeting=False)
        if ask.shape in {"typed", "why"} and any(one.person.ask.shape in {"typed", "why"} for one in self._open):
            ask.shape = "once" if ask.is_permission else "single"
        if rng.random() < LEFT and ask.route != "program" and self._left() < MOST_LEFT:
            ask.fate = "nobody"
        person = Person(ask, self.world.stage.phone, rng, acts=ask.fate == "person", thinks_s=rng.choice((0.0, 0.2)))
        self._open.append(Open(person, time.monotonic(), self._newest_id))
        self.world.ask(ask)
        if ask.fate not in {"person", "nobody"}:
            self._due.append((time.monotonic() + rng.uniform(0.2, 1.5), lambda: self._befall(ask)))

    def _big(self, token: str) -> Ask:
        """Return a permission with a long change."""
        return Ask(
            token, self.rng.choice(["once", "refuse"]), "server", self.rng.choice(self.servers), change_bytes=BIG_BYTES
        )

    def _be_light(self) -> None:
        now_s = time.monotonic()
        for due in [one for one in self._due if one[0] <= now_s]:
            self._due.remove(due)
            due[1]()
        if now_s >= self._trouble_s and self._may_ask_more():
            self._trouble_s = now_s + self.rng.uniform(*TROUBLE_S)
            kind = self.rng.choice(LIGHT)
            self.persons = [one.person for one in self._open]
            self.report.troubles[kind] = self.report.troubles.get(kind, 0) + 1
            self._begin(kind)

    # --- looking ----------------------------------------------------------------------------------------------

    def _step(self) -> None:
        first = min((one.first_id for one in self._open), default=self._newest_id)
        since_s = min((one.began_s for one in self._open), default=time.monotonic())
        view = View.of(self.world.stage.phone, after=first, after_s=time.time() - (time.monotonic() - since_s) - 1.0)
        self._newest_id = max((message.message_id for message in view.messages), default=self._newest_id)
        for one in list(self._open):
            self._look_at(one, view)
        for twins in list(self.twins):
            twins.step(view)
            if twins.is_over:
                self.report.violations += twins.violations()
                self.twins.remove(twins)
        self.world.tell_plugins()
        self.world.terminal.step()
        self.world.programs.step()
        for due in [due for due in self._forgotten if due[0] <= time.monotonic()]:
            self._forgotten.remove(due)
            self.world.terminal.forget(due[1])

    def _look_at(self, one: Open, view: View) -> None:
        ask = one.person.ask
        if not ask.request_id:
            return
        now_s = time.monotonic()
        is_left = self._may_ask_more() and ask.fate == "nobody"
        helped_s = LEFT_ALONE_S if is_left else HELPED_S
        one.person.acts = one.person.acts or (not ask.ended_by and now_s - one.began_s > helped_s)
        one.person.look(view, lambda: self.world.came_of(ask))
        one.person.step(view)
        one.came = self.world.came_of(ask)
        if one.came or ask.ended_by:
            one.over_s = one.over_s or now_s
            wrong = [*laws.effects(one.person, one.came), *laws.shows(one.person, one.came, view)]
            if not wrong or now_s - one.over_s > SHOWN_S:
                self._over(one, wrong)
        elif not one.person.first_seen_s and now_s - one.began_s > UNSEEN_S:
            self.report.violations.append(f"{ask.token} ({ask.route}, {ask.agent}) was seen by nobody")
        elif now_s - one.began_s > ENDED_S:
            self.report.violations.append(f"{ask.token} ({ask.shape}, {ask.route}, {ask.agent}, {ask.fate}) has no end")

    def _over(self, one: Open, wrong: Sequence[str]) -> None:
        ask = one.person.ask
        self._open.remove(one)
        self.report.closed += 1
        end = laws.end(one.person, one.came)
        self.report.ends[end] = self.report.ends.get(end, 0) + 1
        self.report.violations += wrong
        if ask.route == "program":
            self.world.programs.forget(ask.request_id)
        elif ask.route in {"terminal", "both"}:
            self._forgotten.append((time.monotonic() + FORGET_S, ask.request_id))

    # --- measuring --------------------------------------------------------------------------------------------

    def _sample(self) -> None:
        now_s = time.monotonic() - self._started_s
        every_s = self._for_s / SAMPLES
        by_asks = self.report.closed >= self._sampled * self._most / SAMPLES
        if now_s < self._sampled * every_s and not by_asks:
            return
        self._sampled += 1
        listener = self._the_listener()
        if listener:
            store = self.world.stage.store
            self.report.samples.append(sample(listener, store, at_s=now_s, closed=self.report.closed))

    def _the_listener(self) -> int:
        """Return the one listener's process id; it is the same from the beginning to the end."""
        found = self.world.listeners()
        if found != [self._pid]:
            self.report.violations.append(f"the listener was {self._pid}, and now there are {found}")
            return 0
        return self._pid

    def _finish(self) -> None:
        """Lift what lasts, wait until nothing is open, and look for what was left."""
        self._lift_all()
        store = self.world.stage.store
        self._move(lambda: not self._open_entries() and self.world.terminal.idle, ENDED_S)
        self.report.violations += self.violations
        self.report.violations += laws.files(store, self.world.planted)
        self.report.violations += laws.foreign_deletions(self.world.stage.phone)
        log = self.world.stage.log.read_text("utf-8", "replace")
        self.report.violations += laws.words_of_the_log(log, self.world.stage.api.token)
        for request_id in list(self.world.terminal.asks):
            self.world.terminal.forget(request_id)
        waiting = [
            hook for hook in running("hook", self.world.stage.root).values() if "--stay" in hook or "generic" in hook
        ]
        if waiting:
            self.report.violations.append(f"{len(waiting)} hooks are left: {waiting[0][:200]}")
        self.report.violations += growth(self.report.samples)


def soaked(seed: int, *, for_s: float, most: int = 10**6) -> Report:
    """Soak a world for so long, or with so many asks."""
    report = Report(seed)
    began_s = time.monotonic()
    with (
        TemporaryDirectory(prefix="hermes-soak-", ignore_cleanup_errors=True) as root,
        created(Path(root), ttl_s=TTL_S, disk="") as world,
    ):
        soak = Soak(world, seed, for_s=for_s, most=most, report=report)
        soak.soak()
        report.asks = soak.started
    report.took_s = time.monotonic() - began_s
    return report
