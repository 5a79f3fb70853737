"""What OpenCode hands over becomes signals, what people decide becomes its answers."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hermes.agents.fields import sound
from hermes.agents.opencode import adapter
from hermes.agents.opencode.adapter import answers, read, waiter_text
from hermes.agents.registry import ADAPTERS
from hermes.errors import PayloadError
from hermes.model.answer import Answer, Decision
from hermes.model.ask import Ask, Option, Source
from hermes.model.notice import Changes, Turn
from hermes.model.signals import Announced, Asked, Busy, Dismissed, Quiet, Replied, TurnEnded
from tests.agents.opencode.recorded import NEW, OLD, VERSIONS, hook, recorded

BOTH = pytest.mark.parametrize("version", VERSIONS)


def question(**changes: Any) -> dict[str, Any]:
    """Return one question as OpenCode has it."""
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    return {"question": "Which colour?", "header": "Colour", "options": options} | changes


def payload(*questions: object, **properties: Any) -> dict[str, Any]:
    """Return a hook's payload of question.asked."""
    given = {"id": "que_1", "sessionID": "ses_1", "questions": list(questions)} | properties
    return {"type": "question.asked", "properties": given, "directory": "/home/dev/p", "context": {}}


def asked(*questions: object, **properties: Any) -> Ask:
    """Return the ask of such a payload."""
    signal = read(payload(*questions, **properties), machine="laptop")
    assert isinstance(signal, Asked)
    return signal.ask


def decided(*given: Answer) -> Decision:
    """Return the decision to answer."""
    return Decision("answer", 1.0, given)


# what comes


@BOTH
def test_a_recorded_question_is_an_ask(version: str) -> None:
    """The whole of question.asked, as both versions send it, with the plugin's context."""
    given = hook(
        version, "question.asked-1q", title="Fix login", rootTitle="Root", rootID="ses_0", lastText="I looked."
    )
    signal = read(given, machine="laptop")
    assert isinstance(signal, Asked)
    properties = given["properties"]
    assert signal.ask.source == Source(
        agent="opencode",
        machine="laptop",
        session_id=properties["sessionID"],
        directory="/home/dev/project",
        request_id=properties["id"],
        call_id=properties["tool"]["callID"],
        message_id=properties["tool"]["messageID"],
        session_title="Fix login",
        root_title="Root",
        root_id="ses_0",
        last_text="I looked.",
    )
    (one,) = signal.ask.questions
    assert (one.text, one.header, one.multiple, one.custom) == (
        "Which database should I use?",
        "Database",
        False,
        True,
    )
    assert one.options == (
        Option("PostgreSQL", "Relational, robust"),
        Option("SQLite", "Zero configuration"),
        Option("Redis", "In-memory"),
    )
    assert signal.ask.capabilities == ADAPTERS["opencode"].capabilities
    assert signal.ask.answerable


@BOTH
def test_three_recorded_questions_keep_their_order_and_kinds(version: str) -> None:
    """One of them is multiple."""
    signal = read(hook(version, "question.asked-3q"), machine="laptop")
    assert isinstance(signal, Asked)
    assert [(one.text, one.multiple) for one in signal.ask.questions] == [
        ("Which colour?", False),
        ("Which sizes?", True),
        ("Any name?", False),
    ]


@BOTH
def test_no_questions_are_an_ask_too(version: str) -> None:
    """Contract 2: even `questions` may be [] (pending until replied [])."""
    signal = read(hook(version, "question.asked-0q"), machine="laptop")
    assert isinstance(signal, Asked)
    assert signal.ask.questions == ()
    assert answers(signal.ask, decided()) == ()


def test_free_text_may_be_forbidden() -> None:
    """Contract 2: absent = free text allowed, `custom: false` really occurs."""
    signal = read(hook(OLD, "question.asked-nocustom"), machine="laptop")
    assert isinstance(signal, Asked)
    assert [one.custom for one in signal.ask.questions] == [False]
    assert [one.custom for one in asked(question(custom=None), question(custom=True)).questions] == [True, True]


def test_an_ask_may_name_no_call() -> None:
    """Contract 2: `tool?`: without it there is nothing to prove an answer by."""
    source = asked(question()).source
    assert (source.call_id, source.message_id) == (None, None)


def test_a_plan_cannot_be_skipped() -> None:
    """`plan_exit` takes an empty reply for a yes (seen on both versions), and only it forbids free text."""
    assert not asked(question(custom=False)).capabilities.can_skip
    assert asked(question()).capabilities.can_skip


@pytest.mark.parametrize("label", ["Auth (Recommended)", "Auth (recommended) ", "Auth(RECOMMENDED)"])
def test_a_recommended_option_is_known_by_its_place(label: str) -> None:
    """Contract 12: both tell their models to append "(Recommended)"; the label itself stays as it is."""
    (one,) = asked(question(options=[{"label": "Red"}, {"label": label}, {"label": label}])).questions
    assert one.recommended == 1
    assert one.options[1].label == label


@pytest.mark.parametrize("label", ["(Recommended) Auth", "Recommended", "Auth (Recommended) not"])
def test_other_labels_are_not_recommended(label: str) -> None:
    """The mark stands at the end, in brackets."""
    (one,) = asked(question(options=[{"label": label}])).questions
    assert one.recommended is None


def test_labels_repeat_or_are_empty_and_options_may_lack() -> None:
    """Contract 2: labels may be empty or duplicate, options may be [], descriptions may lack."""
    options = [{"label": "A"}, {"label": "A", "description": None}, {"label": "", "x": 1}]
    first, second = asked(question(options=options), question(options=[], header=None)).questions
    assert [one.label for one in first.options] == ["A", "A", ""]
    assert {one.description for one in first.options} == {""}
    assert (second.options, second.header) == ((), "")


def test_half_a_character_becomes_a_sign_that_can_be_sent() -> None:
    """JSON carries lone surrogate halves (seen on both versions); UTF-8 cannot. Whole pairs stay whole."""
    given = json.loads(json.dumps(payload(question(options=[{"label": "x\ud800y"}, {"label": "🐘"}]))))
    (one,) = asked(*given["properties"]["questions"]).questions
    assert [option.label for option in one.options] == ["x\ufffdy", "🐘"]
    assert sound("\ud83d\udc18\ud83d") == "🐘\ufffd"


@given(st.text(alphabet=st.characters(), max_size=20))
def test_sound_text_can_always_be_encoded(text: str) -> None:
    """Whatever text came, the adapter's is UTF-8, and whole text is itself."""
    sound(text).encode()
    if text.isascii():
        assert sound(text) == text


def test_the_second_engine_asks_what_only_the_desk_can_answer() -> None:
    """Contract 9: `/question` neither lists nor accepts what question.v2.asked announced."""
    signal = read(hook(NEW, "question.v2.asked"), machine="laptop")
    assert isinstance(signal, Asked)
    assert not signal.ask.answerable
    assert signal.ask.source.call_id == "call_c88ff6eae0ce4d8b"


@BOTH
def test_recorded_ends_are_read(version: str) -> None:
    """Replied, rejected, idle, failed and deleted, as both versions send them."""
    replied = hook(version, "question.replied")
    ids = replied["properties"]["requestID"], replied["properties"]["sessionID"]
    assert read(replied, machine="laptop") == Replied(*ids, (("SQLite",),))
    rejected = hook(version, "question.rejected")
    ids = rejected["properties"]["requestID"], rejected["properties"]["sessionID"]
    assert read(rejected, machine="laptop") == Dismissed(*ids)
    for event in ("session.idle", "session.error"):
        given = hook(version, event)
        assert read(given, machine="laptop") == Quiet(given["properties"]["sessionID"])
    deleted = hook(version, "session.deleted")
    assert read(deleted, machine="laptop") == Quiet(deleted["properties"]["info"]["id"])
    busy = hook(version, "session.status-busy")
    assert read(busy, machine="laptop") == Busy(busy["properties"]["sessionID"])


def test_ends_of_the_second_engine_are_read() -> None:
    """question.v2.replied and question.v2.rejected have the shapes of the first engine."""
    replied = read(hook(NEW, "question.v2.replied"), machine="laptop")
    assert isinstance(replied, Replied)
    assert replied.answers == (("Pg",),)
    assert isinstance(read(hook(NEW, "question.v2.rejected"), machine="laptop"), Dismissed)


def test_an_error_of_no_session_stops_none() -> None:
    """It is no mistake of the plugin, and it ends no question."""
    given = {"type": "session.error", "properties": {"error": {"name": "UnknownError"}}}
    assert read(given, machine="laptop") == Quiet("")


@BOTH
def test_a_call_that_begins_announces_an_ask(version: str) -> None:
    """Contract 5: at tool.execute.before there is a call id, and no request yet."""
    given = recorded(version, "hooks", "tool.execute.before")
    signal = read(given, machine="laptop")
    assert isinstance(signal, Announced)
    source = signal.ask.source
    assert (source.request_id, source.message_id) == (None, None)
    assert source.call_id == given["properties"]["callID"]
    assert [option.label for option in signal.ask.questions[0].options] == ["PostgreSQL", "SQLite", "Redis"]


@BOTH
@pytest.mark.parametrize("name", ["tool.execute.before-invalid", "tool.execute.before-plan_exit"])
def test_calls_that_tell_no_question_are_not_announced(version: str, name: str) -> None:
    """Contract 5: an unknown tool is called "invalid", a plan's is plan_exit, with no words to show yet."""
    with pytest.raises(PayloadError, match="other than question"):
        read(recorded(version, "hooks", name), machine="laptop")


@pytest.mark.parametrize(
    ("args", "place"),
    [
        (None, "args is not an object"),
        ({}, r"args\.questions is not a list"),
        ({"questions": {"question": "Q"}}, r"args\.questions is not a list"),
        ({"questions": ["Q"]}, r"questions\[0\] is not an object"),
        ({"questions": [{"header": "h"}]}, r"questions\[0\]\.question is not text"),
    ],
)
def test_bad_arguments_are_refused_with_their_place(args: object, place: str) -> None:
    """Contract 5: it also fires for invalid args; the question then never exists."""
    properties = {"tool": "question", "sessionID": "ses_1", "callID": "call_1", "args": args}
    with pytest.raises(PayloadError, match=place):
        read({"type": "tool.execute.before", "properties": properties}, machine="laptop")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (None, "payload is not an object"),
        ([], "payload is not an object"),
        ({}, r"payload\.type is not text"),
        ({"type": "receipt", "waitID": "x"}, "no word of 'receipt'"),
        ({"type": "question.asked"}, "question.asked is not an object"),
        (payload(question()) | {"context": 1}, "context is not an object"),
        (payload(question()) | {"directory": 1}, r"payload\.directory is not text"),
        (payload(question(), id=""), r"request\.id is not an id"),
        (payload(question(), id="x" * 201), r"request\.id is not an id"),
        (payload(question(), sessionID=None), r"request\.sessionID is not text"),
        (payload(question(), tool="t"), r"request\.tool is not an object"),
        (payload(question(options=None)), r"questions\[0\]\.options is not a list"),
        (payload(question(options=["A"])), r"questions\[0\]\.options\[0\] is not an object"),
        (payload(question(options=[{"label": 1}])), r"options\[0\]\.label is not text"),
        (payload(question(multiple="yes")), r"questions\[0\]\.multiple is neither"),
        ({"type": "question.replied", "properties": {"requestID": "q", "sessionID": "s"}}, "answers is not a list"),
        (
            {
                "type": "question.replied",
                "properties": {"requestID": "q", "sessionID": "s", "answers": [[1]]},
            },
            "contains a value that is not text",
        ),
        ({"type": "session.deleted", "properties": {}}, r"session\.deleted\.info is not an object"),
        (
            {"type": "session.status", "properties": {"sessionID": "s", "status": {"type": "idle"}}},
            "not busy",
        ),
    ],
)
def test_another_shape_is_refused_with_its_place(given: object, place: str) -> None:
    """The sentence says where, and never what stood there."""
    with pytest.raises(PayloadError, match=place):
        read(given, machine="laptop")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.sampled_from(sorted(adapter.KINDS)), JSON, JSON, JSON, JSON)
def test_nothing_but_a_payload_error_comes_of_any_json(
    kind: str, identity: object, questions: object, info: object, context: object
) -> None:
    """A plugin of any version may send anything."""
    properties = dict.fromkeys(("id", "sessionID", "requestID", "callID"), identity)
    properties |= dict.fromkeys(("questions", "answers", "args"), questions)
    properties |= {"info": info, "tool": info, "status": info}
    with contextlib.suppress(PayloadError):
        read({"type": kind, "properties": properties, "context": context}, machine="laptop")


# what goes out


def test_exact_labels_go_out_picks_first() -> None:
    """In the order chosen, then the free text; an unanswered question gets an empty list."""
    labels = [{"label": "S (Recommended)"}, {"label": ""}, {"label": "S"}, {"label": "S"}]
    three = asked(question(options=labels, multiple=True), question(), question())
    decision = decided(Answer((3, 0, 1), "and é\n🐘"), Answer((), ""))
    assert answers(three, decision) == (("S", "S (Recommended)", "", "and é\n🐘"), ("",), ())


def test_a_skip_answers_nothing_to_everything() -> None:
    """Contract 2: missing answers reach the model as "Unanswered", and it continues."""
    assert answers(asked(question(), question()), Decision("skip", 1.0)) == ((), ())
    assert answers(asked(), Decision("skip", 1.0)) == ()


def test_the_waiter_prints_one_line() -> None:
    """A reply with its answers, or a reject; whatever is in a label, the line stays one line."""
    one = asked(question(options=[{"label": "a\nb\u2028c"}]))
    line = waiter_text(one, decided(Answer((0,), "x\r\ny")))
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {
        "requestID": "que_1",
        "kind": "reply",
        "answers": [["a\nb\u2028c", "x\r\ny"]],
    }
    assert json.loads(waiter_text(one, Decision("reject", 1.0))) == {"requestID": "que_1", "kind": "reject"}
    assert json.loads(waiter_text(one, Decision("skip", 1.0)))["answers"] == [[]]


def test_a_release_tells_the_agent_nothing() -> None:
    """Nothing goes out for it, so asking for its words is a mistake."""
    one = asked(question())
    with pytest.raises(ValueError, match="release"):
        waiter_text(one, Decision("release", 1.0))
    with pytest.raises(ValueError, match="reject"):
        answers(one, Decision("reject", 1.0))


def test_what_another_way_tells_is_the_same_ask() -> None:
    """The list and the event stream give the hook's ask, but for context and server."""
    given = payload(question(), tool={"messageID": "msg_1", "callID": "call_1"})
    listed = adapter.read_request(
        given["properties"], Source("opencode", "laptop", session_id="", directory="/home/dev/p", server="desk")
    )
    signal = read(given, machine="laptop")
    assert isinstance(signal, Asked)
    assert replace(listed, source=replace(listed.source, server="")) == signal.ask


# --- the end of a turn ------------------------------------------------------------------------------------------------


def ended(**changes: Any) -> dict[str, Any]:
    """Return a hook's payload of turn.ended."""
    told = {"sessionID": "ses_1", "id": "msg_1", "began": 1000, "ended": 301000.5, "words": "Done.", "failure": ""}
    context = {"title": "Fix login flow"}
    return {"type": "turn.ended", "properties": told | changes, "directory": "/home/dev/p", "context": context}


def test_the_end_of_a_turn_is_read_as_the_plugin_tells_it() -> None:
    """Its times become seconds; what changed may be unknown."""
    signal = read(ended(changes={"files": 2, "added": 3, "removed": 0}), machine="laptop")
    source = Source("opencode", "laptop", "ses_1", "/home/dev/p", session_title="Fix login flow")
    assert signal == TurnEnded(Turn(source, "OpenCode", "msg_1", 1.0, 301.0005, "Done.", changes=Changes(2, 3, 0)))
    diffs = [
        {"file": "a.txt", "patch": "--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"},
        {"file": "b", "patch": ""},
    ]
    told = read(ended(changes={"files": 2, "added": 1, "removed": 1, "diffs": diffs}), machine="laptop")
    assert isinstance(told, TurnEnded)
    assert told.turn.changes is not None
    assert told.turn.changes.diff.endswith("-one\n+two\nb: changed, but not as text")
    named = read(ended(prompt="msg_0"), machine="laptop")
    assert isinstance(named, TurnEnded)
    assert named.turn.prompt_id == "msg_0"
    failed = read(ended(words="", failure="no key (401)"), machine="laptop")
    assert isinstance(failed, TurnEnded)
    assert (failed.turn.failure, failed.turn.changes) == ("no key (401)", None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sessionID": ""},
        {"id": None},
        {"began": None},
        {"began": True},
        {"ended": -1},
        {"ended": 1e15},
        {"words": 7},
        {"prompt": 7},
        {"changes": []},
        {"changes": {"files": 1.5, "added": 0, "removed": 0}},
        {"changes": {"files": -1, "added": 0, "removed": 0}},
        {"changes": {"files": 1}},
        {"changes": {"files": 1, "added": 0, "removed": 0, "diffs": 7}},
        {"changes": {"files": 1, "added": 0, "removed": 0, "diffs": [7]}},
        {"changes": {"files": 1, "added": 0, "removed": 0, "diffs": [{"file": 7}]}},
    ],
    ids=str,
)
def test_the_end_of_a_turn_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    """The error names the place, and no value."""
    with pytest.raises(PayloadError, match=r"turn\.ended"):
        read(ended(**wrong), machine="laptop")


def test_no_event_of_a_server_is_taken_for_the_plugins_word() -> None:
    """Only the plugin tells of turns in this form."""
    with pytest.raises(PayloadError, match="no word"):
        adapter.read_event("turn.ended", ended()["properties"], Source("opencode", "laptop", ""))
