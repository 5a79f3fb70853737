"""Turn OpenCode 2's forms, permission requests and events into signals, and decisions into answers. Pure.

No plugin and no hook brings these: the server's events and lists do. A payload of another shape raises a PayloadError
that names the place, and contains no value from the payload, except an unknown event type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hermes.agents.fields import Record, count_of, id_of, moment_of, record_of, sound, words_of
from hermes.agents.opencode2.forms import read_form, source_of, told_alone, values
from hermes.agents.opencode2.permissions import completed, read_permission
from hermes.agents.questions import permission_reply, read_permitted, with_permission
from hermes.errors import PayloadError
from hermes.model.answer import Always, Decision, Refused, Reply, Response
from hermes.model.ask import Ask, Capabilities, Source
from hermes.model.notice import Retry
from hermes.model.signals import Asked, Busy, Dismissed, Quiet, Replied, Retrying, Signal

AGENT = "opencode2"

# `opencode run` cancels its own questions within 50 ms, so that a younger question may not stay.
capabilities = Capabilities(
    agent_name="OpenCode", reject_stops=True, can_skip=True, desk_stays_open=True, post_after_s=1.0, always_stays=True
)
goodbye: str | None = None

# --- payloads to signals --------------------------------------------------------------------------------------------


def read(payload: object, *, machine: str) -> Signal:  # noqa: ARG001 (demanded by the protocol)
    """Refuse the payload of a hook: OpenCode 2 starts none. Raises PayloadError."""
    raise PayloadError("OpenCode 2: it starts no hook; Hermes follows its server")


def read_event(kind: str, data: object, origin: Source) -> Signal:
    """Read the `data` of an event. `origin` is a Source without ids; the event supplies them.

    Raises:
        PayloadError: the kind is not in KINDS, or its data has another shape.
    """
    if kind not in _READERS:
        raise PayloadError(f"OpenCode 2: no word of {sound(kind[:80])!r} is known")
    return _READERS[kind](record_of(data, kind), kind, origin)


def read_question(form: object, origin: Source) -> Ask:
    """Read a form as an ask. Raises PayloadError: it has another shape."""
    return read_form(form, origin, capabilities)


def read_permission_request(request: object, origin: Source) -> Ask:
    """Read a permission request as an ask. Raises PayloadError: it has another shape."""
    where = "permission"
    record = record_of(request, where)
    call = record_of(record.get("source") or {}, f"{where}.source")
    source = source_of(record, call, origin, where)
    permission = read_permission(record)
    # A refused command shows the model that it could not be run, and nothing else.
    can = replace(capabilities, can_skip=False, hears_reason=permission.kind != "command")
    return with_permission(Ask(source, (), can), permission)


def with_input(ask: Ask, given: object) -> Ask:
    """Return a permission, completed by the input of its tool."""
    return ask if ask.permission is None else with_permission(ask, completed(ask.permission, given))


def _asked(record: Record, kind: str, origin: Source) -> Signal:
    return Asked(
        read_question(record.get("form"), origin) if kind == "form.created" else read_permission_request(record, origin)
    )


def _replied(record: Record, kind: str, _: Source) -> Signal:
    return Replied(id_of(record, "id", kind), id_of(record, "sessionID", kind), told_alone(record.get("answer")))


def _cancelled(record: Record, kind: str, _: Source) -> Signal:
    return Dismissed(id_of(record, "id", kind), id_of(record, "sessionID", kind))


def _quiet(record: Record, kind: str, _: Source) -> Signal:
    return Quiet(id_of(record, "sessionID", kind))


def _busy(record: Record, kind: str, _: Source) -> Signal:
    return Busy(id_of(record, "sessionID", kind))


def _retrying(record: Record, kind: str, origin: Source) -> Signal:
    error = record.get("error")
    reason = words_of(error, "message", f"{kind}.error") if isinstance(error, dict) else ""
    source = replace(origin, session_id=id_of(record, "sessionID", kind))
    next_s = moment_of(record, "at", kind)
    return Retrying(Retry(source, capabilities.agent_name, count_of(record, "attempt", kind), next_s, reason))


_READERS: Mapping[str, Callable[[Record, str, Source], Signal]] = {
    "form.created": _asked,
    "form.replied": _replied,
    "form.cancelled": _cancelled,
    "permission.asked": _asked,
    "permission.replied": read_permitted,
    "session.execution.succeeded": _quiet,
    "session.execution.failed": _quiet,
    "session.execution.interrupted": _quiet,
    "session.deleted": _quiet,
    "session.step.started": _busy,
    "session.retry.scheduled": _retrying,
}
KINDS = frozenset(_READERS)

# --- decisions to answers -------------------------------------------------------------------------------------------


def answers(ask: Ask, decision: Decision) -> Response:
    """Return for each field of the form its values, or the reply to a permission.

    Raises:
        ValueError: the decision is no reply (a release, or the reject of a question).
    """
    return values(ask, decision) if ask.permission is None else permission_reply(decision)


def reply_body(reply: Reply) -> dict[str, object]:
    """Return the body of `POST …/permission/ID/reply`, for both of its shapes: each ignores the key of the other."""
    word = "once"
    if isinstance(reply, Refused):
        word = "reject"
    elif isinstance(reply, Always):
        word = "always"
    sent: dict[str, object] = {"reply": word, "decision": word}
    return sent | {"message": reply.why} if isinstance(reply, Refused) and reply.why else sent


def waiter_text(ask: Ask, decision: Decision) -> str:  # noqa: ARG001 (demanded by the protocol)
    """Return nothing, because no hook waits for an answer."""
    return ""
