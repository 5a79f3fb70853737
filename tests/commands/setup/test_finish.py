"""What the end of the test question is called."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from hermes.agents.claude_code import install as claude_code
from hermes.commands.ask.phone_question import Told
from hermes.commands.install import AGENTS
from hermes.commands.setup.finish import Finish, Plan
from hermes.commands.setup.given import Changes
from hermes.commands.setup.terminal import Terminal
from hermes.errors import NotSaved
from tests.commands.setup.a_context import a_config, a_context

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path


def test_a_failure_that_ends_the_setup_is_said_once(tmp_path: Path) -> None:
    """Nobody can try again, so the error that ends it says all; here the name is too long for a new file beside it."""
    shown = io.StringIO()
    terminal = Terminal(Console(file=shown, width=200), interactive=False)
    place = tmp_path / f"{'x' * 250}.toml"
    finish = Finish(a_context(terminal, place))
    with pytest.raises(NotSaved):
        finish.save(Plan(Changes(token=f"1234567:{'a' * 35}", chat_id=1, users=(1,)), (), service=False))
    assert shown.getvalue().split() == ["Setting", "up"]


@pytest.mark.parametrize("has_prompts", [False, True])
def test_only_what_was_done_gets_a_tick(tmp_path: Path, *, has_prompts: bool) -> None:
    """What the person still has to do does not; what concerns prompts alone is said only if they are on."""
    shown = io.StringIO()
    terminal = Terminal(Console(file=shown, width=200), interactive=False)
    environ = {"HOME": str(tmp_path), "PATH": ""}
    finish = Finish(a_context(terminal, tmp_path / "config.toml", environ=environ))
    config = a_config(prompts={"enabled": has_prompts}, store={"path": str(tmp_path / "store")})
    agents = tuple(one for one in AGENTS if one.name == "claude-code")
    finish.connect_agents(Plan(Changes(), agents, service=False), config)
    done, *rest = shown.getvalue().splitlines()
    assert done.startswith("  ✓ Hermes' hooks are in ")
    assert rest[0] == "  A Claude Code that is running takes them in at once; start it again if it does not."
    assert [line.strip() for line in rest[1:]] == [claude_code.PROMPTS_NOTE] * has_prompts
    assert finish.ok


@pytest.mark.parametrize(
    ("told", "is_well", "said"),
    [
        (Told("answer", (("Yes",),)), True, "Your answer arrived: Yes"),
        (Told("answer", (("Yes",),), by="timer"), False, "the time to answer ran out"),
        (Told("skip"), True, "You sent the question away"),
        (Told("reject", by="timer"), False, "the time to answer ran out"),
        (Told("unanswered"), False, "within five minutes"),
    ],
)
def test_only_a_person_answers(tmp_path: Path, told: Told, *, is_well: bool, said: str) -> None:
    """What the clock decided is no answer, and no sign that the phone works."""

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        work.close()
        return told

    shown = io.StringIO()
    terminal = Terminal(Console(file=shown, width=100), interactive=False)
    finish = Finish(a_context(terminal, tmp_path / "config.toml", run=run))
    finish.test(a_config())
    assert said in shown.getvalue()
    assert finish.ok is is_well
