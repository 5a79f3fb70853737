"""The words of an errand: what is known of the agent's side of one ask, what may be seen, and what may be ordered.

`core.errand` says what they mean to each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hermes.model.ask import Ask
from hermes.model.entry import LastingWord, Route
from hermes.model.events import Event
from hermes.model.signals import Dismissed, Quiet, Replied
from hermes.model.state import Phase
from hermes.model.verdicts import End, Verdict

News = Replied | Dismissed | Quiet


@dataclass(frozen=True, slots=True)
class Terms:
    """The circumstances of one entry, which change with its decision, the configuration and the clock only.

    `is_known` is false if only a newer Hermes knows its agent: nothing is done for it then.
    `meant` is the verdict that proves its decision. `is_served` is true if its server is configured, `restarts_hooks`
    if its agent's plugin starts a dead hook again. A call gets `tries` quick looks for its request, `delay_s` apart.
    `neighbours_word` is the last lasting word (`ends.lasting_word`) for another permission that may end it. `at_s` is
    the time (epoch) that is stored with what happens.
    """

    at_s: float
    meant: Verdict | None = None
    is_served: bool = False
    restarts_hooks: bool = False
    neighbours_word: LastingWord = ""
    tries: int = 1
    delay_s: float = 0.0
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Other:
    """A server that hinted at the end of an ask that it does not list, at `hinted_s`. It is to be asked at `due_s`."""

    server: str
    hinted_s: float
    due_s: float


Hook = Literal["unknown", "waits", "has text", "gone"]


class Errand(NamedTuple):
    """All that is known of the agent's side of one open entry, and is not saved. Times are seconds of a steady clock.

    `proven` is the verdict that still has to be saved. `heard` is the agent's own news of the end, `is_quiet` true if
    its session stopped since the last look, `hinted_s` when anything last hinted at an end. `also_ask` are the servers
    that told so of an ask that no server listed.
    `look_s` is when its server is to be asked again; None is at once, but of an open ask not at all. `open_s` is when a
    verdict said "still open", None if an answer left or a hint came after it. `is_reached` tells whether its server
    could be asked which way the answer goes. `sent_s` is when the last reply was accepted, `has_spoken` true if an
    answer left in this run and the server knew the request, `is_unknown` true if it did not know it the last time.
    `hook` is what the last look at `hook_at_s` saw, `alone_since_s` since when no hook waits, `has_left` true if a hook
    said that its agent left it.
    `has_news` is true once the agent told of the end, `is_busy` once its session was at work after that.
    """

    phase: Phase | None = None
    proven: End | None = None
    heard: Replied | Dismissed | None = None
    is_quiet: bool = False
    hinted_s: float = -math.inf
    also_ask: tuple[Other, ...] = ()
    look_s: float | None = None
    open_s: float | None = None
    is_reached: bool | None = None
    sent_s: float | None = None
    has_spoken: bool = False
    is_unknown: bool = False
    declined: str = ""
    failures: int = 0
    hook: Hook = "unknown"
    hook_at_s: float = -math.inf
    alone_since_s: float | None = None
    has_left: bool = False
    places_gone_s: float = -math.inf
    laid_s: float | None = None
    first_laid_s: float | None = None
    candidate: Ask | None = None
    is_ambiguous: bool = False
    request: Ask | None = None
    is_elsewhere: bool = False
    has_no_request: bool = False
    tries: int = 0
    has_news: bool = False
    is_busy: bool = False
    is_released: bool = False


# --- facts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Woke:
    """The entry changed, or a pause is over."""


@dataclass(frozen=True, slots=True)
class HookSeen:
    """A look for the entry's hook: it `waits` or not, and a text lies ready for it or not."""

    waits: bool
    has_text: bool = False


@dataclass(frozen=True, slots=True)
class HookTook:
    """A hook took the text and printed it; the entry has saved that."""


@dataclass(frozen=True, slots=True)
class HookLeft:
    """A hook ended because its agent left it."""


@dataclass(frozen=True, slots=True)
class PlacesGone:
    """The places of all waiting hooks went with the folder of the store."""


@dataclass(frozen=True, slots=True)
class Laid:
    """The text lies ready for the hook."""


@dataclass(frozen=True, slots=True)
class NewsCame:
    """The agent told of an end, or of one that may be; `heard_by` is the server whose events told it, else ""."""

    news: News
    heard_by: str = ""


@dataclass(frozen=True, slots=True)
class SessionBusy:
    """The session is at work: often so before the end of its ask is confirmed, and told only once."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The entry's server, or `server` if set, gave its verdict. It was asked at `asked_s` (of the steady clock)."""

    verdict: Verdict
    asked_s: float = math.inf
    server: str = ""


@dataclass(frozen=True, slots=True)
class Unreached:
    """The entry's server, or `server` if set, could not be asked or told something, or refused."""

    server: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server accepted the reply, which proves nothing."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The server did not know the request any more when the reply came."""


@dataclass(frozen=True, slots=True)
class Unfitting:
    """The server did not take the answer, and still waits for one. `why` are its words."""

    why: str


@dataclass(frozen=True, slots=True)
class ServerBack:
    """The entry's server is connected again, after events that nobody heard."""


@dataclass(frozen=True, slots=True)
class Doubted:
    """There is a reason to look whether the ask has ended or got its request: a minute passed, another ask came."""


@dataclass(frozen=True, slots=True)
class PendingListed:
    """The pending requests of all servers for the entry's folder; `is_busy` is None if nobody asked for it."""

    asks: tuple[Ask, ...]
    is_busy: bool | None = None


@dataclass(frozen=True, slots=True)
class RequestCame:
    """The request of a call came by an event or a hook, or was found and completed; `ask` is all that is known."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class HeldElsewhere:
    """Another entry has the request that was found for this one."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """The session asked the same again, and no hook waits for this ask any more."""


@dataclass(frozen=True, slots=True)
class Released:
    """No text lies ready for the entry, and no hook waits for it."""


Fact = (
    Woke | HookSeen | HookTook | HookLeft | PlacesGone | Laid | NewsCame | SessionBusy | Judged | Unreached | Accepted
    | Unknown | Unfitting | ServerBack | Doubted | PendingListed | RequestCame | HeldElsewhere | Superseded | Released
)  # fmt: skip


# --- orders -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LookForHook:
    """Look whether a hook waits. Result: HookSeen."""


@dataclass(frozen=True, slots=True)
class NoteHook:
    """Save that a hook waited for the entry."""


@dataclass(frozen=True, slots=True)
class LayReady:
    """Lay the text of the decision ready for the hook. Result: Laid."""


@dataclass(frozen=True, slots=True)
class Release:
    """Take back the text that nobody took, and release the hook that waits. Result: Released."""


@dataclass(frozen=True, slots=True)
class AskVerdict:
    """Ask the server for a verdict: its own, or `server` if set. Result: Judged or Unreached.

    If `trusts_events`, an unbroken event stream that shows the request open is enough, and saves a request.
    """

    server: str = ""
    trusts_events: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Send the decision to the server. Result: Accepted, Unknown, Unfitting or Unreached."""


@dataclass(frozen=True, slots=True)
class ListPending:
    """List what is pending in the entry's folder, and tell whether its session is busy. Result: PendingListed."""

    with_busy: bool


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete this request by its titles and the last words before it. Result: RequestCame."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Join:
    """Save this request as the entry's, and let the event happen. Result: HeldElsewhere if another entry has it."""

    ask: Ask
    event: Event


@dataclass(frozen=True, slots=True)
class SetRoute:
    """Save by which way the answer goes."""

    route: Route


@dataclass(frozen=True, slots=True)
class Happen:
    """Let this event happen to the entry, and save the result. `verdict` is its proof, if it has one."""

    event: Event
    verdict: End | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Come again after this many seconds, or with the next fact."""

    pause_s: float


Order = (
    LookForHook | NoteHook | LayReady | Release | AskVerdict | Send | ListPending | Complete | Join | SetRoute | Happen
    | Wait
)  # fmt: skip
