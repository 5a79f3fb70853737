"""Without a port: OpenCode's plugin brings the questions and applies the answers, in terminals and servers alike."""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.agents.opencode import install
from hermes.hook import spool
from hermes.sandbox.model_server import script
from tests.at_once import at_once
from tests.harness.home import VERSIONS
from tests.harness.processes import until
from tests.harness.tui import ESC
from tests.scenes.stage import COLOUR, NAME, SIZES, asking, question
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.sandbox.model_server import ScriptedModel
    from tests.harness.home import Home
    from tests.harness.opencode import OpenCode
    from tests.harness.tui import Tui
    from tests.scenes.stage import Json, Stage

NO_LONGER = "The agent no longer needs this"
DATABASE = "Which database should I use?"
BOOT_S = 60
"""A terminal starts in 3 s, on a busy machine in 30."""


@pytest.fixture
def desk(stage: Stage, home: Home) -> Home:
    """A home in which `hermes install opencode` was run."""
    stage.write_config()
    command = stage.run("install", "opencode", "--config", str(stage.config), environ=home.environ())
    assert command.wait() == 0, command.output()
    assert install.PLUGIN.path(home.environ()).exists()
    return home


@pytest.fixture
def portless(stage: Stage) -> Stage:
    """A stage whose listener knows no server, for `plugged`."""
    stage.start()
    return stage


@pytest.fixture
def listening(stage: Stage, desk: Home) -> Stage:
    """A stage whose listener knows no server, beside a home with the plugin."""
    stage.start()
    assert "[[opencode]]" not in stage.config.read_text()
    return stage


@pytest.fixture
def key() -> str:
    """A name of its own for what the model receives from a terminal."""
    return f"desk-{uuid.uuid4().hex[:8]}"


def received(*answers: tuple[str, str]) -> str:
    """What the model gets for these questions and answers."""
    pairs = ", ".join(f'"{text}"="{answer}"' for text, answer in answers)
    return f"User has answered your questions: {pairs}. You can now continue with the user's answers in mind."


def request_of(stage: Stage, phase: str = "open") -> str:
    """The request id of the one entry in this phase."""
    request: str = stage.wait_phase(phase)["ask"]["source"]["request_id"]
    return request


def wait_id(stage: Stage, request: str) -> str:
    """The name under which hooks wait for the answer to this request."""
    return spool.wait_id("opencode", spool.machine(stage.store), request)


def waiters(stage: Stage, request: str) -> list[int]:
    """The hooks that wait for the answer to this request."""
    return spool.waiters(stage.store, wait_id(stage, request))


def wait_waiter(stage: Stage) -> int:
    """Wait until a hook waits for the one question that is open; its process id."""
    request = request_of(stage)
    return until(lambda: waiters(stage, request), 30, "a waiting hook")[0]


def hostile(directory: Path) -> Path:
    """Put modules of our names into a repository; return the folder where they leave a mark when executed."""
    marks = directory.parent / f"{directory.name}-marks"
    marks.mkdir()
    for name in ("json", "hermes", "os", "spool", "sitecustomize", "usercustomize"):
        mark = marks / name
        (directory / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    return marks


def is_running(pid: int) -> bool:
    """Whether a process is there; one that nobody has reaped yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_received(model: ScriptedModel, key: str, *wanted: str) -> None:
    """Wait until the model has received exactly this."""

    def there() -> bool:
        assert model.received(key) == wanted
        return True

    until(there, 30, "what the model received")


# --- a terminal without a port ----------------------------------------------------------------------------------


@pytest.mark.story
@pytest.mark.timeout(300)
def test_a_plain_terminal_and_the_phone_are_one(
    listening: Stage, desk: Home, tui: Callable[..., Tui], model: ScriptedModel, key: str
) -> None:
    """Scene 21: answered from the phone, then in the terminal, then dismissed there: each side follows the other."""
    steps = [asking(question(), say="The schema is small. "), asking(COLOUR), asking(NAME)]
    terminal = tui(desk.project("tui"), steps=steps, key=key)
    asked = listening.asked("Which database", BOOT_S)
    assert "The schema is small." in asked.text
    terminal.wait_dialog()
    listening.phone.tap(asked, "SQLite")
    listening.ended("✅ SQLite")
    wait_received(model, key, received((DATABASE, "SQLite")))

    asked = listening.asked("Which colour?")
    terminal.wait_screen("2. Blue")
    terminal.wait_dialog()
    terminal.send("2")
    assert listening.ended("Answered on the computer: Blue").message_id == asked.message_id
    late = listening.phone.tap(asked.message_id, data=asked.button("Red").data, chat=asked.chat_id)
    assert "Already answered on the computer" in listening.phone.toast_for(late).text

    asked = listening.asked("Which name?")
    terminal.wait_screen("1. Ada")
    terminal.wait_dialog()
    terminal.send(ESC)
    assert listening.ended("Dismissed on the computer").message_id == asked.message_id
    terminal.wait_no_dialog()
    listening.over()
    assert model.received(key)[:2] == (received((DATABASE, "SQLite")), received(("Which colour?", "Blue")))
    assert model.turns(key) == 3


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("step", "told", "words"),
    [
        pytest.param(
            {"text": "Both tests pass now."}, "✅ A scripted session is done", "Both tests pass now.", id="finished"
        ),
        pytest.param({"status": 400}, " stopped: the script says so (400)", "", id="failed", marks=pytest.mark.nightly),
    ],
)
def test_the_end_of_a_turn_in_a_plain_terminal_is_told(
    step: Json, told: str, words: str, stage: Stage, desk: Home, tui: Callable[..., Tui], key: str
) -> None:
    """Once: the plugin has read from OpenCode's record what it came to."""
    stage.start(notices={"finished": "0s"})
    project = desk.project("tui")
    tui(project, steps=[step], key=key)
    shown = stage.ended(told, BOOT_S)
    assert words in shown.text
    assert f"{project.name} · OpenCode on " in shown.text
    stage.over()
    assert len(stage.phone.shown()) == 1


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_changes_of_a_turn_in_a_plain_terminal_are_shown(
    stage: Stage, desk: Home, tui: Callable[..., Tui], key: str
) -> None:
    """1.18.33 writes diffs, which the plugin tells; 1.1.53 writes none, so that its notice has no button."""
    stage.start(notices={"finished": "0s"})
    project = desk.project("tui", snapshot=True, permission={"bash": "allow"})
    command = {"command": "printf '1\\n2\\n' > new.txt", "description": "change"}
    tui(project, steps=[{"tool": "bash", "args": command}, {"text": "Changed."}], key=key)
    if desk.version == VERSIONS[-1]:
        stage.ended("Changed.", BOOT_S)
        return
    shown = stage.asked("Changed.", BOOT_S)
    stage.phone.tap(shown, "Changes")
    assert "@@ -0,0 +1,2 @@\n+1\n+2" in stage.ended("Changes of ").text


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_kills_around_a_plain_terminal(
    listening: Stage, desk: Home, tui: Callable[..., Tui], model: ScriptedModel, key: str
) -> None:
    """Scene 21: `kill -9` of the waiting hook, of the listener, of the terminal; answers arrive all the same."""
    terminal = tui(desk.project("tui"), steps=[asking(question()), asking(COLOUR), asking(NAME)], key=key)
    asked = listening.asked("Which database", BOOT_S)
    os.kill(wait_waiter(listening), signal.SIGKILL)
    listening.phone.tap(asked, "Redis")  # before the plugin has noticed
    listening.ended("✅ Redis")
    wait_received(model, key, received((DATABASE, "Redis")))

    asked = listening.asked("Which colour?")
    wait_waiter(listening)
    listening.kill()
    listening.phone.tap(asked, "Blue")
    listening.start()
    listening.ended("✅ Blue")
    wait_received(model, key, received((DATABASE, "Redis")), received(("Which colour?", "Blue")))

    listening.asked("Which name?")
    hook = wait_waiter(listening)
    terminal.proc.sigkill()
    listening.ended(NO_LONGER)
    listening.over()
    until(lambda: not is_running(hook), 10, "the end of the waiting hook")
    assert model.turns(key) == 3


# --- a server whose port nobody uses ----------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize(
    "password",
    # `make test` has an open server in all scenes around this one.
    [pytest.param("", id="open", marks=pytest.mark.nightly), pytest.param("pässwörd", id="with a password")],
)
def test_several_directories_without_a_port(
    listening: Stage, desk: Home, private_opencode: Callable[..., OpenCode], model: ScriptedModel, password: str
) -> None:
    """Scene 21, and 19 and 20 through the plugin: no server is configured, yet each model gets its own answer."""
    odd = desk.project("with blank/ünï 100%")
    opencode = private_opencode(password=password or None)
    here, there = opencode.session(title="Here"), opencode.session(odd, "There")
    opencode.prompt(here, [asking(question(), say="In the main folder. ")])
    asked = listening.asked("Which database")
    assert "In the main folder." in asked.text
    opencode.prompt(there, [asking(COLOUR, say="In the odd folder. ")])
    other = listening.asked("Which colour?")
    assert "In the odd folder." in other.text
    assert "There" in other.text
    listening.phone.tap(other, "Blue")
    listening.ended("✅ Blue")
    text = 'DuckDB – "in a file",\nif <b>you</b> *like* ☕ 👩‍🚀'
    listening.phone.write(text, reply_to=asked)
    listening.ended("✅ “DuckDB")
    assert opencode.final_text(there) == f"FINAL: {received(('Which colour?', 'Blue'))}"
    assert opencode.final_text(here) == f"FINAL: {received((DATABASE, text))}"
    assert [len(model.received(session)) for session in (here, there)] == [1, 1]
    listening.over()
    if password:
        assert password not in listening.log.read_text(encoding="utf-8")


def test_picks_pages_skip_and_stop_through_the_plugin(
    portless: Stage, plugged: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """Scene 21: several choices with a text, several questions, a skip (the model goes on), a stop (it does not)."""
    opencode, phone = plugged(portless.root), portless.phone
    session = opencode.session()
    opencode.prompt(session, [asking(SIZES), asking(COLOUR, NAME), asking(COLOUR), asking(NAME)])
    page = portless.asked("Which sizes?")
    phone.write("XXL, but only in blue", reply_to=page)
    page = portless.turned(page, "✏️ “XXL, but only in blue”", button="Done (1)")
    for size in ("L", "S"):
        phone.tap(page, f"☐ {size}")
    phone.tap(portless.turned(page, "☑ 1 S", "☑ 3 L", button="Done (3)"), "Done (3)")
    portless.ended("✅ L, S, “XXL")

    page = portless.asked("Which colour?")
    phone.tap(page, "Red")
    phone.tap(portless.turned(page, "Which name?"), "Bea")
    phone.tap(portless.turned(page, "Ready to send?"), "Send")
    portless.ended("1 Colour: Red\n2 Name: Bea\n✅ Answered")

    page = portless.asked("Which colour?")
    phone.tap(page, "⏭ Skip")
    phone.tap(portless.turned(page, "Let it decide by itself?"), "Yes")
    portless.ended("⏭ Skipped")

    page = portless.asked("Which name?")
    phone.tap(page, "⏹ Stop")
    phone.tap(portless.turned(page, "Stop the agent?"), "Yes, stop")
    portless.ended("⏹ Stopped")
    opencode.wait_idle(session)
    portless.over()
    assert model.received(session)[:3] == (
        received(("Which sizes?", "L, S, XXL, but only in blue")),
        received(("Which colour?", "Red"), ("Which name?", "Bea")),
        received(("Which colour?", "Unanswered")),
    )
    assert model.turns(session) == 4
    assert "dismissed" in opencode.tool_parts(session, "question")[-1]["state"]["error"]


@pytest.mark.parametrize("how", ["aborted", "deleted", "aborted and prompted again"])
def test_a_session_that_gave_up_is_closed_without_a_port(
    how: str, portless: Stage, plugged: Callable[..., OpenCode]
) -> None:
    """Scene 17: OpenCode goes on listing the question; the plugin notices, and says so."""
    opencode = plugged(portless.root)
    session = opencode.session()
    opencode.prompt(session, [asking(question())], key="first")
    asked = portless.asked("Which database")
    request = opencode.wait_question(session)["id"]
    wait_waiter(portless)
    opencode.delete_session(session) if how == "deleted" else opencode.abort(session)
    if how == "aborted and prompted again":
        opencode.prompt(session, [asking(COLOUR)], key="second")
        again = portless.asked("Which colour?")
        assert portless.ended(NO_LONGER).message_id == asked.message_id
        portless.phone.tap(again, "Blue")
        portless.ended("✅ Blue")
        assert opencode.final_text(session) == f"FINAL: {received(('Which colour?', 'Blue'))}"
    assert portless.ended(NO_LONGER).message_id == asked.message_id
    portless.over()
    until(lambda: not waiters(portless, request), 30, "the end of the waiter")


@pytest.mark.nightly
def test_a_dispose_closes_the_question_and_the_next_one_is_answered(
    listening: Stage, desk: Home, private_opencode: Callable[..., OpenCode]
) -> None:
    """Scene 21: `/instance/dispose` takes a question away without an event, and starts the plugin again."""
    opencode = private_opencode()
    elsewhere = desk.project("elsewhere")
    lost, kept = opencode.session(), opencode.session(elsewhere)
    opencode.prompt(lost, [asking(question())])
    asked = listening.asked("Which database")
    opencode.prompt(kept, [asking(NAME)])
    other = listening.asked("Which name?")
    opencode.request("POST", "/instance/dispose", opencode.directory)
    assert listening.ended(NO_LONGER).message_id == asked.message_id
    again = opencode.session()
    opencode.prompt(again, [asking(COLOUR)])
    listening.phone.tap(listening.asked("Which colour?"), "Red")
    listening.phone.tap(other, "Bea")
    listening.ended("✅ Red")
    listening.ended("✅ Bea")
    assert opencode.final_text(again) == f"FINAL: {received(('Which colour?', 'Red'))}"
    assert opencode.final_text(kept) == f"FINAL: {received(('Which name?', 'Bea'))}"
    listening.over()


# --- an answer that is lost on its way --------------------------------------------------------------------------


@pytest.mark.parametrize("receipt", [False, True], ids=["before it printed", "after it printed"])
def test_a_waiter_that_dies_with_the_answer_in_its_hand(
    portless: Stage, plugged: Callable[..., OpenCode], model: ScriptedModel, *, receipt: bool
) -> None:
    """Scene 21: it took the answer, and the plugin never read it: the next waiter gets the same answer again."""
    opencode = plugged(portless.root)
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    asked = portless.asked("Which database")
    hook = wait_waiter(portless)
    os.kill(hook, signal.SIGSTOP)
    try:
        portless.phone.tap(asked, "SQLite")
        name = wait_id(portless, request_of(portless, "sending"))
        taken = until(lambda: spool.take_answer(portless.store, name), 30, "the answer")
        assert taken is not None
        assert "SQLite" in taken
        if receipt:
            spool.drop(portless.store, spool.record("opencode", {"type": "receipt", "waitID": name}))
            spool.nudge(portless.store)
    finally:
        os.kill(hook, signal.SIGKILL)
    portless.ended("✅ SQLite")
    assert opencode.final_text(session) == f"FINAL: {received((DATABASE, 'SQLite'))}"
    assert len(model.received(session)) == 1
    portless.over()


def test_a_frozen_waiter_is_said_to_be_away_and_its_successor_delivers(
    portless: Stage, plugged: Callable[..., OpenCode]
) -> None:
    """Scene 21: the answer is saved and the phone says so; the kill comes later than any patience with a dead one."""
    opencode = plugged(portless.root)
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    asked = portless.asked("Which database")
    hook = wait_waiter(portless)
    os.kill(hook, signal.SIGSTOP)
    try:
        portless.phone.tap(asked, "SQLite")
        portless.turned(asked, "can't be reached")
    finally:
        os.kill(hook, signal.SIGKILL)
    portless.ended("✅ SQLite")
    assert opencode.final_text(session) == f"FINAL: {received((DATABASE, 'SQLite'))}"
    portless.over()


@pytest.mark.nightly
def test_a_frozen_opencode_without_a_port_gets_the_answer_when_it_is_back(
    listening: Stage, desk: Home, private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """Scene 13 without a port (a terminal that Ctrl-Z stopped): saved, said so, delivered once."""
    opencode = private_opencode()
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    asked = listening.asked("Which database")
    wait_waiter(listening)
    opencode.freeze()
    listening.phone.tap(asked, "SQLite")
    listening.turned(asked, "can't be reached")
    opencode.thaw()
    listening.ended("✅ SQLite")
    listening.phone.message_with("Delivered")
    assert opencode.final_text(session) == f"FINAL: {received((DATABASE, 'SQLite'))}"
    assert len(model.received(session)) == 1
    listening.over()


def test_an_opencode_that_dies_with_the_answer_unread(
    listening: Stage, desk: Home, private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """Scene 21: the hook printed the answer, nobody read it: the person is told within seconds, in a new message."""
    opencode = private_opencode()
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    asked = listening.asked("Which database")
    wait_waiter(listening)
    opencode.freeze()
    listening.phone.tap(asked, "SQLite")
    until(lambda: listening.wait_phase("sending")["waiter_taken"], 60, "the receipt")
    opencode.proc.sigkill()
    listening.phone.message_with("came too late")
    listening.ended(NO_LONGER)
    listening.over()
    assert model.received(session) == ()


# --- the plugin and the event stream, and nobody at all ---------------------------------------------------------


def test_the_plugin_and_the_event_stream_are_one_ask(
    stage: Stage, desk: Home, private_opencode: Callable[..., OpenCode], model: ScriptedModel
) -> None:
    """Scene 26: both tell of it: one entry, one message, one reply, and an end that is told once."""
    opencode = private_opencode()
    stage.connect(opencode)
    stage.start()
    session = opencode.session()
    opencode.prompt(session, [asking(question()), asking(COLOUR)])
    for text, answer in ((DATABASE, "SQLite"), ("Which colour?", "Blue")):
        asked = stage.asked(text)
        request = opencode.wait_question(session, text=text)["id"]
        wait_waiter(stage)
        until(lambda: stage.wait_phase("open")["ask"]["source"]["server"], 60, "the server's word for it")
        assert request_of(stage) == request
        if answer == "SQLite":
            stage.phone.tap(asked, answer)
            stage.ended("✅ SQLite")
        else:
            opencode.reply(request, [[answer]])
            stage.ended("Answered on the computer: Blue")
    assert opencode.final_text(session) == f"FINAL: {received(('Which colour?', 'Blue'))}"
    assert model.received(session) == (received((DATABASE, "SQLite")), received(("Which colour?", "Blue")))
    stage.over()
    assert len(stage.phone.shown()) == 2
    assert len(at_once(a_store(stage.store).newest_done(9))) == 2
    assert stage.log.read_text(encoding="utf-8").count(" asked: entry ") == 2


@pytest.fixture
def unattended(stage: Stage) -> Stage:
    """A stage where a hook may start the listener; it is ended with the test."""
    stage.unattended = True
    return stage


@pytest.mark.timeout(300)
def test_without_any_listener_the_hook_starts_one(
    unattended: Stage, desk: Home, tui: Callable[..., Tui], model: ScriptedModel, key: str
) -> None:
    """Scene 27: no listener, no service: what the hook starts posts, takes the tap, delivers; one for both asks."""
    tui(desk.project("tui"), steps=[asking(question()), asking(COLOUR)], key=key)
    phone = unattended.phone
    phone.tap(unattended.asked("Which database", BOOT_S), "SQLite")
    unattended.ended("✅ SQLite")
    first = a_store(unattended.store).home.listener()
    assert first is not None
    phone.tap(unattended.asked("Which colour?"), "Blue")
    unattended.ended("✅ Blue")
    wait_received(model, key, received((DATABASE, "SQLite")), received(("Which colour?", "Blue")))
    unattended.over()
    assert a_store(unattended.store).home.listener() == first
    assert "--until-idle" in Path(f"/proc/{first.pid}/cmdline").read_text()


def test_a_repositorys_own_modules_are_not_executed(
    unattended: Stage, desk: Home, private_opencode: Callable[..., OpenCode]
) -> None:
    """Scene 28: neither the hooks nor the listener that they start load a `json.py` or `hermes.py` of the project."""
    directory = desk.project("hostile")
    marks = hostile(directory)
    opencode = private_opencode(directory=directory, environ={"PYTHONPATH": str(directory)})
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    unattended.phone.tap(unattended.asked("Which database", BOOT_S), "SQLite")
    unattended.ended("✅ SQLite")
    assert opencode.final_text(session) == f"FINAL: {received((DATABASE, 'SQLite'))}"
    unattended.over()
    assert not list(marks.iterdir())


# --- the other engine -------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["plugin", "server"])
def test_a_question_of_the_second_engine_is_for_the_computer(
    way: str, stage: Stage, desk: Home, private_opencode: Callable[..., OpenCode]
) -> None:
    """Contract 9: `question.v2.asked` is shown without buttons, and closes when it is answered at its own route."""
    if desk.version == "1.1.53":
        pytest.skip("contract 9, New in 1.18.33: there is no second engine in 1.1.53")
    opencode = private_opencode()
    if way == "server":
        install.uninstall(environ=desk.environ())
        opencode.restart()
        stage.connect(opencode)
    stage.start()
    session = opencode.session()
    prompt = {"prompt": {"text": script([asking(question())], session)}}
    assert opencode.request("POST", f"/api/session/{session}/prompt", None, prompt).is_success
    shown = stage.phone.message_with("Which database", BOOT_S)
    assert "on the computer" in shown.text
    assert shown.rows == ()
    stage.phone.write("SQLite", reply_to=shown)
    stage.phone.message_with("Please answer this one on the computer.")
    entry = stage.wait_phase("open")
    assert not entry["ask"]["answerable"]
    reply = f"/api/session/{session}/question/{entry['ask']['source']['request_id']}/reply"
    assert opencode.request("POST", reply, None, {"answers": [["SQLite"]]}).is_success
    assert stage.ended("Answered on the computer: SQLite").message_id == shown.message_id
    stage.over()
