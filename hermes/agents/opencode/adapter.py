"""OpenCode's shapes and Hermes' words: payloads become signals, decisions become answers. Pure.

The same request object comes by three ways, and all of them end here: the plugin's hook (`read`), the event
stream (`read_event`) and the list of pending questions (`read_request`). Whatever has another shape is a
PayloadError that says where; values never stand in it, since errors end up in logs.

Labels are kept to the letter, with one exception: JSON can carry half of a surrogate pair, UTF-8 cannot. Such
halves become U+FFFD here, so that nothing later trips over them. The index stays the option's identity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from hermes.errors import PayloadError
from hermes.model import (
    Announced,
    Answer,
    Ask,
    Asked,
    Busy,
    Capabilities,
    Decision,
    Dismissed,
    Option,
    Question,
    Quiet,
    Replied,
    Signal,
    Source,
)

AGENT = "opencode"

# A reject ends the turn; a reply without labels lets the model go on with "Unanswered".
capabilities = Capabilities(agent_name="OpenCode", reject_stops=True, can_skip=True, desk_stays_open=True)

_RECOMMENDED = re.compile(r"\(recommended\)\s*\Z", re.IGNORECASE)
_LONE = re.compile("[\ud800-\udfff]")
_ID_LENGTH = 200

Record = Mapping[str, object]

# --- what came: payloads to signals -------------------------------------------------------------------------


def read(payload: object, *, machine: str) -> Signal:
    """Understand one payload of `hermes hook opencode` (see `hermes.agents.Adapter.read`).

    Its shape: `{"type", "properties", "directory", "context": {"title", "rootTitle", "lastText"}}`.
    """
    record = _record(payload, "payload")
    context = _record(record.get("context") or {}, "context")
    origin = Source(
        agent=AGENT,
        machine=machine,
        session_id="",
        directory=_words(record, "directory", "payload"),
        session_title=_words(context, "title", "context"),
        root_title=_words(context, "rootTitle", "context"),
        last_text=_words(context, "lastText", "context"),
    )
    return read_event(_text(record, "type", "payload"), record.get("properties"), origin)


def read_event(kind: str, properties: object, origin: Source) -> Signal:
    """Understand one bus event. `origin` is a Source in which only what the event itself tells is missing.

    Raises:
        PayloadError: the kind is not in KINDS, or its properties have another shape.
    """
    if kind not in _READERS:
        raise PayloadError(f"OpenCode: no word of {sound(kind[:80])!r} is known")
    return _READERS[kind](_record(properties, kind), kind, origin)


def read_request(properties: object, origin: Source, *, answerable: bool = True) -> Ask:
    """Understand a request: `{id, sessionID, questions, tool?: {messageID, callID}}`.

    Raises:
        PayloadError: it has another shape.
    """
    where = "request"
    record = _record(properties, where)
    tool = _record(record.get("tool") or {}, f"{where}.tool")
    source = replace(
        origin,
        session_id=_id(record, "sessionID", where),
        request_id=_id(record, "id", where),
        call_id=_words(tool, "callID", f"{where}.tool") or None,
        message_id=_words(tool, "messageID", f"{where}.tool") or None,
    )
    return _ask(source, record.get("questions"), where, answerable=answerable)


def _asked(record: Record, kind: str, origin: Source) -> Signal:
    # What the v2 engine asks is answered by routes of its own, so only the desk can do it.
    return Asked(read_request(record, origin, answerable=kind == "question.asked"))


def _replied(record: Record, kind: str, _: Source) -> Signal:
    answers = read_answers(record.get("answers"), kind)
    return Replied(_id(record, "requestID", kind), _id(record, "sessionID", kind), answers)


def _dismissed(record: Record, kind: str, _: Source) -> Signal:
    return Dismissed(_id(record, "requestID", kind), _id(record, "sessionID", kind))


def _announced(record: Record, kind: str, origin: Source) -> Signal:
    """Read `tool.execute.before`: the request does not exist yet, and for bad arguments never will."""
    if record.get("tool") != "question":
        raise PayloadError(f"OpenCode: {kind} of a tool other than question")
    args = _record(record.get("args"), f"{kind}.args")
    call_id, session_id = _id(record, "callID", kind), _id(record, "sessionID", kind)
    source = replace(origin, session_id=session_id, call_id=call_id)
    return Announced(_ask(source, args.get("questions"), f"{kind}.args", answerable=True))


def _quiet(record: Record, kind: str, _: Source) -> Signal:
    # A session.error may name no session: it then stops none.
    return Quiet(_words(record, "sessionID", kind))


def _deleted(record: Record, kind: str, _: Source) -> Signal:
    return Quiet(_id(_record(record.get("info"), f"{kind}.info"), "id", f"{kind}.info"))


def _busy(record: Record, kind: str, _: Source) -> Signal:
    if _record(record.get("status"), f"{kind}.status").get("type") != "busy":
        raise PayloadError(f"OpenCode: {kind} of a session that is not busy")
    return Busy(_id(record, "sessionID", kind))


_READERS: Mapping[str, Callable[[Record, str, Source], Signal]] = {
    "question.asked": _asked,
    "question.replied": _replied,
    "question.rejected": _dismissed,
    "question.v2.asked": _asked,
    "question.v2.replied": _replied,
    "question.v2.rejected": _dismissed,
    "tool.execute.before": _announced,
    "session.idle": _quiet,
    "session.error": _quiet,
    "session.deleted": _deleted,
    "session.status": _busy,
}
KINDS = frozenset(_READERS)


def _ask(source: Source, questions: object, where: str, *, answerable: bool) -> Ask:
    listed = _list(questions, f"{where}.questions")
    read = tuple(_question(one, f"{where}.questions[{place}]") for place, one in enumerate(listed))
    # Free text is forbidden by `plan_exit` alone, and that takes any answer but "No" for a yes, an empty one
    # too (seen on both versions): there a skip would not leave the choice to the agent but approve its plan.
    can_skip = all(question.custom for question in read)
    return Ask(source, read, replace(capabilities, can_skip=can_skip), answerable)


def _question(value: object, where: str) -> Question:
    record = _record(value, where)
    listed = _list(record.get("options", []), f"{where}.options")
    options = tuple(_option(one, f"{where}.options[{place}]") for place, one in enumerate(listed))
    marked = (place for place, one in enumerate(options) if _RECOMMENDED.search(one.label))
    return Question(
        text=_text(record, "question", where),
        header=_words(record, "header", where),
        options=options,
        multiple=_flag(record, "multiple", where, absent=False),
        custom=_flag(record, "custom", where, absent=True),
        recommended=next(marked, None),
    )


def _option(value: object, where: str) -> Option:
    record = _record(value, where)
    return Option(_text(record, "label", where), _words(record, "description", where))


def read_answers(value: object, where: str) -> tuple[tuple[str, ...], ...]:
    """Read OpenCode's form of answers: a list of strings for each question.

    Raises:
        PayloadError: it has another shape.
    """
    where = f"{where}.answers"
    lists = [_list(one, f"{where}[{place}]") for place, one in enumerate(_list(value, where))]
    if not all(isinstance(text, str) for texts in lists for text in texts):
        raise PayloadError(f"OpenCode: {where} holds what is no text")
    return tuple(tuple(sound(str(text)) for text in texts) for texts in lists)


# --- what goes out: decisions to answers --------------------------------------------------------------------


def answers(ask: Ask, decision: Decision) -> tuple[tuple[str, ...], ...]:
    """Return the body of a reply: picks first, in the order chosen, then the free text; skipped: nothing.

    Raises:
        ValueError: the decision is no reply (a reject, a release).
    """
    if decision.kind == "skip":
        return ((),) * len(ask.questions)
    if decision.kind != "answer":
        raise ValueError(f"a {decision.kind} has no answers")
    given = decision.answers + (Answer(),) * (len(ask.questions) - len(decision.answers))
    return tuple(_labels(question, one) for question, one in zip(ask.questions, given, strict=True))


def _labels(question: Question, answer: Answer) -> tuple[str, ...]:
    labels = tuple(question.options[index].label for index in answer.picks)
    return labels if answer.text is None else (*labels, answer.text)


def waiter_text(ask: Ask, decision: Decision) -> str:
    """Return `{"requestID", "kind": "reply", "answers"}` or `{"requestID", "kind": "reject"}` as one line.

    Raises:
        ValueError: there is nothing to tell the agent (a release).
    """
    told: dict[str, object] = {"requestID": ask.source.request_id}
    if decision.kind == "reject":
        told["kind"] = "reject"
    else:
        told |= {"kind": "reply", "answers": answers(ask, decision)}
    return json.dumps(told)  # ASCII: no character in it can end the line


# --- shapes -------------------------------------------------------------------------------------------------


def sound(text: str) -> str:
    """Return the text with each lone half of a surrogate pair replaced by U+FFFD, and whole pairs joined."""
    if not _LONE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _record(value: object, where: str) -> Record:
    if not isinstance(value, Mapping):
        raise PayloadError(f"OpenCode: {where} is no object")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise PayloadError(f"OpenCode: {where} is no list")
    return value


def _text(record: Record, key: str, where: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise PayloadError(f"OpenCode: {where}.{key} is no text")
    return sound(value)


def _words(record: Record, key: str, where: str) -> str:
    """Read a text that may be absent."""
    return "" if record.get(key) is None else _text(record, key, where)


def _id(record: Record, key: str, where: str) -> str:
    value = _text(record, key, where)
    if not 0 < len(value) <= _ID_LENGTH:
        raise PayloadError(f"OpenCode: {where}.{key} is no id")
    return value


def _flag(record: Record, key: str, where: str, *, absent: bool) -> bool:
    value = record.get(key)
    if value is None:
        return absent
    if not isinstance(value, bool):
        raise PayloadError(f"OpenCode: {where}.{key} is neither true nor false")
    return value
