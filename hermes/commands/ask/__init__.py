"""`hermes ask`: ask the question of a script on the phone and in the script's terminal. The first answer wins.

The answer goes to standard output and all other text to standard error, so that a script can capture the answer.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hermes.commands.ask.phone_question import Answers, Asking, Told, asking

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.commands.ask.terminal import Terminal
    from hermes.config.settings import Config
    from hermes.model.ask import Question

ANSWERED: Final = 0
STOPPED: Final = 10
EXPIRED: Final = 11
SKIPPED: Final = 12
NO: Final = 13
UNANSWERED: Final[Mapping[int, str]] = {
    STOPPED: "Stopped on the phone.",
    EXPIRED: "Nobody answered in time.",
    SKIPPED: "Skipped on the phone.",
    NO: "The answer is no.",
}
"""The line about each status that is not 0."""
YES_OR_NO: Final = ("Yes", "No")


async def talk(
    config: Config,
    config_path: Path,
    payload: Mapping[str, Any],
    questions: Sequence[Question],
    terminal: Terminal,
    *,
    as_json: bool = False,
    is_yes_no: bool = False,
) -> int:
    """Ask, print the answer, and return the exit status.

    If the task is cancelled, the question is taken back. Raises NotSaved, PayloadError.
    """
    stays = terminal.listens and payload.get("on_expiry", config.questions.on_expiry) == "keep"
    async with asking(config, config_path, {**payload, "stays": terminal.listens}) as it:
        phone = asyncio.ensure_future(it.told())
        here = asyncio.ensure_future(terminal.answers(questions))
        progress = asyncio.ensure_future(terminal.progress(it.was_on_phone))
        phone.add_done_callback(lambda _: progress.cancel())
        unseen = asyncio.ensure_future(_give_up_unseen(it, phone, terminal, payload.get("ttl_s")))
        try:
            told = await _first(it, phone, here, terminal, questions, stays=stays)
        except asyncio.CancelledError:
            terminal.say("Stopped; the question is taken back.")
            raise
        finally:
            for task in (phone, here, progress, unseen):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
    if words := printed(told, questions, as_json=as_json):
        sys.stdout.write(f"{words}\n")
    code = status(told, is_yes_no=is_yes_no)
    if code in UNANSWERED:
        terminal.say(UNANSWERED[code])
    return code


async def _give_up_unseen(it: Asking, phone: asyncio.Future[Told], terminal: Terminal, ttl_s: float | None) -> None:
    """Take the question back if it is not on the phone within `ttl_s`, or if the phone is locked then.

    It would never expire otherwise: its time to answer starts when it is on the phone, and stands still under a lock.
    """
    come, _ = await asyncio.wait((phone,), timeout=ttl_s)
    if come:
        return
    is_locked = await terminal.shows(it.is_phone_locked)
    if is_locked or not await terminal.shows(it.was_on_phone):
        unseen = "It did not reach your phone in that time; `hermes status` says why."
        terminal.say("The phone is locked: it takes no answer until `hermes unlock`." if is_locked else unseen)
        await it.stopped()


async def _first(
    it: Asking,
    phone: asyncio.Future[Told],
    here: asyncio.Future[Answers | None],
    terminal: Terminal,
    questions: Sequence[Question],
    *,
    stays: bool,
) -> Told:
    """Return the result. With `stays`, the terminal can still answer a question that the phone has let go."""
    await asyncio.wait((phone, here), return_when=asyncio.FIRST_COMPLETED)
    if not phone.done() and (answers := here.result()) is not None:
        return await it.said_here(answers)
    told = await phone
    if told.kind == "unanswered" and stays:
        terminal.say("Nobody answered on the phone in time. You still can, here.")
        left_to_phone = here.done() and here.result() is None
        answers = await (terminal.answers(questions) if left_to_phone else here)
        return told if answers is None else Told("answer", answers, "terminal")
    if terminal.listens and told.kind == "answer" and told.by == "phone":
        terminal.say("Answered on the phone.")
    return told


def printed(told: Told, questions: Sequence[Question], *, as_json: bool) -> str:
    """Return the text for standard output: the answers as lines ("" if there are none), or one JSON object.

    A single question has a line for each label or text. Several questions have one line each, which begins with the
    header.
    """
    kind, by = ("expired", "timer") if told.kind == "unanswered" else (told.kind, told.by)
    if as_json:
        return json.dumps({"kind": kind, "answers": told.answers, "by": by}, ensure_ascii=False)
    if len(questions) == 1:
        return "\n".join(told.answers[0]) if told.answers else ""
    named = zip(questions, told.answers, strict=False)
    return "\n".join(f"{question.header or question.text}: {', '.join(one)}" for question, one in named)


def status(told: Told, *, is_yes_no: bool = False) -> int:
    """Return the exit status: 0 for any answer, also for "No", unless the question asks for yes or no alone."""
    if told.kind == "answer":
        return NO if is_yes_no and told.answers[0] != YES_OR_NO[:1] else ANSWERED
    if told.by == "timer" or told.kind == "unanswered":
        return EXPIRED
    return SKIPPED if told.kind == "skip" else STOPPED
