"""The phone of the demo and the tests: what a person sees, taps and writes on the local Bot API.

`Phone` is a synchronous client of the control side; it shares no memory with the server, so it works just as
well when the Bot API, the listener and the agent are processes of their own. What it shows are values: a
`ShownMessage` is a message as it stands at that moment, with every earlier version of it.

Waiting is by content: `wait` looks again whenever the server's state has changed (and four times a second
besides, for conditions that live elsewhere), until the condition holds or the time is over.
"""

import ssl
import time
from collections.abc import Callable
from typing import Any, Literal, Self, TypeVar

import httpx
from pydantic import TypeAdapter

from hermes.sandbox.phone_values import (
    Button,
    Call,
    Entity,
    Fault,
    FaultAction,
    PhoneState,
    Rows,
    ShownMessage,
    Tap,
    Toast,
    Version,
)

__all__ = [
    "Button",
    "Call",
    "Entity",
    "Fault",
    "Phone",
    "PhoneState",
    "Rows",
    "ShownMessage",
    "Tap",
    "Toast",
    "Version",
]

LOOK_AGAIN_S = 0.25
DEFAULT_WAIT_S = 30.0

T = TypeVar("T")


# loopback speaks plain HTTP: loading the system's certificates would cost more than all the rest
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

_MESSAGES = TypeAdapter(tuple[ShownMessage, ...])
_TAPS = TypeAdapter(tuple[Tap, ...])
_TOASTS = TypeAdapter(tuple[Toast, ...])
_CALLS = TypeAdapter(tuple[Call, ...])
_STATE = TypeAdapter(PhoneState)
_NUMBERS = TypeAdapter(tuple[int, ...])
_NUMBER = TypeAdapter(int)


class Phone:
    """A person's phone. `user=` and `chat=` are the first of the server when not given.

    An action that is impossible (no such message, no such button) raises LookupError with the server's words.
    """

    def __init__(self, control_url: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(
            base_url=control_url, transport=transport, verify=_NO_CERTIFICATES, trust_env=False, timeout=30.0
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    # what is there

    def state(self) -> PhoneState:
        """Counts, clock and who polls."""
        return self._get("state", _STATE)

    def messages(self, *, chat: int | None = None, after: int = 0) -> tuple[ShownMessage, ...]:
        """Every message of the chat in order, deleted ones and the person's own too; those with higher ids."""
        return self._get("messages", _MESSAGES, chat_id=chat, after=after or None)

    def shown(self, *, chat: int | None = None) -> tuple[ShownMessage, ...]:
        """The bot's messages that are still there."""
        return tuple(m for m in self.messages(chat=chat) if m.from_bot and not m.deleted)

    def message(self, message_id: int, *, chat: int | None = None) -> ShownMessage:
        """This message as it stands now."""
        for message in self.messages(chat=chat):
            if message.message_id == message_id:
                return message
        raise LookupError(f"no message {message_id}")

    def message_with(
        self, text_part: str, timeout_s: float = DEFAULT_WAIT_S, *, chat: int | None = None
    ) -> ShownMessage:
        """The newest message of the bot that shows this text; waits for it."""

        def newest() -> ShownMessage | None:
            return next((m for m in reversed(self.shown(chat=chat)) if text_part in m.text), None)

        return self.wait(newest, timeout_s, what=f"a message with {text_part!r}", chat=chat)

    def toasts(self, *, user: int | None = None, after_s: float = 0.0) -> tuple[Toast, ...]:
        """The answers to taps, in order; of one user if given, and only those given after that time (Unix)."""
        return tuple(t for t in self._get("toasts", _TOASTS, after=after_s or None) if user in {None, t.user_id})

    def toast_for(self, tap: Tap, timeout_s: float = DEFAULT_WAIT_S) -> Toast:
        """The answer to this tap; waits for it."""

        def answer() -> Toast | None:
            return next((t for t in self.toasts() if t.tap_id == tap.tap_id), None)

        return self.wait(answer, timeout_s, what=f"an answer to the tap on {tap.data!r}")

    def calls(self, method: str | None = None) -> tuple[Call, ...]:
        """What the bot asked of the server, in order; of one method if given (any case)."""
        return self._get("calls", _CALLS, method=method)

    # what a person does

    def tap(
        self,
        message: ShownMessage | int,
        label: str | None = None,
        *,
        data: str | None = None,
        row: int | None = None,
        column: int | None = None,
        user: int | None = None,
        chat: int | None = None,
        times: int = 1,
    ) -> Tap:
        """Tap a button by label, place or raw data (of a button long gone, too); the last tap."""
        return self._post(
            "tap",
            _TAPS,
            chat_id=message.chat_id if isinstance(message, ShownMessage) else chat,
            message_id=message.message_id if isinstance(message, ShownMessage) else message,
            label=label,
            data=data,
            row=row,
            column=column,
            user_id=user,
            times=times,
        )[-1]

    def write(
        self,
        text: str,
        *,
        reply_to: ShownMessage | int | None = None,
        thread_id: int | None = None,
        user: int | None = None,
        chat: int | None = None,
    ) -> tuple[int, ...]:
        """Send a text; the ids of the messages it became (a client splits what is over 4096 units)."""
        reply = reply_to.message_id if isinstance(reply_to, ShownMessage) else reply_to
        return self._post("write", _NUMBERS, text=text, reply_to=reply, thread_id=thread_id, user_id=user, chat_id=chat)

    def send(
        self,
        kind: Literal["sticker", "photo", "document"],
        *,
        caption: str = "",
        reply_to: ShownMessage | int | None = None,
        user: int | None = None,
        chat: int | None = None,
    ) -> int:
        """Send something that is no text; its message id."""
        reply = reply_to.message_id if isinstance(reply_to, ShownMessage) else reply_to
        body = {"kind": kind, "caption": caption, "reply_to": reply, "user_id": user, "chat_id": chat}
        return self._post("send", _NUMBER, **body)

    def rewrite(self, message_id: int, text: str, *, chat: int | None = None) -> None:
        """Edit a text that a person wrote."""
        self._do("rewrite", message_id=message_id, text=text, chat_id=chat)

    def delete(self, message: ShownMessage | int, *, chat: int | None = None) -> None:
        """Delete a message for everyone; the bot is not told."""
        if isinstance(message, ShownMessage):
            chat, message = message.chat_id, message.message_id
        self._do("delete", message_id=message, chat_id=chat)

    def block(self, *, chat: int | None = None) -> None:
        """Block the bot in this chat (in a group: remove it)."""
        self._do("block", chat_id=chat)

    def unblock(self, *, chat: int | None = None) -> None:
        """Let the bot back in."""
        self._do("unblock", chat_id=chat)

    def migrate(self, *, chat: int | None = None) -> int:
        """Turn a group into a supergroup; its new chat id."""
        return self._post("migrate", _NUMBER, chat_id=chat)

    # what the world does

    def advance(self, seconds: float) -> None:
        """Move the server's clock."""
        self._do("advance", seconds=seconds)

    def fault(  # noqa: PLR0913 - one keyword a property of the fault
        self,
        method: str = "*",
        action: FaultAction = "error",
        *,
        status: int = 500,
        description: str | None = None,
        retry_after_s: int | None = None,
        hang_s: float = 0.0,
        processed: bool = False,
        times: int = 1,
        skip: int = 0,
    ) -> None:
        """Queue trouble, see `Fault`."""
        self._do(
            "fault",
            method=method,
            action=action,
            status=status,
            description=description,
            retry_after_s=retry_after_s,
            hang_s=hang_s,
            processed=processed,
            times=times,
            skip=skip,
        )

    def clear_faults(self) -> None:
        """Forget the trouble that has not come yet, and end what hangs."""
        self._do("clear_faults")

    def redeliver(self, update_id: int) -> None:
        """Send an update again under its old number, although it was confirmed."""
        self._do("redeliver", update_id=update_id)

    def inject(self, update: dict[str, Any]) -> int:
        """Send this as an update, whatever it is; without an `update_id` it gets the next one. Its id."""
        return self._post("inject", _NUMBER, update=update)

    # waiting

    def wait(
        self,
        condition: Callable[[], T | None],
        timeout_s: float = DEFAULT_WAIT_S,
        *,
        what: str = "the condition",
        chat: int | None = None,
    ) -> T:
        """The first true value of the condition; TimeoutError says what the chat showed instead."""
        deadline = time.monotonic() + timeout_s
        while True:
            version = self.state().version
            if value := condition():
                return value
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{what} did not come within {timeout_s:g} s; {self._glance(chat)}")
            self._get("wait", _NUMBER, version=version, timeout=min(LOOK_AGAIN_S, left))

    def wait_for_poll(self, timeout_s: float = DEFAULT_WAIT_S) -> None:
        """Wait until a bot holds a long poll."""
        self.wait(lambda: self.state().polling, timeout_s, what="a long poll")

    def _glance(self, chat: int | None) -> str:
        texts = [f"{m.message_id}: {m.text[:80]!r} {m.labels}" for m in self.shown(chat=chat)[-5:]]
        return "the bot shows " + ("; ".join(texts) or "nothing")

    # the wire

    def _get(self, path: str, shape: TypeAdapter[T], **query: object) -> T:
        given = {key: str(value) for key, value in query.items() if value is not None}
        return shape.validate_json(self._checked(self._http.get(path, params=given)))

    def _post(self, act: str, shape: TypeAdapter[T], **body: object) -> T:
        return shape.validate_json(self._do(act, **body))

    def _do(self, act: str, **body: object) -> bytes:
        given = {key: value for key, value in body.items() if value is not None}
        return self._checked(self._http.post(act, json=given))

    @staticmethod
    def _checked(response: httpx.Response) -> bytes:
        if response.status_code == httpx.codes.OK:
            return response.content
        raise LookupError(f"the control side answered {response.status_code}: {response.text}")
