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

from hermes.commands.ask.phone_question import Asking, Told, asking

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

Answers = tuple[tuple[str, ...], ...]


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
    """Ask, print the answer, and return the exit status. Raises as `run`."""
    told, here = await run(config, config_path, payload, questions, terminal)
    if words := printed(told, here, questions, as_json=as_json):
        sys.stdout.write(f"{words}\n")
    code = status(told, here, is_yes_no=is_yes_no)
    if code in UNANSWERED:
        terminal.say(UNANSWERED[code])
    return code


async def run(
    config: Config, config_path: Path, payload: Mapping[str, Any], questions: Sequence[Question], terminal: Terminal
) -> tuple[Told, Answers | None]:
    """Ask, and return the phone's result and the terminal's answers. The latter count if they are not None.

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
            return await _first(it, phone, here, terminal, questions, stays=stays)
        except asyncio.CancelledError:
            terminal.say("Stopped; the question is taken back.")
            raise
        finally:
            for task in (phone, here, progress, unseen):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


async def _give_up_unseen(it: Asking, phone: asyncio.Future[Told], terminal: Terminal, ttl_s: float | None) -> None:
    """Take the question back if it is not on the phone within `ttl_s`.

    It would never expire otherwise, because its time to answer starts only when it is on the phone.
    """
    come, _ = await asyncio.wait((phone,), timeout=ttl_s)
    if not come and not await terminal.shows(it.was_on_phone):
        terminal.say("It did not reach your phone in that time; `hermes status` says why.")
        await it.stopped()


async def _first(
    it: Asking,
    phone: asyncio.Future[Told],
    here: asyncio.Future[Answers | None],
    terminal: Terminal,
    questions: Sequence[Question],
    *,
    stays: bool,
) -> tuple[Told, Answers | None]:
    """Return the result. With `stays`, the terminal can still answer a question that the phone has let go."""
    await asyncio.wait((phone, here), return_when=asyncio.FIRST_COMPLETED)
    if not phone.done():
        answers = here.result()
        if answers is not None:
            told = await it.said_here(answers)
            return told, answers if told.kind in {"desk", "unanswered"} else None
    told = await phone
    if told.kind == "unanswered" and stays:
        terminal.say("Nobody answered on the phone in time. You still can, here.")
        left_to_phone = here.done() and here.result() is None
        return told, await (terminal.answers(questions) if left_to_phone else here)
    if terminal.listens and told.kind == "answer" and not told.by_timer:
        terminal.say("Answered on the phone.")
    return told, None


def printed(told: Told, here: Answers | None, questions: Sequence[Question], *, as_json: bool) -> str:
    """Return the text for standard output: the answers as lines ("" if there are none), or one JSON object.

    A single question has a line for each label or text. Several questions have one line each, which begins with the
    header.
    """
    answers = told.answers if here is None else here
    kind = "answer" if here is not None else told.kind if told.kind != "unanswered" else "expired"
    if as_json:
        by = "terminal" if here is not None else "timer" if told.by_timer or kind == "expired" else "phone"
        return json.dumps({"kind": kind, "answers": answers, "by": by}, ensure_ascii=False)
    if len(questions) == 1:
        return "\n".join(answers[0]) if answers else ""
    named = zip(questions, answers, strict=False)
    return "\n".join(f"{question.header or question.text}: {', '.join(one)}" for question, one in named)


def status(told: Told, here: Answers | None, *, is_yes_no: bool = False) -> int:
    """Return the exit status: 0 for any answer, also for "No", unless the question asks for yes or no alone."""
    answers = told.answers if here is None else here
    if here is not None or told.kind == "answer":
        return NO if is_yes_no and answers[0] != YES_OR_NO[:1] else ANSWERED
    if told.by_timer or told.kind == "unanswered":
        return EXPIRED
    return SKIPPED if told.kind == "skip" else STOPPED
