"""The name of the bot, which tells its commands from those of other bots, and the list of its commands."""

from __future__ import annotations

import logging

import pytest

from tests.listening import House, house, question, until

home = house("new")
OUR_LOCK, OTHER_LOCK = "/lock@hermes_demo_bot", "/lock@another_bot"


async def pauses_of(home: House) -> list[float]:
    """Introduce the bot; the pauses between the tries."""
    pauses: list[float] = []

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    async with home.still() as listener:
        phone = listener._parts.phone
        await phone.commands.introduce(phone.bot, sleep=sleep)
    return pauses


async def test_the_name_is_asked_for_until_telegram_tells_it(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """After longer and longer pauses, of a minute at most; the log says why once."""
    caplog.set_level(logging.INFO)
    home.api.control.fault(method="getMe", action="cut", times=9)
    assert await pauses_of(home) == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert len(home.api.control.calls("setMyCommands")) == 1
    assert caplog.text.count("the commands are not registered yet") == 1
    assert "listening as @hermes_demo_bot" in caplog.text


async def test_the_commands_are_registered_when_telegram_says(home: House) -> None:
    """It asks for a pause that is longer than ours."""
    home.api.control.fault(method="setMyCommands", status=429, retry_after_s=90)
    assert await pauses_of(home) == [90]
    assert len(home.api.control.calls("setMyCommands")) == 2


async def test_a_start_does_not_wait_for_the_name(home: House) -> None:
    """Commands work meanwhile; once it is known, those of another bot are left to that."""
    home.api.control.fault(method="getMe", action="cut", times=99)
    await home.start()
    home.person.write("/help")
    helped = await home.person.sees("/lock – take no answers")
    home.api.control.clear_faults()
    await until(lambda: home.api.control.calls("setMyCommands"), "the registration")
    home.person.write(OTHER_LOCK)
    home.person.write("/help")
    await until(lambda: len([one for one in home.person.shown() if one.text == helped.text]) == 2, "the help again")
    assert not await home.listener._store.is_phone_locked()
    home.person.write(OUR_LOCK)
    await home.person.sees("hermes unlock")


async def test_while_the_name_is_unknown_a_command_that_names_a_bot_counts(home: House) -> None:
    """To lock once too often does no harm."""
    home.api.control.fault(method="getMe", action="cut", times=99)
    await home.start()
    home.person.write(OUR_LOCK)
    await home.person.sees("hermes unlock")


async def test_a_reaper_knows_its_bots_commands(home: House) -> None:
    """It obeys no others."""
    home.person.write(OTHER_LOCK)
    await home.new().run_once()
    reaper = home.new()
    assert not await reaper._store.is_phone_locked()
    home.person.write(OUR_LOCK)
    await reaper.run_once()
    assert await reaper._store.is_phone_locked()


@pytest.mark.parametrize("words", ["/home@nas", "/start the dev server first", "/status of the build"])
async def test_the_answer_to_a_question_may_look_like_a_command(home: House, words: str) -> None:
    """A path, or a word with more words behind it."""
    await home.start()
    await until(lambda: home.api.control.calls("setMyCommands"), "the registration")
    home.agent.ask([question()])
    asked = await home.person.sees("Which database?", buttons=True)
    await home.noted(asked)
    home.person.write(words, to=asked)
    await home.closed()
    assert home.agent.effects[0].answers == ((words,),)


async def test_a_lock_is_a_lock_also_below_a_question(home: House) -> None:
    """With any words behind it."""
    await home.start()
    home.agent.ask([question()])
    asked = await home.person.sees("Which database?", buttons=True)
    await home.noted(asked)
    home.person.write("/lock now", to=asked)
    await home.person.sees("hermes unlock")
    assert await home.listener._store.is_phone_locked()


async def test_open_does_not_deny_what_waits_for_the_person_at_the_computer(home: House) -> None:
    """It comes here later; the person who asks may be on the way."""
    await home.start(questions={"post_after": "1h"})
    home.agent.ask([question()])
    await until(home.entries, "the question")
    home.person.write("/open")
    await home.person.sees("One question is open, but not here yet. It comes by itself.")
    home.agent.ask([question("And which name?")])
    await until(lambda: len(home.entries()) == 2, "the other question")
    home.person.write("/open")
    await home.person.sees("2 questions are open, but not here yet. They come by themselves.")
    assert not home.person.find("Nothing is open")
