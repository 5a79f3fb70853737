"""Claude Code's settings: are our hooks there, does Claude Code run any, do their paths live."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import hermes
from hermes.agents.claude_code import connect
from hermes.doctor.finding import Area, Around, Finding
from hermes.doctor.plugin import says_version

AREA = Area("Claude Code")

PROGRAM: Final = "claude"


async def look(around: Around) -> tuple[Finding, ...]:
    """Check the settings, and what our hooks in them name; nothing where there is no Claude Code."""
    return await AREA.guarded("hooks", asyncio.to_thread(lambda: list(_look(around))))


def _look(around: Around) -> Iterator[Finding]:
    place = connect.settings_path(around.environ)
    mend = around.hermes("install", "claude-code")
    found = connect.commands(place)
    if not found:
        if shutil.which(PROGRAM, path=around.environ.get("PATH")):
            yield AREA.warning("hooks", f"not in {place}: its questions do not come to the phone", mend)
        return
    if json.loads(place.read_bytes()).get("disableAllHooks") is True:
        yield AREA.broken("hooks", f'{place} says "disableAllHooks": no hook is ever run', f"edit {place}")
    else:
        yield AREA.good("hooks", str(place))
    for words in {tuple(words): words for words in found}.values():
        yield from _words(around, words, mend)


def _words(around: Around, words: list[str], mend: str) -> Iterator[Finding]:
    """Check one command line: `exec PYTHON -I -m hermes hook claude-code --store DIR --log FILE --config PATH`."""
    wanted = around.plugin_paths()
    python = words[words.index("-I") - 1]
    version = says_version(python)
    if version is None:
        yield AREA.broken(
            "python",
            f"{python} cannot load Hermes, so no hook starts",
            mend,
            lambda: around.put(connect.install, wanted),
        )
    elif version != hermes.__version__:
        yield AREA.warning("python", f"{python} has Hermes {version}, this is {hermes.__version__}", mend)
    else:
        yield AREA.good("python", f"{python} loads Hermes {version}")
    named = {before.removeprefix("--"): after for before, after in pairwise(words)}
    other = {name: named.get(name) for name, path in wanted.items() if Path(named.get(name, "")) != path}
    if not other:
        yield AREA.good("paths", "store, log and configuration are the ones in use")
        return
    # Another configuration may be meant: so it is said, and not mended by itself.
    seen = "; ".join(f"its {name} is {path or 'none'}, not {wanted[name]}" for name, path in other.items())
    yield AREA.broken("paths", seen, mend) if "store" in other else AREA.warning("paths", seen, mend)
