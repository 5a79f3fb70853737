"""Fixtures of the setup's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.commands.setup.desk import Desk, a_desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A computer with nothing of Hermes on it."""
    with a_desk(tmp_path) as made:
        yield made
