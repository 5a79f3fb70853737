"""`python -m tests.bench`: measure what Hermes must reach, and say honestly what it reaches.

Real processes throughout: `hermes listen` and `hermes hook`, the local Bot API, a real OpenCode or the scripted agent
server. Times are compared by the machine's monotonic clock, which its processes share; the Bot API notes when a
request arrives, a process of its own when an event does. Nobody looks while something is measured. What could not be
measured says why; a figure that is missed is no failure of the tool: the exit status is 0, and 1 only where the
measuring itself went wrong.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from tests.bench import burst, hooks, machine, machines, prompting, questions, report, resting, starting, storing
from tests.bench.figures import FULL, QUICK, Effort, Figure
from tests.harness.home import ROOT, BinaryMissingError
from tests.harness.processes import SWEEPER

Measure = Callable[[Effort, Path], list[Figure]]


class Group(NamedTuple):
    """Figures that are measured together."""

    figures: Callable[[Effort], Sequence[Figure]]
    measure: Measure


GROUPS: Mapping[str, Group] = {
    "hook": Group(lambda _: hooks.FIGURES, hooks.measure),
    "opencode": Group(lambda _: questions.WITH_OPENCODE, questions.with_opencode),
    "opencode2": Group(lambda _: questions.SECOND, questions.with_second),
    "permission": Group(lambda _: questions.PERMISSIONS, questions.permissions),
    "plugin": Group(lambda _: questions.PLUGIN, questions.with_plugin),
    "prompt": Group(lambda _: prompting.FIGURES, prompting.measure),
    "tap": Group(lambda _: questions.SCRIPTED, questions.with_script),
    "store": Group(storing.figures, storing.measure),
    "burst": Group(burst.figures, burst.measure),
    "idle": Group(resting.figures, resting.measure),
    "machines": Group(machines.figures, machines.measure),
    "start": Group(lambda _: starting.FIGURES, starting.measure),
}


def main(arguments: Sequence[str], *, groups: Mapping[str, Group] = GROUPS) -> int:
    """Measure, print, and write the JSON; the exit status."""
    given = _parser(groups).parse_args(arguments)
    effort = QUICK if given.quick else FULL
    console = Console(width=None if sys.stdout.isatty() else 180)
    loads: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir=_place(), prefix="bench-", ignore_cleanup_errors=True) as folder:
        about = machine.described(Path(folder))
        figures, failed = run(given.only or list(groups), effort, Path(folder), groups=groups, loads=loads)
    kept = report.record(
        figures,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=shlex.join([".venv/bin/python", "-m", "tests.bench", *arguments]),
        machine=about,
        load_before_each={**loads, "the end": machine.load()},
        effort=("too little to be quoted: " if given.quick else "") + repr(effort),
    )
    report.show(figures, kept, console)
    if given.json:
        report.write(given.json, kept)
    return 1 if failed else 0


def _place() -> Path:
    """A folder on the disk of the project: the system's own for temporary files may be no disk at all."""
    place = ROOT / ".cache"
    place.mkdir(exist_ok=True)
    return place


def run(
    names: Sequence[str],
    effort: Effort,
    root: Path,
    *,
    groups: Mapping[str, Group] = GROUPS,
    loads: dict[str, str] | None = None,
) -> tuple[list[Figure], bool]:
    """Measure these groups one after another; also, whether the measuring of any went wrong.

    `loads` takes the machine's load before each: what else ran then is in the figures, too.
    """
    figures, failed = [], False
    loads = {} if loads is None else loads
    for name in names:
        loads[name] = machine.load()
        sys.stderr.write(f"measuring: {name} …\n")
        group, place = groups[name], root / name
        place.mkdir()
        try:
            figures += group.measure(effort, place)
        except BinaryMissingError as missing:
            figures += [figure.impossible(str(missing)) for figure in group.figures(effort)]
        except Exception as error:  # noqa: BLE001 (the other groups are still worth measuring)
            failed = True
            traceback.print_exc()
            figures += [figure.impossible(f"{type(error).__name__}, see above") for figure in group.figures(effort)]
    return figures, failed


def _parser(groups: Mapping[str, Group]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=tuple(groups), metavar="NAME", help=f"of {', '.join(groups)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all values in a file, too")
    parser.add_argument("--quick", action="store_true", help="see that it works: too little of all to be quoted")
    return parser


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    finally:
        SWEEPER.close()
    sys.exit(status)
