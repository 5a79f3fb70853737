"""Read and write questions and answers in the shape of OpenCode's tool, which `hermes hook generic` also takes. Pure.

A question is `{"question", "header"?, "options"?: [{"label", "description"?}], "multiple"?, "custom"?,
"recommended"?}`; `recommended` is the index of an option. The answers are one list for each question: the exact labels
in the order chosen, then the free text.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hermes.agents.fields import Record, flag_of, id_of, list_of, record_of, sound, text_of, words_of
from hermes.errors import PayloadError
from hermes.model.answer import Allowed, Always, Answer, Answers, Decision, Once, Refused, Reply
from hermes.model.ask import Ask, Option, Permission, Question, Source
from hermes.model.signals import Dismissed, Replied

_RECOMMENDED = re.compile(r"\(recommended\)\s*\Z", re.IGNORECASE)


def read_questions(value: object, where: str) -> tuple[Question, ...]:
    """Read a list of questions.

    If a question has no `recommended`, the first option whose label ends in "(Recommended)" is recommended.

    Raises:
        PayloadError: the list has another shape; the message names the place, never a value.
    """
    return tuple(_question(one, f"{where}[{place}]") for place, one in enumerate(list_of(value, where)))


def _question(value: object, where: str) -> Question:
    record = record_of(value, where)
    options = read_options(record.get("options", []), f"{where}.options")
    return Question(
        text=text_of(record, "question", where),
        header=words_of(record, "header", where),
        options=options,
        multiple=flag_of(record, "multiple", where, absent=False),
        custom=flag_of(record, "custom", where, absent=True),
        recommended=_said(record, where, options) if record.get("recommended") is not None else recommended(options),
    )


def _said(record: Record, where: str, options: tuple[Option, ...]) -> int:
    index = record["recommended"]
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(options):
        raise PayloadError(f"{where}.recommended is the place of none of its options (the first is 0)")
    return index


def recommended(options: tuple[Option, ...]) -> int | None:
    """Return the index of the first option whose label ends in "(Recommended)", or None if there is none."""
    return next((place for place, one in enumerate(options) if _RECOMMENDED.search(one.label)), None)


def read_options(value: object, where: str) -> tuple[Option, ...]:
    """Read the options of a question: `[{"label", "description"?}]`. Raises PayloadError: they have another shape."""
    return tuple(_option(one, f"{where}[{place}]") for place, one in enumerate(list_of(value, where)))


def _option(value: object, where: str) -> Option:
    record = record_of(value, where)
    return Option(text_of(record, "label", where), words_of(record, "description", where))


def read_answers(value: object, where: str) -> Answers:
    """Read the value of `answers`: one list of strings for each question.

    Raises:
        PayloadError: the value has another shape.
    """
    where = f"{where}.answers"
    lists = [list_of(one, f"{where}[{place}]") for place, one in enumerate(list_of(value, where))]
    if not all(isinstance(text, str) for texts in lists for text in texts):
        raise PayloadError(f"{where} contains a value that is not text")
    return tuple(tuple(sound(str(text)) for text in texts) for texts in lists)


def read_source(record: Record, agent: str, machine: str) -> Source:
    """Read the source of an ask from a payload to which the hook has added an id.

    Its shape: `{"id", "session"?, "directory"?, "title"?, "context"?}`. Without `session`, `id` is also the session id.

    Raises:
        PayloadError: the payload has another shape.
    """
    request_id = id_of(record, "id", "payload")
    return Source(
        agent=agent,
        machine=machine,
        session_id=words_of(record, "session", "payload") or request_id,
        directory=words_of(record, "directory", "payload"),
        request_id=request_id,
        session_title=words_of(record, "title", "payload"),
        last_text=words_of(record, "context", "payload"),
    )


def read_desk(record: Record, source: Source) -> Replied | Dismissed | None:
    """Read `desk`, the answer from the desk if it came before the phone's; return None if there is no `desk`.

    It is `{"answers": [[…]], "timer"?}`; `timer` says that the agent's own timer decided. Any other object means that
    the ask was rejected. Raises PayloadError: another shape.
    """
    if record.get("desk") is None:
        return None
    word, request_id = record_of(record["desk"], "desk"), source.request_id or ""
    if word.get("answers") is None:
        return Dismissed(request_id, source.session_id)
    by_timer = flag_of(word, "timer", "desk", absent=False)
    return Replied(request_id, source.session_id, read_answers(word["answers"], "desk"), by_timer=by_timer)


def answers_to(count: int, decision: Decision) -> tuple[Answer, ...]:
    """Return the answers to so many questions: empty ones to those that were left out, or to all after a skip.

    Raises:
        ValueError: the decision is no answer (a reject, a release).
    """
    if decision.kind not in {"answer", "skip"}:
        raise ValueError(f"a {decision.kind} has no answers")
    given = decision.answers if decision.kind == "answer" else ()
    return given + (Answer(),) * (count - len(given))


def labels(ask: Ask, decision: Decision) -> Answers:
    """Return for each question the labels of its picks in the order chosen, then the free text.

    Raises ValueError, as `answers_to`.
    """
    given = answers_to(len(ask.questions), decision)
    return tuple(_labels(question, one) for question, one in zip(ask.questions, given, strict=True))


def _labels(question: Question, answer: Answer) -> tuple[str, ...]:
    chosen = tuple(question.options[index].label for index in answer.picks)
    return chosen if answer.text is None else (*chosen, answer.text)


def permission_reply(decision: Decision) -> Reply:
    """Return the reply to a permission.

    Raises:
        ValueError: the decision is none (a release).
    """
    match decision:
        case Decision(kind="release"):
            raise ValueError("a release has no reply")
        case Decision(kind="always"):
            return Always()
        case Decision(kind="answer", answers=(Answer(text=None),)):
            return Once()
        case Decision(kind="answer", answers=(Answer(text=str(why)),)):
            return Refused(why)
        case _:
            return Refused()


def with_permission(ask: Ask, permission: Permission) -> Ask:
    """Return the ask with this permission and one question; its header is the permission's `what` on one line."""
    name = " ".join(permission.what.split())
    allowing = Question("May it?", header=name, options=(Option("Allow once"),))
    return replace(ask, questions=(allowing,), permission=permission)


def read_permitted(record: Record, kind: str, _: Source) -> Replied:
    """Read the event `permission.replied`. Raises PayloadError: it has another shape."""
    return Replied(id_of(record, "requestID", kind), id_of(record, "sessionID", kind), read_reply(record, kind))


def read_reply(record: Record, where: str) -> Reply:
    """Read `{reply, message?}` of `permission.replied`; only the plugin adds the message, the reason of a refusal.

    Raises:
        PayloadError: it is no reply.
    """
    match text_of(record, "reply", where):
        case "once":
            return Once()
        case "always":
            return Always()
        case "allowed":  # from the plugin, if only the tool part shows the reply
            return Allowed()
        case "reject":
            return Refused(words_of(record, "message", where) or None)
        case _:
            raise PayloadError(f"OpenCode: {where}.reply is none of once, always and reject")
