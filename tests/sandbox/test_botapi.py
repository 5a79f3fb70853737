"""The local Bot API refuses what Telegram refuses: requests, chats, edits, answers, rates."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi
from hermes.sandbox.botapi.methods import MAX_FILE_BYTES
from hermes.sandbox.botapi.rates import UNLIMITED, Rates
from hermes.sandbox.botapi.wire import ApiError
from tests.sandbox.raw_bot import RawBot, Refused, keyboard, raw_bot

ANN = 1001
GROUP = -500
TEAM = -1001234567890


@pytest.fixture(scope="module")
def server() -> Iterator[RunningBotApi]:
    """One server for the module: its tests use messages of their own."""
    with running_botapi(chats=[Chat(ANN), Chat(GROUP, "Small"), Chat(TEAM, "Team", topics=(7,))]) as api:
        yield api


@pytest.fixture
def api(server: RunningBotApi) -> Iterator[RunningBotApi]:
    """The server, without the trouble that a test left behind."""
    yield server
    server.phone.clear_faults()


# the wire


@pytest.mark.parametrize("way", ["query", "form", "json", "multipart"])
def test_parameters_come_in_four_ways(api: RunningBotApi, bot: RawBot, way: str) -> None:
    """GET query, form, JSON and multipart mean the same; a list inside a form is JSON."""
    fields = {"chat_id": "1001", "text": way, "entities": '[{"type":"bold","offset":0,"length":4}]'}
    if way == "query":
        response = bot.http.get("sendMessage", params=fields)
    elif way == "form":
        response = bot.http.post("SENDMESSAGE", data=fields)
    elif way == "json":
        entities = [{"type": "bold", "offset": 0, "length": 4}]
        response = bot.http.post("sendmessage", json={"chat_id": 1001, "text": way, "entities": entities})
    else:
        response = bot.http.post("sendMessage", data=fields, files={"note": ("n.txt", b"x")})
    assert response.json()["result"]["entities"] == [{"offset": 0, "length": 4, "type": "bold"}]
    assert api.phone.message_with(way).marked("bold") == (way[:4],)


def test_a_wrong_token_is_unauthorized(api: RunningBotApi) -> None:
    """Another token is 401, and so is one of another shape."""
    for token in ("7000000001:other", "no-token", "0:a"):
        response = httpx.get(f"{api.base_url}/bot{token}/getMe", trust_env=False)
        assert response.status_code == 401
        assert response.json()["description"].startswith("Unauthorized")


def test_an_unknown_method_is_not_found(api: RunningBotApi, bot: RawBot) -> None:
    """404, as for a path that is none."""
    assert bot.refused("sendEverything", 404) == "Not Found: method not found"
    assert httpx.get(f"{api.base_url}/", trust_env=False).json()["description"] == "Not Found"


def test_the_bot_is_introduced(bot: RawBot) -> None:
    """GetMe and getChatMember speak of the same bot; privacy mode is on."""
    me = bot("getMe")
    assert (me["is_bot"], me["can_read_all_group_messages"]) == (True, False)
    assert bot("getChatMember", chat_id=TEAM, user_id=me["id"])["user"]["id"] == me["id"]
    assert bot("getChat", chat_id=TEAM)["is_forum"] is True
    assert bot.refused("getChatMember", chat_id=TEAM, user_id=4242) == "Bad Request: PARTICIPANT_ID_INVALID"


# chats, threads, replies


def test_a_chat_that_is_none(bot: RawBot) -> None:
    """400 for an unknown id, a name, nothing."""
    for chat_id in (4242, "@somewhere"):
        assert bot.refused("sendMessage", chat_id=chat_id, text="x") == "Bad Request: chat not found"
    assert bot.refused("sendMessage", text="x") == "Bad Request: chat_id is empty"


def test_a_topic_must_exist(bot: RawBot) -> None:
    """message_thread_id of the chat, or 400."""
    assert bot.send(chat_id=TEAM, message_thread_id=7)["is_topic_message"] is True
    refusal = bot.refused("sendMessage", chat_id=TEAM, text="x", message_thread_id=8)
    assert refusal == "Bad Request: message thread not found"


def test_a_reply_needs_its_message(bot: RawBot) -> None:
    """A reply to a missing or deleted message is refused, unless the bot allows to do without."""
    first = bot.send()["message_id"]
    reply = {"message_id": first}
    assert bot.send(reply_parameters=reply)["reply_to_message"]["message_id"] == first
    bot("deleteMessage", chat_id=ANN, message_id=first)
    refusal = bot.refused("sendMessage", chat_id=ANN, text="x", reply_parameters=reply)
    assert refusal == "Bad Request: message to be replied not found"
    lenient = bot.send(reply_parameters=reply | {"allow_sending_without_reply": True})
    assert "reply_to_message" not in lenient


def test_a_blocked_bot_is_forbidden(api: RunningBotApi, bot: RawBot) -> None:
    """403 while the person blocks it, and the bot is told of the change."""
    api.phone.block(chat=ANN)
    try:
        refusal = bot.refused("sendMessage", 403, chat_id=ANN, text="x")
    finally:
        api.phone.unblock(chat=ANN)
    assert refusal == "Forbidden: bot was blocked by the user"
    assert bot.send()
    api.phone.block(chat=TEAM)
    refusal = bot.refused("sendMessage", 403, chat_id=TEAM, text="x")
    api.phone.unblock(chat=TEAM)
    assert refusal == "Forbidden: bot was kicked from the supergroup chat"
    kinds = [next(iter(set(update) - {"update_id"})) for update in bot("getUpdates")]
    assert kinds[-4:] == ["my_chat_member"] * 4


def test_a_group_that_became_a_supergroup(api: RunningBotApi, bot: RawBot) -> None:
    """400 with the new chat id; both chats carry a service message."""
    new = api.phone.migrate(chat=GROUP)
    with pytest.raises(Refused) as refusal:
        bot.send(chat_id=GROUP)
    assert refusal.value.body["parameters"] == {"migrate_to_chat_id": new}
    assert refusal.value.description == "Bad Request: group chat was upgraded to a supergroup chat"
    assert bot.send(chat_id=new)["chat"]["type"] == "supergroup"
    services = [update["message"] for update in bot("getUpdates") if "message" in update]
    assert [m.get("migrate_to_chat_id") or m.get("migrate_from_chat_id") for m in services[-2:]] == [
        new,
        GROUP,
    ]


# edits and deletions


def test_a_button_with_a_colour_copies_text(api: RunningBotApi, bot: RawBot) -> None:
    """1 to 256 characters; a colour that Telegram does not know is refused."""

    def button(text: object, style: str = "success") -> dict[str, Any]:
        row = [{"text": "Copy", "copy_text": text, "style": style}]
        return {"chat_id": ANN, "text": "Hi", "reply_markup": {"inline_keyboard": [row]}}

    bot("sendMessage", **button({"text": "x" * 256}))
    [row] = api.control.messages()[-1].rows
    assert (row[0].copies, row[0].style, row[0].data) == ("x" * 256, "success", None)
    for wrong in ({"text": ""}, {"text": "x" * 257}, {"text": 7}, {}, "x"):
        assert bot.refused("sendMessage", **button(wrong)) == "Bad Request: BUTTON_COPY_TEXT_INVALID"
    assert "invalid button style" in bot.refused("sendMessage", **button({"text": "x"}, "purple"))


def test_an_unchanged_edit_is_refused(bot: RawBot) -> None:
    """The same text and buttons: 400; another button, another mark or another text: fine."""
    message_id = bot.send("Same", "A")["message_id"]
    same: dict[str, Any] = {
        "chat_id": ANN,
        "message_id": message_id,
        "text": "Same",
        "reply_markup": keyboard(("A",)),
    }
    for trailing in ("", "  \n"):
        refusal = bot.refused("editMessageText", **same | {"text": "Same" + trailing})
        assert refusal.startswith("Bad Request: message is not modified: specified new message content")
    assert bot("editMessageText", **same | {"reply_markup": keyboard(("B",))})["edit_date"]
    assert bot("editMessageText", **same | {"entities": [{"type": "bold", "offset": 0, "length": 4}]})


def test_an_edit_without_a_keyboard_takes_it_away(api: RunningBotApi, bot: RawBot) -> None:
    """Also of editMessageReplyMarkup; a second time there is nothing to change."""
    first, second = (bot.send("One", "A")["message_id"] for _ in range(2))
    bot("editMessageText", chat_id=ANN, message_id=first, text="Two")
    bot("editMessageReplyMarkup", chat_id=ANN, message_id=second)
    assert [api.phone.message(n).rows for n in (first, second)] == [(), ()]
    refusal = bot.refused("editMessageReplyMarkup", chat_id=ANN, message_id=second)
    assert "message is not modified" in refusal


def test_what_can_not_be_edited(api: RunningBotApi, bot: RawBot) -> None:
    """A missing or deleted message, a person's, one that forces a reply; nor into a forced reply."""
    mine, written = bot.send()["message_id"], api.phone.write("mine")[0]
    forcing = bot.send(reply_markup={"force_reply": True})["message_id"]
    edit: dict[str, Any] = {"chat_id": ANN, "text": "new"}
    assert bot.refused("editMessageText", **edit, message_id=999999) == "Bad Request: message to edit not found"
    for message_id in (written, forcing):
        assert bot.refused("editMessageText", **edit, message_id=message_id) == "Bad Request: message can't be edited"
    force = {"force_reply": True}
    refusal = bot.refused("editMessageText", **edit, message_id=mine, reply_markup=force)
    assert refusal == "Bad Request: inline keyboard expected"
    api.phone.delete(mine)
    assert bot.refused("editMessageText", **edit, message_id=mine) == "Bad Request: message to edit not found"
    assert api.phone.message(forcing).force_reply


def test_a_message_is_deleted_once_and_within_48_hours(api: RunningBotApi, bot: RawBot) -> None:
    """Gone is gone; after 48 hours it stays."""
    first, second = (bot.send()["message_id"] for _ in range(2))
    assert bot("deleteMessage", chat_id=ANN, message_id=first) is True
    refusal = bot.refused("deleteMessage", chat_id=ANN, message_id=first)
    assert refusal == "Bad Request: message to delete not found"
    api.phone.advance(48 * 3600 + 5)
    refusal = bot.refused("deleteMessage", chat_id=ANN, message_id=second)
    assert refusal == "Bad Request: message can't be deleted for everyone"
    assert api.phone.message(first).deleted
    assert not api.phone.message(second).deleted


def test_in_a_group_only_own_messages_can_be_deleted(api: RunningBotApi, bot: RawBot) -> None:
    """The bot is no administrator."""
    written = api.phone.write("/hello", chat=TEAM)[0]
    refusal = bot.refused("deleteMessage", chat_id=TEAM, message_id=written)
    assert refusal == "Bad Request: message can't be deleted"


# answers to taps


TOO_OLD = "Bad Request: query is too old and response timeout expired or query ID is invalid"


def test_a_tap_is_answered_once(api: RunningBotApi, bot: RawBot) -> None:
    """The second answer, and one to a tap that never was, is 400."""
    tap = api.phone.tap(bot.send("Pick", "A")["message_id"], "A")
    answer: dict[str, Any] = {"callback_query_id": tap.tap_id, "text": "A it is", "show_alert": True}
    assert bot("answerCallbackQuery", **answer) is True
    assert bot.refused("answerCallbackQuery", **answer) == TOO_OLD
    assert bot.refused("answerCallbackQuery", callback_query_id="1") == TOO_OLD
    toast = api.phone.toast_for(tap)
    assert (toast.text, toast.show_alert, toast.data) == ("A it is", True, "A")


def test_a_late_answer_is_refused(api: RunningBotApi, bot: RawBot) -> None:
    """After a minute the phone has given up."""
    tap = api.phone.tap(bot.send("Pick", "A")["message_id"], "A")
    api.phone.advance(61)
    assert bot.refused("answerCallbackQuery", callback_query_id=tap.tap_id) == TOO_OLD


def test_an_answer_has_200_characters_at_most(api: RunningBotApi, bot: RawBot) -> None:
    """201 are refused, and the tap can still be answered."""
    tap = api.phone.tap(bot.send("Pick", "A")["message_id"], "A")
    refusal = bot.refused("answerCallbackQuery", callback_query_id=tap.tap_id, text="x" * 201)
    assert refusal == "Bad Request: MESSAGE_TOO_LONG"
    assert bot("answerCallbackQuery", callback_query_id=tap.tap_id, text="x" * 200) is True


# the rest


def test_documents_and_actions(api: RunningBotApi, bot: RawBot) -> None:
    """A document is uploaded, captioned, and its caption is not text to edit."""
    upload = {"note": ("log.txt", b"hello", "text/plain")}
    fields = {"chat_id": "1001", "document": "attach://note", "caption": "The log"}
    sent = bot.http.post("sendDocument", data=fields, files=upload).json()["result"]
    assert (sent["document"]["file_name"], sent["document"]["file_size"]) == ("log.txt", 5)
    assert api.phone.message(sent["message_id"]).kind == "document"
    empty = bot.http.post("sendDocument", data=fields, files={"note": ("log.txt", b"", "text/plain")}).json()
    assert empty["description"] == "Bad Request: file must be non-empty"
    large = {"note": ("large", bytes(MAX_FILE_BYTES + 1), "text/plain")}
    answer = bot.http.post("sendDocument", data=fields, files=large)
    assert (answer.status_code, answer.json()["description"]) == (413, "Request Entity Too Large")
    again = bot("sendDocument", chat_id=ANN, document=sent["document"]["file_id"])
    refusal = bot.refused("editMessageText", chat_id=ANN, message_id=again["message_id"], text="x")
    assert refusal == "Bad Request: there is not text in the message to edit"
    too_long = bot.refused("sendDocument", chat_id=ANN, document="demo-file-1", caption="x" * 1025)
    assert too_long == "Bad Request: message caption is too long"
    assert bot.refused("sendDocument", chat_id=ANN) == "Bad Request: there is no document in the request"
    assert bot("sendChatAction", chat_id=ANN, action="typing") is True
    refusal = bot.refused("sendChatAction", chat_id=ANN, action="dancing")
    assert refusal == "Bad Request: wrong parameter action in request"


def test_commands_are_checked(bot: RawBot) -> None:
    """Lower case, digits and _; with a description."""
    assert bot("setMyCommands", commands=[{"command": "help", "description": "What I do"}]) is True
    assert bot("getMyCommands") == [{"command": "help", "description": "What I do"}]
    for command, description, code in (
        ("a b", "x", "BOT_COMMAND_INVALID"),
        ("a", " ", "BOT_COMMAND_DESCRIPTION_INVALID"),
    ):
        wrong = [{"command": command, "description": description}]
        assert bot.refused("setMyCommands", commands=wrong) == f"Bad Request: {code}"


def test_a_flood_is_refused_with_a_time_to_wait() -> None:
    """At scale 1 three at once pass in a chat; the fourth waits by the server's clock; other chats go on."""
    frozen = running_botapi(chats=[Chat(ANN), Chat(TEAM)], rate_scale=1, now=lambda: 1_800_000_000.0)
    with frozen as api, raw_bot(api) as bot:
        for _ in range(3):
            bot.send()
        with pytest.raises(Refused) as refusal:
            bot.send()
        assert (refusal.value.status, refusal.value.retry_after) == (429, "3")
        assert refusal.value.body["parameters"] == {"retry_after": 3}
        assert refusal.value.description == "Too Many Requests: retry after 3"
        assert bot.send(chat_id=TEAM)
        api.phone.advance(3)
        assert bot.send()


def taken(rates: Rates, *, chat: int, at_s: float, group: bool = False) -> int:
    """0 if the message passes, else how long to wait."""
    try:
        rates.take(chat, group=group, now=at_s)
    except ApiError as refusal:
        return refusal.parameters["retry_after"]
    return 0


def test_a_group_takes_twenty_a_minute() -> None:
    """The 21st within a minute waits until the first is a minute old."""
    rates = Rates(scale=1)
    assert [taken(rates, chat=TEAM, at_s=1.5 * n, group=True) for n in range(20)] == [0] * 20
    assert taken(rates, chat=TEAM, at_s=30, group=True) == 30
    assert taken(rates, chat=TEAM, at_s=60, group=True) == 0


def test_thirty_a_second_pass_over_all_chats() -> None:
    """The 31st chat within a second waits; at scale 2 it passes; unlimited is unlimited."""
    for scale, waits in ((1, 1), (2, 0), (UNLIMITED, 0)):
        rates = Rates(scale=scale)
        assert [taken(rates, chat=n, at_s=0) for n in range(31)] == [0] * 30 + [waits]
