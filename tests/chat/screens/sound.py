"""What Telegram, a person and the listener rely on in every message."""

import re

from hermes.chat.screens.buttons import Button, decode
from hermes.chat.screens.screen import Screen
from hermes.chat.screens.unseen import visible
from hermes.core.answers import utf16_units
from hermes.model.entry import Entry
from hermes.sandbox.botapi.keyboard import parse_markup
from hermes.sandbox.botapi.text import FOUND_BY_CLIENTS, prepare


def sent(button: Button) -> dict[str, object]:
    """Return the button as the Bot API takes it."""
    act = {"copy_text": {"text": button.copies}} if button.copies else {"callback_data": button.data}
    return {"text": button.text, "style": button.colour, **act}


def assert_sound(screen: Screen, asked: Entry | None = None) -> None:
    """Assert what Telegram, a person and the listener rely on in every message."""
    assert 1 <= utf16_units(screen.text) <= 4096
    assert visible(screen.text)
    said = "".join([screen.text, *(button.text for row in screen.rows for button in row)])
    assert not re.search("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\x00-\x09\x0b-\x1f\x7f-\x9f]", said)
    at = 0
    for entity in screen.entities:
        assert entity.offset >= at
        assert entity.length > 0
        at = entity.offset + entity.length
    assert at <= utf16_units(screen.text)
    wire = [{"type": e.type, "offset": e.offset, "length": e.length} for e in screen.entities]
    found = [e for e in prepare(screen.text, wire)[1] if e["type"] in FOUND_BY_CLIENTS]
    assert [e["type"] for e in found] in ([], ["hashtag"]), "only our own short code is a link"
    rows = [[sent(button) for button in row] for row in screen.rows]
    assert all(rows)
    parse_markup({"inline_keyboard": rows})
    for row in screen.rows:
        for button in row:
            assert len(button.data.encode()) <= 64
            if asked and not button.copies:
                assert decode(button.data)[:2] == (asked.id, asked.state.epoch)
