"""What is asked in a round, what its person means to answer, and what must be true of it in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from tests.faults.programs import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

Json = dict[str, Any]
Answers = tuple[tuple[str, ...], ...]
Shape = Literal["single", "multiple", "two", "reply", "typed", "stop", "skip", "once", "always", "refuse", "why"]
Route = Literal["server", "terminal", "both", "program"]
Fate = Literal["person", "nobody", "desk", "dismissed", "aborted", "deleted"]
"""What happens to an ask beside its person's own acts."""

SHAPES: Final[tuple[Shape, ...]] = ("single", "single", "single", "multiple", "two", "reply", "typed", "stop", "skip")
PERMISSIONS: Final[tuple[Shape, ...]] = ("once", "once", "always", "refuse", "why")
BY_PROGRAMS: Final[tuple[Shape, ...]] = ("single", "single", "multiple", "two", "reply", "typed")
"""What the agents whose hooks call their asks are asked to answer here."""
ROUTES: Final[tuple[Route, ...]] = ("server", "server", "terminal", "both", "program")
FATES: Final[tuple[Fate, ...]] = (*("person",) * 8, "desk", "dismissed", "aborted", "deleted")
REFUSAL: Final[Answers] = (("reject",),)
A_QUESTION: Final = 0.7
"""How likely an ask is a question; else it asks for leave."""
DESK: Final = "said at the desk"


def token(number: int, name: str) -> str:
    """Return the token of an ask of this round. Its capital stands in no code that Hermes gives to another ask."""
    return f"Q{number}{name}"


@dataclass
class Ask:
    """One ask of a round. `token` is in all its texts and labels, and in nothing else."""

    token: str
    shape: Shape
    route: Route
    agent: str
    fate: Fate = "person"
    request_id: str = ""
    session: str = ""
    ended_by: set[str] = field(default_factory=set)
    """What else ended it, or may have: "desk", "dismissed", "aborted", "deleted", "disposed", "restarted", "left".

    "silent": its agent took an answer, and did not say so in time.
    """
    promised: bool = False
    """Whether the phone has acknowledged the whole answer."""
    allowed: Answers | None = None
    """The leave that its agent took, whatever became of the tool that had it."""
    change_bytes: int = 0
    """How long the change is that it wants to make, if it asks leave for one and not for a command."""
    long: int = 0
    """How many letters the text has beside its own: Telegram sends more than 4096 in parts."""

    @property
    def is_permission(self) -> bool:
        """Whether it asks for leave, and not for an answer."""
        return self.shape in PERMISSIONS

    @property
    def command(self) -> str:
        """What it wants to run, where it asks for leave."""
        return f"echo {self.token}: which"

    @property
    def questions(self) -> list[Json]:
        """What the agent asks."""
        if self.shape == "two":
            return [self._question(1), self._question(2)]
        return [self._question(1, multiple=self.shape == "multiple")]

    def label(self, question: int, option: str) -> str:
        """Return an option's label."""
        return f"{self.token}{question}{option}"

    def _question(self, number: int, *, multiple: bool = False) -> Json:
        options = [{"label": self.label(number, sign), "description": f"about {sign}"} for sign in "abc"]
        asked: Json = {"question": f"{self.token}: which, {number}?", "header": self.token, "options": options}
        return {**asked, "multiple": True} if multiple else asked

    @property
    def text(self) -> str:
        """What the person writes, where they write: two lines, since some have split those."""
        text = f"{self.token} in words,\nand *more* of <them>"
        return text + " and so on".ljust(self.long, "x") if self.long else text

    @property
    def wanted(self) -> Answers | None:
        """What the agent must receive if the phone wins: None is a dismissal."""
        label = self.label
        wants: dict[Shape, Answers | None] = {
            "single": ((label(1, "b"),),),
            "multiple": ((label(1, "a"), label(1, "c")),),
            "two": ((label(1, "c"),), (label(2, "a"),)),
            "reply": ((self.text,),),
            "typed": ((self.text,),),
            "skip": ((),),
            "stop": None,
            "once": (("once",),),
            "always": (("always",),),
            "refuse": REFUSAL,
            "why": (("reject", self.text),),
        }
        return wants[self.shape]

    @property
    def dismissed(self) -> Answers | None:
        """What comes of it where it is dismissed, by a person or by time."""
        return REFUSAL if self.is_permission else None

    @property
    def at_desk(self) -> Answers:
        """What the desk answers, if it does."""
        if self.is_permission:
            return (("once",),) if self.shape == "always" else (("always",),)
        return tuple((DESK,) for _ in self.questions)


def invented(
    rng: Random, token: str, agents: tuple[str, ...], *, fleeting: bool, routes: Sequence[Route] = ROUTES
) -> Ask:
    """Make an ask up. `fleeting`: time runs out in this world, so some are left alone."""
    route = rng.choice(routes)
    agent = "terminal" if route == "terminal" else rng.choice(agents)
    fate: Fate = rng.choice(FATES)
    if fleeting and rng.random() < 0.4:
        fate = "nobody"
    shapes = SHAPES if rng.random() < A_QUESTION else PERMISSIONS
    shape = rng.choice(shapes)
    if shape in PERMISSIONS and route != "server":
        route, agent = "server", rng.choice(agents)
    if route == "program":
        agent, shape = rng.choice(NAMES), rng.choice(BY_PROGRAMS)
        fate = "aborted" if fate == "aborted" else "person"
    return Ask(token, shape, route, agent, fate)
