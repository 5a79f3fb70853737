"""Which ask a signal belongs to, and what two accounts of one ask come to. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hermes.core.ends import is_refused

if TYPE_CHECKING:
    from hermes.model.ask import Ask, Source
    from hermes.model.entry import Entry


def merged(known: Ask, told: Ask) -> Ask:
    """Keep what is shown; learn what was not known: the request, the server that lists it, the titles."""
    ours, theirs = known.source, told.source
    source = replace(
        ours,
        **{
            name: getattr(ours, name) or getattr(theirs, name)
            for name in (
                "request_id",
                "call_id",
                "message_id",
                "session_title",
                "root_title",
                "last_text",
            )
        },
        # A server may have another name since, and another word for the folder: what lists the request now is right.
        server=theirs.server or ours.server,
        directory=(theirs.directory if theirs.server else "") or ours.directory or theirs.directory,
    )
    if known.permission is not None and known.permission.partial and told.permission is not None:
        known = replace(known, permission=told.permission, questions=told.questions)
    if ours.request_id is None and theirs.request_id is not None:
        return replace(told, source=_with_titles(source, theirs))
    return replace(known, source=source)


def _with_titles(source: Source, told: Source) -> Source:
    return replace(source, directory=told.directory or source.directory)


def awaits_news(entry: Entry) -> bool:
    """Tell whether our answer ended this ask while its call goes on: its agent tells later that the call has ended.

    No such news comes of a call that was refused, or whose end was known by it.
    """
    outcome = entry.state.outcome
    if outcome is None or outcome.kind != "answered" or outcome.proof == "plugin":
        return False
    return entry.ask.source.call_id is not None and not is_refused(entry)
