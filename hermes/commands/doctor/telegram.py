"""Check that Telegram accepts the token, that only we receive updates, and that the bot may write into the chat.

The checks send no message and confirm no update, so no update can be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

from hermes.chat.bot import Bot, Me
from hermes.chat.failures import is_conflict, is_unauthorized, is_webhook
from hermes.chat.poll import CONFLICT
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.config.settings import AGENT_ONLY, Telegram
from hermes.errors import ChatError, ChatRefused
from hermes.listener.phone.chat_memory import Memory
from hermes.storage import process_lock
from hermes.storage.store import Store

AREA = Area("Telegram")

CALL_S: Final = 3.0

_RIVAL = "stop it (another machine? another program with this token?), or renew the token: @BotFather, /revoke"
_PRIVACY = (
    "privacy mode is on: in this group a typed answer must reply to the question's message; buttons work anyway",
    "@BotFather, /setprivacy, Disable; then remove the bot from the group and add it again",
)


class Asking(Bot):
    """The bot, with calls that change nothing."""

    async def webhook(self) -> str:
        """Return the URL of the webhook, or "" if no webhook is set."""
        info = await self._call("getWebhookInfo", {})
        return str(info.get("url", "")) if isinstance(info, dict) else ""

    async def chat(self, chat_id: int) -> dict[str, Any]:
        """Return the ChatFullInfo."""
        return dict(await self._call("getChat", {"chat_id": chat_id}))

    async def member(self, chat_id: int, user_id: int) -> dict[str, Any]:
        """Return the ChatMember."""
        return dict(await self._call("getChatMember", {"chat_id": chat_id, "user_id": user_id}))

    async def typing(self, chat_id: int) -> None:
        """Show that the bot types, for 5 s or until it writes; Telegram refuses it if it would refuse a message.

        It makes no sound and leaves no trace. One exception: it may be allowed to a bot that was only muted
        (DialogActionManager.cpp checks access, not rights); `member` shows that case.
        """
        await self._call("sendChatAction", {"chat_id": chat_id, "action": "typing"})

    async def wait_for_update(self, timeout_s: float) -> None:
        """Wait until an update is pending, or `timeout_s` are over.

        The call has no offset, so that it confirms nothing, and no `allowed_updates`, so that the stored list stays.
        """
        await self._call("getUpdates", {"timeout": int(timeout_s), "limit": 1}, timeout_s=timeout_s + CALL_S)


def _asking(telegram: Telegram) -> Asking:
    proxy = telegram.proxy.get_secret_value() if telegram.proxy else None
    return Asking(
        telegram.token.get_secret_value(),
        api_base=telegram.api_base,
        proxy=proxy,
        ca_file=telegram.ca_file,
        timeout_s=CALL_S,
    )


async def look(around: Around) -> tuple[Finding, ...]:
    """Check the token; if it is good, run all other checks at once. An agent-only machine has none."""
    if around.config.phone is None:
        return (AREA.good("token", AGENT_ONLY),)
    return await AREA.guarded("token", _look(around), limit_s=around.watch_s + 4 * CALL_S)


async def _look(around: Around) -> tuple[Finding, ...]:
    async with _asking(around.config.telegram) as bot:
        try:
            async with asyncio.timeout(CALL_S):
                me = await bot.me()
        except (ChatError, TimeoutError) as error:
            return _no_bot(error)
        found = await asyncio.gather(
            _updates(around, bot),
            AREA.guarded("chat", _chat(around, bot, me), limit_s=CALL_S),
        )
    return AREA.good("token", f"of @{me.username}"), *(finding for findings in found for finding in findings)


def _no_bot(error: Exception) -> tuple[Finding, ...]:
    if isinstance(error, ChatError) and is_unauthorized(error):
        mend = "@BotFather, /mybots, API Token; put it into telegram.token"
        first = AREA.broken("token", "Telegram does not accept it", mend)
    else:
        seen = str(error) or f"Telegram did not answer within {CALL_S:g} s"
        first = AREA.broken("reach", seen, "look at the network, telegram.proxy and telegram.api_base")
    return first, AREA.warning("all else", "webhook, other pollers and chat were not looked at, for that reason")


# --- webhook and other pollers -------------------------------------------------------------------------


async def _updates(around: Around, bot: Asking) -> tuple[Finding, ...]:
    (webhook,) = await AREA.guarded("webhook", _webhook(around, bot), limit_s=CALL_S)
    if webhook.verdict != "good":
        return webhook, AREA.warning("other pollers", "not looked for, for that reason")
    limit_s = around.watch_s + CALL_S
    return webhook, *await AREA.guarded("other pollers", _rivals(around, bot), limit_s=limit_s, late="warning")


async def _webhook(around: Around, bot: Asking) -> list[Finding]:
    url = await bot.webhook()
    if not url:
        return [AREA.good("webhook", "none")]
    # Only the host is shown: the rest of such a URL is often a secret.
    seen = f"one is set (to {urlsplit(url).hostname}), so that nothing can be polled"
    mend = f"{around.hermes('doctor', '--fix')} (what waits is kept)"
    return [AREA.broken("webhook", seen, mend, _delete_webhook(around))]


def _delete_webhook(around: Around) -> Callable[[], Awaitable[str]]:
    async def delete() -> str:
        async with _asking(around.config.telegram) as bot:
            await bot.delete_webhook()
        return "The webhook was deleted; what waits for the bot was kept."

    return delete


async def _rivals(around: Around, bot: Asking) -> list[Finding]:
    """Poll for a while. Telegram ends the older of two open polls, so a rival that retries ends ours (ChatRefused).

    If an update is pending, our poll returns at once; a rival would have taken it.
    """
    found = AREA.good("other pollers", "none was seen")
    if not await _poller(around):
        try:
            await bot.wait_for_update(around.watch_s)
        except ChatRefused as error:
            if is_webhook(error) or not is_conflict(error):
                raise
            found = AREA.broken("other pollers", "another program receives taps and texts of this bot", _RIVAL)
    ours = await _poller(around)  # a listener may have started in the meantime
    return [await _told_by_listener(around, ours) if ours else found]


async def _poller(around: Around) -> str:
    """Return the process of ours that polls, or the machine of ours if the store is in a database, or ""."""
    if around.config.store.address is None:
        lock = process_lock.bot_lock(around.config.telegram.bot_id, around.config.store.path)
        return str(process_lock.holder(lock) or "")
    machines = await around.look(lambda store: store.machines())
    return next((f"the phone side, {one.name}," for one in machines if one.is_phone), "")


async def _told_by_listener(around: Around, ours: str) -> Finding:
    """Report the conflict that the listener noted, if any, because our own poll would end the listener's poll."""
    memory = await around.look(lambda store: store.load_chat(around.config.telegram.bot_id))
    if memory.trouble == CONFLICT:
        return AREA.broken("other pollers", f"the listener says: {CONFLICT}", _RIVAL)
    return AREA.good("other pollers", f"{ours} polls, and told of none")


# --- the chat ------------------------------------------------------------------------------------------


async def _chat(around: Around, bot: Asking, me: Me) -> list[Finding]:
    configured = around.config.telegram.chat_id

    async def remembered(store: Store) -> int:
        return Memory(store, await store.load_chat(me.id)).chat_id(configured)

    chat_id = configured if around.is_store_away else await around.look(remembered)
    try:
        chat = await bot.chat(chat_id)
        member = {} if chat.get("type") == "private" else await bot.member(chat_id, me.id)
        await bot.typing(chat_id)
    except ChatRefused as error:
        return [_no_chat(error, chat_id, me)]
    name = chat.get("title") or chat.get("first_name") or chat_id
    found = [AREA.good("chat", f"{chat.get('type')} chat {name!r}")]
    if chat_id != configured:
        found = [AREA.warning("chat", f"{name!r} has a new id", f"set telegram.chat_id = {chat_id}")]
    if not _may_write(chat, member):
        mend = "let it send messages: in the group's permissions, or make it an administrator"
        return [*found, AREA.broken("writing", f"@{me.username} may not write in {name!r}", mend)]
    topics = () if around.config.telegram.topics == "off" else (_topics(me, chat, member),)
    return [*found, AREA.good("writing", "allowed"), *_privacy(me, member), *topics]


def _no_chat(error: ChatRefused, chat_id: int, me: Me) -> Finding:
    if error.moved_to is not None:
        seen = f"the group {chat_id} became a supergroup; a listener follows it by itself"
        return AREA.warning("chat", seen, f"set telegram.chat_id = {error.moved_to}")
    if "chat not found" in error.reason:
        seen = f"Telegram knows no chat {chat_id} of this bot"
        how = "press Start there" if chat_id > 0 else "add it to the group"
        return AREA.broken("chat", seen, f"open https://t.me/{me.username} and {how}; is telegram.chat_id right?")
    how = f"open https://t.me/{me.username}, unblock it" if chat_id > 0 else "add the bot to the group again"
    return AREA.broken("writing", str(error), how)


def _may_write(chat: dict[str, Any], member: dict[str, Any]) -> bool:
    match member.get("status", "private"):
        case "private" | "creator" | "administrator":
            return True
        case "restricted":
            return bool(member.get("can_send_messages")) and bool(member.get("is_member"))
        case "member":
            permissions = chat.get("permissions") or {}
            return bool(permissions.get("can_send_messages", True))
    return False


def _privacy(me: Me, member: dict[str, Any]) -> list[Finding]:
    if not member:
        return []
    if _sees_texts(me, member):
        return [AREA.good("privacy mode", "off, or of no matter: the bot sees what is typed in the group")]
    return [AREA.warning("privacy mode", *_PRIVACY)]


def _sees_texts(me: Me, member: dict[str, Any]) -> bool:
    """Tell whether the bot gets the plain texts of a group."""
    return me.reads_groups or member["status"] == "administrator"


def _topics(me: Me, chat: dict[str, Any], member: dict[str, Any]) -> Finding:
    """Tell whether the bot can make topics in this chat."""
    if chat.get("type") == "private":
        if me.has_topics:
            return AREA.good("topics", "on in the private chats of the bot")
        how = "@BotFather, the settings of the bot, Threaded Mode"
        return AREA.warning("topics", "off in the private chats of the bot, so everything is in the chat itself", how)
    if not chat.get("is_forum"):
        how = "switch topics on in the group's settings (the group may get a new id; a listener follows it by itself)"
        return AREA.warning("topics", "off in this group, so everything is in the group itself", how)
    if not _may_make_topics(chat, member):
        how = "make the bot an administrator that may manage topics"
        return AREA.warning("topics", f"@{me.username} may not make any, so everything is in the group itself", how)
    seen = (
        "a text in a topic can be a prompt"
        if _sees_texts(me, member)
        else "a text there reaches no session while privacy mode is on"
    )
    return AREA.good("topics", f"on in this group; {seen}")


def _may_make_topics(chat: dict[str, Any], member: dict[str, Any]) -> bool:
    if member["status"] == "creator":
        return True
    if member["status"] == "administrator":
        return bool(member.get("can_manage_topics"))
    return bool((chat.get("permissions") or {}).get("can_manage_topics"))
