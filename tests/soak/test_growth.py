"""The soak can fail: what grows with closed asks is told, and what does not is not."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.soak.growth import ALLOWED, Sample, figures, growth, sample

if TYPE_CHECKING:
    from pathlib import Path

USUAL = Sample(0.0, 0, 60_000_000, 30, 4, 12)


def samples(what: str = "", an_ask: float = 0.0, *, asks: int = 2000) -> list[Sample]:
    """Return a soak of so many asks of which each leaves so much of one thing behind."""
    found = []
    for place in range(40):
        closed = asks * place // 40
        one = replace(USUAL, at_s=float(place), closed=closed)
        found.append(replace(one, **{what: int(getattr(one, what) + an_ask * closed)}) if what else one)
    return found


@pytest.mark.parametrize(
    ("what", "an_ask"),
    [
        ("rss_bytes", 0.1 * 500_000),  # one big permission in ten asks
        ("rss_bytes", 12_000),
        ("descriptors", 0.02),
        ("threads", 0.01),
        ("files", 0.1),
    ],
)
def test_what_grows_with_closed_asks_is_told(what: str, an_ask: float) -> None:
    """With how much, and how much is allowed."""
    (told,) = growth(samples(what, an_ask))
    assert told.startswith(what)
    assert "are allowed" in told


@pytest.mark.parametrize("what", [*ALLOWED])
def test_what_comes_and_goes_is_not_told(what: str) -> None:
    """A peak in the middle of a quarter moves no median."""
    level = samples()
    level[12] = replace(level[12], **{what: getattr(level[12], what) * 10})
    level[35] = replace(level[35], **{what: getattr(level[35], what) * 10})
    assert list(growth(level)) == []


def test_growth_at_the_start_is_none() -> None:
    """What is loaded for the first asks stays, and does not count."""
    begun = [
        replace(one, rss_bytes=one.rss_bytes + 30_000_000) if place > 8 else one for place, one in enumerate(samples())
    ]
    assert list(growth(begun)) == []


def test_too_few_samples_are_no_success() -> None:
    """A soak that could not look is a soak that failed."""
    assert "tell nothing" in next(growth(samples()[:10]))


def test_a_sample_of_this_process(tmp_path: Path) -> None:
    """What is kept in `done/` does not count."""
    for name in ("pending/a.json", "done/2026-11/b.json", "locks/c"):
        place = tmp_path / name
        place.parent.mkdir(parents=True)
        place.write_bytes(b"")
    one = sample(os.getpid(), tmp_path, at_s=1.0, closed=3)
    assert one.files == 2
    assert one.rss_bytes > 1_000_000
    assert one.threads >= 1
    assert one.descriptors >= 1
    assert figures([one])["closed"][0] == 3
