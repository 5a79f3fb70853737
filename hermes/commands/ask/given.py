"""Read the questions of a script from options, or from a file with the shape of OpenCode's `questions`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from hermes.agents.fields import sound
from hermes.agents.questions import read_questions
from hermes.config.values import seconds
from hermes.errors import ConfigError, PayloadError
from hermes.model.ask import Question

_DETAIL: Final = "::"


def of_options(
    text: str,
    options: Sequence[str],
    *,
    header: str = "",
    multiple: bool = False,
    custom: bool = True,
    recommended: int | None = None,
) -> list[dict[str, Any]]:
    """Return one question as a list. An option is "label" or "label::description"; `recommended` counts from 1.

    Raises ConfigError: the question or an option is empty, a label is not UTF-8, or the options contradict each other.
    """
    if not text.strip():
        raise ConfigError("the question is empty; give a text, or --file.")
    listed = [_option(option) for option in options]
    if not all(option["label"].strip() for option in listed):
        raise ConfigError("an option (-o) is empty; write it as LABEL or LABEL::WHY.")
    if any(sound(option["label"]) != option["label"] for option in listed):
        raise ConfigError("an option (-o) is not UTF-8, so the answer would be another text; write it in UTF-8.")
    if recommended is not None and not listed:
        raise ConfigError("--recommended: there is no choice to mark; give -o.")
    if recommended is not None and not 1 <= recommended <= len(listed):
        raise ConfigError(f"--recommended: there is no choice {recommended}; the last one is {len(listed)}.")
    if not listed and (multiple or not custom):
        raise ConfigError("without options (-o) there is nothing to choose; leave --multiple and --no-custom out.")
    asked: dict[str, Any] = {"question": text, "header": header, "options": listed}
    asked |= {"multiple": multiple, "custom": custom}
    return [asked if recommended is None else asked | {"recommended": recommended - 1}]


def _option(option: str) -> dict[str, str]:
    label, _, description = option.partition(_DETAIL)
    return {"label": label, "description": description}


def of_file(name: str, stdin: BinaryIO) -> object:
    """Return the questions of a JSON file ("-" is standard input); of an object, the value of its key `questions`.

    The shape of the questions is not checked. Raises ConfigError: the file cannot be read, or is not JSON.
    """
    where = "standard input" if name == "-" else name
    try:
        given = json.loads((stdin.read() if name == "-" else Path(name).read_bytes()).decode())
    except OSError as error:
        raise ConfigError(f"{where} cannot be read ({error.strerror}).") from None
    except json.JSONDecodeError as error:
        fault = f"is not JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        raise ConfigError(f"{where} {fault}; give a list of questions.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not UTF-8; give a list of questions as JSON.") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{where} is not JSON that can be read; give a list of questions.") from None
    return given.get("questions") if isinstance(given, dict) else given


def folder() -> str:
    """Return the current folder of this process, or "" if it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def payload(
    questions: object, *, asker: str, directory: str, timeout: str | None, on_expiry: str | None
) -> tuple[dict[str, Any], tuple[Question, ...]]:
    """Return the payload for `hermes hook generic`, and the questions that were read. Raises ConfigError."""
    try:
        understood = read_questions(questions, "questions")
    except PayloadError as error:
        raise ConfigError(f"{error}; a question is {{question, options: [{{label, description}}]}}.") from None
    if not understood:
        raise ConfigError("there is no question; give a text, or --file.")
    if not all(question.options or question.custom for question in understood):
        raise ConfigError("a question has no options and takes no words: nothing could answer it.")
    given: dict[str, Any] = {"questions": questions, "agent": asker, "directory": directory}
    if on_expiry is not None:
        given["on_expiry"] = on_expiry
    if timeout is not None:
        given["ttl_s"] = _seconds(timeout)
    return given, understood


def _seconds(timeout: str) -> float:
    try:
        found = seconds(timeout)
    except ValueError as error:
        raise ConfigError(f"--timeout {error}; write 90s, 20m or 2h.") from None
    if not found:
        raise ConfigError("--timeout: nobody answers in no time; write 90s, 20m or 2h.")
    return found
