"""Collect the data of `hermes status`: the listener, Telegram, machines, the agents' servers, and the open asks.

It changes no entry, asks servers only for their health, and works with and without a running listener.
"""

import asyncio
import json
import shlex
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from hermes import __version__, disk
from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode2 import discovery
from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.opencode2.discovery import Address, at
from hermes.commands.stores import of_this_machine
from hermes.config.reading import open_to_others
from hermes.config.settings import Config, OpenCode
from hermes.core.answer_clock import AnswerableClock
from hermes.errors import AgentRefused, HermesError, NotRunning, Unauthorized
from hermes.hook import spool
from hermes.model.ask import Ask, Permission, PermissionKind
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.model.machine import Machine
from hermes.storage import process_lock
from hermes.storage.store import Store

Health = Callable[[OpenCode], Awaitable[str]]
"""Return the version of this server. Raises AgentError, whose text says what is wrong."""


@dataclass(frozen=True, slots=True)
class ListenerStatus:
    """The listener of this store. If none runs, `pid` is 0 and `since_s` is None.

    - `last_poll_s`: the last successful poll of Telegram (epoch). `trouble`: why the chat does not work, or "".
    - `bot_held_by`: if none runs, the process that holds the bot's lock, so that no listener of this store can start;
      else "". It listens for another store, or for this one, whose folder was removed.
    - `idle`: none runs, and none is needed: nothing is open, and the next ask of a connected agent starts one.
    - `agent_only`: this machine has no bot; another machine brings its asks to the phone.
    - `person_away`: the person has said /away. `post_after_s`: how long asks and notices wait for the desk otherwise.
    """

    running: bool
    pid: int
    command: str
    since_s: float | None
    last_poll_s: float | None
    trouble: str
    phone_locked: bool = False
    bot_held_by: str = ""
    idle: bool = False
    agent_only: bool = False
    person_away: bool = False
    post_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PromptsStatus:
    """Whether the phone may send prompts to agents, and the projects to which they may go; () is all projects."""

    enabled: bool
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server with its version, or with the reason why it gave none. `idle`: it does not run, and need not."""

    name: str
    url: str
    version: str
    trouble: str
    idle: bool = False


@dataclass(frozen=True, slots=True)
class MachineServer:
    """A server of an agent on a machine, and whether that machine's listener is connected to it."""

    name: str
    connected: bool


@dataclass(frozen=True, slots=True)
class MachineStatus:
    """A machine that shares the database.

    - `this`: Hermes looks from here. `phone_side`: it is the one that talks with Telegram now.
    - `away_since_s`: when it was heard of last (epoch), if it is away; else None.
    """

    id: str
    name: str
    version: str
    this: bool
    phone_side: bool
    away_since_s: float | None
    servers: tuple[MachineServer, ...]


@dataclass(frozen=True, slots=True)
class EntryStatus:
    """A pending ask.

    - `away`: its agent, or the whole machine, cannot be reached.
    - `left_s`: the seconds that are left to answer; None unless the ask is open and was posted, or if they
      stand still because its machine is away.
    - `header`, `question`: those of the first question. For a permission, `question` is the start of a sentence and
      `header` its end ("Wants to run", "ls").
    - `questions`: the number of questions. `answerable`: false if only the computer can answer.
    - `posted`: it is or was on the phone. A machine without the bot sees no ids of messages, but this.
    """

    id: str
    code: str
    agent: str
    machine: str
    directory: str
    session: str
    header: str
    phase: str
    away: bool
    asked_s: float
    age_s: float
    left_s: float | None
    kind: Literal["question", "permission"]
    question: str
    questions: int
    answerable: bool
    posted: bool


@dataclass(frozen=True, slots=True)
class Status:
    """All data of `hermes status`. `at_s`, `since_s`, `last_poll_s` and `asked_s` are epoch seconds.

    `store_trouble`: why nothing can be saved in the folder of the store, or "".
    `machines`: those that this user of the database may see, by name; none if the store is in files.
    """

    version: str
    at_s: float
    store: str
    store_trouble: str
    listener: ListenerStatus
    prompts: PromptsStatus
    machines: tuple[MachineStatus, ...]
    servers: tuple[ServerStatus, ...]
    entries: tuple[EntryStatus, ...]
    quarantined: int
    damaged: tuple[str, ...]
    too_new: tuple[str, ...]
    warnings: tuple[str, ...]


def client(server: OpenCode, *, password: bool = True) -> OpenCodeServer:
    """Return a client of the server, with its password or without."""
    secret = server.password.get_secret_value() if password else ""
    return OpenCodeServer(Api(server.name, server.url, username=server.username, password=secret), machine="")


async def ask_health(server: OpenCode) -> str:
    """Ask an OpenCode server for its version, within about a second.

    Raises:
        AgentError: the server is away, wants another password, or is no OpenCode server.
    """
    async with client(server) as asked:
        try:
            return await asked.health()
        except Unauthorized:
            raise
        except AgentRefused:
            pass
    address = Address(server.url, server.password.get_secret_value(), server.username)
    async with OpenCode2Server(server.name, at(address), machine="") as second:
        return (await second.connect()).version


async def gather(
    config: Config,
    store: Store,
    *,
    config_file: Path | None = None,
    asks_start_it: bool = False,
    warnings: tuple[str, ...] = (),
    health: Health = ask_health,
) -> Status:
    """Return the status. `health` asks all servers at the same time.

    `asks_start_it` tells that the plugin of a connected agent starts a listener when the agent asks. `warnings` are
    further sentences for people. Raises StoreError.
    """
    survey = await store.survey()
    now_s = store.now()
    bot_id = config.phone.bot_id if config.phone else None
    memory, of_memory = await _memory(store, bot_id)
    warnings = (*warnings, *of_memory)
    if config_file is not None and open_to_others(config_file):
        warnings = (*warnings, f"others can read {config_file}; close it: chmod 600 {shlex.quote(str(config_file))}")
    warnings = (*warnings, *_about_log(config.log.file))
    with disk.reading(store.home.root / "inbox"):
        nothing_waits = not of_this_machine(store, survey.entries) and not spool.listing(store.home.root)
    listener = await _listener(store, memory, bot_id, may_idle=asks_start_it and nothing_waits)
    listener = replace(listener, post_after_s=config.questions.post_after)
    # A new clock leaves each ask at least ten minutes, as a listener does after its start.
    clock = AnswerableClock(memory.answerable_s, monotonic=lambda: 0.0)
    if listener.running:
        clock.gap_at = memory.gap_at
    return Status(
        version=__version__,
        at_s=now_s,
        store=str(store.home.root),
        store_trouble=_store_trouble(store.home.root),
        listener=listener,
        prompts=PromptsStatus(config.prompts.enabled, config.prompts.projects),
        machines=await _machines(store, now_s),
        servers=(
            *await asyncio.gather(*(_server(server, health) for server in config.opencode)),
            *await _found_server(config),
        ),
        entries=tuple(_entry(entry, clock, now_s) for entry in survey.entries),
        quarantined=len(store.home.quarantined()),
        damaged=tuple(str(path) for path, _ in (*survey.damaged, *survey.unread)),
        too_new=tuple(map(str, survey.too_new)),
        warnings=warnings,
    )


def _store_trouble(root: Path) -> str:
    """Return why nothing can be saved in this folder, or "". Write nothing there: `--watch` looks every second."""
    if (closed := disk.closed_above(root / "pending")) is not None:
        return f"nothing can be saved in {root}: {closed} is not a folder that you may write to"
    try:
        free = shutil.disk_usage(root).free
    except OSError:  # it was not made yet, or was removed a moment ago
        return ""
    return _little_room(root, free)


def _little_room(root: Path, free: int) -> str:
    return "" if free >= disk.NO_BYTES else f"nothing can be saved in {root} soon: {free // 1_000_000} MB are free"


def _about_log(file: Path) -> tuple[str, ...]:
    """Return why there is no log, if a folder is in its place, or the way to it is closed."""
    try:
        return (f"{file} is a folder, so there is no log; set log.file",) if file.is_dir() else ()
    except OSError as error:
        return (
            f"{file} cannot be reached ({error.strerror}), so there is no log; set log.file, or free the way to it",
        )


async def _memory(store: Store, bot_id: int | None) -> tuple[ChatMemory, tuple[str, ...]]:
    if bot_id is None:
        return ChatMemory(0), ()
    try:
        return await store.load_chat(bot_id), ()
    except HermesError as error:
        return ChatMemory(bot_id), (str(error),)


async def _listener(store: Store, memory: ChatMemory, bot_id: int | None, *, may_idle: bool) -> ListenerStatus:
    holder = store.home.listener()
    other = _bot_holder(bot_id, store.home.root) if holder is None and bot_id is not None else None
    return ListenerStatus(
        running=holder is not None,
        pid=holder.pid if holder else 0,
        command=holder.who if holder else "",
        since_s=_since_s(store, holder) if holder else None,
        last_poll_s=memory.last_poll_s,
        trouble=memory.trouble,
        phone_locked=await store.is_phone_locked(),
        bot_held_by=str(other or ""),
        idle=may_idle and holder is None and other is None,
        agent_only=bot_id is None,
        person_away=memory.is_away,
    )


def _since_s(store: Store, holder: process_lock.Holder) -> float:
    """Return since when it holds the lock, by the clock of the store; 0 if the file does not say it."""
    if not (store.is_shared and holder.since_s):
        return holder.since_s
    return holder.since_s + store.now() - store.home.now()


async def _machines(store: Store, now_s: float) -> tuple[MachineStatus, ...]:
    if not store.is_shared:
        return ()
    this = store.home.known_machine()
    return tuple([_machine(machine, this, now_s) for machine in await store.machines()])


def _machine(machine: Machine, this: str, now_s: float) -> MachineStatus:
    return MachineStatus(
        id=machine.id,
        name=machine.name,
        version=machine.version,
        this=machine.id == this,
        phone_side=machine.is_phone,
        away_since_s=now_s - machine.silent_s if machine.is_away else None,
        servers=tuple([MachineServer(name, is_connected) for name, is_connected in machine.servers]),
    )


def _bot_holder(bot_id: int, store: Path) -> process_lock.Holder | None:
    try:
        return process_lock.holder(process_lock.bot_lock(bot_id, store))
    except OSError:
        return None  # the folder for locks cannot be made; a listener that is started says why


async def _server(server: OpenCode, health: Health) -> ServerStatus:
    try:
        return ServerStatus(server.name, server.url, await health(server), "")
    except HermesError as error:
        return ServerStatus(server.name, server.url, "", str(error))


async def _found_server(config: Config) -> tuple[ServerStatus, ...]:
    """Return the OpenCode 2 server of this user; none if it is switched off, or was never there."""
    if not config.opencode2.enabled:
        return ()
    file, url = config.opencode2.file, ""
    try:
        address = discovery.read(file)
        url = f"{address.url} (pid {address.pid})"
        async with OpenCode2Server(discovery.NAME, at(address), machine="") as found:
            return (ServerStatus(discovery.NAME, url, (await found.connect()).version, ""),)
    except NotRunning as error:
        return (ServerStatus(discovery.NAME, url, "", str(error), idle=True),) if disk.is_there(file) else ()
    except HermesError as error:
        return (ServerStatus(discovery.NAME, url, "", str(error)),)


def _entry(entry: Entry, clock: AnswerableClock, now_s: float) -> EntryStatus:
    source = entry.ask.source
    left_s = clock.left_s(entry.timing)
    runs = entry.state.phase == "open" and left_s is not None and entry.timing.away_at is None
    return EntryStatus(
        id=entry.id,
        code=entry.code,
        agent=entry.ask.capabilities.agent_name,
        machine=source.host or source.machine,
        directory=source.directory,
        session=source.session_title,
        header=entry.ask.questions[0].header if entry.ask.questions else "",
        phase=entry.state.phase,
        away=entry.is_out_of_reach,
        asked_s=entry.asked_s,
        age_s=max(0.0, now_s - entry.asked_s),
        left_s=max(0.0, left_s or 0.0) if runs else None,
        kind="question" if entry.ask.permission is None else "permission",
        question=_question(entry.ask),
        questions=len(entry.ask.questions),
        answerable=entry.ask.answerable,
        posted=entry.timing.posted_s is not None,
    )


def _question(ask: Ask) -> str:
    if ask.permission is not None:
        return permission_wanted(ask.permission)
    return ask.questions[0].text if ask.questions else ""


def permission_wanted(permission: Permission) -> str:
    """Return the start of the line about a permission, such as "Wants to run"; the action follows it."""
    return _WANTED.get(permission.kind) or f"Wants to use {permission.tool} for"


_WANTED: Mapping[PermissionKind, str] = {
    "command": "Wants to run",
    "change": "Wants to change",
    "folder": "Wants to leave its project for",
    "fetch": "Wants to fetch",
}


def to_json(status: Status) -> str:
    """Return the status as one JSON object with its fields as keys; times are numbers, or null if there is none."""
    return json.dumps(asdict(status), indent=2)
