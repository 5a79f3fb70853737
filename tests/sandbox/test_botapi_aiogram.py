"""aiogram against the local Bot API: it checks each answer with pydantic, and catches what others forgive."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from aiogram import Bot, Dispatcher, F
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.filters import Command
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    CallbackQuery,
    ForceReply,
    InaccessibleMessage,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
)

from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi

ANN = 1001
GROUP = -500
TEAM = -1001234567890


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A server with a person, a small group and a supergroup with topics."""
    with running_botapi(chats=[Chat(ANN), Chat(GROUP, "Small"), Chat(TEAM, "Team", topics=(7,))]) as api:
        yield api


def bot_of(api: RunningBotApi) -> Bot:
    """The library's bot, pointed at this server."""
    return Bot(api.token, session=AiohttpSession(api=TelegramAPIServer.from_base(api.base_url)))


@pytest.fixture
async def bot(api: RunningBotApi) -> AsyncIterator[Bot]:
    """A bot that hangs up at the end."""
    async with bot_of(api) as bot:
        yield bot


def keyboard(*labels: str) -> InlineKeyboardMarkup:
    """One row of buttons whose data are their labels."""
    row = [InlineKeyboardButton(text=label, callback_data=label) for label in labels]
    return InlineKeyboardMarkup(inline_keyboard=[row])


async def test_a_question_is_asked_tapped_answered_edited_and_replied_to(api: RunningBotApi, bot: Bot) -> None:
    """The whole flow; every answer passes the library's models."""
    asked = await bot.send_message(
        ANN,
        "Which one?",
        entities=[MessageEntity(type="expandable_blockquote", offset=0, length=10)],
        reply_markup=keyboard("A", "B"),
        disable_notification=True,
        link_preview_options=LinkPreviewOptions(is_disabled=True),
    )
    message = api.phone.message_with("Which one?")
    assert (message.marked("expandable_blockquote"), message.silent) == (("Which one?",), True)
    assert asked.link_preview_options is not None

    tap = api.phone.tap(message, "B")
    (update,) = await bot.get_updates(timeout=5, allowed_updates=["message", "callback_query"])
    query = update.callback_query
    assert query is not None
    assert isinstance(query.message, Message)
    assert query.message.reply_markup is not None
    assert [button.text for button in query.message.reply_markup.inline_keyboard[0]] == ["A", "B"]
    assert await query.as_(bot).answer("B it is", show_alert=True)
    assert api.phone.toast_for(tap).show_alert
    edited = await bot.edit_message_text("You took B", chat_id=ANN, message_id=asked.message_id)
    assert isinstance(edited, Message)
    assert edited.reply_markup is None

    api.phone.write("because", reply_to=message)
    (answer,) = await bot.get_updates(offset=update.update_id + 1, timeout=5)
    assert answer.message is not None
    assert answer.message.reply_to_message is not None
    assert answer.message.reply_to_message.text == "You took B"
    assert await bot.delete_message(ANN, asked.message_id)
    api.phone.tap(message, data="A")
    (gone,) = await bot.get_updates(offset=answer.update_id + 1, timeout=5)
    assert gone.callback_query is not None
    assert isinstance(gone.callback_query.message, InaccessibleMessage)


async def test_all_other_answers_pass_the_models(api: RunningBotApi, bot: Bot) -> None:
    """Bot, chat, member, webhook, commands, document, topic, reply, forced reply, service messages, block."""
    assert (await bot.get_me()).username == "hermes_demo_bot"
    assert (await bot.get_chat(ANN)).type == "private"
    assert (await bot.get_chat_member(TEAM, ANN)).user.id == ANN
    assert await bot.set_my_commands([BotCommand(command="help", description="What I do")])
    assert await bot.delete_webhook()
    assert (await bot.get_webhook_info()).url == ""
    assert await bot.send_chat_action(ANN, "typing")
    sent = await bot.send_document(ANN, BufferedInputFile(b"hello", "log.txt"), caption="The log")
    assert sent.document is not None
    assert (sent.document.file_name, sent.document.file_size) == ("log.txt", 5)
    forced = await bot.send_message(TEAM, "Your words?", message_thread_id=7, reply_markup=ForceReply(force_reply=True))
    reply = ReplyParameters(message_id=forced.message_id)
    assert (await bot.send_message(TEAM, "Well?", reply_parameters=reply)).reply_to_message is not None
    api.phone.send_photo(b"a picture", caption="look", chat=TEAM, reply_to=forced.message_id)
    new = api.phone.migrate(chat=GROUP)
    api.phone.block(chat=ANN)
    photo, old, moved, block = await bot.get_updates()
    assert photo.message is not None
    assert photo.message.photo
    assert old.message is not None
    assert old.message.migrate_to_chat_id == new
    assert moved.message is not None
    assert moved.message.migrate_from_chat_id == GROUP
    assert block.my_chat_member is not None
    assert block.my_chat_member.new_chat_member.status == "kicked"


async def test_every_refusal_has_its_class(api: RunningBotApi, bot: Bot) -> None:
    """400, 401, 403, 409, 429, a moved group, a server's error, a broken connection."""
    asked = await bot.send_message(ANN, "Which one?")
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await bot.edit_message_text("Which one?", chat_id=ANN, message_id=asked.message_id)
    api.phone.migrate(chat=GROUP)
    with pytest.raises(TelegramMigrateToChat):
        await bot.send_message(GROUP, "x")
    api.phone.fault("sendMessage", retry_after_s=9)
    with pytest.raises(TelegramRetryAfter) as flood:
        await bot.send_message(ANN, "x")
    assert flood.value.retry_after == 9
    for status, kind in (
        (401, TelegramUnauthorizedError),
        (409, TelegramConflictError),
        (500, TelegramServerError),
    ):
        api.phone.fault("getMe", status=status)
        with pytest.raises(kind):
            await bot.get_me()
    api.phone.fault("getMe", "cut")
    with pytest.raises(TelegramNetworkError):
        await bot.get_me()
    api.phone.block(chat=ANN)
    with pytest.raises(TelegramForbiddenError):
        await bot.send_message(ANN, "x")


async def test_of_two_pollers_the_older_gets_the_conflict(api: RunningBotApi, bot: Bot) -> None:
    """The newcomer's long poll is held and gets the update."""
    older = asyncio.create_task(bot.get_updates(timeout=20))
    await asyncio.to_thread(api.phone.wait_for_poll)
    async with bot_of(api) as second:
        newer = asyncio.create_task(second.get_updates(timeout=20))
        with pytest.raises(TelegramConflictError):
            await older
        api.phone.write("for the newer")
        assert len(await newer) == 1


async def test_the_dispatcher_sees_commands_taps_and_texts(api: RunningBotApi, bot: Bot) -> None:
    """A command, a tap and a text go through the library's own polling."""
    dispatcher = Dispatcher()

    @dispatcher.message(Command("ask"))
    async def ask(message: Message) -> None:
        await message.answer("Which one?", reply_markup=keyboard("A"))

    @dispatcher.callback_query(F.data == "A")
    async def take(query: CallbackQuery) -> None:
        await query.answer("taken")
        assert isinstance(query.message, Message)
        await query.message.edit_text("You took A")

    @dispatcher.message(F.text)
    async def echo(message: Message) -> None:
        await message.reply(f"You said {message.text}")

    polling = asyncio.create_task(dispatcher.start_polling(bot, handle_signals=False, polling_timeout=20))
    phone = api.phone
    phone.write("/ask")
    asked = await asyncio.to_thread(phone.message_with, "Which one?")
    tap = phone.tap(asked, "A")
    assert (await asyncio.to_thread(phone.toast_for, tap)).text == "taken"
    assert (await asyncio.to_thread(phone.message_with, "You took A")).message_id == asked.message_id
    (written,) = phone.write("hello")
    assert (await asyncio.to_thread(phone.message_with, "You said hello")).reply_to == written
    await dispatcher.stop_polling()
    await polling
