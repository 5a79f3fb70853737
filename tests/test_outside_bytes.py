"""Any bytes where a hook, a file or a person's editor puts them: understood, or one known error; nothing else changes.

What a network brings stands in test_outside_talk.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, strategies as st

from hermes.agents.opencode import adapter
from hermes.agents.registry import ADAPTERS
from hermes.chat.screens.buttons import decode, encode
from hermes.chat.screens.main_message import main
from hermes.chat.screens.screen import Look
from hermes.config.reading import load
from hermes.config.settings import Config, Matching
from hermes.core import dialog
from hermes.core.permission_rules import Rules
from hermes.errors import ConfigError, Missing, PayloadError, TooNew, Unreadable
from hermes.hook import run, spool
from hermes.listener.agent.errands import Errands
from hermes.listener.agent.hooks import WaitingHooks, wait_id
from hermes.listener.agent.inbox import Inbox
from hermes.listener.agent.intake import Intake
from hermes.model.chat_memory import ChatMemory, Topic
from hermes.model.entry import Side, Timing
from hermes.model.signals import Announced, Asked
from hermes.storage import process_lock
from hermes.storage.codec import CHATS, ENTRIES
from tests.agents.opencode.recorded import VERSIONS, hook as told, names, recorded
from tests.asks import ask, entry, question
from tests.at_once import all_of, at_once
from tests.books import a_book, no_records
from tests.listening import a_request
from tests.outside import LEVELS, any_json, bytes_of, deep, mutated, nested, unhurried, written
from tests.storage.store_process import an_entry
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Iterator

PAYLOADS: list[Any] = [
    told(version, event, title="Fix login", rootTitle="", lastText="I looked.")
    for version in VERSIONS
    for event in names(version, "events")
    if {"directory", "payload"} <= recorded(version, "events", event).keys()
    and "properties" in recorded(version, "events", event)["payload"]
] + [recorded(version, "hooks", name) for version in VERSIONS for name in names(version, "hooks")]
RECORDS: list[Any] = [spool.record("opencode", payload) for payload in PAYLOADS] + [
    spool.record("opencode", {"type": word, "waitID": "0123456789abcdef"}) for word in ("receipt", "waiter.gone")
]
TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"


@contextlib.contextmanager
def a_folder() -> Iterator[Path]:
    """A folder for one example."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def content(root: Path) -> dict[str, bytes]:
    """What a store holds: the bytes of each of its files by name."""
    places = [path for path in root.rglob("*") if path.is_file() and "locks" not in path.parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in places if path.name != "store.lock"}


# --- what an agent hands to the hook ------------------------------------------------------------------------------


def handed_over(line: bytes, store: Path) -> dict[str, object]:
    """Read this line as the hook reads its standard input, and keep it; what was understood of it."""
    reading, writing = os.pipe()
    try:
        os.write(writing, line[:60_000])  # a pipe holds no more unread
        os.close(writing)
        payload = run._payload(run.shape_of("opencode"), run._line(reading, 5.0)[0])
    finally:
        os.close(reading)
    run._keep({"store": str(store), "agent": "opencode", "state": "kept"}, payload)
    return payload


@unhurried(100)
@given(bytes_of(PAYLOADS))
def test_any_line_is_kept_or_refused_by_the_hook(line: bytes) -> None:
    """Kept it can be read again, the same; refused it leaves nothing."""
    with a_folder() as root:
        try:
            payload = handed_over(line, root)
        except run._Refused:
            assert content(root) == {}
        else:
            (path,) = spool.listing(root)
            assert json.dumps(spool.read(path)["payload"]) == json.dumps(payload)


@unhurried(250)
@given(mutated(PAYLOADS) | any_json)
def test_any_payload_is_a_signal_or_a_payload_error(payload: object) -> None:
    """And what is understood can be kept, read again, and shown."""
    try:
        signal = adapter.read(payload, machine="laptop")
    except PayloadError as error:
        str(error).encode()
        return
    if isinstance(signal, Asked | Announced):
        made = entry(signal.ask, dialog.start(signal.ask))
        assert ENTRIES.decode(ENTRIES.encode(made)) == made
        main(made, Look(tz=UTC, group=False, context_chars=600)).text.encode()


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_recorded_is_understood(version: str) -> None:
    """The samples of these tests are good ones, before anything is done to them."""
    good = [one for one in PAYLOADS if one["type"] in adapter.KINDS]
    assert len(good) > 20
    assert isinstance(adapter.read(told(version, "question.asked-1q"), machine="laptop"), Asked)


# --- the inbox ----------------------------------------------------------------------------------------------------


class Listening(Errands):
    """Errands that note the words of hooks."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.words: list[tuple[str, str]] = []

    async def hear_hook(self, kind: str, wait: str) -> None:
        self.words.append((kind, wait))


class Desk:
    """An inbox with its store, its book and one ask that is open."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = a_store(root, now=lambda: 1000.0)
        self.book = a_book(self.store)
        room = WaitingHooks(root)
        self.errands = Listening(self.book, {}, room, ADAPTERS, Matching(), monotonic=lambda: 1000.0)
        intake = Intake(self.book, no_records(self.book), self.errands, room, rules=Rules())
        self.inbox = Inbox(root, self.store, ADAPTERS, intake, self.errands)

    def drops(self, request_id: str) -> None:
        """Let a hook drop a good question."""
        payload = {"type": "question.asked", "properties": a_request(request_id), "directory": "/home/dev/project"}
        spool.drop(self.root, spool.record("opencode", dict(payload)))

    def requests(self) -> set[str | None]:
        """The requests that are open."""
        return {one.ask.source.request_id for one in self.book.all()}


def drained_with(data: bytes, root: Path) -> Desk:
    """Put these bytes between two good records, and take everything in; what must hold then holds."""
    desk = Desk(root)
    desk.drops("que_first")
    at_once(all_of(desk.inbox.files()))
    before = content(root)
    bad = Path(spool.drop(root, {}))
    bad.write_bytes(data)
    desk.drops("que_last")
    at_once(all_of(desk.inbox.files()))
    left = spool.listing(root)
    put = desk.store.home.quarantined()
    assert {"que_first", "que_last"} <= desk.requests()
    assert [path.read_bytes() for path in (*left, *put)] in ([], [data])
    assert before.items() <= content(root).items() or b"que_first" in data
    if left or put:
        assert len(desk.book.all()) == 2
    return desk


@unhurried(100)
@given(bytes_of(RECORDS))
@example(json.dumps(spool.record("opencode", {"type": deep(10), "waitID": "0123456789abcdef"})).encode())
@example(b'{"v":true,"agent":"opencode","machine":"m","at":0,"payload":{"type":"session.idle","properties":{}}}')
@example(b'{"v":NaN}')
def test_any_file_in_the_inbox_is_taken_in_or_put_away(data: bytes) -> None:
    """In quarantine byte for byte, or left where it is; what was open stays as it was, what is behind it comes in."""
    with a_folder() as root:
        drained_with(data, root)


@pytest.mark.parametrize("place", ["v", "type", "payload"])
def test_no_depth_jams_the_inbox(place: str, tmp_path: Path) -> None:
    """Read without trouble by one, too deep for the next: put away like anything else."""
    for levels in LEVELS:
        shapes = {
            "v": b'{"v":%s}',
            "type": b'{"v":1,"payload":{"waitID":"0123456789abcdef","type":%s}}',
            "payload": b'{"v":1,"agent":"opencode","machine":"m","payload":%s}',
        }
        desk = drained_with(shapes[place] % nested(levels), tmp_path / f"{levels}")
        assert len(desk.store.home.quarantined()) == 1
        assert desk.errands.words == []


# --- the waiting room ---------------------------------------------------------------------------------------------


@unhurried(60)
@given(bytes_of([{"requestID": "que_1", "kind": "reply", "answers": [["SQLite"]]}]))
@example(b"\xff")
def test_any_answer_file_is_a_text_or_an_os_error(data: bytes) -> None:
    """Taken either way, so that the next answer finds its place free; and it can always be withdrawn."""
    with a_folder() as root:
        asked = ask(question())
        room = WaitingHooks(root)
        room.put(asked, "…")
        place = root / "wait" / f"{wait_id(asked)}.answer"
        place.write_bytes(data)
        with contextlib.suppress(OSError):
            taken = spool.take_answer(root, wait_id(asked))
            assert taken is not None
            assert taken.encode() == data
        assert list((root / "wait").iterdir()) == []
        place.write_bytes(data)
        room.withdraw(asked)
        assert list((root / "wait").iterdir()) == []


@pytest.mark.parametrize("name", ["lock", "x.lock", "12.x.lock", "..lock", "²".join(".."), "12"])
def test_odd_names_in_the_waiting_room_are_nobodys(name: str, tmp_path: Path) -> None:
    """Nobody waits by them, and nobody stumbles over them."""
    asked = ask(question())
    room = WaitingHooks(tmp_path)
    room.put(asked, "…")
    (tmp_path / "wait" / f"{wait_id(asked)}.{name}").write_bytes(b"")
    assert not room.waiting(asked)
    assert room.all_waiting() == set()
    room.put(asked, "another")
    assert spool.take_answer(tmp_path, wait_id(asked)) == "another"


@unhurried(60)
@given(bytes_of([{"pid": 4711, "who": "hermes listen", "since_s": 1000.0}]))
@example(b'{"pid": Infinity, "who": "x", "since_s": 1}')
@example(nested(2000))
def test_any_note_in_a_lock_is_a_holder(data: bytes) -> None:
    """Who holds it may be unknown; that it is held is not."""
    with a_folder() as root:
        place = root / "it.lock"
        with process_lock.hold(place, "it", "us"):
            place.write_bytes(data)
            assert isinstance(process_lock.holder(place), process_lock.Holder)
        assert process_lock.holder(place) is None


# --- the store ----------------------------------------------------------------------------------------------------

KEPT = entry(ask(question(), question("Which sort?", multiple=True)), an_entry().state, entry_id="aaaa2222")
FULL = asdict(KEPT) | {
    "timing": asdict(Timing(1.0, 2.0, 3.0, 4.0)),
    "phone": {"chat_id": 11, "message_id": 5, "drawn": "x", "sides": [asdict(Side("offer", 7, "y"))], "copies": [3]},
}
FILES: list[Any] = [{"v": 1, "entry": json.loads(json.dumps(one))} for one in (FULL, asdict(an_entry()))]
MEMORIES: list[Any] = [
    {"v": 1, "chat": json.loads(json.dumps(asdict(one)))}
    for one in (
        ChatMemory(7, offset=5, last_poll_s=1.0, answerable_s=2.0, known_at_s=3.0, gap_at=1.0),
        ChatMemory(7, chat_id=-100, moved_from=-1, trouble="blocked", newest_message=9),
        ChatMemory(7, topics=(Topic(-100, 5, "Fix login", KEPT.ask.source, "OpenCode"),), no_topic="no right"),
    )
]


@unhurried(80)
@given(bytes_of(FILES))
def test_any_stored_entry_is_read_or_put_away(data: bytes) -> None:
    """Read, it is one that can be saved again; else it lies in quarantine, or where it was, byte for byte."""
    with a_folder() as root:
        store = a_store(root)
        at_once(store.open())
        other = at_once(store.create(an_entry("bbbb2222")))
        bad = root / "pending" / "aaaa2222.json"
        bad.write_bytes(data)
        try:
            read = ENTRIES.decode(data)
        except (Unreadable, TooNew) as error:
            str(error).encode()
            read = None
        found = {one.id: one for one in at_once(store.open())}
        assert found.pop("bbbb2222") == other
        if read is not None and read.id == "aaaa2222":
            assert ENTRIES.encode(found["aaaa2222"]) == ENTRIES.encode(read)
            return
        assert found == {}
        kept = [bad, *store.home.quarantined()]
        assert [path.read_bytes() for path in kept if path.exists()] == [data]
        with pytest.raises((Missing, TooNew)):
            at_once(store.get("aaaa2222"))


@unhurried(80)
@given(bytes_of(MEMORIES))
def test_any_memory_of_a_chat_is_read_or_put_away(data: bytes) -> None:
    """A fresh one where it is damaged or another bot's; one of a newer Hermes stops us, and is left alone."""
    with a_folder() as root:
        store = a_store(root)
        at_once(store.open())
        place = root / "telegram.json"
        place.write_bytes(data)
        try:
            memory = at_once(store.load_chat(7))
        except TooNew:
            assert place.read_bytes() == data
            assert store.home.quarantined() == []
            return
        assert memory.bot_id == 7
        assert [path.read_bytes() for path in (place, *store.home.quarantined()) if path.exists()] == [data]
        at_once(store.save_chat(memory))
        assert CHATS.encode(at_once(store.load_chat(7))) == CHATS.encode(memory)


def test_no_depth_is_too_much_for_the_store(tmp_path: Path) -> None:
    """Entries and memory: damaged, whatever gives up first."""
    for levels in LEVELS:
        for codec, shape in ((ENTRIES, b'{"v":1,"entry":{"id":%s}}'), (CHATS, b'{"v":1,"chat":{"bot_id":%s}}')):
            with pytest.raises(Unreadable):
                codec.decode(shape % nested(levels))


# --- buttons ------------------------------------------------------------------------------------------------------


@unhurried(300)
@given(
    st.one_of(st.text(max_size=70), st.from_regex(r"[a-z2]{1,12}:[0-9a-z]{1,17}:[a-z][0-9a-z.]{0,40}", fullmatch=True))
)
def test_any_data_of_a_button_is_what_was_encoded_or_a_value_error(data: str) -> None:
    """There is one form of each, so that nothing else can pass for it."""
    try:
        entry_id, epoch, action = decode(data)
    except ValueError:
        return
    assert encode(entry_id, epoch, action) == data


# --- the configuration --------------------------------------------------------------------------------------------

GOOD = f"""
[telegram]
token = "{TOKEN}"
chat_id = -1001
users = [7, 8]
[questions]
ttl = "30m"
on_expiry = "keep"
quiet_hours = "22:00-07:00"
tz = "Europe/Berlin"
context_chars = 100
[[opencode]]
name = "desk"
url = "http://127.0.0.1:4096"
password = "hunter2"
[store]
path = "/tmp/hermes-store"
keep_done = "7d"
[matching]
tries = 3
[log]
level = "info"
"""
_ODD = (
    *('"x"', '""', "7", "-1", "1e999", "nan", "true", "[]", "{}", "[[]]", "1979-05-27", '"a\\u0000b"', '"../x"'),
    *("0x" + "f" * 5000, "9" * 5000, "[" * 3000 + "]" * 3000, f'"{"9" * 400}d"', f'"{"9" * 12}d"', '"~\\u0000/x"'),
)
_HEADS = (
    *("_env_prefix = 3", "_cli_parse_args = true", "__pydantic_self__ = 1", "_secrets_dir = 7", "self = 1"),
    *("telegram = 1", "opencode = 1", "[opencode]", "[store.path]", "[[log]]", "[telegram]", '"" = 1', '"a b".c = 1'),
    *("\ufeff", "\0"),
)


@st.composite
def configurations(draw: st.DrawFn) -> bytes:
    """A configuration in which a value, a key or a byte is another one."""
    lines = GOOD.splitlines()
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["value", "value", "value", "key", "gone", "head"])):
            case "value" if "=" in lines[at]:
                lines[at] = f"{lines[at].partition('=')[0]}= {draw(st.sampled_from(_ODD))}"
            case "key" if "=" in lines[at]:
                lines[at] = f"{draw(st.sampled_from(['nme', 'token_file', 'x', '_x']))} = {lines[at].partition('=')[2]}"
            case "gone":
                del lines[at]
            case _:
                lines.insert(draw(st.sampled_from([0, at])), draw(st.sampled_from(_HEADS)))
    data = "\n".join(lines).encode()
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.binary(max_size=3)) + data[at:] if draw(st.integers(0, 5)) == 0 else data


def loaded_from(place: Path) -> Config | str:
    """The configuration in this file, or the sentence of its refusal."""
    try:
        return load(place, environ={})
    except ConfigError as error:
        return f"{error} {error.__cause__ or ''}"


@unhurried(150)
@given(st.one_of(configurations(), configurations(), st.binary(max_size=200), written(any_json)))
@example(b"_cli_parse_args = true\n" + GOOD.encode())
@example(b"_env_prefix = 3\n" + GOOD.encode())
@example(b"__pydantic_self__ = 3\n" + GOOD.encode())
@example(f"x = {'9' * 5000}".encode())
@example(b"x = " + nested(3000))
@example(GOOD.replace('"30m"', f'"{"9" * 400}d"').encode())
def test_any_configuration_is_read_or_refused_in_one_sentence(data: bytes) -> None:
    """It names the place, and never a secret; a file that is refused stays as it was."""
    with a_folder() as root:
        place = root / "config.toml"
        place.write_bytes(data)
        loaded = loaded_from(place)
        if isinstance(loaded, Config):
            assert 0 < loaded.questions.ttl < 1e10
            return
        assert str(place) in loaded
        assert TOKEN not in loaded
        assert "hunter2" not in loaded
        assert place.read_bytes() == data


@unhurried(60)
@given(st.one_of(st.binary(max_size=80), st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_any_file_of_a_secret_is_read_or_refused(data: bytes) -> None:
    """What stands in it is in no sentence."""
    with a_folder() as root:
        place, secret = root / "config.toml", root / "token"
        secret.write_bytes(data)
        place.write_text(f'[telegram]\ntoken_file = "{secret}"\nchat_id = 1\nusers = [7]\n', encoding="utf-8")
        loaded = loaded_from(place)
        if isinstance(loaded, str):
            assert str(place) in loaded
        else:
            assert loaded.telegram.token.get_secret_value() == data.decode().strip()
