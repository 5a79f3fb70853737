"""Turn OpenCode's payloads into signals, and decisions into answers for OpenCode. Pure.

A request object arrives in three ways: from the plugin's hook (`read`), in the event stream (`read_event`) and in the
lists of pending requests (`read_request`, `read_permission_request`). A payload of another shape raises a PayloadError
that names the place. Because errors are logged, it contains no value from the payload, except an unknown event type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from hermes.agents.diffs import ChangedFile, joined
from hermes.agents.fields import (
    Record,
    count_of,
    flag_of,
    id_of,
    list_of,
    moment_of,
    record_of,
    sound,
    text_of,
    words_of,
)
from hermes.agents.opencode.permissions import completed, read_permission
from hermes.agents.questions import (
    labels,
    permission_reply,
    read_answers,
    read_permitted,
    read_questions,
    with_permission,
)
from hermes.errors import PayloadError
from hermes.model.answer import Allowed, Always, Decision, Once, Refused, Response
from hermes.model.ask import Ask, Capabilities, Source
from hermes.model.notice import Changes, Retry, Turn
from hermes.model.signals import Announced, Asked, Busy, Dismissed, Quiet, Replied, Retrying, Signal, TurnEnded

AGENT = "opencode"

# A reject ends the turn; a reply without labels lets the model go on with "Unanswered".
capabilities = Capabilities(agent_name="OpenCode", reject_stops=True, can_skip=True, desk_stays_open=True)
goodbye: str | None = None
_RUN_REFUSES_S: Final = 0.5
"""`opencode run` refuses the permissions of its session by itself, within this time: they need nobody."""

# --- payloads to signals ------------------------------------------------------------------------------------


def read(payload: object, *, machine: str) -> Signal:
    """Read one payload of `hermes hook opencode` (see `hermes.agents.registry.Adapter.read`).

    Its shape: `{"type", "properties", "directory", "context": {"title", "rootTitle", "rootID"?, "lastText",
    "input"?, "cut"?}}`. `input` is the input of the tool that needs a permission; `cut` tells that the plugin cut it,
    or the request, because it is too long. Older plugins tell only the command and the file of an input.
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
        root_id=words_of(context, "rootID", "context"),
        last_text=words_of(context, "lastText", "context"),
    )
    kind = text_of(record, "type", "payload")
    if kind == "permission.asked":
        is_cut = flag_of(context, "cut", "context", absent=False)
        return Asked(read_permission_request(record.get("properties"), origin, context.get("input"), is_cut=is_cut))
    if kind == "turn.ended":
        return _ended(record_of(record.get("properties"), kind), origin)
    return read_event(kind, record.get("properties"), origin)


def _ended(record: Record, origin: Source) -> Signal:
    """Read the end of a turn, which the plugin has read from OpenCode's record.

    Its shape: `{"sessionID", "id", "prompt"?, "began", "ended", "words", "failure", "changes"?}`, with the changes
    `{"files", "added", "removed", "diffs"?: [{"file", "patch"}]}`. A plugin that was loaded before an update may not
    name the prompt.
    """
    where = "turn.ended"
    turn = Turn(
        replace(origin, session_id=id_of(record, "sessionID", where)),
        capabilities.agent_name,
        id_of(record, "id", where),
        moment_of(record, "began", where),
        moment_of(record, "ended", where),
        words=words_of(record, "words", where),
        failure=words_of(record, "failure", where),
        changes=None if record.get("changes") is None else _changes(record["changes"], f"{where}.changes"),
        prompt_id=words_of(record, "prompt", where),
    )
    return TurnEnded(turn)


def _changes(changed: object, where: str) -> Changes:
    told = record_of(changed, where)
    diffs = [record_of(one, f"{where}.diffs") for one in list_of(told.get("diffs") or [], f"{where}.diffs")]
    files = [ChangedFile(*(words_of(one, key, f"{where}.diffs") for key in ("file", "patch"))) for one in diffs]
    count, added, removed = (count_of(told, key, where) for key in ("files", "added", "removed"))
    return Changes(count, added, removed, joined(files))


def read_event(kind: str, properties: object, origin: Source) -> Signal:
    """Read one bus event. `origin` is a Source without ids; the event supplies them.

    Raises:
        PayloadError: the kind is not in KINDS, or its properties have another shape or give no signal.
    """
    if kind not in _READERS:
        raise PayloadError(f"OpenCode: no word of {sound(kind[:80])!r} is known")
    return _READERS[kind](record_of(properties, kind), kind, origin)


def read_request(properties: object, origin: Source, *, answerable: bool = True) -> Ask:
    """Read a request with questions: `{id, sessionID, questions, tool?: {messageID, callID}}`.

    Raises:
        PayloadError: it has another shape.
    """
    where = "request"
    record = record_of(properties, where)
    return _ask(_source(record, where, origin), record.get("questions"), where, answerable=answerable)


def _source(record: Record, where: str, origin: Source) -> Source:
    """Return `origin` with the ids of a request: its own, and those of its session, tool call and message."""
    tool = record_of(record.get("tool") or {}, f"{where}.tool")
    return replace(
        origin,
        session_id=id_of(record, "sessionID", where),
        request_id=id_of(record, "id", where),
        call_id=words_of(tool, "callID", f"{where}.tool") or None,
        message_id=words_of(tool, "messageID", f"{where}.tool") or None,
    )


def _asked(record: Record, kind: str, origin: Source) -> Signal:
    # The v2 engine takes answers on other routes, which Hermes does not call, so that only the desk can answer.
    return Asked(read_request(record, origin, answerable=kind == "question.asked"))


def _permission_asked(record: Record, _: str, origin: Source) -> Signal:
    return Asked(read_permission_request(record, origin))


def read_permission_request(properties: object, origin: Source, given: object = None, *, is_cut: bool = False) -> Ask:
    """Read a permission request; `given` is the input of its tool (the part's `state.input`), or None.

    `is_cut` tells that one of both was cut on its way.

    Raises:
        PayloadError: it has another shape.
    """
    record = record_of(properties, "permission")
    can = replace(capabilities, can_skip=False, post_after_s=_RUN_REFUSES_S)
    asked = Ask(_source(record, "permission", origin), (), can)
    permission = completed(read_permission(record), given)
    return with_permission(asked, replace(permission, partial=True) if is_cut else permission)


def _replied(record: Record, kind: str, _: Source) -> Signal:
    answers = read_answers(record.get("answers"), kind)
    return Replied(id_of(record, "requestID", kind), id_of(record, "sessionID", kind), answers)


def _dismissed(record: Record, kind: str, _: Source) -> Signal:
    return Dismissed(id_of(record, "requestID", kind), id_of(record, "sessionID", kind))


def _announced(record: Record, kind: str, origin: Source) -> Signal:
    """Read `tool.execute.before`: the request does not exist yet, and never will if the arguments are invalid."""
    if record.get("tool") != "question":
        raise PayloadError(f"OpenCode: {kind} of a tool other than question")
    args = record_of(record.get("args"), f"{kind}.args")
    call_id, session_id = id_of(record, "callID", kind), id_of(record, "sessionID", kind)
    source = replace(origin, session_id=session_id, call_id=call_id)
    return Announced(_ask(source, args.get("questions"), f"{kind}.args", answerable=True))


def _quiet(record: Record, kind: str, _: Source) -> Signal:
    # A session.error may name no session: the id is then "", which stops no session. The plugin adds the request's id.
    return Quiet(words_of(record, "sessionID", kind), words_of(record, "requestID", kind))


def _deleted(record: Record, kind: str, _: Source) -> Signal:
    return Quiet(id_of(record_of(record.get("info"), f"{kind}.info"), "id", f"{kind}.info"))


def _status(record: Record, kind: str, origin: Source) -> Signal:
    where = f"{kind}.status"
    status, session_id = record_of(record.get("status"), where), id_of(record, "sessionID", kind)
    if status.get("type") == "retry":
        reason, next_s = words_of(status, "message", where), moment_of(status, "next", where)
        source = replace(origin, session_id=session_id)
        return Retrying(Retry(source, capabilities.agent_name, count_of(status, "attempt", where), next_s, reason))
    if status.get("type") != "busy":
        raise PayloadError(f"OpenCode: {kind} of a session that is not busy")
    return Busy(session_id)


_READERS: Mapping[str, Callable[[Record, str, Source], Signal]] = {
    "question.asked": _asked,
    "question.replied": _replied,
    "question.rejected": _dismissed,
    "question.v2.asked": _asked,
    "question.v2.replied": _replied,
    "question.v2.rejected": _dismissed,
    "tool.execute.before": _announced,
    "permission.asked": _permission_asked,
    "permission.replied": read_permitted,
    "session.idle": _quiet,
    "session.error": _quiet,
    "session.deleted": _deleted,
    "session.status": _status,
}
KINDS = frozenset(_READERS)


def _ask(source: Source, questions: object, where: str, *, answerable: bool) -> Ask:
    read = read_questions(questions, f"{where}.questions")
    # Only `plan_exit` forbids free text. It treats every answer except "No" as a yes, also an empty one (seen on
    # both versions), so that a skip would approve the agent's plan.
    can_skip = all(question.custom for question in read)
    return Ask(source, read, replace(capabilities, can_skip=can_skip), answerable)


# --- decisions to answers -----------------------------------------------------------------------------------


def answers(ask: Ask, decision: Decision) -> Response:
    """Return the answers of a reply: for each question its picks in the order chosen, then the free text.

    A skip gives an empty answer to each question; a permission has a `Reply`, of a reject too.

    Raises:
        ValueError: the decision is no reply (a release, or the reject of a question).
    """
    return labels(ask, decision) if ask.permission is None else permission_reply(decision)


def reply_body(reply: Response) -> dict[str, object]:
    """Return the body of `POST /permission/{id}/reply`, or of `POST /question/{id}/reply`."""
    match reply:
        case Once() | Allowed():
            return {"reply": "once"}
        case Always():
            return {"reply": "always"}
        case Refused(why):
            return {"reply": "reject", "message": why} if why else {"reply": "reject"}
        case _:
            return {"answers": reply}


def waiter_text(ask: Ask, decision: Decision) -> str:
    """Return the answer for the plugin as one line of JSON.

    Its shape: `{"requestID", "kind": "reply", "answers"}`, `{"requestID", "kind": "reject"}`, or for a permission
    `{"requestID", "kind": "permission", "reply", "message"?}`.

    Raises:
        ValueError: the decision has no answer for the agent (a release).
    """
    told: dict[str, object] = {"requestID": ask.source.request_id}
    if ask.permission is not None:
        told |= {"kind": "permission", **reply_body(answers(ask, decision))}
    elif decision.kind == "reject":
        told["kind"] = "reject"
    else:
        told |= {"kind": "reply", **reply_body(answers(ask, decision))}
    return json.dumps(told)  # ASCII only, so that no character in it can end the line
