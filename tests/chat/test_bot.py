"""The Bot API's calls, and what becomes of every error below them."""

import asyncio
import importlib
import json
import logging
import os
import pkgutil
import socket
import ssl
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
import telegram.error
from telegram.request import HTTPXRequest

from hermes.chat.bot import Bot, Me, translated
from hermes.chat.failures import is_conflict, is_unauthorized, is_webhook, redact, vanished
from hermes.chat.screens.buttons import Button
from hermes.chat.screens.screen import Screen
from hermes.chat.screens.text import Entity
from hermes.config.logs import Lines
from hermes.core.prompt_files import MOST_BYTES
from hermes.errors import ChatAway, ChatError, ChatRefused, ConfigError, Undelivered
from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi
from hermes.sandbox.phone_values import FaultAction
from tests import certificates

ANN = 1001
GROUP = -500
TEAM = -1001234567890
TOKEN = "123456789:AAHsecretsecretsecretsecretsecret12"
SECRET = "AAHsecretsecret"
SCREEN = Screen("Which one?", (Entity("bold", 0, 5),), ((Button("A", "a1"), Button("B", "b1")),))

Respond = Callable[[httpx.Request], httpx.Response]


def bot_of(respond: Respond) -> Bot:
    """A bot whose requests end in `respond`."""
    request = HTTPXRequest(httpx_kwargs={"transport": httpx.MockTransport(respond)})
    return Bot(TOKEN, api_base="https://telegram.test", request=request)


def says(status: int, description: str, **parameters: int) -> Respond:
    """A server that refuses everything like this."""
    body: dict[str, Any] = {"ok": False, "error_code": status, "description": description}
    if parameters:
        body["parameters"] = parameters
    return lambda _: httpx.Response(status, json=body)


def breaks(kind: type[Exception]) -> Respond:
    """A connection that fails like this."""

    def respond(request: httpx.Request) -> httpx.Response:
        raise kind(f"no luck with {request.url}")

    return respond


async def refusal_of(respond: Respond) -> ChatError:
    """What `send` raises."""
    with pytest.raises(ChatError) as caught:
        await bot_of(respond).send(ANN, SCREEN)
    return caught.value


@pytest.fixture(scope="module")
def server() -> Iterator[RunningBotApi]:
    """One local Bot API for the module."""
    with running_botapi(chats=[Chat(ANN), Chat(GROUP, "Small")]) as api:
        yield api


@pytest.fixture
async def bot(server: RunningBotApi) -> AsyncIterator[Bot]:
    """A bot on it."""
    async with Bot(server.token, api_base=server.base_url) as bot:
        yield bot
    server.phone.clear_faults()


# what goes out


async def test_a_message_shows_its_screen(bot: Bot, server: RunningBotApi) -> None:
    """Text, entities, buttons and the reply arrive as given."""
    first = (await bot.send(ANN, Screen("First"))).message_id
    message = server.phone.message((await bot.send(ANN, SCREEN, reply_to=first, silent=True)).message_id, chat=ANN)
    assert (message.text, message.labels) == ("Which one?", (("A", "B"),))
    assert (message.marked("bold"), message.reply_to, message.silent) == (("Which",), first, True)


async def test_a_link_is_never_previewed(bot: Bot, server: RunningBotApi) -> None:
    """A preview would tell the server behind the link that somebody is there; an edit brings none back."""
    screen = Screen("see https://example.com/secret")
    message_id = (await bot.send(ANN, screen)).message_id
    assert not server.phone.message(message_id, chat=ANN).link_preview
    await bot.edit(ANN, message_id, Screen("now https://example.com/other"))
    assert not server.phone.message(message_id, chat=ANN).link_preview


async def test_an_edit_without_buttons_takes_them_away(bot: Bot, server: RunningBotApi) -> None:
    """A settled message has no keyboard."""
    message_id = (await bot.send(ANN, SCREEN)).message_id
    await bot.edit(ANN, message_id, Screen("Done."))
    assert server.phone.message(message_id, chat=ANN).rows == ()


async def test_an_answer_is_asked_for_by_a_forced_reply(bot: Bot, server: RunningBotApi) -> None:
    """In groups a plain text never arrives, a reply does."""
    message_id = (await bot.send(GROUP, Screen("Type it", force_reply=True))).message_id
    assert server.phone.message(message_id, chat=GROUP).force_reply


async def test_a_reply_to_a_deleted_message_is_sent_all_the_same(bot: Bot, server: RunningBotApi) -> None:
    """The person may have deleted the question that an error message replies to."""
    message_id = (await bot.send(ANN, SCREEN)).message_id
    server.phone.delete(message_id, chat=ANN)
    assert (await bot.send(ANN, Screen("late"), reply_to=message_id)).message_id > message_id


async def test_a_reply_in_a_topic_that_is_closed_stands_in_the_chat_itself() -> None:
    """Whatever it is: nobody would see it otherwise. A message that belongs into that topic is refused."""
    team = Chat(TEAM, "Team", forum=True)
    with running_botapi(chats=[Chat(ANN), team]) as api:
        thread_id = api.phone.topic("make", name="Theirs", chat=TEAM)
        (asked,) = api.phone.write("/log", thread_id=thread_id, chat=TEAM)
        api.phone.topic("close", thread_id, chat=TEAM)
        async with Bot(api.token, api_base=api.base_url) as bot:
            sent = await bot.send(TEAM, Screen("The log"), reply_to=asked)
            file = await bot.document(TEAM, Screen("log"), "log.txt", "lines", reply_to=asked)
            with pytest.raises(ChatRefused):
                await bot.send(TEAM, SCREEN, thread_id=thread_id)
        for one in (sent, file):
            message = api.phone.message(one.message_id, chat=TEAM)
            assert (message.reply_to, message.thread_id) == (None, None)


async def test_me_names_the_bot(bot: Bot) -> None:
    """The id, the name, and whether plain texts of groups arrive."""
    assert isinstance(me := await bot.me(), Me)
    assert me.id > 0
    assert me.username
    assert not me.reads_groups


async def test_a_held_poll_does_not_hold_up_a_call(bot: Bot, server: RunningBotApi) -> None:
    """A tap's acknowledgement never waits for the long poll."""
    seen = await bot.updates(-1, 0)
    offset = seen[-1]["update_id"] + 1 if seen else None
    polling = asyncio.create_task(bot.updates(offset, 20))
    await asyncio.to_thread(server.phone.wait_for_poll)
    message_id = (await bot.send(ANN, SCREEN)).message_id
    assert not polling.done()
    server.phone.tap(message_id, "A", chat=ANN)
    (update,) = await polling
    query_id = update["callback_query"]["id"]
    await bot.answer(query_id, "A it is")
    assert "A it is" in [toast.text for toast in server.phone.toasts()]
    await bot.updates(update["update_id"] + 1, 0)


async def test_calls_in_a_row_share_one_connection() -> None:
    """A warm connection is what makes an acknowledgement quick."""
    connections = []
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        body = b'{"ok":true,"result":true}'
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
                await reader.readexactly(int(length.partition(b":")[2]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()
            ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with Bot(TOKEN, api_base=f"http://127.0.0.1:{port}") as bot:
            for number in range(5):
                await bot.answer(str(number), "yes")
        await asyncio.wait_for(ended.wait(), 10)
    assert len(connections) == 1


async def test_environment_variables_do_not_send_the_token_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, server: RunningBotApi
) -> None:
    """Only the configuration names a proxy."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with Bot(server.token, api_base=server.base_url) as bot:
        assert (await bot.me()).id > 0


def test_a_proxy_that_cannot_be_used_is_a_configuration_error() -> None:
    """It names the key, and not the password in the URL."""
    proxy = "gopher://ann:hunter2@proxy.test:70"
    with pytest.raises(ConfigError, match=r"telegram\.proxy") as caught:
        Bot(TOKEN, api_base="https://telegram.test", proxy=proxy)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


async def test_only_the_configuration_says_which_authorities_are_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`ca_file` alone counts: whoever could set SSL_CERT_FILE could stand between the bot and Telegram."""
    with certificates.serving(tmp_path) as (url, ca_file):
        async with Bot(TOKEN, api_base=url, ca_file=ca_file) as bot:
            assert (await bot.me()).id == certificates.ME["id"]
        monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
        async with Bot(TOKEN, api_base=url) as bot:
            with pytest.raises(ChatAway):
                await bot.me()


def test_nobody_is_told_the_keys_of_a_connection(tmp_path: Path) -> None:
    """Python itself would write them where SSLKEYLOGFILE says: with them, all that is sent can be read."""
    config, keys = tmp_path / "config.toml", tmp_path / "keys"
    with certificates.serving(tmp_path) as (url, ca_file):
        config.write_text(
            f'[telegram]\ntoken = "{TOKEN}"\nchat_id = 1\nusers = [1]\napi_base = "{url}"\nca_file = "{ca_file}"\n'
        )
        environ = os.environ | {"HOME": str(tmp_path), "SSLKEYLOGFILE": str(keys)}
        command = [sys.executable, "-m", "hermes", "doctor", "--config", str(config)]
        told = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert "of @hermes_bot" in told.stdout, told.stderr
    assert not keys.exists()


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), ("hunter2", "not a PEM file of certificate")])
def test_authorities_that_cannot_be_used_are_a_configuration_error(
    tmp_path: Path, content: str | None, why: str
) -> None:
    """It names the key and the file, and not what is in it."""
    ca_file = tmp_path / "ca.pem"
    if content is not None:
        ca_file.write_text(content)
    with pytest.raises(ConfigError, match=rf"telegram\.ca_file .*ca\.pem cannot be used \({why}") as caught:
        Bot(TOKEN, api_base="https://telegram.test", ca_file=ca_file)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


# refusals that are none


async def test_an_unchanged_edit_is_no_error(bot: Bot) -> None:
    """What the phone shows already need not be drawn; the library capitalises the words."""
    message_id = (await bot.send(ANN, SCREEN)).message_id
    await bot.edit(ANN, message_id, SCREEN)


async def test_a_late_or_second_acknowledgement_is_no_error(bot: Bot, server: RunningBotApi) -> None:
    """An acknowledgement works once and soon; after that nobody waits for it."""
    message_id = (await bot.send(ANN, SCREEN)).message_id
    server.phone.tap(message_id, "A", chat=ANN)
    updates = await bot.updates(None, 0)
    query_id = updates[-1]["callback_query"]["id"]
    await bot.answer(query_id, "x" * 300)
    await bot.answer(query_id)
    await bot.answer("12345", "never asked")
    assert [len(t.text) for t in server.phone.toasts() if t.tap_id == query_id] == [200]
    await bot.updates(updates[-1]["update_id"] + 1, 0)


async def test_deleting_what_is_gone_is_no_error(bot: Bot, server: RunningBotApi) -> None:
    """Twice is the same as once."""
    message_id = (await bot.send(ANN, SCREEN)).message_id
    await bot.delete(ANN, message_id)
    await bot.delete(ANN, message_id)
    assert server.phone.message(message_id, chat=ANN).deleted


# refusals


async def test_an_edit_of_a_deleted_message_says_that_it_vanished(bot: Bot, server: RunningBotApi) -> None:
    """A message deleted on the phone is posted again: so it must be known."""
    message_id = (await bot.send(ANN, SCREEN)).message_id
    server.phone.delete(message_id, chat=ANN)
    with pytest.raises(ChatRefused) as caught:
        await bot.edit(ANN, message_id, Screen("new"))
    assert vanished(caught.value)


async def test_an_edit_of_a_message_that_cannot_be_edited_says_that_it_vanished(bot: Bot) -> None:
    """A forced reply can never be edited; its place must be taken by another message."""
    message_id = (await bot.send(ANN, Screen("Type it", force_reply=True))).message_id
    with pytest.raises(ChatRefused) as caught:
        await bot.edit(ANN, message_id, Screen("new"))
    assert vanished(caught.value)


async def test_a_bot_that_was_blocked_says_so(bot: Bot, server: RunningBotApi) -> None:
    """403 is about the person, not about the message."""
    server.phone.block(chat=ANN)
    with pytest.raises(ChatRefused) as caught:
        await bot.send(ANN, SCREEN)
    server.phone.unblock(chat=ANN)
    assert caught.value.blocked
    assert not vanished(caught.value)


@pytest.mark.parametrize(
    "words", ["chat not found", "not enough rights to send text messages to the chat", "TOPIC_CLOSED"]
)
async def test_a_chat_that_is_gone_counts_as_blocked(words: str) -> None:
    """Telegram says it with 400; the words differ in case from what the library shows."""
    error = await refusal_of(says(400, f"Bad Request: {words}"))
    assert isinstance(error, ChatRefused)
    assert (error.blocked, error.reason) == (True, words.lower())


async def test_a_bad_request_is_not_tried_again() -> None:
    """The library derives it from its network error; it is permanent all the same."""
    error = await refusal_of(says(400, "Bad Request: message is too long"))
    assert isinstance(error, ChatRefused)
    assert (error.permanent, error.blocked, vanished(error)) == (True, False, False)


async def test_a_group_that_moved_names_its_new_id(server: RunningBotApi) -> None:
    """Switching topics on makes a supergroup of a group."""
    with running_botapi(chats=[Chat(GROUP, "Small")]) as api:
        new = api.phone.migrate(chat=GROUP)
        async with Bot(api.token, api_base=api.base_url) as bot:
            with pytest.raises(ChatRefused) as caught:
                await bot.send(GROUP, SCREEN)
    assert caught.value.moved_to == new


@pytest.mark.parametrize(("status", "words"), [(401, "Unauthorized"), (404, "Not Found")])
async def test_a_token_that_is_not_known_is_unauthorized(status: int, words: str) -> None:
    """404 is what a malformed token gets."""
    error = await refusal_of(says(status, words))
    assert is_unauthorized(error)
    assert not is_conflict(error)


async def test_a_conflict_tells_another_poller_from_a_webhook() -> None:
    """One can be ended by Hermes, the other only by a person."""
    rival = await refusal_of(says(409, "Conflict: terminated by other getUpdates request"))
    hook = await refusal_of(says(409, "Conflict: can't use getUpdates method while webhook is active"))
    assert [is_conflict(rival), is_webhook(rival)] == [True, False]
    assert [is_conflict(hook), is_webhook(hook)] == [True, True]


# away


async def test_a_429_says_how_long_to_wait() -> None:
    """Telegram's own number, in seconds."""
    error = await refusal_of(says(429, "Too Many Requests: retry after 7", retry_after=7))
    assert isinstance(error, ChatAway)
    assert (error.retry_after_s, error.permanent) == (7.0, False)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_server_error_is_away(status: int) -> None:
    """In Telegram's words or as a page of a gateway."""
    spoken = await refusal_of(says(status, "Internal"))
    page = await refusal_of(lambda _: httpx.Response(status, html="<html>sorry</html>"))
    assert [type(spoken), type(page)] == [ChatAway, ChatAway]
    assert "<html>" not in str(page)


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 407])
async def test_a_page_of_a_proxy_is_never_taken_for_telegrams_word(status: int) -> None:
    """A captive portal's 403 does not mean that the person blocked the bot."""
    error = await refusal_of(lambda _: httpx.Response(status, html="<html>please log in</html>"))
    assert type(error) is ChatAway
    assert "log in" not in str(error)


@pytest.mark.parametrize("body", [{}, [], {"ok": True}, {"ok": True, "result": []}, "yes"])
async def test_an_answer_of_another_shape_is_away(body: object) -> None:
    """JSON, but none of Telegram's."""
    assert isinstance(await refusal_of(lambda _: httpx.Response(200, json=body)), ChatAway)


async def test_updates_of_another_shape_are_away() -> None:
    """A list, or nothing."""
    with pytest.raises(ChatAway):
        await bot_of(lambda _: httpx.Response(200, json={"ok": True, "result": {}})).updates(None, 0)


def tree(root: type[Exception]) -> list[type[Any]]:
    """The class and all below it."""
    return [root, *(found for child in root.__subclasses__() for found in tree(child))]


NEVER_LEFT = {
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
}


@pytest.mark.parametrize("kind", tree(httpx.TransportError))
async def test_every_broken_connection_says_whether_the_message_may_have_arrived(
    kind: type[Exception],
) -> None:
    """Only what failed before the request left is certainly not on the phone."""
    error = await refusal_of(breaks(kind))
    assert type(error) is (ChatAway if kind in NEVER_LEFT else Undelivered)


@pytest.mark.parametrize("kind", [httpx.ReadTimeout, httpx.RemoteProtocolError, OSError])
async def test_what_can_be_done_twice_is_never_in_doubt(kind: type[Exception]) -> None:
    """An edit, a deletion, a poll: again is the same as once."""
    bot = bot_of(breaks(kind))
    for call in (bot.edit(ANN, 5, SCREEN), bot.delete(ANN, 5), bot.answer("1"), bot.updates(1, 0)):
        with pytest.raises(ChatAway) as caught:
            await call
        assert type(caught.value) is ChatAway


@pytest.mark.parametrize("action", ["cut", "cut_after", "hang"])
async def test_a_send_without_an_answer_may_have_arrived(server: RunningBotApi, action: FaultAction) -> None:
    """There is no way to tell, whether or not the message was posted."""
    server.phone.fault("sendMessage", action, hang_s=5.0)
    async with Bot(server.token, api_base=server.base_url, timeout_s=0.3) as bot:
        with pytest.raises(Undelivered):
            await bot.send(ANN, SCREEN)
    server.phone.clear_faults()


async def test_nobody_listening_is_certainly_not_delivered() -> None:
    """A refused connection carried nothing."""
    listening = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    async with Bot(TOKEN, api_base=f"http://127.0.0.1:{port}") as bot:
        with pytest.raises(ChatAway) as caught:
            await bot.send(ANN, SCREEN)
    assert type(caught.value) is ChatAway


# completeness


MADE_OF = {telegram.error.ChatMigrated: (-100123,), telegram.error.RetryAfter: (3,)}


@pytest.mark.parametrize("kind", tree(telegram.error.TelegramError))
def test_every_error_of_the_library_is_translated(kind: type[telegram.error.TelegramError]) -> None:
    """A new one in a new version must not get past."""
    arguments: tuple[Any, ...] = MADE_OF.get(kind, ("Bad Request: some words",))
    with pytest.raises(ChatError), translated("sendMessage", sending=True):
        raise kind(*arguments)


def test_no_error_of_the_library_is_defined_elsewhere() -> None:
    """The tree that the test above walks is whole once every module of the library is loaded."""
    before = {kind.__qualname__ for kind in tree(telegram.error.TelegramError)}
    for module in pkgutil.iter_modules(telegram.__path__, "telegram."):
        if module.name != "telegram.ext":
            importlib.import_module(module.name)
    assert {kind.__qualname__ for kind in tree(telegram.error.TelegramError)} == before
    assert set(telegram.error.__all__) <= before


# the token


FILE = httpx.Response(200, json={"ok": True, "result": {"message_id": 5, "file_path": "photos/file_1.jpg"}})
RESPONDS: dict[str, Respond] = {
    "fine": lambda _: httpx.Response(200, json={"ok": True, "result": {"message_id": 5}}),
    "unauthorized": says(401, "Unauthorized"),
    "not found": says(404, "Not Found"),
    "echo": lambda request: httpx.Response(502, html=f"<p>cannot fetch {request.url}</p>"),
    "spoken": lambda request: httpx.Response(
        400, json={"ok": False, "error_code": 400, "description": f"Bad Request: {request.url}"}
    ),
    "cut": breaks(httpx.ReadError),
    "timeout": breaks(httpx.ReadTimeout),
    "connect": breaks(httpx.ConnectError),
    "unknown": breaks(httpx.InvalidURL),
    "os": breaks(OSError),
    "file": lambda request: httpx.Response(502, html=str(request.url)) if "/file/" in request.url.path else FILE,
    "no file": lambda request: breaks(httpx.ReadError)(request) if "/file/" in request.url.path else FILE,
}


@pytest.fixture
def logs_as_they_were() -> Iterator[None]:
    """Give the loggers below their levels and filters back."""
    names = ("httpx", "httpcore", "telegram", None)
    kept = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    yield
    for logger, level in kept:
        logger.setLevel(level)
        for each in [logger, *logger.handlers]:
            each.filters.clear()


@pytest.mark.parametrize("respond", RESPONDS.values(), ids=RESPONDS)
@pytest.mark.parametrize("loud", [False, True], ids=["quiet", "httpx at debug"])
async def test_the_token_is_nowhere(
    respond: Respond, loud: bool, caplog: pytest.LogCaptureFixture, logs_as_they_were: None
) -> None:
    """Not in an error, its causes, a repr or a log line, whatever the level."""
    caplog.set_level(logging.DEBUG)
    caplog.handler.setFormatter(Lines())
    if loud:
        for name in ("httpx", "httpcore", "telegram"):
            caplog.set_level(logging.DEBUG, logger=name)
    bot = bot_of(respond)
    said = repr(bot)
    for call in (lambda: bot.send(ANN, SCREEN), lambda: bot.download("f1")):
        try:
            await call()
        except ChatError as error:
            said += repr(error) + str(error.args) + "".join(traceback.format_exception(error))
            logging.getLogger("hermes").exception("failed")
    assert caplog.records or not loud
    said += caplog.text
    assert SECRET.lower() not in said.lower()  # the library changes the case of what Telegram says


@pytest.mark.parametrize(
    "text", [TOKEN, TOKEN.replace(":", "%3A"), f"https://api.telegram.org/bot{TOKEN}/getMe", "/bot1:x/getMe"]
)
def test_whatever_looks_like_a_token_is_redacted(text: str) -> None:
    """Also in a URL, also escaped."""
    assert SECRET not in redact(text)
    assert "[token]" in redact(text)


def test_a_harmless_text_is_left_alone() -> None:
    """Times, paths and ids are no tokens."""
    text = "at 12:30:15 in /bottles/bot: user 1001, http://127.0.0.1:8081/x"
    assert redact(text) == text


# the wire


async def test_a_poll_asks_for_what_hermes_reads_and_keeps_what_waits() -> None:
    """The kinds are named each time, since Telegram remembers them; nothing pending is ever dropped."""
    asked: list[tuple[str, dict[str, str]]] = []
    patience_s = []

    def respond(request: httpx.Request) -> httpx.Response:
        form = dict(parse_qsl(request.content.decode()))
        asked.append((request.url.path.rpartition("/")[2], form))
        patience_s.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, json={"ok": True, "result": []})

    bot = bot_of(respond)
    await bot.delete_webhook()
    await bot.updates(7, 25)
    assert asked[0][0] == "deleteWebhook"
    assert asked[0][1].get("drop_pending_updates", "false") == "false"
    assert (asked[1][0], asked[1][1]["offset"], asked[1][1]["timeout"]) == ("getUpdates", "7", "25")
    assert patience_s == [10.0, 35.0]
    assert json.loads(asked[1][1]["allowed_updates"]) == [
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
    ]


# downloads


def serves(path: object, content: bytes = b"text", *, size: object = 4, status: int = 200) -> Respond:
    """A server whose getFile names this path, and that has this content there."""

    def respond(request: httpx.Request) -> httpx.Response:
        if "/file/" in request.url.path:
            return httpx.Response(status, content=content, headers={"location": "http://elsewhere.test/"})
        return httpx.Response(200, json={"ok": True, "result": {"file_path": path, "file_size": size}})

    return respond


@pytest.mark.parametrize("proxy", [None, "socks5://ann:hush@127.0.0.1:1"])
async def test_a_connection_that_is_refused_is_told_with_the_reason(proxy: str | None) -> None:
    """In the words of the system, without the password of a proxy."""
    async with Bot(TOKEN, api_base="http://127.0.0.1:1", proxy=proxy) as bot:
        with pytest.raises(ChatAway) as caught:
            await bot.me()
    assert str(caught.value) == "Telegram cannot be reached: Connection refused (getMe)"


async def test_a_certificate_that_nobody_knows_is_told(tmp_path: Path) -> None:
    """It may be that of a gateway, for which there is the key `ca_file`."""
    with certificates.serving(tmp_path) as (url, _):
        async with Bot(TOKEN, api_base=url) as bot:
            with pytest.raises(ChatAway) as caught:
                await bot.me()
    assert str(caught.value) == "Telegram cannot be reached: TLS, self-signed certificate (getMe)"


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        (socket.gaierror(-2, "Name or service not known"), ": Name or service not known"),
        (ExceptionGroup("both", [OSError(113, "[::1] of /bot"), OSError(111, "x")]), ": No route to host"),
        (OSError("All connection attempts failed"), ""),
        (ssl.SSLCertVerificationError(1, "bad"), ": TLS"),
    ],
)
async def test_why_there_is_no_connection(cause: Exception, why: str) -> None:
    """The reason is found below the errors of the libraries; nothing is quoted that may contain a URL."""

    def respond(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"no luck with {request.url}") from cause

    with pytest.raises(ChatAway) as caught:
        await bot_of(respond).me()
    assert str(caught.value) == f"Telegram cannot be reached{why} (getMe)"


async def test_a_proxy_that_refuses_is_named() -> None:
    """It may answer with any text, which is not repeated."""
    with pytest.raises(ChatAway) as caught:
        await bot_of(breaks(httpx.ProxyError)).me()
    assert str(caught.value) == "Telegram cannot be reached: the proxy refuses (getMe)"


async def test_a_file_is_downloaded_from_the_configured_server() -> None:
    """At the path that getFile has named."""
    asked: list[httpx.URL] = []

    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return serves("documents/file 1.txt".replace(" ", "_"))(request)

    assert await bot_of(respond).download("f1") == b"text"
    assert [url.host for url in asked] == ["telegram.test", "telegram.test"]
    assert asked[1].path == f"/file/bot{TOKEN}/documents/file_1.txt"


@pytest.mark.parametrize(
    "path",
    [
        "../bot/getUpdates",
        "documents/../../x",
        "documents/..",
        "/etc/passwd",
        "//elsewhere.test/x",
        "http://elsewhere.test/x",
        "a:b",
        "a?b",
        "a#b",
        "a%2e%2e/b",
        "a\\b",
        "a//b",
        "a/",
        "a\n",
        "",
        None,
        7,
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused(path: object) -> None:
    """No request leaves for it."""

    def respond(request: httpx.Request) -> httpx.Response:
        assert "/file/" not in request.url.path
        return serves(path)(request)

    with pytest.raises(ChatRefused, match="no path"):
        await bot_of(respond).download("f1")


@pytest.mark.parametrize(
    ("respond", "kind", "words"),
    [
        (serves("a", size=MOST_BYTES + 1), ChatRefused, "file is too big"),
        (serves("a", b"x" * (MOST_BYTES + 1), size=None), ChatRefused, "file is too big"),
        (serves("a", b"tex"), ChatAway, "broke off"),
        (serves("a", status=302), ChatAway, "download"),
        (serves("a", b'{"ok": false, "description": "Not Found"}', status=404), ChatAway, "does not give"),
        (serves("a", b"<html>", status=502), ChatAway, "download"),
        (says(400, "Bad Request: file is too big"), ChatRefused, "ile is too big"),
        (breaks(httpx.ReadError), ChatAway, "cannot be reached"),
    ],
)
async def test_what_may_be_wrong_with_a_download(respond: Respond, kind: type[ChatError], words: str) -> None:
    """What may work another time is no refusal; nothing of it names the token."""
    with pytest.raises(kind, match=words) as caught:
        await bot_of(respond).download("f1")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
