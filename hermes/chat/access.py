"""Who may do anything at all: a configured user in the configured chat.

A stranger gets nothing, not even a word that tells that somebody is there; the log says who tried, not what.
"""

import logging

from hermes.model.events import Tap, Text

log = logging.getLogger(__name__)


def permitted(incoming: Tap | Text, *, users: frozenset[int], chat_id: int) -> bool:
    """Whether this tap or text comes from one of `users` in the chat; who else it was is logged."""
    if incoming.user.id in users and incoming.chat_id == chat_id:
        return True
    kind = "tap" if isinstance(incoming, Tap) else "text"
    log.warning(
        "a %s of user %d in chat %d was ignored (update %d): not a configured user in the configured chat",
        kind,
        incoming.user.id,
        incoming.chat_id,
        incoming.update_id,
    )
    return False


def followed(chat_id: int, *, old: int, new: int) -> int:
    """The chat's id after the group `old` became the supergroup `new`; it may be another group."""
    return new if chat_id == old else chat_id
