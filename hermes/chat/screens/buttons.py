"""Buttons and the data behind them. Pure.

The data is `ID:EPOCH:ACTION`, with numbers in base 36, so that it fits into Telegram's 64 bytes. Each value has exactly
one form, and `decode` refuses every other. The data never holds text of an agent.
"""

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from hermes.chat.screens.text import one_line, shortened, width
from hermes.chat.screens.unseen import HIDDEN, seen
from hermes.core.answers import bare_label, utf16_units
from hermes.model import actions
from hermes.model.actions import Action
from hermes.model.ask import Question
from hermes.model.entry import Entry
from hermes.model.state import Confirm


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of Telegram, and stricter ones so that a person can read and tap everything."""

    data_bytes: int = 64
    id_chars: int = 12
    shelf: int = 24  # options on one page: few enough to read, and all their labels fit into the text
    review: int = 40  # questions listed at once; ◀ ▶ lead to the others
    columns: int = 34  # the width of text in a full-width button on a narrow phone
    copied: int = 256  # characters that a button copies
    listed_one_a_row: int = 8  # the options of a single-choice question get a row each, up to this many


LIMITS: Final = Limits()


Colour = Literal["", "success", "danger"]
"""The colours in the words of the Bot API: of the app itself, green, red."""


@dataclass(frozen=True, slots=True)
class Button:
    """One button: its text, and either the data that Telegram returns after a tap, or what a tap copies.

    Apps that do not know a `colour` show a plain button.
    """

    text: str
    data: str = ""
    colour: Colour = ""
    copies: str = ""


Row = tuple[Button, ...]
Rows = tuple[Row, ...]

# --- the data behind a button ---------------------------------------------------------------------

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{LIMITS.id_chars}}}")
_TOO_LARGE: Final = 36**16
_NUMBER: Final = re.compile(r"0|[1-9a-z][0-9a-z]{0,15}")

_KINDS: Final[dict[str, type[Any]]] = {
    "p": actions.Pick,
    "g": actions.Go,
    "f": actions.Shelve,
    "a": actions.Arm,
    "c": actions.ClearText,
    "s": actions.Send,
    "t": actions.AskTwice,
    "y": actions.Confirmed,
    "b": actions.Back,
    "k": actions.KeepWaiting,
    "o": actions.TakeOffer,
    "w": actions.ShowWhole,
    "e": actions.ShowChanges,
    "x": actions.Withdraw,
    "n": actions.SendNow,
    "v": actions.SendHeard,
    "r": actions.SendAgain,
    "z": actions.StopTurn,
    "d": actions.Address,
    "j": actions.AnswerLate,
    "h": actions.ShowCard,
    "i": actions.WriteTo,
    "m": actions.Mute,
    "l": actions.ListPage,
}
_LETTERS: Final = {kind: letter for letter, kind in _KINDS.items()}
_CONFIRMS: Final[tuple[Confirm, ...]] = get_args(Confirm)


def encode(entry_id: str, epoch: int, action: Action) -> str:
    """Return the data of a button, at most 64 bytes.

    Raises:
        ValueError: the id is not 1 to 12 letters, digits, - and _, a number is negative or at least 36**16, or the
            data is too long.
    """
    if not _ID.fullmatch(entry_id):
        raise ValueError(f"{entry_id!r} is not an id for a button")
    values = [getattr(action, field.name) for field in dataclasses.fields(action)]
    data = f"{entry_id}:{_number(epoch)}:{_LETTERS[type(action)]}" + ".".join(map(_written, values))
    if len(data) > LIMITS.data_bytes:
        raise ValueError(f"the data of {action!r} is too long for a button")
    return data


def decode(data: str) -> tuple[str, int, Action]:
    """Return entry id, epoch and action of a button's data.

    Raises:
        ValueError: the data does not have the form that `encode` makes.
    """
    entry_id, _, rest = data.partition(":")
    epoch, _, act = rest.partition(":")
    kind = _KINDS.get(act[:1])
    if len(data) > LIMITS.data_bytes or not _ID.fullmatch(entry_id) or kind is None:
        raise ValueError("not the data of a button")
    return entry_id, _parsed(epoch), _action(kind, act[1:].split(".") if act[1:] else [])


def _action(kind: type[Any], words: Sequence[str]) -> Action:
    fields = dataclasses.fields(kind)
    if len(fields) != len(words):
        raise ValueError("a button's action has another number of parts")
    action: Action = kind(*(_read(str(field.type), word) for field, word in zip(fields, words, strict=True)))
    return action


def _written(value: int | Confirm) -> str:
    return _number(_CONFIRMS.index(value) if isinstance(value, str) else int(value))


def _read(kind: str, word: str) -> int | bool | Confirm:
    number = _parsed(word)
    if kind == "int":
        return number
    choices: Sequence[bool | Confirm] = (False, True) if kind == "bool" else _CONFIRMS
    if number >= len(choices):
        raise ValueError("a button's number is out of its range")
    return choices[number]


def _number(value: int) -> str:
    if not 0 <= value < _TOO_LARGE:
        raise ValueError(f"no button carries the number {value}")
    digits = ""
    while value or not digits:
        value, digit = divmod(value, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def _parsed(word: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise ValueError("a button's number has another form")
    return int(word, len(_DIGITS))


# --- the texts of buttons -------------------------------------------------------------------------


def press(entry: Entry, text: str, action: Action, colour: Colour = "") -> Button:
    """Return a button for the page that this entry shows now."""
    return Button(text, encode(entry.id, entry.state.epoch, action), colour)


def of_record(record_id: str, text: str, action: Action) -> Button:
    """Return a button of a notice, a prompt, a card or a list: these have no pages."""
    return Button(text, encode(record_id, 0, action))


def copying(text: str, copied: str) -> Row:
    """Return a row with the button that copies this; none if it is too long or not all of it can be seen.

    People paste it into terminals, so a line break or a hidden character could run what they never saw.
    """
    is_plain = copied.isprintable() and not HIDDEN.search(copied)
    return (Button(text, copies=copied),) if is_plain and 0 < utf16_units(copied) <= LIMITS.copied else ()


EMPTY: Final = "(empty)"
_LABEL: Final = 600


def shown_label(question: Question, index: int) -> str:
    """Return an option's label in one line, without "(Recommended)" if the option gets a star for that."""
    label = question.options[index].label
    label = bare_label(label) if question.recommended == index else label
    return one_line(label[:_LABEL]) + ("…" if len(label) > _LABEL else "") or EMPTY


def faces(question: Question, shown: Sequence[int]) -> dict[int, str]:
    """Map the index of each shown option to the text of its button.

    The labels are shortened to the width of a button; if two then look the same, all of them get their numbers.
    """
    stars = {at: " ⭐" if question.recommended == at else "" for at in shown}
    labels = {at: shown_label(question, at) for at in shown}
    room = LIMITS.columns - 3
    short = {at: shortened(label, room - width(stars[at])) for at, label in labels.items()}
    if len(set(map(seen, short.values()))) < len(short):
        numbers = {at: f"{at + 1} " for at in shown}
        short = {at: numbers[at] + shortened(labels[at], room - width(numbers[at] + stars[at])) for at in shown}
    return {at: label + stars[at] for at, label in short.items()}


def in_columns(buttons: Sequence[Button], *, at_most: int = 4) -> Rows:
    """Return the buttons in rows of 1 to `at_most`: as many as the widest text permits."""
    widest = max((width(button.text) for button in buttons), default=0)
    columns = next((n for n in range(at_most, 1, -1) if widest <= LIMITS.columns // n - 2), 1)
    return in_rows(buttons, columns)


def in_rows(buttons: Sequence[Button], size: int) -> Rows:
    """Return the buttons in rows of `size`."""
    return tuple(tuple(buttons[at : at + size]) for at in range(0, len(buttons), size))
