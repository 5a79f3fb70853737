"""What a person's text asks of an agent: a prompt, a note, a task for a subagent, or a command of the project. Pure."""

from __future__ import annotations

import re
from typing import Final

from hermes.model.prompt import Content

_WORD: Final = re.compile(r"/(note|task|run)(?:@\w+)?(?:\s+|\Z)(.*)\Z", re.DOTALL)
_TASK: Final = re.compile(r"@([\w./-]+)\s+(\S.*)\Z", re.DOTALL)
_RUN: Final = re.compile(r"/?([\w./:-]+)(?:\s+(.*))?\Z", re.DOTALL)
_SHELL: Final = "`"

MISSING: Final = {
    "note": "write the note behind /note",
    "task": "write /task @agent and the task",
    "run": "write /run and the name of a command",
}


def is_prompt_word(text: str) -> bool:
    """Tell whether a text begins with /note, /task or /run."""
    return _WORD.match(text) is not None


def content_of(text: str, *, about: str = "") -> Content:
    """Return what the text asks of the agent; `about` is a question that it answers too late.

    Raises ValueError: something is missing, or arguments would run in a shell; the message says what to do.
    """
    found = _WORD.match(text)
    if about or found is None:
        return Content("text", f"About your question “{about}”: {text}" if about else text)
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


def _given(rest: str, word: str) -> str:
    if not rest:
        raise ValueError(MISSING[word])
    return rest
