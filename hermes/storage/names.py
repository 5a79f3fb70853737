"""Random ids of entries, and the short codes that stand in their messages."""

import re
import secrets

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CODE = re.compile(r"[a-z0-9]{1,8}")
_ID_SIGNS = "abcdefghijklmnopqrstuvwxyz234567"
_CODE_LETTERS = "abcdefghjkmnpqrstuvwxyz"  # without letters that look like a digit
_CODE_DIGITS = "23456789"
_CODE_SIGNS = 5


def is_id(text: str) -> bool:
    """Tell whether this text can be an id of an entry, and so the name of a file."""
    return _ID.fullmatch(text) is not None


def is_code(text: str) -> bool:
    """Tell whether this text can be the code of an entry."""
    return _CODE.fullmatch(text) is not None


def random_id() -> str:
    """Return an id of eight characters."""
    return "".join(secrets.choice(_ID_SIGNS) for _ in range(8))


def random_code() -> str:
    """Return a code such as "k7m2q": a letter, then letters and digits."""
    rest = [secrets.choice(_CODE_LETTERS + _CODE_DIGITS) for _ in range(_CODE_SIGNS - 1)]
    return secrets.choice(_CODE_LETTERS) + "".join(rest)
