"""What Claude Code hands its hooks becomes signals, what people decide becomes what a hook prints."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from hermes.agents.claude_code import adapter
from hermes.agents.claude_code.adapter import answers, read, waiter_text
from hermes.agents.claude_code.shape import CARRIED, SHAPE, WAKE_MESSAGE, prompt_place
from hermes.agents.registry import ADAPTERS
from hermes.core import topics
from hermes.errors import PayloadError
from hermes.model.answer import Answer, Decision, User
from hermes.model.ask import Ask, Option, Source
from hermes.model.notice import Turn
from hermes.model.signals import Asked, Quiet, Replied, SessionEnded, TurnBegan, TurnEnded
from tests.agents.claude_code.spoken import Json, asked, asking, recorded, signal

if TYPE_CHECKING:
    from pathlib import Path

ANN = User(1001, "Ann")
DENIED = {"behavior": "deny", "message": adapter._NO}


def question(**changes: Any) -> Json:
    """One question as Claude Code has it."""
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold", "preview": "~"}]
    return {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False} | changes


def decided(*given: Answer, kind: Any = "answer", by: User | None = ANN) -> Decision:
    """A person's decision."""
    return Decision(kind, 1.0, given, by)


def printed(ask: Ask, decision: Decision) -> Json:
    """What the hook prints, which is one line."""
    line = waiter_text(ask, decision)
    assert line.isascii()
    assert line.isprintable()
    found: Json = json.loads(line)
    return found


def verdict(ask: Ask, decision: Decision) -> Json:
    """The decision in what it prints for the dialog."""
    output = printed(ask, decision)["hookSpecificOutput"]
    assert output["hookEventName"] == "PermissionRequest"
    found: Json = output["decision"]
    return found


# what comes


def test_a_recorded_question_is_an_ask() -> None:
    """Both questions, where they come from, and the input as it came."""
    ask = asked("PermissionRequest-two-phone")
    given = recorded("PermissionRequest-two-phone")
    source = ask.source
    assert (source.agent, source.machine, source.directory) == ("claude-code", "laptop", "/home/dev/project")
    assert (source.session_id, source.request_id) == (given["session_id"], "0123456789abcdef")
    assert [(one.text, one.header, one.multiple, one.custom) for one in ask.questions] == [
        ("Which database?", "Database", False, True),
        ("Which sizes?", "Sizes", True, True),
    ]
    assert ask.questions[0].options == (Option("PostgreSQL", "rel"), Option("SQLite (Recommended)", "zero"))
    assert ask.questions[0].recommended == 1
    assert json.loads(ask.given) == {"event": "PermissionRequest", "tool_input": given["tool_input"]}
    assert ask.capabilities == ADAPTERS["claude-code"].capabilities


@pytest.mark.parametrize("who", ["phone", "desk"])
def test_the_end_names_the_ask_by_what_was_asked(who: str) -> None:
    """Claude Code names no request, and adds the answers to the input: the digest is of the questions alone."""
    ask, done = asked(f"PermissionRequest-two-{who}"), signal(f"PostToolUse-two-{who}")
    assert isinstance(done, Replied)
    assert (done.request_id, done.session_id, done.call_id) == ("", ask.source.session_id, ask.source.call_id)
    before = asked(f"PreToolUse-two-{who}")
    assert before.source.call_id == ask.source.call_id


def test_each_prompt_and_each_question_is_an_ask_of_its_own() -> None:
    """The same words in a later turn are another ask."""
    calls = {asked("PermissionRequest-two-phone").source.call_id, asked("PermissionRequest-one").source.call_id}
    calls.add(asked("PermissionRequest-two-phone", prompt_id="another").source.call_id)
    calls.add(asked("PermissionRequest-two-phone", prompt_id=None).source.call_id)
    assert len(calls) == 4


def test_what_was_answered_is_told_in_one_string_a_question() -> None:
    """Labels joined, typed text as it is, a note behind them; nothing, where nothing was said."""
    desk, phone = signal("PostToolUse-two-desk"), signal("PostToolUse-two-phone")
    assert isinstance(desk, Replied)
    assert isinstance(phone, Replied)
    assert desk.answers == (("PostgreSQL",), ("S, L",))
    assert phone.answers == (("DuckDB",), ("M, or so, S", "a note"))
    input_ = recorded("PostToolUse-two-desk")["tool_input"] | {"answers": {"Which sizes?": ["S", "L"]}}
    listed = signal("PostToolUse-two-desk", tool_input=input_)
    assert isinstance(listed, Replied)
    assert listed.answers == ((), ("S, L",))


def test_an_end_by_claude_codes_own_timer_is_no_answer_of_a_person() -> None:
    """It says after how long it went on."""
    input_ = recorded("PostToolUse-two-desk")["tool_input"] | {"answers": {}, "annotations": {}, "afkTimeoutMs": 60000}
    done, desk = signal("PostToolUse-two-desk", tool_input=input_), signal("PostToolUse-two-desk")
    assert isinstance(done, Replied)
    assert isinstance(desk, Replied)
    assert (done.answers, done.by_timer, done.call_id) == (((), ()), True, desk.call_id)
    assert not desk.by_timer


def test_a_session_that_is_over_waits_for_nothing() -> None:
    """As recorded."""
    assert signal("SessionEnd") == SessionEnded("claude-code", recorded("SessionEnd")["session_id"])


def test_a_turn_that_the_phone_began_says_so() -> None:
    """The hook adds that; what a person typed is not kept, also if it begins in the same way elsewhere."""
    woken = {"hook_event_name": "UserPromptSubmit", "prompt": f"<x>{WAKE_MESSAGE} Go on</x>"}
    assert SHAPE.prompts is not None
    assert SHAPE.prompts.adds(woken, {}) == {"from_phone": True}
    for other in (
        woken | {"prompt": "Go on"},
        {"hook_event_name": "UserPromptSubmit"},
        woken | {"hook_event_name": "Stop"},
    ):
        assert SHAPE.prompts.adds(other, {}) == {}
    assert "prompt" not in CARRIED
    begun = signal("UserPromptSubmit", from_phone=True)
    assert isinstance(begun, TurnBegan)
    assert begun.from_phone


def test_a_turn_that_claude_code_began_by_itself_says_so() -> None:
    """Its prompt is the news of a background task; one from the phone comes in the same form."""
    news = {"hook_event_name": "UserPromptSubmit", "prompt": "<task-notification>\n<task-id>b1</task-id>"}
    assert SHAPE.prompts is not None
    assert SHAPE.prompts.adds(news, {}) == {"goes_on": True}
    assert SHAPE.prompts.adds(news | {"prompt": f"{news['prompt']} {WAKE_MESSAGE} Go on"}, {}) == {"from_phone": True}
    begun = signal("UserPromptSubmit", goes_on=True)
    assert isinstance(begun, TurnBegan)
    assert begun.goes_on


def test_the_end_of_a_turn_says_when_it_began(tmp_path: Path) -> None:
    """The hook finds that in Claude Code's record, if it can."""
    record = tmp_path / "record.jsonl"
    record.write_text('{"promptId":"id_1","timestamp":"2026-11-25T01:50:24.767Z"}\n')
    ended = {"hook_event_name": "Stop", "transcript_path": str(record), "prompt_id": "id_1"}
    assert SHAPE.prompts is not None
    assert SHAPE.prompts.adds(ended, {}) == {"began": 1795571424767.0}
    for other in (ended | {"prompt_id": "id_2"}, ended | {"transcript_path": 7}, {"hook_event_name": "Stop"}):
        assert SHAPE.prompts.adds(other, {}) == {}
    for year in ("1960", "9960"):
        record.write_text(f'{{"promptId":"id_1","timestamp":"{year}-11-25T01:50:24.767Z"}}\n')
        assert SHAPE.prompts.adds(ended, {}) == {}
    told = signal("Stop", began=1795571424767.0)
    assert isinstance(told, TurnEnded)
    assert told.turn.began_s == 1795571424.767


def test_an_ask_and_an_end_name_their_session(tmp_path: Path) -> None:
    """The hook finds the title in Claude Code's record. A subagent's ask has that of its root session."""
    record = tmp_path / "record.jsonl"
    record.write_text('{"type":"custom-title","customTitle":"Fix the build"}\n')
    assert SHAPE.prompts is not None
    for event in ("PermissionRequest", "PreToolUse", "Stop", "StopFailure"):
        told = {"hook_event_name": event, "transcript_path": str(record)}
        assert SHAPE.prompts.adds(told, {}) == {"title": "Fix the build"}
        assert SHAPE.prompts.adds(told | {"transcript_path": str(tmp_path / "none")}, {}) == {}
    place = prompt_place(
        {"hook_event_name": "SessionStart", "session_id": "ses_1", "transcript_path": str(record)},
        {"CLAUDE_CODE_ENTRYPOINT": "cli"},
    )
    assert place is not None
    assert (place.title, place.record) == ("Fix the build", str(record))
    own = asked("PermissionRequest-one", title="Fix the build").source
    assert (own.session_title, own.root_title) == ("Fix the build", "")
    subagents = asked("PermissionRequest-one", title="Fix the build", agent_id="a1").source
    assert (subagents.session_title, subagents.root_title) == ("", "Fix the build")
    ended = signal("Stop", title="Fix the build")
    assert isinstance(ended, TurnEnded)
    assert ended.turn.source.session_title == "Fix the build"


@pytest.mark.parametrize(
    ("now", "first", "folder"),
    [
        ("/dev/shop/packages/api", "/dev/shop", "/dev/shop"),
        ("/dev/shop/packages", "/dev/shop/", "/dev/shop"),
        ("/dev/shop", "/dev/shop", "/dev/shop"),
        ("/dev/shop-api", "/dev/shop", "/dev/shop-api"),
        ("/dev/shop", "/evil", "/dev/shop"),
        ("/dev/shop", "/", "/dev/shop"),
        ("/dev/shop", "", "/dev/shop"),
    ],
)
def test_a_session_belongs_to_the_folder_in_which_it_began(now: str, first: str, folder: str) -> None:
    """Its `cwd` follows each `cd` of the agent, which must not take it to another project."""
    environ = {"CLAUDE_PROJECT_DIR": first, "CLAUDE_CODE_ENTRYPOINT": "cli"}
    payload = recorded("PermissionRequest-Bash", cwd=now)
    assert SHAPE.prompts is not None
    assert (payload | SHAPE.prompts.adds(payload, environ))["cwd"] == folder
    place = prompt_place(payload | {"hook_event_name": "UserPromptSubmit"}, environ)
    assert place is not None
    assert place.directory == folder


def test_only_a_session_that_is_resumed_may_have_a_turn_that_was_killed() -> None:
    """One that is summed up is told as a start, too, in the middle of a turn."""
    start = {"hook_event_name": "SessionStart", "session_id": "ses_1"}
    at_desk = {"CLAUDE_CODE_ENTRYPOINT": "cli"}
    for source in ("startup", "resume", "clear", "compact"):
        place = prompt_place(start | {"source": source}, at_desk)
        assert place is not None
        assert place.begins
        assert place.resumed is (source == "resume")


def test_a_mark_that_is_missing_says_that_nobody_is_there(tmp_path: Path) -> None:
    """Claude Code's own: a program of the person makes the file when the screen is unlocked. No mark says nothing."""
    mark = tmp_path / "present"
    assert SHAPE.prompts is not None
    for event in ("PermissionRequest", "PreToolUse", "Stop", "StopFailure"):
        told = {"hook_event_name": event}
        assert SHAPE.prompts.adds(told, {"CLAUDE_CLIENT_PRESENCE_FILE": str(mark)}) == {"nobody_there": True}
        assert SHAPE.prompts.adds(told, {"CLAUDE_CLIENT_PRESENCE_FILE": str(tmp_path)}) == {}
        assert SHAPE.prompts.adds(told, {"CLAUDE_CLIENT_PRESENCE_FILE": " "}) == {}
        assert SHAPE.prompts.adds(told, {}) == {}
    assert asked("PermissionRequest-one", nobody_there=True).nobody_there
    assert asked("PermissionRequest-Bash", nobody_there=True).nobody_there
    assert not asked("PermissionRequest-one").nobody_there
    ended = signal("Stop", nobody_there=True)
    assert isinstance(ended, TurnEnded)
    assert ended.turn.nobody_there


def test_a_turn_begins_and_ends_with_an_id_of_its_own() -> None:
    """As recorded. The inbox adds the times."""
    record = recorded("Stop")
    ended = signal("Stop", last_assistant_message="Both tests pass.")
    assert isinstance(ended, TurnEnded)
    assert ended.ends_asks
    assert ended.turn.source == Source("claude-code", "laptop", record["session_id"], record["cwd"])
    assert ended.turn == Turn(ended.turn.source, "Claude Code", record["prompt_id"], None, 0.0, "Both tests pass.")
    begun = recorded("UserPromptSubmit")
    assert signal("UserPromptSubmit") == TurnBegan("claude-code", begun["session_id"], begun["prompt_id"], 0.0)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"error": "unknown", "last_assistant_message": "API Error: 400 no"}, "API Error: 400 no"),
        ({"error": "rate_limit", "last_assistant_message": ""}, "rate_limit"),
        ({}, "an error"),
    ],
)
def test_a_turn_that_failed_says_why(told: dict[str, str], why: str) -> None:
    """In the program's words about it, else by the name of the error."""
    ended = signal("Stop", hook_event_name="StopFailure", **{"last_assistant_message": "", **told})
    assert isinstance(ended, TurnEnded)
    assert (ended.turn.failure, ended.turn.words) == (why, "")


def test_a_turn_without_an_id_only_ends_what_was_asked() -> None:
    """Versions before 2.1 give none: no turn could be told from the one before."""
    session = recorded("Stop")["session_id"]
    assert signal("Stop", prompt_id="") == Quiet(session)


def test_a_subagent_ends_by_itself() -> None:
    """What it asked is not ended by the turn of its session, which goes on or ends without it."""
    ask = asked("PermissionRequest-Bash", agent_id="a1")
    session = recorded("PermissionRequest-Bash")["session_id"]
    assert ask.source.session_id == f"{session}/a1"
    stopped = signal("Stop", hook_event_name="SubagentStop", session_id=session, agent_id="a1")
    assert stopped == Quiet(ask.source.session_id)


def test_a_person_writes_to_the_session_of_a_subagent_and_not_to_the_subagent() -> None:
    """No hook waits for prompts in a subagent, so a text in a topic of its own would reach nobody."""
    session = asked("PermissionRequest-Bash")
    subagent = asked("PermissionRequest-Bash", agent_id="a1")
    assert topics.root_of(subagent.source) == topics.root_of(session.source)
    assert topics.about(subagent.source, "session") == topics.about(session.source, "session")


def test_before_the_dialog_a_no_stops_and_nobody_else_can_answer() -> None:
    """`PreToolUse` waits in its place."""
    can = asked("PreToolUse-one-headless").capabilities
    assert (can.reject_stops, can.desk_stays_open) == (True, False)
    can = asked("PermissionRequest-one").capabilities
    assert (can.reject_stops, can.desk_stays_open, can.can_skip) == (False, True, True)


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        (None, "payload is not an object"),
        ({}, "payload.hook_event_name is not text"),
        ({"hook_event_name": "Notification"}, "no word of 'Notification'"),
        (recorded("PreToolUse-one", tool_name="Bash"), "PreToolUse of a tool other than AskUserQuestion"),
        (recorded("PermissionRequest-one", session_id=""), "payload.session_id is not an id"),
        (recorded("PermissionRequest-one", agent_id=5), "payload.agent_id is not text"),
        (recorded("PermissionRequest-one", id=None), "payload.id is not text"),
        (recorded("PermissionRequest-one", tool_input=[]), "payload.tool_input is not an object"),
        (recorded("PermissionRequest-one", tool_input={}), "questions is not a list"),
        (recorded("PermissionRequest-one", tool_input={"questions": [5]}), "questions is not an object"),
        (recorded("PermissionRequest-one", tool_input={"questions": [question(multiSelect=1)]}), "neither true nor"),
        (recorded("PermissionRequest-one", tool_input={"questions": [question()] * 2}), "two of the same text"),
        (recorded("PostToolUse-one", tool_input={"questions": [], "answers": []}), None),
        (recorded("PostToolUse-one", tool_input={"questions": [], "answers": [1]}), "answers is not an object"),
    ],
)
def test_another_shape_is_refused_with_its_place(payload: object, place: str | None) -> None:
    """The sentence names where, never a value."""
    if place is None:
        assert isinstance(read(payload, machine="laptop"), Replied)
        return
    with pytest.raises(PayloadError, match=place):
        read(payload, machine="laptop")


def test_a_question_that_cannot_be_asked_lets_its_hook_go() -> None:
    """The dialog stays; nobody would ever end the hook."""
    assert adapter.goodbye == ""


def test_odd_questions_are_asked_all_the_same() -> None:
    """Empty labels, two hundred options, a preview of half a million characters."""
    many = [{"label": str(number), "description": "", "preview": "x" * 2500} for number in range(200)]
    ask = asking(question(question="", options=[{"label": ""}, {"label": "A"}]), question(options=many))
    assert len(ask.questions[1].options) == 200
    told = verdict(ask, decided(Answer((0,)), Answer((7,))))["updatedInput"]
    assert told["questions"][1]["options"][7]["preview"] == "x" * 2500
    assert told["answers"] == {"Which colour?": "7"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_QUESTION = st.fixed_dictionaries(
    {"question": st.text(max_size=5)},
    optional={
        "options": st.lists(st.fixed_dictionaries({"label": st.text(max_size=3)}) | _JSON, max_size=3) | _JSON,
        "header": st.text(max_size=3) | _JSON,
        "multiSelect": st.booleans() | _JSON,
    },
)


@given(
    st.sampled_from(sorted(adapter.KINDS)),
    st.dictionaries(
        st.sampled_from(["questions", "answers", "annotations", "command", "file_path", "url", "x"]),
        st.lists(_QUESTION, max_size=2) | _JSON,
        max_size=4,
    ),
    st.sampled_from(["AskUserQuestion", "Bash", "Edit", "mcp__x__y"]) | _JSON,
)
def test_whatever_comes_is_understood_or_refused(event: str, given_: Json, tool: object) -> None:
    """No traceback, and whatever is asked can be answered."""
    payload = recorded("PermissionRequest-one", hook_event_name=event, tool_input=given_, tool_name=tool)
    with contextlib.suppress(PayloadError):
        found = read(payload, machine="laptop")
        if isinstance(found, Asked):
            picks = tuple(Answer((0,)) if one.options else Answer((), "x") for one in found.ask.questions)
            for decision in (decided(*picks), decided(kind="reject"), decided(kind="reject", by=None)):
                printed(found.ask, decision)


def test_what_is_nested_too_deeply_is_refused() -> None:
    """It is not to stop the taking in of what lies behind it."""
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(PayloadError, match="nested too deeply"):
        read(recorded("PermissionRequest-Bash", tool_name="mcp__x", tool_input={"x": deep}), machine="laptop")


# what goes out


def test_the_answers_that_were_told_are_the_ones_that_come_back() -> None:
    """What the recorded hook printed is what Claude Code told afterwards: so an answer of ours is known as ours."""
    ask, done = asked("PermissionRequest-two-phone"), signal("PostToolUse-two-phone")
    decision = decided(Answer((), "DuckDB"), Answer((1, 0), "a note"))
    assert isinstance(done, Replied)
    assert answers(ask, decision) == done.answers
    told = verdict(ask, decision)
    assert told == {"behavior": "allow", "updatedInput": recorded("PostToolUse-two-phone")["tool_input"]}


def test_what_is_not_answered_is_left_out() -> None:
    """Claude Code takes partial answers."""
    told = verdict(asked("PermissionRequest-two-phone"), decided(Answer(), Answer((2,))))["updatedInput"]
    assert told["answers"] == {"Which sizes?": "L"}
    assert "annotations" not in told


def test_a_skip_answers_nothing_and_a_no_says_so() -> None:
    """The first is "The user did not answer the questions.", the second an error that the model reads."""
    ask = asked("PermissionRequest-two-phone")
    skip = decided(kind="skip")
    assert verdict(ask, skip)["updatedInput"]["answers"] == {}
    assert answers(ask, skip) == ((), ())
    assert verdict(ask, decided(kind="reject")) == DENIED
    with pytest.raises(ValueError, match="has no answers"):
        answers(ask, decided(kind="reject"))


def test_half_a_character_comes_back_as_it_was() -> None:
    """JSON can carry what UTF-8 cannot; the text of a question is the key of its answer."""
    ask = asking(question(question="Which \ud83d?"))
    assert ask.questions[0].text == "Which \ufffd?"
    assert verdict(ask, decided(Answer((1,))))["updatedInput"]["answers"] == {"Which \ud83d?": "Blue"}


def test_before_the_dialog_an_answer_is_an_allowance() -> None:
    """The shape of `PreToolUse`."""
    ask = asked("PreToolUse-one-headless")
    told = printed(ask, decided(Answer((1,))))
    assert told["hookSpecificOutput"]["permissionDecision"] == "allow"
    assert told["hookSpecificOutput"]["updatedInput"] == recorded("PostToolUse-one-headless")["tool_input"]


@pytest.mark.parametrize(("by", "why"), [(ANN, "declined to answer"), (None, "Nobody answered")])
def test_before_the_dialog_a_no_ends_the_turn(by: User | None, why: str) -> None:
    """Else the model would go on as if the timer, or the person, had answered."""
    told = printed(asked("PreToolUse-one-headless"), decided(kind="reject", by=by))
    assert told["continue"] is False
    assert why in told["stopReason"]
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
