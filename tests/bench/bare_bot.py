"""The least that a bot of this library can do about a tap: poll, and acknowledge.

It looks at nobody, saves nothing and shows nothing: what it takes is the floor under every listener that uses the same
library and the same HTTP client. Told by the environment: API_BASE, TOKEN, CHAT_ID.
"""

from __future__ import annotations

import asyncio
import os

from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup

POLL_S = 25


async def main() -> None:
    """Post one button, and acknowledge its taps until killed."""
    async with Bot(os.environ["TOKEN"], base_url=f"{os.environ['API_BASE']}/bot") as bot:
        button = InlineKeyboardMarkup([[InlineKeyboardButton("SQLite", callback_data="x")]])
        await bot.send_message(int(os.environ["CHAT_ID"]), "Tap me", reply_markup=button)
        offset = None
        while True:
            for update in await bot.get_updates(offset, timeout=POLL_S):
                offset = update.update_id + 1
                if update.callback_query is not None:
                    await bot.answer_callback_query(update.callback_query.id, "SQLite")


if __name__ == "__main__":
    asyncio.run(main())
