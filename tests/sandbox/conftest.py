"""A bot without a library, for the `api` of each module."""

from collections.abc import Iterator

import pytest

from hermes.sandbox.botapi import RunningBotApi
from tests.sandbox.raw_bot import RawBot, raw_bot


@pytest.fixture
def bot(api: RunningBotApi) -> Iterator[RawBot]:
    """Its bot."""
    with raw_bot(api) as bot:
        yield bot
