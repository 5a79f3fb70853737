"""Texts in Telegram's form: plain text, and entities whose places are counted in UTF-16 units. Pure.

A `Span` holds Hermes' own words unchanged. Text of an agent or a person goes into a message through `phrase`,
`passage`, `exact` (commands and code) or `ending`. They clean it (no control and direction characters, no halves of
surrogate pairs), defuse it outside code (no client makes a link, a command or a mention of it), and cut it, but not
inside a character.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal

from hermes.chat.screens.unseen import counted, verbatim, visible
from hermes.core.answers import utf16_units

TEXT_UNITS: Final = 4096
ENTITIES: Final = 100

Mark = Literal["", "bold", "italic", "code", "pre", "expandable_blockquote"]


@dataclass(frozen=True, slots=True)
class Entity:
    """One mark in a text; `offset` and `length` are in UTF-16 units."""

    type: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text with one mark, or without a mark."""

    text: str
    mark: Mark = ""


Line = tuple[Span, ...]


def line(*pieces: str | Span) -> Line:
    """Return the line of these pieces; a plain string is Hermes' own text."""
    return tuple(Span(piece) if isinstance(piece, str) else piece for piece in pieces)


def dotted(pieces: Iterable[Span]) -> Line:
    """Return one line of the pieces that are not empty, with dots between them."""
    said = [piece for piece in pieces if piece.text]
    return tuple(part for piece in said for part in (Span(" · "), piece))[1:]


def lay(lines: Iterable[Line], limit: int = TEXT_UNITS) -> tuple[str, tuple[Entity, ...]]:
    """Return the text and its entities.

    The text has `limit` units at most: the last line keeps its room, and the text above it is cut. Empty lines and the
    entities after the first 100 are left out.
    """
    text, entities, at = "", [], 0
    said = [spans for spans in lines if any(span.text for span in spans)]
    for number, spans in enumerate(said, 1):
        room = limit if number == len(said) else limit - 1 - _size(said[-1])
        for span in (*([Span("\n")] if text else []), *spans):
            shown = cut(span.text, room - at)
            length = utf16_units(shown)
            if span.mark and shown.strip():
                entities.append(Entity(span.mark, at, length))
            text, at = text + shown, at + length
    return text, tuple(entities[:ENTITIES])


# --- text of agents and persons -------------------------------------------------------------------


def phrase(text: str, limit: int, mark: Mark = "", *, empty: str = "") -> Span:
    """Return foreign text for one line, of at most `limit` units; `empty` if no character of it is visible."""
    near = text[: _reach(limit)]
    more = "…" if len(near) < len(text) else ""
    return Span(cut(_safe(one_line(near), mark) + more, limit) or empty, mark)


def passage(text: str, limit: int, mark: Mark = "") -> Span:
    """Return the beginning of a foreign text with its line breaks, of at most `limit` units."""
    return _beginning(text, limit, mark, counted)[0]


def exact(text: str, limit: int, mark: Mark) -> tuple[Span, int]:
    """Return the beginning of a command or other code, and about how many characters are cut; 0 if it is whole.

    Signs stand for characters that cannot be seen.
    """
    return _beginning(text, limit, mark, verbatim)


_READ: Final = 100_000


def _beginning(text: str, limit: int, mark: Mark, shown: Callable[[str], str]) -> tuple[Span, int]:
    """Return the beginning and how much is cut; of an endless text only the first part is `shown`, to save time."""
    read = shown(text[:_READ])
    near = read[: _reach(limit)]
    beyond = len(read) - len(near) + max(0, len(text) - _READ)
    said = _safe(cleaned(near), mark)
    return Span(cut(said + "…" * (beyond > 0), limit), mark), max(0, utf16_units(said) - limit) + beyond


def _safe(text: str, mark: Mark) -> str:
    """Return the text, defused unless it is code: clients make no links in code, and a person may copy it."""
    return text if mark in {"pre", "code"} else defused(text)


def ending(text: str, limit: int, mark: Mark = "") -> Span:
    """Return the end of a foreign text with its line breaks, of at most `limit` units."""
    near = text[-_reach(limit) :]
    more = "…" if len(near) < len(text) else ""
    return Span(_cut_front(more + defused(cleaned(near)), limit), mark)


def is_cut(text: str, limit: int) -> bool:
    """Tell whether `ending` leaves out a part of this text, which grows when it is defused."""
    return len(text) > _reach(limit) or utf16_units(defused(cleaned(text))) > limit


def _reach(limit: int) -> int:
    """Return how many characters of a text are cleaned, so that a longer text costs no more time."""
    return 2 * limit + 64


_COLOURS: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_BREAKS: Final = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_HALVES: Final = re.compile("[\ud800-\udfff]")
_CONTROLS: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
# Direction marks, embeddings, overrides and isolates; deprecated format characters; annotation anchors; BOM.
_DIRECTIONS: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\ufeff]")
_GAPS: Final = re.compile(r"\n{3,}")


def cleaned(text: str) -> str:
    """Return the text without characters that could change the text around it; "" if no character is visible."""
    text = _BREAKS.sub("\n", _COLOURS.sub("", text))
    text = _DIRECTIONS.sub("", _CONTROLS.sub(" ", _HALVES.sub("\ufffd", text)))
    # No pattern removes the blanks at line ends: the search would start again at each blank of a long row.
    text = _GAPS.sub("\n\n", "\n".join(one.rstrip() for one in text.split("\n"))).strip()
    return text if visible(text) else ""


def one_line(text: str) -> str:
    """Return the cleaned text in one line: each run of blanks and line breaks becomes one blank."""
    return " ".join(cleaned(text).split())


# TDLib ends a link at a word joiner, but it takes a zero-width joiner for a letter of a domain.
_WORD_JOINER: Final = "\u2060"
_SIGNS: Final = re.compile("[/@#$.](?=[\\w\u200c\u200d\u00b7])|:(?=//)")


def plain(text: str) -> str:
    """Return the text of a screen for a place that makes no links: without the word joiners of `defused`."""
    return cleaned(text.replace("\u2060", ""))


def defused(text: str) -> str:
    """Return the text with word joiners, so that no client finds /commands, @names, #tags, $TAGS or addresses in it."""
    return _SIGNS.sub(rf"\g<0>{_WORD_JOINER}", text)


# --- cutting --------------------------------------------------------------------------------------

_CELL_BYTES: Final = 8


def cut(text: str, limit: int) -> str:
    """Return the whole text if it has at most `limit` units, else its beginning and …, within `limit` units."""
    if len(text) <= limit and utf16_units(text) <= limit:
        return text
    if limit <= 0:
        return ""
    kept = _whole(text, _within(text, limit - 1))
    return _to_a_word(kept, text[len(kept)]) + "…"


def shortened(text: str, cells: int) -> str:
    """Return the text, cut with … at its end if it is wider than `cells` columns, or takes too many bytes for them.

    A column can hold a letter with thirty marks; a few such buttons would be more than Telegram takes in a message.
    """
    if _first(text, cells) == text:
        return text
    return _first(text, cells - 1).rstrip() + "…"


def width(text: str) -> int:
    """Return the width in columns: two for a wide character or an emoji, one for any other character."""
    return len(text) if text.isascii() else sum(map(_cells, _characters(text)))


def _cells(character: str) -> int:
    wide = "\ufe0f" in character or any(unicodedata.east_asian_width(c) in "WF" for c in character)
    return 2 if wide else 1


def _cut_front(text: str, limit: int) -> str:
    if len(text) <= limit and utf16_units(text) <= limit:
        return text
    if limit <= 0:
        return ""
    backwards = list(_characters(text[-limit - _LONGEST :]))[::-1]
    sizes = accumulate(map(utf16_units, backwards))
    shown = "".join([character for character, size in zip(backwards, sizes, strict=True) if size < limit][::-1])
    return "…" + _from_a_word(shown, text[-len(shown) - 1])


def _within(text: str, limit: int) -> int:
    """Return how many code points of the text fit into `limit` units."""
    if text.isascii():
        return min(limit, len(text))
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * limit].decode("utf-16-le", "ignore"))


def _whole(text: str, end: int) -> str:
    """Return the text before `end`, without a character that crosses `end`.

    The search begins at the last ASCII character before `end`, because it always starts a new character.
    """
    start = next((at for at in range(end - 1, 0, -1) if text[at].isascii()), 0)
    ends = accumulate(map(len, _characters(text[start : end + _LONGEST])), initial=start)
    return text[: max(at for at in ends if at <= end)]


def _first(text: str, cells: int) -> str:
    end, room, bytes_left = 0, cells, cells * _CELL_BYTES
    for character in _characters(text):
        room -= _cells(character)
        bytes_left -= len(character.encode("utf-8", "surrogatepass"))
        if room < 0 or bytes_left < 0:
            break
        end += len(character)
    return text[:end]


_WORD: Final = 16


def _to_a_word(kept: str, following: str) -> str:
    """Drop the incomplete word at the end, if there is one and it is short."""
    blank = max(kept.rfind(" "), kept.rfind("\n"))
    if not following.isspace() and blank > 0 and blank >= len(kept) - _WORD:
        kept = kept[:blank]
    return kept.rstrip()


def _from_a_word(kept: str, preceding: str) -> str:
    """Drop the incomplete word at the beginning, if there is one and it is short."""
    blank = re.search(r"\s", kept[:_WORD])
    if not preceding.isspace() and blank:
        kept = kept[blank.end() :]
    return kept.lstrip()


_JOINER: Final = "\u200d"
_LONGEST: Final = 32


def _characters(text: str) -> Iterator[str]:
    """Yield the characters that a person sees (a letter with its marks, a joined emoji, a flag), at most 32 long."""
    start = 0
    for at in range(1, len(text)):
        if at - start >= _LONGEST or not _belongs(text, start, at):
            yield text[start:at]
            start = at
    yield text[start:]


def _belongs(text: str, start: int, at: int) -> bool:
    """Tell whether the character at `at` continues the one that began at `start`."""
    character = text[at]
    if character.isascii():
        return False
    if text[at - 1] == _JOINER or character == _JOINER or unicodedata.category(character)[0] == "M":
        return True
    if "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f":
        return True
    return _regional(character) and at - start == 1 and _regional(text[start])


def _regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def fits(lines: Sequence[Line], limit: int = TEXT_UNITS) -> bool:
    """Tell whether the lines, with a line break between them, have at most `limit` units."""
    return sum(1 + _size(spans) for spans in lines) - 1 <= limit


def _size(spans: Line) -> int:
    return sum(utf16_units(span.text) for span in spans)
