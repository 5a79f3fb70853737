"""Prompts without a port: the phone writes to plain terminals, through OpenCode's plugin."""

from __future__ import annotations

import json
import os
import signal
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.hook import plugin_folders
from hermes.sandbox.model_server import script
from tests.harness.processes import until
from tests.scenes.stage import NEWEST, asking, question
from tests.scenes.test_files_in import pictures, png, seeing_provider

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.hook.plugin_folders import Plugin
    from hermes.sandbox.model_server import ScriptedModel
    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.home import Home
    from tests.harness.opencode import OpenCode
    from tests.harness.tui import Tui
    from tests.scenes.stage import Json, Stage

BOOT_S = 60
"""A terminal starts in 3 s, on a busy machine in 30."""
DONE = " is done"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def desk(stage: Stage, home: Home) -> Home:
    """A home in which `hermes install opencode` was run."""
    stage.write_config()
    command = stage.run("install", "opencode", "--config", str(stage.config), environ=home.environ())
    assert command.wait() == 0, command.output()
    return home


@pytest.fixture
def prompting(stage: Stage, desk: Home) -> Stage:
    """A stage whose phone may send prompts and that follows no server, beside a home with the plugin."""
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    return stage


@pytest.fixture
def words() -> Callable[..., str]:
    """Return a prompt of these steps that no other test sends."""
    return lambda *steps, **more: script(list(steps), f"phone-{uuid.uuid4().hex[:8]}", **more)


def runs(command: str) -> Json:
    """A step that runs a command."""
    return {"tool": "bash", "args": {"command": command, "description": "wait"}}


def wait_told(stage: Stage, text: str) -> ShownMessage:
    """Wait for the notice that ends with these words."""
    return stage.ended(text, BOOT_S)


def assert_once(model: ScriptedModel, text: str, *, steps: int = 1) -> None:
    """The model was asked with exactly this text, once for each step of its answer, and never with it twice."""
    asked = model.asked(text)
    assert asked, "the model was not asked"
    assert {texts.count(text) for texts in asked} == {1}
    assert [texts[-1] for texts in asked].count(text) == steps


def plugin_of(stage: Stage) -> Plugin:
    """The one plugin that is alive."""
    (plugin,) = [one for one in plugin_folders.plugins(stage.store) if one.is_alive]
    return plugin


def prompts(stage: Stage) -> list[Json]:
    """What the store has of prompts."""
    return [json.loads(file.read_text())["prompt"] for file in sorted((stage.store / "prompts").glob("*.json"))]


def rows_of_list(stage: Stage, least: int) -> int:
    """Write /sessions until a list has so many rows; how many it has. A terminal that answers late is left out."""

    def rows() -> int:
        (written,) = stage.phone.write("/sessions")
        found = until(lambda: [one for one in stage.phone.shown() if one.reply_to == written], BOOT_S, "a list")
        return len(found[0].rows)

    return until(lambda: count if (count := rows()) >= least else 0, BOOT_S, f"a list of {least}")


@pytest.mark.story
def test_the_phone_writes_to_a_plain_terminal(
    prompting: Stage, desk: Home, tui: Callable[..., Tui], model: ScriptedModel, words: Callable[..., str]
) -> None:
    """A reply to a notice appears in the terminal; one to a busy session waits; one that runs is stopped."""
    project = desk.project("tui", permission={"bash": "allow"})
    terminal = tui(project, steps=[{"text": "First done."}])
    notice = wait_told(prompting, "First done.")
    second = words({"text": "Second done."})
    prompting.phone.write(second, reply_to=notice)
    notice = wait_told(prompting, "Second done.")
    terminal.wait_answered("Second done.")
    assert_once(model, second)

    third = words(runs("until test -e go; do sleep 0.1; done"), {"text": "Third done."})
    fourth = words({"text": "Fourth done."})
    (written,) = prompting.phone.write(third, reply_to=notice)
    working = prompting.line_of(written, "Working")
    (written,) = prompting.phone.write(fourth, reply_to=working)
    behind = prompting.line_of(written, "Waits for the current turn")
    (project / "go").touch()
    wait_told(prompting, "Third done.")
    notice = wait_told(prompting, "Fourth done.")
    terminal.wait_answered("Fourth done.")
    prompting.turned(behind, "✅ Done")
    assert_once(model, third, steps=2)
    assert_once(model, fourth)

    (written,) = prompting.phone.write(words(runs("sleep 60"), {"text": "Fifth done."}), reply_to=notice)
    working = prompting.line_of(written, "Working")
    prompting.phone.tap(working, "⏹ Stop")
    prompting.phone.tap(prompting.turned(working, "Stop the agent?"), "Yes, stop")
    prompting.ended("⏹ Stopped")
    terminal.wait_ready()
    assert "Fifth done." not in terminal.screen()


def test_the_permissions_of_a_plain_terminal_keep_files(prompting: Stage, desk: Home, tui: Callable[..., Tui]) -> None:
    """The plugin asks for them; if the terminal was closed, nobody can tell them."""
    project = desk.project("tui", permission={"read": {"*": "allow", "plan.md": "deny"}})
    for name in ("plan.md", "README.md"):
        (project / name).write_text(name)
    terminal = tui(project, steps=[{"text": "First done."}])
    notice = wait_told(prompting, "First done.")
    prompting.phone.write("/get plan.md", reply_to=notice)
    prompting.ended("plan.md is excluded by the permissions of OpenCode")
    prompting.phone.write("/get README.md", reply_to=notice)
    (call,) = until(lambda: prompting.phone.calls("sendDocument"), BOOT_S, "a document")
    assert call.params["document"] == "README.md (9 bytes)"
    terminal.kill()
    prompting.phone.write("/get README.md", reply_to=notice)
    prompting.ended("its OpenCode was closed, so I do not know whether the permissions")


@pytest.mark.nightly
def test_a_session_of_a_terminal_that_was_closed_is_known_as_such(
    prompting: Stage, desk: Home, tui: Callable[..., Tui], model: ScriptedModel, words: Callable[..., str]
) -> None:
    """The prompt is not sent, and says why; the session is not listed any more; nothing waits for it."""
    terminal = tui(desk.project("tui"), steps=[{"text": "First done."}])
    notice = wait_told(prompting, "First done.")
    assert rows_of_list(prompting, 1) == 1
    terminal.kill()
    late = words({"text": "Never."})
    prompting.phone.write(late, reply_to=notice)
    assert "its OpenCode was closed" in prompting.asked("Not sent").text
    assert not model.asked(late)
    prompting.phone.write("/sessions")
    prompting.phone.message_with("No agent runs a session", BOOT_S)


@pytest.mark.nightly
def test_two_terminals_get_each_its_own(
    prompting: Stage, desk: Home, tui: Callable[..., Tui], model: ScriptedModel, words: Callable[..., str]
) -> None:
    """In two folders; and in one folder, each prompt goes to the terminal that has worked on the session."""
    here, there = desk.project("here"), desk.project("there")
    first = tui(here, steps=[{"text": "Here done."}], key="one")
    first_notice = wait_told(prompting, "Here done.")
    second = tui(there, steps=[{"text": "There done."}], key="two")
    second_notice = wait_told(prompting, "There done.")
    third = tui(here, steps=[{"text": "Beside done."}], key="three")
    third_notice = wait_told(prompting, "Beside done.")
    assert rows_of_list(prompting, 3) == 3
    for terminal, notice, said in (
        (first, first_notice, "Again here."),
        (second, second_notice, "Again there."),
        (third, third_notice, "Again beside."),
    ):
        text = words({"text": said})
        prompting.phone.write(text, reply_to=notice)
        terminal.wait_answered(said)
        assert_once(model, text)
        assert not [one for one in (first, second, third) if one is not terminal and said in one.screen()]
    first_notice = wait_told(prompting, "Again here.")
    first.kill()
    text = words({"text": "Taken over."})
    prompting.phone.write(text, reply_to=first_notice)
    wait_told(prompting, "Taken over.")
    assert_once(model, text)


@pytest.mark.nightly
@pytest.mark.parametrize("thawed", ["before", "after"])
def test_a_listener_that_is_killed_while_it_sends_doubles_nothing(
    thawed: str,
    prompting: Stage,
    desk: Home,
    tui: Callable[..., Tui],
    model: ScriptedModel,
    words: Callable[..., str],
) -> None:
    """The call lies in the folder of a stopped terminal, which goes on before or after the next listener starts."""
    terminal = tui(desk.project("tui"), steps=[{"text": "First done."}])
    notice = wait_told(prompting, "First done.")
    pid = plugin_of(prompting).pid
    text = words({"text": "Second done."})
    prompting.phone.write(text, reply_to=notice)

    def is_tried() -> bool:
        return any(one["tries"] for one in prompts(prompting))

    until(is_tried, BOOT_S, "a prompt on its way", every_s=0.001)
    os.kill(pid, signal.SIGSTOP)
    prompting.kill()
    if thawed == "before":
        os.kill(pid, signal.SIGCONT)
    prompting.start()
    os.kill(pid, signal.SIGCONT)
    prompting.ended("✅ Done")
    terminal.wait_answered("Second done.")
    assert_once(model, text)
    calls = Path(plugin_of(prompting).folder, "in")
    until(lambda: not list(calls.iterdir()), 30, "each call taken")


@pytest.mark.nightly
def test_prompts_are_not_taken_while_they_are_off(
    stage: Stage, desk: Home, tui: Callable[..., Tui], words: Callable[..., str], model: ScriptedModel
) -> None:
    """No folder is made; once they are on, the terminal that runs already takes them."""
    stage.start(notices={"finished": "0s"})
    terminal = tui(desk.project("tui"), steps=[{"text": "First done."}])
    notice = wait_told(stage, "First done.")
    assert not (stage.store / "plugins").exists()
    kept = stage.store / "notices"
    until(lambda: any('"posted"' in file.read_text() for file in kept.glob("*.json")), 30, "the notice noted")
    stage.stop()
    stage.start(prompts={"enabled": True})
    until(lambda: plugin_folders.plugins(stage.store), 30, "the folder of the terminal")
    text = words({"text": "Second done."})
    stage.phone.write(text, reply_to=notice)
    terminal.wait_answered("Second done.")
    assert_once(model, text)


@pytest.mark.nightly
def test_a_server_that_also_has_the_plugin_is_listed_once(
    stage: Stage, desk: Home, private_opencode: Callable[..., OpenCode], model: ScriptedModel, words: Callable[..., str]
) -> None:
    """Its sessions can be reached through its port and through the plugin, and get each prompt once."""
    opencode = private_opencode()
    stage.connect(opencode)
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    until(lambda: plugin_folders.plugins(stage.store), BOOT_S, "the folder of the server")
    opencode.prompt(opencode.session(title="Here"), [{"text": "First done."}])
    notice = wait_told(stage, "First done.")
    until(lambda: plugin_of(stage).sessions, BOOT_S, "a sign of the session")
    assert rows_of_list(stage, 1) == 1
    text = words({"text": "Second done."})
    stage.phone.write(text, reply_to=notice)
    wait_told(stage, "Second done.")
    assert_once(model, text)


@pytest.mark.nightly
def test_a_picture_goes_to_a_plain_terminal(
    prompting: Stage, desk: Home, tui: Callable[..., Tui], model: ScriptedModel, words: Callable[..., str]
) -> None:
    """Also a large one with its record; what no call of the plugin can carry is refused before anything is sent."""
    terminal = tui(desk.project("tui", provider=seeing_provider(desk)), steps=[{"text": "First done."}])
    notice = wait_told(prompting, "First done.")
    second, third = words({"text": "Second done."}), words({"text": "Third done."})
    picture = png(noise=bytes(range(1, 256)) * 14_000)
    prompting.phone.send_document(picture, "a.png", "image/png", caption=second, reply_to=notice)
    notice = wait_told(prompting, "Second done.")
    assert len(pictures(model, second)) == 1
    prompting.phone.send_document(picture * 2, "b.png", "image/png", caption=third, reply_to=notice)
    prompting.asked("an OpenCode without a port takes files of 5 MB at most")
    assert model.asked(third) == []
    prompting.phone.write(third, reply_to=notice)
    wait_told(prompting, "Third done.")
    terminal.wait_screen(lambda screen: "Third done." in screen)


@pytest.mark.nightly
@NEWEST
def test_a_reply_goes_to_the_terminal_that_has_continued_the_session(
    stage: Stage,
    desk: Home,
    tui: Callable[..., Tui],
    private_opencode: Callable[..., OpenCode],
    model: ScriptedModel,
    words: Callable[..., str],
) -> None:
    """The notice is of a server that is followed; the terminal's question is answered first, and is not lost.

    The terminal has finished its turn before the third prompt is written, and mostly before the second one is sent.
    """
    served = private_opencode()
    stage.connect(served)
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    session = served.session(title="Fix login flow")
    served.prompt(session, [{"text": "First done."}])
    notice = wait_told(stage, "First done.")
    terminal = tui(served.directory, arguments=("--session", session), key="desk")
    terminal.wait_screen(lambda screen: "First done." in screen and "ctrl+p" in screen, BOOT_S)
    terminal.prompt([asking(question()), {"text": "Thanks."}])
    asked = stage.noted(stage.asked("Which database"))
    second = words({"text": "Second done."})
    (written,) = stage.phone.write(second, reply_to=notice)
    stage.line_of(written, "Waits for the current turn")
    stage.phone.tap(asked, "SQLite")
    wait_told(stage, "Thanks.")
    wait_told(stage, "Second done.")
    terminal.wait_screen(lambda screen: "Second done." in screen, BOOT_S)
    assert_once(model, second)
    third = words({"text": "Third done."})
    stage.phone.write(third, reply_to=notice)
    wait_told(stage, "Third done.")
    terminal.wait_screen(lambda screen: "Third done." in screen, BOOT_S)
    assert_once(model, third)
