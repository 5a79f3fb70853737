"""What a button means. Effects are absolute, never "toggle", so that a doubled tap changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.model.state import Confirm


@dataclass(frozen=True, slots=True)
class Pick:
    """Choose (`on`) or drop an option."""

    question: int
    option: int
    on: bool = True


@dataclass(frozen=True, slots=True)
class Go:
    """Show this page; len(questions) is the review."""

    page: int


@dataclass(frozen=True, slots=True)
class Shelve:
    """Show this part of a long list of options."""

    shelf: int


@dataclass(frozen=True, slots=True)
class Arm:
    """Take the next text for this question (`on`), or no longer."""

    question: int
    on: bool = True


@dataclass(frozen=True, slots=True)
class ClearText:
    """Drop the free text of this question."""

    question: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send what was chosen: Done on one multiple question, Send on the review."""


@dataclass(frozen=True, slots=True)
class AskTwice:
    """The first of two taps."""

    what: Confirm


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The second of two taps."""

    what: Confirm


@dataclass(frozen=True, slots=True)
class Back:
    """Not after all."""


@dataclass(frozen=True, slots=True)
class KeepWaiting:
    """Start the time to answer anew, `extra_s` longer than usual."""

    extra_s: int = 0


@dataclass(frozen=True, slots=True)
class TakeOffer:
    """Use the offered text of this message as the answer (`on`), or forget it."""

    message_id: int
    on: bool = True


@dataclass(frozen=True, slots=True)
class ShowWhole:
    """Send all of what the message had to cut."""


Turn = Pick | Go | Shelve | Arm | ClearText | Send | AskTwice | Confirmed | Back | KeepWaiting

Action = Turn | TakeOffer | ShowWhole
