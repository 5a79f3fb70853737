"""Words about where the person is: at the computer, or away. Pure."""

from __future__ import annotations

from typing import Final

from hermes.chat.screens.screen import Screen, computer, note, span
from hermes.chat.screens.text import Span

AWAY: Final = note("🚶 You are away: questions and notices come here at once, until you send /desk.")
"""The answer to /away."""


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
