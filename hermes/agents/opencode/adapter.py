"""OpenCode's shapes and Hermes' words: payloads become signals, decisions become answers. Pure.

The same request object comes by three ways, and all of them end here: the plugin's hook (`read`), the event
stream (`read_event`) and the list of pending questions (`read_request`). Whatever has another shape is a
PayloadError that says where; values never stand in it, since errors end up in logs.

Labels are kept to the letter, with one exception: JSON can carry half of a surrogate pair, UTF-8 cannot. Such
halves become U+FFFD here, so that nothing later trips over them. The index stays the option's identity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hermes.agents.fields import Record, id_of, record_of, sound, text_of, words_of
from hermes.agents.opencode.permissions import completed, read_permission, read_reply
from hermes.agents.questions import labels, read_answers, read_questions
from hermes.errors import PayloadError
from hermes.model.answer import Decision
from hermes.model.ask import Ask, Capabilities, Option, Permission, Question, Source
from hermes.model.signals import Announced, Asked, Busy, Dismissed, Quiet, Replied, Signal

AGENT = "opencode"

# A reject ends the turn; a reply without labels lets the model go on with "Unanswered".
capabilities = Capabilities(agent_name="OpenCode", reject_stops=True, can_skip=True, desk_stays_open=True)
goodbye: str | None = None

# --- what came: payloads to signals -------------------------------------------------------------------------


def read(payload: object, *, machine: str) -> Signal:
    """Understand one payload of `hermes hook opencode` (see `hermes.agents.registry.Adapter.read`).

    Its shape: `{"type", "properties", "directory", "context": {"title", "rootTitle", "lastText"}}`.
    """
    record = record_of(payload, "payload")
    context = record_of(record.get("context") or {}, "context")
    origin = Source(
        agent=AGENT,
        machine=machine,
        session_id="",
        directory=words_of(record, "directory", "payload"),
        session_title=words_of(context, "title", "context"),
        root_title=words_of(context, "rootTitle", "context"),
        last_text=words_of(context, "lastText", "context"),
    )
    kind = text_of(record, "type", "payload")
    if kind == "permission.asked":
        return Asked(read_wish(record.get("properties"), origin, context.get("input")))
    return read_event(kind, record.get("properties"), origin)


def read_event(kind: str, properties: object, origin: Source) -> Signal:
    """Understand one bus event. `origin` is a Source in which only what the event itself tells is missing.

    Raises:
        PayloadError: the kind is not in KINDS, or its properties have another shape.
    """
    if kind not in _READERS:
        raise PayloadError(f"OpenCode: no word of {sound(kind[:80])!r} is known")
    return _READERS[kind](record_of(properties, kind), kind, origin)


def read_request(properties: object, origin: Source, *, answerable: bool = True) -> Ask:
    """Understand a request: `{id, sessionID, questions, tool?: {messageID, callID}}`.

    Raises:
        PayloadError: it has another shape.
    """
    where = "request"
    record = record_of(properties, where)
    return _ask(_source(record, where, origin), record.get("questions"), where, answerable=answerable)


def _source(record: Record, where: str, origin: Source) -> Source:
    """Read where a request comes from: its own id, its session's, and the call that it stands for."""
    tool = record_of(record.get("tool") or {}, f"{where}.tool")
    return replace(
        origin,
        session_id=id_of(record, "sessionID", where),
        request_id=id_of(record, "id", where),
        call_id=words_of(tool, "callID", f"{where}.tool") or None,
        message_id=words_of(tool, "messageID", f"{where}.tool") or None,
    )


def _asked(record: Record, kind: str, origin: Source) -> Signal:
    # What the v2 engine asks is answered by routes of its own, so only the desk can do it.
    return Asked(read_request(record, origin, answerable=kind == "question.asked"))


def _wished(record: Record, _: str, origin: Source) -> Signal:
    return Asked(read_wish(record, origin))


def read_wish(properties: object, origin: Source, given: object = None) -> Ask:
    """Understand a permission request; `given` is what the tool was given (its part's `state.input`), or None.

    Raises:
        PayloadError: it has another shape.
    """
    record = record_of(properties, "permission")
    asked = Ask(_source(record, "permission", origin), (), replace(capabilities, can_skip=False))
    return with_wish(asked, completed(read_permission(record), given))


def with_wish(ask: Ask, wish: Permission) -> Ask:
    """Return the ask for this permission: one question, named by the beginning of what is wanted."""
    name = " ".join(wish.what.split())
    allowing = Question("May it?", header=name, options=(Option("Allow once"),))
    return replace(ask, questions=(allowing,), permission=wish)


def _permitted(record: Record, kind: str, _: Source) -> Signal:
    return Replied(id_of(record, "requestID", kind), id_of(record, "sessionID", kind), read_reply(record, kind))


def _replied(record: Record, kind: str, _: Source) -> Signal:
    answers = read_answers(record.get("answers"), kind)
    return Replied(id_of(record, "requestID", kind), id_of(record, "sessionID", kind), answers)


def _dismissed(record: Record, kind: str, _: Source) -> Signal:
    return Dismissed(id_of(record, "requestID", kind), id_of(record, "sessionID", kind))


def _announced(record: Record, kind: str, origin: Source) -> Signal:
    """Read `tool.execute.before`: the request does not exist yet, and for bad arguments never will."""
    if record.get("tool") != "question":
        raise PayloadError(f"OpenCode: {kind} of a tool other than question")
    args = record_of(record.get("args"), f"{kind}.args")
    call_id, session_id = id_of(record, "callID", kind), id_of(record, "sessionID", kind)
    source = replace(origin, session_id=session_id, call_id=call_id)
    return Announced(_ask(source, args.get("questions"), f"{kind}.args", answerable=True))


def _quiet(record: Record, kind: str, _: Source) -> Signal:
    # A session.error may name no session: it then stops none.
    return Quiet(words_of(record, "sessionID", kind))


def _deleted(record: Record, kind: str, _: Source) -> Signal:
    return Quiet(id_of(record_of(record.get("info"), f"{kind}.info"), "id", f"{kind}.info"))


def _busy(record: Record, kind: str, _: Source) -> Signal:
    if record_of(record.get("status"), f"{kind}.status").get("type") != "busy":
        raise PayloadError(f"OpenCode: {kind} of a session that is not busy")
    return Busy(id_of(record, "sessionID", kind))


_READERS: Mapping[str, Callable[[Record, str, Source], Signal]] = {
    "question.asked": _asked,
    "question.replied": _replied,
    "question.rejected": _dismissed,
    "question.v2.asked": _asked,
    "question.v2.replied": _replied,
    "question.v2.rejected": _dismissed,
    "tool.execute.before": _announced,
    "permission.asked": _wished,
    "permission.replied": _permitted,
    "session.idle": _quiet,
    "session.error": _quiet,
    "session.deleted": _deleted,
    "session.status": _busy,
}
KINDS = frozenset(_READERS)


def _ask(source: Source, questions: object, where: str, *, answerable: bool) -> Ask:
    read = read_questions(questions, f"{where}.questions")
    # Free text is forbidden by `plan_exit` alone, and that takes any answer but "No" for a yes, an empty one
    # too (seen on both versions): there a skip would not leave the choice to the agent but approve its plan.
    can_skip = all(question.custom for question in read)
    return Ask(source, read, replace(capabilities, can_skip=can_skip), answerable)


# --- what goes out: decisions to answers --------------------------------------------------------------------


def answers(ask: Ask, decision: Decision) -> tuple[tuple[str, ...], ...]:
    """Return the body of a reply: picks first, in the order chosen, then the free text; skipped: nothing.

    Of a permission it is what `hermes.model.ask.Permission` says, a reject too.

    Raises:
        ValueError: the decision is no reply (a reject, a release).
    """
    if ask.permission is not None and decision.kind != "release":
        return (_word(decision),)
    return labels(ask, decision)


def _word(decision: Decision) -> tuple[str, ...]:
    """Return what is said to a permission: "once", "always", or "refused" with why, or with an empty text."""
    if decision.kind in {"reject", "skip"}:
        return ("refused", "")
    why = decision.answers[0].text if decision.answers else None
    if why is not None:
        return ("refused", why)
    return ("always",) if decision.kind == "always" else ("once",)


def reply_body(word: Sequence[str]) -> dict[str, str]:
    """Return the body of `POST /permission/{id}/reply` for ("once",), ("always",) or ("refused", why)."""
    if word[0] != "refused":
        return {"reply": word[0]}
    return {"reply": "reject", "message": word[1]} if word[1:] and word[1] else {"reply": "reject"}


def waiter_text(ask: Ask, decision: Decision) -> str:
    """Return `{"requestID", "kind": "reply", "answers"}` or `{"requestID", "kind": "reject"}` as one line.

    Raises:
        ValueError: there is nothing to tell the agent (a release).
    """
    told: dict[str, object] = {"requestID": ask.source.request_id}
    if ask.permission is not None:
        told |= {"kind": "permission", **reply_body(answers(ask, decision)[0])}
    elif decision.kind == "reject":
        told["kind"] = "reject"
    else:
        told |= {"kind": "reply", "answers": answers(ask, decision)}
    return json.dumps(told)  # ASCII: no character in it can end the line


def refusal(why: str) -> str:  # noqa: ARG001 (the protocol's)
    """Return "": the plugin looks for itself whether its request is still open."""
    return ""
