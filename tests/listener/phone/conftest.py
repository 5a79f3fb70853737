"""A listener with prompts, and a session that takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.prompted import Desked

if TYPE_CHECKING:
    from hermes.model.ask import Source
    from tests.listening import House


@pytest.fixture
async def desk(home: House) -> Desked:
    """A listener that brings prompts to a desk."""
    made = Desked(home)
    await made.start()
    return made


@pytest.fixture
def shop(desk: Desked) -> Source:
    """A session at that desk."""
    return desk.desk.session("Fix login flow")
