"""The listener's life: one a bot and store, recovered at each start, never deaf, gone when it is told to go."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import hermes
from hermes import holding, spool
from hermes.chat.words import unreadable
from hermes.connection import ABSENCE_S
from hermes.errors import ChatRefused, Held, StoreError
from hermes.listener import HOUSEKEEPING_S, REMEMBER_S
from hermes.store import LISTENER, Store
from tests.harness.processes import Proc
from tests.listening import House, a_request, house, question, until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.demo.shown import ShownMessage

ASKED = "Which database?"
home = house("new")


# --- one at a time ------------------------------------------------------------------------------------------------


async def test_a_second_listener_is_told_who_was_first(home: House) -> None:
    """One of the same store, and one of the same bot with another store."""
    await home.start()
    with pytest.raises(Held, match=rf"hermes listen.*\(pid {os.getpid()}\) holds the store"):
        await home.new().run()
    home.sections["store"] = {"path": str(home.root / "another")}
    with pytest.raises(Held, match="holds the bot"):
        await home.new().run()


async def test_a_store_that_is_none_is_refused(home: House) -> None:
    """Its folder holds other things: nothing is started, and no lock is left."""
    home.store.mkdir()
    (home.store / "thesis.tex").write_text("")
    with pytest.raises(StoreError, match="holds other things"):
        await home.new().run()
    with holding.hold_bot(home.config().telegram.bot_id, "a test"):
        pass


# --- leaving ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_everything_saved(home: House, number: signal.Signals) -> None:
    """The open ask is there at the next start, with the place in Telegram's queue and the answerable clock."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await home.polled()
    home.listener._time.clock.counted_s = 77.0
    os.kill(os.getpid(), number)
    await home.ended()
    assert not spool.nudge(home.store)
    tap = home.person.tap(shown, "SQLite")
    await home.start()
    assert home.listener._time.clock.counted_s >= 77.0
    assert await home.person.toast(tap) == "SQLite"
    await home.person.sees("✅ SQLite", buttons=False)
    assert len(home.agent.effects) == 1


async def test_one_that_a_hook_started_leaves_when_nothing_is_open(home: House) -> None:
    """Not while an ask is open, nor while something waits in the inbox."""
    await home.start(idle_s=600.0)
    request_id = home.agent.ask([question()])
    await home.person.sees(ASKED)
    home.clock.advance(700)
    await asyncio.sleep(0.4)
    assert home.entries()
    home.agent.answer(request_id, [["SQLite"]])
    await home.closed()
    home.clock.advance(700)
    await home.ended()


async def test_the_clock_is_remembered_now_and_then(home: House) -> None:
    """A killed listener loses ten seconds of it at most; and done entries are forgotten in time."""
    await home.start(store={"path": str(home.store), "keep_done": "1h"})
    request_id = home.agent.ask([question()])
    await home.person.sees(ASKED)
    home.agent.answer(request_id, [["SQLite"]])
    await home.closed()
    home.agent.ask([question("And now?")])
    await home.person.sees("And now?")
    assert list((home.store / "done").rglob("*.json"))
    home.clock.advance(REMEMBER_S + 1)
    bot_id = home.config().telegram.bot_id
    store = Store(home.store)
    await until(lambda: (store.load_chat(bot_id).known_at_s or 0.0) > home.clock.now() - 5, "the clock on disk")
    home.clock.advance(HOUSEKEEPING_S + 3600)
    await until(lambda: not list((home.store / "done").rglob("*.json")), "the old entry forgotten")


# --- never deaf ---------------------------------------------------------------------------------------------------


async def test_a_part_that_stumbles_begins_anew(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """The inbox is a file, of all things: said with a traceback, again and again; all else goes on; then it is back."""
    await home.start()
    assert not (home.store / "inbox").exists()
    (home.store / "inbox").write_text("no folder")
    spool.nudge(home.store)
    await until(lambda: "a part of the listener stumbled and begins anew" in caplog.text, "a line in the log")
    home.agent.ask([question()])
    await home.person.taps(await home.person.sees(ASKED), "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    (home.store / "inbox").unlink()
    home.hook("question.asked", a_request("que_1", question("From a hook?")))
    await home.person.sees("From a hook?")


async def test_a_full_disk_jams_neither_inbox_nor_clock(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing can be written: said; what hooks dropped waits, and is taken in when there is room."""
    await home.start()
    (home.store / "pending").rename(home.store / "pending.away")
    (home.store / "pending").write_text("a file where a folder belongs")
    home.hook("question.asked", a_request())
    await until(lambda: "the inbox waits: nothing was saved" in caplog.text, "a line in the log")
    assert len(spool.listing(home.store)) == 1
    (home.store / "pending").unlink()
    (home.store / "pending.away").rename(home.store / "pending")
    spool.nudge(home.store)
    await home.person.sees(ASKED)
    assert spool.listing(home.store) == []


@pytest.mark.parametrize("trouble", ["", "refused", "reaped", "held"])
async def test_what_was_damaged_while_nobody_listened_is_said(home: House, trouble: str) -> None:
    """On the phone, once: there its buttons do nothing. Where the agent still lists the question it comes again."""
    await home.start()
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    await home.stop()
    (file,) = (home.store / "pending").glob("*.json")
    file.write_text("{")
    if trouble == "held":
        with holding.hold_bot(home.config().telegram.bot_id, "another store's"), pytest.raises(Held):
            await home.new().run()
        assert file.read_text() == "{", "who may not listen changes nothing"
    if trouble == "reaped":
        home.api.control.fault(method="sendMessage", action="hang", hang_s=60, times=9)
        reaping = asyncio.get_running_loop().create_task(home.new().run_once())
        await until(lambda: not file.exists(), "the file put away")
        reaping.cancel()
        with suppress(asyncio.CancelledError):
            await reaping
        home.api.control.clear_faults()
    if trouble == "refused":
        home.api.control.fault(method="sendMessage", action="error", status=502, times=2)
    await home.start()
    await home.person.sees(unreadable(1, spool.machine()).text)
    await until(lambda: len(seen(home, ASKED)) == 2, "the question again")
    await home.stop()
    await home.start()
    assert len(seen(home, "can't be read")) == 1


def seen(home: House, text: str) -> list[ShownMessage]:
    """The bot's messages with this text."""
    return [one for one in home.person.shown() if text in one.text]


async def test_a_clock_that_cannot_be_saved_is_said(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """The memory of the chat is a folder: an error each time, and the listener goes on."""
    await home.start()
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    (home.store / "telegram.json").unlink(missing_ok=True)
    (home.store / "telegram.json").mkdir()
    home.clock.advance(REMEMBER_S + 1)
    await until(lambda: "telegram.json" in caplog.text or "nothing was saved" in caplog.text, "a line in the log")
    (home.store / "telegram.json").rmdir()
    await home.person.taps(await home.person.sees(ASKED), "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)


async def test_what_nothing_waits_for_may_fail(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its traceback."""

    async def failing() -> None:
        raise ZeroDivisionError("a defect")

    async with home.still() as listener:
        listener._spawn(failing())
        await until(lambda: "ZeroDivisionError: a defect" in caplog.text, "a line in the log")


async def test_nothing_is_due_twice(home: House) -> None:
    """The step that ends joined texts finds nothing to do for an ask that is closed, or has nothing due."""
    async with home.still() as listener:
        assert await listener._due("nobody22") is None
        home.hook("question.asked", a_request())
        listener._take_inbox()
        assert await listener._due(home.entry().id) is None


# --- reaping ------------------------------------------------------------------------------------------------------


async def test_reaping_does_once_what_a_listener_does(home: House) -> None:
    """A tap made while nobody listened is taken in and delivered; what is over is settled; then it leaves."""
    await home.start()
    home.agent.ask([question("Tapped?")])
    ended = home.agent.ask([question("Ended?")])
    tapped = await home.person.sees("Tapped?")
    await home.person.sees("Ended?")
    await home.stop()
    tap = home.person.tap(tapped, "SQLite")
    home.agent.answer(ended, [["PostgreSQL"]])
    home.clock.advance(30)
    reaper = home.new()
    home._listener = reaper
    reaping = asyncio.get_running_loop().create_task(reaper.run_once())
    await home.person.sees("✅ SQLite", buttons=False)
    await home.person.sees("🖥 Answered on the computer: PostgreSQL", buttons=False)
    home.clock.advance(30)
    for entry in home.entries():
        reaper._kick("phone", entry.id)
    await reaping
    assert await home.person.toast(tap) == "SQLite"
    assert list((home.store / "pending").glob("*.json")) == []
    assert not home.api.control.state().polling


async def test_a_reaper_makes_no_words_about_its_absence(home: House) -> None:
    """It is away most of the time: nothing is said at each run, and nothing drawn afresh."""
    await home.start()
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    await home.polled()
    await home.stop()
    before = [len(home.api.control.calls(method)) for method in ("sendMessage", "editMessageText")]
    home.clock.advance(ABSENCE_S + 1)
    await home.new().run_once()
    assert [len(home.api.control.calls(method)) for method in ("sendMessage", "editMessageText")] == before
    assert len(home.entries()) == 1


async def test_reaping_outlasts_an_agent_that_is_away(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """It is passed over; nothing is lost."""
    home.agent.away()
    await home.new().run_once()
    assert "server oc1" in caplog.text


async def test_reaping_without_a_token_that_counts_does_all_else(home: House) -> None:
    """What was answered is delivered, and only then it is said that Telegram refuses the token."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    home.agent.away()
    await home.person.taps(shown, "SQLite")
    await home.stop()
    home.agent.back()
    home.api.control.fault(method="*", status=401, description="Unauthorized", times=99)
    with pytest.raises(ChatRefused, match="does not accept the bot's token"):
        await home.new().run_once()
    assert len(home.agent.effects) == 1


async def test_reaping_leaves_a_listener_its_work(home: House) -> None:
    """Held, by name."""
    await home.start()
    with pytest.raises(Held, match="hermes listen"):
        await home.new().run_once()
    await home.stop()
    with Store(home.store).hold(LISTENER, "another"), pytest.raises(Held, match="another"):
        await home.new().run_once()


# --- upgrades -----------------------------------------------------------------------------------------------------

UPGRADED = """
import asyncio, pathlib, sys, time
import hermes
installed = hermes.__version__
hermes.__version__ = "0.0.0"  # this process began before the upgrade
from hermes import cli, config
from hermes.listener import Listener
ahead = 0.0
def monotonic():
    global ahead
    ahead += 200.0
    return time.monotonic() + ahead
sys.argv = ["hermes", "--version"]
asyncio.run(Listener(config.load(pathlib.Path(sys.stdin.readline().strip()), environ={}), monotonic=monotonic).run())
print("never said")
"""


async def test_an_upgrade_starts_it_anew(home: House, tmp_path: Path) -> None:
    """The installed version is another one than this process': it becomes the new one, with the same arguments."""
    config = tmp_path / "config.toml"
    config.write_text(
        f'[telegram]\ntoken = "{home.api.token}"\nchat_id = 1001\nusers = [1001]\napi_base = "{home.api.base_url}"\n'
        f'[store]\npath = "{home.store}"\n'
    )
    config.chmod(0o600)
    command = [sys.executable, "-c", UPGRADED.replace("sys.stdin.readline().strip()", repr(str(config)))]
    with Proc(command, cwd=tmp_path, environ=os.environ, log_dir=tmp_path, name="upgraded") as process:
        assert await asyncio.to_thread(process.wait) == 0
        assert f"hermes {hermes.__version__}" in process.output()
        assert "never said" not in process.output()


async def test_the_log_tells_when_it_listens(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """The bot by its id, and how much is open; never the token."""
    caplog.set_level(logging.DEBUG, logger="hermes")
    await home.start()
    await home.polled()
    said = [record.getMessage() for record in caplog.records if record.name.startswith("hermes")]
    assert f"listening for bot {home.config().telegram.bot_id}; 0 asks are open" in said
    assert home.api.token not in str(said)
