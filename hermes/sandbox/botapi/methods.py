"""The methods of the Bot API except getUpdates: each takes the world and the parameters, and returns a result.

The caller holds the world's lock. A method that refuses a request raises ApiError and changes nothing.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hermes.sandbox.botapi.access import chat_of, message_of, replied_thread, reply_target, text_of, thread_of
from hermes.sandbox.botapi.keyboard import Markup, parse_inline, parse_markup
from hermes.sandbox.botapi.shapes import full_chat_json, me_json, member_json, message_json, standing_json
from hermes.sandbox.botapi.text import MAX_CAPTION_UNITS, MAX_TEXT_UNITS, Entity, units
from hermes.sandbox.botapi.topics import TOPIC_METHODS
from hermes.sandbox.botapi.wire import ApiError, Described, Params, SentFile, refused
from hermes.sandbox.botapi.world import Chat, Message, World
from hermes.sandbox.phone_values import Toast

Method = Callable[[World, Params], Any]

DELETABLE_S = 48 * 3600
ANSWERABLE_S = 60.0  # a client shows a tap's spinner for about this time
MAX_ANSWER_CHARS = 200
MAX_COMMANDS, MAX_DESCRIPTION = 100, 256
MAX_FILE_BYTES = 50 * 1024 * 1024
MARKUP_ERROR = "Can't parse reply keyboard markup JSON object"
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"
UNCHANGED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a "
    "current content and reply markup of the message"
)
ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
    }
    | {"choose_sticker", "find_location", "record_video_note", "upload_video_note"}
)


# messages


def send_message(world: World, params: Params) -> Any:
    """Handle sendMessage: return the Message."""
    if not params.text("text"):
        raise refused("Message text is empty")
    text, entities = _text(params)
    return _send(world, params, "text messages", text=text, entities=entities, preview=_preview(params))


def send_document(world: World, params: Params) -> Any:
    """Handle sendDocument, with an uploaded file or the id of an earlier one: return the Message."""
    sent = _uploaded(params)
    number = len(world.calls.log)
    content = {
        "document": {
            "file_id": f"demo-file-{number}",
            "file_unique_id": f"demo-{number}",
            "file_name": sent.name,
            "mime_type": sent.content_type,
            "file_size": sent.size,
        }
    }
    caption, entities = text_of(
        params, "caption", "caption_entities", limit=MAX_CAPTION_UNITS, too_long="Message caption is too long"
    )
    return _send(world, params, "documents", text=caption, entities=entities, content=content)


def _uploaded(params: Params) -> SentFile:
    given = params.text("document")
    sent = params.files.get(given.removeprefix("attach://") or "document")
    if sent is not None:
        if sent.size > MAX_FILE_BYTES:
            raise ApiError(413, "Request Entity Too Large")
        if not sent.size:
            raise refused("file must be non-empty")
        return sent
    if given.startswith("demo-file-"):
        return SentFile("file", "application/octet-stream", 0)
    if not given:
        raise refused("There is no document in the request")
    raise refused("wrong remote file identifier specified: Wrong string length")


def _text(params: Params) -> tuple[str, tuple[Entity, ...]]:
    return text_of(params, "text", "entities", limit=MAX_TEXT_UNITS, too_long="Message is too long")


def _preview(params: Params) -> dict[str, Any] | None:
    options = params.structure("link_preview_options", "Can't parse link preview options JSON object")
    if options is None:
        return {"is_disabled": True} if params.flag("disable_web_page_preview") else None
    if not isinstance(options, dict):
        raise refused("Object expected as link preview options")
    return options or None


def _send(world: World, params: Params, kind: str, **what: Any) -> Any:
    markup = parse_markup(params.structure("reply_markup", MARKUP_ERROR))
    chat = chat_of(world, params, "write")
    if chat.standing == "restricted":
        raise refused(f"not enough rights to send {kind} to the chat")
    thread_id = thread_of(world, params, chat)
    reply_to = reply_target(world, params, chat)
    if thread_id is None and reply_to is not None:
        thread_id = replied_thread(world, chat, reply_to)
    world.rates.take(chat.id, group=chat.kind != "private", now=world.now())
    message = Message(
        chat.id,
        world.next_message_id(chat.id),
        world.me.id,
        int(world.now()),
        markup=markup,
        reply_to=reply_to,
        thread_id=thread_id,
        silent=params.flag("disable_notification"),
        protected=params.flag("protect_content"),
        **what,
    )
    return message_json(world, world.put(message))


def edit_message_text(world: World, params: Params) -> Any:
    """Handle editMessageText: return the Message. Without a reply_markup the buttons are removed."""
    if not params.text("text"):
        raise refused("Message text is empty")
    text, entities = _text(params)
    markup = parse_inline(params.structure("reply_markup", MARKUP_ERROR))
    message = _editable(world, params)
    if message.content:
        raise refused("there is not text in the message to edit")
    return _edit(world, message, text, entities, markup, preview=_preview(params))


def edit_message_reply_markup(world: World, params: Params) -> Any:
    """Handle editMessageReplyMarkup: return the Message. Without a reply_markup the buttons are removed."""
    markup = parse_inline(params.structure("reply_markup", MARKUP_ERROR))
    message = _editable(world, params)
    return _edit(world, message, message.text, message.entities, markup, preview=message.preview)


def _editable(world: World, params: Params) -> Message:
    chat = chat_of(world, params, "edit")
    message = message_of(world, params, chat, "message to edit")
    if message.sender_id != world.me.id or not message.markup.editable or chat.migrated_to is not None:
        raise refused("Message can't be edited")
    return message


def _edit(
    world: World,
    message: Message,
    text: str,
    entities: tuple[Entity, ...],
    markup: Markup,
    *,
    preview: dict[str, Any] | None,
) -> Any:
    if message.says(text, entities, markup):
        raise refused(UNCHANGED)
    changed = replace(message, text=text, entities=entities, markup=markup, preview=preview, edit_date=int(world.now()))
    return message_json(world, world.put(changed))


def delete_message(world: World, params: Params) -> Any:
    """Handle deleteMessage: return true. It takes own messages and, in private chats, the person's, for 48 hours."""
    chat = chat_of(world, params, "write")
    message = message_of(world, params, chat, "message to delete")
    if message.sender_id != world.me.id and chat.kind != "private":
        raise refused("Message can't be deleted")
    if world.now() - message.date > DELETABLE_S:
        raise refused("Message can't be deleted for everyone")
    world.delete(message)
    return True


def send_chat_action(world: World, params: Params) -> Any:
    """Handle sendChatAction: return true. As in DialogActionManager.cpp, access to the chat is enough."""
    if params.text("action").lower() not in ACTIONS:
        raise refused("Wrong parameter action in request")
    thread_of(world, params, chat_of(world, params, "write"))
    return True


def answer_callback_query(world: World, params: Params) -> Any:
    """Handle answerCallbackQuery: return true, once for each tap, within `ANSWERABLE_S`."""
    text = params.text("text")
    if units(text) > MAX_ANSWER_CHARS:
        raise refused("MESSAGE_TOO_LONG")
    tap_id = params.text("callback_query_id")
    tap = world.unanswered.get(tap_id)
    if tap is None or world.now() - tap.at_s > ANSWERABLE_S:
        raise refused(TOO_OLD)
    del world.unanswered[tap_id]
    alert = params.flag("show_alert")
    world.toasts.append(Toast(tap_id, tap.user_id, tap.chat_id, tap.message_id, tap.data, text, alert, world.now()))
    world.bump()
    return True


def get_file(world: World, params: Params) -> Any:
    """Handle getFile: return the File, whose path works for an hour."""
    return world.files.get(params.text("file_id"), world.now())


# the bot and its chats


def get_me(world: World, _: Params) -> Any:
    """Handle getMe: return the User."""
    return me_json(world)


def get_chat(world: World, params: Params) -> Any:
    """Handle getChat: return the ChatFullInfo."""
    return full_chat_json(world, chat_of(world, params, "read"))


def get_chat_member(world: World, params: Params) -> Any:
    """Handle getChatMember: return the ChatMember."""
    chat = chat_of(world, params, "read")
    user_id = params.integer("user_id")
    if user_id <= 0:
        raise refused("Invalid user_id specified")
    if user_id == world.me.id:
        return standing_json(world, chat)
    if user_id not in world.users or not _in_chat(chat, user_id):
        raise refused("PARTICIPANT_ID_INVALID")
    return member_json(world, world.users[user_id])


def _in_chat(chat: Chat, user_id: int) -> bool:
    return chat.kind != "private" or chat.id == user_id


def set_my_commands(world: World, params: Params) -> Any:
    """Handle setMyCommands: return true. All scopes share one list of commands."""
    commands = params.structure("commands", "Can't parse commands JSON object")
    if not isinstance(commands, list):
        raise refused("Expected an Array of BotCommand")
    if len(commands) > MAX_COMMANDS:
        raise refused("BOT_COMMANDS_TOO_MUCH")
    world.commands = [_command(value) for value in commands]
    world.bump()
    return True


def _command(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not isinstance(value.get("command"), str):
        raise refused("Can't parse BotCommand: expected an Object")
    command = value["command"].lower().removeprefix("/")
    if not re.fullmatch(r"[a-z0-9_]{1,32}", command):
        raise refused("BOT_COMMAND_INVALID")
    description = value.get("description")
    if not isinstance(description, str) or not 1 <= len(description.strip()) <= MAX_DESCRIPTION:
        raise refused("BOT_COMMAND_DESCRIPTION_INVALID")
    return {"command": command, "description": description.strip()}


def get_my_commands(world: World, _: Params) -> Any:
    """Handle getMyCommands: return the commands."""
    return world.commands


def delete_my_commands(world: World, _: Params) -> Any:
    """Handle deleteMyCommands: return true."""
    world.commands = []
    return True


# the webhook, which is never called: it only makes getUpdates fail


def set_webhook(world: World, params: Params) -> Any:
    """Handle setWebhook: return true. An empty URL deletes the webhook."""
    url = params.text("url")
    if not url:
        return delete_webhook(world, params)
    if not re.match(r"https://[^/\s]+", url, re.IGNORECASE):
        raise refused("bad webhook: An HTTPS URL must be provided for webhook")
    if params.flag("drop_pending_updates"):
        world.updates.clear()
    already, world.webhook = world.webhook == url, url
    world.bump()
    return Described(result=True, description="Webhook is already set" if already else "Webhook was set")


def delete_webhook(world: World, params: Params) -> Any:
    """Handle deleteWebhook: return true."""
    if params.flag("drop_pending_updates"):
        world.updates.clear()
    had, world.webhook = world.webhook, ""
    world.bump()
    return Described(result=True, description="Webhook was deleted" if had else "Webhook is already deleted")


def get_webhook_info(world: World, _: Params) -> Any:
    """Handle getWebhookInfo: return the WebhookInfo."""
    pending = world.updates.pending(world.now())
    return {"url": world.webhook, "has_custom_certificate": False, "pending_update_count": pending}


METHODS: dict[str, Method] = {
    "sendMessage": send_message,
    "sendDocument": send_document,
    "editMessageText": edit_message_text,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "deleteMessage": delete_message,
    "sendChatAction": send_chat_action,
    "answerCallbackQuery": answer_callback_query,
    "getFile": get_file,
    "getMe": get_me,
    "getChat": get_chat,
    "getChatMember": get_chat_member,
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "deleteMyCommands": delete_my_commands,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
    **TOPIC_METHODS,
}
