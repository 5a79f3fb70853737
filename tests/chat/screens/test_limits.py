"""Whatever an agent writes, and however much: every screen is one that Telegram takes."""

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from hermes.chat.screens.main_message import main
from hermes.chat.screens.screen import Look
from hermes.chat.screens.side_messages import sides
from hermes.core.routing import _CODE, _last_line
from hermes.model.answer import Answer, Decision
from hermes.model.ask import Option, Question
from hermes.model.entry import Entry
from hermes.model.state import State
from tests.chat.screens import entries
from tests.chat.screens.entries import ANN, ASKED_S, DATABASE, LOOK, entry
from tests.chat.screens.sound import assert_sound


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(entries.hostile(), entries.looks)
def test_every_screen_of_every_entry_is_within_telegrams_limits(asked: Entry, look: Look) -> None:
    """Whatever an agent writes, however much of it; and a reply to any copy is recognised."""
    screen = main(asked, look)
    assert_sound(screen, asked)
    code = _CODE.search(_last_line(screen.text))
    assert code
    assert code[1] == asked.code
    for side in sides(asked, look).values():
        assert_sound(side.screen, asked)
        assert not (side.screen.force_reply and side.screen.rows)


HUGE = "𝒳 very long / @text " * 5_000


@pytest.mark.parametrize("count", [1, 24, 25, 100])
@pytest.mark.parametrize("several", [1, 20, 200])
def test_a_flood_leaves_a_list_that_can_be_used(count: int, several: int) -> None:
    """Every option on show keeps its number and the beginning of its label."""
    question = Question(HUGE, HUGE, (Option(HUGE, HUGE),) * count, multiple=True)
    source = replace(entries.SOURCE, last_text=HUGE, session_title=HUGE, root_title=HUGE, directory=HUGE, machine=HUGE)
    answers = (Answer(tuple(range(count)), HUGE),) * several
    for state in (
        State(answers=answers),
        State(answers=answers, page=several),
        State(answers=answers, confirm="send"),
        State(answers=answers, phase="sending", decision=Decision("answer", ASKED_S, answers, ANN)),
    ):
        for answerable in (True, False):
            asked = entry(*[question] * several, state=state, source=source, answerable=answerable)
            screen = main(asked, replace(LOOK, context_chars=3000))
            assert_sound(screen, asked)
            assert "#k7" in screen.text
            if state.page == 0 and state.phase == "open" and not state.confirm and answerable:
                numbered = re.findall(r"^☑ (\d+) 𝒳 very long", screen.text, re.MULTILINE)
                assert [int(number) for number in numbered] == list(range(1, min(count, 24) + 1))


@pytest.mark.long
@pytest.mark.parametrize(
    "mark", ["\u0322", *(pytest.param(mark, marks=pytest.mark.nightly) for mark in ("\U0001e8d0", "\u200d😀"))]
)
def test_letters_under_towers_of_marks_leave_a_keyboard_that_telegram_takes(mark: str) -> None:
    """Such a letter takes one column, and a hundred bytes."""
    tower = ("Z" + mark * 30) * 40
    question = Question(tower, tower, tuple(Option(f"{number} {tower}", tower) for number in range(30)))
    for several in (1, 100):
        for at in range(several + 1):
            asked = entry(*[question] * several, state=State(answers=(Answer((1,), tower),) * several, page=at))
            assert_sound(main(asked, LOOK), asked)


def test_a_digest_tells_screens_apart() -> None:
    """Equal where nothing would change on the phone, and nowhere else."""
    asked = entry(DATABASE)
    assert main(asked, LOOK).digest == main(asked, LOOK).digest
    screens = [main(asked, LOOK), main(replace(asked, code="k8"), LOOK), main(replace(asked, id="e2"), LOOK)]
    screens.append(replace(screens[0], force_reply=True))
    screens.append(replace(screens[0], entities=()))
    assert len({screen.digest for screen in screens}) == 5
