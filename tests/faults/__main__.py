"""Play rounds, in as many worlds at once as there are cores, and report."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shlex
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table

from hermes.sandbox.postgres import ServerMissingError, programs
from tests.faults import opencode2, topics
from tests.faults.faults import FAMILIES as OF_ONE
from tests.faults.machines.faults import FAMILIES as OF_MACHINES
from tests.faults.playing import A_WORLD, MACHINES, log_of, played
from tests.faults.round import STALLED
from tests.faults.world import PACE
from tests.harness.home import VERSIONS, BinaryMissingError, binary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.faults.round import Outcome

    Play = Callable[[int, Sequence[int], str, Sequence[str]], Sequence[Outcome]]

ROUNDS: Final = 2000
REAL: Final = 5
SECOND: Final = 500
SEVERAL: Final = 100
TOPICS: Final = 100
FAMILIES: Final = {**OF_ONE, **OF_MACHINES}


def main(arguments: Sequence[str] | None = None, *, play: Play = played) -> int:
    """Return 0 where no law was violated, and every round was played. `play` plays what `--only` wants."""
    given = _parser().parse_args(arguments)
    console = Console()
    began_s = time.monotonic()
    outcomes: list[Outcome] = []
    versions = [] if given.only is not None or not given.real else list(_fetched(console))
    given.machines = given.machines if _has_postgres(given, console) else 0
    for outcome in _played(given, versions, play):
        outcomes.append(outcome)
        for violation in outcome.violations:
            console.print(f"seed {outcome.seed} round {outcome.number}: {violation}", markup=False)
        if outcome.violations:
            console.print(
                f"  faults: {', '.join(outcome.faults)}; to replay: {_replay(outcome, given.kinds)}", markup=False
            )
            console.print(f"  Hermes' log up to then: {log_of(outcome)}", markup=False)
        if len(outcomes) % 50 == 0:
            wanted = given.rounds + given.second + given.machines + given.topics
            console.print(f"{len(outcomes)} of {wanted} rounds, {time.monotonic() - began_s:.0f} s")
    report = _report(outcomes, time.monotonic() - began_s)
    _show(report, console)
    if given.json:
        given.json.write_text(json.dumps(report, indent=1, ensure_ascii=False))
    besides = given.second + given.machines + given.topics + given.real * len(versions)
    wanted = 1 if given.only is not None else given.rounds + besides
    return 1 if report["violations"] or len(outcomes) != wanted else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=None, help="by default another one each time")
    parser.add_argument("--only", type=int, metavar="ROUND", help="this one round of the seed's, in a world of its own")
    versions = (*VERSIONS, opencode2.VERSION, MACHINES, topics.VERSION)
    parser.add_argument(
        "--opencode",
        default="",
        choices=versions,
        help="play that one round with this OpenCode, with several machines, or with topics",
    )
    parser.add_argument("--kinds", nargs="+", default=(), metavar="KIND", help="these kinds of faults and no others")
    parser.add_argument("--real", type=int, default=REAL, metavar="N", help="rounds with each real OpenCode besides")
    parser.add_argument("--second", type=int, default=SECOND, metavar="N", help="rounds with two OpenCode 2 besides")
    parser.add_argument("--machines", type=int, default=SEVERAL, metavar="N", help="rounds with three machines besides")
    parser.add_argument("--topics", type=int, default=TOPICS, metavar="N", help="rounds with topics besides")
    parser.add_argument("--worlds", type=int, default=os.cpu_count() or 1, help="worlds at once")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser


def _replay(outcome: Outcome, kinds: Sequence[str]) -> str:
    real = f" --opencode {outcome.version}" if outcome.version else ""
    real += f" --kinds {shlex.join(kinds)}" if kinds else ""
    return f"python -m tests.faults --seed {outcome.seed} --only {outcome.number}{real}"


def _fetched(console: Console) -> Iterator[str]:
    """Say which OpenCode is missing, and yield the others."""
    for version in VERSIONS:
        try:
            binary(version)
        except BinaryMissingError as error:
            console.print(f"not played with the real OpenCode {version}: {error}", markup=False)
        else:
            yield version


def _has_postgres(given: argparse.Namespace, console: Console) -> bool:
    """Tell whether rounds with several machines can be played; say it if some are wanted and cannot."""
    try:
        programs()
    except ServerMissingError as error:
        if given.only is None and given.machines:
            console.print(f"not played with several machines: {error}", markup=False)
        return False
    return True


def _played(given: argparse.Namespace, versions: Sequence[str], play: Play) -> Iterator[Outcome]:
    seed = Random().randrange(10**6) if given.seed is None else given.seed
    if given.only is not None:
        yield from play(seed, [given.only], given.opencode, given.kinds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.worlds, mp_context=context, max_tasks_per_child=1) as pool:
        scripted = [pool.submit(played, seed, batch, "", given.kinds) for batch in _batches(given.rounds)]
        second = [pool.submit(played, seed, batch, opencode2.VERSION, given.kinds) for batch in _batches(given.second)]
        several = [pool.submit(played, seed, batch, MACHINES, given.kinds) for batch in _batches(given.machines)]
        in_topics = [pool.submit(played, seed, batch, topics.VERSION, given.kinds) for batch in _batches(given.topics)]
        real = [pool.submit(played, seed, list(range(given.real)), version) for version in versions]
        for done in as_completed([*scripted, *second, *several, *in_topics, *real]):
            yield from done.result()


def _batches(rounds: int) -> list[list[int]]:
    """Return the numbers of so many rounds, those of one world in each list."""
    return [list(range(first, min(first + A_WORLD, rounds))) for first in range(0, rounds, A_WORLD)]


def _report(outcomes: Sequence[Outcome], took_s: float) -> dict[str, Any]:
    kinds = Counter(kind for outcome in outcomes for kind in outcome.faults)
    broken = Counter(kind for outcome in outcomes if outcome.violations for kind in outcome.faults)
    ends = Counter(end for outcome in outcomes for end in outcome.ends)
    settled = sorted(outcome.settled_s for outcome in outcomes)
    return {
        "seed": outcomes[0].seed if outcomes else None,
        "rounds": len(outcomes),
        "asks": sum(outcome.asks for outcome in outcomes),
        "ends": dict(sorted(ends.items())),
        "violations": sum(len(outcome.violations) for outcome in outcomes),
        "took_s": round(took_s, 1),
        "rounds in which the machine stalled": kinds[STALLED],
        "pace": PACE,
        "settled_s": {"median": settled[len(settled) // 2], "longest": settled[-1]} if settled else {},
        "faults": {
            family: {kind: {"rounds": kinds[kind], "with a violation": broken[kind]} for kind in members}
            for family, members in FAMILIES.items()
        },
        "outcomes": [outcome.as_json() for outcome in outcomes if outcome.violations],
    }


def _show(report: dict[str, Any], console: Console) -> None:
    table = Table(title=f"{report['rounds']} rounds, {report['asks']} asks, seed {report['seed']}")
    for heading in ("fault", "rounds", "with a violation"):
        table.add_column(heading, justify="left" if heading == "fault" else "right")
    for family, members in report["faults"].items():
        table.add_section()
        begun, broken = (sum(one[key] for one in members.values()) for key in ("rounds", "with a violation"))
        table.add_row(f"{family}, {len(members)} kinds", str(begun), str(broken), style="bold")
        for kind, counted in members.items():
            table.add_row(f"  {kind}", str(counted["rounds"]), str(counted["with a violation"]))
    console.print(table)
    console.print("asks ended: " + ", ".join(f"{end} {count}" for end, count in report["ends"].items()), markup=False)
    stalled = report["rounds in which the machine stalled"]
    also = f" · the machine itself stood still in {stalled} rounds" if stalled else ""
    console.print(f"violations: {report['violations']} · {report['took_s']} s{also}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
