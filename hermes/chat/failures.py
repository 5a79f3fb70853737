"""The errors of the Bot API, as errors of Hermes. No text that leaves this module contains the token."""

import os
import re
import socket
import ssl
from datetime import timedelta

import httpx
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

from hermes.errors import ChatAway, ChatError, ChatRefused, Undelivered

# Failures before the first byte of the request is sent.
_NEVER_LEFT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.InvalidURL,
)
NO_PATH = "the Bot API gives no path from which a file can be downloaded"
TOO_BIG = "file is too big"
_UNAVAILABLE = "temporarily unavailable"
_EDIT_GONE = ("message to edit not found", "message can't be edited", "message_id_invalid")
_TOPIC_GONE = ("message thread not found", "topic_closed", "topic_deleted", "topic_id_invalid")
_CHAT_GONE = ("chat not found", "peer_id_invalid", "chat_write_forbidden", "rights to send", "topic_closed")

_TOKEN = re.compile(r"(?<=/bot)\d+[^/\s'\"]*|\d+(?::|%3[Aa])[A-Za-z0-9_-]{20,}")


def redact(text: str) -> str:
    """Return the text with everything that looks like a bot token replaced."""
    return _TOKEN.sub("[token]", text)


def vanished(error: ChatError) -> bool:
    """Tell whether the message to edit is gone or cannot be edited any more, so that it must be posted again."""
    return isinstance(error, ChatRefused) and any(words in error.reason for words in _EDIT_GONE)


def is_without_topic(error: ChatRefused) -> bool:
    """Tell whether the topic of the message does not exist any more, or is closed to this bot."""
    return any(words in error.reason for words in _TOPIC_GONE)


def is_without_files(error: ChatRefused) -> bool:
    """Tell whether the group lets this bot send texts at most, and no files."""
    return "rights to send documents" in error.reason


def is_without_path(error: ChatRefused) -> bool:
    """Tell whether the Bot API gave no path for a download; one with `--local` names a place on its own disk."""
    return error.reason == NO_PATH.lower()


def is_too_big(error: ChatRefused) -> bool:
    """Tell whether a file is larger than what Telegram gives a bot."""
    return TOO_BIG in error.reason


def is_unavailable(error: ChatRefused) -> bool:
    """Tell whether Telegram does not have a file now. It says the same of one that it never has again."""
    return _UNAVAILABLE in error.reason


def is_conflict(error: ChatError) -> bool:
    """Tell whether another poller or a webhook receives the updates of this bot."""
    return isinstance(error, ChatRefused) and error.reason.startswith("conflict")


def is_webhook(error: ChatError) -> bool:
    """Tell whether the conflict is with a webhook, which `delete_webhook` removes."""
    return is_conflict(error) and "webhook" in str(error)


def is_unauthorized(error: ChatError) -> bool:
    """Tell whether Telegram does not accept the token (401, or 404 for a malformed one)."""
    return isinstance(error, ChatRefused) and error.reason.startswith("unauthorized")


def is_about_bot(error: ChatError) -> bool:
    """Tell whether the refusal is not about this request alone: another poller has the bot, or its token is wrong."""
    return is_conflict(error) or is_unauthorized(error)


def translate(error: TelegramError, method: str, *, sending: bool) -> ChatError:
    """Return the error of Hermes. `sending`: a repeated request would post a second message."""
    words = redact(str(error))
    match error:
        case _ if _foreign(error):
            return ChatAway(f"{words.partition('. Parsing')[0]}: that is not an answer from Telegram ({method})")
        case RetryAfter():
            return _wait(error, method)
        case ChatMigrated():
            known = type(error.new_chat_id) is int
            return ChatRefused(words, moved_to=error.new_chat_id) if known else strange(method)
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
    """Tell whether the body was not JSON: then a proxy or gateway answered, at any status."""
    while error is not None:
        if "invalid server response" in str(error).lower():
            return True
        error = error.__cause__
    return False


def _wait(error: RetryAfter, method: str) -> ChatAway:
    wait: object = error.retry_after
    told = wait.total_seconds() if isinstance(wait, timedelta) else wait
    if not isinstance(told, int | float):
        return strange(method)
    # Telegram gives whole seconds. A wait of 0 s would repeat the request without a pause.
    seconds = max(1.0, float(told))
    return ChatAway(f"Telegram asks to wait {seconds:g} s ({method})", retry_after_s=seconds)


def _cut(error: NetworkError, method: str, *, sending: bool) -> ChatAway:
    """Return the error for a connection that failed, or, if the error has no cause, for an answer with a 5xx."""
    cause = error.__cause__
    if cause is None:
        return ChatAway(f"Telegram answered: {redact(str(error))} ({method})")
    words = "did not answer in time" if isinstance(error, TimedOut) else f"cannot be reached{_why(cause)}"
    kind = ChatAway if isinstance(cause, _NEVER_LEFT) or not sending else Undelivered
    return kind(f"Telegram {words} ({method})")


def _why(cause: BaseException | None) -> str:
    """Return why no connection was made, or "" if that is unknown.

    The words are those of the system: the libraries may quote the URL, and a proxy may answer with any text.
    """
    if isinstance(cause, httpx.ProxyError):
        return ": the proxy refuses"
    if not isinstance(cause, httpx.ConnectError):
        return ""
    while cause is not None:
        match cause:
            case BaseExceptionGroup(exceptions=(first, *_)):  # one error for each address of the name
                cause = first
                continue
            case ssl.SSLError():
                why = (
                    getattr(cause, "verify_message", "")
                    or (getattr(cause, "reason", None) or "").replace("_", " ").lower()
                )
                return f": TLS, {why}" if why else ": TLS"
            case socket.gaierror():
                return f": {cause.strerror}"
            case OSError(errno=int(number)):
                return f": {os.strerror(number)}"
        cause = cause.__cause__ or cause.__context__
    return ""


def strange(method: str) -> ChatAway:
    """Return the error for an answer of a shape that Hermes does not know."""
    return ChatAway(f"Telegram's answer has an unknown shape ({method})")
