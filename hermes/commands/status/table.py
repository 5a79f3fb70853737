"""Show `hermes status` in a terminal, as a table that keeps its shape at any width; `--watch` redraws it.

Colours: yellow: a person should answer or look; cyan: Hermes is delivering an answer; red: something is wrong, or
little time is left; green: all is well.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hermes.commands.status.survey import (
    EntryStatus,
    ListenerStatus,
    MachineStatus,
    PromptsStatus,
    ServerStatus,
    Status,
)
from hermes.errors import StoreError
from hermes.model.ask import folder_name
from hermes.storage.process_lock import works_with

WIDE = 200
"""The number of columns for an output without a width, such as a file or a pipe."""
LOOK_S = 1.0
"""The pause of `--watch` between two looks."""
IDLE = "nobody listens now; the plugin starts a listener when the agent asks"
DEAF_S = 120.0
"""After so long without a successful poll a sign warns of it, here and in `hermes doctor`."""
SILENT_S = 180.0
"""After so long without a successful poll `--check` fails. One comes every half minute, and is saved soon after."""
_LAST_MINUTES_S = 300.0
_LONGEST = 300
_PROJECT = 16
_MACHINE = 20
_UNITS = ((86400, 172800, "d"), (3600, 7200, "h"), (60, 120, "min"))

Row = tuple[Text, ...]


def console() -> Console:
    """Return a console for standard output; if that is no terminal, it has `WIDE` columns and no colours."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=WIDE)


def can_redraw(console: Console) -> bool:
    """Tell whether this is a terminal on which the cursor can be moved."""
    return console.file.isatty() and not console.is_dumb_terminal


def show(status: Status, console: Console) -> None:
    """Print the status once."""
    console.print(view(status))


async def watch(look: Callable[[], Awaitable[Status]], console: Console, *, every_s: float = LOOK_S) -> None:
    """Show the result of `look` every `every_s` seconds until cancelled or SIGTERM; then restore the terminal.

    A store that cannot be read now is said, and looked at again.
    """
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                shown = fitting(await look(), console)
            except StoreError as error:
                shown = Group(plain(str(error), "bold red"))
            live.update(shown, refresh=True)
            await asyncio.sleep(every_s)


def fitting(status: Status, console: Console) -> Group:
    """Return the view with its time, and with as many open asks as fit into this terminal, but at least one."""
    at = Text(f"{datetime.fromtimestamp(status.at_s).astimezone():%H:%M:%S}  Ctrl-C leaves", "dim")
    room = console.size.height
    over = len(console.render_lines(Group(at, view(status)), pad=False)) - room
    most = len(status.entries) if over <= 0 else max(1, len(status.entries) - over - 1)
    return Group(at, view(status, most=most))


def view(status: Status, *, most: int | None = None) -> Group:
    """Return the whole view, with only the first `most` open asks unless that is None."""
    head = [*_about_listener(status), _about_prompts(status.prompts), *map(_about_server, status.servers)]
    parts: list[RenderableType] = [_grid(head), Text()]
    if status.machines:
        parts += [_table_of_machines(status), Text()]
    if status.entries:
        shown = status.entries[:most]
        parts.append(_table(shown))
        if more := len(status.entries) - len(shown):
            parts.append(Text(f"… and {more} more", "dim"))
    else:
        parts.append(Text("Nothing is open.", "dim"))
    if files := _about_files(status):
        parts += [Text(), _grid(files)]
    return Group(*parts)


def _grid(rows: list[Row]) -> Table:
    """Return the rows as a grid, in which a long sentence wraps within its column."""
    grid = Table.grid(padding=(0, 1))
    for row in rows:
        grid.add_row(*row)
    return grid


# --- listener and servers ------------------------------------------------------------------------------------

_GOOD, _BAD, _IDLE, _WARNING = Text("●", "green"), Text("✗", "bold red"), Text("○", "dim"), Text("!", "bold yellow")


def _about_listener(status: Status) -> list[Row]:
    listener, name = status.listener, Text("listener")
    if listener.running:
        since = f"for {span(status.at_s - listener.since_s)}" if listener.since_s else "runs"
        row = _GOOD, name, plain(f"{since} · {listener.command or 'hermes'} (pid {listener.pid})")
    elif listener.idle:
        row = _IDLE, name, Text(IDLE, "dim")
    elif listener.bot_held_by:
        row = _BAD, name, plain(_held(listener, status.store), "bold red")
    else:
        waits = "answers and prompts" if status.prompts.enabled else "answers"
        row = _BAD, name, plain(f"nobody listens: {waits} wait until `hermes listen` runs", "bold red")
    return [row, _about_telegram(listener, status.at_s), *_about_phone(listener), *_about_phone_side(status)]


def _held(listener: ListenerStatus, store: str) -> str:
    if works_with(listener.bot_held_by, store):
        return f"{listener.bot_held_by} runs on, and its folder was removed: it makes the folder again, or leaves"
    return f"{listener.bot_held_by} holds this bot, for another store"


def _about_telegram(listener: ListenerStatus, at_s: float) -> Row:
    name = Text("Telegram")
    if listener.agent_only:
        return _IDLE, name, Text("agent-only: another machine brings the questions of this one to the phone", "dim")
    if listener.trouble:
        return _BAD, name, plain(listener.trouble, "bold red")
    if listener.last_poll_s is None:
        return _IDLE, name, Text("not reached yet", "dim")
    ago = Text(f"reached {span(at_s - listener.last_poll_s)} ago")
    if not listener.running:
        return _IDLE, name, ago
    return _GOOD if at_s - listener.last_poll_s < DEAF_S else _WARNING, name, ago


def _about_phone(listener: ListenerStatus) -> list[Row]:
    rows: list[Row] = []
    if listener.phone_locked:
        locked = "locked: no answers and no prompts are taken until `hermes unlock`"
        rows.append((_BAD, Text("phone"), Text(locked, "bold red")))
    if listener.person_away:
        rows.append(
            (_GOOD, Text("you"), Text("away: questions and notices go to the phone at once, until /desk there"))
        )
    elif listener.post_after_s and not listener.agent_only:
        waits = (
            f"at the computer: questions and notices wait {span(listener.post_after_s)} there first (/away ends that)"
        )
        rows.append((_GOOD, Text("you"), Text(waits)))
    return rows


def _about_phone_side(status: Status) -> list[Row]:
    if not lacks_phone_side(status):
        return []
    nobody = "no machine: questions and answers wait until one with the bot's token runs `hermes listen`"
    return [(_BAD, Text("phone side"), Text(nobody, "bold red"))]


def lacks_phone_side(status: Status) -> bool:
    """Tell whether a machine that is here needs a phone side, and none is.

    The user of an agent-only machine cannot see it, and a listener that starts with the next ask becomes it.
    """
    machines, listener = status.machines, status.listener
    if not machines or listener.agent_only or any(machine.phone_side for machine in machines):
        return False
    return not listener.idle or any(machine.away_since_s is None for machine in machines)


def _about_prompts(prompts: PromptsStatus) -> Row:
    name = Text("prompts")
    if not prompts.enabled:
        return _IDLE, name, Text("from the phone: off", "dim")
    return _GOOD, name, plain(f"from the phone: on ({', '.join(prompts.projects) or 'all projects'})")


def _about_server(server: ServerStatus) -> Row:
    name = plain(server.name)
    if server.idle:
        return _IDLE, name, plain(server.trouble, "dim")
    if server.trouble:
        return _BAD, name, plain(server.trouble, "bold red")
    return _GOOD, name, plain(f"version {server.version} · {server.url}")


def _about_files(status: Status) -> list[Row]:
    rows: list[Row] = [(_BAD, plain(status.store_trouble, "bold red"))] if status.store_trouble else []
    if status.quarantined:
        files = "file is" if status.quarantined == 1 else "files are"
        place = Path(status.store) / "quarantine"
        rows.append((_WARNING, plain(f"{status.quarantined} {files} in quarantine: {place}", "yellow")))
    rows += [(_BAD, plain(f"cannot be read: {path}", "bold red")) for path in status.damaged]
    rows += [(_BAD, plain(f"written by a newer Hermes, left alone: {path}", "bold red")) for path in status.too_new]
    return rows + [(_WARNING, plain(warning, "yellow")) for warning in status.warnings]


# --- machines ------------------------------------------------------------------------------------------------


def _table_of_machines(status: Status) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    table.add_column("Machine", max_width=_MACHINE)
    table.add_column("Version", no_wrap=True)
    table.add_column("State", no_wrap=True)
    table.add_column("Servers")
    for machine in status.machines:
        sign, state = _state_of_machine(machine, status.at_s)
        servers = ", ".join(f"{one.name}{'' if one.connected else ' (not connected)'}" for one in machine.servers)
        version = _one_line(plain(machine.version))
        table.add_row(sign, _one_line(plain(machine.name)), version, state, _one_line(plain(servers or "–")))
    return table


def _state_of_machine(machine: MachineStatus, at_s: float) -> tuple[Text, Text]:
    this = " · this machine" if machine.this else ""
    if machine.away_since_s is not None:
        return _IDLE, Text(f"{_away(machine, at_s)}{this}", "yellow")
    return _GOOD, Text(("here · phone side" if machine.phone_side else "here") + this)


def _away(machine: MachineStatus, at_s: float) -> str:
    return f"away for {span(at_s - (machine.away_since_s or at_s))}"


# --- open asks ----------------------------------------------------------------------------------------------

STATES = {
    "matching": Text("just coming in", "dim"),
    "open": Text("waits for you", "bold yellow"),
    "sending": Text("on its way", "cyan"),
    "settled": Text("done", "dim"),
}


def _table(entries: tuple[EntryStatus, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True, style="dim")
    table.add_column("Age", no_wrap=True, justify="right")
    table.add_column("Project", max_width=_PROJECT)
    table.add_column("Question")
    table.add_column("State", no_wrap=True)
    table.add_column("Left", no_wrap=True, justify="right")
    for entry in entries:
        project = _one_line(plain(folder_name(entry.directory) or entry.machine))
        cells = project, _question(entry), _state(entry), _left(entry)
        table.add_row(plain(entry.code or "–"), _short(entry.age_s), *cells)
    return table


def _question(entry: EntryStatus) -> Text:
    header, question = entry.header[:_LONGEST], entry.question[:_LONGEST]
    if entry.kind == "permission":
        return _one_line(Text.assemble(plain(question), " ", plain(header, "bold")))
    if not entry.questions:
        return _one_line(plain(entry.session))
    more = f" (+{entry.questions - 1} more)" if entry.questions > 1 else ""
    colon = ": " if header and question else ""
    return _one_line(Text.assemble(plain(header, "bold"), colon, plain(question), (more, "dim")))


def _one_line(text: Text) -> Text:
    """Make the text one line that is cut in a narrow terminal, so that the table keeps its shape; return it."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _state(entry: EntryStatus) -> Text:
    if entry.phase == "sending" and entry.away:
        return Text("agent is away", "bold red")
    if entry.phase == "open" and not entry.answerable:
        return Text("computer only", "yellow")
    if entry.phase == "open" and not entry.posted:
        return Text("not on your phone yet", "yellow")
    return STATES[entry.phase]


def _left(entry: EntryStatus) -> Text:
    if entry.left_s is None:
        return Text("–", "dim")
    return Text(_short(entry.left_s), "bold red" if entry.left_s < _LAST_MINUTES_S else "")


# --- words --------------------------------------------------------------------------------------------------


def span(seconds: float) -> str:
    """Return a length of time in its two largest units: "3 h 05 min"."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60:02} min"
    return f"{minutes} min" if minutes else f"{whole} s"


def _short(seconds: float) -> str:
    """Return a length of time in one unit: "65 min", "5 h"."""
    whole = max(0, int(seconds))
    return next((f"{whole // unit_s} {unit}" for unit_s, least_s, unit in _UNITS if whole >= least_s), f"{whole} s")


def plain(words: str, style: str = "") -> Text:
    """Return a text of words that others wrote. Nothing in it is read as markup or moves the cursor."""
    return Text(printable(words), style=style)


def printable(words: str) -> str:
    """Return the words with a space for each sign that could move the cursor or turn the reading direction."""
    return "".join(sign if sign.isprintable() else " " for sign in words)


# --- for monitoring -------------------------------------------------------------------------------------


def verdict(status: Status) -> tuple[bool, str]:
    """Return whether something is wrong, and one line that names each problem or says that all is well.

    Another machine that is away is named, and is nothing wrong: it may be switched off.
    """
    wrong = _wrong(status)
    notes = [f"{server.name}: {server.trouble}" for server in status.servers if server.trouble]
    if status.listener.phone_locked:
        notes.append("the phone is locked")
    others = [one for one in status.machines if one.away_since_s is not None and not one.this]
    notes += [f"{one.name} is {_away(one, status.at_s)}" for one in others]
    is_well = f"all is well, {len(status.entries)} open"
    line = "; ".join([*(wrong or [is_well]), *notes, *status.warnings])
    return bool(wrong), printable(line)


def _wrong(status: Status) -> list[str]:
    listener, wrong = status.listener, []
    if listener.bot_held_by:
        wrong.append(_held(listener, status.store))
    elif not listener.running and not listener.idle:
        wrong.append("nobody is listening")
    if lacks_phone_side(status):
        wrong.append("no machine is the phone side")
    if listener.trouble:
        wrong.append(listener.trouble)
    if listener.idle or listener.agent_only:
        pass  # Telegram is asked when the next listener runs, or by another machine
    elif listener.last_poll_s is None:
        wrong.append("Telegram was not reached yet")
    elif status.at_s - listener.last_poll_s > SILENT_S:
        wrong.append(f"Telegram was last reached {span(status.at_s - listener.last_poll_s)} ago")
    wrong += [status.store_trouble] if status.store_trouble else []
    wrong += [f"{path} cannot be read" for path in status.damaged]
    wrong += [f"{path} was written by a newer Hermes" for path in status.too_new]
    return wrong
