"""What foreign text costs: every step over it is linear in its length.

Each input is so large that a quadratic step over it, at 2 ns for each pair of its signs, takes longer than the timeout.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from hermes.agents.fields import sound
from hermes.agents.questions import recommended
from hermes.agents.registry import ADAPTERS
from hermes.chat.screens.hints import toast
from hermes.chat.screens.main_message import main
from hermes.chat.screens.permission import changed_lines, headless, trail_line
from hermes.chat.screens.side_messages import sides
from hermes.chat.screens.text import cleaned, cut, defused, ending, one_line, passage, phrase, shortened, width
from hermes.chat.screens.unseen import verbatim, visible
from hermes.core.answers import bare_label
from hermes.core.permission_rules import Rules, admitted
from hermes.model.answer import Answer, Decision, Outcome
from hermes.model.ask import Ask, Option, Permission, PermissionKind, Question, Source
from hermes.model.entry import Entry, Phone
from hermes.model.state import Offer, State, Toast
from tests.asks import permission_ask
from tests.chat.screens.entries import ANN, ASKED_S, LOOK, OPENCODE, entry
from tests.chat.screens.sound import assert_sound

COUNT = 200_000
pytestmark = pytest.mark.timeout(60)
FLOODS = {
    "blanks": " " * COUNT,
    "blanks after a word": "a" + " " * COUNT + "b",
    "wide blanks": "a" + "\u3000" * COUNT + "b",
    "breaks": "a" + "\n" * COUNT + "b",
    "blank lines": "a" + " \n" * COUNT + "b",
    "returns": "a" + "\r" * COUNT + "b",
    "beginnings of colours": "\x1b[" * COUNT,
    "an endless colour": "\x1b[" + "0" * COUNT,
    "colours": "\x1b[0m" * COUNT,
    "halves of pairs": "\ud83d" * COUNT,
    "directions": "\u202e" * COUNT,
    "joined emoji": "👨\u200d" * COUNT,
    "joiners": "\u200d" * COUNT,
    "marks": "Z" + "\u0322" * COUNT,
    "flags": "🇩" * COUNT,
    "signs of links": "://" * COUNT,
    "recommended": "(recommended) " * COUNT,
    "settings": "a=1 " * COUNT,
    "heads of diffs": "--- a\n+++ a\n" * COUNT + "@@ ",
    "rules": "=" * COUNT + "\n",
    "one word": "a" * COUNT,
}
STEPS: dict[str, Callable[[str], object]] = {
    "cleaned": cleaned,
    "one_line": one_line,
    "visible": visible,
    "verbatim": verbatim,
    "headless": lambda text: headless(text, "a"),
    "changed_lines": changed_lines,
    "defused": defused,
    "phrase": lambda text: phrase(text, 300),
    "passage": lambda text: passage(text, 300),
    "ending": lambda text: ending(text, 300),
    "cut": lambda text: cut(text, 300),
    "shortened": lambda text: shortened(text, 30),
    "width": width,
    "sound": sound,
    "bare_label": bare_label,
    "recommended": lambda text: recommended((Option(text),)),
    "an OpenCode permission": lambda text: ADAPTERS["opencode"].read(_opencode(text), machine="m"),
    "a Claude Code command": lambda text: ADAPTERS["claude-code"].read(_claude("Bash", command=text), machine="m"),
    "a Claude Code change": lambda text: ADAPTERS["claude-code"].read(
        _claude("Edit", file_path=text, old_string=text, new_string=text), machine="m"
    ),
    "admitted": lambda text: admitted(
        _permission("command", text, "npm run *"), Rules(never_always=("git push", "rm"))
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_over_a_flood_ends(step: str, flood: str) -> None:
    """It would take more than a minute if it looked again at each place."""
    STEPS[step](FLOODS[flood])


def _opencode(text: str) -> dict[str, object]:
    told = {"patterns": [text], "metadata": {"filepath": text, "diff": text, "more": text}, "always": [text]}
    properties = {"id": "per_1", "sessionID": "ses_1", "permission": "edit", **told}
    return {"type": "permission.asked", "properties": properties, "context": {"lastText": text}}


def _claude(tool: str, **given: object) -> dict[str, object]:
    event = {"hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": given}
    return {**event, "session_id": "ses_1", "cwd": "/home/dev", "id": "1"}


def _permission(kind: PermissionKind, text: str, always: str = "") -> Ask:
    made = permission_ask("x")
    return replace(made, permission=Permission("bash", kind, text, text, (text,), (always or text,)))


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("kind", ["command", "change", "folder", "fetch", "other"])
def test_a_permission_made_of_a_flood_is_drawn(kind: PermissionKind, flood: str) -> None:
    """In every phase, with all that stands beside it."""
    text = FLOODS[flood]
    for state in (
        State(answers=(Answer(),), whole=True, offer=Offer(0, ANN, 7, text)),
        State(answers=(Answer(),), confirm="always"),
        State(phase="settled", answers=(Answer(),), outcome=Outcome("answered_at_desk", ASKED_S, ((text,),))),
    ):
        asked = Entry("e1", "k7", _permission(kind, text), state, Phone(11, 500), asked_s=ASKED_S)
        assert_sound(main(asked, LOOK), asked)
        assert all(side.screen.text for side in sides(asked, LOOK).values())
        assert len(trail_line(asked)) < 1000


@pytest.mark.parametrize("flood", FLOODS)
def test_a_question_made_of_a_flood_is_drawn(flood: str) -> None:
    """Its text, its header, its options, its source, its answers, and the words about it."""
    text = FLOODS[flood]
    question = Question(text, text, (Option(text, text),) * 3, recommended=1)
    source = Source("opencode", text, "ses_1", text, session_title=text, root_title=text, last_text=text)
    answers = (Answer((0,), text),)
    for state in (
        State(answers=answers, offer=Offer(0, ANN, 7, text)),
        State(answers=answers, phase="sending", decision=Decision("answer", ASKED_S, answers, ANN)),
        State(answers=answers, phase="settled", outcome=Outcome("answered_at_desk", ASKED_S, ((text,) * 3,))),
    ):
        asked = entry(question, state=state, source=source, capabilities=replace(OPENCODE, agent_name=text))
        assert_sound(main(asked, LOOK), asked)
        assert all(side.screen.text for side in sides(asked, LOOK).values())
        assert len(toast(asked, Toast("picked", text), LOOK)) <= 200


@pytest.mark.parametrize("page", [0, 15_000, 30_000])
def test_an_ask_of_very_many_questions_is_drawn(page: int) -> None:
    """As many as one payload holds, each page and the review; half of them are answered."""
    count = 30_000
    answers = (Answer((0,)), Answer()) * (count // 2)
    for state in (
        State(answers=answers, page=page),
        State(answers=answers, page=page, confirm="send"),
        State(answers=answers, phase="settled", outcome=Outcome("answered_at_desk", ASKED_S, (("A",) * 9,) * count)),
    ):
        asked = entry(*(Question("?", "", (Option("A"),)),) * count, state=state)
        assert_sound(main(asked, LOOK), asked)


def test_a_question_of_very_many_options_is_drawn() -> None:
    """As many as one payload holds, most of them chosen."""
    question = Question("?", "", (Option("A"),) * 30_000, multiple=True)
    state = State(answers=(Answer(tuple(range(20_000))),), shelf=3)
    asked = entry(question, state=state)
    assert_sound(main(asked, LOOK), asked)
