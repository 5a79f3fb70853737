"""The events of a prompt; `core.prompts.step` applies it."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.model.files import File
from hermes.model.prompt import Sight, Target
from hermes.model.state import Part


@dataclass(frozen=True, slots=True)
class Continued:
    """A further part of the person's text came. More may come until `due_s`; a short part is the last one."""

    part: Part
    due_s: float


@dataclass(frozen=True, slots=True)
class Joined:
    """All parts of the text are here."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The file of this message lies in the folder of files. Its bytes are of the type `mime`."""

    message_id: int
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class Heard:
    """These are the words of the voice note in this message."""

    message_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Agreed:
    """The person has read what was heard, and wants it sent."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Edited:
    """The person has edited one of the messages of the prompt. `file` is the file that it has now."""

    message_id: int
    text: str
    file: File | None = None


@dataclass(frozen=True, slots=True)
class Addressed:
    """The person has chosen the session."""

    at_s: float
    target: Target


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The person does not want it sent, or it is not what they said: `why` says that in words, with a full stop."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Hurried:
    """The person wants it sent now: a turn may run, other prompts may wait, or it has waited too long."""

    at_s: float


@dataclass(frozen=True, slots=True)
class StopWanted:
    """The person tapped Stop: the first of two taps, and the second one if `is_sure`; `on` is false for Back."""

    is_sure: bool = False
    on: bool = True


@dataclass(frozen=True, slots=True)
class SessionMade:
    """The new session that the prompt is for was made."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A look at the session and at the agent's record."""

    at_s: float
    sight: Sight


@dataclass(frozen=True, slots=True)
class Trying:
    """The prompt is about to be sent. It may reach the agent from now on."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Accepted:
    """The agent accepted it, which proves nothing yet."""


@dataclass(frozen=True, slots=True)
class Unreached:
    """The agent could not be reached, or did not answer."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The agent does not take it. `reason` says why, in words."""

    reason: str


@dataclass(frozen=True, slots=True)
class StopTold:
    """The agent was told to end the turn, and whether it took that."""

    is_taken: bool


PromptEvent = (
    Continued | Joined | Fetched | Heard | Agreed | Edited | Addressed | Withdrawn | Hurried | StopWanted | SessionMade
    | Seen | Trying | Accepted | Unreached | Declined | StopTold
)  # fmt: skip
