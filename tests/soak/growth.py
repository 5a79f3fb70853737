"""What a listener holds, sample by sample, and whether that grows with the number of asks that are over."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Sample:
    """What a listener held when so many asks were over, at so many seconds since the start."""

    at_s: float
    closed: int
    rss_bytes: int
    descriptors: int
    threads: int
    files: int
    """The files of the store outside of `done/`, where closed asks are kept for seven days by design."""

    def as_json(self) -> dict[str, Any]:
        """Return it for a report."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much more the median of the last quarter may be than that of the second: by itself, and for each ask."""

    fixed: float
    an_ask: float


ALLOWED: Final = {
    # A closed ask may leave its id and its time behind for a day: some 100 bytes. The rest is what the allocator
    # does with thousands of drawings of 300 KB. Before this was watched a small ask left 7 KB, and a big one 0.5 MB.
    "rss_bytes": Allowance(8 * 1024 * 1024, 1024),
    # As many connections as there are servers and asks at once come and go; none belongs to an ask that is over.
    "descriptors": Allowance(8, 0),
    "threads": Allowance(4, 0),
    # What is open at the moment of a sample; locks and answers of closed asks are swept within minutes.
    "files": Allowance(40, 0),
}


def sample(pid: int, store: Path, *, at_s: float, closed: int) -> Sample:
    """Look at a process and its store. Raises OSError where it is gone."""
    process = Path(f"/proc/{pid}")
    resident = int((process / "statm").read_text().split()[1]) * PAGE_BYTES
    threads = sum(1 for _ in (process / "task").iterdir())
    descriptors = sum(1 for _ in (process / "fd").iterdir())
    return Sample(at_s, closed, resident, descriptors, threads, _files(store))


def _files(store: Path) -> int:
    return sum(1 for place in store.rglob("*") if place.is_file() and "done" not in place.relative_to(store).parts)


def growth(samples: Sequence[Sample]) -> Iterator[str]:
    """Tell what grew with the asks that were closed between the second quarter and the last one."""
    quarters = _quarters(samples)
    if quarters is None:
        yield f"{len(samples)} samples tell nothing: there must be four in each quarter"
        return
    second, last = quarters
    closed = statistics.median(one.closed for one in last) - statistics.median(one.closed for one in second)
    for what, allowed in ALLOWED.items():
        was, came_to = (statistics.median(getattr(one, what) for one in part) for part in (second, last))
        more, most = came_to - was, allowed.fixed + allowed.an_ask * closed
        if more > most:
            yield f"{what} grew from {was:.0f} to {came_to:.0f} with {closed:.0f} closed asks; {most:.0f} are allowed"


def _quarters(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]] | None:
    size = len(samples) // 4
    return (samples[size : 2 * size], samples[-size:]) if size >= 4 else None


def figures(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the medians of each quarter for a report."""
    size = max(1, len(samples) // 4)
    parts = [samples[place * size : (place + 1) * size] for place in range(4)]
    names = [one.name for one in fields(Sample)]
    return {
        name: [statistics.median(getattr(one, name) for one in part) if part else 0 for part in parts] for name in names
    }
