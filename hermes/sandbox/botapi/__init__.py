"""A strict local Bot API: it accepts nothing that Telegram would refuse.

    with running_botapi() as api:            # or spawn_botapi(), in a separate process
        bot = Bot(api.token, base_url=f"{api.base_url}/bot")
        …
        message = api.phone.message_with("Which database")
        api.phone.tap(message, "SQLite")

wire, text, keyboard, rates and updates hold the rules; world holds the state; methods, polling and people change
the state; app, cutting and serving are the HTTP server. Behaviour and wording follow tdlib/telegram-bot-api 10.0.
"""

from hermes.sandbox.botapi.people import Control
from hermes.sandbox.botapi.serving import RunningBotApi, SpawnedBotApi, running_botapi, spawn_botapi
from hermes.sandbox.botapi.world import DEMO_TOKEN, Chat, User, World

__all__ = [
    "DEMO_TOKEN",
    "Chat",
    "Control",
    "RunningBotApi",
    "SpawnedBotApi",
    "User",
    "World",
    "running_botapi",
    "spawn_botapi",
]
