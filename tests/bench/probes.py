"""What Linux tells about a process, and processes that the benchmark starts and times itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.harness.processes import until

PASS: Final = (sys.executable, "-I", "-c", "pass")
ENVIRON: Final = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
_CALM_TICKS: Final = 2


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process holds, in MB (10^6 bytes): `pss` counts what it shares with others in part only."""

    rss: float
    pss: float


def memory(pid: int) -> Memory:
    """Return what the process holds now."""
    found = dict(re.findall(r"^(Rss|Pss): +(\d+) kB$", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE))
    return Memory(rss=int(found["Rss"]) * 1024 / 1e6, pss=int(found["Pss"]) * 1024 / 1e6)


def cpu_s(pid: int) -> float:
    """Return the processor time of all threads of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def settle(pid: int, *, look_s: float, timeout_s: float = 60.0, most_ticks: float = _CALM_TICKS) -> None:
    """Wait until the process holds as much as one look before, and was busy for at most so many ticks since."""
    seen: list[tuple[float, float]] = []

    def calm() -> bool:
        seen.append((memory(pid).rss, cpu_s(pid)))
        if len(seen) < 2:
            return False
        (rss, busy_s), (rss_now, busy_now_s) = seen[-2:]
        return rss == rss_now and busy_now_s - busy_s <= most_ticks / _TICKS_A_SECOND

    until(calm, timeout_s, f"process {pid} at rest", every_s=look_s)


def cpu_share(pid: int, over_s: float) -> float:
    """Return the share of one core that the process takes over this time, in percent."""
    began_s, before_s = time.monotonic(), cpu_s(pid)
    time.sleep(over_s)
    return 100 * (cpu_s(pid) - before_s) / (time.monotonic() - began_s)


def lasted_s(command: Sequence[str], *, environ: Mapping[str, str], stdin: Path) -> float:
    """Return how long the command took from its start to its end; it must end with 0."""
    with stdin.open("rb") as given:
        began_s = time.perf_counter()
        process = subprocess.Popen(
            command, env=dict(environ), stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        status = process.wait()
        took_s = time.perf_counter() - began_s
    assert status == 0, (command, status)
    return took_s
