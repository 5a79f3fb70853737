"""What the end of the test question is called."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from hermes.chat.bot import Bot
from hermes.commands.ask.phone_question import Told
from hermes.commands.setup.finish import Finish
from hermes.commands.setup.terminal import Terminal
from hermes.config.settings import Config

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path


def _connect(token: str) -> Bot:
    return Bot(token, api_base="http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("told", "is_well", "said"),
    [
        (Told("answer", (("Yes",),)), True, "Your answer arrived: Yes"),
        (Told("answer", (("Yes",),), by_timer=True), False, "the time to answer ran out"),
        (Told("skip"), True, "You sent the question away"),
        (Told("reject", by_timer=True), False, "the time to answer ran out"),
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
    finish = Finish(terminal, tmp_path / "config.toml", environ={}, connect=_connect, run=run)
    finish.test(Config(telegram={"token": f"1234567:{'a' * 35}", "chat_id": 1, "users": [1]}))
    assert said in shown.getvalue()
    assert finish.ok is is_well
