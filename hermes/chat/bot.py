"""The calls of the Bot API that Hermes uses. Each returns a plain value or raises an error of Hermes.

python-telegram-bot sends the requests and parses the answers; `failures.py` translates its errors. No text that leaves
this module (error, log, repr) contains the token.

Calls are raw (`do_api_request`), for two reasons: one update that the library cannot parse must not fail the whole
batch, and building library objects that are not used costs as much as the request itself.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx
import telegram
from telegram.error import TelegramError
from telegram.request import BaseRequest, HTTPXRequest
from telegram.warnings import PTBUserWarning

from hermes.chat.failures import NO_PATH, TOO_BIG, is_without_topic, strange, translate
from hermes.chat.screens.buttons import Button
from hermes.chat.screens.screen import Screen
from hermes.chat.tls import tls_context
from hermes.core.prompt_files import MOST_BYTES
from hermes.errors import ChatAway, ChatRefused, ConfigError

# The library documents this variable: without it, each 429 also causes a deprecation warning.
os.environ.setdefault("PTB_TIMEDELTA", "true")

CALL_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
POLL_GRACE_S = 10.0
POOL_SIZE = 32
# Keeps a connection open for the next tap; servers and routers keep idle connections longer than this.
KEEP_ALIVE_S = 55.0
TOAST_CHARS = 200
UPDATE_KINDS = ["message", "edited_message", "callback_query", "my_chat_member"]

DOWNLOAD_S = 300.0

_UNCHANGED = "message is not modified"
_TOO_LATE = ("query is too old", "query id is invalid", "query_id_invalid")
_FILE_PATH = re.compile(r"(?!.*\.\.)[\w-][\w.-]*(/[\w-][\w.-]*)*")
"""A path without a scheme, a host, an empty segment, or one of dots."""
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
    """A message that Hermes posted. `date_s` is Telegram's date for it (epoch seconds), or 0 if Telegram gave none.

    `thread_id` is the topic in which it stands, 0 if in none.
    """

    message_id: int
    date_s: float
    thread_id: int = 0


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself. `reads_groups` is false if privacy mode hides plain texts in groups from it.

    `has_topics`: its private chats can have topics.
    """

    id: int
    username: str
    reads_groups: bool
    has_topics: bool


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
    """One bot. Its methods raise ChatAway, ChatRefused, and (only if they post something or make a topic) Undelivered.

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
        self._files = f"{api_base.rstrip('/')}/file/bot{token}"
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

    async def send(
        self, chat_id: int, screen: Screen, *, reply_to: int | None = None, silent: bool = False, thread_id: int = 0
    ) -> Sent:
        """Post a new message. `thread_id` is its topic; with 0, a reply stands in that of the message it replies to."""
        params = {"chat_id": chat_id, **_body(screen), "disable_notification": silent}
        if thread_id:
            params["message_thread_id"] = thread_id
        if screen.force_reply and not screen.rows:
            params["reply_markup"] = {"force_reply": True}
        return await self._post("sendMessage", params, reply_to)

    async def document(
        self,
        chat_id: int,
        screen: Screen,
        name: str,
        content: str | bytes,
        *,
        reply_to: int | None = None,
        silent: bool = False,
        timeout_s: float | None = None,
    ) -> Sent:
        """Post a file with this name and content, and the text of the screen as its caption."""
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        file = telegram.InputFile(data, filename=name)
        params = {
            "chat_id": chat_id,
            "document": file,
            "caption": screen.text,
            "disable_content_type_detection": True,
            "disable_notification": silent,
        }
        return await self._post("sendDocument", params, reply_to, timeout_s)

    async def _post(
        self, method: str, params: dict[str, Any], reply_to: int | None, timeout_s: float | None = None
    ) -> Sent:
        """Post a new message; not as a reply if the message to reply to is gone, or its topic is closed to the bot."""
        post = partial(self._call, method, sending=True, timeout_s=timeout_s)
        if reply_to is None:
            return _sent(await post(params), method)
        reply = {"message_id": reply_to, "allow_sending_without_reply": True}
        try:
            return _sent(await post({**params, "reply_parameters": reply}), method)
        except ChatRefused as error:
            if "message_thread_id" in params or not is_without_topic(error):
                raise
            return _sent(await post(params), method)

    async def download(self, file_id: str) -> bytes:
        """Return the content of a file that a person sent, 20 MB at most. Raises ChatRefused also if it is larger."""
        told = await self._call("getFile", {"file_id": file_id})
        path, size = (told.get("file_path"), told.get("file_size")) if isinstance(told, dict) else (None, None)
        if not isinstance(path, str) or not _FILE_PATH.fullmatch(path):
            raise ChatRefused(NO_PATH)
        if isinstance(size, int) and size > MOST_BYTES:
            raise ChatRefused(TOO_BIG)
        data = await self._content(path)
        if len(data) > MOST_BYTES:
            raise ChatRefused(TOO_BIG)
        if isinstance(size, int) and len(data) != size:
            raise ChatAway("the download of a file broke off")
        return data

    async def _content(self, path: str) -> bytes:
        """Return what the configured Bot API, and nobody else, has at this path. Redirects are not followed."""
        try:
            with translated("a download"):
                async with asyncio.timeout(DOWNLOAD_S):
                    return await self._calls.retrieve(f"{self._files}/{quote(path)}", read_timeout=self._timeout_s)
        except TimeoutError:
            raise ChatAway("a download takes too long") from None
        except ChatRefused:  # getFile was answered, so the token is right, and the next path may work
            raise ChatAway("Telegram does not give the file now") from None

    async def make_topic(self, chat_id: int, name: str) -> int:
        """Make a topic in a chat, and return its id. A repeated request makes another one."""
        params = {"chat_id": chat_id, "name": name}
        result = await self._call("createForumTopic", params, sending=True)
        return _whole(result, "message_thread_id", "createForumTopic")

    async def rename_topic(self, chat_id: int, thread_id: int, name: str) -> None:
        """Give a topic another name; no error if it has it already."""
        params = {"chat_id": chat_id, "message_thread_id": thread_id, "name": name}
        await self._call("editForumTopic", params, fine=("topic_not_modified",))

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
        reads_groups = bool(result.get("can_read_all_group_messages"))
        return Me(bot_id, str(result.get("username", "")), reads_groups, bool(result.get("has_topics_enabled")))

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
        body["reply_markup"] = {"inline_keyboard": [[_button(button) for button in row] for row in screen.rows]}
    return body


def _button(button: Button) -> dict[str, Any]:
    act = {"copy_text": {"text": button.copies}} if button.copies else {"callback_data": button.data}
    return {"text": button.text} | act | ({"style": button.colour} if button.colour else {})


def _sent(result: Any, method: str) -> Sent:
    message_id, date = _whole(result, "message_id", method), result.get("date")
    thread_id = _whole(result, "message_thread_id", method) if result.get("is_topic_message") else 0
    return Sent(message_id, float(date) if isinstance(date, int) else 0.0, thread_id)


def _whole(result: Any, key: str, method: str) -> int:
    value = result.get(key) if isinstance(result, dict) else None
    if not isinstance(value, int):
        raise strange(method)
    return value
