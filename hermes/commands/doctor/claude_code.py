"""Check Claude Code's settings: our hooks are there, hooks are not disabled, and their paths are right."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import hermes
from hermes.agents.claude_code import install
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.doctor.plugin import again_with, in_use, loads

AREA = Area("Claude Code")

PROGRAM: Final = "claude"


async def look(around: Around) -> tuple[Finding, ...]:
    """Check our hooks in the settings, and their paths; return nothing if there are no hooks and no Claude Code."""
    return await AREA.guarded("hooks", asyncio.to_thread(lambda: list(_look(around))))


def _look(around: Around) -> Iterator[Finding]:
    place = install.settings_path(around.environ)
    mend = around.hermes("install", "claude-code")
    found = install.commands(place)
    if not found:
        if shutil.which(PROGRAM, path=around.environ.get("PATH")):
            yield AREA.warning("hooks", f"not in {place}: its questions do not come to the phone", mend)
        return
    if json.loads(place.read_bytes()).get("disableAllHooks") is True:
        yield AREA.broken("hooks", f'{place} says "disableAllHooks": no hook is ever run', f"edit {place}")
    else:
        yield AREA.good("hooks", str(place))
    found = [[word for word in words if word != "--prompts"] for words in found]
    if install.is_outdated(around.environ):
        seen = f"not the hooks of Hermes {hermes.__version__}: what is new, such as notices or prompts, may be missing"
        yield AREA.broken("version", seen, *again_with(_named(found[0]), around, "claude-code", install.install))
    for words in {tuple(words): words for words in found}.values():
        yield from _words(around, words, mend)


def _words(around: Around, words: list[str], mend: str) -> Iterator[Finding]:
    """Check one command line: `exec PYTHON -I -m hermes hook claude-code --store DIR --log FILE --config PATH`."""
    named = _named(words)
    yield loads(AREA, words[words.index("-I") - 1], *again_with(named, around, "claude-code", install.install))
    yield in_use(AREA, around, named, mend)


def _named(words: list[str]) -> dict[str, str]:
    """Return what stands behind each option of a command line."""
    return {before.removeprefix("--"): after for before, after in pairwise(words)}
