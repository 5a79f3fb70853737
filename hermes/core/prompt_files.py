"""The files of a prompt: which ones an agent takes, and what keeps one from being sent. Pure.

Before a download, only what Telegram says of a file is known, and apps often call a text `application/octet-stream`, or
a TypeScript source a video (`.ts`). So what cannot be told yet is downloaded, and its bytes decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from hermes.model.files import File, FileKind
from hermes.model.prompt import ContentKind, Prompt, Target
from hermes.model.prompt_events import Edited, Fetched, Heard
from hermes.model.state import Part

MOST_BYTES: Final = 20 << 20
"""Telegram gives a bot no larger file. All files of one prompt together may be as large as that."""
TOO_LARGE: Final = "its files are larger than 20 MB; Telegram gives me no more"
EDITED: Final = "a file that an edit brings does not count. Please send it again as a new message."
PDF: Final = "application/pdf"
TEXT: Final = "text/plain"
_BEGINS: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-"), PDF),
)
_PICTURES: Final = frozenset(mime for _, mime in _BEGINS) - {PDF}
_TEXTS: Final = frozenset({"image/svg+xml", "video/mp2t"})
"""The types that Telegram gives a drawing, and a TypeScript source."""
_NO_TEXT: Final = re.compile(r"(image|video|audio|font)/|application/(zip|gzip|x-tar|x-7z|x-rar|vnd\.(ms|openxml))")
_WORDS: Final = {"picture": "pictures", "pdf": "PDFs", "text": "text files"}
_LONGEST_NAME: Final = 80
_NO_NAME: Final = re.compile(r"[\x00-\x1f\x7f/\\]")


def files_of(parts: Iterable[Part]) -> list[File]:
    """Return the files of these messages that go to the agent: not the voice notes."""
    return [part.file for part in parts if part.file is not None and not part.file.is_voice]


def lacking(prompt: Prompt) -> list[tuple[int, File]]:
    """Return the files and voice notes that are still to be downloaded, each with the id of its message."""
    return [(part.message_id, part.file) for part in prompt.parts if part.file is not None and not part.file.is_here]


def is_complete(prompt: Prompt) -> bool:
    """Tell whether all files are here, and the person has agreed with what was heard in a voice note."""
    return all(part.file is None or (part.file.is_here and not part.file.is_voice) for part in prompt.parts)


def waits_for_yes(prompt: Prompt) -> bool:
    """Tell whether only the person's yes to the words of a voice note is missing."""
    return not lacking(prompt) and not is_complete(prompt)


def heard(prompt: Prompt) -> str:
    """Return what was heard in a voice note, until the person has agreed; "" if nothing was."""
    return "\n".join(part.text for part in prompt.parts if part.file and part.file.is_voice and part.file.is_here)


def fetched(parts: tuple[Part, ...], event: Fetched) -> tuple[Part, ...]:
    """Return the parts of a prompt once this file is here."""

    def here(part: Part, file: File) -> Part:
        return replace(part, file=replace(file, mime=event.mime, size=event.size, is_here=True))

    return _changed(parts, event.message_id, here)


def with_words(parts: tuple[Part, ...], event: Heard) -> tuple[Part, ...]:
    """Return the parts of a prompt once this voice note was heard."""

    def worded(part: Part, file: File) -> Part:
        text = "\n".join(filter(None, (part.text, event.text)))
        return part if file.is_here else replace(part, text=text, file=replace(file, is_here=True))

    return _changed(parts, event.message_id, worded)


def without_sounds(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a prompt with the words of voice notes alone."""
    return tuple(replace(part, file=None) if part.file is not None and part.file.is_voice else part for part in parts)


def edited(parts: tuple[Part, ...], event: Edited) -> tuple[Part, ...]:
    """Return the parts after an edit: a text cannot be nothing, a caption can, and what was heard stays."""

    def changed(part: Part) -> Part:
        if _is_other(part.file, event.file):
            return replace(part, text=event.text, file=event.file)
        may_change = bool(event.text.strip()) if part.file is None else not part.file.is_voice
        return replace(part, text=event.text) if may_change else part

    return tuple(changed(part) if part.message_id == event.message_id else part for part in parts)


def brings_file(parts: Iterable[Part], event: Edited) -> bool:
    """Tell whether an edit puts a file into a text, or another file into the place of one."""
    return any(_is_other(part.file, event.file) for part in parts if part.message_id == event.message_id)


def _is_other(before: File | None, now: File | None) -> bool:
    """Tell whether a message has another file now; one whose id is unknown counts as the same."""
    if now is None or now.is_voice:  # no edit brings a voice note, whose words may stand in its place by now
        return False
    return before is None or (bool(before.unique_id and now.unique_id) and before.unique_id != now.unique_id)


def _changed(parts: tuple[Part, ...], message_id: int, change: Callable[[Part, File], Part]) -> tuple[Part, ...]:
    return tuple(change(one, one.file) if one.message_id == message_id and one.file else one for one in parts)


def objection(parts: Sequence[Part], target: Target, kind: ContentKind) -> str:
    """Return why these files cannot be sent with a prompt of this kind, "" if nothing is known."""
    files, name = files_of(parts), target.agent_name
    if files and not target.can.files:
        return f"{name} takes text alone from here, no files"
    if files and kind not in {"text", "note"}:
        return f"a {kind} takes no files"
    if sum(part.file.size for part in parts if part.file is not None) > MOST_BYTES:
        return TOO_LARGE
    return next((strange(file, target) for file in files if kind_of(file) not in target.can.files), "")


def strange(file: File, target: Target | None) -> str:
    """Return that the agent takes no file of this type."""
    if target is None:
        return f"{called(file)} is of an unknown type"
    words = [_WORDS[kind] for kind in target.can.files]
    listed = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return f"{called(file)} is of a type that {target.agent_name} does not take; it takes {listed}"


def unknown(file: File, target: Target | None) -> str:
    """Return why a file is not sent whose bytes are nothing that an agent takes."""
    if file.mime.startswith("text/"):
        return f"{called(file)} is not in UTF-8, the one encoding in which I can send a text; please save it in that"
    return strange(file, target)


def kind_of(file: File) -> FileKind | None:
    """Return what this file is, or may be as far as Telegram tells; None: certainly nothing that an agent takes."""
    mime = file.mime.partition(";")[0].strip().lower()
    if mime == PDF:
        return "pdf"
    if mime in _PICTURES:
        return "picture"
    return "text" if mime in _TEXTS or not _NO_TEXT.match(mime) else None


def type_of(data: bytes) -> str | None:
    """Return the type of a file by its bytes, None if it is nothing that an agent takes."""
    for begin, mime in _BEGINS:
        if begin.match(data):
            return mime
    try:
        return None if "\0" in data.decode() else TEXT
    except UnicodeDecodeError:
        return None


def called(file: File) -> str:
    """Return the name of a file for a person and for the agent: a bare name, which names no folder."""
    return _NO_NAME.sub("_", file.name)[-_LONGEST_NAME:].strip(" .") or "a file"
