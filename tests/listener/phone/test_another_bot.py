"""A folder that another bot has used: a message id of its chat means another message in the chat with this bot."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from hermes.errors import StoreError
from hermes.sandbox.botapi import running_botapi
from tests.listening import ANN, House, Person, a_request, house, question, until
from tests.prompted import PROMPTS, Desked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes.sandbox.botapi import RunningBotApi

ASKED = "Which database?"
home = house("new", sections=PROMPTS)


@pytest.fixture
async def second(home: House) -> AsyncIterator[RunningBotApi]:
    """Another bot, to which Ann has written nothing yet but Start.

    Its listener ends before it: httpcore leaves connections open if it finds that a server has closed several, and the
    call that has found it is cancelled in this moment.
    """
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with running_botapi(token=token, users=(ANN,), now=home.clock.now) as api:
        yield api
        await home.stop()


def takes_over(bot: RunningBotApi, home: House) -> None:
    """Let the next listener be this bot's."""
    home.api, home.person = bot, Person(bot.control)


async def test_a_question_that_is_open_is_posted_by_the_new_bot(home: House, second: RunningBotApi) -> None:
    """What was chosen there before counts."""
    await home.start()
    home.agent.ask([question(), question("What name?")])
    shown = await home.person.sees(ASKED)
    await home.person.taps(shown, "SQLite")
    await home.person.sees("What name?")
    await home.stop()
    takes_over(second, home)
    await home.start()
    await home.person.taps(await home.person.sees("What name?"), "PostgreSQL")
    await home.person.taps(await home.person.sees("Ready to send?"), "Send")
    await home.person.sees("✅")


async def test_what_this_bot_has_posted_is_not_posted_again(home: House) -> None:
    """Its first listener ended before any poll."""
    async with home.still() as listener:
        home.hook("question.asked", a_request())
        await listener._loops.take_inbox()
        shown = await home.person.sees("?")
        await home.noted(shown)
    async with home.still():
        assert home.entry().phone.message_id == shown.message_id


async def test_a_start_that_failed_ends_no_takeover(home: House, second: RunningBotApi) -> None:
    """A file is in the place of a folder: until it is moved away, nothing is read."""
    await home.start()
    home.agent.ask([question()])
    await home.noted(await home.person.sees(ASKED))
    await home.stop()
    takes_over(second, home)
    notices = home.store / "notices"
    notices.touch()
    with pytest.raises(StoreError):
        async with home.still():
            pass
    notices.unlink()
    await home.start()
    await home.person.sees(ASKED)


async def test_a_memory_that_was_lost_is_no_other_bot(home: House) -> None:
    """What is open stays on its message."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await home.noted(shown)
    await home.stop()
    (home.store / "telegram.json").unlink()
    await home.start()
    home.person.write("DuckDB", to=shown)
    await home.person.sees("✅ “DuckDB”")


async def test_a_message_id_of_an_earlier_text_means_another_text(home: House, second: RunningBotApi) -> None:
    """It was taken for a prompt that Telegram sends again, and the answer came to nobody."""
    desk = Desked(home)
    await desk.start()
    home.person.write("fix it", to=await desk.notice(desk.desk.session("Fix login flow")))
    line = await home.person.sees("▶️ Working")
    desk.desk.end("ses_1")
    await until(lambda: "✅ Done" in home.person.message(line.message_id).text and desk.prompts()[0].line.is_over)
    [earlier] = desk.prompts()
    await home.stop()
    takes_over(second, home)
    await desk.start()
    home.agent.ask([question()])
    asked = await home.person.sees(ASKED)
    await home.noted(asked)
    assert home.person.write("DuckDB", to=asked) == earlier.parts[0].message_id
    await home.person.sees("✅ “DuckDB”")


async def test_what_was_not_over_goes_on_in_the_chat_of_the_new_bot(home: House, second: RunningBotApi) -> None:
    """A prompt has a line there. What stood for its session in the other chat stands for nothing here."""
    desk = Desked(home)
    await desk.start()
    session = desk.desk.session("Fix login flow", is_busy=True)
    notice = await desk.notice(session)
    home.person.write("fix it", to=notice)
    await home.person.sees("⏳ Waits for the current turn")
    await home.stop()
    takes_over(second, home)
    await desk.start()
    line = await home.person.sees("⏳ Waits for the current turn")
    assert desk.kept.has_message(ANN.id, line.message_id)
    assert not desk.kept.notices.all()[0].shown
    desk.desk.end(session.session_id)
    await desk.looks()
    await desk.came("fix it")
    home.person.write("and the tests", to=line)
    await desk.phase("queued")
