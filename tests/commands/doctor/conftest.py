"""A patient with a bot, and one without."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.sandbox.botapi import RunningBotApi, running_botapi
from tests.commands.doctor.patient import Patient, a_token


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A Bot API, with a bot of its own."""
    with running_botapi(token=a_token()) as running:
        yield running


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A machine whose Telegram is nowhere."""
    return Patient(tmp_path)


@pytest.fixture
def healthy(tmp_path: Path, api: RunningBotApi) -> Patient:
    """A machine with a bot."""
    return Patient(tmp_path, api)
