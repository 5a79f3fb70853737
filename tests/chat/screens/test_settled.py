"""The message once it is decided: saved, away, and every end."""

from dataclasses import replace

import pytest

from hermes.chat.screens.main_message import main
from hermes.chat.screens.screen import Look
from hermes.model.answer import Answer, Decision, Outcome
from hermes.model.state import State
from tests.chat.screens.entries import (
    ANN,
    AT_1812,
    DATABASE,
    GIVEN,
    GOES_ON,
    GROUP,
    LOOK,
    SKIP,
    SQLITE,
    STOP,
    THREE,
    entry,
    settled,
)
from tests.chat.screens.show import shown

TITLE = "**Database** – Which database should I use?\n"
LIST = "1 Colour: **Blue**\n2 Sizes: **S, L, “XXL, but only in blue”**\n3 Name: no answer\n"
ALL = Decision("answer", AT_1812, GIVEN, ANN)
AWAY = "OpenCode on laptop can't be reached"


def timed(decision: Decision) -> Decision:
    """Return the same decision, taken by a timer."""
    return replace(decision, by=None)


@pytest.mark.parametrize(
    ("decision", "away", "said"),
    [
        (SQLITE, False, "💾 **SQLite** saved, being delivered. #k7"),
        (
            SQLITE,
            True,
            "💾 **SQLite** saved. OpenCode on laptop can't be reached; it gets your answer as soon as it is back. #k7",
        ),
        (STOP, False, "💾 **Stop** saved, being delivered. #k7"),
        (STOP, True, "💾 **Stop** saved. OpenCode on laptop can't be reached; it is told as soon as it is back. #k7"),
        (SKIP, True, "💾 **Skip** saved. OpenCode on laptop can't be reached; it is told as soon as it is back. #k7"),
        (timed(STOP), False, "⌛ Expired 18:40 #k7"),
        (timed(SKIP), False, "⌛ Expired 18:40 #k7"),
        (
            timed(SQLITE),
            False,
            "⌛ Expired 18:40 · recommended: **SQLite** #k7",
        ),
        (
            timed(STOP),
            True,
            f"⌛ Expired 18:40. {AWAY}; it is told as soon as it is back. #k7",
        ),
        (
            timed(SQLITE),
            True,
            f"⌛ Expired 18:40 · recommended: **SQLite**. {AWAY}; it gets that answer as soon as it is back. #k7",
        ),
    ],
)
def test_what_is_saved_is_said(decision: Decision, away: bool, said: str) -> None:
    """The person need not tap again; a timer takes no credit for a person."""
    state = State(phase="sending", answers=(Answer(),), decision=decision, away=away)
    assert shown(main(entry(DATABASE, state=state), LOOK)) == TITLE + said


def test_what_was_chosen_and_not_sent_is_not_called_recommended() -> None:
    """At the end of the time it is given as it is."""
    state = State(phase="sending", answers=(Answer((1,)),), decision=timed(SQLITE))
    said = shown(main(entry(replace(DATABASE, multiple=True), state=state), LOOK))
    assert said.endswith("⌛ Expired 18:40 · chosen: **SQLite** #k7")


@pytest.mark.parametrize(
    ("decision", "said", "gets"),
    [
        (SQLITE, "💾 **SQLite** saved. ", "it gets your answer"),
        (STOP, "💾 **Stop** saved. ", "it is told"),
        (timed(STOP), "⌛ Expired 18:40. ", "it is told"),
    ],
)
def test_an_agent_that_this_version_does_not_know_needs_an_upgrade(decision: Decision, said: str, gets: str) -> None:
    """The person reads why the answer waits, and what to do."""
    state = State(phase="sending", answers=(Answer(),), decision=decision, away=True, unknown=True)
    why = f"OpenCode on laptop is unknown to this version of Hermes; {gets} once Hermes is upgraded. #k7"
    assert shown(main(entry(DATABASE, state=state), LOOK)) == TITLE + said + why


def test_saved_answers_to_several_questions_are_listed() -> None:
    """In the form of the review."""
    state = State(phase="sending", answers=GIVEN, decision=ALL)
    assert shown(main(entry(*THREE, state=state), LOOK)) == LIST + "💾 Saved, being delivered. #k7"
    away = main(entry(*THREE, state=replace(state, away=True)), LOOK)
    assert "it gets your answers as soon as it is back." in away.text


@pytest.mark.parametrize(
    ("state", "look", "said"),
    [
        (settled(Outcome("answered", AT_1812), SQLITE), LOOK, "✅ **SQLite** · 18:12 · #k7"),
        (
            settled(Outcome("answered", AT_1812), SQLITE, working=True),
            LOOK,
            "✅ **SQLite** · 18:12 · the agent is working again · #k7",
        ),
        (settled(Outcome("answered", AT_1812), SQLITE), GROUP, "✅ **SQLite** · Ann · 18:12 · #k7"),
        (settled(Outcome("rejected", AT_1812), STOP, working=True), GROUP, "⏹ Stopped · Ann · 18:12 · #k7"),
        (settled(Outcome("skipped", AT_1812), SKIP), LOOK, "⏭ Skipped, it decides by itself · 18:12 · #k7"),
        (
            settled(Outcome("answered_at_desk", AT_1812, (("PostgreSQL",),))),
            GROUP,
            "🖥 Answered on the computer: **PostgreSQL** · 18:12 · #k7",
        ),
        (
            settled(
                Outcome("answered_at_desk", AT_1812, (("SQLite (Recommended)", "and\nmore"),)), SQLITE, working=True
            ),
            LOOK,
            "🖥 Answered on the computer: **SQLite, and more** · 18:12 · the agent is working again · #k7",
        ),
        (settled(Outcome("rejected_at_desk", AT_1812), STOP), LOOK, "🖥 Dismissed on the computer · 18:12 · #k7"),
        (settled(Outcome("gone", AT_1812), SQLITE), GROUP, "The agent no longer needs this · 18:12 · #k7"),
        (
            settled(Outcome("gone", AT_1812, reason="ambiguous")),
            LOOK,
            "Its questions look the same to me, so I can't tell which is which. Please answer on the computer. #k7",
        ),
        (
            settled(Outcome("expired", AT_1812), timed(STOP)),
            LOOK,
            "⌛ Expired 18:40 · #k7",
        ),
        (
            settled(Outcome("answered", AT_1812), timed(SQLITE), working=True),
            LOOK,
            "⌛ Expired 18:40 · recommended: **SQLite** · the agent is working again · #k7",
        ),
        (
            settled(Outcome("expired", AT_1812), timed(SKIP)),
            LOOK,
            "⌛ Expired 18:40 · #k7",
        ),
        (
            settled(Outcome("expired", AT_1812), Decision("release", AT_1812)),
            LOOK,
            "⌛ Expired 18:40 · #k7",
        ),
        (
            settled(Outcome("answered_at_desk", AT_1812)),
            LOOK,
            "🖥 Answered on the computer: **no answer** · 18:12 · #k7",
        ),
        (
            settled(Outcome("answered_at_desk", AT_1812, (("PostgreSQL",),), "timer")),
            LOOK,
            "⌛ The timer of OpenCode on laptop decided: **PostgreSQL** · 18:12 · #k7",
        ),
        (
            settled(Outcome("answered_at_desk", AT_1812, ((),), "timer")),
            LOOK,
            "⌛ OpenCode on laptop went on without an answer · 18:12 · #k7",
        ),
    ],
)
def test_how_it_ended(state: State, look: Look, said: str) -> None:
    """Question, answer, who in a group, time, and the agent at work again; no buttons."""
    assert shown(main(entry(DATABASE, state=state), look)) == TITLE + said


def test_several_answers_are_listed_to_the_end() -> None:
    """Ours and the desk's in the same form."""
    ours = main(entry(*THREE, state=settled(Outcome("answered", AT_1812), ALL)), LOOK)
    assert shown(ours) == LIST + "✅ Answered · 18:12 · #k7"
    desk = settled(Outcome("answered_at_desk", AT_1812, (("Red",), ("S", "M"))))
    assert shown(main(entry(*THREE, state=desk), LOOK)) == (
        "1 Colour: **Red**\n2 Sizes: **S, M**\n3 Name: no answer\n🖥 Answered on the computer · 18:12 · #k7"
    )
    gave = settled(Outcome("expired", AT_1812), timed(ALL))
    assert shown(main(entry(*THREE, state=gave), LOOK)).endswith("3 Name: no answer\n⌛ Expired 18:40 · #k7")
    dismissed = settled(Outcome("rejected_at_desk", AT_1812), ALL)
    assert shown(main(entry(*THREE, state=dismissed), LOOK)).startswith("**Colour** and 2 more\n🖥 Dismissed")


def test_an_agent_that_goes_on_was_refused() -> None:
    """Words follow what the agent can do, also where nothing was asked."""
    refused = settled(Outcome("rejected", AT_1812), STOP, working=True)
    told = shown(main(entry(DATABASE, state=refused, capabilities=GOES_ON), LOOK))
    assert told == TITLE + "✋ Refused · 18:12 · the agent is working again · #k7"
    went_on = settled(Outcome("answered", AT_1812), Decision("answer", AT_1812, (), ANN))
    assert shown(main(entry(state=went_on), LOOK)) == "**Go on?**\n✅ **Go on** · 18:12 · #k7"
