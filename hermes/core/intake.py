"""Which ask a signal belongs to, and what two accounts of one ask come to. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.model.ask import Ask, Source


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
