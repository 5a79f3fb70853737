"""The answer to /status, and the messages about a database that cannot be reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hermes.chat.screens.screen import Look, Screen, clock, computer, draw, note, project, subject
from hermes.chat.screens.text import Line, Span, line, phrase
from hermes.model.entry import Entry
from hermes.model.machine import Machine

_NAME = 40
STORE_AWAY: Final = note(
    "⚠️ I can't reach the database of your machines. What agents ask waits there, and taps don't count yet."
)
STORE_BACK: Final = note(
    "✅ The database of your machines is back. If you tapped something meanwhile, please tap again."
)


def status(
    entries: Sequence[Entry],
    machine: str,
    servers: Mapping[str, bool],
    machines: Sequence[Machine],
    presence: str,
    now_s: float,
    look: Look,
) -> Screen:
    """Return the answer to /status: the open asks, where the person is, and all machines, each with its servers.

    `machine` is the phone side. Without several machines, its `servers` are shown, and whether each is connected.
    """
    count = f"{len(entries)} open" if entries else "Nothing is open"
    since = f", the oldest since {clock(entries[0].asked_s, look, near_s=now_s)}" if entries else ""
    listed = [line("· ", *subject(entry.ask), " · ", project(entry.ask.source)) for entry in entries[:10]]
    there = _machines(machines, now_s, look) if machines else _servers(servers.items())
    opening = line(Span(f"{count}{since}", "bold"), " · listening on ", computer(machine))
    return draw(lambda _: [opening, *listed, *there, line(presence)])


def _servers(servers: Iterable[tuple[str, bool]]) -> list[Line]:
    return [
        line("✅ " if is_there else "⚠️ ", phrase(name, _NAME), "" if is_there else " is not there")
        for name, is_there in servers
    ]


def _machines(machines: Sequence[Machine], now_s: float, look: Look) -> list[Line]:
    lines = []
    for one in machines:
        name = phrase(one.name, _NAME, "bold")
        if one.is_away:
            since = clock(now_s - one.silent_s, look, near_s=now_s)
            lines.append(line("💤 ", name, f" is away since {since}"))
        else:
            lines += [line("💻 ", name, " · has the phone" if one.is_phone else ""), *_servers(one.servers)]
    return lines
