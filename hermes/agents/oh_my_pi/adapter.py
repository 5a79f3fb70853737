"""oh-my-pi's tool `ask`: Hermes' extension asks the terminal and the phone, or only the phone if `headless`. Pure.

The payload of `hermes hook oh-my-pi` is `{"questions", "session", "directory", "title"?, "context"?, "headless"?}`; its
questions are `{"id", "question", "header"?, "options": [{"label", "description"?, "preview"?}], "multi"?,
"recommended"?}` as its dialog gets them. The hook prints the result of that dialog: `{"kind": "submit", "results":
[{"id", "question", "options", "multi", "selectedOptions", "customInput"?, "note"?, "timedOut"?}]}`, or
`{"kind": "cancel"}`, which ends the turn as Esc does. The rules are in oh-my-pi's tools/ask.ts, and 18.2.3 was seen to
follow them. If `headless`, oh-my-pi has no `ask`, and the extension registers one.

The end of a turn is `{"turn": {"id", "began"?, "ended", "words"?, "failure"?}, "session", "directory", "title"?}`, with
times in epoch milliseconds. The extension tells it of the main agent, if nobody interrupted the turn, and once oh-my-pi
tries a failed request no more. `failure` is "" if the turn finished.

While prompts from the phone are on, `{"began": {"id", "at", "prompt"?}, "session"}` tells of the beginning of a turn,
and again with the id of a prompt from the phone that is in the session now; `{"stopped": {"id"}, "session"}` tells that
a person interrupted one, or with the id "" that none runs, and `{"left": true, "session"}` that oh-my-pi left the
session.
"""

from __future__ import annotations

import json
from dataclasses import replace

from hermes.agents.fields import Record, flag_of, id_of, list_of, moment_of, record_of, text_of, words_of
from hermes.agents.questions import answers_to, labels, read_desk, read_source
from hermes.model.answer import Answer, Decision
from hermes.model.ask import Ask, Capabilities, Option, Question, Source
from hermes.model.notice import Turn
from hermes.model.prompt import PromptAbilities
from hermes.model.signals import Asked, SessionEnded, Signal, TurnBegan, TurnEnded, TurnStopped

AGENT = "oh-my-pi"

# The agent does not report the effect of an answer: the extension reads the hook's line and uses it in one step. If
# nobody answers, oh-my-pi's own timer takes the recommended option, or else the first one.
capabilities = Capabilities(agent_name="oh-my-pi", can_skip=False, notes=True, reports=False, else_first=True)
PROMPTS = PromptAbilities(stops=True, resumes="omp --resume")
goodbye: str | None = ""

_DUMP = "raw-http-request"  # begins the line with the file to which oh-my-pi wrote a request that failed

# --- payloads to signals ------------------------------------------------------------------------------------


def read(payload: object, *, machine: str) -> Signal:
    """Read one payload of `hermes hook oh-my-pi` (see `hermes.agents.registry.Adapter.read`)."""
    record = record_of(payload, "payload")
    if "began" in record:
        began = record_of(record["began"], "payload.began")
        began_s = moment_of(began, "at", "payload.began")
        turn_id, prompt_id = id_of(began, "id", "payload.began"), words_of(began, "prompt", "payload.began")
        return TurnBegan(AGENT, id_of(record, "session", "payload"), turn_id, began_s, prompt_id, ends_asks=False)
    if "left" in record:
        return SessionEnded(AGENT, id_of(record, "session", "payload"))
    if "stopped" in record:
        return TurnStopped(AGENT, id_of(record, "session", "payload"))
    if "questions" not in record:
        return _ended(record, machine)
    source = read_source(record, AGENT, machine)
    said = read_desk(record, source)
    if said is not None:
        return said
    given = [
        record_of(one, f"payload.questions[{place}]")
        for place, one in enumerate(list_of(record.get("questions"), "payload.questions"))
    ]
    questions = tuple(_question(one, f"payload.questions[{place}]") for place, one in enumerate(given))
    headless = flag_of(record, "headless", "payload", absent=False)
    can = replace(capabilities, can_skip=_can_skip(questions), desk_stays_open=not headless)
    return Asked(Ask(source, questions, can, given=json.dumps([_kept(one) for one in given])), waits=True)


def _can_skip(questions: tuple[Question, ...]) -> bool:
    """Tell whether the agent accepts an ask without answers.

    If its only question is single-choice, an empty result would end the turn. If there are several questions, the model
    is told that they were not answered. In a multiple-choice question, "none" is a valid choice.
    """
    return len(questions) > 1 or any(question.multiple for question in questions)


def _question(record: Record, where: str) -> Question:
    listed = list_of(record.get("options"), f"{where}.options")
    options = tuple(_option(one, f"{where}.options[{place}]") for place, one in enumerate(listed))
    name = text_of(record, "id", where)
    marked = record.get("recommended")
    return Question(
        text=text_of(record, "question", where),
        header=words_of(record, "header", where) or name,  # as in the tabs of oh-my-pi's dialog
        options=options,
        multiple=flag_of(record, "multi", where, absent=False),
        recommended=None
        if isinstance(marked, bool)
        else next((at for at in range(len(options)) if at == marked), None),
    )


def _option(value: object, where: str) -> Option:
    record = record_of(value, where)
    label = text_of(record, "label", where)
    return Option(label, words_of(record, "description", where) or words_of(record, "preview", where))


def _kept(record: Record) -> dict[str, object]:
    """Return the parts of a question that its result repeats exactly, even with half of a surrogate pair in them."""
    options = list_of(record.get("options"), "options")
    return {
        "id": record.get("id"),
        "question": record.get("question"),
        "options": [record_of(option, "option").get("label") for option in options],
        "multi": bool(record.get("multi")),
    }


def _ended(record: Record, machine: str) -> TurnEnded:
    where = "payload.turn"
    given = record_of(record.get("turn"), where)
    source = Source(
        agent=AGENT,
        machine=machine,
        session_id=id_of(record, "session", "payload"),
        directory=words_of(record, "directory", "payload"),
        session_title=words_of(record, "title", "payload"),
    )
    turn = Turn(
        source,
        capabilities.agent_name,
        id_of(given, "id", where),
        None if given.get("began") is None else moment_of(given, "began", where),
        moment_of(given, "ended", where),
        words=words_of(given, "words", where),
        failure=_reason(words_of(given, "failure", where)),
    )
    return TurnEnded(turn)


def _reason(failure: str) -> str:
    lines = [line for line in failure.splitlines() if not line.startswith(_DUMP)]
    return "\n".join(lines) or failure


# --- decisions to answers -----------------------------------------------------------------------------------


answers = labels


def waiter_text(ask: Ask, decision: Decision) -> str:
    """Return the result of the dialog as one line.

    Raises ValueError: the decision has no answer for the agent (a release).
    """
    if decision.kind == "reject":
        return json.dumps({"kind": "cancel"})
    chosen = answers_to(len(ask.questions), decision)
    by_timer = decision.kind == "answer" and decision.by is None
    results = [
        {**kept, **_chosen(ask, question, kept["options"], answer, by_timer=by_timer)}
        for question, kept, answer in zip(ask.questions, json.loads(ask.given), chosen, strict=True)
    ]
    return json.dumps({"kind": "submit", "results": results})  # ASCII only, so that no character in it can end the line


def _chosen(ask: Ask, question: Question, options: list[str], answer: Answer, *, by_timer: bool) -> dict[str, object]:
    """Return the chosen options and the free text of one question, in the form of the dialog.

    If there are several questions, the agent shows the model either the picks or `customInput`, so that a text beside
    picks goes out as `note`. An answer that a timer may have chosen is marked as oh-my-pi's own timer marks it.
    """
    chosen: dict[str, object] = {"selectedOptions": [options[index] for index in answer.picks]}
    if answer.text is not None:
        chosen["note" if answer.picks and len(ask.questions) > 1 else "customInput"] = answer.text
    if by_timer and answer == Answer((question.recommended or 0,)):
        chosen["timedOut"] = True
    return chosen
