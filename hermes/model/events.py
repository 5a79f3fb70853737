"""What happened to an ask, and what Telegram brought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.model.actions import Action
from hermes.model.answer import Proof, User
from hermes.model.ask import OnExpiry


@dataclass(frozen=True, slots=True)
class Tapped:
    """A button was tapped. `epoch` is the one of the keyboard it stood on."""

    update_id: int
    at_s: float
    user: User
    action: Action
    epoch: int


TextHow = Literal["reply", "armed", "part", "offered"]


@dataclass(frozen=True, slots=True)
class Texted:
    """A text that routing gave to this ask.

    `how`: "reply" to one of its messages, "armed" after ✏️, "part" of a text that is being joined, "offered" a plain
    text to be offered as an answer. `date_s` is Telegram's own date of the message.
    """

    update_id: int
    at_s: float
    user: User
    message_id: int
    text: str
    how: TextHow
    date_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time passed; `due_s` may have come."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Disarmed:
    """The person turned to another ask: texts are no longer taken unasked."""


@dataclass(frozen=True, slots=True)
class Torn:
    """A part of the text that is being joined was not taken in: what is there is at most offered."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The request behind an ask in phase "matching" was found."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Delivered:
    """The decision took effect: confirmed by the agent, not assumed.

    `answers` is what its agent shows, where that is less than what was decided: that it was allowed, not for how long.
    """

    at_s: float
    proof: Proof = ""
    answers: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The decision could not be delivered now; it will be tried again."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Ended:
    """The ask ended by itself: at the desk, or the agent gave it up."""

    at_s: float
    kind: Literal["answered_at_desk", "rejected_at_desk", "gone"]
    answers: tuple[tuple[str, ...], ...] = ()
    reason: str = ""
    proof: Proof = ""


@dataclass(frozen=True, slots=True)
class Expired:
    """The time to answer ran out."""

    at_s: float
    rule: OnExpiry


@dataclass(frozen=True, slots=True)
class Worked:
    """The agent was seen working again after the ask was settled."""

    at_s: float


Event = Tapped | Texted | Ticked | Disarmed | Torn | Matched | Delivered | Failed | Ended | Expired | Worked


@dataclass(frozen=True, slots=True)
class Tap:
    """A tapped button, as Telegram tells it. `query_id` is what the acknowledgement names."""

    update_id: int
    at_s: float
    user: User
    chat_id: int
    message_id: int
    query_id: str
    data: str


@dataclass(frozen=True, slots=True)
class Text:
    """A written message.

    `reply_to` is the message that it replies to, `reply_text` what that one says, "" unless our own bot wrote it.
    `text` is None for a sticker, a photo and everything else without words; `group` tells a group from a private chat.
    `date_s` is Telegram's own date, which is compared with other dates of Telegram's alone.
    """

    update_id: int
    at_s: float
    user: User
    chat_id: int
    message_id: int
    text: str | None
    reply_to: int | None = None
    reply_text: str = ""
    group: bool = False
    date_s: float = 0.0
