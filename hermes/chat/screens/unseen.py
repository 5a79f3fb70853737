"""What a person cannot see in a text: hidden characters, and long rows of blanks. Pure.

An emoji may hold a variation selector and zero-width joiners. They are hidden characters anywhere else.
"""

import re
from typing import Final

# Controls except line breaks and tabs; format characters (Cf); what Unicode says to ignore; signs that look blank.
_ALWAYS: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_PICTURES: Final = "\xa9\xae\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_KEYCAP: Final = "\u20e3"
HIDDEN: Final = re.compile(
    rf"[{_ALWAYS}]|\r(?!\n)"
    rf"|(?<![{_PICTURES}])\ufe0f(?!{_KEYCAP})"
    rf"|(?<![{_PICTURES}\ufe0f])\u200d|\u200d(?![{_PICTURES}])"
)
_UNSEEN: Final = rf"{_ALWAYS}\ufe0f\u200d"
_SEEN: Final = re.compile(rf"[^\s{_UNSEEN}]")


def visible(text: str) -> bool:
    """Tell whether the text has a visible character."""
    return bool(_SEEN.search(text))


def seen(text: str) -> str:
    """Return what a person sees of one line, to compare it with others: no hidden characters, single blanks."""
    return " ".join(re.sub(f"[{_UNSEEN}]", "", text).split())
