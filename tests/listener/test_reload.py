"""A configuration that is changed under a listener counts within seconds; one that cannot be used is said, once."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hermes.config.reading import Followed
from tests.harness.processes import Proc, free_port
from tests.listening import ANN, BOB, House, a_request, house, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

home = house()
TOKEN = f"123456789:{'A' * 35}"
WHOLE = f'[telegram]\ntoken = "{TOKEN}"\nchat_id = 5\nusers = [5]\n'


def write(home: House, *users: int, url: str = "", token_file: Path | None = None) -> Path:
    """Write the configuration, as an editor does that replaces the file."""
    token = f'token = "{home.api.token}"' if token_file is None else f'token_file = "{token_file}"'
    config = home.root / "config.toml"
    fresh = home.root / "config.new"
    fresh.write_text(
        f"[telegram]\n{token}\nchat_id = 1001\nusers = {list(users)}\n"
        f'api_base = "{home.api.base_url}"\n'
        f'[store]\npath = "{home.store}"\nurl = "{url}"\n[log]\nfile = "{home.root / "hermes.log"}"\n'
    )
    fresh.chmod(0o600)
    fresh.replace(config)
    return config


@contextmanager
def listening(home: House, *, url: str = "", token_file: Path | None = None) -> Iterator[Proc]:
    """Its listener, as a process of its own whose time passes five times as fast."""
    clock = home.root / "clock.json"
    began = {"epoch_s": time.time(), "steady_s": time.monotonic(), "ahead_s": 0, "pace": 5}
    clock.write_text(json.dumps(began))
    config = write(home, BOB.id, url=url, token_file=token_file)
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(config)]
    command += ["--test-clock", str(clock)]
    with Proc(command, cwd=home.root, environ=os.environ, log_dir=home.root, name="listener") as process:
        yield process
        process.sigterm()


async def test_a_person_who_is_added_by_hand_may_answer(home: House) -> None:
    """The same process starts itself again; until then the person is a stranger, and what is open stays open."""
    with listening(home) as process, home.waiting("que_1"):
        await until(lambda: home.api.control.state().polling, "a poll")
        home.hook("question.asked", a_request("que_1"))
        shown = await home.person.sees("Which database?", buttons=True)
        write(home, BOB.id, ANN.id)
        process.wait_line("the configuration changed: starting again")
        await until(lambda: process.output().count("listening for bot") == 2, "another start")
        assert await home.person.taps(shown, "SQLite") == "SQLite"
        write(home, ANN.id).unlink()
        process.wait_line("the configuration was changed and cannot be used")
        assert process.alive()


async def test_a_database_that_does_not_answer_can_be_changed_for_another_store(home: House) -> None:
    """A listener that waits for one sees that, too."""
    with listening(home, url=f"postgresql://hermes@127.0.0.1:{free_port()}/hermes") as process:
        process.wait_line("the database cannot be reached")
        write(home, BOB.id)
        process.wait_line("the configuration changed: starting again")
        await until(lambda: home.api.control.state().polling, "a poll")


async def test_a_token_that_is_renewed_in_its_own_file_counts(home: House) -> None:
    """Else the listener would be deaf with the revoked one, while `hermes setup` finds nothing to change."""
    token = home.root / "token"
    token.write_text(home.api.token)
    token.chmod(0o600)
    with listening(home, token_file=token) as process:
        await until(lambda: home.api.control.state().polling, "a poll")
        token.write_text("")
        process.wait_line("the configuration was changed and cannot be used")
        token.write_text(f"{home.api.token}\n\n")
        process.wait_line("the configuration changed: starting again")
        await until(lambda: process.output().count("listening for bot") == 2, "another start")


def test_only_another_content_that_can_be_used_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An error is logged once, and again once the file was well in between; what is as before is no change."""
    config = tmp_path / "config.toml"
    config.write_text(WHOLE)
    followed = Followed(config, environ={})
    caplog.set_level(logging.ERROR)
    for text in (WHOLE, "[telegram", "[telegram", WHOLE, "[telegram"):
        config.write_text(text)
        assert not followed.has_changed()
    assert len(caplog.records) == 2
    assert f"so the one before counts: {config} is not TOML" in caplog.text
    config.unlink()
    assert not followed.has_changed()
    assert f"{config} does not exist" in caplog.text
    config.write_text(WHOLE.replace("users = [5]", "users = [5, 6]"))
    assert followed.has_changed()
