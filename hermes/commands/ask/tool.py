"""`hermes mcp`: the tool `ask_user` for agents that have no way to ask, over standard input and output.

The model reads the texts in this file, so they tell it how to handle each result. A rejection and a missing answer are
errors of the tool, so that the model does not take them for answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

import hermes
from hermes.commands.ask.given import folder
from hermes.commands.ask.phone_question import Asking, Told, asking
from hermes.config.settings import Config
from hermes.errors import HermesError

PROGRESS_S: Final = 5.0
AGENT: Final = "An agent"
INSTRUCTIONS: Final = (
    "ask_user asks the person whom you work for, on their phone. Use it whenever a decision is theirs: a choice that"
    " you cannot make from what you know, or leave for something that cannot be undone. It returns when they answered."
)
REFUSED: Final = "The person does not want to answer this. Do not ask it again, and do not act on a guess: stop here."
SILENCE: Final = (
    "Nobody answered in time. That is not an answer: do not act on a guess; stop, and say what you need to know."
)
SKIPPED: Final = "The person leaves the choice to you: go on as you think best."


class Option(BaseModel):
    """One choice."""

    label: str = Field(description="What is chosen, and what you get back, in a few words.")
    description: str = Field(default="", description="What it means, in a sentence.")


class Question(BaseModel):
    """One question."""

    question: str = Field(description="The whole question.")
    header: str = Field(default="", description="A name for it, in a word or two.")
    options: list[Option] = Field(default=[], description="The choices; none where only words will do.")
    multiple: bool = Field(default=False, description="Whether several may be chosen.")
    custom: bool = Field(default=True, description="Whether the person may answer in words of their own.")
    recommended: int | None = Field(
        default=None, description="The place of the option that you advise; the first is 0."
    )


class Answer(BaseModel):
    """The answer to one question: labels as chosen, then the person's own words; nothing where it was left out."""

    question: str
    answer: list[str]


class Answers(BaseModel):
    """What came back; `note` is for you."""

    answers: list[Answer]
    note: str = ""


def server(config: Config, config_path: Path) -> MCPServer[Any]:
    """Return the server with its one tool."""
    made: MCPServer[Any] = MCPServer(
        "hermes", version=hermes.__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )

    @made.tool(title="Ask the person", structured_output=True)
    async def ask_user(
        questions: Annotated[list[Question], Field(min_length=1, description="What to ask, all at once.")],
        context: Context[Any, Any],
    ) -> Answers:
        """Ask the person whom you work for, on their phone, and wait for the answer; it may take long."""
        payload = {
            "questions": [question.model_dump(exclude_none=True) for question in questions],
            "agent": _client(context),
            "directory": folder(),
            "stops": False,
        }
        try:
            async with asking(config, config_path, payload) as it:
                told = await _waited(it, context)
        except HermesError as error:
            raise ToolError(str(error)) from None
        return _answers(told, questions)

    return made


def _client(context: Context[Any, Any]) -> str:
    """Return the title or name of the MCP client, or `AGENT` if the client gives none."""
    params = context.session.client_params
    info = params.client_info if params else None
    return (info.title or info.name) if info else AGENT


async def _waited(it: Asking, context: Context[Any, Any]) -> Told:
    """Wait for the result, and report progress every `PROGRESS_S` seconds, because a client without news gives up."""
    began_s = time.monotonic()
    told = asyncio.ensure_future(it.told())
    try:
        while not (await asyncio.wait((told,), timeout=PROGRESS_S))[0]:
            waited_s = time.monotonic() - began_s
            await context.report_progress(waited_s, message=f"no answer yet, after {waited_s:.0f} s")
        return told.result()
    finally:
        told.cancel()
        with suppress(asyncio.CancelledError, HermesError):
            await told


def _answers(told: Told, questions: Sequence[Question]) -> Answers:
    by_timer = told.by == "timer"
    if told.kind == "reject" and not by_timer:
        raise ToolError(REFUSED)
    if told.kind not in {"answer", "skip"} or (by_timer and told.kind == "skip"):
        raise ToolError(SILENCE)
    given = told.answers or ((),) * len(questions)
    answers = [
        Answer(question=question.question, answer=list(one)) for question, one in zip(questions, given, strict=True)
    ]
    if told.kind == "skip":
        return Answers(answers=answers, note=SKIPPED)
    return Answers(answers=answers, note="Nobody answered in time; this is what was recommended." if by_timer else "")
