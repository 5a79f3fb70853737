"""Read the payload of `hermes hook generic`, and write the line that it prints: for any other program. Pure.

The docstring of `hermes/hook/run.py` describes both, because people look for it there.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

from hermes.agents.fields import Record, flag_of, number_of, record_of, words_of
from hermes.agents.questions import labels, read_desk, read_questions, read_source
from hermes.errors import PayloadError
from hermes.model.answer import Decision
from hermes.model.ask import Ask, Capabilities, OnExpiry
from hermes.model.signals import Asked, Signal

AGENT = "generic"

# The program does not report the effect of an answer, so that the answer counts once the hook has printed it. If the
# program has a desk, it says so (`stays`). Without a desk, nobody could answer an ask that a timer only released.
capabilities = Capabilities(agent_name="A program", desk_stays_open=False, reports=False)
goodbye: str | None = ""

_RULES: tuple[OnExpiry, ...] = get_args(OnExpiry)


def read(payload: object, *, machine: str) -> Signal:
    """Read one payload of `hermes hook generic` (see `hermes.agents.registry.Adapter.read`)."""
    record = record_of(payload, "payload")
    source = read_source(record, AGENT, machine)
    said = read_desk(record, source)
    if said is not None:
        return said
    asker = words_of(record, "agent", "payload") or capabilities.agent_name
    questions = read_questions(record.get("questions"), "payload.questions")
    ttl_s, rule = number_of(record, "ttl_s", "payload"), _rule(record)
    stops = flag_of(record, "stops", "payload", absent=True)
    stays = flag_of(record, "stays", "payload", absent=False)
    can = replace(capabilities, agent_name=asker, reject_stops=stops, desk_stays_open=stays)
    return Asked(Ask(source, questions, can, ttl_s=ttl_s, on_expiry=rule), waits=True)


def _rule(record: Record) -> OnExpiry | None:
    said = words_of(record, "on_expiry", "payload")
    rule = next((rule for rule in _RULES if rule == said), None)
    if said and rule is None:
        raise PayloadError(f"payload.on_expiry is none of {', '.join(_RULES)}")
    return rule


answers = labels


def waiter_text(ask: Ask, decision: Decision) -> str:
    """Return `{"kind", "answers"?, "by"?}` as one line; `by` is "timer" if no person decided."""
    told: dict[str, object] = {"kind": decision.kind}
    if decision.kind == "answer":
        told["answers"] = answers(ask, decision)
    if decision.by is None:
        told["by"] = "timer"
    return json.dumps(told)  # ASCII only, so that no character in it can end the line


def refusal(why: str) -> str:
    """Return `{"kind": "refused", "error"}` as one line."""
    return json.dumps({"kind": "refused", "error": why})
