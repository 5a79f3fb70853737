"""Turn the payloads of Claude Code's hooks into signals, and decisions into the output of a hook. Pure.

Two events ask. `PermissionRequest` runs while the dialog is open in the terminal: the first answer wins. `PreToolUse`
runs before any dialog, and is used if there is none (headless, `dontAsk`). Their payloads have no request id: the hook
adds a nonce as `id`. `call_id` is a digest of the call, which can also be computed from the event at its end.

These events report an end (seen with 2.1.330): `PostToolUse`, with the answers from the phone or the desk, and
`PostToolUseFailure`. `Stop`, `StopFailure`, `SubagentStop`, `UserPromptSubmit` and `SessionEnd` come when the session
no longer waits for an answer. No event reports a no from the phone. Esc ends the hook.

A turn begins with `UserPromptSubmit` and ends with `Stop` or `StopFailure`, all with the same `prompt_id`. A turn that
a person interrupts has no end; one goes on after its end, and ends again, if another Stop hook wants it. While a turn
runs, a text that a person types is told at once with the id of that turn, and comes into it at its next step; a
question of the turn still waits. If the turn ends before, the text begins a turn of its own, of which only the end is
told. A prompt from the phone comes into the next step, too, and is told then; or it begins a turn. So does a background
task, when it has ended. No payload has a time: the inbox adds it. The hook adds `from_phone` (this prompt is one from
the phone, see `install`), `goes_on` (it is the news of a background task), `began` (when the turn that ends began, in
epoch milliseconds), `title` (of the session, see `transcript`) and `nobody_there` (see `shape`). Its `cwd` is the
folder in which Claude Code was started.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from hermes.agents.claude_code.permissions import PLAN, read_permission
from hermes.agents.claude_code.shape import ASKING, BEFORE, TOOL
from hermes.agents.fields import Record, flag_of, id_of, list_of, moment_of, record_of, sound, text_of, words_of
from hermes.agents.questions import answers_to, labels, permission_reply, read_questions, with_permission
from hermes.errors import PayloadError
from hermes.model.answer import Allowed, Answer, Answers, Decision, Refused, Reply, Response
from hermes.model.ask import Ask, Capabilities, Question, Source
from hermes.model.notice import Turn
from hermes.model.prompt import PromptAbilities
from hermes.model.signals import Asked, Quiet, Replied, SessionEnded, Signal, TurnBegan, TurnEnded

AGENT = "claude-code"

# The turn goes on after a hook's no, so that a timer's no would be an answer that no person gave: the ask is then left
# to the dialog. `PostToolUse` always reports the answers to questions; a no or a permission may get no report.
capabilities = Capabilities(
    agent_name="Claude Code", reject_stops=False, reports=False, silence_s=3.0, tells_answers=True
)
# Before the dialog, the ask cannot be left to the desk; but `continue: false` ends the turn (seen with 2.1.330).
BLOCKING = replace(capabilities, reject_stops=True, desk_stays_open=False)
PROMPTS = PromptAbilities(resumes="claude --resume", holds=True)
"""A running turn cannot be ended from outside."""
goodbye: str | None = ""

_NO = "The user saw this on their phone and declined to answer. Do not take that for any of the options."
_DENIED = "The user saw this on their phone and said no."
_STOPPED = "Stopped from the phone: the user declined to answer."
_UNANSWERED = "Nobody answered on the phone in time, so the turn ends here."

# --- payloads to signals ------------------------------------------------------------------------------------


def read(payload: object, *, machine: str) -> Signal:
    """Read one payload of `hermes hook claude-code` (see `hermes.agents.registry.Adapter.read`).

    Its shape is that of the hook's event, with an `id` if the event asks.
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
    """Return the session id, and the subagent's id if there is one, because a subagent's turn ends separately."""
    session = id_of(record, "session_id", "payload")
    return session if record.get("agent_id") is None else f"{session}/{id_of(record, 'agent_id', 'payload')}"


def _asked(record: Record, machine: str) -> Signal:
    tool, given = _call(record)
    event = text_of(record, "hook_event_name", "payload")
    session_id, root_id = _session(record), id_of(record, "session_id", "payload")
    is_root, title = session_id == root_id, words_of(record, "title", "payload")
    source = Source(
        agent=AGENT,
        machine=machine,
        session_id=session_id,
        session_title=title if is_root else "",
        root_title="" if is_root else title,
        root_id="" if is_root else root_id,
        directory=words_of(record, "cwd", "payload"),
        request_id=id_of(record, "id", "payload"),
        call_id=_call_id(record, tool, given),
        message_id=words_of(record, "prompt_id", "payload") or None,
    )
    if tool == TOOL:
        can = capabilities if event == ASKING else BLOCKING
        ask = Ask(source, _questions(given), can)
    elif event == ASKING:
        asked = Ask(source, (), replace(capabilities, can_skip=False))
        ask = with_permission(asked, read_permission(tool, given))
    else:
        raise PayloadError(f"Claude Code: {event} of a tool other than {TOOL}")
    # ASCII only, so that half of a surrogate pair (JSON can carry one) goes back to the agent unchanged.
    ask = replace(ask, given=json.dumps({"event": event, "tool_input": given}), nobody_there=_is_nobody_there(record))
    return Asked(ask, waits=True, nonce=True)


def _is_nobody_there(record: Record) -> bool:
    return flag_of(record, "nobody_there", "payload", absent=False)


def _call(record: Record) -> tuple[str, Record]:
    tool = text_of(record, "tool_name", "payload")
    return tool, record_of(record.get("tool_input"), "payload.tool_input")


def _call_id(record: Record, tool: str, given: Record) -> str:
    """Return a digest of prompt id, tool and input.

    The answers to questions are left out, because only `PostToolUse` has them; a plan, because that one lacks it.
    """
    about = given.get("questions") if tool == TOOL else None if tool == PLAN else given
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


def _done(record: Record, _: str) -> Signal:
    """Read the end of a call: the answers to its questions, or `Allowed` for a permission.

    The event does not say whether the permission was given on the phone or at the desk. `afkTimeoutMs` says that nobody
    answered in the time of Claude Code's setting `askUserQuestionTimeout`.
    """
    tool, given = _call(record)
    answers = _told(given) if tool == TOOL else Allowed()
    by_timer = tool == TOOL and given.get("afkTimeoutMs") is not None
    return Replied("", _session(record), answers, call_id=_call_id(record, tool, given), by_timer=by_timer)


def _told(given: Record) -> Answers:
    """Return for each question its answer, with the labels joined as Claude Code joins them, then the note."""
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


def _began(record: Record, _: str) -> Signal:
    from_phone, goes_on = (flag_of(record, key, "payload", absent=False) for key in ("from_phone", "goes_on"))
    turn_id = words_of(record, "prompt_id", "payload")
    return TurnBegan(AGENT, _session(record), turn_id, 0.0, from_phone=from_phone, goes_on=goes_on)


def _left(record: Record, _: str) -> Signal:
    return SessionEnded(AGENT, _session(record))


def _ended(record: Record, machine: str) -> Signal:
    """Read the end of a turn. Versions before prompts had ids do not tell one turn from another."""
    turn_id, words = words_of(record, "prompt_id", "payload"), words_of(record, "last_assistant_message", "payload")
    if not turn_id or record.get("agent_id") is not None:
        return _over(record, machine)
    directory, title = words_of(record, "cwd", "payload"), words_of(record, "title", "payload")
    source = Source(AGENT, machine, _session(record), directory, session_title=title)
    began_s = moment_of(record, "began", "payload") if "began" in record else None
    turn = Turn(source, capabilities.agent_name, turn_id, began_s, 0.0, nobody_there=_is_nobody_there(record))
    if text_of(record, "hook_event_name", "payload") == "Stop":
        return TurnEnded(replace(turn, words=words), ends_asks=True)
    # After a failure the last words are those of the program about it.
    why = words or words_of(record, "error", "payload") or "an error"
    return TurnEnded(replace(turn, failure=why), ends_asks=True)


_READERS: Mapping[str, Callable[[Record, str], Signal]] = {
    ASKING: _asked,
    BEFORE: _asked,
    "PostToolUse": _done,
    "PostToolUseFailure": _done,
    "Stop": _ended,
    "StopFailure": _ended,
    "SubagentStop": _over,
    "UserPromptSubmit": _began,
    "SessionEnd": _left,
}
KINDS = frozenset(_READERS)

# --- decisions to answers -----------------------------------------------------------------------------------


def answers(ask: Ask, decision: Decision) -> Response:
    """Return the answers as `PostToolUse` will report them: for each question its labels joined by ", ", then the text.

    A permission has a `Reply`, also a refused one.

    Raises:
        ValueError: the decision on questions is no answer (a reject, a release).
    """
    if ask.permission is not None:
        return _reply(decision)
    return _answers(ask, decision)


def _reply(decision: Decision) -> Reply:
    """Return the reply to a permission; "always" is not offered for Claude Code, and refuses."""
    return Refused() if decision.kind == "always" else permission_reply(decision)


def _answers(ask: Ask, decision: Decision) -> Answers:
    given = answers_to(len(ask.questions), decision)
    return tuple(_joined(*each) for each in zip(labels(ask, decision), given, strict=True))


def _joined(chosen: tuple[str, ...], answer: Answer) -> tuple[str, ...]:
    beside = answer.text if answer.picks else None
    told = ", ".join(chosen if beside is None else chosen[:-1])
    return tuple(word for word in (told, beside) if word)


def waiter_text(ask: Ask, decision: Decision) -> str:
    """Return the hook's output for its event as one line: allow with the answers, or deny with the reason."""
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
        return isinstance(_reply(decision), Refused)
    return decision.kind not in {"answer", "skip"}


def _denied(ask: Ask, decision: Decision) -> str:
    """Return the reason of a no, which the model reads."""
    if ask.permission is None:
        return _NO
    reply = _reply(decision)
    return f"{_DENIED} They wrote: {reply.why}" if isinstance(reply, Refused) and reply.why else _DENIED


def _before(denied: str | None, decision: Decision, filled: Record) -> dict[str, object]:
    """Return the output for `PreToolUse`. A no ends the turn, because nobody is there to say how to go on."""
    told: dict[str, object] = {"hookEventName": BEFORE}
    if denied is None:
        return {"hookSpecificOutput": told | {"permissionDecision": "allow", "updatedInput": filled}}
    why = _UNANSWERED if decision.by is None else _STOPPED
    told |= {"permissionDecision": "deny", "permissionDecisionReason": why}
    return {"continue": False, "stopReason": why, "hookSpecificOutput": told}


def _filled(ask: Ask, decision: Decision, given: Mapping[str, dict[str, object]]) -> dict[str, object]:
    """Return the tool's input, with the answers added by the text of their questions; a text beside picks is a note."""
    filled = dict(given["tool_input"])
    if ask.permission is not None or decision.kind not in {"answer", "skip"}:
        return filled
    texts = [str(one["question"]) for one in _records(filled["questions"])]
    said = dict(zip(texts, _answers(ask, decision), strict=True))
    filled["answers"] = {text: words[0] for text, words in said.items() if words}
    if notes := {text: {"notes": words[1]} for text, words in said.items() if words[1:]}:
        filled["annotations"] = notes
    return filled


def _records(value: object) -> list[Record]:
    return [record_of(one, "given") for one in list_of(value, "given")]
