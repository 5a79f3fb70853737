"""What `hermes status` says: is somebody listening, who can be reached, what is still open.

It only looks: entries stay as they are, and servers are asked for nothing but their health. So it tells the
same whether the listener runs or not.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hermes import __version__, spool
from hermes.agents.opencode.client import OpenCodeServer
from hermes.codec import ChatMemory
from hermes.config import readable_by_others
from hermes.errors import HermesError
from hermes.expiry import AnswerableClock
from hermes.model import Entry
from hermes.settings import Config, OpenCode
from hermes.store import LISTENER, Store

Health = Callable[[OpenCode], Awaitable[str]]
"""Returns the version of this server; raises AgentError, whose text says what is wrong."""


@dataclass(frozen=True, slots=True)
class ListenerStatus:
    """`pid` is 0 and `since_s` None where nobody listens; `last_poll_s` is the last answer of Telegram."""

    running: bool
    pid: int
    command: str
    since_s: float | None
    last_poll_s: float | None
    trouble: str
    phone_locked: bool = False


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A configured server: its version, else what is wrong; both empty where it was not asked."""

    name: str
    url: str
    version: str
    trouble: str


@dataclass(frozen=True, slots=True)
class EntryStatus:
    """An open ask. `left_s` is the time to answer that is left, None where no clock runs."""

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


@dataclass(frozen=True, slots=True)
class Status:
    """All of it; times are seconds, moments (`…at_s`, `since_s`, `asked_s`) since the epoch."""

    version: str
    at_s: float
    store: str
    listener: ListenerStatus
    servers: tuple[ServerStatus, ...]
    entries: tuple[EntryStatus, ...]
    quarantined: int
    damaged: tuple[str, ...]
    too_new: tuple[str, ...]
    warnings: tuple[str, ...]


async def ask_health(server: OpenCode) -> str:
    """Ask a server itself, within about a second.

    Raises:
        AgentError: it is away, or wants another password, or is no such server.
    """
    password = server.password.get_secret_value()
    async with OpenCodeServer(
        server.name, server.url, machine=spool.machine(), username=server.username, password=password
    ) as asked:
        return await asked.health()


async def gather(
    config: Config,
    store: Store,
    *,
    config_file: Path | None = None,
    health: Health | None = ask_health,
    now: Callable[[], float] = time.time,
) -> Status:
    """Look at everything; servers are asked by `health`, all at once, and not at all where it is None."""
    now_s = now()
    survey = store.survey()
    memory, warnings = _memory(store, config.telegram.bot_id)
    if config_file is not None and readable_by_others(config_file):
        warnings = (*warnings, f"others can read {config_file}; close it: chmod 600 {config_file}")
    listener = _listener(store, memory)
    # A clock that begins gives the ten minutes that every ask has left when a listener comes back.
    clock = AnswerableClock(memory.answerable_s, monotonic=lambda: 0.0)
    if listener.running:
        clock.gap_at = memory.gap_at
    return Status(
        version=__version__,
        at_s=now_s,
        store=str(store.root),
        listener=listener,
        servers=tuple(await asyncio.gather(*(_server(server, health) for server in config.opencode))),
        entries=tuple(_entry(entry, clock, now_s) for entry in survey.entries),
        quarantined=len(store.quarantined()),
        damaged=tuple(str(path) for path, _ in (*survey.damaged, *survey.unread)),
        too_new=tuple(map(str, survey.too_new)),
        warnings=warnings,
    )


def _memory(store: Store, bot_id: int) -> tuple[ChatMemory, tuple[str, ...]]:
    try:
        return store.load_chat(bot_id), ()
    except HermesError as error:
        return ChatMemory(bot_id), (str(error),)


def _listener(store: Store, memory: ChatMemory) -> ListenerStatus:
    holder = store.holder(LISTENER)
    return ListenerStatus(
        running=holder is not None,
        pid=holder.pid if holder else 0,
        command=holder.who if holder else "",
        since_s=holder.since_s if holder else None,
        last_poll_s=memory.last_poll_s,
        trouble=memory.trouble,
        phone_locked=store.is_phone_locked(),
    )


async def _server(server: OpenCode, health: Health | None) -> ServerStatus:
    version = trouble = ""
    if health is not None:
        try:
            version = await health(server)
        except HermesError as error:
            trouble = str(error)
    return ServerStatus(server.name, server.url, version, trouble)


def _entry(entry: Entry, clock: AnswerableClock, now_s: float) -> EntryStatus:
    source = entry.ask.source
    left_s = clock.left_s(entry.timing)
    runs = entry.state.phase == "open" and left_s is not None and not entry.timing.paused
    return EntryStatus(
        id=entry.id,
        code=entry.code,
        agent=entry.ask.capabilities.agent_name,
        machine=source.machine,
        directory=source.directory,
        session=source.session_title,
        header=entry.ask.questions[0].header if entry.ask.questions else "",
        phase=entry.state.phase,
        away=entry.state.away,
        asked_s=entry.asked_s,
        age_s=max(0.0, now_s - entry.asked_s),
        left_s=max(0.0, left_s or 0.0) if runs else None,
    )


def to_json(status: Status) -> str:
    """Return one JSON object whose keys are the fields above; `age_s`, `left_s` and `at_s` are numbers."""
    return json.dumps(asdict(status), indent=2)


# --- for people -----------------------------------------------------------------------------------------

_PHASES = {
    "matching": "looking for the request",
    "open": "waiting for an answer",
    "held": "answered, can be undone for some seconds",
    "sending": "answered, on its way to the agent",
    "settled": "done, the phone does not show it yet",
}


def show(status: Status, console: Console) -> None:
    """Print it in plain words."""
    for line in (*_about_listener(status), *_about_servers(status)):
        console.print(line, soft_wrap=True)
    if status.entries:
        console.print(_table(status))
    else:
        console.print("Nothing is open.")
    for line in _about_files(status):
        console.print(line, soft_wrap=True)


def _about_listener(status: Status) -> list[Text]:
    listener = status.listener
    if listener.running:
        since = f", for {_span(status.at_s - listener.since_s)}" if listener.since_s else ""
        lines = [_text(f"Listening: {listener.command or 'hermes'} (pid {listener.pid}){since}")]
    else:
        lines = [_text("Nobody is listening: answers wait until `hermes listen` runs.", "bold red")]
    if listener.last_poll_s is None:
        lines.append(_text("Telegram: not reached yet"))
    else:
        lines.append(_text(f"Telegram: last reached {_span(status.at_s - listener.last_poll_s)} ago"))
    if listener.trouble:
        lines.append(_text(f"Telegram: {listener.trouble}", "bold red"))
    if listener.phone_locked:
        lines.append(_text("The phone is locked: no answers are taken until `hermes unlock`.", "bold red"))
    return lines


def _about_servers(status: Status) -> list[Text]:
    lines = []
    for server in status.servers:
        wrong = server.trouble and f"trouble: {server.trouble}"
        right = f"version {server.version}" if server.version else "not asked"
        lines.append(_text(f"{server.name} ({server.url}): {wrong or right}", "bold red" if wrong else ""))
    return lines


def _about_files(status: Status) -> list[Text]:
    lines = []
    if status.quarantined:
        files = "file is" if status.quarantined == 1 else "files are"
        place = Path(status.store) / "quarantine"
        lines.append(_text(f"{status.quarantined} {files} in quarantine: {place}", "yellow"))
    lines += [_text(f"Cannot be read: {path}", "bold red") for path in status.damaged]
    lines += [_text(f"Written by a newer Hermes, left alone: {path}", "bold red") for path in status.too_new]
    lines += [_text(f"Warning: {warning}", "yellow") for warning in status.warnings]
    return lines


def _table(status: Status) -> Table:
    table = Table("", "Project", "Question", "State", "Asked", "Time left", box=None, pad_edge=False)
    for entry in status.entries:
        project = PurePath(entry.directory).name or entry.machine
        left = "–" if entry.left_s is None else _span(entry.left_s)
        cells = (entry.code, project, entry.header or entry.session, _state(entry), _span(entry.age_s), left)
        table.add_row(*map(_text, cells))
    return table


def _state(entry: EntryStatus) -> str:
    if entry.phase == "sending" and entry.away:
        return f"answered, waits for {entry.agent} to be back"
    return _PHASES.get(entry.phase, entry.phase)


def _span(seconds: float) -> str:
    """Return a length of time in its two largest units: "3 h 05 min"."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60:02} min"
    return f"{minutes} min" if minutes else f"{whole} s"


def _text(words: str, style: str = "") -> Text:
    # Much of this was written by agents: no markup is made of it, and nothing in it moves the cursor.
    return Text("".join(sign if sign.isprintable() else " " for sign in words), style=style)
