"""A letter: one prompt as a person means it, where it is written, and what is done with it later.

`Speaking` and `Desk` are what a talk needs of the phone and of the agent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from tests.faults import enclosures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from hermes.sandbox.phone_values import ShownMessage
    from tests.faults.enclosures import Enclosure
    from tests.faults.person import View

Door = Literal["card", "armed", "notice", "line", "topic"]
"""Where a letter is written: as a reply to a card, a notice or the line of the one before, after ✏️ on a card, or as a
plain text in the topic of its session.
"""
Wish = Literal["", "edit", "cancel", "now", "stop", "doubled", "long"]

DOORS: Final[tuple[Door, ...]] = ("card", "card", "armed", "notice", "line", "line")
WISHES: Final[tuple[Wish, ...]] = ("", "", "", "edit", "edit", "cancel", "now", "stop", "doubled", "long")
FINAL: Final = ("✅ Done", "⏹ Stopped ", "⏹ Stopped\n", "✖️ Cancelled", "❌ ")
"""How the last words about a prompt begin."""
HEADS: Final = (*FINAL, "⏳ ", "📥 ", "💾 ", "📨 ", "▶️ ", "⏹ Stopping", "Stop the agent?", "What is this for?")
TOO_LATE: Final = ("Your edit came too late", "⚠️")
"""How the words begin that an edit came to nothing."""
LETTERS: Final = 4
LONG: Final = 5000
ENCLOSES: Final = 0.35
"""How likely files go with a letter."""
IN_PIECES: Final = 0.4
IN_TOPIC: Final = 0.4
"""How likely a letter is a plain text in a topic, where there are topics of sessions."""


class Speaking(Protocol):
    """The phone, as a person uses it here; see `Phone`."""

    def tap(self, message: ShownMessage, label: str) -> object:
        """Tap a button. Raises LookupError where it is no longer there."""
        ...

    def write(
        self, text: str, *, reply_to: ShownMessage | None = None, thread_id: int | None = None
    ) -> tuple[int, ...]:
        """Write a text, in a topic if wanted, and return the ids of its messages."""
        ...

    def share(
        self,
        media: Sequence[Mapping[str, Any]],
        *,
        reply_to: ShownMessage | None = None,
        thread_id: int | None = None,
        album: str = "",
    ) -> tuple[int, ...]:
        """Send files, and return the ids of their messages."""
        ...

    def rewrite(self, message_id: int, text: str) -> None:
        """Edit a text, or a caption."""
        ...

    def repeat(self, message_id: int) -> None:
        """Let Telegram send the newest update about a message again."""
        ...


class Desk(Protocol):
    """The agent; see `world.Agent`."""

    manner: str

    def do(self, act: str, **wish: Any) -> Any:
        """Do something. Raises LookupError where it is impossible."""
        ...


@dataclass
class Letter:
    """One prompt. `ids` are its messages, "" until it is written."""

    token: str
    wish: Wish
    door: Door
    ids: tuple[int, ...] = ()
    enclosed: tuple[Enclosure, ...] = ()
    in_pieces: bool = False
    """Whether its album comes one file after the other, and not at once."""
    lost: list[int] = field(default_factory=list)
    """Messages with the same text that were said to be not saved, or that found no session."""
    is_edited: bool = False
    is_refused: bool = False
    """Whether the phone said that the edit came too late, or was not saved."""
    is_hurried: bool = False
    """Whether the person wanted it sent before its turn."""
    is_doubled: bool = False
    is_unheard: bool = False
    """Whether nobody said a word to it for long, and the person has written another one."""
    written_s: float = 0.0

    @property
    def written(self) -> str:
        """The text, or the first caption, as it was written."""
        text = f"{self.token} please, and *then* <that>"
        return text + " and so on".ljust(LONG, "x") if self.wish == "long" else text

    @property
    def rewritten(self) -> str:
        """The same after its edit."""
        return f"{self.token} please, but otherwise"

    @property
    def first(self) -> str:
        """What the agent must get of what was written."""
        return enclosures.texts(self.written, self.enclosed)

    @property
    def edited(self) -> str:
        """What it must get after the edit."""
        return enclosures.texts(self.rewritten, self.enclosed)

    @property
    def wanted(self) -> str:
        """What the agent must get, if it gets anything."""
        return self.edited if self.is_edited and not self.is_refused else self.first

    def lines(self, view: View) -> list[ShownMessage]:
        """Return the messages about it, the newest last; what was removed with its topic counts, too."""
        return [m for m in view.told() if m.reply_to in {*self.ids, *self.lost} and m.text.startswith(HEADS)]

    def is_removed(self, view: View) -> bool:
        """Tell whether a person has removed it together with its topic."""
        return any(one in view.removed for one in self.ids)

    def end(self, view: View) -> str:
        """Return the last words about it, "" if there are none yet."""
        lines = [m for m in self.lines(view) if m.reply_to in self.ids]
        return next((m.text for m in reversed(lines) if (m.text + "\n").startswith(FINAL)), "")


def invented(rng: Random, token: str, *, in_topics: bool = False) -> list[Letter]:
    """Make the letters of a talk up. `in_topics`: its session has a topic."""
    letters: list[Letter] = []
    for number in range(rng.randint(1, LETTERS)):
        door = rng.choice(DOORS)
        letters.append(
            Letter(f"{token}{'klmn'[number]}", rng.choice(WISHES), door if letters or door != "line" else "card")
        )
    for letter in letters:
        if in_topics and rng.random() < IN_TOPIC:
            letter.door = "topic"
        if rng.random() < ENCLOSES:
            enclose(rng, letter, enclosures.invented(rng, letter.token))
    return letters


def enclose(rng: Random, letter: Letter, enclosed: tuple[Enclosure, ...]) -> None:
    """Let files go with a letter. A caption is never long."""
    letter.enclosed = enclosed
    letter.wish = "" if letter.wish == "long" else letter.wish
    letter.in_pieces = len(enclosed) > 1 and rng.random() < IN_PIECES
