"""Anything that Telegram or an agent's server may say: understood, or one known error; nothing else changes."""

from __future__ import annotations

import asyncio
import json
import math
import re
import tempfile
from contextlib import aclosing
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
from hypothesis import example, given, strategies as st
from telegram.request import HTTPXRequest

from hermes.agents.opencode import wire
from hermes.agents.opencode.adapter import read_request
from hermes.agents.server import Lost, follow
from hermes.agents.wire import Data, decode
from hermes.chat.bot import Bot
from hermes.chat.incoming import read_update
from hermes.chat.outbox import Outbox
from hermes.chat.poll import Offset, Poller
from hermes.chat.screens.buttons import encode
from hermes.chat.screens.screen import Look, Screen
from hermes.errors import AgentAway, AgentError, ChatAway, ChatError, ChatRefused, NotSaved
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.listener.phone.chat_link import ChatLink
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.phone import PhoneSide
from hermes.listener.phone.polling import Connection
from hermes.listener.phone.updates import Updates
from hermes.model.actions import Arm, Pick
from hermes.model.ask import Ask, Source
from tests.agents.opencode.recorded import NEW, VERSIONS, names, recorded, server
from tests.asks import ANN, CHAT_ID, ask, question
from tests.at_once import at_once
from tests.books import a_book, no_records, taps_and_texts
from tests.outside import any_json, bytes_of, deep, mutated, nested, unhurried, written
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from hermes.agents.opencode.client import OpenCodeServer
    from hermes.listener.prompts import Prompts

HERE = "/home/dev/project"

# --- Telegram -----------------------------------------------------------------------------------------------------

PERSON = {"id": ANN.id, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}
CHAT = {"id": CHAT_ID, "type": "private", "first_name": "Ann"}
SHOWN = {"message_id": 500, "date": 1_757_000_000, "chat": CHAT, "from": {**PERSON, "is_bot": True}, "text": "Which?"}


FILE = {"file_id": "x", "file_unique_id": "y", "file_size": 5}


def tap_of(data: str, update_id: int = 5) -> dict[str, Any]:
    """A tap as Telegram sends it."""
    query = {"id": "77", "from": PERSON, "message": SHOWN, "chat_instance": "1", "data": data}
    return {"update_id": update_id, "callback_query": query}


def text_of(update_id: int = 6, **more: Any) -> dict[str, Any]:
    """A written message as Telegram sends it."""
    message = {"message_id": 501, "date": 1_757_000_001, "chat": CHAT, "from": PERSON, "text": "SQLite"}
    return {"update_id": update_id, "message": {**message, **more}}


def updates(entry_id: str) -> list[Any]:
    """Good updates of every kind, some of them about this entry."""
    gone = {"user": PERSON, "status": "kicked", "until_date": 0}
    was = {"user": PERSON, "status": "member"}
    change = {"chat": CHAT, "from": PERSON, "date": 1_757_000_002, "old_chat_member": was, "new_chat_member": gone}
    old = {"message_id": 500, "date": 0, "chat": CHAT}
    return [
        tap_of(encode(entry_id, 0, Pick(0, 1))),
        tap_of(encode(entry_id, 0, Arm(0))),
        tap_of("hold:go"),
        {"update_id": 5, "callback_query": {**tap_of(f"{entry_id}:0:p0.1.1")["callback_query"], "message": old}},
        text_of(),
        text_of(reply_to_message=SHOWN),
        text_of(text=None, photo=[{"file_id": "x", "file_unique_id": "y", "width": 1, "height": 1}], caption="hm"),
        text_of(text=None, document={**FILE, "file_name": "a.py", "mime_type": "text/plain"}, media_group_id="7"),
        text_of(text=None, voice={**FILE, "duration": 3}),
        {"update_id": 8, "edited_message": text_of(text=None, document=FILE, caption="hm")["message"]},
        text_of(migrate_to_chat_id=-100_500),
        text_of(migrate_from_chat_id=-500),
        {"update_id": 9, "my_chat_member": change},
    ]


@unhurried(400)
@given(mutated(updates("aaaa2222")) | any_json)
def test_any_update_is_read_or_a_value_error(raw: Any) -> None:
    """What is read has ids that are numbers and words that any file and any wire can carry."""
    try:
        read = read_update(raw, now=lambda: 1000.0)
    except ValueError:
        return
    fields = {name: getattr(read, name) for name in read.__slots__}
    for name, value in fields.items():
        if name.endswith("_id") or name in {"old", "new", "reply_to"}:
            assert name == "query_id" or value is None or (type(value) is int and abs(value) < 2**63)
        if isinstance(value, str):
            value.encode()
    if user := fields.get("user"):
        assert type(user.id) is int
        user.name.encode()


@pytest.mark.parametrize("levels", [50, 120, 300, 900, 3000])
def test_an_update_of_any_depth_is_read_or_a_value_error(levels: int) -> None:
    """Replies to replies to replies; lists in lists."""
    reply: dict[str, Any] = dict(SHOWN)
    for _ in range(levels):
        reply = {**SHOWN, "reply_to_message": reply}
    for raw in (text_of(reply_to_message=reply), text_of(text=deep(levels)), text_of(entities=deep(levels))):
        try:
            read_update(raw)
        except ValueError:
            continue


class Said:
    """What stands where the outbox stands: it takes what a wire would take."""

    async def arrived(self, chat_id: int, longest_s: float) -> None:
        """Return at once."""

    def answer(self, query_id: str, text: str = "") -> None:
        assert isinstance(query_id, str)
        (query_id + text).encode()

    async def send(self, chat_id: int, screen: Screen, *, reply_to: int | None = None, silent: bool = False) -> None:
        assert type(reply_to) is int
        assert not silent
        screen.text.encode()

    async def discard(self, chat_id: int, message_id: int) -> None:
        assert type(message_id) is int


class AtOnce(Background):
    """Does at once what could wait."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        with pytest.raises(StopIteration):
            work.send(None)


class Phone:
    """The phone side of a listener with one ask that is on the phone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = a_store(root, now=lambda: 1000.0)
        self.book = book = a_book(self.store)
        self.entry_id = at_once(book.create(ask(question(multiple=True)))).id
        self.aside: list[object] = []
        outbox, look = cast("Outbox", Said()), Look(tz=UTC, group=False, context_chars=600)
        self.memory = Memory(self.store, at_once(self.store.load_chat(7)))
        link = ChatLink(book, no_records(book), self.memory)
        messenger = Messenger(book, outbox, AtOnce(), link, machine="laptop")
        taps, texts = taps_and_texts(book, outbox, look, messenger)
        self.side = PhoneSide(book, outbox, taps, texts, messenger, bot_id=7, users=frozenset({ANN.id}))

    def content(self) -> dict[str, bytes]:
        """What is kept of open asks and of the chat."""
        return {path.name: path.read_bytes() for path in self.root.rglob("*.json")}


@unhurried(150)
@given(st.data())
def test_any_update_is_handled_or_changes_nothing(data: st.DataObject) -> None:
    """What was saved of it can be read again; what was refused left every file as it was."""
    with tempfile.TemporaryDirectory() as made:
        phone = Phone(Path(made))
        before = phone.content()
        try:
            asyncio.run(phone.side.handle(data.draw(mutated(updates(phone.entry_id)))))
        except (ValueError, NotSaved):
            assert phone.content() == before
        assert [one.id for one in at_once(phone.store.open())] == [phone.entry_id]
        assert phone.store.home.quarantined() == []
        assert type(phone.book.chat_id) is int


class Queue:
    """What stands where the bot stands: it gives these answers to getUpdates, the last one for ever."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = list(answers)

    async def delete_webhook(self) -> None:
        """Nothing to do."""

    async def updates(self, offset: int | None, _: float) -> list[Any]:
        str(offset)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Beside:
    """What stands beside the loop over updates."""

    def __init__(self) -> None:
        self.handled: list[int] = []
        self.aside: list[bytes] = []
        self.store = self.home = self

    async def lock_first(self, updates: list[dict[str, Any]]) -> None:
        """None of them locks the phone."""

    async def handle(self, raw: dict[str, Any]) -> None:
        self.handled.append(read_update(raw).update_id)

    def set_aside(self, raw: dict[str, Any], *, is_kept: bool) -> None:
        assert is_kept
        read_update(raw)

    def note_offset(self, offset: Offset) -> None:
        json.dumps(offset.next_id)

    def quarantine(self, _: str, data: bytes, __: str) -> None:
        self.aside.append(data)

    async def polled(self, at_s: float) -> None:
        """Nothing is noted."""

    @staticmethod
    def now() -> float:
        return 1000.0


def polled(*answers: list[Any]) -> tuple[list[int], list[bytes]]:
    """Poll three times; the update ids that were handled, and what was put aside. Nothing may be raised."""
    beside = Beside()
    poller = Poller(cast("Bot", Queue(*answers)), None, now=beside.now)
    book, phone, connection = cast("Entries", beside), cast("PhoneSide", beside), cast("Connection", beside)
    loop = Updates(poller, book, cast("Prompts", beside), phone, connection, sleep=asyncio.sleep)

    async def three() -> None:
        for _ in range(3):
            await loop.step()

    asyncio.run(three())
    return beside.handled, beside.aside


@unhurried(150)
@given(mutated(updates("aaaa2222")) | any_json)
@example({"update_id": 10**4300 - 1})
@example({"update_id": True, "message": []})
def test_any_update_is_handled_or_put_aside_and_the_next_one_is_heard(raw: Any) -> None:
    """Once each, whatever it is."""
    handled, aside = polled([raw, text_of(7777)])
    assert 7777 in handled
    assert len(handled) + len(aside) == (2 if raw != text_of(7777) else 1)


@pytest.mark.parametrize(
    "raw", [deep(3000), {"message": deep(3000)}, {"update_id": 5, "message": deep(3000)}], ids=range(3)
)
def test_no_depth_makes_the_poll_loop_deaf(raw: Any) -> None:
    """Too deep to be read, or even to be written down."""
    handled, aside = polled([raw, text_of(7777)])
    assert handled == [7777]
    assert len(aside) == 1


@unhurried(120)
@given(
    bytes_of([{"ok": True, "result": updates("aaaa2222")}, {"ok": False, "error_code": 429, "description": "Too Many",
              "parameters": {"retry_after": 3, "migrate_to_chat_id": -5}}]),
    st.sampled_from([200, 200, 200, 302, 400, 401, 403, 404, 409, 429, 500]),
)  # fmt: skip
@example(nested(100_000), 200)
@example(nested(100_000), 400)
@example(b'{"ok":false,"parameters":{"migrate_to_chat_id":"x"}}', 400)
@example(b'{"ok":false,"parameters":{"retry_after":-5}}', 429)
@example(b'{"ok":false,"parameters":{"retry_after":NaN}}', 429)
@example(b'{"ok":false,"parameters":{"retry_after":1e300}}', 429)
@example(b'{"ok":false,"parameters":{"retry_after":[]}}', 429)
@example(b'{"ok":false,"parameters":{"retry_after":[null]}}', 429)
def test_any_answer_of_telegrams_is_a_list_or_a_chat_error(body: bytes, status: int) -> None:
    """Whichever call it answers; the times and ids in an error are numbers."""
    request = HTTPXRequest(
        httpx_kwargs={"transport": httpx.MockTransport(lambda _: httpx.Response(status, content=body))}
    )
    bot = Bot("1:token", api_base="https://telegram.test", request=request)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: bot.updates(None, 0),
        lambda: bot.send(7, Screen("?", (), ())),
        lambda: bot.edit(7, 8, Screen("?", (), ())),
        lambda: bot.answer("77", "?"),
        bot.me,
        bot.delete_webhook,
    ]

    async def each() -> None:
        for call in calls:
            try:
                await call()
            except ChatAway as error:
                assert error.retry_after_s is None or 1 <= error.retry_after_s < math.inf  # noqa: PT017
            except ChatRefused as error:
                assert error.moved_to is None or type(error.moved_to) is int  # noqa: PT017
            except ChatError:
                continue

    asyncio.run(each())


# --- an agent's server --------------------------------------------------------------------------------------------

SESSION, MESSAGE = recorded(NEW, "http", "session")["body"], recorded(NEW, "http", "messages")["body"]
BODIES: list[Any] = [
    {"healthy": True, "version": "1.18.33"},
    *(recorded(version, "http", name)["body"] for version in VERSIONS for name in names(version, "http")),
    [SESSION],
    [{"worktree": HERE}],
    MESSAGE[0],
    {"data": recorded(NEW, "http", "questions")["body"]},
    {"data": {"content": [{"type": "tool", "id": "call_1", "name": "question", "state": {"status": "completed"}}]}},
    True,
]
TYPES = ["application/json", "application/json", "application/json; charset=zlib", "text/html", ""]


def asked() -> Ask:
    """The recorded question, as this server lists it."""
    (request,) = recorded(NEW, "http", "questions")["body"]
    return read_request(request, Source("opencode", "laptop", "", directory=HERE, server="desk"))


GOOD: dict[str, Any] = {
    "/global/health": {"healthy": True, "version": "1.18.33"},
    "/question": recorded(NEW, "http", "questions")["body"],
    "/session/status": {asked().source.session_id: {"type": "busy"}},
    "/session/[^/]+/message/[^/]+": MESSAGE[0],
    "/session/[^/]+/message": MESSAGE,
    "/session/[^/]+": SESSION,
    "/project": [{"worktree": HERE}],
    "(/experimental)?/session": [SESSION],
}


def good(path: str) -> Any:
    """What a healthy server answers to this path."""
    return next((body for pattern, body in GOOD.items() if re.fullmatch(pattern, path)), True)


CALLS: list[Callable[[OpenCodeServer], Awaitable[object]]] = [
    lambda desk: desk.health(),
    lambda desk: desk.directories(1e9),
    lambda desk: desk.pending(HERE),
    lambda desk: desk.busy(HERE),
    lambda desk: desk.verdict(asked()),
    lambda desk: desk.verdict(unanswerable()),
    lambda desk: desk.reply(asked(), (("SQLite",),)),
    lambda desk: desk.reject(asked()),
]


def unanswerable() -> Ask:
    """A question of the second engine."""
    (request,) = recorded(NEW, "http", "questions")["body"]
    return read_request(request, asked().source, answerable=False)


def called(answer: Callable[[httpx.Request], httpx.Response]) -> None:
    """Make every call there is; each comes back or raises an AgentError, and `context` never raises."""

    async def each() -> None:
        async with server(answer) as desk:
            for call in CALLS:
                try:
                    await call(desk)
                except AgentError as error:
                    str(error).encode()
            (await desk.context(asked())).source.last_text.encode()

    asyncio.run(each())


@unhurried(80)
@given(
    bytes_of(BODIES),
    st.sampled_from([200, 200, 200, 200, 201, 204, 302, 400, 401, 404, 500]),
    st.sampled_from(TYPES),
    st.sampled_from(["", "", "", "gzip", "br"]),
)
def test_any_answer_of_a_server_is_a_value_or_an_agent_error(body: bytes, status: int, kind: str, coding: str) -> None:
    """Whichever call it answers."""
    headers = {"content-type": kind} | ({"content-encoding": coding} if coding else {})
    called(lambda _: httpx.Response(status, headers=headers, stream=httpx.ByteStream(body)))


@unhurried(150)
@given(st.data())
def test_a_server_may_be_odd_in_one_answer_alone(data: st.DataObject) -> None:
    """All others are as they should be, so that the odd one is looked at closely."""
    odd = data.draw(st.sampled_from(["health", "question", "status", "message", "session", "project"]))

    def answer(request: httpx.Request) -> httpx.Response:
        value = good(request.url.path)
        if request.url.path.rstrip("/").endswith(odd) or (odd in {"message", "session"} and odd in request.url.path):
            value = data.draw(mutated([value]))
        return httpx.Response(200, headers={"content-type": "application/json"}, content=json.dumps(value))

    called(answer)


@pytest.mark.parametrize("levels", [300, 600, 900, 930, 960, 975, 985, 990, 2000, 100_000])
def test_no_depth_is_too_much_for_the_client(levels: int) -> None:
    """Too deep for one thing that looks at it, or for all."""
    state = b'{"status":"error","error":%s,"metadata":{"answers":%s}}' % (nested(levels), nested(levels))
    call = json.dumps(asked().source.call_id).encode()
    part = b'{"type":"tool","tool":"question","callID":%s,"id":%s,"name":"question","state":%s}' % (call, call, state)
    odd = b'{"info":{"id":"m","role":"assistant"},"parts":[%s],"data":{"content":[%s]}}' % (part, part)

    def answer(request: httpx.Request) -> httpx.Response:
        listed = request.url.path.endswith("question")
        body = json.dumps({"data": []} if "/api/" in request.url.path else []).encode() if listed else odd
        body = body if listed or "message/" in request.url.path else json.dumps(good(request.url.path)).encode()
        return httpx.Response(200, headers={"content-type": "application/json"}, content=body)

    called(answer)


def test_a_version_of_any_length_is_compared() -> None:
    """Python itself refuses to make a number of so many digits."""
    body = {"healthy": True, "version": "9" * 5000 + ".1"}

    async def directories() -> tuple[str, ...]:
        async with server({"GET /global/health": body, "GET /experimental/session": [SESSION]}) as desk:
            return await desk.directories(0.7e9)

    assert asyncio.run(directories()) == (SESSION["directory"],)


KINDS: list[Any] = [
    wire.Health, list[wire.Session], list[wire.Project], dict[str, wire.Status], wire.Message, list[wire.Message],
    Data[list[Any]], Data[wire.V2Content], wire.Event, list[Any],
]  # fmt: skip


@unhurried(200)
@given(st.sampled_from(KINDS), bytes_of([*BODIES, *(recorded(NEW, "events", name) for name in names(NEW, "events"))]))
def test_any_bytes_are_of_the_wanted_shape_or_a_value_error(kind: Any, data: bytes) -> None:
    """The sentence quotes no more than the name of a place."""
    try:
        decode(kind, data)
    except ValueError as error:
        str(error).encode()


# --- the event stream ---------------------------------------------------------------------------------------------

EVENTS: list[Any] = [recorded(version, "events", name) for version in VERSIONS for name in names(version, "events")]
LAST = recorded(NEW, "events", "question.asked-1q")


def heard(content: bytes, kind: str = "text/event-stream") -> list[str | None]:
    """Follow a stream of these bytes to its end; the requests that were heard of."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/global/health":
            return httpx.Response(200, json={"version": NEW})
        return httpx.Response(200, headers={b"content-type": kind.encode()}, stream=httpx.ByteStream(content))

    async def told() -> list[str | None]:
        found = []
        async with server(answer) as desk, aclosing(follow(desk.name, desk.listen)) as stream:
            async for one in stream:
                if isinstance(one, Lost):
                    break
                ask_of = getattr(getattr(one, "signal", None), "ask", None)
                found.append(ask_of.source.request_id if ask_of else None)
        return found

    return asyncio.run(told())


def line_of(one: Any) -> bytes:
    """An event as a line of the stream."""
    return b"data: " + json.dumps(one).encode() + b"\n\n"


@unhurried(200)
@given(st.lists(written(mutated(EVENTS)) | written(any_json) | st.binary(max_size=60), min_size=1, max_size=4))
@example([nested(100_000)])
@example([b"\nretry: " + b"9" * 5000, b"\nid: \0", b"\nevent: x"])
@example([b'{"payload":{"type":"session.status","properties":{"sessionID":"ses_1","status":{"type":["busy"]}}}}'])
def test_any_lines_of_a_stream_are_passed_over_or_heard(lines: list[bytes]) -> None:
    """And what follows them is heard."""
    stream = b"".join(b"data: " + line.replace(b"\r", b"").replace(b"\n", b" ") + b"\n\n" for line in lines)
    assert heard(stream + line_of(LAST))[-1] == LAST["payload"]["properties"]["id"]


@unhurried(60)
@given(
    st.binary(max_size=200),
    st.sampled_from(["", "; charset=hex", "; charset=undefined", "; charset=utf-16", "; charset=é"]),
)
def test_any_bytes_are_a_stream_that_ends(content: bytes, charset: str) -> None:
    """Whatever its header calls them: a stream of events is UTF-8."""
    cut = b"\n\n" + line_of(LAST)
    assert heard(content + cut, f"text/event-stream{charset}")[-1] == LAST["payload"]["properties"]["id"]


def test_what_is_no_stream_is_lost() -> None:
    """Said once as an AgentError."""
    assert heard(b"<html>", "text/html") == []
    with pytest.raises(AgentAway):
        raise AgentAway
