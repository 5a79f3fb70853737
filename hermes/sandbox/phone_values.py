"""Plain values for the phone's messages and the bot's requests; server and client share them."""

from dataclasses import dataclass, field
from typing import Any, Literal

FaultAction = Literal["error", "html", "cut", "cut_after", "hang"]


@dataclass(frozen=True, slots=True)
class Button:
    """One inline button; `data` is its callback_data (None on a URL or copy button), `copies` what a tap copies."""

    text: str
    data: str | None = None
    url: str | None = None
    style: str | None = None
    copies: str | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity of a text, in UTF-16 units. The entities that clients find (links, commands) are included."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


Rows = tuple[tuple[Button, ...], ...]


@dataclass(frozen=True, slots=True)
class Version:
    """The content of a message from `at_s` (epoch seconds) on."""

    text: str
    entities: tuple[Entity, ...]
    rows: Rows
    at_s: float


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message as the phone shows it; `link_preview` is true if a client would fetch a link in it."""

    chat_id: int
    message_id: int
    sender_id: int
    from_bot: bool
    kind: str
    date: int
    text: str
    entities: tuple[Entity, ...] = ()
    rows: Rows = ()
    silent: bool = False
    edited: bool = False
    deleted: bool = False
    reply_to: int | None = None
    thread_id: int | None = None
    force_reply: bool = False
    link_preview: bool = False
    versions: tuple[Version, ...] = ()

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The labels of the buttons, row by row."""
        return tuple(tuple(button.text for button in row) for row in self.rows)

    def button(self, label: str) -> Button:
        """Return the only button with exactly this label, else the only one that contains it, or raise LookupError."""
        buttons = [button for row in self.rows for button in row]
        for found in ([b for b in buttons if b.text == label], [b for b in buttons if label in b.text]):
            if len(found) == 1:
                return found[0]
        raise LookupError(f"no single button {label!r} among {self.labels}")

    def marked(self, kind: str) -> tuple[str, ...]:
        """Return the parts of the text that entities of this kind cover."""
        units = self.text.encode("utf-16-le")
        return tuple(
            units[2 * e.offset : 2 * (e.offset + e.length)].decode("utf-16-le") for e in self.entities if e.type == kind
        )


@dataclass(frozen=True, slots=True)
class Tap:
    """A tap as sent to the bot; `tap_id` is the id of the callback_query."""

    tap_id: str
    update_id: int
    user_id: int
    chat_id: int
    message_id: int
    data: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Toast:
    """The bot's answer to one tap; an empty text only stops the spinner."""

    tap_id: str
    user_id: int
    chat_id: int
    message_id: int
    data: str
    text: str
    show_alert: bool
    at_s: float


@dataclass(frozen=True, slots=True)
class Call:
    """One request of the bot; `at_s` is in monotonic seconds; `status` is None until the end, 0 after a cut."""

    method: str
    at_s: float
    params: dict[str, Any]
    status: int | None = None
    took_s: float | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for the next `times` calls of `method` ("*": any method), after `skip` calls without a fault.

    `error` answers `status` as JSON, `html` as a proxy's page; `cut` breaks the connection before the call takes
    effect, `cut_after` after it. `hang` waits `hang_s`: if `processed`, the call takes effect before the wait and
    is answered after it, otherwise the connection is cut.
    """

    method: str = "*"
    action: FaultAction = "error"
    status: int = 500
    description: str | None = None
    retry_after_s: int | None = None
    hang_s: float = 0.0
    processed: bool = False
    times: int = 1
    skip: int = 0
    generation: int = 0  # set by the queue: the number of its clearings before this fault was put into it


@dataclass(frozen=True, slots=True)
class PhoneState:
    """The server at one moment; `polling` is true while it holds a long poll of the bot."""

    version: int
    now: float
    default_user: int
    default_chat: int
    polling: bool
    pending_update_count: int
    webhook: str = ""
    blocked: tuple[int, ...] = ()
    calls: dict[str, int] = field(default_factory=dict)
