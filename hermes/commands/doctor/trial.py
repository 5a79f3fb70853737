"""`--test`: ask a real question through hook, store, listener and Telegram, and wait for the answer."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from hermes.commands.ask import phone_question
from hermes.commands.doctor.finding import Area, Finding
from hermes.commands.status.table import span
from hermes.config import reading as configuration

AREA = Area("Test question")

ANSWER_S: Final = 120.0
NEEDED: Final = ("Configuration", "Telegram", "Store", "Database")
_REFUSED = {"skip": "skipped", "reject": "stopped"}


async def ask(
    path: Path | None,
    findings: Sequence[Finding],
    say: Callable[[str], None],
    *,
    environ: Mapping[str, str],
) -> tuple[Finding, ...]:
    """Ask a test question, unless a needed area is broken (`NEEDED`), and return the result as a finding."""
    missing = [one.area for one in findings if one.verdict == "broken" and one.area in NEEDED]
    if missing:
        return (AREA.warning("asked", f"not run: first fix what is broken ({', '.join(dict.fromkeys(missing))})"),)
    say("Asking a test question: answer it on the phone, within two minutes.")
    return await AREA.guarded("asked", _ask(path, environ), limit_s=ANSWER_S + 10)


async def _ask(path: Path | None, environ: Mapping[str, str]) -> list[Finding]:
    config, place = configuration.load(path, environ=environ), configuration.config_path(path, environ=environ)
    began_s = time.monotonic()
    told = await phone_question.ask(config, place, phone_question.TEST, timeout_s=ANSWER_S)
    took = span(time.monotonic() - began_s)
    if told.kind == "unanswered" or told.by_timer:
        seen = f"nobody answered within {took}; is it on the phone?"
        return [AREA.broken("asked", seen, f"see {config.log.file}")]
    words = ", ".join(label for labels in told.answers for label in labels) or _REFUSED.get(told.kind, told.kind)
    return [AREA.good("asked", f"answered after {took}: {words}")]
