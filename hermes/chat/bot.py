"""The Bot API as Hermes uses it: six calls, each an error of our own or a plain value.

python-telegram-bot does the wire and reads the answers; its errors are translated here, in one place, and
nowhere else is one of them seen. No text that leaves this module (error, log, repr) holds the token.

Calls go out raw (`do_api_request`): an update that the library cannot read must not take its neighbours
along, and building the library's objects only to throw them away costs as much as the request itself.
"""

import logging
import os
import re
import ssl
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import httpx
import telegram
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import BaseRequest, HTTPXRequest
from telegram.warnings import PTBUserWarning

from hermes.chat.screens.main_message import Screen
from hermes.errors import ChatAway, ChatError, ChatRefused, ConfigError, Undelivered

# The library's documented switch: without it, each 429 is accompanied by a warning of a coming change.
os.environ.setdefault("PTB_TIMEDELTA", "true")

CALL_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
POLL_GRACE_S = 10.0
POOL_SIZE = 32
# A tap soon after another finds its connection warm; servers and routers keep one longer than this.
KEEP_ALIVE_S = 55.0
ANSWER_FIRST_S = 0.003
"""What follows from a tap begins this much later than its acknowledgement, which a person waits for."""
TOAST_CHARS = 200
UPDATE_KINDS = ["message", "callback_query", "my_chat_member"]

# Failures that happen before the first byte of the request has left.
_NEVER_LEFT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.InvalidURL,
)
_UNCHANGED = "message is not modified"
_TOO_LATE = ("query is too old", "query id is invalid", "query_id_invalid")
_EDIT_GONE = ("message to edit not found", "message can't be edited", "message_id_invalid")
_DELETE_GONE = ("message to delete not found", "message_id_invalid")
_CHAT_GONE = ("chat not found", "peer_id_invalid", "chat_write_forbidden", "rights to send")

_TOKEN = re.compile(r"(?<=/bot)\d+[^/\s'\"]*|\d+(?::|%3[Aa])[A-Za-z0-9_-]{20,}")


# --- what may be said ----------------------------------------------------------------------------------


def redact(text: str) -> str:
    """The text without anything that looks like a bot's token."""
    return _TOKEN.sub("[token]", text)


class Redacting(logging.Filter):
    """Takes tokens out of a record: out of its message, its traceback and its stack."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, redacted."""
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return True


def quiet_loggers(handlers: Iterable[logging.Handler] | None = None) -> None:
    """Keep the libraries below from logging URLs, and redact whatever `handlers` (default: root's) write.

    httpx names every URL, with the token, at INFO. The Telegram library logs nothing that it does not raise.
    """
    redacting = Redacting()
    levels = {"httpx": logging.WARNING, "httpcore": logging.WARNING, "telegram": logging.CRITICAL}
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
        logging.getLogger(name).addFilter(redacting)
    for handler in logging.getLogger().handlers if handlers is None else handlers:
        handler.addFilter(redacting)


# --- errors --------------------------------------------------------------------------------------------


@contextmanager
def translated(method: str, *, sending: bool = False) -> Iterator[None]:
    """Raise every error of the library as a ChatError. `sending`: doing it twice would show it twice."""
    try:
        yield
    except TelegramError as error:
        # The cause holds the URL, and the URL the token.
        raise _translate(error, method, sending=sending) from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
        raise _strange(method) from None


def vanished(error: ChatError) -> bool:
    """Whether the message that was to be edited is gone, or can never be edited again: post it anew."""
    return isinstance(error, ChatRefused) and any(words in error.reason for words in _EDIT_GONE)


def is_conflict(error: ChatError) -> bool:
    """Whether somebody else receives this bot's updates: another poller, or a webhook."""
    return isinstance(error, ChatRefused) and error.reason.startswith("conflict")


def is_webhook(error: ChatError) -> bool:
    """Whether the conflict is with a webhook, which `delete_webhook` ends."""
    return is_conflict(error) and "webhook" in str(error)


def is_unauthorized(error: ChatError) -> bool:
    """Whether Telegram does not know this token (401, or 404 for one that is malformed)."""
    return isinstance(error, ChatRefused) and error.reason.startswith("unauthorized")


def _translate(error: TelegramError, method: str, *, sending: bool) -> ChatError:
    words = redact(str(error))
    match error:
        case _ if _foreign(error):
            return ChatAway(f"{words.partition('. Parsing')[0]}: that is no answer of Telegram's ({method})")
        case RetryAfter():
            return _wait(error, method)
        case ChatMigrated():
            known = type(error.new_chat_id) is int
            return ChatRefused(words, moved_to=error.new_chat_id) if known else _strange(method)
        case Forbidden() | BadRequest():
            gone = isinstance(error, Forbidden) or any(gone in words.lower() for gone in _CHAT_GONE)
            return ChatRefused(words, blocked=gone)
        case Conflict():
            return ChatRefused(f"conflict: {words[0:1].lower()}{words[1:]}")
        case InvalidToken() | EndPointNotFound():
            return ChatRefused(f"unauthorized: Telegram does not accept the token ({method})")
        case NetworkError():
            return _cut(error, method, sending=sending)
    return ChatRefused(words)


def _foreign(error: BaseException | None) -> bool:
    """Whether the body was not JSON: a proxy or a gateway spoke, whatever the status says."""
    while error is not None:
        if "invalid server response" in str(error).lower():
            return True
        error = error.__cause__
    return False


def _wait(error: RetryAfter, method: str) -> ChatAway:
    wait = error.retry_after
    # Telegram's are whole seconds; none at all would be asking again and again.
    seconds = max(1.0, wait.total_seconds() if isinstance(wait, timedelta) else float(wait))
    return ChatAway(f"Telegram asks to wait {seconds:g} s ({method})", retry_after_s=seconds)


def _cut(error: NetworkError, method: str, *, sending: bool) -> ChatAway:
    """A connection that failed; without a cause it is an answer with a 5xx."""
    cause = error.__cause__
    if cause is None:
        return ChatAway(f"Telegram answered: {redact(str(error))} ({method})")
    words = "did not answer in time" if isinstance(error, TimedOut) else "cannot be reached"
    kind = ChatAway if isinstance(cause, _NEVER_LEFT) or not sending else Undelivered
    return kind(f"Telegram {words} ({method}, {type(cause).__name__})")


def _strange(method: str) -> ChatAway:
    return ChatAway(f"the answer has not the shape of Telegram's ({method})")


# --- the bot -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of ours in the chat. `date_s` is Telegram's own date for it (epoch seconds), 0 if it told none."""

    message_id: int
    date_s: float


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself. `reads_groups` is false where privacy mode hides plain texts of groups from it."""

    id: int
    username: str
    reads_groups: bool


class _Raw(telegram.Bot):
    """The library's bot for raw calls; it would warn at each of them that it has a typed method too."""

    __slots__ = ()

    @classmethod
    def _warn(
        cls, message: str | PTBUserWarning, category: type[Warning] = PTBUserWarning, stacklevel: int = 0
    ) -> None:
        """Say nothing: raw is meant."""


class Bot:
    """One bot. Every method raises ChatAway, Undelivered (`send` only) or ChatRefused, and nothing else.

    `timeout_s` is how long a call waits for its answer. `request` replaces both connections in tests.
    Environment variables about proxies and certificates are not read: `proxy` and `ca_file` (as of `tls_context`) are
    what the configuration says. Raises ConfigError for one that cannot be used.
    """

    def __init__(
        self,
        token: str,
        *,
        api_base: str,
        proxy: str | None = None,
        ca_file: Path | None = None,
        request: BaseRequest | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> None:
        self._timeout_s = timeout_s
        self._calls, self._polls = (request, request) if request else _connections(proxy, api_base, ca_file)
        self._bot = _Raw(
            token,
            base_url=f"{api_base.rstrip('/')}/bot",
            request=self._calls,
            get_updates_request=self._polls,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; what is under way fails."""
        for request in {id(self._calls): self._calls, id(self._polls): self._polls}.values():
            await request.shutdown()

    async def send(self, chat_id: int, screen: Screen, *, reply_to: int | None = None, silent: bool = False) -> Sent:
        """Post a new message. A message to reply to that is gone does no harm."""
        params = {"chat_id": chat_id, **_body(screen), "disable_notification": silent}
        if reply_to is not None:
            params["reply_parameters"] = {"message_id": reply_to, "allow_sending_without_reply": True}
        if screen.force_reply and not screen.rows:
            params["reply_markup"] = {"force_reply": True}
        return _sent(await self._call("sendMessage", params, sending=True), "sendMessage")

    async def document(
        self, chat_id: int, screen: Screen, name: str, text: str, *, reply_to: int | None = None, silent: bool = False
    ) -> Sent:
        """Post a file of this name and content, the screen's text below it."""
        file = telegram.InputFile(text.encode("utf-8", "replace"), filename=name)
        params = {
            "chat_id": chat_id,
            "document": file,
            "caption": screen.text,
            "disable_content_type_detection": True,
            "disable_notification": silent,
        }
        if reply_to is not None:
            params["reply_parameters"] = {"message_id": reply_to, "allow_sending_without_reply": True}
        return _sent(await self._call("sendDocument", params, sending=True), "sendDocument")

    async def set_commands(self, commands: Mapping[str, str]) -> None:
        """Say which commands there are, each with a word about it: clients offer them behind a slash."""
        listed = [{"command": command, "description": about} for command, about in commands.items()]
        await self._call("setMyCommands", {"commands": listed})

    async def edit(self, chat_id: int, message_id: int, screen: Screen) -> None:
        """Make a message show this screen; one that does already is fine. `vanished` reads a refusal."""
        params = {"chat_id": chat_id, "message_id": message_id, **_body(screen)}
        await self._call("editMessageText", params, fine=(_UNCHANGED,))

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Take a message away; one that is gone is fine, one older than 48 h is refused."""
        params = {"chat_id": chat_id, "message_id": message_id}
        await self._call("deleteMessage", params, fine=_DELETE_GONE)

    async def answer(self, query_id: str, text: str = "") -> None:
        """Acknowledge a tap, with a toast if there is a text (cut at 200 characters); too late is fine."""
        params = {"callback_query_id": query_id, "text": text[:TOAST_CHARS] or None}
        await self._call("answerCallbackQuery", params, fine=_TOO_LATE)

    async def updates(self, offset: int | None, timeout_s: float) -> list[Any]:
        """Ask for updates from `offset` on, and wait `timeout_s` for one; raw, since each is read alone.

        This tells Telegram that all before `offset` are done with.
        """
        params = {"offset": offset, "timeout": int(timeout_s), "allowed_updates": UPDATE_KINDS}
        result = await self._call("getUpdates", params, timeout_s=timeout_s + POLL_GRACE_S)
        if not isinstance(result, list):
            raise _strange("getUpdates")
        return result

    async def me(self) -> Me:
        """Who this bot is."""
        result = await self._call("getMe", {})
        bot_id = _whole(result, "id", "getMe")
        return Me(bot_id, str(result.get("username", "")), bool(result.get("can_read_all_group_messages")))

    async def delete_webhook(self) -> None:
        """End a webhook, since nothing can be polled beside it; updates that wait are kept."""
        await self._call("deleteWebhook", {"drop_pending_updates": False})

    async def _call(
        self,
        method: str,
        params: dict[str, Any],
        *,
        sending: bool = False,
        fine: tuple[str, ...] = (),
        timeout_s: float | None = None,
    ) -> Any:
        """The raw result, or None after a refusal that says one of the `fine` words."""
        try:
            with translated(method, sending=sending):
                timeout_s = timeout_s or self._timeout_s
                return await self._bot.do_api_request(method, params, read_timeout=timeout_s)
        except ChatRefused as refusal:
            if any(words in refusal.reason for words in fine):
                return None
            raise


def tls_context(ca_file: Path | None, *urls: str | None) -> ssl.SSLContext:
    """What connections to these URLs (a proxy's among them) trust: the authorities of this PEM file, else the usual.

    The environment has no say in it. If none of them is https, no authority is loaded. Raises ConfigError.
    """
    if not any(url.lower().startswith("https:") for url in urls if url):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is None:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:  # an SSLError is one
        why = "no PEM file of certificate authorities" if isinstance(error, ssl.SSLError) else error.strerror
    raise ConfigError(f"telegram.ca_file {ca_file} cannot be used ({why}); it must be a PEM file that you may read")


def _connections(proxy: str | None, api_base: str, ca_file: Path | None) -> tuple[BaseRequest, BaseRequest]:
    """One for calls, one for the long poll, so that neither waits for the other; the CAs are loaded once, if at all."""
    ssl_context = tls_context(ca_file, proxy, api_base)

    def connection(size: int) -> BaseRequest:
        return HTTPXRequest(
            connection_pool_size=size,
            read_timeout=CALL_TIMEOUT_S,
            write_timeout=CALL_TIMEOUT_S,
            connect_timeout=CONNECT_TIMEOUT_S,
            pool_timeout=CALL_TIMEOUT_S,
            proxy=proxy,
            httpx_kwargs={
                "verify": ssl_context,
                "trust_env": False,
                "limits": httpx.Limits(max_connections=size, keepalive_expiry=KEEP_ALIVE_S),
            },
        )

    try:
        return connection(POOL_SIZE), connection(2)
    except (RuntimeError, ValueError):
        # The cause would show the proxy's URL, which may hold a password.
        raise ConfigError(
            "telegram.proxy cannot be used: write http://HOST:PORT, or install socksio for a socks5 proxy"
        ) from None


def _body(screen: Screen) -> dict[str, Any]:
    """Text, entities and buttons; an edit without buttons takes those away that are there."""
    body: dict[str, Any] = {
        "text": screen.text,
        "entities": [{"type": e.type, "offset": e.offset, "length": e.length} for e in screen.entities],
        "link_preview_options": {"is_disabled": True},
    }
    if screen.rows:
        body["reply_markup"] = {
            "inline_keyboard": [
                [{"text": button.text, "callback_data": button.data} for button in row] for row in screen.rows
            ]
        }
    return body


def _sent(result: Any, method: str) -> Sent:
    message_id, date = _whole(result, "message_id", method), result.get("date")
    return Sent(message_id, float(date) if isinstance(date, int) else 0.0)


def _whole(result: Any, key: str, method: str) -> int:
    value = result.get(key) if isinstance(result, dict) else None
    if not isinstance(value, int):
        raise _strange(method)
    return value
