"""A file that a person sends to an agent: a picture, a document, or a voice note."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FileKind = Literal["picture", "pdf", "text"]
"""The kinds of files that an agent may take."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as Telegram names it.

    - `file_id`: the id by which it is downloaded. `album`: the id that all messages of an album share, "" without one.
    - `name`, `mime`: by the person's app, "" if unknown. Once the file is here, its bytes have decided the `mime`.
    - `size`: in bytes, 0 if Telegram did not tell.
    - `is_here`: the store has it. Of a voice note: it was heard, and its words are the text of its part.
    - `is_voice`: it is a voice note. It goes to no agent: once the person agrees, its words do, as a text.
    - `unique_id`: Telegram's id of its content, which another `file_id` of the same file shares. "" if unknown: an
      earlier Hermes did not keep it.
    """

    file_id: str
    name: str = ""
    mime: str = ""
    size: int = 0
    album: str = ""
    is_here: bool = False
    is_voice: bool = False
    unique_id: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file with its content, as an agent gets it. `name` is a bare file name."""

    name: str
    mime: str
    data: bytes
