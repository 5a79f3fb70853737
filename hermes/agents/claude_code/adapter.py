"""Claude Code's hooks and Hermes' words: payloads become signals, decisions what a hook prints. Pure.

Two events ask. `PermissionRequest` races the dialog in the terminal: who answers first wins. `PreToolUse` comes before
any dialog, and is for where there is none (headless, `dontAsk`). Neither names its request: the hook's own nonce does,
and `call_id` is a digest of what was asked, which the event that tells the end can be given as well.

What tells an end (2.1.330, seen): `PostToolUse` with the answers, whoever gave them, and `PostToolUseFailure`; then
`Stop`, `StopFailure`, `SubagentStop`, `UserPromptSubmit`, `SessionEnd`: by then nothing is waited for. A no from the
phone is told by nothing; Esc ends the hook.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from hermes.agents.claude_code.permissions import read_permission
from hermes.agents.fields import Record, id_of, list_of, record_of, sound, text_of, words_of
from hermes.agents.questions import labels, read_questions
from hermes.errors import PayloadError
from hermes.model.answer import Answer, Decision
from hermes.model.ask import Ask, Capabilities, Option, Question, Source
from hermes.model.signals import Asked, Quiet, Replied, Signal

AGENT = "claude-code"
TOOL = "AskUserQuestion"
ASKING, BEFORE = "PermissionRequest", "PreToolUse"

# A hook that says no lets the turn go on, so that a timer's no would be an answer that nobody gave: it is left to the
# dialog. Whether an answer counted is told by `PostToolUse`, always; of a no, and of permissions, nothing need be told.
capabilities = Capabilities(
    agent_name="Claude Code", reject_stops=False, reports=False, silence_s=3.0, tells_answers=True
)
# Before the dialog there is nobody to leave it to; but there `continue: false` ends the turn (seen on 2.1.330).
BLOCKING = replace(capabilities, reject_stops=True, desk_stays_open=False)
goodbye: str | None = ""

_NO = "The user saw this on their phone and declined to answer. Do not take that for any of the options."
_DENIED = "The user saw this on their phone and said no."
_STOPPED = "Stopped from the phone: the user declined to answer."
_UNANSWERED = "Nobody answered on the phone in time, so the turn ends here."

# --- what came: payloads to signals -------------------------------------------------------------------------


def read(payload: object, *, machine: str) -> Signal:
    """Understand one payload of `hermes hook claude-code` (see `hermes.agents.registry.Adapter.read`).

    Its shape is that of the hook's event, with `id` where it asks.
    """
    record = record_of(payload, "payload")
    event = text_of(record, "hook_event_name", "payload")
    if event not in _READERS:
        raise PayloadError(f"Claude Code: no word of {sound(event[:80])!r} is known")
    try:
        return _READERS[event](record, machine)
    except RecursionError:
        raise PayloadError("payload.tool_input is nested too deeply") from None


def _session(record: Record) -> str:
    """Return whose turn it is: a subagent's ends by itself, and does not end with that of its session."""
    session = id_of(record, "session_id", "payload")
    return session if record.get("agent_id") is None else f"{session}/{id_of(record, 'agent_id', 'payload')}"


def _asked(record: Record, machine: str) -> Signal:
    tool, given = _call(record)
    event = text_of(record, "hook_event_name", "payload")
    source = Source(
        agent=AGENT,
        machine=machine,
        session_id=_session(record),
        directory=words_of(record, "cwd", "payload"),
        request_id=id_of(record, "id", "payload"),
        call_id=_call_id(record, tool, given),
    )
    if tool == TOOL:
        can = capabilities if event == ASKING else BLOCKING
        ask = Ask(source, _questions(given), can)
    elif event == ASKING:
        ask = _wish(source, tool, given)
    else:
        raise PayloadError(f"Claude Code: {event} of a tool other than {TOOL}")
    # ASCII, so that half a character in it (JSON can carry one) comes back to the agent as it was.
    return Asked(replace(ask, given=json.dumps({"event": event, "tool_input": given})), waits=True, nonce=True)


def _call(record: Record) -> tuple[str, Record]:
    tool = text_of(record, "tool_name", "payload")
    return tool, record_of(record.get("tool_input"), "payload.tool_input")


def _call_id(record: Record, tool: str, given: Record) -> str:
    """Return a digest of what is asked: of a question without the answers that `PostToolUse` adds to it."""
    about = given.get("questions") if tool == TOOL else given
    told = json.dumps([words_of(record, "prompt_id", "payload"), tool, about], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _questions(given: Record) -> tuple[Question, ...]:
    where = "payload.tool_input.questions"
    records = [record_of(one, where) for one in list_of(given.get("questions"), where)]
    keys = ("question", "header", "options")
    told = [{key: one[key] for key in keys if key in one} | {"multiple": one.get("multiSelect")} for one in records]
    questions = read_questions(told, where)
    if len({one.text for one in questions}) < len(questions):
        raise PayloadError(f"{where} has two of the same text, and answers are told by that")
    return questions


def _wish(source: Source, tool: str, given: Record) -> Ask:
    wish = read_permission(tool, given)
    allowing = Question("May it?", header=" ".join(wish.what.split()), options=(Option("Allow once"),))
    return Ask(source, (allowing,), replace(capabilities, can_skip=False), permission=wish)


def _done(record: Record, _: str) -> Signal:
    """Read the end of a call: a question's answers, or that a deed was allowed. Who allowed it is not told."""
    tool, given = _call(record)
    answers = _told(given) if tool == TOOL else (("allowed",),)
    return Replied("", _session(record), answers, call_id=_call_id(record, tool, given))


def _told(given: Record) -> tuple[tuple[str, ...], ...]:
    """Return what was answered, a question at a time: the labels joined as Claude Code joins them, then the note."""
    where = "payload.tool_input"
    answers = record_of(given.get("answers") or {}, f"{where}.answers")
    annotations = record_of(given.get("annotations") or {}, f"{where}.annotations")
    found = []
    for one in list_of(given.get("questions"), f"{where}.questions"):
        text = record_of(one, f"{where}.questions").get("question")
        said = answers.get(text) if isinstance(text, str) else None
        words = ", ".join(map(str, said)) if isinstance(said, list) else said
        noted = annotations.get(text) if isinstance(text, str) else None
        note = noted.get("notes") if isinstance(noted, Mapping) else None
        found.append(tuple(sound(word) for word in (words, note) if isinstance(word, str) and word))
    return tuple(found)


def _over(record: Record, _: str) -> Signal:
    return Quiet(_session(record))


_READERS: Mapping[str, Callable[[Record, str], Signal]] = {
    ASKING: _asked,
    BEFORE: _asked,
    "PostToolUse": _done,
    "PostToolUseFailure": _done,
    "Stop": _over,
    "StopFailure": _over,
    "SubagentStop": _over,
    "UserPromptSubmit": _over,
    "SessionEnd": _over,
}
KINDS = frozenset(_READERS)

# --- what goes out: decisions to answers --------------------------------------------------------------------


def answers(ask: Ask, decision: Decision) -> tuple[tuple[str, ...], ...]:
    """Return what `PostToolUse` will tell of it: the labels of a question joined by ", ", then the text beside them.

    Of a permission it is what `hermes.model.ask.Permission` says, a reject too.

    Raises:
        ValueError: the decision is no answer (a reject of questions, a release).
    """
    if ask.permission is not None:
        return (_word(decision),)
    given = decision.answers + (Answer(),) * (len(ask.questions) - len(decision.answers))
    return tuple(_joined(*each) for each in zip(labels(ask, decision), given, strict=True))


def _joined(chosen: tuple[str, ...], answer: Answer) -> tuple[str, ...]:
    beside = answer.text if answer.picks else None
    told = ", ".join(chosen if beside is None else chosen[:-1])
    return tuple(word for word in (told, beside) if word)


def _word(decision: Decision) -> tuple[str, ...]:
    """Return what is said to a permission: "once", or "refused" with why, or with an empty text."""
    if decision.kind != "answer":
        return ("refused", "")
    why = decision.answers[0].text if decision.answers else None
    return ("once",) if why is None else ("refused", why)


def waiter_text(ask: Ask, decision: Decision) -> str:
    """Return the output of the hook's event as one line: allow with what was answered, or deny with why."""
    given = json.loads(ask.given)
    told = _denied(ask, decision) if _is_no(ask, decision) else None
    if given["event"] == BEFORE:
        return json.dumps(_before(told, decision, _filled(ask, decision, given)))
    verdict: dict[str, object] = {"behavior": "deny", "message": told}
    if told is None:
        verdict = {"behavior": "allow", "updatedInput": _filled(ask, decision, given)}
    return json.dumps({"hookSpecificOutput": {"hookEventName": ASKING, "decision": verdict}})


def _is_no(ask: Ask, decision: Decision) -> bool:
    if ask.permission is not None:
        return answers(ask, decision)[0][0] == "refused"
    return decision.kind not in {"answer", "skip"}


def _denied(ask: Ask, decision: Decision) -> str:
    """Return what the model is told."""
    if ask.permission is None:
        return _NO
    why = answers(ask, decision)[0][1]
    return f"{_DENIED} They wrote: {why}" if why else _DENIED


def _before(denied: str | None, decision: Decision, filled: Record) -> dict[str, object]:
    """Return the output of `PreToolUse`; a no ends the turn, since nobody is there to say how to go on."""
    told: dict[str, object] = {"hookEventName": BEFORE}
    if denied is None:
        return {"hookSpecificOutput": told | {"permissionDecision": "allow", "updatedInput": filled}}
    why = _UNANSWERED if decision.by is None else _STOPPED
    told |= {"permissionDecision": "deny", "permissionDecisionReason": why}
    return {"continue": False, "stopReason": why, "hookSpecificOutput": told}


def _filled(ask: Ask, decision: Decision, given: Mapping[str, dict[str, object]]) -> dict[str, object]:
    """Return the tool's input as it came, with the answers by the text of their questions, and notes beside picks."""
    filled = dict(given["tool_input"])
    if ask.permission is not None or decision.kind not in {"answer", "skip"}:
        return filled
    texts = [str(one["question"]) for one in _records(filled["questions"])]
    said = dict(zip(texts, answers(ask, decision), strict=True))
    filled["answers"] = {text: words[0] for text, words in said.items() if words}
    if notes := {text: {"notes": words[1]} for text, words in said.items() if words[1:]}:
        filled["annotations"] = notes
    return filled


def _records(value: object) -> list[Record]:
    return [record_of(one, "given") for one in list_of(value, "given")]


def refusal(why: str) -> str:  # noqa: ARG001 (the protocol's)
    """Return an output without a word: the hook may go, and its agent asks at the desk alone."""
    return "{}"
