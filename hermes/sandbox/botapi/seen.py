"""Convert a message of the world to the value that a person sees."""

from typing import Any

from hermes.sandbox.botapi.keyboard import Markup
from hermes.sandbox.botapi.world import Message, World
from hermes.sandbox.phone_values import Button, Entity, Rows, ShownMessage, Version


def shown(world: World, message: Message) -> ShownMessage:
    """Return this message with its entities, its buttons and all its versions."""
    versions = [
        Version(state.text, _entities(state), _rows(state.markup), at_s)
        for at_s, state in world.history(message)
        if not state.deleted
    ]
    linked = any(entity["type"] in {"url", "text_link"} for entity in message.entities)
    return ShownMessage(
        chat_id=message.chat_id,
        message_id=message.message_id,
        sender_id=message.sender_id,
        from_bot=message.sender_id == world.me.id,
        kind=next(iter(message.content), "text"),
        date=message.date,
        text=message.text,
        entities=_entities(message),
        rows=_rows(message.markup),
        silent=message.silent,
        edited=message.edit_date is not None,
        deleted=message.deleted,
        reply_to=message.reply_to,
        thread_id=message.thread_id,
        force_reply=message.markup.force_reply,
        link_preview=linked and not (message.preview or {}).get("is_disabled", False),
        versions=tuple(versions),
    )


def _entities(message: Message) -> tuple[Entity, ...]:
    return tuple(Entity(e["type"], e["offset"], e["length"], e.get("url"), e.get("language")) for e in message.entities)


def _rows(markup: Markup) -> Rows:
    return tuple(tuple(map(_button, row)) for row in markup.rows)


def _button(sent: dict[str, Any]) -> Button:
    copied = sent.get("copy_text") or {}
    return Button(sent["text"], sent.get("callback_data"), sent.get("url"), sent.get("style"), copied.get("text"))
