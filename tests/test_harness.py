"""What the harness promises: real OpenCodes that ask, at a port and at a desk, under a test's control."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from hermes.sandbox.model_server import ScriptedModel, script
from tests.harness.home import BinaryMissingError, Home, Json, binary, in_header
from tests.harness.opencode import OpenCode
from tests.harness.processes import until
from tests.harness.tui import DOWN, ENTER, ESC, Tui

ON = "You can now continue with the user's answers in mind."


def question(text: str = "Which database?", *labels: str, **more: Any) -> Json:
    """Return one question of the tool's arguments."""
    options = [{"label": label, "description": f"about {label}"} for label in labels or ("PostgreSQL", "SQLite")]
    return {"question": text, "header": text[:12], "options": options, **more}


def asks(*questions: Json, **more: Any) -> Json:
    """Return a step that asks these questions in one request."""
    return {"tool": "question", "args": {"questions": list(questions)}, **more}


# a real server


def test_the_model_receives_exactly_the_reply(opencode: OpenCode, project: Path, model: ScriptedModel) -> None:
    """One question asked by script, answered over HTTP: the tool part and the model have the answer."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question(), say="I looked at both. ", call_id="call_fixed")])
    asked = opencode.wait_question(session)
    assert [one["label"] for one in asked["questions"][0]["options"]] == ["PostgreSQL", "SQLite"]
    assert asked["tool"]["callID"] == "call_fixed"
    assert opencode.reply(asked["id"], [["SQLite"]], project).json() is True
    received = f'User has answered your questions: "Which database?"="SQLite". {ON}'
    assert opencode.final_text(session) == f"FINAL: {received}"
    assert model.received(session) == (received,)
    assert model.turns(session) == 2
    assert "question" in model.offered(session)
    (said,) = [part["text"] for part in opencode.messages(session)[1]["parts"] if part["type"] == "text"]
    assert said.strip() == "I looked at both."
    part = opencode.tool_part(session, "call_fixed")
    assert part["state"]["status"] == "completed"
    assert part["state"]["metadata"]["answers"] == [["SQLite"]]
    assert opencode.questions(project) == []


def test_several_questions_come_as_one_request(opencode: OpenCode, project: Path, model: ScriptedModel) -> None:
    """A multiple one and a single one: both answers reach the model, in their order."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question("Tools?", "S", "L", "M", multiple=True), question("Db?"))])
    asked = opencode.wait_question(session)
    assert [one.get("multiple", False) for one in asked["questions"]] == [True, False]
    opencode.reply(asked["id"], [["S", "L"], ["my own"]], project)
    opencode.wait_idle(session)
    assert model.received(session) == (f'User has answered your questions: "Tools?"="S, L", "Db?"="my own". {ON}',)


def test_parallel_calls_are_two_requests_of_one_message(
    opencode: OpenCode, project: Path, model: ScriptedModel
) -> None:
    """Two calls in one step are answered apart, in another order, and both results go to the model."""
    session = opencode.session(project)
    opencode.prompt(session, [{"tools": [asks(question("One?")), asks(question("Two?"))]}])
    first, second = opencode.wait_questions(session, 2)
    assert first["tool"]["messageID"] == second["tool"]["messageID"]
    opencode.reply(second["id"], [["SQLite"]], project)
    assert opencode.wait_question(session)["id"] == first["id"]
    opencode.reply(first["id"], [["PostgreSQL"]], project)
    opencode.wait_idle(session)
    answers = {first["questions"][0]["question"]: "PostgreSQL", second["questions"][0]["question"]: "SQLite"}
    assert sorted(model.received(session)) == sorted(
        f'User has answered your questions: "{text}"="{label}". {ON}' for text, label in answers.items()
    )


def test_a_reject_ends_the_turn(opencode: OpenCode, project: Path, model: ScriptedModel) -> None:
    """The model is not asked again; its next prompt shows it what became of the question."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question())])
    opencode.reject(opencode.wait_question(session)["id"], project)
    opencode.wait_idle(session)
    assert model.turns(session) == 1
    assert opencode.tool_parts(session, "question")[0]["state"]["status"] == "error"
    opencode.prompt(session, [{"text": "I go on."}])
    assert opencode.final_text(session) == "I go on."
    assert "dismissed" in model.received(session)[0]


def test_a_call_id_can_be_repeated(opencode: OpenCode, project: Path, model: ScriptedModel) -> None:
    """Two steps with the same call id are two requests."""
    session = opencode.session(project)
    opencode.prompt(session, [asks(question("One?"), call_id="call_1"), asks(question("Two?"), call_id="call_1")])
    for text in ("One?", "Two?"):
        asked = opencode.wait_question(session, text=text)
        opencode.reply(asked["id"], [["SQLite"]], project)
    opencode.wait_idle(session)
    assert [part["callID"] for part in opencode.tool_parts(session)] == ["call_1", "call_1"]
    assert len(model.received(session)) == 2


def test_aborted_and_deleted_sessions_leave_their_questions_listed(opencode: OpenCode, project: Path) -> None:
    """The harness can make both kinds of zombie."""
    aborted, deleted = opencode.session(project), opencode.session(project)
    for session in (aborted, deleted):
        opencode.prompt(session, [asks(question())])
        opencode.wait_question(session)
    opencode.abort(aborted)
    opencode.wait_idle(aborted)
    opencode.delete_session(deleted)
    assert {one["sessionID"] for one in opencode.questions(project)} == {aborted, deleted}


def test_a_subagent_asks_in_a_session_of_its_own(opencode: OpenCode, model: ScriptedModel) -> None:
    """A script inside a task's prompt is the child's script, and keeps its own key."""
    project = opencode.home.project("subagent", agent={"general": {"permission": {"question": "allow"}}})
    session = opencode.session(project, "Root title")
    task = {"description": "ask", "subagent_type": "general", "prompt": script([asks(question())], "child")}
    opencode.prompt(session, [{"tool": "task", "args": task}])
    (asked,) = until(lambda: opencode.questions(project), what="the child's question")
    assert [child["id"] for child in opencode.children(session)] == [asked["sessionID"]]
    opencode.reply(asked["id"], [["SQLite"]], project)
    opencode.wait_idle(session)
    assert '"Which database?"="SQLite"' in model.received("child")[0]
    assert '"Which database?"="SQLite"' in model.received(session)[0]
    opencode.discard(project)


@pytest.mark.parametrize("name", ["with blank/ünï 100%", "a+b?c#d&e=f"])
def test_any_directory_name_is_reached(opencode: OpenCode, model: ScriptedModel, name: str) -> None:
    """Blanks, non-ASCII and a percent sign arrive as they are, in the query and in the header."""
    project = opencode.home.project(name)
    session = opencode.session(project)
    answer = httpx.get(
        f"{opencode.url}/session/{session}",
        headers={"x-opencode-directory": in_header(project)},
        trust_env=False,
    )
    assert answer.json()["directory"] == str(project)
    opencode.prompt(session, [asks(question())])
    opencode.reply(opencode.wait_question(session)["id"], [["SQLite"]], project)
    assert '"Which database?"="SQLite"' in opencode.final_text(session)
    assert opencode.questions() == []
    opencode.discard(project)


def test_two_empty_projects_are_two_to_opencode(opencode: OpenCode, project: Path, own_project: Path) -> None:
    """Projects are told apart by their first commit, so each has its own."""
    ids = {opencode.request("GET", "/project/current", one).json()["id"] for one in (project, own_project)}
    assert len(ids) == 2


@pytest.mark.parametrize("name", ["50%25", "a%20b", "100%"])
def test_a_percent_sign_is_kept_however_it_looks(opencode: OpenCode, name: str) -> None:
    """A name that looks encoded is not decoded on its way.

    Prompts cannot be tried there: 1.18.33 itself decodes a session's directory once more for them.
    """
    project = opencode.home.project(name)
    assert opencode.request("GET", "/path", project).json()["directory"] == str(project)
    session = opencode.session(project)
    assert opencode.request("GET", f"/session/{session}", project).json()["directory"] == str(project)
    opencode.discard(project)


# a server of one's own


def test_a_restart_keeps_port_and_sessions_and_loses_questions(
    private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """The same home and port; a pending question is gone, the session takes a new prompt."""
    opencode = private_opencode()
    session, port = opencode.session(), opencode.port
    opencode.prompt(session, [asks(question())])
    opencode.wait_question(session)
    opencode.restart()
    assert opencode.port == port
    assert opencode.questions() == []
    opencode.prompt(session, [asks(question("Again?"))])
    opencode.reply(opencode.wait_question(session)["id"], [["SQLite"]])
    assert '"Again?"="SQLite"' in opencode.final_text(session)


def test_a_frozen_server_takes_the_reply_when_it_thaws(
    private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """SIGSTOP: requests time out; after SIGCONT the question is answered by the one that was sent."""
    opencode = private_opencode()
    session = opencode.session()
    opencode.prompt(session, [asks(question())])
    asked = opencode.wait_question(session)
    opencode.freeze()
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{opencode.url}/question/{asked['id']}/reply",
            params={"directory": str(opencode.directory)},
            json={"answers": [["SQLite"]]},
            timeout=0.5,
            trust_env=False,
        )
    assert model.received(session) == ()
    opencode.thaw()
    until(lambda: model.received(session), what="the answer that was sent to a frozen server")
    assert '"Which database?"="SQLite"' in opencode.final_text(session)


def test_a_password_is_asked_for(private_opencode: Callable[..., OpenCode]) -> None:
    """With a password the harness gets in and a stranger does not; no text of the harness shows it."""
    opencode = private_opencode(password="geheim-ü")
    assert httpx.get(f"{opencode.url}/global/health", trust_env=False).status_code == 401
    assert opencode.request("GET", "/question").json() == []
    assert "geheim" not in repr(opencode) + opencode.proc.output()


def test_plan_exit_asks_without_free_text(private_opencode: Callable[..., OpenCode], model: ScriptedModel) -> None:
    """`custom: false` comes from plan_exit of the plan agent."""
    opencode = private_opencode(environ={"OPENCODE_EXPERIMENTAL_PLAN_MODE": "1"})
    session = opencode.session()
    opencode.prompt(session, [{"tool": "plan_exit"}], agent="plan")
    asked = opencode.wait_question(session)
    assert asked["questions"][0]["custom"] is False
    assert [one["label"] for one in asked["questions"][0]["options"]] == ["Yes", "No"]
    opencode.reply(asked["id"], [["Yes"]])
    assert opencode.final_text(session).startswith("FINAL: ")
    assert opencode.tool_parts(session, "plan_exit")[0]["state"]["status"] == "completed"


# the desk


@pytest.mark.story
def test_the_desk_answers_by_keys(home: Home, tui: Callable[..., Tui], model: ScriptedModel) -> None:
    """A plain `opencode` without a port asks on its screen; arrow and Enter answer."""
    desk = tui(home.project(), steps=[asks(question(), say="I looked at both.")], key=f"keys-{home.version}")
    assert "2. SQLite" in desk.wait_dialog()
    assert model.received(desk.key) == ()
    desk.send(DOWN)
    desk.send(ENTER)
    desk.wait_screen("FINAL:")
    desk.wait_no_dialog()
    assert model.received(desk.key) == (f'User has answered your questions: "Which database?"="SQLite". {ON}',)


def test_escape_rejects_at_the_desk(home: Home, tui: Callable[..., Tui], model: ScriptedModel) -> None:
    """A typed prompt asks; Esc closes the dialog and the model is not called again."""
    desk = tui(home.project(), key=f"esc-{home.version}")
    desk.prompt([asks(question())])
    desk.wait_dialog()
    desk.send(ESC)
    desk.wait_no_dialog()
    desk.prompt([{"text": "I go on."}])
    desk.wait_screen(lambda _: model.turns(desk.key) == 2)
    assert "dismissed" in model.received(desk.key)[0]


def test_a_killed_desk_is_gone(home: Home, tui: Callable[..., Tui]) -> None:
    """`kill -9` of the terminal's OpenCode ends it, and closing twice harms nothing."""
    desk = tui(home.project(), steps=[asks(question())])
    desk.wait_dialog()
    assert desk.proc.sigkill() == -signal.SIGKILL
    desk.kill()
    desk.kill()
    assert not desk.proc.alive()


def test_a_missing_binary_says_how_to_get_it(tmp_path: Path) -> None:
    """One line with the command to run."""
    with pytest.raises(BinaryMissingError, match=r"run `make opencode`; needs npm"):
        binary("1.18.33", cache=tmp_path)
