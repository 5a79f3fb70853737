"""The files of prompts in the database: the phone side writes them, and the machine of the prompt's session reads them.

A file lies there in pieces, so that no statement takes long: others wait for it, the renewal of the leases, too. A file
that is written again replaces itself. It belongs to the row of its prompt: who may see that one may read the file, and
both are forgotten together.
"""

from __future__ import annotations

from typing import Final

from hermes.errors import Missing, NoRoom
from hermes.storage.postgres.leases import IS_HELD
from hermes.storage.postgres.statements import Statements
from hermes.storage.prompt_files import MOST_BYTES, check_id
from hermes.storage.store import PromptFiles

PIECE_BYTES: Final = 64 * 1024
"""A tap waits for one piece at most: half a second if the line to the database takes one megabit a second."""

_OTHERS: Final = """
SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM hermes.files
WHERE bot = %(bot)s AND NOT (prompt = %(prompt)s AND message = %(message)s)
"""
_WRITE: Final = f"""
INSERT INTO hermes.files (bot, prompt, message, piece, size, data)
SELECT bot, id, %(message)s, %(piece)s, %(size)s, %(data)s FROM hermes.records
WHERE bot = %(bot)s AND kind = 'prompts' AND id = %(prompt)s AND {IS_HELD}
ON CONFLICT (bot, prompt, message, piece) DO UPDATE SET size = excluded.size, data = excluded.data
RETURNING bot
"""
_READ: Final = """
SELECT data, size FROM hermes.files
WHERE bot = %(bot)s AND prompt = %(prompt)s AND message = %(message)s AND piece = %(piece)s
"""
_REMOVE: Final = f"DELETE FROM hermes.files WHERE bot = %(bot)s AND prompt = %(prompt)s AND {IS_HELD} RETURNING bot"
_PROMPTS: Final = "SELECT DISTINCT prompt FROM hermes.files WHERE bot = %(bot)s"


class PromptFileRows(PromptFiles):
    """The files of the prompts that this user may see; together at most `most_bytes`."""

    def __init__(self, statements: Statements, *, most_bytes: int = MOST_BYTES) -> None:
        self._statements = statements
        self._most_bytes = most_bytes

    async def write(self, prompt_id: str, message_id: int, data: bytes) -> None:
        key = self._key(prompt_id) | {"message": message_id, "size": len(data)}
        [(others,)] = await self._statements.read(_OTHERS, **key)
        if others + len(data) > self._most_bytes:
            raise NoRoom(f"the files in the database would take more than {self._most_bytes // 1_000_000} MB")
        for piece, at in enumerate(range(0, max(len(data), 1), PIECE_BYTES)):
            values = key | {"piece": piece, "data": data[at : at + PIECE_BYTES]}
            if not await self._statements.write_again(_WRITE, values):
                raise Missing(f"there is no prompt {prompt_id}")

    async def read(self, prompt_id: str, message_id: int) -> bytes:
        key = self._key(prompt_id) | {"message": message_id}
        pieces: list[bytes] = []
        while rows := await self._statements.read(_READ, **key, piece=len(pieces)):
            [(piece, size)] = rows
            pieces.append(piece)
            if sum(map(len, pieces)) >= size:
                return b"".join(pieces)
        raise Missing(f"the database does not have the file of message {message_id} of prompt {prompt_id}")

    async def remove(self, prompt_id: str) -> None:
        await self._statements.write_again(_REMOVE, self._key(prompt_id))

    async def prompt_ids(self) -> set[str]:
        return {str(prompt_id) for (prompt_id,) in await self._statements.read(_PROMPTS)}

    def _key(self, prompt_id: str) -> dict[str, object]:
        check_id(prompt_id)
        return {"prompt": prompt_id}
