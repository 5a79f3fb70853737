"""Decide which topic of the chat belongs to a session. Pure.

    mode      a topic for              its key
    off       nothing                  –
    project   the folder of a project  machine and folder
    session   a session                machine, agent and session id; a subagent belongs to its root

A session or a folder that is not known yet has no topic: its messages stand in the main list of the chat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal

from hermes.model.ask import Source
from hermes.model.chat_memory import Topic

TopicMode = Literal["off", "project", "session"]

MOST: Final = 100
"""So many topics are remembered, those that were used last. For the session of another one, a new topic is made."""


def about(source: Source, mode: TopicMode) -> Source | None:
    """Return the session or the project to whose topic the messages about `source` belong; None: to the main list."""
    if mode == "project" and source.directory:
        folder = source.directory.rstrip("/\\") or source.directory
        return Source("", source.machine, "", folder, host=source.host)
    root = root_of(source)
    return root if mode == "session" and root.session_id else None


def root_of(source: Source) -> Source:
    """Return the session that a person writes to: a subagent is over with its task, and its root goes on."""
    if source.root_id:
        source = replace(source, session_id=source.root_id, session_title=source.root_title, root_title="", root_id="")
    return replace(source, request_id=None, call_id=None, message_id=None, last_text="")


def find(topics: Iterable[Topic], chat_id: int, wanted: Source) -> Topic | None:
    """Return the topic of this session or project in this chat, or None."""
    return next((one for one in topics if one.chat_id == chat_id and _key(one.about) == _key(wanted)), None)


def at(topics: Iterable[Topic], chat_id: int, thread_id: int) -> Topic | None:
    """Return the topic with this id in this chat; None if it is not one of ours."""
    return next((one for one in topics if (one.chat_id, one.thread_id) == (chat_id, thread_id)), None)


def kept(topics: Sequence[Topic], latest: Topic) -> tuple[Topic, ...]:
    """Return the topics to remember after `latest` was made or used."""
    others = [one for one in topics if (one.chat_id, one.thread_id) != (latest.chat_id, latest.thread_id)]
    return (*others, latest)[-MOST:]


def is_of(topic: Topic, source: Source) -> bool:
    """Tell whether the messages about this session belong to this topic."""
    mode: TopicMode = "session" if topic.about.session_id else "project"
    wanted = about(source, mode)
    return wanted is not None and _key(wanted) == _key(topic.about)


def _key(wanted: Source) -> tuple[str, ...]:
    if wanted.session_id:
        return wanted.session
    return "", wanted.machine, wanted.directory
