"""The stage as a fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from tests.harness.opencode import OpenCode


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A stage with a private chat, nothing started yet."""
    with staged(tmp_path / "hermes") as ready:
        yield ready


@pytest.fixture
def connected(stage: Stage, opencode: OpenCode) -> Stage:
    """A stage that follows the shared OpenCode server, its listener running."""
    stage.connect(opencode)
    stage.start()
    return stage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of Hermes' own log to the report of a scene that failed."""
    report = yield
    ready = next((one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Stage)), None)
    if report.failed and ready is not None and ready.log.exists():
        report.sections.append(("Hermes' log", "\n".join(ready.log.read_text().splitlines()[-60:])))
    return report
