"""The message that a turn has ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import given, strategies as st

from hermes.chat.screens.buttons import decode
from hermes.chat.screens.notices import changed, keeps_trying, turn_ended as drawn, whole_words
from hermes.chat.screens.screen import Look, Screen
from hermes.chat.screens.text import TEXT_UNITS
from hermes.core.answers import utf16_units
from hermes.model.actions import ShowChanges, ShowWhole, StopTurn
from hermes.model.ask import Source
from hermes.model.notice import Changes, Retry, RetryShown, Turn
from hermes.model.prompt import PromptAbilities

LOOK = Look(tz=UTC, group=False, context_chars=60)
SOURCE = Source("opencode", "laptop", "ses_1", "/home/dev/shop-api", session_title="Fix login flow")
TURN = Turn(SOURCE, "OpenCode", "msg_1", 0.0, 720.0, "Both tests pass now.", changes=Changes(4, 120, 31))


def turn_ended(turn: Turn, look: Look = LOOK) -> Screen:
    """The notice of a turn that was heard of at once."""
    return drawn("n1", turn, look, heard_s=turn.ended_s)


def test_a_finished_turn_says_how_long_it_took_and_what_it_changed() -> None:
    """Then the last words, and where it comes from."""
    assert turn_ended(TURN).text.splitlines() == [
        "✅ Fix login flow is done · 12 min · 4 files, +120 −31",
        "Both tests pass now.",
        "shop-api · OpenCode on laptop",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-1.0, "0 s"), (5.4, "5 s"), (59.6, "1 min"), (300.0, "5 min"), (5400.0, "1 h 30 min")],
)
def test_a_length_is_as_exact_as_a_person_needs(seconds: float, said: str) -> None:
    """Also if the clock was set back meanwhile."""
    assert f" is done · {said}" in turn_ended(replace(TURN, ended_s=seconds, changes=None)).text


def test_a_failed_turn_says_why() -> None:
    """Without words, changes and a title, its project stands for the session."""
    failed = Turn(replace(SOURCE, session_title=""), "OpenCode", "msg_1", 0.0, 200.0, failure="no such model")
    assert turn_ended(failed).text.splitlines() == [
        "❌ shop-api stopped: no such model · 3 min",
        "shop-api · OpenCode on laptop",
    ]


def test_a_turn_that_was_heard_of_late_says_when_it_ended() -> None:
    """A notice of the night is read in the morning."""
    late = drawn("n1", replace(TURN, changes=None), LOOK, heard_s=8 * 3600.0)
    assert late.text.startswith("✅ Fix login flow is done since 00:12 · 12 min\n")
    failed = drawn("n1", replace(TURN, failure="no key", changes=None), LOOK, heard_s=8 * 3600.0)
    assert failed.text.startswith("❌ Fix login flow stopped at 00:12: no key · 12 min\n")


def test_changes_are_one_tap_away() -> None:
    """In a folded quote; as a document if they are long. An agent that does not tell them has no button."""
    assert not turn_ended(TURN).rows
    told = replace(
        TURN, words="I renamed many things. " * 20, changes=Changes(1, 1, 1, "--- a.py\n+++ a.py\n-@one\n+two")
    )
    shown = turn_ended(told)
    assert [button.text for row in shown.rows for button in row] == ["Show all", "Changes"]
    assert decode(shown.rows[0][1].data) == ("n1", 0, ShowChanges())
    screen, file = changed(told)
    assert screen.text.splitlines()[0] == "Changes of Fix login flow"
    assert [(one.type, one.length) for one in screen.entities][-1][0] == "expandable_blockquote"
    assert file is None
    diff = "+one more line\n" * 1000
    screen, file = changed(replace(told, changes=Changes(1, 1000, 0, diff)))
    assert (screen.text, file) == ("Changes of Fix login flow", ("changes.diff", diff))
    assert utf16_units(changed(replace(told, changes=Changes(1, 1, 0, "@/#$." * 300)))[0].text) <= TEXT_UNITS


def test_words_that_were_cut_are_whole_on_a_tap() -> None:
    """As a document."""
    long = replace(TURN, words="I renamed many things. " * 20)
    shown = turn_ended(long)
    assert [button.text for row in shown.rows for button in row] == ["Show all"]
    assert decode(shown.rows[0][0].data) == ("n1", 0, ShowWhole())
    caption, (_, content) = whole_words(long)
    assert caption.text == "The last words of Fix login flow"
    assert content == long.words
    assert not turn_ended(TURN).rows


@pytest.mark.parametrize("words", ["Do not merge! " + "a/b.py " * 6, "y" * 57 + "/zz"])
def test_words_that_are_cut_because_of_the_signs_in_them_are_whole_on_a_tap(words: str) -> None:
    """Each sign that could begin a link takes more room on the phone than in the words."""
    shown = turn_ended(replace(TURN, words=words))
    assert "…" in shown.text
    assert [button.text for row in shown.rows for button in row] == ["Show all"]


@given(words=st.text(st.sampled_from("abc/.@"), min_size=40, max_size=70))
def test_show_all_is_there_if_and_only_if_words_are_cut(words: str) -> None:
    """Whatever signs they have."""
    shown = turn_ended(replace(TURN, words=words))
    assert ("…" in shown.text) is bool(shown.rows)


@given(title=st.text(max_size=300), words=st.text(max_size=9000), why=st.text(max_size=3000), who=st.text(max_size=99))
def test_every_text_fits_one_message(title: str, words: str, why: str, who: str) -> None:
    """Whatever an agent says."""
    turn = Turn(replace(SOURCE, session_title=title, directory=words[:200]), who, "msg_1", None, 1.0, words, why)
    assert 0 < utf16_units(turn_ended(turn, replace(LOOK, context_chars=3000)).text) <= TEXT_UNITS


def test_a_turn_that_keeps_trying_says_why_and_when() -> None:
    """The next try and its time; its Stop only if this phone may write to the agent; at the end, that it is over."""
    shown = RetryShown(Retry(TURN.source, "OpenCode", 5, 42 * 60.0, "rate limit", 40 * 60.0), 1001, 7)
    screen = keeps_trying("n1", shown, LOOK)
    assert screen.text.splitlines()[0].endswith(": rate limit · 6th try at 00:42")
    assert screen.rows == ()
    can = keeps_trying("n1", shown, replace(LOOK, prompted={TURN.source.agent: PromptAbilities()}))
    assert [button.text for row in can.rows for button in row] == ["⏹ Stop it"]
    assert decode(can.rows[0][0].data) == ("n1", 0, StopTurn())
    elsewhere = replace(LOOK, prompted={TURN.source.agent: PromptAbilities()}, projects=("api",))
    assert keeps_trying("n1", shown, elsewhere).rows == (), "a tap on it could only be refused"
    assert keeps_trying("n1", shown, replace(elsewhere, projects=("api", "shop-api"))).rows == can.rows
    over = keeps_trying("n1", replace(shown, is_over=True), replace(LOOK, prompted={"opencode": PromptAbilities()}))
    assert over.text.splitlines()[0].endswith(": rate limit · 5 tries failed")
    assert over.rows == ()


@pytest.mark.parametrize(
    ("attempt", "said"), [(0, "1st"), (1, "2nd"), (2, "3rd"), (10, "11th"), (20, "21st"), (111, "112th")]
)
def test_the_number_of_a_try_is_written_out(attempt: int, said: str) -> None:
    """As people say it."""
    shown = RetryShown(Retry(TURN.source, "OpenCode", attempt, 0.0), 1001, 7)
    assert f" · {said} try at " in keeps_trying("n1", shown, LOOK).text
