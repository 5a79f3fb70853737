"""The files that persons send, `getFile`, and the route from which a bot downloads them.

Facts from tdlib/telegram-bot-api 10.0 and the documentation: a bot downloads 20 MB at most; the path that getFile
gives works for an hour at least; a file id is long, and each size of a photo has its own; a download that Telegram
cannot do now and an id that it no longer knows are refused with the same words. A person may put another photo or
document into a message, or add one to a text; a voice note stays as it is.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from hermes.sandbox.botapi.wire import ApiError, refused

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST: Final = 20 << 20
PATH_TTL_S: Final = 3600.0
UNAVAILABLE: Final = "wrong file_id or the file is temporarily unavailable"
FOLDERS: Final = {"photo": "photos", "document": "documents", "voice": "voice"}
SUFFIXES: Final = {"photo": ".jpg", "voice": ".oga"}

MediaKind = Literal["photo", "document", "voice"]


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file on Telegram's servers. `size` is what Telegram says of it; `content` may be less in a test."""

    file_id: str
    unique_id: str
    path: str
    size: int
    content: bytes

    def named(self) -> dict[str, Any]:
        """Return the fields that every object of a file has."""
        return {"file_id": self.file_id, "file_unique_id": self.unique_id, "file_size": self.size}


@dataclass(slots=True)
class Files:
    """All files of one bot, by their ids; the paths that getFile gave, each with the time of its end (epoch)."""

    known: dict[str, SharedFile] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    paths: dict[str, tuple[float, SharedFile]] = field(default_factory=dict)

    def keep(self, kind: MediaKind, content: bytes, *, size: int | None = None, suffix: str = "") -> SharedFile:
        """Keep a new file; `size` is that of a file whose content no test needs."""
        number = len(self.known)
        file = SharedFile(
            file_id=f"{'AgAC' if kind == 'photo' else 'BQAC'}{secrets.token_urlsafe(45)}",
            unique_id=f"AQAD{secrets.token_urlsafe(8)}",
            path=f"{FOLDERS[kind]}/file_{number}{SUFFIXES.get(kind, suffix)}",
            size=len(content) if size is None else size,
            content=content,
        )
        self.known[file.file_id] = file
        return file

    def get(self, file_id: str, now: float) -> dict[str, Any]:
        """Return the File of getFile. Raises ApiError."""
        if not file_id:
            raise refused("file_id not specified")
        file = self.known.get(file_id)
        if file is None:
            raise refused("invalid file_id")
        if file_id in self.lost:
            raise refused(UNAVAILABLE)
        if file.size > LARGEST:
            raise refused("file is too big")
        self.paths[file.path] = (now + PATH_TTL_S, file)
        return file.named() | {"file_path": file.path}

    def content(self, path: str, now: float) -> bytes:
        """Return the content of the file with this path. Raises ApiError."""
        until_s, file = self.paths.get(path, (0.0, None))
        if file is None or now >= until_s or file.file_id in self.lost:
            raise ApiError(404, "Not Found")
        return file.content


@dataclass(frozen=True, slots=True)
class Media:
    """A file that a person sends. `content` is base64; `size` stands for the content of a file that is too large."""

    kind: MediaKind
    content: str = ""
    name: str = "note.txt"
    mime: str = "text/plain"
    size: int | None = None
    caption: str = ""
    duration_s: int = 1

    def kept(self, files: Files) -> dict[str, Any]:
        """Keep the file; return the field of its message. A photo has two sizes, the smaller one first."""
        content = base64.b64decode(self.content)
        if self.kind == "photo":
            small = files.keep("photo", b"a thumbnail", size=min(1200, self.size or len(content)))
            large = files.keep("photo", content, size=self.size)
            return {"photo": [_sized(small, 90), _sized(large, 1280)]}
        if self.kind == "voice":
            voice = files.keep("voice", content, size=self.size)
            return {"voice": voice.named() | {"duration": self.duration_s, "mime_type": "audio/ogg"}}
        stem, dot, suffix = self.name.rpartition(".")
        file = files.keep("document", content, size=self.size, suffix=f".{suffix}" if stem and dot else "")
        named: Mapping[str, str] = {"file_name": self.name, "mime_type": self.mime}
        return {"document": file.named() | {key: value for key, value in named.items() if value}}

    def put_for(self, content: Mapping[str, Any], files: Files) -> dict[str, Any]:
        """Keep the file for a message with this content, or with a text alone; return the new fields of the message.

        The message stays in its album, which takes no file of another kind. Raises LookupError: no app offers that.
        """
        album = {key: content[key] for key in content if key == "media_group_id"}
        if self.kind == "voice" or not content.keys() <= {"photo", "document", *album}:
            raise LookupError("only a text, a photo or a document is edited like that, into a photo or a document")
        if album and self.kind not in content:
            raise LookupError(f"this album takes no {self.kind}")
        return self.kept(files) | album


STICKER: Final = {
    "file_id": "CAACdemo-sticker",
    "file_unique_id": "AgADdemo",
    "width": 512,
    "height": 512,
    "type": "regular",
    "is_animated": False,
    "is_video": False,
    "emoji": "👍",
}


def _sized(file: SharedFile, side: int) -> dict[str, Any]:
    return file.named() | {"width": side, "height": side}


def ids_of(content: Mapping[str, Any]) -> set[str]:
    """Return the ids of all files in the content of a message."""
    fields = [each for value in content.values() for each in (value if isinstance(value, list) else [value])]
    return {each["file_id"] for each in fields if isinstance(each, dict) and "file_id" in each}
