"""The whole command: check all areas at once, repair what `--fix` can repair, and print the findings."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from hermes.commands.ask import phone_question
from hermes.commands.doctor import (
    claude_code,
    configuration as settings,
    database,
    listener,
    opencode,
    opencode2,
    plugin,
    prompts,
    store,
    telegram,
)
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.doctor.report import show, to_json
from hermes.commands.status.table import plain, span
from hermes.config import reading as configuration
from hermes.config.logs import Lines
from hermes.errors import ConfigError, HermesError

Look = Callable[[Around], Awaitable[tuple[Finding, ...]]]
AREAS: tuple[tuple[Area, Look], ...] = (
    (settings.AREA, settings.look),
    (telegram.AREA, telegram.look),
    (opencode.AREA, opencode.look),
    (opencode2.AREA, opencode2.look),
    (plugin.AREA, plugin.look),
    *((placed.area, placed.look) for placed in plugin.PLUGINS),
    (claude_code.AREA, claude_code.look),
    (listener.AREA, listener.look),
    (prompts.AREA, prompts.look),
    (store.AREA, store.look),
)
AREA_S = 60.0
TRIAL_S = 120.0
NEEDED = ("Configuration", "Telegram", "Store", "Database")
"""The areas without which no test question can be answered."""
_TRIAL = Area("Test question")
_REFUSED = {"skip": "skipped", "reject": "stopped"}
_LOOKING = "Looking; it takes some seconds to see whether another program uses your bot…"


async def examine(path: Path | None, *, environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """Check everything that the configuration names, the one at `path` or at the usual place. Never raises.

    The database comes first: if it cannot be used, no other check waits for it.
    """
    place = configuration.config_path(path, environ=environ)
    try:
        config = configuration.load(path, environ=environ)
    except ConfigError as error:
        return settings.unusable(error, place, environ)
    around = Around(config, place, environ)
    shared = await database.AREA.guarded("all", database.look(around), limit_s=AREA_S)
    around = replace(around, is_store_away=not database.is_usable(shared))
    found = await asyncio.gather(*(area.guarded("all", look(around), limit_s=AREA_S) for area, look in AREAS))
    hide = Lines().hide  # removes all that looks like a token, in texts of other programs too
    return tuple(
        replace(one, seen=hide(one.seen), mend=hide(one.mend)) for findings in (*found, shared) for one in findings
    )


async def mend(findings: Sequence[Finding]) -> list[str]:
    """Run the fix of each finding that has one, and return what was done, one sentence each."""
    said = []
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            said.append(await finding.fix())
        except (HermesError, OSError) as error:
            said.append(f"{finding.area}, {finding.check}: this could not be fixed: {error}")
    return said


async def run(path: Path | None, *, environ: Mapping[str, str], fix: bool, test: bool, as_json: bool) -> bool:
    """Examine, print the findings, and return whether nothing is broken.

    With `fix`, repair, and examine again if anything was repaired. `test` asks a question on the phone. With `as_json`,
    standard output gets only the JSON list, standard error all sentences.
    """
    console = Console()
    aside = Console(stderr=True) if as_json else console

    async def look() -> tuple[Finding, ...]:
        with console.status(_LOOKING) if console.is_terminal and not as_json else nullcontext():
            return await examine(path, environ=environ)

    findings = await look()
    if fix and (done := await mend(findings)):
        for sentence in done:
            aside.print(plain(sentence), soft_wrap=True)
        findings = await look()
    if test:
        findings += await _tried(path, findings, lambda words: aside.print(words, soft_wrap=True), environ=environ)
    if as_json:
        console.file.write(f"{to_json(findings)}\n")
    else:
        show(findings, console)
    return all(finding.verdict != "broken" for finding in findings)


async def _tried(
    path: Path | None,
    findings: Sequence[Finding],
    say: Callable[[str], None],
    *,
    environ: Mapping[str, str],
) -> tuple[Finding, ...]:
    """Ask a test question, unless a needed area is broken (`NEEDED`), and return the result as a finding."""
    missing = [one.area for one in findings if one.verdict == "broken" and one.area in NEEDED]
    if missing:
        return (_TRIAL.warning("asked", f"not run: first fix what is broken ({', '.join(dict.fromkeys(missing))})"),)
    say("Asking a test question: answer it on the phone, within two minutes.")
    return await _TRIAL.guarded("asked", _asked(path, environ), limit_s=TRIAL_S + 10)


async def _asked(path: Path | None, environ: Mapping[str, str]) -> list[Finding]:
    config, place = configuration.load(path, environ=environ), configuration.config_path(path, environ=environ)
    began_s = time.monotonic()
    asked = {**phone_question.TEST, "ttl_s": TRIAL_S}  # the phone shows when the question ends
    told = await phone_question.ask(config, place, asked, timeout_s=TRIAL_S)
    took = span(time.monotonic() - began_s)
    if told.kind == "unanswered" or told.by == "timer":
        seen = f"nobody answered within {took}; is it on the phone?"
        return [_TRIAL.broken("asked", seen, f"see {config.log.file}")]
    words = ", ".join(label for labels in told.answers for label in labels) or _REFUSED.get(told.kind, told.kind)
    return [_TRIAL.good("asked", f"answered after {took}: {words}")]
