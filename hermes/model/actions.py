"""The meaning of each button. Effects are absolute ("choose option 2"), so that a doubled tap does no harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hermes.model.state import Confirm


@dataclass(frozen=True, slots=True)
class Pick:
    """Choose an option of a question (`on`), or remove it from the answer."""

    question: int
    option: int
    on: bool = True


@dataclass(frozen=True, slots=True)
class Go:
    """Show this page: the index of a question, or len(questions) for the review of all answers."""

    page: int


@dataclass(frozen=True, slots=True)
class Shelve:
    """Show this part, counted from 0, of a long list of options."""

    shelf: int


@dataclass(frozen=True, slots=True)
class Arm:
    """Take the person's next text as the answer to this question (`on`), or stop that."""

    question: int
    on: bool = True


@dataclass(frozen=True, slots=True)
class ClearText:
    """Remove the free text from the answer to this question."""

    question: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send the chosen answers: the button Done on a single multiple-choice question, Send on the review."""


@dataclass(frozen=True, slots=True)
class AskTwice:
    """The first of two taps: ask for the second one."""

    what: Confirm


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The second of two taps: do it."""

    what: Confirm


@dataclass(frozen=True, slots=True)
class Back:
    """Go back instead of the second tap."""


NO_LIMIT: Final = 0
"""The `extra_s` of an ask that waits until somebody answers it."""


@dataclass(frozen=True, slots=True)
class KeepWaiting:
    """Start the time to answer again, `extra_s` longer than usual; or let it never end (`NO_LIMIT`)."""

    extra_s: int = NO_LIMIT


@dataclass(frozen=True, slots=True)
class TakeOffer:
    """Use the text that the person wrote in this message as the answer (`on`), or forget it."""

    message_id: int
    on: bool = True


@dataclass(frozen=True, slots=True)
class ShowWhole:
    """Send the whole text of a permission as a file, because its message shows only a part."""


@dataclass(frozen=True, slots=True)
class ShowChanges:
    """Show what a turn has changed."""


# --- prompts, and the cards of sessions ---


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Do not send the prompt."""


@dataclass(frozen=True, slots=True)
class SendNow:
    """Send the prompt now, although a turn runs, other prompts wait, or it has waited for long."""


@dataclass(frozen=True, slots=True)
class SendHeard:
    """Send what was heard in a voice note."""


@dataclass(frozen=True, slots=True)
class SendAgain:
    """Send the text of a prompt that failed as a new one."""


@dataclass(frozen=True, slots=True)
class StopTurn:
    """End the turn that runs: the first of two taps, and the second one if `is_sure`."""

    is_sure: bool = False


@dataclass(frozen=True, slots=True)
class Address:
    """Send the prompt to this one of the offered sessions, counted from 0."""

    choice: int


@dataclass(frozen=True, slots=True)
class AnswerLate:
    """Answer a question that is over, as a prompt for its session."""


@dataclass(frozen=True, slots=True)
class ShowCard:
    """Show the card of a session as a new message."""


@dataclass(frozen=True, slots=True)
class WriteTo:
    """Take the person's next text as a prompt for this session (`on`), or stop that."""

    on: bool = True


@dataclass(frozen=True, slots=True)
class Mute:
    """Send no notices of this session (`on`), or send them again."""

    on: bool = True


@dataclass(frozen=True, slots=True)
class ListPage:
    """Show this page, counted from 0, of the list of sessions."""

    page: int


AskAction = Pick | Go | Shelve | Arm | ClearText | Send | AskTwice | Confirmed | KeepWaiting | TakeOffer | AnswerLate
"""The actions of buttons that only asks have."""

RecordAction = (
    ShowChanges | Withdraw | SendNow | SendHeard | SendAgain | StopTurn | Address | ShowCard | WriteTo | Mute | ListPage
)
"""The actions of buttons that only notices, prompts, lists and cards have."""

PromptAction = SendNow | SendHeard | SendAgain | StopTurn | Address | AnswerLate | ShowCard | WriteTo | ListPage
"""The actions of buttons that are refused while prompts are off: those that write, and those that lead there."""

Action = AskAction | RecordAction | Back | ShowWhole
