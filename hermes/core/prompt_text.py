"""The kinds of a text for an agent: a prompt, a note, a task for a subagent, or a command of the project. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hermes.model.answer import Answer
from hermes.model.ask import Ask, Question
from hermes.model.prompt import Content

_WORD: Final = re.compile(r"/(note|task|run)(?:@\w+)?(?:\s+|\Z)(.*)\Z", re.DOTALL)
_TASK: Final = re.compile(r"@([\w./-]+)\s+(\S.*)\Z", re.DOTALL)
_RUN: Final = re.compile(r"/?([\w./:-]+)(?:\s+(.*))?\Z", re.DOTALL)
_SHELL: Final = "`"
_ABOUT: Final = "About your question "
_MY_ANSWER: Final = "My answer: "
_MY_ANSWERS: Final = "My answers to your questions:"

MISSING: Final = {
    "note": "write the note behind /note",
    "task": "write /task @agent and the task",
    "run": "write /run and the name of a command",
}


def content_of(text: str, *, about: str = "") -> Content:
    """Return what the text asks of the agent; `about` is a question that it answers too late.

    Raises ValueError: something is missing, or arguments would run in a shell; the message says what to do.
    """
    found = _WORD.match(text)
    if about or found is None:
        return Content("text", f"{_ABOUT}“{about}”: {text}" if about else text)
    word, rest = found[1], found[2].strip()
    if word == "note":
        return Content("note", _given(rest, word))
    if word == "task":
        task = _TASK.match(rest)
        if task is None:
            raise ValueError(MISSING[word])
        return Content("task", task[2].strip(), task[1])
    run = _RUN.match(_given(rest, word))
    if run is None:
        raise ValueError(MISSING[word])
    arguments = (run[2] or "").strip()
    if _SHELL in arguments:
        raise ValueError("the arguments of a command must not contain a backtick: an agent may run it in a shell")
    return Content("command", arguments, run[1])


def quotes_agent(text: str) -> bool:
    """Tell whether a prompt with this text answers a question that is over: such a prompt has words of the agent."""
    return text.startswith((f"{_ABOUT}“", _MY_ANSWER, _MY_ANSWERS))


def late_answer(ask: Ask, answers: Sequence[Answer]) -> str:
    """Return the answer to a question that is over, in words; of several questions, each with its answer.

    Nothing would stand before the answer to a question without a text: the agent's own label could be a command then.
    """
    said = [_in_words(question, answer) for question, answer in zip(ask.questions, answers, strict=False)]
    if len(said) == 1:
        return said[0] if ask.questions[0].text else f"{_MY_ANSWER}{said[0]}"
    lines = (f"“{question.text}”: {words}" for question, words in zip(ask.questions, said, strict=False))
    return "\n".join((_MY_ANSWERS, *lines))


def _in_words(question: Question, answer: Answer) -> str:
    labels = [question.options[pick].label for pick in answer.picks if pick < len(question.options)]
    return ", ".join((*labels, *(() if answer.text is None else (answer.text,)))) or "no answer"


def _given(rest: str, word: str) -> str:
    if not rest:
        raise ValueError(MISSING[word])
    return rest
