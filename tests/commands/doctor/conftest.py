"""A patient with a bot, and one without."""

import subprocess
import sys
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


@pytest.fixture
def rival(healthy: Patient, api: RunningBotApi) -> Iterator[None]:
    """Another program that polls the same bot, in a process of its own."""
    command = [sys.executable, "-m", "tests.commands.doctor.rival", api.base_url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(f"{healthy.token}\n")
        process.stdin.flush()
        try:
            api.phone.wait_for_poll(30)
            yield
        finally:
            process.kill()
