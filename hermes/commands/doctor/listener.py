"""Check the listener: it runs, it reaches Telegram, and it will run after a restart of the machine."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Final

from hermes.chat.poll import CONFLICT
from hermes.commands import install
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.service import service_state
from hermes.commands.service.machine import Machine, ServiceState, run_command
from hermes.commands.status.table import DEAF_S, IDLE, span
from hermes.commands.stores import of_this_machine
from hermes.errors import StoreError
from hermes.hook import runtime, spool
from hermes.model.chat_memory import ChatMemory
from hermes.storage import process_lock
from hermes.storage.process_lock import Holder
from hermes.storage.store import Store

AREA = Area("Listener")

JAM_S: Final = 60.0
ASKED_S: Final = 1.5
"""Time limit of each of the three commands that ask the service manager."""


async def look(around: Around) -> tuple[Finding, ...]:
    """Check the locks (also the phone's), the folder of the sockets, the last good poll, the inbox, and the service."""
    checks = {"lock": _lock, "sockets": _sockets, "phone": _phone, "poll": _poll, "inbox": _inbox, "service": _service}
    return await AREA.each(around, checks)


def _lock(around: Around) -> list[Finding]:
    ours, bots = around.home().listener(), _holder_of_bot(around)
    if ours is not None:
        since = f", for {span(around.now() - ours.since_s)}" if ours.since_s else ""
        return [AREA.good("lock", f"{ours} is at work{since}")]
    if bots is not None:
        end = f"kill {bots.pid}" if bots.pid else "end it"
        mend = f"{end}, or give one of the two a bot of its own"
        if process_lock.works_with(bots.who, around.config.store.path):
            return [AREA.broken("lock", f"{bots} runs on, and its folder was removed", f"wait a moment, or {end}")]
        return [AREA.broken("lock", f"{bots} holds this bot, for another store", mend)]
    return [_nobody(around)]


def _holder_of_bot(around: Around) -> Holder | None:
    if around.config.phone is None:
        return None
    return process_lock.holder(process_lock.bot_lock(around.config.phone.bot_id, around.config.store.path))


def _nobody(around: Around) -> Finding:
    waits = len(spool.listing(around.config.store.path))
    with suppress(StoreError):  # another part reports it
        waits += asyncio.run(around.look(_open_here))
    if waits:
        what = "question or answer waits" if waits == 1 else "questions or answers wait"
        return AREA.broken("lock", f"nobody listens, and {waits} {what}", around.hermes("listen"))
    if install.is_any_connected(around.environ):
        return AREA.good("lock", IDLE)
    return AREA.broken("lock", "nobody listens, and no agent would start a listener", around.hermes("listen"))


async def _open_here(store: Store) -> int:
    return len(of_this_machine(store, (await store.survey()).entries))


def _sockets(around: Around) -> list[Finding]:
    """Warn if the sockets are in the store, which happens only if no shared folder can be private to this user."""
    folder = runtime.folder(around.config.store.path)
    refused = []
    for shared in runtime.shared_folders():
        if shared == folder:
            return []
        try:
            runtime.private_folder(shared)
        except OSError as error:
            refused.append(str(error))
    seen = f"{'; '.join(refused)}: so {folder} is used, and two stores may listen to one bot"
    return [AREA.warning("sockets", seen, "remove that folder; if it is not yours, ask the administrator to")]


def _phone(around: Around) -> list[Finding]:
    """Warn if the phone is locked, also if nobody listens: the next listener takes no answers from it."""
    if around.config.phone is None or not asyncio.run(around.look(lambda store: store.is_phone_locked())):
        return []
    return [AREA.warning("phone", "locked: no answers and no prompts are taken from it", around.hermes("unlock"))]


def _poll(around: Around) -> list[Finding]:
    if around.home().listener() is None or around.config.phone is None:
        return []
    memory, now_s = asyncio.run(around.look(partial(_chat, bot_id=around.config.phone.bot_id)))
    ago_s = None if memory.last_poll_s is None else now_s - memory.last_poll_s
    log = f"see {around.config.log.file}"
    if memory.trouble and memory.trouble != CONFLICT:
        return [AREA.broken("poll", memory.trouble, log)]
    if ago_s is None or ago_s > DEAF_S:
        seen = "Telegram was never reached" if ago_s is None else f"Telegram was last reached {span(ago_s)} ago"
        return [AREA.broken("poll", seen, log)]
    return [AREA.good("poll", f"Telegram was reached {span(ago_s)} ago")]


async def _chat(store: Store, bot_id: int) -> tuple[ChatMemory, float]:
    """Return the memory of the chat, and the time by the clock of the store, by which its times are."""
    memory = await store.load_chat(bot_id)
    return memory, store.now()


def _inbox(around: Around) -> list[Finding]:
    """Report records older than a minute: a listener that has not read them by then cannot read them."""
    if around.home().listener() is None:
        return []
    old_s = around.now() - JAM_S
    jam = [path for path in spool.listing(around.config.store.path) if path.stat().st_mtime < old_s]
    if not jam:
        return [AREA.good("inbox", "taken in")]
    return [AREA.broken("inbox", f"{len(jam)} of what agents asked is not taken in", f"see {around.config.log.file}")]


# --- the service ---------------------------------------------------------------------------------------


def machine(around: Around) -> Machine:
    """Return the service manager of this machine, whose commands have a time limit."""
    return Machine(environ=around.environ, run=partial(run_command, environ=around.environ, limit_s=ASKED_S))


def has_service(state: ServiceState, around: Around) -> bool:
    """Tell whether a service of this configuration is installed; one whose command cannot be read counts as such."""
    return state.is_of(around.config_file) or (state.installed and not state.command)


def _service(around: Around) -> list[Finding]:
    manager = machine(around)
    state, mend = service_state(machine=manager), around.hermes("install", "service")
    if state.kind == "none" or not has_service(state, around):
        other = f" for this configuration: the one here uses {state.configuration}" if state.installed else ""
        told = "; without one, you do not hear that a turn has ended" if around.config.notices.enabled else ""
        return [AREA.good("service", f"none{other}. A listener runs only if you start one or an agent asks{told}")]
    if not state.is_running:
        return [AREA.broken("service", f"installed, but {state.detail}", mend)]
    if not state.enabled:
        return [AREA.warning("service", "active, but it will not be after a restart of the machine", mend)]
    if state.kind == "launchd":
        return [AREA.good("service", f"starts when you log in; {state.detail}")]
    if not manager.lingers():
        seen = f"starts when you log in, and stops when you log out; {state.detail}"
        return [AREA.warning("service", seen, "loginctl enable-linger")]
    return [AREA.good("service", f"starts with the machine; {state.detail}")]
