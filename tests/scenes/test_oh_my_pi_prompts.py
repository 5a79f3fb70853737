"""A prompt from the phone is a prompt in oh-my-pi's terminal, as if it were typed there; the model gets it once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes.agents.oh_my_pi import install
from hermes.hook import prompt_files
from hermes.sandbox.model_server import script
from tests.harness import oh_my_pi
from tests.harness.oh_my_pi import Home, OhMyPi
from tests.harness.processes import until
from tests.harness.tui import ENTER, ESC
from tests.scenes.test_oh_my_pi import helps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from tests.scenes.stage import Stage

pytestmark = [pytest.mark.scene(needs=oh_my_pi.command), pytest.mark.xdist_group("oh-my-pi")]


@pytest.fixture
def home(tmp_path: Path, model: ScriptedModel, stage: Stage) -> Home:
    """A home whose oh-my-pi takes prompts from the phone, and tells of each turn."""
    home = Home(tmp_path / "desk", model.base_url)
    stage.install(install.install, home.environ())
    stage.start(notices={"finished": "0s"}, prompts={"enabled": True})
    return home


@pytest.fixture
def desk(home: Home, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Start oh-my-pi in a terminal, asked to take these steps."""
    running: list[OhMyPi] = []

    def start(*steps: Any) -> OhMyPi:
        one = OhMyPi(home, steps, key=request.node.name)
        running.append(one.__enter__())
        return one

    yield start
    for one in running:
        one.kill()


def waiting(stage: Stage) -> list[dict[str, str]]:
    """What the hooks that wait for prompts say about their sessions."""
    return list(prompt_files.waiting(stage.store).values())


def wait_for_a_job(stage: Stage, desk: Any, key: str) -> OhMyPi:
    """Start oh-my-pi; a prompt from the phone, with this key, is answered while its job runs in the background."""
    terminal: OhMyPi = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    stage.phone.write(script([helps(60), {"text": "I wait."}], key), reply_to=notice)
    terminal.wait_answered("I wait.")
    return terminal


def test_a_reply_to_a_notice_is_the_next_prompt(stage: Stage, desk: Any, model: ScriptedModel) -> None:
    """The model gets exactly the text, once; what is half typed at the desk stays; the same hook goes on waiting."""
    terminal = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    terminal.wait_screen("Both tests pass now.")
    terminal.send("half typed")
    terminal.wait_screen("half typed")
    text = 'Rename it, <b>please</b> & "now"\n' + script([{"text": "Renamed it."}], "renamed")
    stage.phone.write(text, reply_to=notice)
    terminal.wait_screen("Renamed it.")
    stage.ended("✅ Done")
    again = stage.ended("Renamed it.")
    terminal.wait_screen("half typed")
    stage.phone.write(script([{"text": "Tested it."}], "tested"), reply_to=again)
    stage.ended("Tested it.")
    (asked,) = model.asked("renamed")[:1]
    assert asked[-1] == text
    assert [one[-1] for one in model.asked("renamed")].count(text) == 1
    assert model.turns("tested") == 1
    assert len(waiting(stage)) == 1


def test_a_prompt_waits_for_the_turn_that_runs_and_stop_ends_it(stage: Stage, desk: Any, model: ScriptedModel) -> None:
    """As Esc at the desk does; then the next prompt has its turn."""
    terminal = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    stage.phone.write(script([{"text": "Never said.", "delay_s": 60}], "slow"), reply_to=notice)
    working = stage.asked("Working")
    stage.phone.write(script([{"text": "Tested it."}], "queued"), reply_to=working)
    stage.asked("Waits for the current turn")
    assert not model.turns("queued")
    stage.phone.tap(working, "⏹ Stop")
    stage.turned(working, "Stop the agent?")
    stage.phone.tap(working, "Yes, stop")
    stage.ended("⏹ Stopped")
    terminal.wait_screen("Tested it.")
    stage.ended("✅ Done")
    assert model.turns("queued") == 1


@pytest.mark.nightly
def test_a_killed_turn_holds_up_nothing(stage: Stage, home: Home, desk: Any, model: ScriptedModel) -> None:
    """Its session is resumed: it waits for the phone, and takes the prompt."""
    terminal = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    stage.phone.write(script([{"text": "Never said.", "delay_s": 60}], "killed"), reply_to=notice)
    stage.asked("Working")
    terminal.proc.sigkill()
    until(lambda: not waiting(stage), 30, "no hook")
    with OhMyPi(home, ()):
        stage.ended("⏹ Stopped")
        stage.phone.write(script([{"text": "Renamed it."}], "after-kill"), reply_to=notice)
        stage.ended("Renamed it.")
    assert model.turns("after-kill") == 1


@pytest.mark.nightly
def test_a_new_session_gets_nothing_of_the_one_before(stage: Stage, desk: Any, model: ScriptedModel) -> None:
    """After `/new` the hook waits in the new session alone."""
    terminal = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    until(lambda: len(waiting(stage)) == 1, 30, "a hook that waits")
    (before,) = waiting(stage)
    terminal.send("/new" + ENTER)
    until(lambda: [one["session"] for one in waiting(stage)] not in ([], [before["session"]]), 30, "another session")
    stage.phone.write(script([{"text": "Never said."}], "late"), reply_to=notice)
    stage.asked("the session was ended on the computer")
    assert not model.turns("late")


@pytest.mark.nightly
def test_a_branch_of_a_session_is_another_session(stage: Stage, desk: Any, model: ScriptedModel) -> None:
    """After the answer to `/btw` became one, the hook waits there, and a prompt to the session before is not lost."""
    terminal = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    until(lambda: len(waiting(stage)) == 1, 30, "a hook that waits")
    (before,) = waiting(stage)
    terminal.send("/btw What is this?" + ENTER)
    terminal.wait_screen("b to branch")
    terminal.send("b")
    terminal.wait_screen("Branched /btw to")
    until(lambda: [one["session"] for one in waiting(stage)] not in ([], [before["session"]]), 30, "another session")
    stage.phone.write(script([{"text": "Never said."}], "branched"), reply_to=notice)
    stage.asked("the session was ended on the computer")
    assert not model.turns("branched")


@pytest.mark.nightly
def test_a_session_that_was_moved_is_one_of_the_other_project(stage: Stage, home: Home, desk: Any) -> None:
    """After `/move`, which no event tells of."""
    there = home.project.with_name("web-shop")
    there.mkdir()
    terminal = desk({"text": "Both tests pass now."})
    stage.ended("✅ shop-api is done")
    terminal.send(f"/move {there}" + ENTER)
    terminal.wait_screen("desk/web-shop")
    terminal.send(script([{"text": "Moved."}], "moved") + ENTER)
    stage.ended("✅ web-shop is done")


@pytest.mark.nightly
def test_a_killed_agent_leaves_no_hook(stage: Stage, desk: Any) -> None:
    """`kill -9`."""
    terminal = desk({"text": "Both tests pass now."})
    stage.ended("✅ shop-api is done")
    until(lambda: len(waiting(stage)) == 1, 30, "a hook that waits")
    terminal.proc.sigkill()
    until(lambda: not waiting(stage), 30, "no hook")


@pytest.mark.nightly
def test_an_interrupted_turn_leaves_the_session_idle(stage: Stage, desk: Any) -> None:
    """Esc at the desk in a turn that the phone began: the phone says so, and the next prompt has its turn."""
    terminal = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    stage.phone.write(script([{"text": "Never said.", "delay_s": 60}], "slow"), reply_to=notice)
    stage.asked("Working")
    terminal.send(ESC)
    stage.ended("⏹ Stopped")
    stage.phone.write(script([{"text": "Tested it."}], "tested"), reply_to=notice)
    stage.ended("Tested it.")


@pytest.mark.nightly
def test_an_answer_after_which_the_session_is_summed_up_is_told(stage: Stage, desk: Any) -> None:
    """oh-my-pi says then that it goes on, and does not; or ends at once if too little could be left out."""
    desk({"text": "Both tests pass now.", "tokens": 95_000})
    notice = stage.ended("✅ shop-api is done")
    stage.phone.write(script([{"text": "Renamed it.", "tokens": 95_000}], "renamed"), reply_to=notice)
    again = stage.ended("Renamed it.")
    stage.phone.write(script([{"text": "Tested it.", "tokens": 250_000}], "tested"), reply_to=again)
    stage.ended("Tested it.")
    until(lambda: sum("✅ Done" in one.text for one in stage.phone.shown()) == 2, 30, "the ends of both prompts")


@pytest.mark.nightly
def test_an_answer_is_told_though_a_person_types_while_the_session_is_summed_up(stage: Stage, desk: Any) -> None:
    """What they type begins the next turn at once."""
    terminal = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    stage.phone.write(script([{"text": "Renamed it.", "tokens": 95_000}], "renamed"), reply_to=notice)
    terminal.wait_screen("handed-off")
    terminal.send(script([{"text": "Never said.", "delay_s": 60}], "typed") + ENTER)
    stage.ended("✅ Done")
    stage.ended("Renamed it.")


def test_what_is_typed_behind_an_answer_is_the_next_turn(stage: Stage, desk: Any, model: ScriptedModel) -> None:
    """Also while the session is being summed up: oh-my-pi takes it then when that is done."""
    terminal = desk({"text": "Both tests pass now."})
    notice = stage.ended("✅ shop-api is done")
    steps = [{"text": "Renamed it.", "tokens": 95_000}, {"text": "A summary.", "delay_s": 8}]
    stage.phone.write(script(steps, "slowly-summed-up"), reply_to=notice)
    until(lambda: model.turns("slowly-summed-up") == 2, 60, "a summary that is being written")
    terminal.send(script([{"text": "Never said.", "delay_s": 60}], "typed") + ENTER)
    stage.ended("✅ Done")
    stage.ended("Renamed it.")


@pytest.mark.nightly
def test_what_is_typed_while_a_job_runs_in_the_background_is_the_next_turn(stage: Stage, desk: Any) -> None:
    """The answer that stands there is told first."""
    terminal = wait_for_a_job(stage, desk, "job-typed")
    terminal.send(script([{"text": "Never said.", "delay_s": 60}], "typed") + ENTER)
    stage.ended("I wait.")
    stage.ended("✅ Done")


@pytest.mark.nightly
def test_a_stop_while_a_job_runs_in_the_background_tells_the_answer(stage: Stage, desk: Any) -> None:
    """oh-my-pi has nothing to stop then."""
    wait_for_a_job(stage, desk, "job-stopped")
    working = stage.asked("Working")
    stage.phone.tap(working, "⏹ Stop")
    stage.phone.tap(stage.turned(working, "Stop the agent?"), "Yes, stop")
    stage.ended("I wait.")
    stage.turned(working, "✅ Done")


@pytest.mark.nightly
def test_without_a_terminal_no_hook_waits(home: Home, stage: Stage, request: pytest.FixtureRequest) -> None:
    """`-p` ends as before."""
    with home.run([{"text": "Done.", "delay_s": 2}], key=request.node.name) as running:
        until(lambda: running.alive() and not waiting(stage), 30, "nothing")
        assert running.wait(90) == 0
    assert not waiting(stage)


@pytest.mark.nightly
def test_with_prompts_off_no_hook_waits(home: Home, stage: Stage, desk: Any) -> None:
    """Neither before a turn nor after it."""
    stage.stop()
    stage.start(prompts={"enabled": False})
    desk({"text": "Both tests pass now."})
    stage.ended("✅ shop-api is done")
    assert not waiting(stage)
