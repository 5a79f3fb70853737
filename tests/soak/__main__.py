"""Let Hermes work for a long time, and see that nothing grows with the asks that are over."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from rich.console import Console

from tests.soak.growth import figures
from tests.soak.soaking import soaked

if TYPE_CHECKING:
    from collections.abc import Sequence

MINUTES: Final = 20.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 where no law was violated and nothing grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for so long new asks come")
    parser.add_argument("--asks", type=int, default=10**6, help="or until there were so many")
    parser.add_argument("--seed", type=int, default=None, help="by default another one each time")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    seed = Random().randrange(10**6) if given.seed is None else given.seed
    report = soaked(seed, for_s=given.minutes * 60, most=given.asks)
    if given.json:
        given.json.write_text(json.dumps(report.as_json(), indent=1, ensure_ascii=False))
    console = Console()
    for violation in report.violations:
        console.print(violation, markup=False)
    for what, medians in figures(report.samples).items():
        console.print(f"{what}, the median of each quarter: {', '.join(f'{one:.0f}' for one in medians)}", markup=False)
    console.print(f"asks ended: {report.ends}; trouble: {sum(report.troubles.values())} times", markup=False)
    console.print(
        f"seed {seed}: {report.asks} asks, {len(report.violations)} violations, {report.took_s:.0f} s", markup=False
    )
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
