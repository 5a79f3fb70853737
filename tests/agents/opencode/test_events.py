"""The event stream: what is heard, what is remembered, what is passed over, and how it comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from hermes.agents.http import Api
from hermes.agents.opencode import wire
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode.events import signal_of
from hermes.agents.opencode.stream_memory import StreamMemory
from hermes.agents.server import Connected, Followed, Heard, Lost, follow
from hermes.agents.wire import shaped
from hermes.errors import AgentAway, AgentRefused, Unauthorized
from hermes.model.ask import Source
from hermes.model.signals import Asked, Busy, Dismissed, Quiet, Replied, Retrying
from tests.agents.opencode.recorded import NEW, VERSIONS, Json, names, no_sleep, recorded, server

BOTH = pytest.mark.parametrize("version", VERSIONS)
HERE = "/home/dev/project"


def event(kind: str, **properties: Any) -> wire.Event:
    """Return an event as it comes off the wire."""
    return shaped(wire.Event, {"directory": HERE, "payload": {"type": kind, "properties": properties}})


def known(version: str, name: str) -> wire.Event:
    """Return a recorded event as it comes off the wire."""
    return shaped(wire.Event, recorded(version, "events", name))


# one event


@BOTH
async def test_each_recorded_event_says_what_it_says(version: str) -> None:
    """All that was recorded: signals for what concerns a question, nothing for the rest."""
    expected = {
        "question.asked": Asked,
        "question.v2.asked": Asked,
        "question.replied": Replied,
        "question.v2.replied": Replied,
        "question.rejected": Dismissed,
        "question.v2.rejected": Dismissed,
        "session.idle": Quiet,
        "session.error": Quiet,
        "session.deleted": Quiet,
    }
    async with server({}) as desk:
        for name in names(version, "events"):
            one = known(version, name)
            kind = {"busy": Busy, "retry": Retrying}.get(name.rpartition("session.status-")[2], expected.get(one.type))
            signal = signal_of(one, desk.origin(one.directory), desk.memory)
            assert (type(signal) if signal else None) == kind, name


@BOTH
async def test_an_asked_question_knows_server_and_directory(version: str) -> None:
    """Contract 3: the envelope of /global/event has the directory."""
    async with server({}) as desk:
        one = known(version, "question.asked-1q")
        signal = signal_of(one, desk.origin(one.directory), desk.memory)
    assert isinstance(signal, Asked)
    source = signal.ask.source
    assert (source.server, source.machine, source.directory) == ("desk", "laptop", HERE)


def test_twins_of_the_sync_protocol_are_nothing_new() -> None:
    """Contract 3: new interleaves `payload.type:"sync"` duplicates."""
    memory = StreamMemory()
    twin = known(NEW, "sync")
    memory.note(twin)
    assert twin.type == "sync"
    assert memory.info("ses_e07c19d4affe8xx05mjLfdUDRw") is None


# what is remembered


def asking(**changes: str) -> Source:
    """Return the source of the ask that `told` tells of."""
    ids = {"session_id": "ses_1", "call_id": "call_1", "message_id": "msg_1"} | changes
    return Source("opencode", "laptop", **ids)


def message(identity: str = "msg_1", created: int = 10, role: str = "assistant") -> wire.Event:
    """Return a message that begins, or goes on."""
    info = {"id": identity, "sessionID": "ses_1", "role": role, "time": {"created": created}}
    return event("message.updated", info=info)


def text(words: str, identity: str = "prt_1", message_id: str = "msg_1") -> wire.Event:
    """Return a part of a message with its whole text so far, as both versions send it."""
    part = {"id": identity, "sessionID": "ses_1", "messageID": message_id, "type": "text", "text": words}
    return event("message.part.updated", part=part)


def delta(words: str, identity: str = "prt_1") -> wire.Event:
    """Return more of a part, as new sends it."""
    ids = {"sessionID": "ses_1", "messageID": "msg_1", "partID": identity}
    return event("message.part.delta", **ids, field="text", delta=words)


def call(message_id: str = "msg_1") -> wire.Event:
    """Return the tool part that asks."""
    part = {"sessionID": "ses_1", "messageID": message_id, "type": "tool", "callID": "call_1", "tool": "question"}
    return event("message.part.updated", part=part)


def told(*all_of: wire.Event, **limits: int) -> StreamMemory:
    """Return what is remembered of these events."""
    memory = StreamMemory(**limits)
    for one in all_of:
        memory.note(one)
    return memory


@BOTH
def test_recorded_titles_are_remembered(version: str) -> None:
    """session.created and session.updated carry title and parent; deleted ones are forgotten."""
    memory = told(known(version, "session.created"))
    created = recorded(version, "events", "session.created")["payload"]["properties"]["info"]
    info = memory.info(created["id"])
    assert info is not None
    assert (info.title, info.parent_id, info.directory) == ("T one", None, HERE)
    memory.note(event("session.updated", info=created | {"title": "Better", "parentID": "ses_0"}))
    info = memory.info(created["id"])
    assert info is not None
    assert (info.title, info.parent_id) == ("Better", "ses_0")
    memory.note(event("session.deleted", info=created))
    assert memory.info(created["id"]) is None


def test_last_words_are_those_of_the_message_that_asks() -> None:
    """All its texts; not what a person wrote, nor what other messages said."""
    memory = told(
        message("msg_0", 5), text("Before.", "prt_0", "msg_0"),
        message(), text("I looked. "), text("Two ways:", "prt_2"), call(),
        message("msg_u", 20, "user"), text("what?", "prt_3", "msg_u"),
    )  # fmt: skip
    assert memory.last_text(asking()) == "I looked. \n\nTwo ways:"


def test_new_tells_words_by_their_deltas() -> None:
    """message.part.delta (new only); thoughts come the same way and are no words."""
    memory = told(message(), text(""), delta("I "), delta("thought", "prt_t"), delta("ask."), call())
    assert memory.last_text(asking()) == "I ask."
    recording = known(NEW, "message.part.delta")
    assert shaped(wire.Delta, recording.properties).delta == "I "


def test_words_of_an_earlier_message_are_the_last_where_the_asking_one_has_none() -> None:
    """The model said what it found in one step, and asks in the next."""
    memory = told(message("msg_0", 5), text("I looked.", "prt_0", "msg_0"), message(), call())
    assert memory.last_text(asking()) == "I looked."


def test_words_are_not_known_before_the_call_is() -> None:
    """Contract 3: in old question.asked comes first; its words would be cut short."""
    memory = told(message(), text("I am still tal"))
    assert memory.last_text(asking()) is None
    memory.note(call())
    assert memory.last_text(asking()) == "I am still tal"
    assert memory.last_text(asking(message_id="msg_9")) is None
    assert memory.last_text(asking(session_id="ses_9")) is None


def test_old_messages_that_are_told_again_change_nothing() -> None:
    """Both versions repeat message.updated, also for messages that ended long ago."""
    memory = told(message(), text("Mine."), call(), message(), message("msg_0", 5))
    assert memory.last_text(asking()) == "Mine."


def test_memory_is_capped() -> None:
    """So many sessions, so much of each text: the newest, the end."""
    infos = [event("session.created", info={"id": f"ses_{number}"}) for number in range(5)]
    memory = told(*infos, message(), text("x" * 50 + "end"), delta("!"), call(), limit=3, longest=5)
    assert [memory.info(f"ses_{number}") is not None for number in range(5)] == [False, False, True, True, True]
    assert memory.last_text(asking()) == "xend!"


def test_replies_are_remembered_by_request() -> None:
    """They tell whose answers a part without answers ended with (see proof.py); they prove nothing alone."""
    memory = StreamMemory()
    memory.note_reply(Replied("que_1", "s", (("A",), ())))
    assert memory.reply("que_1") == (("A",), ())
    assert memory.reply("que_2") is None


async def test_a_question_on_the_stream_needs_no_other_request() -> None:
    """Titles and words are there already; nothing is asked for them."""
    seen: list[httpx.Request] = []
    async with server({}, seen) as desk:
        for one in (
            event("session.created", info={"id": "ses_0", "title": "Root"}),
            event("session.created", info={"id": "ses_1", "title": "Child", "parentID": "ses_0"}),
            message(), text("Words."), call(),
        ):  # fmt: skip
            desk.memory.note(one)
        one = event(
            "question.asked",
            id="que_1", sessionID="ses_1", questions=[], tool={"messageID": "msg_1", "callID": "call_1"},
        )  # fmt: skip
        signal = signal_of(one, desk.origin(one.directory), desk.memory)
        assert isinstance(signal, Asked)
        source = (await desk.context(signal.ask)).source
    assert (source.session_title, source.root_title, source.last_text) == ("Child", "Root", "Words.")
    assert seen == []


# the stream


Chunks = list[str | Exception]


class Stream(httpx.AsyncByteStream):
    """A body that says these chunks, and ends; an exception among them cuts it."""

    def __init__(self, chunks: Chunks) -> None:
        self.chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk.encode()


def data(one: Json) -> str:
    """Return an event as a line of the stream."""
    return f"data: {json.dumps(one, ensure_ascii=False)}\n\n"


CONNECTED = data({"payload": {"type": "server.connected", "properties": {}}})
ASKED = recorded(NEW, "events", "question.asked-1q")


class Life:
    """A server whose event stream goes through these lives: chunks of a body, a response, an exception."""

    def __init__(self, *lives: Chunks | httpx.Response | Exception) -> None:
        self.lives = list(lives)
        self.pauses: list[float] = []
        self.now_s = 0.0
        self.lasts_s = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer health always, and the stream with its next life."""
        if request.url.path == "/global/health":
            return httpx.Response(200, json={"healthy": True, "version": NEW})
        if not self.lives:
            raise httpx.ConnectError("no more lives")
        self.now_s += self.lasts_s
        life = self.lives.pop(0)
        if isinstance(life, list):
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream(life))
        if isinstance(life, Exception):
            raise life
        return life

    async def sleep(self, pause_s: float) -> None:
        """Pass no time, but note it."""
        self.pauses.append(pause_s)

    async def follow(self, count: int) -> list[Followed]:
        """Return the first things that a follower hears."""
        heard: list[Followed] = []
        async with server(self) as desk:
            stream = follow(desk.name, desk.listen, sleep=self.sleep, clock=lambda: self.now_s)
            async with contextlib.aclosing(stream):
                async for one in stream:
                    heard.append(one)
                    if len(heard) == count:
                        break
        return heard


async def test_a_stream_is_followed_and_found_again() -> None:
    """Connected, what is said, lost, connected: the follower lists after each Connected (no replay)."""
    life = Life([CONNECTED, data(ASKED)], [CONNECTED])
    first, heard, lost, again = await life.follow(4)
    assert first == again == Connected(NEW)
    assert isinstance(heard, Heard)
    assert isinstance(heard.signal, Asked)
    assert heard.directory == HERE
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, AgentAway)


async def test_a_cut_is_told_once_and_pauses_grow() -> None:
    """0.2 s to 15 s; a connection that lasted starts them anew."""
    life = Life(*[httpx.ConnectError("refused")] * 9, [CONNECTED])
    lost, back = await life.follow(2)
    assert isinstance(lost, Lost)
    assert back == Connected(NEW)
    assert life.pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15, 15]
    life = Life([CONNECTED], [CONNECTED], [CONNECTED])
    life.lasts_s = 60
    await life.follow(5)
    assert life.pauses == [0.2, 0.2]


async def test_a_server_that_drops_each_connection_is_not_hammered() -> None:
    """That it let us in is no reason to begin with short pauses again."""
    lives: list[Chunks] = [[CONNECTED]] * 5
    life = Life(*lives)
    await life.follow(9)
    assert life.pauses == [0.2, 0.4, 0.8, 1.6]


async def test_another_reason_is_told_again() -> None:
    """Nobody there, then a wrong password, then no OpenCode at all: each once."""
    page = httpx.Response(200, html="<!doctype html>")
    life = Life(httpx.ConnectError("x"), httpx.ConnectError("x"), httpx.Response(401), httpx.Response(401), page)
    lost = await life.follow(3)
    assert [type(one.error) for one in lost if isinstance(one, Lost)] == [AgentAway, Unauthorized, AgentRefused]


async def test_silence_is_a_cut() -> None:
    """No heartbeat for 45 s: httpx times out, and the follower subscribes anew."""
    life = Life([CONNECTED, httpx.ReadTimeout("silent")], [CONNECTED])
    first, lost, again = await life.follow(3)
    assert first == again
    assert isinstance(lost, Lost)
    assert "no answer in time" in str(lost.error)


async def test_damage_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be understood is logged, without its words, and the next event counts."""
    odd = {"directory": HERE, "payload": {"type": "question.asked", "properties": {"id": "que_secret"}}}
    unknown = {"directory": HERE, "payload": {"type": "never.heard", "properties": {"x": 1}}}
    info = {"payload": {"type": "session.updated", "properties": {"info": {"title": "que_secret"}}}}
    chunks: Chunks = [CONNECTED, ": comment\n\n", "data: {no json que_secret\n\n", "data: []\n\n"]
    chunks += [data(odd), data(unknown), data(info), data(ASKED)]
    first, heard = await Life(chunks).follow(2)
    assert first == Connected(NEW)
    assert isinstance(heard, Heard)
    assert caplog.text.count("is ignored") == 4
    assert "que_secret" not in caplog.text


async def test_an_event_may_come_in_pieces_and_hold_strange_line_ends() -> None:
    """U+2028 and U+0085 end no line of an event stream, though they end lines of text (seen on both versions)."""
    strange = json.loads(json.dumps(ASKED))
    strange["payload"]["properties"]["questions"][0]["question"] = "a\u2028b\u0085c\u000bd"
    whole = data(strange)
    pieces: Chunks = [CONNECTED, *(whole[place : place + 7] for place in range(0, len(whole), 7))]
    _, heard = await Life(pieces).follow(2)
    assert isinstance(heard, Heard)
    assert isinstance(heard.signal, Asked)
    assert heard.signal.ask.questions[0].text == "a\u2028b\u0085c\u000bd"


@pytest.mark.parametrize("piece", ["a" * 100, "\ndata: a", "\r\ndata: a", ": comment\n"])
async def test_an_event_without_an_end_is_cut(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger at the port of OpenCode fills no memory: an event has a limit, as an answer has."""
    monkeypatch.setattr("hermes.agents.http._LARGEST", 10_000)
    _, lost = await Life([CONNECTED, "data: ", *[piece] * 2_000]).follow(2)
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, AgentRefused)
    assert "GET /global/event: an event of more than" in str(lost.error)


@pytest.mark.parametrize("length", [7, 10_000])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_the_limit_is_for_one_event(line_end: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream may be as long as it likes, in pieces of any length."""
    monkeypatch.setattr("hermes.agents.http._LARGEST", 2 * len(data(ASKED)))
    whole = (CONNECTED + data(ASKED) * 50).replace("\n", line_end)
    pieces: Chunks = [whole[place : place + length] for place in range(0, len(whole), length)]
    heard = await Life(pieces).follow(50)
    assert all(isinstance(one, Heard) for one in heard[1:])


async def test_a_compressed_stream_is_refused() -> None:
    """Its few bytes may become many, so Hermes asks for a plain one."""
    asked: list[str] = []

    def compressed(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["accept-encoding"])
        headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
        return httpx.Response(200, headers=headers, stream=Stream([]))

    async with server(compressed) as desk:
        with pytest.raises(AgentRefused, match="a compressed event stream"):
            async with desk.api.listening():
                pass
    assert asked == ["identity"]


async def test_a_server_that_is_not_ready_is_asked_shortly() -> None:
    """Contract 10.1: new never answers what arrives between bind and "listening on"; health is probed first."""
    timeouts: list[Json] = []

    def early(request: httpx.Request) -> httpx.Response:
        timeouts.append(request.extensions["timeout"])
        raise httpx.ReadTimeout("swallowed")

    async with server(early) as desk:
        stream = follow(desk.name, desk.listen, sleep=no_sleep)
        async with contextlib.aclosing(stream):
            assert isinstance(await anext(stream), Lost)
    assert max(timeouts[0].values()) <= 1


async def test_a_stream_whose_answer_never_begins_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the stream itself, whose own silence may last 45 s."""
    monkeypatch.setattr("hermes.agents.http._HEADERS_S", 0.01)

    async def never(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError("nobody ends this")

    transport = httpx.MockTransport(never)
    async with OpenCodeServer(Api("desk", "http://desk.test", transport=transport), machine="m") as desk:
        with pytest.raises(AgentAway, match="no answer in time"):
            async with desk.api.listening():
                pass


async def test_following_ends_when_it_is_cancelled() -> None:
    """Wherever it is: nothing is left over, no warning."""
    began = asyncio.Event()

    async def sleep(_: float) -> None:
        began.set()
        await asyncio.Event().wait()

    async def run() -> None:
        async with server(Life()) as desk, contextlib.aclosing(follow(desk.name, desk.listen, sleep=sleep)) as stream:
            async for _ in stream:
                pass

    task = asyncio.create_task(run())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
