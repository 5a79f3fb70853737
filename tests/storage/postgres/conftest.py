"""No test leaves a connection open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.storage.machines import MADE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(autouse=True)
async def _all_leave() -> AsyncIterator[None]:
    """Close what a test has made and not closed."""
    yield
    while MADE:
        await MADE.pop().leave()
