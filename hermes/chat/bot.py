"""The calls of the Bot API that Hermes uses. Each returns a plain value or raises an error of Hermes.

python-telegram-bot sends the requests and parses the answers; `failures.py` translates its errors. No text that leaves
this module (error, log, repr) contains the token.

Calls are raw (`do_api_request`), for two reasons: one update that the library cannot parse must not fail the whole
batch, and building library objects that are not used costs as much as the request itself.
"""

import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import telegram
from telegram.error import TelegramError
from telegram.request import BaseRequest, HTTPXRequest
from telegram.warnings import PTBUserWarning

from hermes.chat.failures import strange, translate
from hermes.chat.screens.main_message import Screen
from hermes.errors import ChatAway, ChatRefused, ConfigError

# The library documents this variable: without it, each 429 also causes a deprecation warning.
os.environ.setdefault("PTB_TIMEDELTA", "true")

CALL_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
POLL_GRACE_S = 10.0
POOL_SIZE = 32
# Keeps a connection open for the next tap; servers and routers keep idle connections longer than this.
KEEP_ALIVE_S = 55.0
ANSWER_FIRST_S = 0.003
"""The effects of a tap start this much after its acknowledgement, because the person waits for that."""
TOAST_CHARS = 200
UPDATE_KINDS = ["message", "edited_message", "callback_query", "my_chat_member"]

_UNCHANGED = "message is not modified"
_TOO_LATE = ("query is too old", "query id is invalid", "query_id_invalid")
_DELETE_GONE = ("message to delete not found", "message_id_invalid")


@contextmanager
def translated(method: str, *, sending: bool = False) -> Iterator[None]:
    """Raise every error of the library as a ChatError. `sending`: a repeated request would post a second message."""
    try:
        yield
    except TelegramError as error:
        # The cause contains the URL with the token.
        raise translate(error, method, sending=sending) from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
        raise strange(method) from None


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that Hermes posted. `date_s` is Telegram's date for it (epoch seconds), or 0 if Telegram gave none."""

    message_id: int
    date_s: float


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself. `reads_groups` is false if privacy mode hides plain texts in groups from it."""

    id: int
    username: str
    reads_groups: bool


class _Raw(telegram.Bot):
    """The library's bot, without its warning at each raw call that there is a typed method too."""

    __slots__ = ()

    @classmethod
    def _warn(
        cls, message: str | PTBUserWarning, category: type[Warning] = PTBUserWarning, stacklevel: int = 0
    ) -> None:
        """Do nothing: the raw calls are intended."""


def always() -> bool:
    """Return true."""
    return True


class Bot:
    """One bot. Its methods raise ChatAway, Undelivered (`send` and `document` only) or ChatRefused, and nothing else.

    `timeout_s` is how long a call waits for its answer. `may_call` is asked before each call: once another machine may
    be the phone side, no call leaves (ChatAway). `request` replaces both connections in tests. `proxy` and
    `ca_file` (see `tls_context`) come from the configuration; environment variables for them are not read.
    Raises ConfigError: `proxy` or `ca_file` cannot be used.
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
        may_call: Callable[[], bool] = always,
    ) -> None:
        self._timeout_s = timeout_s
        self._may_call = may_call
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
        """Close the connections; calls in progress fail."""
        for request in {id(self._calls): self._calls, id(self._polls): self._polls}.values():
            await request.shutdown()

    async def send(self, chat_id: int, screen: Screen, *, reply_to: int | None = None, silent: bool = False) -> Sent:
        """Post a new message; if the message to reply to is gone, it is posted without a reply."""
        params = {"chat_id": chat_id, **_body(screen), "disable_notification": silent}
        if reply_to is not None:
            params["reply_parameters"] = {"message_id": reply_to, "allow_sending_without_reply": True}
        if screen.force_reply and not screen.rows:
            params["reply_markup"] = {"force_reply": True}
        return _sent(await self._call("sendMessage", params, sending=True), "sendMessage")

    async def document(
        self, chat_id: int, screen: Screen, name: str, text: str, *, reply_to: int | None = None, silent: bool = False
    ) -> Sent:
        """Post a file with this name and content, and the text of the screen as its caption."""
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
        """Set the list of commands and their descriptions, which clients show after a slash."""
        listed = [{"command": command, "description": about} for command, about in commands.items()]
        await self._call("setMyCommands", {"commands": listed})

    async def edit(self, chat_id: int, message_id: int, screen: Screen) -> None:
        """Make a message show this screen; no error if it already does. `vanished` interprets a refusal."""
        params = {"chat_id": chat_id, "message_id": message_id, **_body(screen)}
        await self._call("editMessageText", params, fine=(_UNCHANGED,))

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message; no error if it is gone. Telegram refuses to delete one that is older than 48 h."""
        params = {"chat_id": chat_id, "message_id": message_id}
        await self._call("deleteMessage", params, fine=_DELETE_GONE)

    async def answer(self, query_id: str, text: str = "") -> None:
        """Acknowledge a tap, with a toast if there is a text (cut at 200 characters); no error if it is too late."""
        params = {"callback_query_id": query_id, "text": text[:TOAST_CHARS] or None}
        await self._call("answerCallbackQuery", params, fine=_TOO_LATE)

    async def updates(self, offset: int | None, timeout_s: float) -> list[Any]:
        """Return the raw updates from `offset` on; wait up to `timeout_s` for the first one. Each is parsed separately.

        The request tells Telegram to drop all updates before `offset`.
        """
        params = {"offset": offset, "timeout": int(timeout_s), "allowed_updates": UPDATE_KINDS}
        result = await self._call("getUpdates", params, timeout_s=timeout_s + POLL_GRACE_S)
        if not isinstance(result, list):
            raise strange("getUpdates")
        return result

    async def me(self) -> Me:
        """Return the identity of this bot."""
        result = await self._call("getMe", {})
        bot_id = _whole(result, "id", "getMe")
        return Me(bot_id, str(result.get("username", "")), bool(result.get("can_read_all_group_messages")))

    async def name(self, chat_id: int) -> str:
        """Return the first name of a user or the title of a group, or "" if Telegram gives none."""
        result = await self._call("getChat", {"chat_id": chat_id})
        told = result if isinstance(result, dict) else {}
        return str(told.get("title") or told.get("first_name") or "")

    async def delete_webhook(self) -> None:
        """Remove the webhook, because polling does not work beside one; waiting updates are kept."""
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
        """Return the raw result, or None after a refusal whose reason contains one of the `fine` texts."""
        if not self._may_call():
            raise ChatAway(f"{method} is left to the machine that is the phone side now")
        try:
            with translated(method, sending=sending):
                timeout_s = timeout_s or self._timeout_s
                return await self._bot.do_api_request(method, params, read_timeout=timeout_s)
        except ChatRefused as refusal:
            if any(words in refusal.reason for words in fine):
                return None
            raise


def tls_context(ca_file: Path | None, *urls: str | None) -> ssl.SSLContext:
    """Return the TLS settings for these URLs (of the server and the proxy): trust this PEM file, else the usual CAs.

    Environment variables are not read. If no URL is https, no CAs are loaded. Raises ConfigError: the file is unusable.
    """
    if not any(url.lower().startswith("https:") for url in urls if url):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is None:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:  # SSLError is a subclass
        why = "not a PEM file of certificate authorities" if isinstance(error, ssl.SSLError) else error.strerror
    raise ConfigError(f"telegram.ca_file {ca_file} cannot be used ({why}); it must be a PEM file that you may read")


def _connections(proxy: str | None, api_base: str, ca_file: Path | None) -> tuple[BaseRequest, BaseRequest]:
    """Return a connection for calls and one for polls, so that neither waits for the other; load the CAs only once."""
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
        # The cause would show the URL of the proxy, which may contain a password.
        raise ConfigError(
            "telegram.proxy cannot be used: write http://HOST:PORT, or install socksio for a socks5 proxy"
        ) from None


def _body(screen: Screen) -> dict[str, Any]:
    """Return text, entities and buttons as parameters; an edit without buttons removes the buttons of the message."""
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
        raise strange(method)
    return value
