"""The answers to /status, /away and /desk, and the messages about a database that cannot be reached. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hermes.chat.screens.screen import Look, Screen, clock, computer, draw, note, project, span, subject
from hermes.chat.screens.text import Line, Span, line, phrase
from hermes.model.entry import Entry
from hermes.model.machine import Machine

_NAME = 40
AWAY: Final = note("🚶 You are away: questions and notices come here at once, until you send /desk.")
"""The answer to /away."""


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


def store_away(machine: str) -> Screen:
    """Return the warning that this machine, which had the phone, cannot reach the database that several share.

    It cannot know whether the others can: one of them may have taken the phone over.
    """
    said = " I can't reach the database of your machines. Unless another of them has the phone now, "
    return note("⚠️ On ", computer(machine), said, "taps don't count yet, and what agents ask waits.")


def store_back(machine: str) -> Screen:
    """Return the message that this machine reaches the database again."""
    return note("✅ The database of your machines is back for ", computer(machine), ".")


def at_desk(post_after_s: float, machine: str) -> Screen:
    """Return the answer to /desk: how long things wait at the computer, or how to let them wait."""
    if post_after_s:
        waiting = f"🖥 Questions and notices wait {span(post_after_s)} for you at the computer, then they come here."
        return note(waiting, " When you leave, send /away.")
    where = computer(machine)
    setting, section = Span('post_after = "30s"', "code"), Span("[questions]", "code")
    return note(
        "🖥 You are at the computer. Questions and notices still come here at once, because nothing is set to wait. "
        "To let them wait there first, set ", setting, " below ", section, " in the configuration on ", where, ".",
    )  # fmt: skip


def in_status(*, is_away: bool, post_after_s: float) -> str:
    """Return the line of /status, "" if nothing ever waits."""
    if is_away:
        return "🚶 You are away: everything comes at once (/desk ends that)"
    return f"🖥 Everything waits {span(post_after_s)} at the computer first (/away ends that)" if post_after_s else ""
