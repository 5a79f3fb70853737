"""Check that Telegram accepts the token, that only we receive updates, and that the bot may write into the chat.

The checks send no message and confirm no update, so no update can be lost.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from hermes.chat.bot import Bot, Me, is_conflict, is_unauthorized, is_webhook, tls_context
from hermes.chat.poll import CONFLICT
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.status.table import span
from hermes.config.settings import Telegram
from hermes.errors import ChatError, ChatRefused
from hermes.listener.phone.chat_memory import Memory
from hermes.storage import process_lock

AREA = Area("Telegram")

CALL_S: Final = 3.0
HELD_S: Final = 3.0
"""A rival poller retries at once, as all pollers do, and so would have ended a poll of ours before this time."""
OFF_S, FAR_OFF_S = 5.0, 60.0

_RIVAL = "stop it (another machine? another program with this token?), or renew the token: @BotFather, /revoke"
_VANISHED = "what waited for this bot vanished: another program took it, or it was a tap that grew too old"
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

    async def waiting(self, timeout_s: float) -> int | None:
        """Return the id of the first pending update, or None if no update comes within `timeout_s`.

        The call has no offset, so that it confirms nothing, and no `allowed_updates`, so that the stored list stays.
        """
        params = {"timeout": int(timeout_s), "limit": 1}
        updates = await self._call("getUpdates", params, timeout_s=timeout_s + CALL_S)
        return int(updates[0]["update_id"]) if isinstance(updates, list) and updates else None


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
    """Check the token; if it is good, run all other checks at once."""
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
            AREA.guarded("clock", _clock(around), limit_s=CALL_S),
        )
    return AREA.good("token", f"of @{me.username}"), *(finding for findings in found for finding in findings)


def _no_bot(error: Exception) -> tuple[Finding, ...]:
    if isinstance(error, ChatError) and is_unauthorized(error):
        mend = "@BotFather, /mybots, API Token; put it into telegram.token"
        first = AREA.broken("token", "Telegram does not accept it", mend)
    else:
        seen = str(error) or f"Telegram did not answer within {CALL_S:g} s"
        first = AREA.broken("reach", seen, "look at the network, telegram.proxy and telegram.api_base")
    return first, AREA.warning("all else", "webhook, other pollers, chat and clock were not looked at, for that reason")


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
    lock = process_lock.bot_lock(around.config.telegram.bot_id, around.config.store.path)
    found = AREA.good("other pollers", f"none was seen within {around.watch_s:g} s")
    if process_lock.holder(lock) is None:
        try:
            if await taken_away(bot.waiting, around.watch_s):
                found = AREA.warning("other pollers", _VANISHED, _RIVAL)
        except ChatRefused as error:
            if is_webhook(error) or not is_conflict(error):
                raise
            found = AREA.broken("other pollers", "another program receives taps and texts of this bot", _RIVAL)
    ours = process_lock.holder(lock)  # a listener may have started in the meantime
    return [found if ours is None else _told_by_listener(around, ours)]


async def taken_away(
    waiting: Callable[[float], Awaitable[int | None]],
    watch_s: float,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> bool:
    """Watch for `watch_s`, and tell whether a pending update vanished meanwhile. Raises the errors of `waiting`.

    Telegram ends the older of two open polls with a 409. So we poll: a rival that retries ends our poll (ChatRefused).
    If an update is pending, our poll returns at once, so we look again at the end of the time: a rival confirms the
    update (but a tap that is too old vanishes without a rival). A rival that pauses for longer is not seen.
    """
    began_s = monotonic()
    first = await waiting(watch_s)
    held_s = monotonic() - began_s
    if first is None or held_s >= HELD_S:
        return False
    await sleep(watch_s - held_s)
    return await waiting(0) != first


def _told_by_listener(around: Around, ours: process_lock.Holder) -> Finding:
    """Report the conflict that the listener noted, if any, because our own poll would end the listener's poll."""
    memory = around.store().load_chat(around.config.telegram.bot_id)
    if memory.trouble == CONFLICT:
        return AREA.broken("other pollers", f"the listener says: {CONFLICT}", _RIVAL)
    return AREA.good("other pollers", f"{ours} polls, and told of none")


# --- the chat ------------------------------------------------------------------------------------------


async def _chat(around: Around, bot: Asking, me: Me) -> list[Finding]:
    configured = around.config.telegram.chat_id
    chat_id = Memory(around.store(), me.id).chat_id(configured)
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
    return [*found, AREA.good("writing", "allowed"), *_privacy(me, member)]


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
    if me.reads_groups or member["status"] == "administrator":
        return [AREA.good("privacy mode", "off, or of no matter: the bot sees what is typed in the group")]
    return [AREA.warning("privacy mode", *_PRIVACY)]


# --- the clock -----------------------------------------------------------------------------------------


async def _clock(around: Around) -> list[Finding]:
    """Compare the clock with the Date header, in whole seconds, of a response of Telegram; it needs no token."""
    telegram = around.config.telegram
    proxy = telegram.proxy.get_secret_value() if telegram.proxy else None
    secure = tls_context(telegram.ca_file, proxy, telegram.api_base)
    try:
        async with httpx.AsyncClient(proxy=proxy, verify=secure, trust_env=False, timeout=CALL_S) as http:
            asked_s = around.now()
            answer = await http.get(telegram.api_base)
            answered_s = around.now()
        theirs_s = parsedate_to_datetime(answer.headers.get("date", "")).timestamp() + 0.5
    except (httpx.HTTPError, ValueError) as error:
        return [AREA.warning("clock", f"not compared: no date came from Telegram ({type(error).__name__})")]
    ahead_s = (asked_s + answered_s) / 2 - theirs_s
    return [_clock_finding(ahead_s, unsure_s=(answered_s - asked_s) / 2 + 0.5)]


def _clock_finding(ahead_s: float, *, unsure_s: float) -> Finding:
    off_s = max(0.0, abs(ahead_s) - unsure_s)
    if off_s < OFF_S:
        return AREA.good("clock", "agrees with Telegram's")
    seen = f"this machine's is {span(off_s)} {'ahead of' if ahead_s > 0 else 'behind'} Telegram's"
    mend = "sudo sntp -sS time.apple.com" if sys.platform == "darwin" else "sudo timedatectl set-ntp true"
    return AREA.broken("clock", seen, mend) if off_s >= FAR_OFF_S else AREA.warning("clock", seen, mend)
