"""Neovate Code's tool `AskUserQuestion`: Hermes' plugin asks the terminal and the phone at the same time. Pure.

The payload of `hermes hook neovate` is `{"questions", "session", "directory", "title"?, "context"?}`; its questions are
`{"question", "header"?, "options": [{"label", "description"?}], "multiSelect"?}` as the model wrote them. The hook
prints the result of an approval: `{"approved": true, "params": {"answers": [{"question", "answer"}]}}`, to which the
plugin adds the tool's own parameters, or `{"approved": false, "denyReason"}`. 0.28.2 was seen to work in this way.
"""

from __future__ import annotations

import json

from hermes.agents.fields import flag_of, list_of, record_of, text_of, words_of
from hermes.agents.questions import labels, read_desk, read_options, read_source, recommended
from hermes.model.answer import Decision
from hermes.model.ask import Ask, Capabilities, Question
from hermes.model.signals import Asked, Signal

AGENT = "neovate"
REASON = "The user does not want to answer this from their phone."

# A no with a reason is a normal result: the turn goes on. Without answers the tool fails, so that an ask cannot be
# skipped. The agent does not report the effect of an answer: the plugin reads the hook's line and uses it in one step.
capabilities = Capabilities(agent_name="Neovate Code", reject_stops=False, can_skip=False, reports=False)
goodbye: str | None = ""

# --- payloads to signals ------------------------------------------------------------------------------------


def read(payload: object, *, machine: str) -> Signal:
    """Read one payload of `hermes hook neovate` (see `hermes.agents.registry.Adapter.read`)."""
    record = record_of(payload, "payload")
    source = read_source(record, AGENT, machine)
    said = read_desk(record, source)
    if said is not None:
        return said
    listed = list_of(record.get("questions"), "payload.questions")
    read = [_question(one, f"payload.questions[{place}]") for place, one in enumerate(listed)]
    # An answer repeats the text of its question exactly, even with half of a surrogate pair in it.
    texts = [record_of(one, "question")["question"] for one in listed]
    return Asked(Ask(source, tuple(read), capabilities, given=json.dumps(texts)), waits=True)


def _question(value: object, where: str) -> Question:
    record = record_of(value, where)
    options = read_options(record.get("options"), f"{where}.options")
    return Question(
        text=text_of(record, "question", where),
        header=words_of(record, "header", where),
        options=options,
        multiple=flag_of(record, "multiSelect", where, absent=False),
        recommended=recommended(options),
    )


# --- decisions to answers -----------------------------------------------------------------------------------


answers = labels


def waiter_text(ask: Ask, decision: Decision) -> str:
    """Return the result of the approval as one line, without the questions that were not answered.

    Several labels are joined by ", ", as Neovate's terminal does. Raises ValueError: the decision is a release.
    """
    if decision.kind == "reject":
        return json.dumps({"approved": False, "denyReason": REASON})
    texts: list[str] = json.loads(ask.given)
    answered = [
        {"question": text, "answer": ", ".join(chosen)}
        for text, chosen in zip(texts, answers(ask, decision), strict=True)
        if chosen
    ]
    return json.dumps({"approved": True, "params": {"answers": answered}})  # ASCII only: no character can end the line
