"""The answer to /status, and the messages about a database that cannot be reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hermes.chat.screens.presence import in_status
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


@dataclass(frozen=True, slots=True)
class Listening:
    """The machine that is the phone side, its servers (name, whether it is connected), and all machines if several.

    `is_away`, `post_after_s`: whether the person has said so, and how long things wait for a person at the desk.
    """

    machine: str
    servers: tuple[tuple[str, bool], ...]
    machines: tuple[Machine, ...] = ()
    is_away: bool = False
    post_after_s: float = 0.0


def status(entries: Sequence[Entry], shown: Listening, now_s: float, look: Look) -> Screen:
    """Return the answer to /status: the open asks, the machines, and the servers of each."""
    count = f"{len(entries)} open" if entries else "Nothing is open"
    since = f", the oldest since {clock(entries[0].asked_s, look, near_s=now_s)}" if entries else ""
    listed = [line("· ", *subject(entry.ask), " · ", project(entry.ask.source)) for entry in entries[:10]]
    there = _machines(shown.machines, now_s, look) if shown.machines else _servers(shown.servers)
    opening = line(Span(f"{count}{since}", "bold"), " · listening on ", computer(shown.machine))
    presence = line(in_status(is_away=shown.is_away, post_after_s=shown.post_after_s))
    return draw(lambda _: [opening, *listed, *there, presence])


def _servers(servers: Sequence[tuple[str, bool]]) -> list[Line]:
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
