"""python-telegram-bot against the local Bot API: the whole flow, and each error as the class it should be."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
    Update,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.ext import (
    Application,
    ApplicationBuilder,
    CallbackQueryHandler,
    CommandHandler,
    ContextTypes,
    MessageHandler,
    filters,
)

from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi

ANN = 1001
GROUP = -500
TEAM = -1001234567890

# do_api_request warns where the library has a method of that name; Telegram ignores the case
POLL = "GetUpdates"


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A server with a person, a small group and a supergroup."""
    with running_botapi(chats=[Chat(ANN), Chat(GROUP, "Small"), Chat(TEAM, "Team")]) as api:
        yield api


@pytest.fixture
async def bot(api: RunningBotApi) -> AsyncIterator[Bot]:
    """The library's bot, pointed at it."""
    async with Bot(api.token, base_url=f"{api.base_url}/bot") as bot:
        yield bot


def keyboard(*labels: str) -> InlineKeyboardMarkup:
    """One row of buttons whose data are their labels."""
    return InlineKeyboardMarkup([[InlineKeyboardButton(label, callback_data=label) for label in labels]])


async def poll(bot: Bot, offset: int = 0, timeout_s: int = 5) -> list[Update]:
    """The next updates, fetched raw and parsed one by one."""
    wanted = {"offset": offset, "timeout": timeout_s, "allowed_updates": ["message", "callback_query"]}
    raw: Any = await bot.do_api_request(POLL, api_kwargs=wanted, read_timeout=60)
    return [Update.de_json(update, bot) for update in raw]


async def test_a_question_is_asked_tapped_answered_edited_and_replied_to(api: RunningBotApi, bot: Bot) -> None:
    """The whole flow on raw polls; each side sees what the other did."""
    bold = MessageEntity(MessageEntity.BOLD, 0, 5)
    asked = await bot.send_message(ANN, "Which one?", entities=[bold], reply_markup=keyboard("A", "B"))
    message = api.phone.message_with("Which one?")
    assert (message.marked("bold"), message.labels) == (("Which",), (("A", "B"),))

    tap = api.phone.tap(message, "B")
    (update,) = await poll(bot)
    query = update.callback_query
    assert query is not None
    assert isinstance(query.message, Message)
    assert (query.data, query.message.message_id, query.from_user.id) == ("B", asked.message_id, ANN)
    assert query.message.reply_markup == keyboard("A", "B")
    assert await query.answer("B it is")
    assert api.phone.toast_for(tap).text == "B it is"
    edited = await query.edit_message_text("You took B")
    assert isinstance(edited, Message)
    assert (edited.reply_markup, edited.edit_date is not None) == (None, True)
    assert api.phone.message(asked.message_id).labels == ()

    api.phone.write("because of C", reply_to=message)
    (answer,) = await poll(bot, update.update_id + 1)
    assert answer.message is not None
    assert answer.message.reply_to_message is not None
    assert answer.message.reply_to_message.text == "You took B"
    assert await poll(bot, answer.update_id + 1, timeout_s=0) == []


async def test_a_poll_is_held_until_the_tap(api: RunningBotApi, bot: Bot) -> None:
    """The tap ends the long poll."""
    asked = await bot.send_message(ANN, "Which one?", reply_markup=keyboard("A"))
    waiting = asyncio.create_task(poll(bot, timeout_s=20))
    await asyncio.to_thread(api.phone.wait_for_poll)
    api.phone.tap(asked.message_id, "A")
    (update,) = await waiting
    assert update.callback_query is not None


async def test_a_tap_on_a_deleted_message_says_that_it_is_gone(api: RunningBotApi, bot: Bot) -> None:
    """Its message is not accessible; answering still works, editing does not."""
    asked = await bot.send_message(ANN, "Which one?", reply_markup=keyboard("A"))
    api.phone.delete(asked.message_id)
    api.phone.tap(asked.message_id, data="A")
    (update,) = await poll(bot)
    assert update.callback_query is not None
    assert update.callback_query.message is not None
    assert not update.callback_query.message.is_accessible
    assert await update.callback_query.answer()
    with pytest.raises(BadRequest, match=r"(?i)message to edit not found"):
        await bot.edit_message_text("x", ANN, asked.message_id)


async def test_every_refusal_has_its_class(api: RunningBotApi, bot: Bot) -> None:
    """400, 401, 403, 404, 409 and a moved group, as the library names them."""
    asked = await bot.send_message(ANN, "Which one?", reply_markup=keyboard("A"))
    with pytest.raises(BadRequest, match=r"(?i)message is not modified"):
        await bot.edit_message_text("Which one?", ANN, asked.message_id, reply_markup=keyboard("A"))
    with pytest.raises(BadRequest, match=r"(?i)query is too old"):
        await bot.answer_callback_query("17")
    with pytest.raises(BadRequest, match=r"(?i)button_data_invalid"):
        await bot.send_message(ANN, "x", reply_markup=keyboard("x" * 65))
    new = api.phone.migrate(chat=GROUP)
    with pytest.raises(ChatMigrated) as moved:
        await bot.send_message(GROUP, "x")
    assert moved.value.new_chat_id == new
    api.phone.block(chat=ANN)
    with pytest.raises(Forbidden, match="blocked by the user"):
        await bot.send_message(ANN, "x")
    for status, kind in ((401, InvalidToken), (404, InvalidToken), (409, Conflict), (500, NetworkError)):
        api.phone.fault("getMe", status=status)
        with pytest.raises(kind):
            await bot.get_me()
    async with Bot(api.token, base_url=f"{api.base_url}/bot") as other:
        object.__setattr__(other, "_base_url", f"{api.base_url}/bot1:other")
        with pytest.raises(InvalidToken):
            await other.get_me()


async def test_every_trouble_of_the_network_has_its_class(
    api: RunningBotApi, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """429 with its time, a proxy's page, a cut connection, a time-out after the delivery."""
    monkeypatch.setenv("PTB_TIMEDELTA", "true")  # the library's own switch; without it each 429 comes with a warning
    api.phone.fault("sendMessage", retry_after_s=9)
    with pytest.raises(RetryAfter, match="0:00:09") as flood:
        await bot.send_message(ANN, "flood")
    assert flood.value.retry_after == timedelta(seconds=9)
    api.phone.fault("sendMessage", "html", status=502)
    with pytest.raises(NetworkError):
        await bot.send_message(ANN, "page")
    api.phone.fault("sendMessage", "cut_after")
    with pytest.raises(NetworkError):
        await bot.send_message(ANN, "cut")
    api.phone.fault("sendMessage", "hang", hang_s=20, processed=True)
    with pytest.raises(TimedOut):
        await bot.send_message(ANN, "late", read_timeout=0.3)
    api.phone.message_with("late")
    assert [message.text for message in api.phone.shown()] == ["cut", "late"]


async def test_of_two_pollers_the_older_gets_the_conflict(api: RunningBotApi, bot: Bot) -> None:
    """The library calls it Conflict; the newcomer gets the update."""
    older = asyncio.create_task(poll(bot, timeout_s=20))
    await asyncio.to_thread(api.phone.wait_for_poll)
    async with Bot(api.token, base_url=f"{api.base_url}/bot") as second:
        newer = asyncio.create_task(poll(second, timeout_s=20))
        with pytest.raises(Conflict, match="terminated by other getUpdates request"):
            await older
        api.phone.write("for the newer")
        (update,) = await newer
    assert update.message is not None


async def test_a_forced_reply_and_a_service_message_parse(api: RunningBotApi, bot: Bot) -> None:
    """What comes from a group: a reply to a forced reply, a sticker as a reply, the move to a supergroup."""
    asked = await bot.send_message(TEAM, "Your words?", reply_markup=ForceReply(selective=True))
    api.phone.write("my words", chat=TEAM, reply_to=asked.message_id)
    api.phone.send_sticker(chat=TEAM, reply_to=asked.message_id)
    new = api.phone.migrate(chat=GROUP)
    words, sticker, old, moved = [update.message for update in await poll(bot)]
    assert words is not None
    assert words.text == "my words"
    assert sticker is not None
    assert sticker.sticker is not None
    assert old is not None
    assert old.migrate_to_chat_id == new
    assert moved is not None
    assert moved.migrate_from_chat_id == GROUP
    assert (await bot.get_chat(TEAM)).title == "Team"
    assert (await bot.get_chat_member(TEAM, ANN)).user.id == ANN


# the library's own Application and Updater


async def ask(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
    """On /ask: a question with buttons."""
    assert update.message is not None
    await update.message.reply_text("Which one?", reply_markup=keyboard("A", "B"))


async def take(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
    """On a tap: a toast and an edit."""
    assert update.callback_query is not None
    await update.callback_query.answer("taken")
    await update.callback_query.edit_message_text(f"You took {update.callback_query.data}")


async def echo(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
    """On a text: the same text, as a reply."""
    assert update.message is not None
    await update.message.reply_text(f"You said {update.message.text}", do_quote=True)


@pytest.fixture
async def application(api: RunningBotApi) -> AsyncIterator[Application[Any, Any, Any, Any, Any, Any]]:
    """A running Application that polls."""
    application = ApplicationBuilder().token(api.token).base_url(f"{api.base_url}/bot").build()
    application.add_handler(CommandHandler("ask", ask))
    application.add_handler(CallbackQueryHandler(take))
    application.add_handler(MessageHandler(filters.TEXT, echo))
    async with application:
        await application.start()
        assert application.updater is not None
        await application.updater.start_polling(poll_interval=0, timeout=20, error_callback=lambda _: None)
        yield application
        await application.updater.stop()
        await application.stop()


async def test_the_applications_handlers_see_commands_taps_and_texts(
    api: RunningBotApi, application: Application[Any, Any, Any, Any, Any, Any]
) -> None:
    """A command, a tap and a text go through the library's own polling, also after a conflict and a 502."""
    assert application.running
    phone = api.phone
    phone.write("/ask")
    asked = await asyncio.to_thread(phone.message_with, "Which one?")
    tap = phone.tap(asked, "A")
    assert (await asyncio.to_thread(phone.toast_for, tap)).text == "taken"
    taken = await asyncio.to_thread(phone.message_with, "You took A")
    assert (taken.message_id, taken.labels) == (asked.message_id, ())
    phone.fault("getUpdates", "html", status=502)
    (written,) = phone.write("hello")
    said = await asyncio.to_thread(phone.message_with, "You said hello")
    assert said.reply_to == written


async def test_an_update_that_the_library_can_not_read_comes_again(api: RunningBotApi, bot: Bot) -> None:
    """A malformed update fails to parse alone; raw polling goes on behind it."""
    number = api.phone.inject({"message": {"message_id": "x"}})
    api.phone.write("behind")
    raw: Any = await bot.do_api_request(POLL, api_kwargs={"timeout": 1})
    assert [update["update_id"] for update in raw] == [number, number + 1]
    with pytest.raises((TelegramError, KeyError, TypeError)):
        Update.de_json(raw[0], bot)
    parsed = Update.de_json(raw[1], bot)
    assert parsed.message is not None
    assert parsed.message.text == "behind"
