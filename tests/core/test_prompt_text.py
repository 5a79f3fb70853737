"""What a person's text asks of an agent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from hermes.core.prompt_text import MISSING, content_of, late_answer, quotes_agent
from hermes.model.answer import Answer
from hermes.model.ask import Option, Question
from hermes.model.prompt import Content
from tests.asks import ask as ask_of

WORDS = ("/note", "/task", "/run")


@given(st.text())
def test_a_text_without_a_word_of_hermes_goes_out_unchanged(text: str) -> None:
    """Spaces at its ends, too, and whatever else it contains."""
    if not text.startswith(WORDS):
        assert content_of(text) == Content("text", text)


@given(st.text(), st.sampled_from(WORDS))
def test_a_word_behind_the_beginning_is_text(before: str, word: str) -> None:
    """The person writes about a command."""
    text = f"a{before} {word} deploy `now`"
    assert content_of(text) == Content("text", text)


@pytest.mark.parametrize("text", ["/notes", "/runner up", "/Run x", " /run x", "/run-x", "//run x", "/run@", "/undo"])
def test_what_only_looks_like_a_word_is_text(text: str) -> None:
    """The agent gets it as it stands."""
    assert content_of(text) == Content("text", text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/note the tests need Redis", Content("note", "the tests need Redis")),
        ("/note@hermes_bot\nthe tests\n\nneed `Redis` ", Content("note", "the tests\n\nneed `Redis`")),
        ("/note /run x", Content("note", "/run x")),
        ("/task @explore find\nthe router", Content("task", "find\nthe router", "explore")),
        ("/task@hermes_bot  @a/b-c.d   x", Content("task", "x", "a/b-c.d")),
        ("/run review", Content("command", "", "review")),
        ("/run /review", Content("command", "", "review")),
        ("/run@hermes_bot review  the last\ncommit ", Content("command", "the last\ncommit", "review")),
        ("/run\nteam:deploy/all", Content("command", "", "team:deploy/all")),
    ],
)
def test_a_word_says_what_the_text_asks_for(text: str, meant: Content) -> None:
    """It may name the bot, as apps do in groups, and have several lines behind it."""
    assert content_of(text) == meant


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *((word + behind, word[1:]) for word in WORDS for behind in ("", " ", "\n", "@hermes_bot")),
        ("/task explore it", "task"),
        ("/task @explore", "task"),
        ("/run a;b", "run"),
        ("/run `id`", "run"),
    ],
)
def test_a_word_alone_is_told_what_is_missing(text: str, word: str) -> None:
    """Nothing is sent."""
    with pytest.raises(ValueError, match=re.escape(MISSING[word])):
        content_of(text)


@given(st.text(), st.text())
def test_no_backtick_leaves_with_a_command(before: str, after: str) -> None:
    """OpenCode runs what stands between backticks behind an exclamation mark; a text or a note may have them."""
    for text in (f"/run x {before}`{after}", f"/run x\n{before}!`{after}`"):
        with pytest.raises(ValueError, match="backtick"):
            content_of(text)
    assert content_of(f"/note !`{after}`").kind == "note"


def test_an_answer_that_comes_too_late_names_its_question() -> None:
    """It is text, whatever its first word is."""
    late = content_of("/run x", about="Which database?")
    assert late == Content("text", "About your question “Which database?”: /run x")


@pytest.mark.parametrize("text", ["", " ", "Which one?"])
def test_a_label_of_the_agent_is_no_command(text: str) -> None:
    """Not even that of a question without a text, behind which it would stand alone."""
    over = ask_of(Question(text, options=(Option("/run deploy"),)))
    late = content_of(late_answer(over, (Answer((0,)),)), about=text)
    assert late.kind == "text"
    assert late.text.endswith(": /run deploy")


@pytest.mark.parametrize("texts", [("Which one?",), ("",), ("Which one?", "And then?")])
def test_an_answer_that_comes_too_late_has_words_of_the_agent(texts: tuple[str, ...]) -> None:
    """In its question, and in the labels that were chosen."""
    over = ask_of(*(Question(text, options=(Option("A"),)) for text in texts))
    given = late_answer(over, (Answer((0,)),) * len(texts))
    late = content_of(given, about=texts[0] if len(texts) == 1 else "")
    assert quotes_agent(late.text)
    assert not quotes_agent(f"I say: {late.text}")
