"""The memory of the chat, and the lock against a lost phone: only the phone side keeps them in the database."""

from __future__ import annotations

from typing import Final

from hermes.errors import TooNew, Unreadable
from hermes.model.chat_memory import ChatMemory
from hermes.storage.codec import CHATS
from hermes.storage.home import Home
from hermes.storage.postgres.connection import UnknownError
from hermes.storage.postgres.leases import IS_HELD
from hermes.storage.postgres.writing import Writer, surely

_LOAD: Final = "SELECT body::text FROM hermes.chats WHERE bot = %(bot)s"
_SAVE: Final = f"""
INSERT INTO hermes.chats (bot, body) SELECT %(bot)s, %(body)s::json WHERE {IS_HELD}
ON CONFLICT (bot) DO UPDATE SET body = excluded.body
RETURNING bot
"""
_IS_LOCKED: Final = "SELECT EXISTS (SELECT FROM hermes.locks WHERE bot = %(bot)s)"
_LOCK: Final = f"""
INSERT INTO hermes.locks (bot) SELECT %(bot)s WHERE {IS_HELD} ON CONFLICT (bot) DO NOTHING RETURNING bot
"""
_UNLOCK: Final = f"DELETE FROM hermes.locks WHERE bot = %(bot)s AND {IS_HELD} RETURNING bot"


class PhoneRows:
    """The memory of the chat, and the lock: a part of the store."""

    def __init__(self, writer: Writer, home: Home) -> None:
        self.home = home
        self._writer = writer

    async def load_chat(self, bot_id: int) -> ChatMemory:
        """Return the memory of this bot, or an empty one. One that is damaged goes to quarantine."""
        await self._writer.ready()
        for (body,) in await self._writer.connection.read(_LOAD, {"bot": bot_id}):
            try:
                memory = CHATS.decode(body.encode())
            except TooNew as error:
                raise TooNew(f"the memory of the chat is left alone: {error}; upgrade this one") from None
            except Unreadable as error:
                self.home.quarantine("telegram.json", body.encode(), str(error))
                continue
            if memory.bot_id == bot_id:
                return memory
        return ChatMemory(bot_id)

    async def save_chat(self, memory: ChatMemory) -> None:
        await self._writer.ready()
        body = CHATS.encode(memory).decode()
        await self._writer.write_again(_SAVE, {"bot": memory.bot_id, "body": body})

    async def is_phone_locked(self) -> bool:
        await self._writer.ready()
        return await self._writer.connection.read(_IS_LOCKED, self._bot()) == [(True,)]

    async def lock_phone(self) -> None:
        await self._writer.ready()
        await self._writer.write_again(_LOCK, self._bot())

    async def unlock_phone(self) -> bool:
        await self._writer.ready()
        try:
            return bool(await self._writer.write(_UNLOCK, self._bot()))
        except UnknownError:
            await surely(self._writer.write(_UNLOCK, self._bot()))
            return True  # the first statement may have done it

    def _bot(self) -> dict[str, object]:
        return {"bot": self._writer.identity.bot}
