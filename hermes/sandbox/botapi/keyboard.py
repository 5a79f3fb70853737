"""Parse reply_markup, and check it as strictly as Telegram may check it. Pure.

td silently drops surplus buttons and those without a text. A bot that relies on that loses buttons, so they are
refused here. `callback_data` is counted in bytes.
"""

import json
from dataclasses import dataclass
from typing import Any

from hermes.sandbox.botapi.text import encodable
from hermes.sandbox.botapi.wire import refused

MAX_BUTTONS = 100
MAX_BUTTONS_A_ROW = 8
MAX_DATA_BYTES = 64
MAX_COPIED = 256
MAX_BYTES = 10_000
"""Of the whole keyboard as JSON: tginfo/Telegram-Limits#187. How Telegram counts is not documented."""

STYLES = frozenset({"primary", "success", "danger"})
KINDS = frozenset({"url", "callback_data", "copy_text", "web_app", "login_url", "pay", "callback_game"}) | {
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
}


@dataclass(frozen=True, slots=True)
class Markup:
    """A parsed reply_markup: inline rows (button objects as sent), or a forced reply, or neither."""

    rows: tuple[tuple[dict[str, Any], ...], ...] = ()
    force_reply: bool = False
    other: bool = False  # a reply keyboard or its removal

    @property
    def editable(self) -> bool:
        """Whether a message with this markup can be edited: it must be inline or none (td, can_edit_message)."""
        return not (self.force_reply or self.other)


def parse_markup(value: object) -> Markup:
    """Return the markup of a request; None and {} mean no markup. Raise ApiError 400 if Telegram may refuse it."""
    if value is None:
        return Markup()
    if not isinstance(value, dict):
        raise refused("Object expected as reply markup")
    rows = value.get("inline_keyboard") or []
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise refused('Field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays')
    parsed = tuple(tuple(map(_parse_button, row)) for row in rows if row)
    _check_size(parsed)
    if parsed:
        return Markup(parsed)
    return Markup(force_reply=bool(value.get("force_reply")), other="keyboard" in value or "remove_keyboard" in value)


def parse_inline(value: object) -> Markup:
    """Return the markup of an edit; raise ApiError 400 if it is not inline."""
    markup = parse_markup(value)
    if not markup.editable:
        raise refused("Inline keyboard expected")
    return markup


def _check_size(rows: tuple[tuple[object, ...], ...]) -> None:
    too_many = sum(map(len, rows)) > MAX_BUTTONS or any(len(row) > MAX_BUTTONS_A_ROW for row in rows)
    if too_many or len(json.dumps(rows, ensure_ascii=False).encode()) > MAX_BYTES:
        raise refused("reply markup is too long")


def _parse_button(value: object) -> dict[str, Any]:
    wrong = "Can't parse inline keyboard button: "
    if not isinstance(value, dict):
        raise refused(wrong + "InlineKeyboardButton must be an Object")
    text = value.get("text")
    if not isinstance(text, str):
        raise refused(wrong + 'Can\'t find field "text"')
    if not encodable(text):
        raise refused("Inline keyboard button text must be encoded in UTF-8")
    if not text.strip():
        raise refused("Inline keyboard button text must be non-empty")
    if value.get("style") and value["style"] not in STYLES:
        raise refused(wrong + "invalid button style specified")
    if not any(value.get(kind) or (kind not in {"url", "callback_data"} and kind in value) for kind in KINDS):
        # Telegram reads an empty callback_data as a missing one, so it gets the same refusal
        raise refused(wrong + "Text buttons are unallowed in the inline keyboard")
    _check_data(value.get("callback_data"))
    _check_copied(value.get("copy_text"))
    return value


def _check_copied(copied: object) -> None:
    if copied is None:
        return
    text = copied.get("text") if isinstance(copied, dict) else None
    if not isinstance(text, str) or not encodable(text) or not 1 <= len(text) <= MAX_COPIED:
        raise refused("BUTTON_COPY_TEXT_INVALID")


def _check_data(data: object) -> None:
    if data is None:
        return
    if not isinstance(data, str) or not encodable(data) or not 1 <= len(data.encode()) <= MAX_DATA_BYTES:
        raise refused("BUTTON_DATA_INVALID")
