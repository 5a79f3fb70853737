"""The phone of the demo and the tests: with it a person reads, taps and writes on the local Bot API.

`Phone` is a synchronous client of the control side. It shares no memory with the server, so it also works if the
Bot API, the listener and the agent are separate processes. It returns values: a `ShownMessage` is a message at that
moment, with every version of it so far.

Tests wait for content: `wait` checks its condition again after each change of the server's state (and four times a
second, for conditions outside the server), until the condition holds or the time is over.
"""

import base64
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, Self, TypeVar

import httpx
from pydantic import TypeAdapter

from hermes.sandbox.phone_values import Call, Fault, FaultAction, PhoneState, ShownMessage, Tap, Toast

LOOK_AGAIN_S = 0.25
DEFAULT_WAIT_S = 30.0
KEEP_ALIVE_S = 2.0
"""The server closes idle connections after five seconds; a request that meets such a close would be lost."""

T = TypeVar("T")


# Loopback uses plain HTTP, and loading the system's certificates would take longer than all the rest.
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

_MESSAGES = TypeAdapter(tuple[ShownMessage, ...])
_TAPS = TypeAdapter(tuple[Tap, ...])
_TOASTS = TypeAdapter(tuple[Toast, ...])
_CALLS = TypeAdapter(tuple[Call, ...])
_STATE = TypeAdapter(PhoneState)
_NUMBERS = TypeAdapter(tuple[int, ...])
_NUMBER = TypeAdapter(int)


class Phone:
    """A person's phone. Without `user=` or `chat=`, an action uses the server's first user or chat.

    An impossible action (no such message, no such button) raises LookupError with the server's error text.
    """

    def __init__(self, control_url: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(
            base_url=control_url,
            transport=transport,
            verify=_NO_CERTIFICATES,
            trust_env=False,
            timeout=30.0,
            limits=httpx.Limits(keepalive_expiry=KEEP_ALIVE_S),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # reading

    def state(self) -> PhoneState:
        """Return the server's state: its clock, its counts, and whether it holds a long poll."""
        return self._get("state", _STATE)

    def messages(self, *, chat: int | None = None, after: int = 0) -> tuple[ShownMessage, ...]:
        """Return the chat's messages with ids above `after`, in order, also deleted ones and the person's own."""
        return self._get("messages", _MESSAGES, chat_id=chat, after=after or None)

    def shown(self, *, chat: int | None = None) -> tuple[ShownMessage, ...]:
        """Return the bot's messages that are not deleted."""
        return tuple(m for m in self.messages(chat=chat) if m.from_bot and not m.deleted)

    def message(self, message_id: int, *, chat: int | None = None) -> ShownMessage:
        """Return this message as it is now; raise LookupError if there is none."""
        for message in self.messages(chat=chat):
            if message.message_id == message_id:
                return message
        raise LookupError(f"no message {message_id}")

    def message_with(
        self, text_part: str, timeout_s: float = DEFAULT_WAIT_S, *, chat: int | None = None
    ) -> ShownMessage:
        """Return the bot's newest message that contains this text; wait until there is one."""

        def newest() -> ShownMessage | None:
            return next((m for m in reversed(self.shown(chat=chat)) if text_part in m.text), None)

        return self.wait(newest, timeout_s, what=f"a message with {text_part!r}", chat=chat)

    def toasts(self, *, user: int | None = None, after_s: float = 0.0) -> tuple[Toast, ...]:
        """Return the answers to taps given after `after_s` (epoch seconds), in order; only those of `user` if given."""
        return tuple(t for t in self._get("toasts", _TOASTS, after=after_s or None) if user in {None, t.user_id})

    def toast_for(self, tap: Tap, timeout_s: float = DEFAULT_WAIT_S) -> Toast:
        """Return the answer to this tap; wait until there is one."""

        def answer() -> Toast | None:
            return next((t for t in self.toasts() if t.tap_id == tap.tap_id), None)

        return self.wait(answer, timeout_s, what=f"an answer to the tap on {tap.data!r}")

    def calls(self, method: str | None = None) -> tuple[Call, ...]:
        """Return the bot's requests, in order: only those of `method` if given (in any letter case)."""
        return self._get("calls", _CALLS, method=method)

    # actions of the person

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
        """Tap a button, named by label, place or raw data (a removed button's, too), and return the last tap."""
        return self._post(
            "tap",
            _TAPS,
            chat_id=message.chat_id if isinstance(message, ShownMessage) else chat,
            message_id=_id(message),
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
        """Send a text and return the ids of its messages: a text over 4096 UTF-16 units is split, as clients do."""
        return self._post(
            "write", _NUMBERS, text=text, reply_to=_id(reply_to), thread_id=thread_id, user_id=user, chat_id=chat
        )

    def send_sticker(self, *, reply_to: ShownMessage | int | None = None, chat: int | None = None) -> int:
        """Send a sticker, and return its message id."""
        return self._post("send_sticker", _NUMBER, reply_to=_id(reply_to), chat_id=chat)

    def send_photo(self, content: bytes, *, size: int | None = None, **where: Any) -> int:
        """Send a picture (JPEG) and return its message id; `where` is as in `share`."""
        return self.share([file_of("photo", content, size=size, caption=where.pop("caption", ""))], **where)[0]

    def send_document(
        self, content: bytes, name: str, mime: str = "text/plain", *, size: int | None = None, **where: Any
    ) -> int:
        """Send a document and return its message id; `where` is as in `share`."""
        caption = where.pop("caption", "")
        return self.share([file_of("document", content, name=name, mime=mime, size=size, caption=caption)], **where)[0]

    def send_voice(self, content: bytes, *, size: int | None = None, **where: Any) -> int:
        """Send a voice note (Ogg, Opus) and return its message id; `where` is as in `share`."""
        return self.share([file_of("voice", content, size=size, caption=where.pop("caption", ""))], **where)[0]

    def share(
        self,
        media: Sequence[Mapping[str, Any]],
        *,
        reply_to: ShownMessage | int | None = None,
        album: str = "",
        thread_id: int | None = None,
        user: int | None = None,
        chat: int | None = None,
    ) -> tuple[int, ...]:
        """Send files, each made by `file_of`, and return their message ids; several make an album.

        `album` is the id of an album that comes in pieces, by several calls.
        """
        where = {"reply_to": _id(reply_to), "thread_id": thread_id, "user_id": user, "chat_id": chat, "album": album}
        return self._post("share", _NUMBERS, media=list(media), **where)

    def lose_files(self, message_id: int) -> None:
        """Let Telegram no longer have the files of this message."""
        self._do("lose_files", message_id=message_id)

    def rewrite(
        self, message_id: int, text: str, *, media: Mapping[str, Any] | None = None, chat: int | None = None
    ) -> None:
        """Edit a text, or the caption of a file, that a person wrote; `media` is its file from now on, by `file_of`."""
        self._do("rewrite", message_id=message_id, text=text, chat_id=chat, **(media or {}))

    def delete(self, message: ShownMessage | int, *, chat: int | None = None) -> None:
        """Delete a message for everyone; the bot gets no update."""
        if isinstance(message, ShownMessage):
            chat, message = message.chat_id, message.message_id
        self._do("delete", message_id=message, chat_id=chat)

    def block(self, *, chat: int | None = None) -> None:
        """Block the bot in this chat (in a group: remove it)."""
        self._do("block", chat_id=chat)

    def unblock(self, *, chat: int | None = None) -> None:
        """Unblock the bot in this chat (in a group: add it again)."""
        self._do("unblock", chat_id=chat)

    def migrate(self, *, chat: int | None = None, forum: bool = False) -> int:
        """Turn a group into a supergroup (because topics are switched on in it), and return its new chat id."""
        return self._post("migrate", _NUMBER, chat_id=chat, forum=forum)

    def topic(
        self,
        what: Literal["make", "rename", "close", "reopen", "delete"],
        thread_id: int = 0,
        *,
        name: str | None = None,
        chat: int | None = None,
    ) -> int:
        """Make a topic in a chat, or change one, and return its id."""
        return self._post("topic", _NUMBER, what=what, thread_id=thread_id, name=name, chat_id=chat)

    def rule(self, *, chat: int | None = None, **change: Any) -> None:
        """Change what is on in a group, and what the bot is and may do there: the fields of its `Chat`."""
        self._do("rule", chat_id=chat, **change)

    def topics_mode(self, *, on: bool) -> None:
        """Switch topics on or off in the private chats of the bot."""
        self._do("topics_mode", on=on)

    # actions of the test

    def advance(self, seconds: float) -> None:
        """Advance the server's clock by `seconds`."""
        self._do("advance", seconds=seconds)

    def fault(self, method: str = "*", action: FaultAction = "error", **more: Any) -> None:
        """Queue a fault; `more` are further fields of `Fault`."""
        self._do("fault", **asdict(Fault(method, action, **more)))

    def clear_faults(self) -> None:
        """Remove the queued faults, and end the requests that hang."""
        self._do("clear_faults")

    def redeliver(self, update_id: int) -> None:
        """Send an update again under the same id, even if it was confirmed."""
        self._do("redeliver", update_id=update_id)

    def repeat(self, message_id: int) -> None:
        """Send the newest update about a person's message again: the message itself, or its last edit."""
        self._do("repeat", message_id=message_id)

    def inject(self, update: dict[str, Any]) -> int:
        """Send any object as an update and return its id; without an `update_id` it gets the next one."""
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
        """Return the condition's first true value; raise TimeoutError with the bot's last messages if none comes."""
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

    # HTTP

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


def _id(message: ShownMessage | int | None) -> int | None:
    return message.message_id if isinstance(message, ShownMessage) else message


def file_of(kind: Literal["photo", "document", "voice"], content: bytes, **more: Any) -> dict[str, Any]:
    """Return a file for `Phone.share`; `more` are other fields of the server's `Media`: name, mime, size, caption."""
    given = {key: value for key, value in more.items() if value is not None}
    return {"kind": kind, "content": base64.b64encode(content).decode(), **given}
