"""What goes with a letter: a picture, a document, or an album of several; and the laws of that."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from hermes.sandbox.phone import file_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from random import Random

Kind = Literal["photo", "document"]

FOLDER: Final = "files"
"""The folder of a store in which files wait to be sent."""
HEADS: Final = {"image/jpeg": b"\xff\xd8\xff\xe0", "image/png": b"\x89PNG\r\n\x1a\n", "text/plain": b""}
"""How files of these types begin."""
INSIDE: Final = "only inside"
"""Words that are in each file, and nowhere else."""
SIZES: Final = (40, 3000, 60_000)
BREAKS_OFF: Final = 36
"""So many letters of a file in base64 are looked for, where all of it is not."""
ALBUM: Final = (2, 3)


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file. `mime` is a key of HEADS: what its bytes are; `caption` stands below it alone."""

    kind: Kind
    name: str
    mime: str
    content: bytes
    caption: str = ""

    def media(self, caption: str = "") -> dict[str, Any]:
        """Return it for `Phone.share`, with this caption if it has none of its own."""
        named = {"name": self.name, "mime": "application/octet-stream"} if self.kind == "document" else {}
        return file_of(self.kind, self.content, caption=self.caption or caption, **named)

    @property
    def as_text(self) -> str:
        """Return what the model gets of it as a text, "" if it goes as a file."""
        return f"{self.name}:\n\n{self.content.decode()}" if self.mime == "text/plain" else ""

    @property
    def digest(self) -> str:
        """Return what the agent server tells of it, "" if it goes as a text."""
        url = f"data:{self.mime};base64,{base64.b64encode(self.content).decode()}"
        return "" if self.as_text else hashlib.sha256(url.encode()).hexdigest()

    def traces(self) -> tuple[str, ...]:
        """Return how its bytes would look in a log."""
        return (str(base64.b64encode(self.content))[2 : 2 + BREAKS_OFF],)


def invented(rng: Random, token: str) -> tuple[Enclosure, ...]:
    """Make up what goes with a letter: one file, or an album."""
    return album(rng, token) if rng.random() < 0.5 else (_one(rng, token, 1, rng.choice(["photo", "document"])),)


def album(rng: Random, token: str) -> tuple[Enclosure, ...]:
    """Make an album up: pictures, or documents."""
    kind: Kind = rng.choice(["photo", "photo", "document"])
    return tuple(_one(rng, token, place, kind) for place in range(1, rng.randint(*ALBUM) + 1))


def _one(rng: Random, token: str, place: int, kind: Kind) -> Enclosure:
    mime = "image/jpeg" if kind == "photo" else rng.choice(["image/png", "text/plain"])
    noise = rng.randbytes(rng.choice(SIZES))
    inside = f"{token} {INSIDE} {place} ".encode()
    content = HEADS[mime] + inside + (noise if HEADS[mime] else noise.hex().encode())
    caption = f"{token} is about {place}, too" if place > 1 and rng.random() < 0.5 else ""
    return Enclosure(kind, f"{token} file {place}", mime, content, caption)


def texts(words: str, enclosed: Sequence[Enclosure]) -> str:
    """Return all texts that the model gets for a letter with these words."""
    captions = [one.caption for one in enclosed if one.caption]
    return "\n".join([words, *captions, *(one.as_text for one in enclosed if one.as_text)])


# --- the laws -------------------------------------------------------------------------------------------------------


def complete(about: str, enclosed: Sequence[Enclosure], came: Iterable[Sequence[str]]) -> Iterator[str]:
    """Each time that the model got a letter it got all of its files, and their right bytes; `came` has digests."""
    wanted = [one.digest for one in enclosed if one.digest]
    for digests in came:
        if list(digests) != wanted:
            right = sum(one in wanted for one in digests)
            yield f"{about}: the model got {len(digests)} files, {right} of them right, and not the {len(wanted)} sent"


def strays(about: str, enclosed: Sequence[Enclosure], others: Iterable[Sequence[str]]) -> Iterator[str]:
    """No file goes without the words of its letter; `others` are the digests of all other prompts."""
    wanted = {one.digest for one in enclosed if one.digest}
    if any(wanted & set(digests) for digests in others):
        yield f"{about}: the model got a file of it without its words"


def left(store: Path) -> list[str]:
    """Return the names of the files that a store keeps for prompts.

    What a killed listener had begun to write is swept away within ten minutes.
    """
    return sorted(file.name for file in (store / FOLDER).glob("[!.]*"))


def in_the_log(text: str, enclosed: Iterable[Enclosure]) -> Iterator[str]:
    """No log has anything of what is inside a file."""
    if INSIDE in text or any(trace in text for one in enclosed for trace in one.traces()):
        yield "the log has a piece of a file"
