"""The local Bot API refuses the texts, entities and keyboards that Telegram refuses."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.sandbox.botapi import RunningBotApi, running_botapi
from tests.sandbox.raw_bot import RawBot, keyboard

ANN = 1001


@pytest.fixture(scope="module")
def server() -> Iterator[RunningBotApi]:
    """One server for the module: its tests use messages of their own."""
    with running_botapi() as api:
        yield api


@pytest.fixture
def api(server: RunningBotApi) -> Iterator[RunningBotApi]:
    """The server, without the trouble that a test left behind."""
    yield server
    server.phone.clear_faults()


# texts and entities


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Bad Request: message text is empty"),
        (" \n\t ", "Bad Request: text must be non-empty"),
        ("\u200b\u2060", "Bad Request: text must be non-empty"),
        ("x" * 4097, "Bad Request: message is too long"),
        ("😀" * 2048 + "x", "Bad Request: message is too long"),
        ("\ud83d", "Bad Request: strings must be encoded in UTF-8"),
    ],
)
def test_a_text_that_telegram_refuses(bot: RawBot, text: str, sentence: str) -> None:
    """Nothing, blanks, 4097 UTF-16 units, half a character."""
    body = json.dumps({"chat_id": ANN, "text": text})  # unlike httpx, it can say half a character
    response = bot.http.post("sendMessage", content=body, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["description"]) == (400, sentence)


def test_a_text_is_trimmed_before_it_is_measured(bot: RawBot) -> None:
    """4096 units and blanks around them pass; entities move along; controls and direction marks go."""
    assert len(bot.send("  " + "x" * 4096 + "\n ")["text"]) == 4096
    entities = [{"type": "bold", "offset": 2, "length": 6}]
    sent = bot.send("\r\u202eab\u202c\tcd  ", entities=entities)
    assert sent["text"] == "ab cd"
    assert sent["entities"] == [{"type": "bold", "offset": 0, "length": 5}]


@pytest.mark.parametrize(
    ("entity", "sentence"),
    [
        ({"offset": -1, "length": 1}, "receive an entity with incorrect offset -1"),
        ({"offset": 0, "length": 9}, "entity beginning at UTF-16 offset 0 ends after the end of the text"),
        ({"offset": 9, "length": 1}, "entity begins after the end of the text at UTF-16 offset 9"),
        ({"offset": 2, "length": 2}, "entity begins in a middle of a UTF-16 symbol"),
        (
            {"offset": 0, "length": 2},
            "entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol",
        ),
        ({"offset": 0, "length": 1, "type": "loud"}, "can't parse MessageEntity: Unsupported type specified"),
        (
            {"offset": 0, "length": 1, "type": "text_link"},
            "can't parse MessageEntity: Can't find field \"url\"",
        ),
        ({"offset": 0}, "can't parse MessageEntity: Can't find field \"length\""),
    ],
)
def test_an_entity_that_does_not_fit_the_text(bot: RawBot, entity: dict[str, Any], sentence: str) -> None:
    """Offsets and lengths are UTF-16 units inside the text and cut no character."""
    entities = [{"type": "bold", **entity}]
    refusal = bot.refused("sendMessage", chat_id=ANN, text="a😀b c", entities=entities)
    assert refusal.startswith(f"Bad Request: {sentence}")


def test_clients_find_links_by_themselves(api: RunningBotApi, bot: RawBot) -> None:
    """Commands, mentions, tags and addresses become entities, but not inside code, nor after a joiner."""
    text = "/stop @someone #now see README.md or https://a.example/x, not /\u200dstart @\u200dnobody"
    shown = api.phone.message(bot.send(text)["message_id"])
    assert shown.marked("bot_command") == ("/stop",)
    assert shown.marked("mention") == ("@someone",)
    assert shown.marked("hashtag") == ("#now",)
    assert shown.marked("url") == ("README.md", "https://a.example/x")
    assert shown.link_preview
    code = [{"type": "code", "offset": 0, "length": len(text)}]
    quiet = api.phone.message(bot.send(text, entities=code)["message_id"])
    assert [entity.type for entity in quiet.entities] == ["code"]
    assert not quiet.link_preview
    disabled = bot.send(text, link_preview_options={"is_disabled": True})
    assert not api.phone.message(disabled["message_id"]).link_preview


def test_markup_languages_are_refused(bot: RawBot) -> None:
    """Only plain text with entities is spoken here."""
    assert "parse_mode" in bot.refused("sendMessage", chat_id=ANN, text="<b>x</b>", parse_mode="HTML")


# keyboards


@pytest.mark.parametrize(
    ("markup", "sentence"),
    [
        (keyboard(("ä" * 32 + "x",)), "BUTTON_DATA_INVALID"),
        (keyboard(*[("x",)] * 101), "reply markup is too long"),
        (keyboard(("x",) * 9), "reply markup is too long"),
        (keyboard(*[("x" * 60,)] * 100), "reply markup is too long"),
        (keyboard((" ",)), "inline keyboard button text must be non-empty"),
        (
            {"inline_keyboard": [[{"text": "x", "callback_data": ""}]]},
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
        (
            {"inline_keyboard": [[{"text": "x", "callback_data": "x", "style": "loud"}]]},
            "can't parse inline keyboard button: invalid button style specified",
        ),
        (
            {"inline_keyboard": [{"text": "x"}]},
            'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays',
        ),
        ([], "object expected as reply markup"),
        ("{", "can't parse reply keyboard markup JSON object"),
    ],
)
def test_a_keyboard_that_telegram_refuses(bot: RawBot, markup: Any, sentence: str) -> None:
    """Data over 64 bytes, more than 100 buttons or 8 in a row, buttons without words or effect."""
    refusal = bot.refused("sendMessage", chat_id=ANN, text="x", reply_markup=markup)
    assert refusal == f"Bad Request: {sentence}"


def test_the_largest_keyboard_passes(bot: RawBot) -> None:
    """64 bytes of data; a hundred buttons, eight in a row; all together almost 10,000 bytes."""
    sent = bot.send(reply_markup=keyboard(*[("ä" * 13,) * 8] * 12, ("ä" * 32,) * 4))
    assert sum(map(len, sent["reply_markup"]["inline_keyboard"])) == 100


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("reply_parameters", "{", "can't parse reply parameters JSON object"),
        ("reply_parameters", [], "object expected as reply parameters"),
        ("reply_parameters", {"chat_id": 1}, 'can\'t find field "message_id"'),
        ("link_preview_options", [], "object expected as link preview options"),
        ("entities", ["bold"], "can't parse MessageEntity: expected an Object"),
        ("reply_markup", {"inline_keyboard": [["x"]]}, "can't parse inline keyboard button: "),
        ("reply_markup", {"inline_keyboard": [[{}]]}, "can't parse inline keyboard button: "),
    ],
)
def test_a_field_of_another_shape(bot: RawBot, field: str, value: Any, sentence: str) -> None:
    """What is not an object, or lacks what it must have, is told apart."""
    refusal = bot.refused("sendMessage", **{"chat_id": ANN, "text": "x", field: value})
    assert refusal.startswith(f"Bad Request: {sentence}")
