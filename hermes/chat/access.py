"""Access control: only a configured user in the configured chat may do anything.

A stranger gets no reply, so that the bot does not reveal that it is in use. The log names the user, not the content.
"""

import logging

from hermes.model.events import Tap, Text, TextEdit

log = logging.getLogger(__name__)


def permitted(incoming: Tap | Text | TextEdit, *, users: frozenset[int], chat_id: int) -> bool:
    """Tell whether this tap or text comes from one of `users` in the chat; log a warning for any other."""
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
    """Return the id of the chat after the group `old` became the supergroup `new`; `chat_id` may be another group."""
    return new if chat_id == old else chat_id
