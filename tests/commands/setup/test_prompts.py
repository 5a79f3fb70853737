"""Prompts from the phone: off until a person has read what that means, and said yes; a second yes is never needed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hermes.agents.registry import PROMPT_ABILITIES
from hermes.commands.setup.prompts import TAKERS, choose_prompts
from hermes.commands.setup.terminal import Terminal
from hermes.config import reading as configuration
from hermes.config.settings import Prompts
from tests.commands.setup.a_context import a_context
from tests.commands.setup.desk import ANN, BOB, TEAM, Desk, gives_token, pairs
from tests.commands.setup.test_again import REST, changed
from tests.commands.setup.test_background import listening, unit

ALONE = ("--no-agents", "--no-service", "--no-test")
QUESTION = "May this phone send prompts to your agents? [y/N]"
ON = "\n[prompts]\nenabled = true # mine\nprojects = ['shop-api', 'docs']\n"


def prompts(desk: Desk) -> Prompts:
    """What the configuration says of prompts."""
    return configuration.load(desk.config, environ={}).prompts


def shown(*, phones: int = 1) -> str:
    """What a newcomer reads before the question, in one line."""
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=80), interactive=True, read=lambda _: "")
    choose_prompts(a_context(terminal), phones=phones)
    return " ".join(out.getvalue().split())


# --- what a person reads ------------------------------------------------------------------------------------------


def test_a_newcomer_reads_what_a_lost_phone_could_do_and_what_ends_it(desk: Desk) -> None:
    """All of it is on the screen together with the question, also on a small one; Enter is no."""
    with desk.setup(*ALONE) as terminal:
        pairs(terminal, desk)
        terminal.sees(QUESTION)
        screen = " ".join(terminal.screen().split())
        for words in (
            "Prompts from your phone",
            "OpenCode 2",
            "! Somebody who holds your phone",
            "/lock",
            "hermes lock",
        ):
            assert words in screen
        terminal.types("")
        assert terminal.ends() == 0
    assert not any("/sessions" in text for text in desk.told())
    assert "[prompts]" not in desk.config.read_text()
    assert not prompts(desk).enabled


def test_a_yes_switches_them_on(desk: Desk) -> None:
    """In a table of its own, with a word about what it does; the next step is said."""
    with desk.setup(*ALONE) as terminal:
        pairs(terminal, desk)
        terminal.answers(QUESTION, "y")
        terminal.sees("Your phone may send prompts.")
        assert terminal.ends() == 0
    assert any("Connected." in text and "tap /sessions" in text for text in desk.told())
    assert prompts(desk) == Prompts(enabled=True)
    assert "\n\n[prompts]\nenabled = true # whether the phone may send prompts" in desk.config.read_text()


def test_what_is_typed_before_the_question_is_no_yes(desk: Desk) -> None:
    """It was meant for another one."""
    with desk.setup(*ALONE) as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        desk.write(f"/start {terminal.link()[1]}")
        terminal.answers("Let Ann answer your agents?", "y\ny\ny")
        terminal.answers(QUESTION, "")
        assert terminal.ends() == 0
    assert not prompts(desk).enabled


def test_claude_code_is_told_of() -> None:
    """Its model hears that such a text is no user input."""
    assert "Claude Code tells its model that such a text is not user input" in shown()


def test_the_agents_are_named_as_people_know_them() -> None:
    """All of them: one that takes prompts, too, has to be named there."""
    assert TAKERS in shown()
    assert set(PROMPT_ABILITIES) == {"opencode", "opencode2", "claude-code", "oh-my-pi"}


def test_several_people_have_several_phones() -> None:
    """Each of them could be lost."""
    assert "the phone of each of the 3 people who may answer" in shown(phones=3)
    assert "each of the" not in shown()


def test_in_a_group_each_phone_counts(desk: Desk) -> None:
    """In a private chat there is one, whoever else may answer."""
    desk.has_config(chat_id=TEAM.id, users=(ANN.id, BOB.id))
    for options, asked in (
        ((), "May these phones send prompts"),
        (("--chat", str(ANN.id)), "May this phone send prompts"),
    ):
        with desk.setup("--no-agents", "--no-service", *options) as terminal:
            terminal.answers("Keep this bot?", "")
            if not options:
                terminal.answers("Keep this?", "")
            terminal.sees(asked)


# --- again ----------------------------------------------------------------------------------------------------------


def test_what_is_on_is_said_and_stays_on(desk: Desk) -> None:
    """With its projects; Enter changes nothing."""
    before = desk.has_config(REST + ON)
    with desk.setup(*ALONE) as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "")
        terminal.sees("Your phone may send prompts to your agents, in shop-api, docs.")
        terminal.answers("Leave prompts on? [Y/n]", "")
        assert terminal.ends() == 0
    assert desk.config.read_bytes() == before


def test_a_no_switches_them_off(desk: Desk) -> None:
    """All else stays, the projects too."""
    before = desk.has_config(REST + ON)
    with desk.setup(*ALONE) as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "")
        terminal.answers("Leave prompts on?", "n")
        terminal.sees("Your phone may no longer send prompts.")
        assert terminal.ends() == 0
    assert changed(before, desk.config.read_text()) == [
        "- enabled = true # mine",
        "+ enabled = false # mine",
    ]
    assert prompts(desk).projects == ("shop-api", "docs")


# --- without a person -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [("--yes",), ("--chat", str(ANN.id), "--token-file", "token")])
@pytest.mark.parametrize("is_on", [True, False])
def test_nothing_but_an_option_or_a_person_changes_it(desk: Desk, options: tuple[str, ...], *, is_on: bool) -> None:
    """Neither `--yes` nor that nobody is there; that they are on is said."""
    (desk.root / "token").write_text(desk.api.token)
    desk.has_config(REST + (ON if is_on else ""))
    status, said = desk.unattended("--no-agents", "--no-service", *options)
    assert (status, prompts(desk).enabled) == (0, is_on)
    assert ("Your phone may send prompts to your agents" in said) is is_on


@pytest.mark.parametrize("is_on", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_an_option_switches(desk: Desk, *, is_on: bool) -> None:
    """On and off; a second time there is nothing to do."""
    desk.has_config(REST + (ON if not is_on else ""))
    option = "--prompts" if is_on else "--no-prompts"
    status, said = desk.unattended("--yes", "--no-agents", "--no-service", option)
    assert (status, prompts(desk).enabled) == (0, is_on)
    assert ("Your phone may send prompts." if is_on else "Your phone may no longer send prompts.") in said
    before = desk.config.read_bytes()
    status, said = desk.unattended("--yes", "--no-agents", "--no-service", option)
    assert (status, desk.config.read_bytes()) == (0, before)
    assert "stays as it was" in said


def test_the_shell_does_not_switch_them_on(desk: Desk) -> None:
    """A variable is neither copied nor taken for the answer of a person; it is named."""
    before = desk.has_config(REST)
    status, said = desk.unattended("--yes", "--no-agents", "--no-service", HERMES_PROMPTS__ENABLED="true")
    assert (status, desk.config.read_bytes()) == (0, before)
    assert "! HERMES_PROMPTS__ENABLED in this shell overrides the configuration" in said


# --- what listens -----------------------------------------------------------------------------------------------------


def test_the_service_that_prompts_need_is_offered_with_its_reason(desk: Desk) -> None:
    """Right after the yes; then the next step is said."""
    desk.has_systemd()
    with desk.setup("--no-agents", "--no-test") as terminal:
        pairs(terminal, desk)
        terminal.answers(QUESTION, "y")
        terminal.sees("Prompts need a listener that always runs")
        terminal.answers("Install the service? [Y/n]", "")
        terminal.sees("To write to an agent, send /sessions in the chat.")
        assert terminal.ends() == 0
    assert unit(desk).exists()


def test_prompts_without_a_service_wait(desk: Desk) -> None:
    """An agent that starts a listener when it asks is not enough, and the end of the setup says so."""
    desk.has_systemd()
    desk.has_config()
    desk.has_opencode()
    status, said = desk.unattended("--yes", "--agent", "opencode", "--prompts", "--no-service")
    said = " ".join(said.split())
    assert status == 0
    assert "All set." in said
    assert "! Prompts wait until a listener runs. `hermes install service` lets one run always" in said
    assert "/sessions" not in said


def test_prompts_where_no_service_can_run(desk: Desk) -> None:
    """What does it instead is said."""
    desk.has_config()
    said = desk.unattended("--yes", "--no-agents", "--prompts")[1]
    assert "! Prompts need a listener that always runs" in said
    assert "Let `hermes listen` run all the time" in said


@pytest.mark.parametrize("until_idle", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_listener_that_stays_is_enough(desk: Desk, *, until_idle: bool) -> None:
    """It is started again with the new settings; one that leaves when it is idle is not enough."""
    desk.has_config()
    with listening(desk, *(["--until-idle"] if until_idle else [])):
        status, said = desk.unattended("--yes", "--no-agents", "--no-service", "--prompts")
    assert (status, "The listener was started again" in said) == (0, True)
    assert ("send /sessions in the chat" in said) is not until_idle
    assert ("Prompts wait until a listener runs" in said) is until_idle
    desk.api.phone.wait_for_poll(30)


def test_a_listener_that_pauses_for_a_new_phone_is_enough(desk: Desk) -> None:
    """It does not run when the setup asks about prompts, but it comes back."""
    desk.has_config()
    with listening(desk), desk.setup("--no-agents", "--no-service", "--no-test") as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "")
        terminal.answers("Let it pause?", "")
        desk.write(f"/start {terminal.link()[1]}", BOB)
        terminal.answers("Let Bob answer", "y")
        terminal.answers(QUESTION, "y")
        terminal.sees("To write to an agent, send /sessions in the chat.")
        assert terminal.ends() == 0
    desk.api.phone.wait_for_poll(30)
