"""The words of Hermes: frozen values without behaviour.

Times are seconds since the epoch (`…_s`), floats. Options are named by their index: labels can repeat or be
empty. Nothing here does I/O; the dialog gives these values their meaning, the store keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

# --- what an agent asks -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One choice: `label` is what the agent gets back, to the letter."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of an ask. `recommended` is an index into `options`, or None."""

    text: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    custom: bool = True
    recommended: int | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an agent can do; the dialog and the words on the phone read this and nothing else about it.

    `reports` is false where nobody is sure to tell what became of an answer: that it was handed over, and
    `silence_s` seconds without another word, is all there is to know then; `tells_answers` where it does tell of the
    answers to questions, so that of those silence proves nothing. `else_first`: where nothing is recommended,
    its own timer takes the first option.
    """

    agent_name: str
    reject_stops: bool = True
    can_skip: bool = True
    notes: bool = False
    desk_stays_open: bool = True
    reports: bool = True
    silence_s: float = 0.0
    tells_answers: bool = False
    else_first: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where an ask comes from. `server` is the configured name of the server that listed it, else "".

    `machine` is the machine's id, and never changes; `host` is its name for people, "" if nobody told it.
    """

    agent: str
    machine: str
    session_id: str
    directory: str = ""
    request_id: str | None = None
    call_id: str | None = None
    message_id: str | None = None
    session_title: str = ""
    root_title: str = ""
    last_text: str = ""
    server: str = ""
    host: str = ""


OnExpiry = Literal["reject", "recommended", "skip", "keep"]
DeedKind = Literal["command", "change", "folder", "fetch", "other"]


@dataclass(frozen=True, slots=True)
class Permission:
    """What an agent may not do without a word, and asks for.

    `tool` is the agent's own name of what it uses ("bash"); `what` is the deed itself and whole: a command, the name
    of a file, an address; `detail` is more of it (a diff, the command behind a folder). `patterns` is what it asks
    for as the agent puts it, `always` what "always" would cover: empty where that is not offered. `partial` is true
    where the agent has told only parts of the deed.

    Its ask has one question of one option (allow once); a free text is a refusal that says why. The answers that an
    agent tells of are (("once",),), (("always",),), (("allowed",),) where nobody knows which of the two, and
    (("refused", why),) with an empty `why` for none, without any where that is not known.
    """

    tool: str
    kind: DeedKind
    what: str
    detail: str = ""
    patterns: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for input. `answerable` is false where only the desk can answer (the words say so).

    `ttl_s` and `on_expiry` are the asker's own, None where the configuration's count. `given` is what its adapter keeps
    of the payload to answer in the agent's form, and nobody else reads.
    """

    source: Source
    questions: tuple[Question, ...]
    capabilities: Capabilities
    answerable: bool = True
    permission: Permission | None = None
    ttl_s: float | None = None
    on_expiry: OnExpiry | None = None
    given: str = ""


# --- what a person answers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class User:
    """A person on the phone."""

    id: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question: option indices in the order chosen, then free text or None."""

    picks: tuple[int, ...] = ()
    text: str | None = None

    def __bool__(self) -> bool:
        """Tell whether anything was answered."""
        return bool(self.picks) or self.text is not None


DecisionKind = Literal["answer", "reject", "skip", "release", "always"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be sent, frozen. `by` is None where a timer decided; `release` leaves the agent waiting.

    `always` allows a deed and all that are like it.
    """

    kind: DecisionKind
    at_s: float
    answers: tuple[Answer, ...] = ()
    by: User | None = None


OutcomeKind = Literal["answered", "rejected", "skipped", "answered_at_desk", "rejected_at_desk", "expired", "gone"]
Proof = Literal["", "record", "event", "plugin", "list", "accepted", "receipt", "left"]
"""How an end is known. "record": the agent's own record of the tool call shows it; "event": its server's events told,
"plugin": its plugin told, where no record does; "list": its server asks for it no more, or its session is over;
"accepted": the server took the reply, and nothing else could be seen; "receipt": it was handed over to a program that
reports no more; "left": whoever waited for it is gone; "": nothing had to be known, or nobody noted it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an ask ended. `answers` are the desk's own words, one tuple of strings a question.

    `reason` is set for "gone": "ended" (aborted, deleted, restarted), "ambiguous" (two candidates); and for what ended
    at the desk "together", where the word on another ask of its session, or one like it, ended this one, too.
    """

    kind: OutcomeKind
    at_s: float
    answers: tuple[tuple[str, ...], ...] = ()
    reason: str = ""
    proof: Proof = ""


# --- the dialog's state -------------------------------------------------------------------------------------

Phase = Literal["matching", "open", "sending", "settled"]
Confirm = Literal["reject", "skip", "send", "always"]


@dataclass(frozen=True, slots=True)
class Armed:
    """The next plain text of this user counts for this question; of two armed asks the later one gets it."""

    question: int
    user_id: int
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a text that Telegram may have split; `date_s` is Telegram's own date for it."""

    message_id: int
    text: str
    date_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Joining:
    """A text for `question` that is being gathered from its parts; complete at `State.due_s`.

    `offered`: nobody asked for this text, so that it becomes an offer and not an answer.
    """

    question: int
    user: User
    parts: tuple[Part, ...]
    offered: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """A plain text that nobody asked for, waiting for "is this your answer?"."""

    question: int
    user: User
    message_id: int
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """The whole dialog about one ask, as saved.

    `page` is the question on show, len(questions) the review. `shelf` is the part of a long list of options.
    `answers` has one Answer a question. `epoch` grows whenever buttons change their meaning. `due_s` is when
    `joining` ends. `away` stays true once the phone was told that the agent was away. `whole` is
    true where the person wants to see the whole of what was cut.
    `seen` holds the last update ids that were taken in.
    """

    phase: Phase = "open"
    page: int = 0
    shelf: int = 0
    answers: tuple[Answer, ...] = ()
    epoch: int = 0
    armed: Armed | None = None
    confirm: Confirm | None = None
    offer: Offer | None = None
    joining: Joining | None = None
    due_s: float | None = None
    decision: Decision | None = None
    away: bool = False
    outcome: Outcome | None = None
    working: bool = False
    whole: bool = False
    seen: tuple[int, ...] = ()


# --- what a button means (absolute effects, never "toggle") -------------------------------------------------


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

# --- events: what happened ----------------------------------------------------------------------------------


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

# --- what the person gets back at once ----------------------------------------------------------------------

ToastKind = Literal[
    "picked", "dropped", "on_its_way", "settled", "page_changed", "type_now", "typing_off", "sure",
    "moved", "kept_waiting", "forgotten", "receiving", "not_answerable", "whole",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Toast:
    """The acknowledgement of a tap; `text` is what the kind speaks of (a label, an answer)."""

    kind: ToastKind
    text: str = ""


HintKind = Literal["no_such_option", "which_question", "settled", "taken"]


@dataclass(frozen=True, slots=True)
class Hint:
    """A short new message that explains why a text changed nothing."""

    kind: HintKind


@dataclass(frozen=True, slots=True)
class Step:
    """What one event does: the new state, and the word that the person gets at once.

    All other effects follow from the saved state (draw what it shows, deliver what it decided, wake when it is
    due), so that a process that dies right after the save owes nothing that the state does not tell.
    `touched` is true where a person did something with the ask: the time to answer starts anew, `extra_s`
    longer than usual.
    """

    state: State
    toast: Toast | None = None
    hint: Hint | None = None
    touched: bool = False
    extra_s: int = 0


# --- an entry: one ask as the store keeps it ----------------------------------------------------------------

SideKind = Literal["typing", "offer", "final_call", "reminder", "expired", "delivered", "too_late", "whole"]


@dataclass(frozen=True, slots=True)
class Side:
    """A message beside the main one: which one it is, and the digest of what it shows."""

    kind: SideKind
    message_id: int
    drawn: str = ""


@dataclass(frozen=True, slots=True)
class Phone:
    """What of this entry is on the phone. `drawn` is the digest of the screen that the message shows.

    `copies` are older messages of the same ask (a send that timed out and was delivered all the same). `since_id` is
    the first message of this ask and `since_date_s` Telegram's own date for it: a text counts only if it is later.
    `after_id` is the newest message that the chat had when the ask came: none of its messages is older.
    """

    chat_id: int
    message_id: int | None = None
    drawn: str = ""
    sides: tuple[Side, ...] = ()
    copies: tuple[int, ...] = ()
    since_id: int | None = None
    since_date_s: float = 0.0
    after_id: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """The time to answer. `set_at` and `expires_at` are seconds of the answerable clock (expiry.py).

    All None until the first post. `until_s` is the same moment as the phone shows it; `called` is true once
    the final call was made, `reminded` counts reminders.
    """

    posted_s: float | None = None
    set_at: float | None = None
    expires_at: float | None = None
    until_s: float | None = None
    called: bool = False
    reminded: int = 0


Route = Literal["server", "waiter"]


@dataclass(frozen=True, slots=True)
class Entry:
    """An ask with everything that must survive a crash. `code` is the short name in the text ("k7mx4").

    `trail` has a line for each permission of the same session whose message this one took over, the latest last.
    `waits` is true once a waiting hook was seen, `waiter_taken` once one has taken the answer.
    """

    id: str
    code: str
    ask: Ask
    state: State
    phone: Phone
    asked_s: float
    timing: Timing = Timing()
    route: Route | None = None
    waits: bool = False
    waiter_taken: bool = False
    trail: tuple[str, ...] = ()
    revision: int = 0


# --- what comes from the phone ------------------------------------------------------------------------------


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


# --- what an agent tells ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """An ask with its request id.

    `waits`: its hook holds its place already, and is never started again. `nonce`: the hook made the request id up, so
    that an open ask of its session with its call id is an older one of the same, which nobody can answer any more.
    """

    ask: Ask
    waits: bool = False
    nonce: bool = False


@dataclass(frozen=True, slots=True)
class Announced:
    """An ask that may come: its tool call began; there is a call id, but no request yet."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Replied:
    """Somebody's answer took effect (or went to a zombie): `answers` are strings, one tuple a question.

    Where the agent does not name the request, `request_id` is "", and `call_id` is what it shares with its ask.
    """

    request_id: str
    session_id: str
    answers: tuple[tuple[str, ...], ...]
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Dismissed:
    """Somebody's rejection took effect; the ids are those of `Replied`."""

    request_id: str
    session_id: str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Quiet:
    """The session stopped (idle, error, deleted): nothing that it asked before is waited for any more."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Busy:
    """The session is working."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """A waiting hook took its answer and printed it."""

    wait_id: str


Signal = Asked | Announced | Replied | Dismissed | Quiet | Busy | Receipt

# --- what is true of a request at its agent -----------------------------------------------------------------
# `proof` tells how it is known, and is no part of what is true: two verdicts that differ in it alone are equal.


@dataclass(frozen=True, slots=True)
class StillOpen:
    """It is listed as pending, and its session waits for it."""


@dataclass(frozen=True, slots=True)
class AnsweredWith:
    """Its tool call is completed with these answers: strings, one tuple a question."""

    answers: tuple[tuple[str, ...], ...]
    proof: Proof = field(default="record", compare=False)


@dataclass(frozen=True, slots=True)
class WasDismissed:
    """Its tool call ended by a rejection. `same_as` are answers that would have ended it just the same way."""

    same_as: tuple[tuple[str, ...], ...] | None = None
    proof: Proof = field(default="record", compare=False)


@dataclass(frozen=True, slots=True)
class Dead:
    """Nobody waits for it any more: aborted, deleted, restarted, or a zombie that is still listed."""

    proof: Proof = field(default="list", compare=False)


@dataclass(frozen=True, slots=True)
class Unproven:
    """It cannot be told now: an event may tell, or asking again later."""


Verdict = StillOpen | AnsweredWith | WasDismissed | Dead | Unproven
