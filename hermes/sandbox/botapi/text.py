"""Clean or refuse texts and their entities as Telegram does. Pure; offsets count UTF-16 units.

The rules are those of td/telegram/MessageEntity.cpp (`fix_formatted_text`): control characters become blanks,
direction marks are removed, ends are trimmed, entities outside the text or inside a character are refused. Then
entities are added for the commands, mentions, hashtags and addresses in the text, because clients turn these into
links. Not modelled: overlapping entities of different kinds are neither split nor merged.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from hermes.sandbox.botapi.wire import refused

MAX_TEXT_UNITS = 4096
MAX_CAPTION_UNITS = 1024
MAX_ENTITIES = 100
MAX_ENTITY_NUMBER = 1_000_000

Entity = dict[str, Any]

# kind -> the fields of an entity of this kind, without offset, length and type
ENTITY_FIELDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "bold",
            "italic",
            "underline",
            "strikethrough",
            "spoiler",
            "code",
            "blockquote",
            "expandable_blockquote",
        ),
        (),
    ),
    "pre": ("language",),
    "text_link": ("url",),
    "text_mention": ("user",),
    "custom_emoji": ("custom_emoji_id",),
    "date_time": ("unix_time", "date_time_format"),
}
REQUIRED_FIELDS = {
    "text_link": "url",
    "text_mention": "user",
    "custom_emoji": "custom_emoji_id",
    "date_time": "unix_time",
}
FOUND_BY_CLIENTS = frozenset(
    {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number"}
)
OPAQUE = frozenset({"code", "pre", "text_link", "text_mention", "custom_emoji"})  # clients find nothing inside these

BLANKS = " \n"
DROPPED = frozenset({"\r", *map(chr, range(0x2028, 0x202F)), "\u0333", "\u033f", "\u030a"})
INVISIBLE = frozenset({"\u2800", "\u3164", "\u115f", "\u1160"})

_TOP_LEVEL = "com|org|net|edu|gov|info|io|dev|app|ai|co|me|ly|py|rs|sh|md|pl|cc|de|fr|uk|eu|at|ch|it|tv|xyz"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("url", re.compile(r"(?:https?|ftp|tonsite)://[^\s<>\"]*[^\s<>\".,:;!?'()\[\]{}]", re.IGNORECASE)),
    ("email", re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,8}\b", re.IGNORECASE)),
    (
        "url",
        re.compile(
            rf"(?<![\w@.-])(?:[\w-]+\.)+(?:{_TOP_LEVEL})\b(?:[:/][^\s<>\"]*[^\s<>\".,:;!?'()])?",
            re.IGNORECASE,
        ),
    ),
    ("bot_command", re.compile(r"(?<![\w/<>])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/<>@])")),
    ("mention", re.compile(r"(?<![\w@])@[A-Za-z0-9_]{3,32}\b")),
    ("hashtag", re.compile(r"(?<![\w\u200c])#(?=[\w\u200c]*[^\W\d_])[\w\u200c]{1,256}(?![\w\u200c]*#)")),
    ("cashtag", re.compile(r"(?<![\w$])\$(?:1INCH|[A-Z]{1,8})(?![\w$])")),
)


def units(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def piece(text: str, offset: int, length: int) -> str:
    """Return the part of the text that an entity covers."""
    raw = text.encode("utf-16-le")
    return raw[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")


def encodable(text: str) -> bool:
    """Tell whether UTF-8 can encode the text: it cannot encode half a surrogate pair, which JSON can contain."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def parse_entities(value: object) -> tuple[Entity, ...]:
    """Return the sent entities without those that clients find; like the real server, read a non-list as empty."""
    if not isinstance(value, list):
        return ()
    return tuple(entity for entity in map(_parse_entity, value) if entity is not None)


def _parse_entity(value: object) -> Entity | None:
    wrong = "Can't parse MessageEntity: "
    if not isinstance(value, dict):
        raise refused(wrong + "expected an Object")
    for name in ("offset", "length", "type"):
        if name not in value:
            raise refused(f'{wrong}Can\'t find field "{name}"')
    kind = value["type"]
    if kind in FOUND_BY_CLIENTS:
        return None
    if kind not in ENTITY_FIELDS:
        raise refused(wrong + "Unsupported type specified")
    if (required := REQUIRED_FIELDS.get(kind)) and required not in value:
        raise refused(f'{wrong}Can\'t find field "{required}"')
    if not all(isinstance(value[name], int) for name in ("offset", "length")):
        raise refused(f'{wrong}Field "offset" must be of type Number')
    kept = {name: value[name] for name in ENTITY_FIELDS[kind] if value.get(name)}
    return {"offset": value["offset"], "length": value["length"], "type": kind, **kept}


def prepare(text: str, entities: Sequence[Entity], *, allow_empty: bool = False) -> tuple[str, tuple[Entity, ...]]:
    """Return the text and entities that the message will have; raise ApiError 400 with the real server's wording."""
    if not encodable(text):
        raise refused("Strings must be encoded in UTF-8")
    _check_numbers(entities)
    given = sorted((e for e in entities if e["length"] > 0), key=lambda e: (e["offset"], -e["length"]))
    cleaned, moved = _clean(text)
    placed = [_place(text, entity, moved) for entity in given]
    cleaned, placed = _trim(cleaned, [e for e in placed if piece(cleaned, e["offset"], e["length"]).strip(BLANKS)])
    if _looks_empty(cleaned):
        if not allow_empty:
            raise refused("Text must be non-empty")
        return "", ()
    return cleaned, tuple(_with_found(cleaned, placed)[:MAX_ENTITIES])


def _check_numbers(entities: Sequence[Entity]) -> None:
    for entity in entities:
        for name in ("offset", "length"):
            if not 0 <= entity[name] <= MAX_ENTITY_NUMBER:
                raise refused(f"Receive an entity with incorrect {name} {entity[name]}")


def _clean(text: str) -> tuple[str, list[int]]:
    """Return the text without control characters, and for each old offset the new one (-1 inside a character)."""
    kept: list[str] = []
    moved: list[int] = []
    at = 0
    for char in text:
        moved.append(at)
        if char > "\uffff":
            moved.append(-1)
        if char in DROPPED:
            continue
        kept.append(" " if char < " " and char != "\n" else char)
        at += units(char)
    return "".join(kept), [*moved, at]


def _place(text: str, entity: Entity, moved: Sequence[int]) -> Entity:
    start, end = entity["offset"], entity["offset"] + entity["length"]
    last = len(moved) - 1
    if start > last:
        raise refused(f"Entity begins after the end of the text at UTF-16 offset {start}")
    if moved[start] < 0:
        byte = len(piece(text, 0, start + 1).encode())
        raise refused(f"Entity begins in a middle of a UTF-16 symbol at byte offset {byte}")
    if end > last:
        raise refused(
            f"Entity beginning at UTF-16 offset {start} ends after the end of the text at UTF-16 offset {end}"
        )
    if moved[end] < 0:
        byte = len(piece(text, 0, end + 1).encode())
        raise refused(
            f"Entity beginning at UTF-16 offset {start} ends in a middle of a UTF-16 symbol at byte offset {byte}"
        )
    return {**entity, "offset": moved[start], "length": moved[end] - moved[start]}


def _trim(text: str, entities: Sequence[Entity]) -> tuple[str, list[Entity]]:
    """Remove blanks at both ends; at the front, only those before the first entity."""
    text = text.rstrip(BLANKS)
    size = units(text)
    kept = [{**e, "length": min(e["length"], size - e["offset"])} for e in entities if e["offset"] < size]
    front = min(len(text) - len(text.lstrip(BLANKS)), kept[0]["offset"] if kept else len(text))
    return text[front:], [{**e, "offset": e["offset"] - front} for e in kept]


def _looks_empty(text: str) -> bool:
    return all(c in INVISIBLE or c in BLANKS or unicodedata.category(c) in {"Zs", "Cf", "Zl", "Zp", "Cc"} for c in text)


def _with_found(text: str, entities: Sequence[Entity]) -> list[Entity]:
    taken = [(e["offset"], e["offset"] + e["length"]) for e in entities if e["type"] in OPAQUE]
    result = list(entities)
    for kind, start, end in _find(text):
        if all(end <= low or high <= start for low, high in taken):
            taken.append((start, end))
            result.append({"offset": start, "length": end - start, "type": kind})
    return sorted(result, key=lambda e: (e["offset"], -e["length"]))


def _find(text: str) -> Iterator[tuple[str, int, int]]:
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start = units(text[: match.start()])
            yield kind, start, start + units(match[0])
