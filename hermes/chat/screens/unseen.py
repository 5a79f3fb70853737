"""Finds the hidden characters and long rows of blanks of a text, and shows them by signs. Pure.

An emoji may hold a variation selector and zero-width joiners. They are hidden characters anywhere else.
"""

import re
from typing import Final

# Controls except line breaks and tabs; format characters (Cf); ignorable ones (Unicode); signs that look blank; marks
# that Telegram removes.
_ALWAYS: Final = (
    "\u030a\u0333\u033f"
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_PICTURES: Final = "\xa9\xae\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_UNSEEN: Final = rf"{_ALWAYS}\ufe0f\u200d"
_ORDINARY: Final = (
    rf"(?<=[{_PICTURES}])\ufe0f|\ufe0f(?=\u20e3)"  # the selector of an emoji, or of a key as in 1️⃣
    rf"|(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])"  # the joiner of two emoji
    r"|\r(?=\n)"  # a line that ends as on Windows
)
HIDDEN: Final = re.compile(rf"[{_UNSEEN}\r](?<!{_ORDINARY})")
_SEEN: Final = re.compile(rf"[^\s{_UNSEEN}]")


def visible(text: str) -> bool:
    """Tell whether the text has a visible character."""
    return bool(_SEEN.search(text))


def seen(text: str) -> str:
    """Return what a person sees of one line, to compare it with others: no hidden characters, single blanks."""
    return " ".join(re.sub(f"[{_UNSEEN}]", "", text).split())


# --- shown by signs and counts --------------------------------------------------------------------------

_HIDDEN_ROW: Final = re.compile(f"(?:{HIDDEN.pattern})+")
_LONG_ROW: Final = re.compile(rf"[\s{_UNSEEN}]{{81,}}")  # more than two lines of a phone


def verbatim(text: str) -> str:
    """Return a command or code with signs for its hidden characters; nothing visible is changed."""
    return counted(_HIDDEN_ROW.sub(_sign, text))


def counted(text: str) -> str:
    """Return the text with the length of each long row of blanks instead of the row, so that what follows is seen."""
    return _LONG_ROW.sub(_count, text)


def _sign(row: re.Match[str]) -> str:
    if len(row[0]) > 1:
        return f"⟨{len(row[0]):,} hidden characters⟩"
    code = ord(row[0])
    if code < ord(" "):
        return chr(ord("␀") + code)
    return "␡" if row[0] == "\x7f" else f"⟨U+{code:04X}⟩"


def _count(row: re.Match[str]) -> str:
    breaks, length = row[0].count("\n"), f"{len(row[0]):,}"
    if not breaks:
        return f"⟨{length} blanks⟩"
    return f"⟨{length} line breaks⟩\n" if breaks == len(row[0]) else f"⟨{length} blanks and line breaks⟩\n"
