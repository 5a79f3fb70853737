"""The plugin inside real OpenCodes of both versions, with a listener that is this test."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes.agents.opencode import adapter, install as connect
from hermes.hook import spool, sweeping
from hermes.model.signals import TurnEnded
from hermes.sandbox.model_server import ScriptedModel, script
from tests.harness.home import Home, binary
from tests.harness.opencode import OpenCode
from tests.harness.processes import Proc, until
from tests.harness.tui import ESC, Tui

PATIENCE_S = 60  # a busy machine takes half of that for a terminal to start
Json = dict[str, Any]
Starts = Callable[..., OpenCode]
ON = "You can now continue with the user's answers in mind."
RECORDED: dict[str, list[Json]] = json.loads(
    (Path(__file__).parents[2] / "payloads" / "opencode-plugin-events.json").read_text(encoding="utf-8")
)


class Phone:
    """A listener without a phone: it sees what hooks keep, and answers whoever waits."""

    def __init__(self, root: Path) -> None:
        self.store = root / "store"
        self.log = root / "hermes.log"
        self._socket: socket.socket | None = spool.listen_socket(self.store)

    def leave(self) -> None:
        """Listen no more."""
        if self._socket is not None:
            spool.close_socket(self._socket)
        self._socket = None

    def close(self) -> None:
        """Leave no socket behind."""
        self.leave()
        sweeping.sweep(self.store)

    def install(self, environ: dict[str, str], python: str = sys.executable) -> Path:
        """Put the plugin into this environment's OpenCode."""
        config = self.store / "config.toml"
        connect.install(environ=environ, python=python, config_path=config, store=self.store, log=self.log)
        return connect.PLUGIN.path(environ)

    def payloads(self) -> list[Json]:
        """All that was kept of requests so far, in order."""
        return [payload for payload in self._kept() if payload["type"] != "turn.ended"]

    def turns(self) -> list[Json]:
        """What was kept of turns that ended, in order."""
        return [payload["properties"] for payload in self._kept() if payload["type"] == "turn.ended"]

    def _kept(self) -> list[Json]:
        found = [spool.read(path)["payload"] for path in spool.listing(self.store)]
        return [payload for payload in found if isinstance(payload, dict)]

    def told(self, kind: str, **properties: object) -> list[Json]:
        """What was kept of this type, with these properties."""
        of_kind = [payload for payload in self.payloads() if payload["type"] == kind]
        return [one for one in of_kind if properties.items() <= one.get("properties", one).items()]

    def wait_told(self, kind: str, **properties: object) -> Json:
        """Wait until exactly one such payload was kept."""

        def one() -> Json:
            found = self.told(kind, **properties)
            assert len(found) == 1, f"{len(found)} {kind}; kept: {[each['type'] for each in self.payloads()]}"
            return found[0]

        return until(one, PATIENCE_S, f"{kind} {properties}")

    def waiters(self, request_id: str) -> list[int]:
        """The hooks that wait for the answer to this request."""
        return spool.waiters(self.store, wait_id(self.store, request_id))

    def wait_waiter(self, request_id: str) -> int:
        """Wait until exactly one hook waits for this request; its process id."""
        return until(lambda: self.waiters(request_id), PATIENCE_S, "a waiter")[0]

    def wait_no_waiter(self, request_id: str) -> None:
        """Wait until none waits for it any more."""
        until(lambda: not self.waiters(request_id), PATIENCE_S, "the end of the waiter")

    def reply(self, request_id: str, *answers: Sequence[str]) -> None:
        """Answer as `waiter_text` of the adapter says it."""
        self.wait_waiter(request_id)
        text = {"requestID": request_id, "kind": "reply", "answers": [list(one) for one in answers]}
        spool.put_answer(self.store, wait_id(self.store, request_id), json.dumps(text))

    def reject(self, request_id: str) -> None:
        """Reject as `waiter_text` of the adapter says it."""
        self.wait_waiter(request_id)
        spool.put_answer(
            self.store, wait_id(self.store, request_id), json.dumps({"requestID": request_id, "kind": "reject"})
        )

    def permit(self, request_id: str, reply: str, **more: str) -> None:
        """Answer a permission as `waiter_text` of the adapter says it: once, always, or reject (with a message)."""
        self.wait_waiter(request_id)
        text = {"requestID": request_id, "kind": "permission", "reply": reply, **more}
        spool.put_answer(self.store, wait_id(self.store, request_id), json.dumps(text))

    def wait_permissions(self, count: int = 1) -> list[Json]:
        """Wait until permission was asked for so often; the properties of each, in order."""

        def found() -> list[Json]:
            told = self.told("permission.asked")
            assert len(told) == count, f"kept: {[each['type'] for each in self.payloads()]}"
            return [each["properties"] for each in told]

        return until(found, PATIENCE_S, f"{count} permissions")

    def kinds(self) -> list[str]:
        """The types of all that was kept, but for receipts."""
        return [payload["type"] for payload in self.payloads() if payload["type"] != "receipt"]


def wait_id(store: Path, request_id: str) -> str:
    """The name under which hooks wait for this request."""
    return spool.wait_id("opencode", spool.machine(store), request_id)


def asks(text: str = "Which database?", labels: str = "AB", **more: Any) -> Json:
    """Return a step that asks one question with these options of one letter."""
    options = [{"label": label, "description": ""} for label in labels]
    question = {"question": text, "header": "Which", "options": options}
    return {"tool": "question", "args": {"questions": [question]}, **more}


def runs(command: str, **more: Any) -> Json:
    """Return a step that runs a command."""
    return {"tool": "bash", "args": {"command": command, "description": "A command"}, **more}


def pending(opencode: OpenCode) -> list[Json]:
    """The permissions that OpenCode lists, zombies too."""
    listed: list[Json] = opencode.request("GET", "/permission").json()
    return listed


def permit_at_the_desk(opencode: OpenCode, request_id: str, reply: str, **more: str) -> None:
    """Answer a permission as another client does."""
    assert opencode.request("POST", f"/permission/{request_id}/reply", None, {"reply": reply, **more}).is_success


def received(answer: str, text: str = "Which database?") -> str:
    """What the model gets for an answer."""
    return f'User has answered your questions: "{text}"="{answer}". {ON}'


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[Phone]:
    """A listener's store, empty."""
    phone = Phone(tmp_path)
    yield phone
    phone.close()


@pytest.fixture
def desk(phone: Phone, home: Home) -> Home:
    """A home in which the plugin is installed."""
    phone.install(home.environ())
    return home


# a server; nobody uses its port but the test


@pytest.mark.nightly
@pytest.mark.parametrize("password", [None, "pässwörd"], ids=["open", "with a password"])
def test_questions_of_two_directories_are_answered_without_a_port(
    desk: Home,
    phone: Phone,
    private_opencode: Starts,
    model: ScriptedModel,
    password: str | None,
) -> None:
    """One in a directory with blank, umlaut and percent: each model gets its own answer, the other rejects."""
    # 1.18.33 decodes a session's own directory once more: a prompt in "%41" runs in a folder "A" there.
    odd = desk.project("with blank ünï " + ("%41" if desk.version == "1.1.53" else "100%"))
    opencode = private_opencode(password=password)
    sessions = {directory: opencode.session(directory, "A title") for directory in (opencode.directory, odd)}
    for directory, session in sessions.items():
        opencode.prompt(session, [asks(say=f"I am in {directory.name}. "), asks("Again?")])
    requests = {directory: opencode.wait_question(session) for directory, session in sessions.items()}
    for directory, request in requests.items():
        told = phone.wait_told("question.asked", id=request["id"])
        assert told["properties"] == request
        assert told["directory"] == str(directory)
        assert told["context"] == {
            "title": "A title",
            "rootTitle": "",
            "lastText": f"I am in {directory.name}.",
        }
    for directory, answer in ((odd, "B"), (opencode.directory, "my own ünï 🦉")):
        phone.reply(requests[directory]["id"], [answer])
    for directory, answer in ((opencode.directory, "my own ünï 🦉"), (odd, "B")):
        session, request = sessions[directory], requests[directory]
        told = phone.wait_told("question.replied", requestID=request["id"])
        assert told["properties"]["answers"] == [[answer]]
        second = until(lambda: _other(opencode, session, request["id"]), PATIENCE_S, "the second question")  # noqa: B023
        phone.reject(second["id"])
        phone.wait_told("question.rejected", requestID=second["id"])
        opencode.wait_idle(session)
        assert model.received(session) == (received(answer),)
    wanted = {"question.asked": 4, "question.replied": 2, "question.rejected": 2, "receipt": 4}
    until(lambda: Counter(payload["type"] for payload in phone.payloads()) == wanted, PATIENCE_S, f"{wanted}")
    assert not phone.log.exists()


def _other(opencode: OpenCode, session: str, request_id: str) -> Json:
    listed = opencode.questions(opencode._where[session])
    return next((one for one in listed if one["sessionID"] == session and one["id"] != request_id), {})


def test_an_answer_at_the_desk_ends_the_waiter(phone: Phone, plugged: Starts) -> None:
    """Replied or rejected there: told once, in order, and no hook stays."""
    opencode = plugged()
    for kind in ("question.replied", "question.rejected"):
        session = opencode.session()
        opencode.prompt(session, [asks()])
        request = opencode.wait_question(session)
        phone.wait_waiter(request["id"])
        opencode.reject(request["id"]) if "rejected" in kind else opencode.reply(request["id"], [["A"]])
        phone.wait_told(kind, requestID=request["id"])
        phone.wait_no_waiter(request["id"])
        opencode.wait_idle(session)
    assert [payload["type"] for payload in phone.payloads()] == [
        *("question.asked", "question.replied"),
        *("question.asked", "question.rejected"),
    ]


def test_an_answer_that_is_put_at_once_finds_its_question(phone: Phone, plugged: Starts, model: ScriptedModel) -> None:
    """Asked and answered in one breath, for several questions of one step."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [{"tools": [asks("One?"), asks("Two?"), asks("Three?")]}])
    requests = opencode.wait_questions(session, 3)
    for request in reversed(requests):
        phone.reply(request["id"], [request["questions"][0]["question"] * 2])
    opencode.wait_idle(session)
    assert model.received(session) == tuple(received(text * 2, text) for text in ("One?", "Two?", "Three?"))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first first", "second first"])
def test_two_questions_with_one_call_id_have_two_answers(phone: Phone, plugged: Starts, order: tuple[int, int]) -> None:
    """OpenCode keeps one state for both calls, which tells of one of them only."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [{"tools": [asks("One?", call_id="dup"), asks("Two?", call_id="dup")]}])
    requests = opencode.wait_questions(session, 2)
    for place in order:
        request = requests[place]
        phone.reply(request["id"], [f"answer {place}"])
        told = phone.wait_told("question.replied", requestID=request["id"])
        assert told["properties"]["answers"] == [[f"answer {place}"]]
    opencode.wait_idle(session)
    assert phone.kinds() == ["question.asked"] * 2 + ["question.replied"] * 2


@pytest.mark.parametrize("how", ["abort", "delete"])
def test_a_session_that_ends_takes_its_question_with_it(phone: Phone, plugged: Starts, how: str) -> None:
    """OpenCode goes on listing it (a zombie); the phone hears of the session, and the waiter is released."""
    opencode = plugged()
    session, other = opencode.session(), opencode.session()
    for each in (session, other):
        opencode.prompt(each, [asks()])
    request, alive = opencode.wait_question(session), opencode.wait_question(other)
    phone.wait_waiter(request["id"])
    phone.wait_waiter(alive["id"])
    opencode.abort(session) if how == "abort" else opencode.delete_session(session)
    told = until(lambda: _ends(phone, session), PATIENCE_S, "the end of the session")
    assert len(told) == 1
    phone.wait_no_waiter(request["id"])
    assert request["id"] in [one["id"] for one in opencode.questions()]
    phone.reply(alive["id"], ["A"])
    phone.wait_told("question.replied", requestID=alive["id"])
    assert _ends(phone, session) == told
    assert _ends(phone, other) == []


def _ends(phone: Phone, session: str) -> list[Json]:
    """What was kept that tells the end of this session."""
    kinds = {"session.idle", "session.error", "session.deleted"}
    found = [payload for payload in phone.payloads() if payload["type"] in kinds]
    return [one for one in found if session in {one["properties"].get("sessionID"), _deleted(one)}]


def _deleted(payload: Json) -> object:
    return payload["properties"].get("info", {}).get("id")


def test_an_error_of_something_else_ends_no_question(phone: Phone, plugged: Starts) -> None:
    """A second prompt that fails while the question is open (new: session.error; old: silence)."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [asks()])
    request = opencode.wait_question(session)
    phone.wait_waiter(request["id"])
    opencode.request(
        "POST", f"/session/{session}/prompt_async", None, {"agent": "nobody", "parts": [{"type": "text", "text": "x"}]}
    )
    phone.reply(request["id"], ["A"])
    phone.wait_told("question.replied", requestID=request["id"])
    assert _ends(phone, session) == []


def test_a_prompt_after_an_abort_ends_the_old_question_and_not_the_new(
    phone: Phone, plugged: Starts, opencode_version: str
) -> None:
    """The first is over, though still listed, and is told once; the second is alive and answered."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [asks("First?")], key="first")
    first = opencode.wait_question(session)
    phone.wait_waiter(first["id"])
    opencode.abort(session)
    opencode.prompt(session, [asks("Second?")], key="second")
    second = until(lambda: _other(opencode, session, first["id"]), PATIENCE_S, "the second question")
    phone.wait_no_waiter(first["id"])

    def ends() -> list[Json]:
        return _ends(phone, session) + phone.told("waiter.gone", waitID=wait_id(phone.store, first["id"]))

    assert len(until(ends, PATIENCE_S, "the end of the first")) == 1
    if opencode_version != "1.1.53":  # there an answer to the first would abort the second one's turn too
        opencode.reply(first["id"], [["A"]])
    phone.reply(second["id"], ["B"])
    phone.wait_told("question.replied", requestID=second["id"])
    assert opencode.final_text(session) == f"FINAL: {received('B', 'Second?')}"
    assert len(ends()) == 1


def test_a_waiter_that_is_killed_is_replaced(phone: Phone, plugged: Starts, model: ScriptedModel) -> None:
    """`kill -9`, twice; then the answer is taken by the third."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [asks()])
    request = opencode.wait_question(session)
    for _ in range(2):
        killed = phone.wait_waiter(request["id"])
        os.kill(killed, signal.SIGKILL)
        until(lambda: phone.waiters(request["id"]) not in ([], [killed]), PATIENCE_S, "another waiter")  # noqa: B023
    phone.reply(request["id"], ["A"])
    opencode.wait_idle(session)
    assert model.received(session) == (received("A"),)
    phone.wait_told("question.replied", requestID=request["id"])
    assert {one["properties"]["id"] for one in phone.told("question.asked")} == {request["id"]}


def test_a_killed_opencode_leaves_no_waiter_and_says_so(desk: Home, phone: Phone, private_opencode: Starts) -> None:
    """Its hooks see the end of their stdin."""
    opencode = private_opencode()
    session = opencode.session()
    opencode.prompt(session, [asks()])
    request = opencode.wait_question(session)
    phone.wait_waiter(request["id"])
    opencode.proc.sigkill()
    assert phone.wait_told("waiter.gone")["waitID"] == wait_id(phone.store, request["id"])
    phone.wait_no_waiter(request["id"])


@pytest.mark.nightly
def test_a_dispose_keeps_the_other_directorys_waiter_and_tells_what_vanished(
    desk: Home, phone: Phone, private_opencode: Starts, model: ScriptedModel
) -> None:
    """Pending questions vanish without an event; the plugin is started again in the same process."""
    opencode = private_opencode()
    elsewhere = desk.project("elsewhere")
    sessions = [opencode.session(), opencode.session(elsewhere)]
    for session in sessions:
        opencode.prompt(session, [asks()])
    vanished, alive = (opencode.wait_question(session) for session in sessions)
    waiter = phone.wait_waiter(alive["id"])
    phone.wait_waiter(vanished["id"])
    opencode.request("POST", "/instance/dispose", opencode.directory)
    until(lambda: _ends(phone, sessions[0]), PATIENCE_S, "the end of what vanished")
    phone.wait_no_waiter(vanished["id"])
    assert phone.waiters(alive["id"]) == [waiter]
    again = opencode.session()
    opencode.prompt(again, [asks("And now?")])
    request = opencode.wait_question(again)
    phone.wait_told("question.asked", id=request["id"])
    phone.reply(request["id"], ["A"])
    phone.reply(alive["id"], ["B"])
    opencode.wait_idle(again)
    opencode.wait_idle(sessions[1])
    assert model.received(again) == (received("A", "And now?"),)
    assert model.received(sessions[1]) == (received("B"),)


def test_a_subagents_question_names_the_root_session_and_ends_with_it(phone: Phone, plugged: Starts) -> None:
    """The request belongs to the child; aborting the parent closes it on the phone."""
    opencode = plugged(agent={"general": {"permission": {"question": "allow"}}})
    session = opencode.session(title="The root")
    task = {"description": "sub d", "subagent_type": "general", "prompt": _script([asks()])}
    opencode.prompt(session, [{"tool": "task", "args": task}])
    (request,) = until(opencode.questions, PATIENCE_S, "the child's question")
    told = phone.wait_told("question.asked", id=request["id"])
    child = request["sessionID"]
    assert child != session
    assert told["context"]["rootTitle"] == "The root"
    assert told["context"]["rootID"] == session
    assert told["context"]["title"].startswith("sub d")
    phone.wait_waiter(request["id"])
    opencode.abort(session)
    until(lambda: _ends(phone, child), PATIENCE_S, "the end of the child")
    phone.wait_no_waiter(request["id"])


def _script(steps: Sequence[Json]) -> str:
    return f"SCRIPT {json.dumps(list(steps))}"


@pytest.mark.nightly
def test_two_copies_of_the_plugin_double_nothing(desk: Home, phone: Phone, private_opencode: Starts) -> None:
    """One in the user's folder, one of another name in the project's."""
    directory = desk.project("copied")
    copy = directory / ".opencode" / "plugin" / "copy.js"
    copy.parent.mkdir(parents=True)
    copy.write_text(connect.PLUGIN.path(desk.environ()).read_text())
    opencode = private_opencode(directory=directory)
    session = opencode.session()
    opencode.prompt(session, [asks()])
    request = opencode.wait_question(session)
    phone.reply(request["id"], ["A"])
    opencode.wait_idle(session)
    phone.wait_told("question.replied", requestID=request["id"])
    assert phone.kinds() == ["question.asked", "question.replied"]
    until(lambda: len(phone.told("receipt")) == 1, PATIENCE_S, "one receipt")


# permissions


def test_what_is_allowed_once_runs_and_what_is_allowed_always_is_not_asked_again(
    phone: Phone, plugged: Starts, model: ScriptedModel
) -> None:
    """The phone gets the request as OpenCode lists it, and what the call wants to do."""
    opencode = plugged()
    session = opencode.session(title="A title")
    opencode.prompt(session, [runs("echo one", say="Let me see. "), runs("echo two"), runs("echo three")])
    (request,) = phone.wait_permissions()
    assert pending(opencode) == [request]
    told = phone.wait_told("permission.asked")
    assert told["directory"] == str(opencode.directory)
    assert told["context"] == {
        "title": "A title",
        "rootTitle": "",
        "lastText": "Let me see.",
        "input": {"command": "echo one", "description": "A command"},
    }
    phone.permit(request["id"], "once")
    second = phone.wait_permissions(2)[1]
    assert second["patterns"] == ["echo two"]
    phone.permit(second["id"], "always")
    opencode.wait_idle(session)
    assert model.received(session) == ("one\n", "two\n", "three\n")
    phone.wait_told("permission.replied", requestID=second["id"])
    assert [one["properties"] for one in phone.told("permission.replied")] == [
        {"sessionID": session, "requestID": request["id"], "reply": "once"},
        {"sessionID": session, "requestID": second["id"], "reply": "always"},
    ]
    assert phone.kinds() == ["permission.asked", "permission.replied"] * 2
    phone.wait_no_waiter(second["id"])
    assert not phone.log.exists()


def test_a_refusal_ends_the_turn(phone: Phone, plugged: Starts, model: ScriptedModel) -> None:
    """The command does not run, and the model is not asked again."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [runs("touch ran")])
    (request,) = phone.wait_permissions()
    phone.permit(request["id"], "reject")
    told = phone.wait_told("permission.replied", requestID=request["id"])
    assert told["properties"] == {"sessionID": session, "requestID": request["id"], "reply": "reject"}
    opencode.wait_idle(session)
    assert model.turns(session) == 1
    assert not (opencode.directory / "ran").exists()


def test_a_refusal_with_a_reason_reaches_the_model(phone: Phone, plugged: Starts, model: ScriptedModel) -> None:
    """It goes on with that; the reason is told as the call's state has it."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [runs("touch ran")])
    (request,) = phone.wait_permissions()
    why = 'no, use "ünï" 🦉\ninstead'
    phone.permit(request["id"], "reject", message=why)
    assert phone.wait_told("permission.replied", requestID=request["id"])["properties"]["message"] == why
    opencode.wait_idle(session)
    (result,) = model.received(session)
    assert result.endswith(f"with the following feedback: {why}")
    assert model.turns(session) == 2
    assert not (opencode.directory / "ran").exists()


@pytest.mark.parametrize("more", [{}, {"message": "not so"}], ids=["plain", "with a reason"])
def test_a_permission_that_is_answered_at_the_desk_ends_the_waiter(
    phone: Phone, plugged: Starts, more: dict[str, str]
) -> None:
    """Allowed or refused there: told once, in order, and no hook stays."""
    opencode = plugged()
    for count, reply in enumerate(("once", "reject"), start=1):
        session = opencode.session()
        opencode.prompt(session, [runs(f"echo {count}")])
        request = phone.wait_permissions(count)[-1]
        phone.wait_waiter(request["id"])
        wanted = more if reply == "reject" else {}
        permit_at_the_desk(opencode, request["id"], reply, **wanted)
        told = phone.wait_told("permission.replied", requestID=request["id"])
        assert told["properties"] == {"sessionID": session, "requestID": request["id"], "reply": reply, **wanted}
        phone.wait_no_waiter(request["id"])
        opencode.wait_idle(session)
    assert phone.kinds() == ["permission.asked", "permission.replied"] * 2


def test_a_long_command_is_told_as_allowed_while_it_runs(phone: Phone, plugged: Starts) -> None:
    """Its state says "running" as before; nothing of it is told twice when it has ended."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [runs("until test -e go; do sleep 0.1; done; echo went")])
    (request,) = phone.wait_permissions()
    phone.permit(request["id"], "once")
    phone.wait_told("permission.replied", requestID=request["id"], reply="once")
    assert opencode.busy(session)
    (opencode.directory / "go").touch()
    assert opencode.final_text(session).strip() == "FINAL: went"
    assert phone.kinds() == ["permission.asked", "permission.replied"]


@pytest.mark.parametrize("how", ["abort", "delete"])
def test_a_session_that_ends_takes_its_permission_with_it(phone: Phone, plugged: Starts, how: str) -> None:
    """OpenCode goes on listing it; whoever replies to that replies to nobody."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [runs("touch ran")])
    (request,) = phone.wait_permissions()
    phone.wait_waiter(request["id"])
    opencode.abort(session) if how == "abort" else opencode.delete_session(session)
    until(lambda: _ends(phone, session), PATIENCE_S, "the end of the session")
    phone.wait_no_waiter(request["id"])
    assert [one["id"] for one in pending(opencode)] == [request["id"]]
    permit_at_the_desk(opencode, request["id"], "reject")
    later = opencode.session()
    opencode.prompt(later, [runs("echo later")])
    phone.permit(phone.wait_permissions(2)[1]["id"], "once")
    phone.wait_told("permission.replied", sessionID=later)
    assert len(_ends(phone, session)) == 1
    assert phone.told("permission.replied", requestID=request["id"]) == []
    assert not (opencode.directory / "ran").exists()


def test_a_dispose_ends_a_permission(phone: Phone, plugged: Starts) -> None:
    """It vanishes without an event."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [runs("touch ran")])
    (request,) = phone.wait_permissions()
    phone.wait_waiter(request["id"])
    opencode.request("POST", "/instance/dispose", opencode.directory)
    until(lambda: _ends(phone, session), PATIENCE_S, "the end of what vanished")
    phone.wait_no_waiter(request["id"])
    assert phone.told("permission.replied") == []


def test_a_refusal_takes_the_sessions_other_permissions_with_it(phone: Phone, plugged: Starts) -> None:
    """Each is told; the reason belongs to the one that was answered."""
    opencode = plugged()
    session, other = opencode.session(), opencode.session()
    opencode.prompt(session, [{"tools": [runs("touch a"), runs("touch b")]}])
    requests = phone.wait_permissions(2)
    opencode.prompt(other, [runs("echo other")])
    alive = phone.wait_permissions(3)[2]
    for request in requests:
        phone.wait_waiter(request["id"])
    answered, beside = requests
    phone.permit(answered["id"], "reject", message="neither")
    told = {request["id"]: phone.wait_told("permission.replied", requestID=request["id"]) for request in requests}
    assert told[answered["id"]]["properties"]["message"] == "neither"
    assert told[beside["id"]]["properties"] == {"sessionID": session, "requestID": beside["id"], "reply": "reject"}
    phone.wait_no_waiter(beside["id"])
    phone.permit(alive["id"], "once")
    phone.wait_told("permission.replied", requestID=alive["id"], reply="once")
    assert _ends(phone, session) == []
    opencode.wait_idle(session)
    assert not list(opencode.directory.glob("[ab]"))


def test_two_permissions_with_one_call_id_have_two_answers(phone: Phone, plugged: Starts) -> None:
    """The end of the command that was allowed says nothing of the other one."""
    opencode = plugged()
    session = opencode.session()
    opencode.prompt(session, [{"tools": [runs("echo one", call_id="dup"), runs("touch ran", call_id="dup")]}])
    allowed, refused = phone.wait_permissions(2)
    phone.permit(allowed["id"], "once")
    phone.wait_told("permission.replied", requestID=allowed["id"], reply="once")
    until(lambda: opencode.tool_parts(session)[0]["state"]["status"] == "completed", PATIENCE_S, "the end of the first")
    phone.permit(refused["id"], "reject")
    phone.wait_told("permission.replied", requestID=refused["id"], reply="reject")
    opencode.wait_idle(session)
    assert not (opencode.directory / "ran").exists()
    assert phone.kinds() == ["permission.asked"] * 2 + ["permission.replied"] * 2


def test_two_permissions_of_one_call_are_both_applied(phone: Phone, plugged: Starts, model: ScriptedModel) -> None:
    """A folder outside the project, then the command itself: the call's state tells of the second only."""
    opencode = plugged(permission={"bash": "ask", "external_directory": "ask"})
    session = opencode.session()
    opencode.prompt(session, [runs(f"rm -f {opencode.home.root}/nothing && echo gone")])
    (first,) = phone.wait_permissions()
    assert first["permission"] == "external_directory"
    phone.permit(first["id"], "once")
    second = phone.wait_permissions(2)[1]
    assert second["permission"] == "bash"
    assert second["tool"] == first["tool"]
    phone.wait_told("permission.replied", requestID=first["id"], reply="once")
    phone.permit(second["id"], "reject", message="not that")
    told = phone.wait_told("permission.replied", requestID=second["id"], reply="reject")
    assert told["properties"]["message"] == "not that"
    opencode.wait_idle(session)
    opencode.prompt(session, [runs(f"rm -f {opencode.home.root}/nothing && echo gone")], key="again")
    for count in (3, 4):
        request = phone.wait_permissions(count)[-1]
        phone.permit(request["id"], "once")
        phone.wait_told("permission.replied", requestID=request["id"], reply="once")
    opencode.wait_idle(session)
    assert model.received("again") == ("gone\n",)
    assert phone.kinds() == ["permission.asked", "permission.replied"] * 4


def test_a_permission_that_opencode_cannot_list_is_applied(phone: Phone, plugged: Starts, model: ScriptedModel) -> None:
    """1.18.33 refuses to list anything beside it; the call then fails for a reason of its own."""
    opencode = plugged(permission={"webfetch": "ask"})
    session = opencode.session()
    opencode.prompt(session, [{"tool": "webfetch", "args": {"url": "http://127.0.0.1:9/x", "format": "text"}}])
    (request,) = phone.wait_permissions()
    assert request["permission"] == "webfetch"
    status = opencode.request("GET", "/permission").status_code
    assert status == (200 if opencode.version == "1.1.53" else 400)
    phone.permit(request["id"], "once")
    phone.wait_told("permission.replied", requestID=request["id"], reply="once")
    opencode.wait_idle(session)
    (result,) = model.received(session)
    assert "rejected" not in result
    assert phone.kinds() == ["permission.asked", "permission.replied"]


def test_a_subagents_permission_names_the_root_session(phone: Phone, plugged: Starts) -> None:
    """The request belongs to the child; what is allowed there lets both go on."""
    opencode = plugged(agent={"general": {"permission": {"bash": "ask"}}})
    session = opencode.session(title="The root")
    task = {"description": "sub d", "subagent_type": "general", "prompt": _script([runs("echo child")])}
    opencode.prompt(session, [{"tool": "task", "args": task}])
    (request,) = phone.wait_permissions()
    told = phone.wait_told("permission.asked")
    assert request["sessionID"] != session
    assert told["context"]["rootTitle"] == "The root"
    assert told["context"]["input"]["command"] == "echo child"
    phone.permit(request["id"], "once")
    assert "FINAL: child" in opencode.final_text(session)


# the terminal


@pytest.mark.story
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "arguments",
    # `make test` has the plain one, with Hermes in place of this phone, in scenes/test_plugin.py.
    [pytest.param((), id="plain", marks=pytest.mark.nightly), pytest.param(("--port", "0"), id="with a port")],
)
def test_a_terminal_is_answered_from_the_phone(
    desk: Home, phone: Phone, tui: Callable[..., Tui], model: ScriptedModel, arguments: tuple[str, ...]
) -> None:
    """No port is needed; with one, where OpenCode starts plugins twice, nothing is doubled."""
    terminal = tui(desk.project("tui"), steps=[asks(), asks("At the desk?", "CD"), asks("No?")], arguments=arguments)
    terminal.wait_dialog()
    (asked,) = until(lambda: phone.told("question.asked"), PATIENCE_S, "the question")
    phone.reply(asked["properties"]["id"], ["B"])
    terminal.wait_screen("At the desk?")
    asked = phone.wait_told("question.asked", sessionID=asked["properties"]["sessionID"], id=_latest(phone, 2))
    phone.wait_waiter(asked["properties"]["id"])
    terminal.wait_screen("1. C")
    terminal.send("1")
    phone.wait_told("question.replied", requestID=asked["properties"]["id"], answers=[["C"]])
    phone.wait_no_waiter(asked["properties"]["id"])
    third = _latest(phone, 3)
    phone.wait_waiter(third)
    terminal.wait_screen("No?")
    terminal.wait_dialog()
    terminal.send(ESC)
    phone.wait_told("question.rejected", requestID=third)
    phone.wait_no_waiter(third)
    assert model.received(terminal.key)[:2] == (received("B"), received("C", "At the desk?"))
    assert len(phone.told("question.asked")) == 3


def _latest(phone: Phone, count: int) -> str:
    """Wait until `count` questions were asked, and return the id of the last."""

    def found() -> str:
        told = phone.told("question.asked")
        assert len(told) == count
        return str(told[-1]["properties"]["id"])

    return until(found, PATIENCE_S, f"{count} questions")


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_terminal_without_hermes_says_so_once(home: Home, phone: Phone, tui: Callable[..., Tui]) -> None:
    """The Python of the plugin is gone: a toast, and the dialog stays usable."""
    plugin = phone.install(home.environ())
    plugin.write_text(plugin.read_text().replace(json.dumps(sys.executable), json.dumps("/nowhere/python")))
    terminal = tui(home.project("tui"), steps=[asks()])
    terminal.wait_screen("hermes install")
    terminal.wait_dialog()
    terminal.send("1")
    terminal.wait_no_dialog()
    assert phone.payloads() == []


def test_opencode_run_is_answered_and_ends(desk: Home, phone: Phone, opencode_version: str, tmp_path: Path) -> None:
    """Only 1.1.53 offers questions to `run`; in both nothing of ours keeps it from leaving."""
    command = ["sh", "-c", f"printf '%s' \"$STEPS\" | '{binary(opencode_version)}' run"]
    cwd, environ = desk.project("run"), desk.environ(STEPS=_script([asks()]))
    with Proc(command, cwd=cwd, environ=environ, log_dir=tmp_path, name="run") as process:
        if opencode_version == "1.1.53":
            phone.reply(_latest(phone, 1), ["A"])
        assert process.wait(PATIENCE_S) == 0
        assert ('"Which database?"="A"' in process.output()) == (opencode_version == "1.1.53")


# the end of turns


def test_a_turn_that_ends_by_itself_is_told_once(phone: Phone, plugged: Starts, model: ScriptedModel) -> None:
    """With its prompt, its times and its last words; not one that a person stopped, nor a subagent's."""
    opencode = plugged()
    session = opencode.session(title="Fix login flow")
    opencode.prompt(session, [asks(), {"text": "Both tests pass now."}])
    request = opencode.wait_question(session)
    phone.wait_waiter(request["id"])
    opencode.reject(request["id"])
    opencode.wait_idle(session)
    task = {"description": "look", "prompt": script([{"text": "Looked."}]), "subagent_type": "general"}
    opencode.prompt(session, [{"tool": "task", "args": task}, {"text": "Both tests pass now."}])
    until(lambda: len(phone.turns()) == 1, PATIENCE_S, "the end of the first turn")
    failing = opencode.session(title="Failing")
    opencode.prompt(failing, [{"status": 400}])
    until(lambda: len(phone.turns()) == 2, PATIENCE_S, "the end of the second turn")
    finished, failed = phone.turns()
    assert (finished["sessionID"], finished["words"], finished["failure"]) == (session, "Both tests pass now.", "")
    assert 0 < finished["ended"] - finished["began"] < PATIENCE_S * 1000
    infos = [message["info"] for message in opencode.messages(session)]
    assert finished["prompt"] == [info["id"] for info in infos if info["role"] == "user"][-1]
    assert (failed["sessionID"], failed["words"]) == (failing, "")
    assert failed["failure"] == "the script says so (400)"
    signals = [adapter.read(one, machine="laptop") for one in phone._kept() if one["type"] == "turn.ended"]
    assert [one.turn.source.session_title for one in signals if isinstance(one, TurnEnded)] == [
        "Fix login flow",
        "Failing",
    ]


@pytest.mark.parametrize("is_answered", [False, True], ids=["in the middle", "after the answer"])
def test_a_turn_whose_session_is_summed_up_is_told_with_its_prompt(
    phone: Phone, plugged: Starts, is_answered: bool
) -> None:
    """OpenCode writes a prompt of its own between, with which the turn goes on."""
    opencode = plugged()
    session = opencode.session(title="Fix login flow")
    step = {"tool": "glob", "args": {"pattern": "*"}}
    summary = script([*[step] * 10, {"text": "Nothing is left to do."}], f"{session}-further")
    step = {"text": "Both tests pass now."} if is_answered else step
    opencode.prompt(session, [{**step, "tokens": 250_000, "summary": summary}])
    until(phone.turns, PATIENCE_S, "the end of the turn")
    (told,) = phone.turns()
    assert told["words"] == ("Both tests pass now.\n\n" if is_answered else "") + "Nothing is left to do."
    assert told["prompt"] == opencode.messages(session)[0]["info"]["id"]


# in a plain Node: what no OpenCode can be made to do

DRIVER = """
import { pathToFileURL } from "node:url"
const [, , ...files] = process.argv
const called = []
setInterval(() => {}, 1000) // the plugin itself keeps nothing alive
const client = (answers) => ({ _client: {
  get: async (o) => {
    called.push(o)
    const answer = answers[o.url]
    return { data: typeof answer === "function" ? answer(o.path) : answer, response: { ok: o.url in answers } }
  },
  post: async (o) => (called.push(o), { data: true, response: { ok: true } }),
}})
const plugins = []
for (const file of files) plugins.push(...Object.values(await import(pathToFileURL(file))))
const state = () => globalThis[Symbol.for("hermes-telegram-phone/4")]
const settle = async () => { for (let i = 0; i < 3; i += 1) await state().queue }
const start = (directory, answers = {}) =>
  Promise.all(plugins.map((plugin) => plugin({ client: client(answers), directory })))
const tell = async (hooks, event) => { for (const hook of hooks) await hook.event({ event }) }
const told = JSON.parse(process.env.EVENTS ?? "[]")
// An OpenCode in which these tool calls are in these states; `error` ones are zombies, which it lists as ever.
const pause = (ms) => new Promise((done) => setTimeout(done, ms))
const asks = (id, sessionID = "ses_1") => {
  const tool = { messageID: `msg_${id}`, callID: `call_${id}` }
  return { type: "question.asked", properties: { id: `que_${id}`, sessionID, questions: [], tool } }
}
const permits = (id, more = {}, sessionID = "ses_1") => ({
  type: "permission.asked",
  properties: { ...asks(id, sessionID).properties, id: `per_${id}`, permission: "bash", patterns: [], ...more },
})
const world = (states, sessionID = "ses_1") => {
  const part = (id) => ({ type: "tool", callID: `call_${id}`, state: { status: states[id], error: "aborted" } })
  return {
    "/question": Object.keys(states).map((id) => asks(id, sessionID).properties),
    "/session/status": { [sessionID]: { type: "busy" } },
    "/session/{sessionID}/message/{messageID}": (path) => ({ parts: [part(path.messageID.slice(4))] }),
  }
}
const posts = () => called.filter((each) => each.body).map((each) => [each.url, each.path, each.body])
"""


def node(tmp_path: Path, code: str, *plugins: Path, events: object = ()) -> str:
    """Run the plugin in Node under a driver with an in-process client of its own; what it prints."""
    driver = tmp_path / "driver.mjs"
    driver.write_text(DRIVER + textwrap.dedent(code) + "\nprocess.exit(0)\n")
    copies = [tmp_path / f"plugin-{number}.mjs" for number, _ in enumerate(plugins)]
    for copy, plugin in zip(copies, plugins, strict=True):
        copy.write_text(plugin.read_text())
    found = subprocess.run(
        ["node", driver, *copies],
        env={"PATH": os.environ["PATH"], "EVENTS": json.dumps(events)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
    return found.stdout


@pytest.fixture
def plugin(phone: Phone, tmp_path: Path) -> Path:
    """The installed file."""
    return phone.install({"HOME": str(tmp_path / "home")})


@pytest.mark.parametrize("version", RECORDED)
def test_recorded_events_are_kept_in_their_order_and_once(
    phone: Phone, plugin: Path, tmp_path: Path, version: str
) -> None:
    """Told three times by two copies, all at once."""
    events = [event for event in RECORDED[version] if event["type"].startswith("question.")]
    code = """
    const hooks = await start("/home/dev/project")
    for (let i = 0; i < 3; i += 1) for (const event of told) tell(hooks, event)
    await settle()
    """
    node(tmp_path, code, plugin, plugin, events=events)
    assert [one["type"] for one in phone.payloads()] == [event["type"] for event in events]
    assert [one["properties"] for one in phone.payloads()] == [event["properties"] for event in events]
    assert all(one["directory"] == "/home/dev/project" for one in phone.payloads())


def test_what_opencode_tells_besides_starts_no_process(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """Sessions without a question, unknown events, and garbage of every kind: nothing is kept or thrown."""
    events: list[object] = [*RECORDED["1.1.53"][3:], *RECORDED["1.18.33"][3:]]
    kinds = ["question.asked", "question.replied", "session.idle", "session.error", "message.updated", "x"]
    for kind in [*kinds, "__proto__", "constructor", "server.instance.disposed", "question.v2.asked"]:
        garbage: list[object] = [None, 1, "x", [], {}, {"id": 1}, {"info": 1}]
        events += [{"type": kind, "properties": one} for one in garbage]
    events += [None, 1, "x", [], {}, {"type": None}]
    node(
        tmp_path,
        'const hooks = await start("/x")\nfor (const e of told) await tell(hooks, e)\nawait settle()',
        plugin,
        events=events,
    )
    assert phone.payloads() == []
    assert not phone.log.exists()


def test_without_a_python_one_toast_is_shown_and_nothing_is_thrown(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """Three questions, one toast."""
    plugin.write_text(plugin.read_text().replace(json.dumps(sys.executable), json.dumps("/nowhere/python")))
    code = """
    const hooks = await start("/x")
    for (const id of ["que_1", "que_2", "que_3"]) {
      await tell(hooks, { type: "question.asked", properties: { id, sessionID: "ses_1", questions: [] } })
    }
    await settle()
    console.log(called.filter((each) => each.url === "/tui/show-toast").length)
    """
    assert node(tmp_path, code, plugin) == "1\n"


@pytest.mark.parametrize("trouble", ["kill -9 $$", "exit 0"], ids=["killed", "no room on the disk"])
def test_an_event_that_its_hook_did_not_keep_is_handed_over_again(
    phone: Phone, plugin: Path, tmp_path: Path, trouble: str
) -> None:
    """Also the end of a question, without which the phone would wait for nothing."""
    once = tmp_path / "python"
    once.write_text(
        f'#!/bin/sh\nif mkdir {tmp_path}/tried 2>/dev/null; then {trouble}; fi\nexec {sys.executable} "$@"\n'
    )
    once.chmod(0o700)
    plugin.write_text(plugin.read_text().replace(json.dumps(sys.executable), json.dumps(str(once))))
    event = {"type": "question.rejected", "properties": {"requestID": "que_1", "sessionID": "ses_1"}}
    node(
        tmp_path, 'const hooks = await start("/x")\nawait tell(hooks, told[0])\nawait settle()', plugin, events=[event]
    )
    assert [one["type"] for one in phone.payloads()] == ["question.rejected"]


def test_an_event_that_its_hook_refuses_is_not_handed_over_again(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """It would be refused each time, and all that comes later waits behind it."""
    event = {"type": "question.rejected", "properties": {"requestID": "x" * 1_100_000, "sessionID": "ses_1"}}
    code = 'const hooks = await start("/x")\nawait tell(hooks, event)\nawait settle()'
    big = 'const event = { ...told[0], properties: { requestID: "x".repeat(1_100_000), sessionID: "ses_1" } }\n'
    node(tmp_path, big + code, plugin, events=[{**event, "properties": {}}])
    assert phone.log.read_text().count("not kept: more than") == 1


def test_a_python_without_hermes_is_told_too(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """The hook itself always leaves with 0, so any other status is news."""
    plugin.write_text(plugin.read_text().replace(json.dumps(sys.executable), json.dumps("/bin/false")))
    code = """
    const hooks = await start("/x")
    await tell(hooks, told[0])
    await settle()
    const toast = called.find((each) => each.url === "/tui/show-toast")
    console.log(toast.body.variant, toast.query.directory)
    """
    assert node(tmp_path, code, plugin, events=RECORDED["1.1.53"]) == "warning /x\n"


def test_a_question_that_no_listener_can_show_is_taken_back(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """The configuration is gone: the hook leaves, the next one is started half a minute later, and nothing piles up."""
    phone.leave()
    code = HOURS.replace("pauses.length < 7", "pauses.length < 2")
    told = json.loads(node(tmp_path, code, plugin))
    assert told["pauses"][:2] == [30, 60]
    assert len(told["toasts"]) == 1
    until(lambda: phone.payloads() == [], PATIENCE_S, "an empty inbox")
    assert f"not kept: no listener can start: {phone.store}/config.toml does not exist" in phone.log.read_text()


HOURS = """
    const real = globalThis.setTimeout
    const pauses = []
    globalThis.setTimeout = (job, ms, ...more) => {
      if (ms >= 10_000 && ms !== 15_000) pauses.push(ms / 1000) // 15 s are the patience with a hook
      return real(job, ms >= 1000 ? 0 : ms, ...more)
    }
    const hooks = await start("/x", world({ alive: "running" }))
    await tell(hooks, asks("alive"))
    while (pauses.length < 7) await pause(20)
    const toasts = called.filter((each) => each.url === "/tui/show-toast").map((each) => each.body.message)
    console.log(JSON.stringify({ pauses: pauses.slice(0, 7), toasts }))
"""


@pytest.mark.parametrize(
    ("hook", "pauses", "toast"),
    [
        ("printf 'kept\\nrefused\\n' >&2", [30, 60, 120, 240, 480, 600, 600], "run: hermes doctor"),
        ("exit 1", [10, 20, 40, 80, 160, 320, 600], "Run: hermes install opencode"),
    ],
    ids=["no listener can start", "hooks die"],
)
def test_a_hook_that_leaves_at_once_is_started_after_ever_longer_pauses(
    phone: Phone, plugin: Path, tmp_path: Path, hook: str, pauses: list[int], toast: str
) -> None:
    """As long as the question is open, and the person at the desk is told once."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{hook}\n")
    python.chmod(0o700)
    plugin.write_text(plugin.read_text().replace(json.dumps(sys.executable), json.dumps(str(python))))
    told = json.loads(node(tmp_path, HOURS, plugin))
    assert told["pauses"] == pauses
    assert [toast in one for one in told["toasts"]] == [True]


def test_the_password_goes_along_and_a_percent_sign_is_encoded_once_more(
    phone: Phone, plugin: Path, tmp_path: Path
) -> None:
    """1.1.53 checks the password of its own plugin, and decodes a directory twice."""
    code = """
    process.env.OPENCODE_SERVER_PASSWORD = "pässwörd"
    const hooks = await start("/100% ünï")
    await tell(hooks, told[0])
    await settle()
    const [{ query, headers }] = called
    console.log(query.directory, Buffer.from(headers.Authorization.slice(6), "base64").toString())
    """
    assert node(tmp_path, code, plugin, events=RECORDED["1.1.53"]) == "/100%25 ünï opencode:pässwörd\n"


def test_the_last_words_are_cut_at_3000_and_never_in_a_character(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """Those of the message that asks; an older one of the same turn where that says nothing."""
    code = """
    const messages = [
      { info: { id: "msg_0", role: "user" }, parts: [{ type: "text", text: "prompt" }] },
      { info: { id: "msg_1", role: "assistant" }, parts: [{ type: "text", text: "🦉".repeat(2000) + "x" }] },
      { info: { id: told[0].properties.tool.messageID, role: "assistant" }, parts: [{ type: "tool" }] },
    ]
    const hooks = await start("/x", { "/session/{sessionID}/message": messages })
    await tell(hooks, told[0])
    await settle()
    """
    node(tmp_path, code, plugin, events=RECORDED["1.1.53"])
    (asked,) = phone.told("question.asked")
    assert asked["context"]["lastText"] == "🦉" * 1499 + "x"


def test_an_answer_is_posted_once_and_only_to_a_question_that_is_alive(
    phone: Phone, plugin: Path, tmp_path: Path
) -> None:
    """To a zombie OpenCode 1.1.53 says "true" as well; there the phone hears of the end instead."""
    for request in ("que_alive", "que_dead", "que_no"):
        text = {"requestID": request, "kind": "reject" if request == "que_no" else "reply", "answers": [["A"]]}
        spool.put_answer(phone.store, wait_id(phone.store, request), json.dumps(text))
    code = """
    const hooks = await start("/x", world({ alive: "running", dead: "error", no: "running" }))
    await tell(hooks, asks("alive"))
    await tell(hooks, asks("dead"))
    await tell(hooks, asks("no"))
    while (posts().length < 2 || state().open.has("que_dead")) await pause(50)
    await settle()
    console.log(JSON.stringify(posts()))
    """
    posts = json.loads(node(tmp_path, code, plugin))
    assert sorted(posts) == [
        ["/question/{requestID}/reject", {"requestID": "que_no"}, {}],
        ["/question/{requestID}/reply", {"requestID": "que_alive"}, {"answers": [["A"]]}],
    ]
    assert phone.told("session.idle", requestID="que_dead")


def test_the_failure_of_another_call_with_the_same_id_ends_no_question(
    phone: Phone, plugin: Path, tmp_path: Path
) -> None:
    """What is listed is open; only an abort of the turn ends all of its calls."""
    text = {"requestID": "que_alive", "kind": "reply", "answers": [["A"]]}
    spool.put_answer(phone.store, wait_id(phone.store, "que_alive"), json.dumps(text))
    code = """
    const part = { type: "tool", callID: "call_alive", state: { status: "error", error: "Transport error" } }
    const messages = { "/session/{sessionID}/message/{messageID}": { parts: [part] } }
    const hooks = await start("/x", { ...world({ alive: "error" }), ...messages })
    await tell(hooks, asks("alive"))
    while (state().open.size && !posts().length) await pause(50)
    console.log(posts().length)
    """
    assert node(tmp_path, code, plugin) == "1\n"


def test_a_zombie_beside_a_living_question_is_told_by_itself(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """Without its id, "the session is quiet" would end the living one, too."""
    code = """
    const hooks = await start("/x", world({ dead: "error", alive: "running" }))
    await tell(hooks, asks("dead"))
    await tell(hooks, asks("alive"))
    await tell(hooks, { type: "session.error", properties: { sessionID: "ses_1" } })
    await settle()
    console.log(...state().open.keys())
    """
    assert node(tmp_path, code, plugin) == "que_alive\n"
    assert [one["properties"]["requestID"] for one in phone.told("session.idle")] == ["que_dead"]
    assert phone.told("session.error") == []


def test_a_reply_that_reached_nobody_is_not_told_as_an_answer(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """A zombie emits `question.replied` too."""
    code = """
    const hooks = await start("/x", world({ dead: "error" }))
    await tell(hooks, asks("dead"))
    const properties = { sessionID: "ses_1", requestID: "que_dead", answers: [["A"]] }
    await tell(hooks, { type: "question.replied", properties })
    await settle()
    """
    node(tmp_path, code, plugin)
    assert [one["type"] for one in phone.payloads()] == ["question.asked", "session.idle"]


@pytest.mark.parametrize("place", [0, 1], ids=["among the newest", "before the newest"])
@pytest.mark.parametrize("prompt", ["msg_1", "msg_2"], ids=["of the same turn", "of another turn"])
def test_a_step_of_the_same_turn_that_looks_later_ends_nothing(
    phone: Phone, plugin: Path, tmp_path: Path, prompt: str, place: int
) -> None:
    """The clock was set back between two steps. An answer to another prompt does end it: its turn was aborted."""
    code = """
    const info = { id: "msg_a", role: "assistant", parentID: "msg_1" }
    const part = { type: "tool", callID: "call_a", state: { status: "running" } }
    const other = { id: "msg_b", role: "assistant", parentID: told[0] }
    const hooks = await start("/x", {
      ...world({ a: "running" }),
      "/session/{sessionID}/message/{messageID}": () => ({ info, parts: [part] }),
      "/session/{sessionID}/message": () => [{ info, parts: [part] }, { info: other, parts: [] }].slice(told[1]),
    })
    await tell(hooks, asks("a"))
    await settle()
    await tell(hooks, { type: "message.updated", properties: { info: { ...other, sessionID: "ses_1" } } })
    await pause(1_000)
    await settle()
    """
    node(tmp_path, code, plugin, events=[prompt, place])
    assert bool(phone.told("session.idle", requestID="que_a")) is (prompt == "msg_2")


def test_an_answer_whose_event_was_missed_is_told_all_the_same(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """The state of the tool call tells it, when the plugin looks around."""
    code = """
    const answers = world({})
    const state_ = { status: "completed", metadata: { answers: [["B"]] } }
    const part = { type: "tool", callID: "call_1", state: state_ }
    answers["/session/{sessionID}/message/{messageID}"] = () => ({ parts: [part] })
    const hooks = await start("/x", answers)
    await tell(hooks, asks("1"))
    while (state().open.size) await pause(50)
    await settle()
    """
    node(tmp_path, code, plugin)
    assert [one["type"] for one in phone.payloads()] == ["question.asked", "question.replied"]
    assert phone.payloads()[1]["properties"]["answers"] == [["B"]]


def test_a_question_of_the_second_engine_is_told_and_not_waited_for(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """Its registry is another one: only the desk can answer."""
    code = """
    const hooks = await start("/x")
    await tell(hooks, { ...asks("1"), type: "question.v2.asked" })
    await settle()
    console.log(posts().length, state().open.get("que_1").hook)
    const properties = { sessionID: "ses_1", requestID: "que_1", answers: [] }
    await tell(hooks, { type: "question.v2.replied", properties })
    await settle()
    console.log(state().open.size)
    """
    assert node(tmp_path, code, plugin) == "0 null\n0\n"
    assert [one["type"] for one in phone.payloads()] == ["question.v2.asked", "question.v2.replied"]


def test_a_permission_that_nobody_waits_for_is_never_replied_to(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """What is allowed after an abort may run all the same; nor is an answer of another kind posted."""
    for request, kind in (("per_alive", "permission"), ("per_dead", "permission"), ("per_odd", "reply")):
        text = {"requestID": request, "kind": kind, "reply": "once", "answers": []}
        spool.put_answer(phone.store, wait_id(phone.store, request), json.dumps(text))
    code = """
    const answers = world({ alive: "running", dead: "running", odd: "running" })
    const hooks = await start("/x", answers)
    await tell(hooks, permits("odd"))
    await tell(hooks, permits("dead", {}, "ses_idle"))
    while (state().open.has("per_dead")) await pause(50)
    await tell(hooks, permits("alive"))
    while (!posts().length) await pause(50)
    await settle()
    console.log(JSON.stringify(posts()))
    """
    assert json.loads(node(tmp_path, code, plugin)) == [
        ["/permission/{requestID}/reply", {"requestID": "per_alive"}, {"reply": "once"}],
    ]
    assert phone.told("session.idle", sessionID="ses_idle", requestID="per_dead")


@pytest.mark.parametrize("status", ["error", "running"], ids=["new", "old"])
def test_a_permission_that_is_replied_to_after_an_abort_is_gone(
    phone: Phone, plugin: Path, tmp_path: Path, status: str
) -> None:
    """OpenCode tells it as any other reply."""
    code = """
    const aborted = { status: told[0], error: "Tool execution aborted" }
    const hooks = await start("/x", {
      "/session/status": {},
      "/session/{sessionID}/message/{messageID}": { parts: [{ type: "tool", callID: "call_dead", state: aborted }] },
    })
    await tell(hooks, permits("dead"))
    const properties = { sessionID: "ses_1", requestID: "per_dead", reply: "once" }
    await tell(hooks, { type: "permission.replied", properties })
    await settle()
    """
    node(tmp_path, code, plugin, events=[status])
    assert phone.kinds() == ["permission.asked", "session.idle"]


def test_a_list_that_cannot_be_had_proves_nothing(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """Nor does a permission that is not listed while its call runs: it may have been allowed."""
    plugin.write_text(plugin.read_text().replace("const ROUND_MS = 5_000", "const ROUND_MS = 20"))
    code = """
    await tell(await start("/x", { ...world({ a: "running" }), "/permission": [] }), permits("a"))
    await tell(await start("/y", world({ b: "running" })), permits("b"))
    await settle()
    const rounds = () => called.filter((each) => each.url === "/permission").map((each) => each.query.directory)
    while (["/x", "/y"].some((each) => rounds().filter((one) => one === each).length < 5)) await pause(20)
    console.log(...state().open.keys())
    """
    assert node(tmp_path, code, plugin) == "per_a per_b\n"


def permitted(phone: Phone, plugin: Path, tmp_path: Path, request: str, given: str) -> Json:
    """Return what a hook is told of a permission with these values in its request, and this input of its call."""
    code = f"""
    const part = {{ type: "tool", callID: "call_1", state: {{ status: "running", input: {given} }} }}
    const messages = {{ "/session/{{sessionID}}/message/{{messageID}}": {{ parts: [part] }} }}
    const hooks = await start("/x", messages)
    await tell(hooks, permits("1", {request}))
    await settle()
    """
    node(tmp_path, code, plugin)
    assert not phone.log.exists()
    (asked,) = phone.told("permission.asked")
    return asked


def test_the_whole_input_of_a_call_is_handed_over(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """All parameters, also a long one: the arguments of a tool that the request does not tell."""
    given = '{ command: "x".repeat(200_000), workdir: "/x/precious", deep: { a: [1] } }'
    asked = permitted(phone, plugin, tmp_path, "{}", given)
    assert asked["context"]["input"] == {"command": "x" * 200_000, "workdir": "/x/precious", "deep": {"a": [1]}}
    assert "cut" not in asked["context"]


def test_what_a_permission_shows_is_cut_before_a_hook_refuses_it(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """An edit's metadata holds all of its text, and so does its input; the hook is told that something is missing."""
    request = '{ metadata: { diff: "🦉".repeat(700_000), files: [{ after: "y".repeat(200_000) }] }, patterns: ["a"] }'
    given = '{ command: "x".repeat(100_001), more: "y".repeat(2_000_000) }'
    asked = permitted(phone, plugin, tmp_path, request, given)
    metadata = {"diff": "🦉" * 50_000 + "…", "files": [{"after": "y" * 100_000 + "…"}]}
    assert asked["properties"]["metadata"] == metadata
    assert asked["properties"]["patterns"] == ["a"]
    assert asked["context"]["input"] == {"command": "x" * 100_000 + "…", "more": "y" * 100_000 + "…"}
    assert asked["context"]["cut"] is True


def test_an_input_of_too_many_parts_is_left_out(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """No cut of its texts makes it short enough."""
    asked = permitted(phone, plugin, tmp_path, "{}", "{ command: 'ls', more: Array(400_000).fill(null) }")
    assert "input" not in asked["context"]
    assert asked["context"]["cut"] is True


def test_a_permission_before_another_of_its_call_was_allowed(phone: Phone, plugin: Path, tmp_path: Path) -> None:
    """What became of the call since then says nothing of the first."""
    code = """
    const aborted = { status: "error", error: "Tool execution aborted" }
    const part = { type: "tool", callID: "call_1", state: aborted }
    const messages = { "/session/{sessionID}/message/{messageID}": { parts: [part] } }
    const hooks = await start("/x", { ...messages, "/session/status": {} })
    await tell(hooks, permits("1"))
    const properties = { sessionID: "ses_1", requestID: "per_1", reply: "always" }
    await tell(hooks, { type: "permission.replied", properties })
    await tell(hooks, permits("1", { id: "per_2" }))
    while (state().open.size) await pause(50)
    await settle()
    """
    node(tmp_path, code, plugin)
    assert phone.kinds() == ["permission.asked", "permission.replied", "permission.asked", "session.idle"]
    assert phone.told("session.idle", requestID="per_2")
