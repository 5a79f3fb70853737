"""What the bot is in a group, and the date of an answer: read by three libraries."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import aiogram
import aiogram.client.session.aiohttp
import aiogram.client.telegram
import httpx
import pytest
import telegram

from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi
from tests.sandbox.raw_bot import raw_bot, texts

PLAIN, ADMIN, MUTED = -1001, -1002, -1003


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """Three groups."""
    chats = [Chat(1001), Chat(PLAIN), Chat(ADMIN, standing="administrator"), Chat(MUTED, standing="restricted")]
    with running_botapi(chats=chats) as running:
        yield running


async def test_both_libraries_read_what_the_bot_is(api: RunningBotApi) -> None:
    """Member, administrator, restricted, and kicked: each with all that its type must have."""
    session = aiogram.client.session.aiohttp.AiohttpSession(
        api=aiogram.client.telegram.TelegramAPIServer.from_base(api.base_url)
    )
    me = int(api.token.partition(":")[0])
    api.phone.block(chat=PLAIN)
    wanted = {PLAIN: "kicked", ADMIN: "administrator", MUTED: "restricted", 1001: "member"}
    async with (
        telegram.Bot(api.token, base_url=f"{api.base_url}/bot") as ptb,
        aiogram.Bot(api.token, session=session) as other,
    ):
        assert {chat: (await ptb.get_chat_member(chat, me)).status for chat in wanted} == wanted
        assert {chat: (await other.get_chat_member(chat, me)).status for chat in wanted} == wanted
        muted = await ptb.get_chat_member(MUTED, me)
    assert isinstance(muted, telegram.ChatMemberRestricted)
    assert (muted.is_member, muted.can_send_messages) == (True, False)


def test_a_muted_bot_cannot_write_and_may_seem_to_type(api: RunningBotApi) -> None:
    """The real server asks for access alone where a bot types (DialogActionManager.cpp)."""
    with raw_bot(api) as bot:
        refusal = "Bad Request: not enough rights to send text messages to the chat"
        assert bot.refused("sendMessage", chat_id=MUTED, text="hello") == refusal
        assert "send documents" in bot.refused("sendDocument", chat_id=MUTED, document="demo-file-1")
        assert bot("sendChatAction", chat_id=MUTED, action="typing") is True


def test_privacy_mode_does_not_count_for_an_administrator(api: RunningBotApi) -> None:
    """It gets every text; a plain member does not."""
    api.phone.write("to all", chat=PLAIN)
    api.phone.write("to the administrators", chat=ADMIN)
    with raw_bot(api) as bot:
        assert texts(bot("getUpdates")) == ["to the administrators"]


def test_every_answer_is_dated_by_the_servers_clock(api: RunningBotApi) -> None:
    """Also that to a request without a token, and after the clock was moved."""

    def dated_s() -> float:
        answer = httpx.get(api.base_url, trust_env=False)
        return parsedate_to_datetime(answer.headers["date"]).timestamp()

    api.phone.wait(lambda: abs(dated_s() - api.phone.state().now) < 4, what="the time")
    api.phone.advance(3600)
    api.phone.wait(lambda: abs(dated_s() - api.phone.state().now) < 4, what="the new time")
