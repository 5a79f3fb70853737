"""`hermes setup --join`: an agent-only machine, which needs the database and nothing else.

It asks for nothing but the password of the database, and takes the default of every other question.
"""

from dataclasses import replace
from typing import Final

from hermes.commands.setup import parts
from hermes.commands.setup.background import Background, listener_need
from hermes.commands.setup.context import Context
from hermes.commands.setup.database import Connecting
from hermes.commands.setup.finish import Plan
from hermes.commands.setup.given import Changes
from hermes.errors import ConfigError
from hermes.storage.postgres.address import Address

_OF_THE_BOT: Final = (
    "--join is for a machine without the bot's token: leave --token-file, --chat, --user, --test, --proxy and "
    "--api-base out."
)


def plan_to_join(context: Context, background: Background) -> Plan:
    """Connect the database, and choose what the setup would choose by itself.

    Raises:
        ConfigError: an option cannot be used, or the configuration names another bot.
        StoreError: the database of an option cannot be used. HermesError: the person gave up.
    """
    terminal, given, draft = context.terminal, context.given, context.draft
    if given.token_file or given.chat_id or given.users or given.test or given.proxy or given.api_base:
        raise ConfigError(_OF_THE_BOT)
    terminal.title("Hermes: this machine joins others, and asks on the same phone")

    async def check(address: Address) -> None:
        from hermes.storage.postgres import checks  # noqa: PLC0415 (few have psycopg)

        bot, own = await checks.check_agent(address), draft.config and draft.config.phone
        if own and own.bot_id != bot:
            raise ConfigError(
                f"{draft.place} names the bot {own.bot_id} in [telegram], and the database is for the bot {bot}: "
                "remove [telegram] there, so that this machine asks through that bot."
            )

    database = Connecting(context, check).of_url(given.store.url or "")
    agents = parts.choose_agents(replace(context, terminal=terminal.with_defaults()))
    has_prompts = draft.settings.prompts.enabled if given.prompts is None else given.prompts
    service = background.choose_service(listener_need(has_prompts=has_prompts, brings_others=False))
    return Plan(Changes(prompts=given.prompts, store=database.change), agents, service, database)
