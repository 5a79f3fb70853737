"""The names of topics, and the messages about them. Pure."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from hermes.chat.screens.screen import Screen, computer, note, project
from hermes.chat.screens.text import Span, cut, one_line, phrase, plain
from hermes.chat.screens.unseen import visible
from hermes.model.ask import Source

NAME_UNITS: Final = 128
"""Telegram cuts a longer name."""
_LOOKED_AT: Final = 600
_COUNTED: Final = 6
_WHY: Final = 200
_REASONS: Final = {
    "not enough rights": "I may not manage topics in this group",
    "not a forum": "topics are switched off in this chat",
    "asks to wait": "Telegram allows no more new topics for now",
    "thread not found": "topics are switched off in this chat",
}


def topic_name(about: Source, taken: Container[str]) -> str:
    """Return the name of the topic of a session or a project; if it is taken, with a number."""
    name = one_line(about.session_title[:_LOOKED_AT])
    name = name if visible(name) else plain(project(about).text)
    name = cut(name if visible(name) else "Agent", NAME_UNITS - _COUNTED)
    numbered = (f"{name} ({number})" for number in range(2, 1000))
    return name if name not in taken else next((one for one in numbered if one not in taken), name)


def why_no_topic(reason: str) -> str:
    """Return in plain words why Telegram refused a topic."""
    return next((words for known, words in _REASONS.items() if known in reason.lower()), one_line(reason))


def no_topic(why: str, machine: str) -> Screen:
    """Return the message that something comes to the main list of the chat, because it got no topic."""
    where, doctor = computer(machine), Span("hermes doctor", "code")
    return note(
        "⚠️ I can't use a topic for this: ", phrase(why, _WHY), ". It comes here instead. On ", where, ": ", doctor
    )


def takes_no_prompts(agent_name: str) -> Screen:
    """Return the answer to a text in the topic of a session that takes no prompts from this phone."""
    who = phrase(agent_name, 40, empty="This agent")
    return note(who, " takes no prompts from this phone. To answer a question, tap a button or reply to it.")
