"""What is written can be read again, to the letter; what cannot be read says so and nothing else."""

import json
import types
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hermes.errors import TooNew, Unreadable
from hermes.model.answer import Allowed, Always, Answer, Once, Outcome, Refused, User
from hermes.model.chat_memory import ChatMemory, Followed
from hermes.model.entry import Entry, Timing
from hermes.model.state import Offer, State
from hermes.storage.codec import CHATS, ENTRIES, Codec
from tests.storage.store_process import an_entry

PAYLOADS = Path(__file__).parents[1] / "payloads"
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(exclude_categories=())),  # half an emoji too
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    types.NoneType: st.none(),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for every value that this annotation allows."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        parts = {field.name: values_of(hints[field.name]) for field in fields(kind)}
        return st.fixed_dictionaries(parts).map(lambda values: kind(**values))
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple:
        return st.lists(values_of(get_args(kind)[0]), max_size=3).map(tuple)
    assert get_origin(kind) in {Union, types.UnionType}, kind
    return st.one_of(*map(values_of, get_args(kind)))


def fitting(entry: Entry) -> Entry:
    """The entry without answers that its ask cannot have: those to questions, or the reply to a permission."""
    outcome = entry.state.outcome
    if outcome is None or isinstance(outcome.answers, tuple) == (entry.ask.permission is None):
        return entry
    return replace(entry, state=replace(entry.state, outcome=replace(outcome, answers=())))


@pytest.mark.long
@unhurried
@given(values_of(Entry).map(fitting))
def test_every_entry_is_read_as_it_was_written(entry: Entry) -> None:
    """Nothing of an entry is lost or changed by a restart."""
    assert ENTRIES.decode(ENTRIES.encode(entry)) == entry


REPLIES = (Once(), Always(), Allowed(), Refused(None), Refused("not today"))


def test_replies_to_permissions_are_stored_as_they_always_were() -> None:
    """A file of an earlier version is read, and its end is written again to the byte; new fields may come beside it."""
    lines = (PAYLOADS / "settled-permissions.jsonl").read_bytes().splitlines(keepends=True)
    for line, reply in zip(lines, REPLIES, strict=True):
        entry = ENTRIES.decode(line)
        assert entry.state.outcome is not None
        assert entry.state.outcome.answers == reply
        kept = line[line.index(b'"outcome":') : line.index(b'"working":')]
        assert kept in ENTRIES.encode(entry)


def test_a_reply_of_tomorrow_is_kept_as_it_is() -> None:
    """No word of it is understood; it is shown as such, and written again."""
    line = (PAYLOADS / "settled-permissions.jsonl").read_bytes().splitlines(keepends=True)[0]
    later = line.replace(b'[["once"]]', b'[["for","an hour"]]')
    entry = ENTRIES.decode(later)
    assert entry.state.outcome is not None
    assert entry.state.outcome.answers == (("for", "an hour"),)
    assert b'[["for","an hour"]]' in ENTRIES.encode(entry)


def test_answers_that_are_no_list_are_damaged() -> None:
    """They are never taken for an allowance."""
    line = (PAYLOADS / "settled-permissions.jsonl").read_bytes().splitlines(keepends=True)[0]
    for odd in (b"{}", b'{"why":"x"}', b'"once"'):
        with pytest.raises(Unreadable):
            ENTRIES.decode(line.replace(b'[["once"]]', odd))


@unhurried
@given(values_of(ChatMemory))
def test_every_memory_of_a_chat_is_read_as_it_was_written(memory: ChatMemory) -> None:
    """The same for what the bot remembers."""
    assert CHATS.decode(CHATS.encode(memory)) == memory


def test_one_file_is_one_line_of_ascii_with_its_version() -> None:
    """A person can read the file, and so can any other tool."""
    data = ENTRIES.encode(an_entry())
    assert data.isascii()
    assert data.count(b"\n") == 1
    assert json.loads(data)["v"] == 2
    assert json.loads(data)["entry"]["ask"]["questions"][0]["options"][1]["label"] == "Blue"


def test_an_entry_of_the_first_version_can_be_read_for_ever() -> None:
    """A file as the first version wrote it; fields that came later have their defaults."""
    body = (
        '{"v":1,"entry":{"id":"aaaa2222","code":"k7","ask":{"source":{"agent":"opencode","machine":"desk",'
        '"session_id":"ses_1","directory":"/home/ann/shop","request_id":"que_1"},"questions":[{"text":'
        '"Which colour?","header":"Colour","options":[{"label":"Red","description":"warm"},'
        '{"label":"Blue"}]}],"capabilities":{"agent_name":"OpenCode"}},"state":{"answers":[{}]},"phone":{"chat_id":7},'
        '"asked_s":1000.0}}'
    )
    entry = ENTRIES.decode(body.encode())
    # Its code may be an older ask's, too, so that no message names it by that.
    assert entry.phone.after_id > 2**60
    assert replace(entry, phone=replace(entry.phone, after_id=0)) == an_entry()


def an_old_file(entry: Entry, **changes: dict[str, Any]) -> bytes:
    """The file of this entry as version 1 had it, with parts of it changed."""
    body: dict[str, Any] = json.loads(ENTRIES.encode(entry))["entry"]
    for part, values in changes.items():
        body[part] = body[part] | values
    return json.dumps({"v": 1, "entry": body}).encode()


def test_a_plain_label_that_was_held_is_open_again_and_offered() -> None:
    """Nobody gives it by itself any more; the message with its Undo goes away."""
    decision = {"kind": "answer", "at_s": 5.0, "answers": [{"picks": [1]}], "by": {"id": 1001, "name": "Ann"}}
    held = {"phase": "held", "decision": decision, "due_s": 15.0, "epoch": 3}
    shown = {"message_id": 50, "sides": [{"kind": "undo", "message_id": 51}]}
    entry = ENTRIES.decode(an_old_file(an_entry(), state=held, phone=shown))
    assert (entry.state.phase, entry.state.decision, entry.state.due_s, entry.state.epoch) == ("open", None, None, 4)
    assert entry.state.offer == Offer(0, User(1001, "Ann"), 0, "Blue")
    assert (entry.phone.sides, entry.phone.copies, entry.phone.since_id) == ((), (51,), 50)


def test_a_text_that_was_being_joined_is_only_offered() -> None:
    """Its parts had no dates then, by which the next one would be known; and its code may be an older ask's, too."""
    joining = {"question": 0, "user": {"id": 1001, "name": "Ann"}, "parts": [{"message_id": 60, "text": "half"}]}
    shown = {"message_id": 50, "copies": [48]}
    entry = ENTRIES.decode(an_old_file(an_entry(), state={"joining": joining, "due_s": 5.0}, phone=shown))
    assert entry.state.joining is not None
    assert entry.state.joining.offered
    assert entry.phone.after_id == 47


def test_an_ask_that_waited_for_the_word_on_several_is_called_again() -> None:
    """Its time ran out before: it gets the grace of a restart, and its final call again."""
    paused = {"posted_s": 1.0, "set_at": 1.0, "expires_at": 2.0, "called": True, "paused": True}
    entry = ENTRIES.decode(an_old_file(an_entry(), timing=paused))
    assert entry.timing == Timing(posted_s=1.0, set_at=1.0, expires_at=2.0)


def test_how_an_end_is_known_is_kept_and_may_be_missing() -> None:
    """An older Hermes did not note it, and passes over what a newer one wrote: the same entry but for that."""
    outcome = Outcome("answered", 1010.0, proof="record")
    entry = replace(an_entry(), state=State("settled", answers=(Answer(),), outcome=outcome))
    record = json.loads(ENTRIES.encode(entry))
    assert record["v"] == 2
    assert record["entry"]["state"]["outcome"].pop("proof") == "record"
    older = ENTRIES.decode(json.dumps(record).encode())
    assert older == replace(entry, state=replace(entry.state, outcome=replace(outcome, proof="")))
    record["entry"]["state"]["outcome"]["of_tomorrow"] = "record"
    assert ENTRIES.decode(json.dumps(record).encode()) == older


def test_keys_of_tomorrow_are_passed_over() -> None:
    """A field that a later Hermes of the same version added does not make the file unreadable."""
    record = json.loads(ENTRIES.encode(an_entry()))
    record["entry"]["mood"] = record["mood"] = "good"
    assert ENTRIES.decode(json.dumps(record).encode()) == an_entry()


def test_a_newer_version_is_too_new() -> None:
    """Whatever it holds."""
    with pytest.raises(TooNew, match="version 3; this Hermes knows versions up to 2"):
        ENTRIES.decode(b'{"v":3,"something":"else"}')


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\0\0\0\0", "empty"),
        (b'{"v":1,"entry":{"id":"aa', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "which version"),
        (b'{"v":true}', "which version"),
        (b'{"v":0}', "which version"),
        (b'{"v":"1"}', "which version"),
        (b'{"v":1}', "contains no entry"),
        (b'{"v":1,"entry":[]}', "contains no entry"),
        (b'{"v":2,"entry":{"id":"hush"}}', "entry.code is missing"),
        (b'{"v":1,"entry":{"id":"hush"}}', "not its shape"),
    ],
)
def test_what_is_damaged_says_what_is_wrong(data: bytes, why: str) -> None:
    """Torn, empty, or something else: one reason each."""
    with pytest.raises(Unreadable, match=why):
        ENTRIES.decode(data)


def test_the_reason_never_quotes_the_file() -> None:
    """It goes to the log, and what is asked and answered is nobody's business there."""
    record = json.loads(ENTRIES.encode(an_entry()))
    record["entry"]["ask"]["questions"][0]["options"] = "my secret plan"
    with pytest.raises(Unreadable) as caught:
        ENTRIES.decode(json.dumps(record).encode())
    assert "ask.questions.0.options" in str(caught.value)
    assert "secret" not in str(caught.value)


@unhurried
@given(st.binary())
def test_any_bytes_are_a_value_or_a_typed_error(data: bytes) -> None:
    """No file can bring the listener down."""
    with pytest.raises((Unreadable, TooNew)):
        ENTRIES.decode(data)


def _renamed(body: dict[str, Any]) -> dict[str, Any]:
    return {"server": body["name"], "until_s": body["known_s"]}


def test_the_version_before_is_brought_forward() -> None:
    """N-1 is read; what is written has the new version."""
    codec = Codec("one", Followed, (_renamed,))
    assert codec.decode(b'{"v":1,"one":{"name":"a","known_s":4}}') == Followed("a", 4.0)
    assert json.loads(codec.encode(Followed("a", 4.0)))["v"] == 2


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"v":1,"one":{"name":"a"}}', "not its shape"),
        (b'{"v":1,"one":3}', "contains no one"),
    ],
)
def test_what_cannot_be_brought_forward_is_damaged(data: bytes, why: str) -> None:
    """It is not even of its own shape."""
    with pytest.raises(Unreadable, match=why):
        Codec("one", Followed, (_renamed,)).decode(data)
