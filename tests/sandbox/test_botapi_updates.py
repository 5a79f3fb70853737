"""What the local Bot API delivers to a bot: offsets, long polls, taps, texts, groups."""

from collections.abc import Iterator

import httpx
import pytest

from hermes.sandbox.botapi import Chat, RunningBotApi, User, running_botapi
from hermes.sandbox.botapi.updates import Updates
from tests.sandbox.raw_bot import Background, RawBot, Refused, raw_bot, texts

ANN, BEN, STRANGER = 1001, 1002, 6006
TEAM = -1001234567890
BRIEF = httpx.Timeout(10, read=0.3)


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A fresh server: what is in the queue is the subject here."""
    people = [User(ANN, "Ann", "ann"), User(BEN, "Ben")]
    with running_botapi(users=people, chats=[Chat(ANN), Chat(BEN), Chat(TEAM, "Team")]) as api:
        yield api


# getUpdates


def test_an_offset_confirms_what_lies_before_it(api: RunningBotApi, bot: RawBot) -> None:
    """Unconfirmed updates come again; confirmed ones never; ids go up by one from a random start."""
    for text in ("one", "two", "three"):
        api.phone.write(text)
    first = bot("getUpdates", limit=2)
    assert texts(first) == ["one", "two"]
    assert texts(bot("getUpdates")) == ["one", "two", "three"]
    assert first[1]["update_id"] == first[0]["update_id"] + 1 > 100_000_000
    assert texts(bot("getUpdates", offset=first[0]["update_id"] + 1)) == ["two", "three"]
    assert texts(bot("getUpdates", offset=first[0]["update_id"])) == ["two", "three"]


def test_a_negative_offset_keeps_the_newest(api: RunningBotApi, bot: RawBot) -> None:
    """-1 returns the last update and forgets all others."""
    for text in ("one", "two", "three"):
        api.phone.write(text)
    assert texts(bot("getUpdates", offset=-1)) == ["three"]
    assert texts(bot("getUpdates")) == ["three"]


def test_an_offset_from_nowhere_reads_from_the_start() -> None:
    """One far in the future or the past is as good as none; one just ahead confirms."""
    queue = Updates(next_id=500_000_000)
    queue.add("message", {"text": "one"}, now=0, ttl_s=60)
    for offset in (0, 7, 2_000_000_000):
        assert len(queue.fetch(offset, 100, now=0)) == 1
    assert queue.fetch(500_000_001, 100, now=0) == []


def test_a_long_poll_is_held_until_something_comes(api: RunningBotApi, bot: RawBot) -> None:
    """It answers as soon as a text is there; without one it ends empty at its time."""
    assert bot("getUpdates", timeout=1) == []
    assert (api.phone.calls("getupdates")[0].took_s or 0) >= 0.9
    poll = Background(lambda: bot("getUpdates", timeout=50))
    api.phone.wait_for_poll()
    api.phone.write("at last")
    assert texts(poll.answer()) == ["at last"]


def test_the_timeout_is_clamped_to_50_seconds(api: RunningBotApi, bot: RawBot) -> None:
    """A longer one is no error, a nonsensical limit neither."""
    api.phone.write("hello")
    assert texts(bot("getUpdates", timeout=9999, limit=-3)) == ["hello"]


def test_of_two_polls_the_older_gets_a_conflict(api: RunningBotApi, bot: RawBot) -> None:
    """The newcomer wins and gets the update."""
    older = Background(lambda: bot("getUpdates", timeout=50))
    api.phone.wait_for_poll()
    newer = Background(lambda: bot("getUpdates", timeout=50))
    with pytest.raises(Refused) as conflict:
        older.answer()
    assert conflict.value.status == 409
    assert conflict.value.description == (
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    )
    api.phone.write("for the newer")
    assert texts(newer.answer()) == ["for the newer"]


def test_a_poll_whose_client_has_left_is_forgotten(api: RunningBotApi, bot: RawBot) -> None:
    """Nobody polls any more, and the update waits for the next poll."""
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{bot.http.base_url}getUpdates?timeout=50", timeout=BRIEF, trust_env=False)
    api.phone.wait(lambda: not api.phone.state().polling, what="the end of the poll")
    api.phone.write("still there")
    assert texts(bot("getUpdates")) == ["still there"]


def test_a_webhook_shuts_get_updates_out(api: RunningBotApi, bot: RawBot) -> None:
    """409 for the held poll and for new ones, until deleteWebhook; nothing is dropped unless asked for."""
    poll = Background(lambda: bot("getUpdates", timeout=50))
    api.phone.wait_for_poll()
    assert bot("setWebhook", url="https://a.example/hook") is True
    with pytest.raises(Refused, match="terminated by setWebhook request"):
        poll.answer()
    assert "while webhook is active" in bot.refused("getUpdates", 409)
    api.phone.write("kept")
    info = bot("getWebhookInfo")
    assert (info["url"], info["pending_update_count"]) == ("https://a.example/hook", 1)
    assert bot("deleteWebhook") is True
    assert texts(bot("getUpdates")) == ["kept"]
    assert bot("deleteWebhook", drop_pending_updates=True) is True
    assert bot("getUpdates") == []
    assert "HTTPS" in bot.refused("setWebhook", url="http://a.example")


def test_a_tap_expires_after_150_seconds_and_a_text_after_a_day(api: RunningBotApi, bot: RawBot) -> None:
    """They vanish without a word."""
    api.phone.tap(bot.send("Pick", "A")["message_id"], "A")
    api.phone.write("text")
    api.phone.advance(149)
    assert len(bot("getUpdates")) == 2
    api.phone.advance(2)
    assert texts(bot("getUpdates")) == ["text"]
    api.phone.advance(86_400)
    assert bot("getUpdates") == []


def test_allowed_updates_count_when_an_update_is_made(api: RunningBotApi, bot: RawBot) -> None:
    """Kinds that were not wanted never come, also not later; the setting stays; [] means the usual ones."""
    bot("getUpdates", allowed_updates=["callback_query"])
    api.phone.write("unheard")
    message_id = bot.send("Pick", "A")["message_id"]
    api.phone.tap(message_id, "A")
    assert [update["callback_query"]["data"] for update in bot("getUpdates", allowed_updates=[])] == ["A"]
    api.phone.write("heard")
    assert texts(bot("getUpdates")[1:]) == ["heard"]


def test_wrong_kinds_of_updates_are_refused(bot: RawBot) -> None:
    """A list of names, or nothing."""
    assert bot.refused("getUpdates", allowed_updates=[1]) == "Bad Request: expected an Array of String"


# taps


def test_a_tap_carries_the_whole_message_or_says_that_it_is_gone(api: RunningBotApi, bot: RawBot) -> None:
    """The message with its keyboard; date 0 and no text once it was deleted."""
    message_id = bot.send("Pick", "A", "B")["message_id"]
    api.phone.tap(message_id, "B", user=ANN)
    api.phone.delete(message_id)
    api.phone.tap(message_id, data="B")
    whole, gone = (update["callback_query"] for update in bot("getUpdates"))
    assert whole["from"]["id"] == ANN
    assert whole["message"]["reply_markup"]["inline_keyboard"][0][1] == {"text": "B", "callback_data": "B"}
    assert gone["message"]["date"] == 0
    assert "text" not in gone["message"]


def test_a_button_is_found_by_label_place_or_data(api: RunningBotApi, bot: RawBot) -> None:
    """A stale one only by its data; what is not shown can't be tapped by its label."""
    message_id = bot.send("Pick", "Alpha", "Beta")["message_id"]
    phone = api.phone
    taps = [
        phone.tap(message_id, "Alp"),
        phone.tap(message_id, row=0, column=1),
        phone.tap(message_id, data="x"),
    ]
    assert [tap.data for tap in taps] == ["Alpha", "Beta", "x"]
    phone.tap(message_id, "Beta", times=2)
    assert len(bot("getUpdates")) == 5
    for wrong in ({"label": "a"}, {"label": "Gamma"}, {"row": 1}, {}):
        with pytest.raises(LookupError, match=r"no (single )?button"):
            phone.tap(message_id, **wrong)
    with pytest.raises(LookupError, match="never was"):
        phone.tap(999, data="x")


# texts, groups, strangers


def test_a_long_text_is_split_as_a_client_splits_it(api: RunningBotApi, bot: RawBot) -> None:
    """Several messages, each a reply to the same one, no character cut."""
    question = bot.send()["message_id"]
    written = api.phone.write("😀" * 2048 + "x" * 10, reply_to=question)
    parts = [update["message"] for update in bot("getUpdates")]
    assert [part["message_id"] for part in parts] == list(written)
    assert [len(part["text"]) for part in parts] == [2048, 10]
    assert {part["reply_to_message"]["message_id"] for part in parts} == {question}


def test_privacy_mode_hides_plain_texts_of_a_group(api: RunningBotApi, bot: RawBot) -> None:
    """Commands, replies to the bot and mentions arrive; the rest, and other bots' commands, do not."""
    question = bot.send(chat_id=TEAM)["message_id"]
    plain = api.phone.write("hello", chat=TEAM)[0]
    for text, reply_to in (
        ("/start", None),
        ("/start@hermes_demo_bot", None),
        ("/start@other_bot", None),
        ("ask @hermes_demo_bot", None),
        ("to you", question),
        ("to me", plain),
    ):
        api.phone.write(text, chat=TEAM, user=BEN, reply_to=reply_to)
    api.phone.send_sticker(chat=TEAM)
    heard = ["/start", "/start@hermes_demo_bot", "ask @hermes_demo_bot", "to you"]
    assert texts(bot("getUpdates")) == heard
    assert bot("getUpdates")[0]["message"]["entities"] == [{"offset": 0, "length": 6, "type": "bot_command"}]


def test_without_privacy_mode_a_group_is_heard() -> None:
    """As for a bot that is an administrator."""
    with running_botapi(chats=[Chat(TEAM)], privacy_mode=False) as api, raw_bot(api) as bot:
        api.phone.write("hello")
        assert texts(bot("getUpdates")) == ["hello"]


def test_a_stranger_writes_in_a_chat_of_his_own(api: RunningBotApi, bot: RawBot) -> None:
    """He starts the bot and has a private chat from then on; into another's he can't write."""
    assert bot.refused("sendMessage", chat_id=STRANGER, text="x") == "Bad Request: chat not found"
    api.phone.write("hi", user=STRANGER)
    assert bot("getUpdates")[0]["message"]["chat"]["id"] == STRANGER
    assert bot.send(chat_id=STRANGER)
    with pytest.raises(LookupError, match="private chat"):
        api.phone.write("hi", user=STRANGER, chat=ANN)


def test_what_is_no_text_arrives_without_one(api: RunningBotApi, bot: RawBot) -> None:
    """A sticker, a photo with a caption, a document; an edited text is an edited_message."""
    api.phone.send_sticker()
    api.phone.send_photo(b"a picture", caption="look")
    api.phone.send_document(b"Hello there.", "note.txt")
    api.phone.rewrite(api.phone.write("tpyo")[0], "typo")
    sticker, photo, document, _, edited = bot("getUpdates")
    assert sticker["message"]["sticker"]["type"] == "regular"
    assert photo["message"]["caption"] == "look"
    assert document["message"]["document"]["file_name"] == "note.txt"
    assert edited["edited_message"]["text"] == "typo"
