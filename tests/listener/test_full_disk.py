"""A disk that is full for real: the system lets the listener's process write no file any more."""

from __future__ import annotations

import os
import resource
import sys
from typing import TYPE_CHECKING

import pytest

from hermes.hook import spool
from tests.harness.processes import Proc
from tests.listening import House, a_request, house, question, until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit, which only Linux has")
SORRY = "I could not save that"
home = house()


@pytest.fixture
def listener(home: House) -> Iterator[Proc]:
    """Its listener, as a process of its own."""
    config = home.root / "config.toml"
    config.write_text(
        f'[telegram]\ntoken = "{home.api.token}"\nchat_id = 1001\nusers = [1001]\napi_base = "{home.api.base_url}"\n'
        f'[store]\npath = "{home.store}"\n[log]\nfile = "{home.root / "hermes.log"}"\n'
    )
    config.chmod(0o600)
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(config)]
    with Proc(command, cwd=home.root, environ=os.environ, log_dir=home.root, name="listener") as process:
        yield process
        process.sigterm()


def fill(listener: Proc) -> None:
    """Let no file of this process grow any more."""
    resource.prlimit(listener.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # type: ignore[attr-defined,unused-ignore]


def free(listener: Proc) -> None:
    """Let it write again."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(listener.pid, resource.RLIMIT_FSIZE, unlimited)  # type: ignore[attr-defined,unused-ignore]


async def test_nothing_is_lost_by_a_full_disk(home: House, listener: Proc) -> None:
    """Taps and texts are told of, what was there is unchanged, the inbox waits; then all works, without a restart."""
    with home.waiting("que_1") as wait:
        await until(lambda: home.api.control.state().polling, "a poll")
        home.hook("question.asked", a_request("que_1"))
        shown = await home.person.sees("Which database?")
        (pending,) = (home.store / "pending").glob("*.json")
        await until(lambda: f'"message_id":{shown.message_id}' in pending.read_text(), "the post noted")
        fill(listener)
        before = pending.read_bytes()
        assert SORRY in await home.person.taps(shown, "SQLite")
        home.person.write("Redis", to=shown)
        await home.person.sees(SORRY)
        home.hook("question.asked", a_request("que_2", question("And this?"), session="ses_2", call="call_2"))
        assert SORRY in await home.person.taps(shown, "PostgreSQL")
        assert pending.read_bytes() == before
        assert spool.take_answer(home.store, wait) is None
        assert len(spool.listing(home.store)) == 1
        free(listener)
        spool.nudge(home.store)
        await home.person.sees("And this?")
        assert await home.person.taps(shown, "SQLite") == "SQLite"
        text = await until(lambda: spool.take_answer(home.store, wait), "the answer laid ready")
        assert '"answers": [["SQLite"]]' in text
    assert listener.alive()
