"""The events of an ask, and the updates from Telegram that become events.

`core.dialog.step` applies an `Event` to the state of an ask. `Tap` and `Text` are updates whose ask is not found yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes.model.actions import Action
from hermes.model.answer import Proof, Response, User
from hermes.model.ask import OnExpiry
from hermes.model.files import File


@dataclass(frozen=True, slots=True)
class Tapped:
    """A person tapped a button. `epoch` is the `State.epoch` for which the button was drawn."""

    update_id: int
    at_s: float
    user: User
    action: Action
    epoch: int


EndKind = Literal["answered_at_desk", "rejected_at_desk", "gone"]

TextHow = Literal["reply", "armed", "part", "offered"]
"""Why a text belongs to an ask.

"reply": it replies to a message of the ask. "armed": the person tapped ✏️ before. "part": it continues a text that is
being joined. "offered": none of these; the ask is the only open one, and the text is offered as its answer.
"""


@dataclass(frozen=True, slots=True)
class Texted:
    """A person wrote a text that belongs to this ask (`core.routing`). `date_s` is Telegram's date of the message."""

    update_id: int
    at_s: float
    user: User
    message_id: int
    text: str
    how: TextHow
    date_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time passed: `State.due_s` may be reached."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Disarmed:
    """The person tapped ✏️ on another ask, so that the next plain text does not belong to this one any more."""


@dataclass(frozen=True, slots=True)
class Torn:
    """A part of the text that is being joined was lost: the rest is offered to the person instead of being sent."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The request of an ask in phase "matching" was found."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Delivered:
    """The decision took effect, as `proof` shows.

    `answers` are set only if the agent shows less than the decision: that a permission was allowed, not for how long.
    """

    at_s: float
    proof: Proof = ""
    answers: Response = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The decision could not be delivered now. The delivery will be tried again.

    `is_unknown`: this version of Hermes does not know the agent.
    """

    at_s: float
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Declined:
    """The agent did not take the answer, and still waits for one. `why` are its words."""

    at_s: float
    why: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The ask ended without the decision from the phone: at the desk, or because the agent gave it up."""

    at_s: float
    kind: EndKind
    answers: Response = ()
    reason: str = ""
    proof: Proof = ""


@dataclass(frozen=True, slots=True)
class Expired:
    """The time to answer is over. `rule` says what follows."""

    at_s: float
    rule: OnExpiry


@dataclass(frozen=True, slots=True)
class Worked:
    """The agent was seen working again, after the decision or the end of the ask."""

    at_s: float


Event = Tapped | Texted | Ticked | Disarmed | Torn | Matched | Delivered | Failed | Declined | Ended | Expired | Worked


@dataclass(frozen=True, slots=True)
class Tap:
    """A tapped button, as Telegram reports it. `query_id` is needed for the acknowledgement; `data` is the button's.

    `thread_id`: the topic in which its message stands, 0 if in none, or if the message is very old.
    """

    update_id: int
    at_s: float
    user: User
    chat_id: int
    message_id: int
    query_id: str
    data: str
    thread_id: int = 0


@dataclass(frozen=True, slots=True)
class TextEdit:
    """An edit of a message that a person wrote: its text now, or its file and the caption of that.

    `is_to_bot`: a person has edited it, in a private chat or in a reply to our bot: people in a group also talk to each
    other, and Telegram also tells of changes that are no edits, without their time.
    """

    update_id: int
    user: User
    chat_id: int
    message_id: int
    text: str
    file: File | None = None
    is_to_bot: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A message that a person wrote, as Telegram reports it.

    - `text`: None for a sticker, a photo, and every other message without a text.
    - `file`: a picture or a document that Hermes may take; `caption`: the text below it.
    - `reply_to`: the message that it replies to. `reply_text`: the text of that message, "" unless our bot wrote it.
    - `group`: whether the chat is a group, not a private chat.
    - `date_s`: Telegram's date of the message. It is compared with other dates from Telegram, and tells its age.
    - `thread_id`: the topic of the chat in which it was written, 0 if in none, or if `is_forwarded`.
    - `is_forwarded`: others may have written it, or it replies to a message in another chat or topic; `forwarded_to`:
      the topic to which it was brought, 0 if to none.
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
    file: File | None = None
    caption: str = ""
    thread_id: int = 0
    is_forwarded: bool = False
    forwarded_to: int = 0

    @property
    def album(self) -> str:
        """The id of the album of which this message is a piece, "" if it is none."""
        return "" if self.file is None else self.file.album
