"""`hermes mcp`, driven by the official client over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import Implementation

from hermes.commands.ask import tool
from hermes.commands.ask.phone_question import Told
from tests.commands.ask.test_ask import configured
from tests.listening import House, house, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

home = house(started=True)
ASKED = "Which database?"
QUESTIONS = [
    {"question": ASKED, "header": "Database", "options": [{"label": "SQLite", "description": "file"}, {"label": "Pg"}]}
]  # fmt: skip


@contextlib.asynccontextmanager
async def client(home: House) -> AsyncIterator[ClientSession]:
    """An agent that has started the server."""
    arguments = ["-m", "hermes", "mcp", "--config", configured(home)]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    async with (
        stdio_client(server) as (reading, writing),
        ClientSession(reading, writing, client_info=Implementation(name="some-agent", version="1")) as session,
    ):
        await session.initialize()
        yield session


async def said(call: Any) -> tuple[bool, str]:
    """Whether it was an error, and the words that the model reads."""
    result = await call
    return result.is_error, result.content[0].text


async def test_the_tool_says_what_it_is_for(home: House) -> None:
    """One tool, each field of it described."""
    async with client(home) as session:
        (only,) = (await session.list_tools()).tools
    assert only.name == "ask_user"
    assert "on their phone" in (only.description or "")
    question = only.input_schema["$defs"]["Question"]["properties"]
    assert all(field.get("description") for field in question.values())


async def test_an_answer_comes_back(home: House) -> None:
    """Its exact label, by the question; the phone says which agent asks."""
    async with client(home) as session:
        call = asyncio.create_task(session.call_tool("ask_user", {"questions": QUESTIONS}))
        asked = await home.person.sees(ASKED, buttons=True)
        assert "some-agent on" in asked.text
        home.person.tap(asked, "SQLite")
        result = await call
    assert result.structured_content == {"answers": [{"question": ASKED, "answer": ["SQLite"]}], "note": ""}
    await home.closed()
    assert "✅ SQLite" in home.person.message(asked.message_id).text


@pytest.mark.parametrize("telegram", ["there", "away"])
async def test_who_waits_hears_that_it_does(home: House, telegram: str) -> None:
    """Progress, since clients that hear nothing give up; it does not say that the question is on the phone."""
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    if telegram == "away":
        home.api.control.fault(method="sendMessage", action="error", status=502, times=1000)
    async with client(home) as session:
        call = asyncio.create_task(session.call_tool("ask_user", {"questions": QUESTIONS}, progress_callback=hear))
        await until(lambda: heard, "progress")
        assert (home.person.find(ASKED) is not None) == (telegram == "there")
        home.api.control.clear_faults()
        home.person.tap(await home.person.sees(ASKED, buttons=True), "Pg")
        await call
    assert heard[0].startswith("no answer yet, after ")


@pytest.mark.parametrize(
    ("button", "sure", "is_error", "words"),
    [("✋ Refuse", "Yes, refuse", True, tool.REFUSED), ("⏭ Skip", "Yes", False, tool.SKIPPED)],
)
async def test_a_no_is_an_error_and_a_skip_is_not(
    home: House, button: str, sure: str, words: str, *, is_error: bool
) -> None:
    """The model is told what it means."""
    async with client(home) as session:
        call = asyncio.create_task(said(session.call_tool("ask_user", {"questions": QUESTIONS})))
        asked = await home.person.sees(ASKED, buttons=True)
        await home.person.taps(asked, button)
        await until(lambda: "Back" in str(home.person.message(asked.message_id).labels), "the second question")
        await home.person.taps(asked, sure)
        failed, told = await call
    assert failed == is_error
    assert words in told


async def test_a_call_that_is_cancelled_takes_its_question_back(home: House) -> None:
    """The agent gave up: the phone says that nobody needs it any more, and the server goes on."""
    async with client(home) as session:
        call = asyncio.create_task(session.call_tool("ask_user", {"questions": QUESTIONS}))
        asked = await home.person.sees(ASKED, buttons=True)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        await home.closed()
        assert "no longer needs this" in home.person.message(asked.message_id).text
        assert (await session.list_tools()).tools


async def test_an_agent_that_leaves_takes_its_question_back(home: House) -> None:
    """Its end of the pipes is closed."""
    async with client(home) as session:
        call = asyncio.create_task(session.call_tool("ask_user", {"questions": QUESTIONS}))
        asked = await home.person.sees(ASKED, buttons=True)
    call.cancel()
    await home.closed()
    assert "no longer needs this" in home.person.message(asked.message_id).text


async def test_nobody_in_time_is_an_error() -> None:
    """No model may take silence for a yes."""
    for told in (Told("reject", by="timer"), Told("unanswered"), Told("skip", by="timer")):
        with pytest.raises(ToolError, match="That is not an answer"):
            tool._answers(told, [tool.Question(question="x")])


IN_A_HOME = """
import pwd, sys
from types import SimpleNamespace
pwd.getpwuid = lambda _: SimpleNamespace(pw_dir=sys.argv[1])
from hermes.commands import cli
cli.main(["mcp"])
"""


async def test_the_configuration_that_is_missing_is_named(home: House, tmp_path: Path) -> None:
    """HERMES_CONFIG can come from the repository that the agent works in, so it does not count."""
    environ = {**os.environ, "HERMES_CONFIG": configured(home)}
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", IN_A_HOME, str(tmp_path)), env=environ, stderr=asyncio.subprocess.PIPE
    )
    _, err = await server.communicate()
    assert server.returncode == 2
    assert err.decode().startswith(f"hermes: {tmp_path}/")
    assert "config.toml does not exist; `hermes setup` writes it" in err.decode()


async def test_questions_of_another_shape_are_refused(home: House) -> None:
    """In the tool's own words; nothing is asked."""
    async with client(home) as session:
        for wrong in ([], [{"text": "hi"}], [{"question": "Which?", "recommended": 3}]):
            failed, _ = await said(session.call_tool("ask_user", {"questions": wrong}))
            assert failed
    assert home.entries() == []
