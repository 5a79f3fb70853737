"""The listener's life: one a bot and store, recovered at each start, never deaf, gone when it is told to go."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import stat
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hermes
from hermes.chat.screens.hints import question_not_saved, store_made_again, unreadable
from hermes.errors import ChatRefused, Held, StoreError
from hermes.hook import spool
from hermes.listener.agent import servers
from hermes.listener.loops import HOUSEKEEPING_S, REMEMBER_S, Ending
from hermes.listener.phone import messenger
from hermes.listener.phone.polling import ABSENCE_S
from hermes.storage import process_lock
from tests.at_once import at_once
from tests.harness.folders import remove
from tests.harness.processes import Proc
from tests.listener.gates import held
from tests.listening import House, a_request, house, question, until
from tests.stores import a_store

if TYPE_CHECKING:
    from hermes.model.entry import Entry
    from hermes.sandbox.phone_values import ShownMessage

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
    with process_lock.hold_bot(home.config().telegram.bot_id, "/elsewhere", "a test"):
        pass


# --- what plugins and hooks are told ------------------------------------------------------------------------------


async def test_plugins_and_hooks_are_told_whether_prompts_are_on(home: House) -> None:
    """By a file in the store, which is there again with a store that is made again, and goes when prompts are off."""
    await home.start(prompts={"enabled": True})
    assert spool.takes_prompts(home.store)
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    await until(lambda: home.listener._parts.watch._took_prompts, "the file noticed")
    remove(home.store)
    await until(lambda: spool.takes_prompts(home.store), "the file made again")
    await home.stop()
    await home.start(prompts={"enabled": False})
    assert not spool.takes_prompts(home.store)


# --- leaving ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_everything_saved(home: House, number: signal.Signals) -> None:
    """The open ask is there at the next start, with the place in Telegram's queue and the answerable clock."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    await home.polled()
    home.listener._parts.times.clock.counted_s = 77.0
    os.kill(os.getpid(), number)
    await home.ended()
    assert not spool.nudge(home.store)
    tap = home.person.tap(shown, "SQLite")
    await home.start()
    assert home.listener._parts.times.clock.counted_s >= 77.0
    assert await home.person.toast(tap) == "SQLite"
    await home.person.sees("✅ SQLite", buttons=False)
    assert len(home.agent.effects) == 1


@pytest.mark.parametrize("is_ignored", [False, True])
async def test_a_closed_terminal_ends_it_unless_that_is_ignored(home: House, is_ignored: bool) -> None:
    """As Ctrl-C does; under `nohup` it goes on."""
    heard: list[int] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else lambda number, _: heard.append(number))
    try:
        await home.start()
        os.kill(os.getpid(), signal.SIGHUP)
        if is_ignored:
            home.agent.ask([question()])
            await home.person.sees(ASKED)
            await home.stop()
        else:
            await home.ended()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not heard


async def test_what_is_being_posted_at_the_end_is_not_posted_again(home: House) -> None:
    """A listener starts again after an upgrade, for example, while Telegram is slow to say that it took a question."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="hang", hang_s=0.15, processed=True, times=20)
    asked = [f"Question {number}?" for number in range(6)]
    for text in asked:
        home.agent.ask([question(text)])
    await home.person.sees(asked[1])
    await home.stop()
    await home.start()
    for text in asked:
        await home.person.sees(text)
    await until(lambda: all(entry.phone.message_id for entry in home.entries()), "all noted")
    assert [sum(text in one.text for one in home.person.shown()) for text in asked] == [1] * 6


async def test_a_command_that_comes_at_the_end_is_answered_by_the_next_listener(home: House) -> None:
    """The listener still waits for Telegram's word about a message then, and could not send the answer."""
    await home.start()
    home.api.control.fault(method="sendMessage", action="hang", hang_s=0.3, processed=True)
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    listener = home.listener
    stopping = asyncio.create_task(home.stop())
    await until(lambda: listener._parts.phone.outbox._closed, "the end")
    home.person.write("/status")
    await stopping
    await home.start()
    await home.person.sees("listening on")


async def test_a_hook_that_rings_at_the_end_disturbs_nothing(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """The inbox is no longer read, and the socket is closed, before workers are stopped: the next hook finds nobody."""
    rings: list[bool] = []

    async def rings_at_its_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            rings.append(spool.nudge(home.store))

    await home.start()
    home.listener._parts.background.spawn(rings_at_its_end())
    home.listener._parts.steps.kick("phone", "an entry", after_s=60.0)
    await asyncio.sleep(0)
    home.listener._ending.begin()
    spool.nudge(home.store)
    await home.ended()
    assert rings == [False]
    assert "a part of the listener failed" not in caplog.text


async def test_a_start_that_is_cut_short_leaves_no_hook_with_nobody(home: House) -> None:
    """The next hook finds nobody, and starts a listener; a second signal changes nothing."""
    listener = home.new()
    running = asyncio.create_task(listener.run())
    async with held(listener._store, "open") as start, held(listener._store, "save_chat") as end:
        await start.begun()
        assert spool.nudge(home.store)
        listener.end()
        await end.begun()
        assert not spool.nudge(home.store)
        listener.end()
    await running


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
    await home.put_away()
    home.agent.ask([question("And now?")])
    await home.person.sees("And now?")
    assert list((home.store / "done").rglob("*.json"))
    home.clock.advance(REMEMBER_S + 1)
    bot_id = home.config().telegram.bot_id
    store = a_store(home.store)
    await until(
        lambda: (at_once(store.load_chat(bot_id)).known_at_s or 0.0) > home.clock.now() - 5, "the clock on disk"
    )
    home.clock.advance(HOUSEKEEPING_S + 1)
    await until(lambda: home.listener._parts.phone.memory.at.settled_days, "the day of the old entry noted")
    home.clock.advance(REMEMBER_S + 1)
    await until(lambda: at_once(store.load_chat(bot_id)).settled_days, "the day on disk")
    home.clock.advance(HOUSEKEEPING_S + 3601)
    await until(lambda: not list((home.store / "done").rglob("*.json")), "the old entry forgotten")


async def test_a_machine_that_travels_has_the_quiet_hours_of_its_new_zone(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener runs for months; half a day away from the zone in which it was started, the night is another one."""
    try:
        monkeypatch.setenv("TZ", "UTC0")
        time.tzset()
        now = datetime.fromtimestamp(home.clock.now(), UTC)
        hours = "-".join(f"{now + timedelta(hours=by):%H:%M}" for by in (-2, 2))
        async with home.still(questions={"quiet_hours": hours}) as listener:
            times = listener._parts.times
            assert times.is_quiet()
            monkeypatch.setenv("TZ", "FAR-12")  # a running process does not notice it by itself
            await listener._loops._look_around()
            assert not times.is_quiet()
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_wall_clock_that_is_wrong_forgets_nothing(home: House) -> None:
    """Thirty days ahead for ten minutes, before and after a restart: the history stays, and so does what is closed."""
    await home.start()
    home.hook("question.asked", a_request())
    await home.noted(await home.person.sees(ASKED))
    home.hook("question.replied", {"sessionID": "ses_1", "requestID": "que_1", "answers": [["SQLite"]]})
    await home.closed()
    kept = list((home.store / "done").rglob("*.json"))
    assert len(kept) == 1
    bot_id = home.config().telegram.bot_id
    home.clock.set_back(-30 * 86400.0)
    for _ in range(2):
        memory = home.listener._parts.phone.memory
        until_s = memory.at.lived_s + HOUSEKEEPING_S
        home.clock.advance(HOUSEKEEPING_S + 1)
        await until(lambda: memory.at.lived_s > until_s, "housekeeping")  # noqa: B023
        await home.stop()
        await home.start()
    home.clock.set_back(30 * 86400.0)
    assert list((home.store / "done").rglob("*.json")) == kept
    assert (await a_store(home.store).load_chat(bot_id)).lived_s < 3 * 3600.0
    home.hook("question.asked", a_request())
    home.hook("question.asked", a_request("que_2", question("Another one?"), session="ses_2", call="call_2"))
    await home.person.sees("Another one?")
    assert len(home.entries()) == 1, "what is closed is not asked again"


# --- never deaf ---------------------------------------------------------------------------------------------------


async def test_a_part_that_stumbles_begins_anew(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """The inbox is a file, of all things: said with a traceback, again and again; all else goes on; then it is back."""
    await home.start()
    assert not (home.store / "inbox").exists()
    (home.store / "inbox").write_text("no folder")
    spool.nudge(home.store)
    await until(lambda: "a part of the listener failed, and starts again" in caplog.text, "a line in the log")
    home.agent.ask([question()])
    await home.person.taps(await home.person.sees(ASKED), "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    (home.store / "inbox").unlink()
    home.hook("question.asked", a_request("que_1", question("From a hook?")))
    await home.person.sees("From a hook?")


@pytest.mark.parametrize("trouble", ["removed", "taken"])
async def test_a_socket_that_disappears_is_bound_again(home: House, trouble: str) -> None:
    """A cleaner or a logout took its file, or something else stands there: hooks ring again within seconds."""
    await home.start()
    place = Path(spool.socket_path(home.store))
    place.unlink()
    if trouble == "taken":
        place.write_text("in the way")
    assert not spool.nudge(home.store)
    await until(lambda: spool.nudge(home.store), "a socket")
    home.hook("question.asked", a_request())
    await home.person.sees(ASKED)
    await home.stop()
    assert not place.exists()


async def test_a_full_disk_jams_neither_inbox_nor_clock(home: House, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing can be written: said; what hooks dropped waits, and is taken in when there is room."""
    await home.start()
    (home.store / "pending").rename(home.store / "pending.away")
    (home.store / "pending").write_text("a file where a folder belongs")
    home.hook("question.asked", a_request())
    await until(lambda: "the inbox waits: nothing was saved" in caplog.text, "a line in the log")
    assert len(spool.listing(home.store)) == 1
    await home.person.sees(question_not_saved(spool.host(), "see its log").text)
    (home.store / "pending").unlink()
    (home.store / "pending.away").rename(home.store / "pending")
    spool.nudge(home.store)
    await home.person.sees(ASKED)
    assert spool.listing(home.store) == []
    assert len(seen(home, "could not be saved")) == 1


async def test_a_servers_question_that_cannot_be_saved_is_said_on_the_phone(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if Telegram is away for a moment; with room again it is posted, and the next trouble is said again."""
    monkeypatch.setattr(servers, "FOLLOW_PAUSE_S", 0.1)
    monkeypatch.setattr(messenger, "INSIST_PAUSE_S", 0.1)
    await home.start()
    pending, away = home.store / "pending", home.store / "pending.away"
    for number in (1, 2):
        pending.rename(away)
        pending.write_text("a file where a folder belongs")
        home.api.control.fault(method="sendMessage", action="error", status=502, times=1)
        asked = f"Question {number}?"
        home.agent.ask([question(asked)])
        await until(lambda number=number: len(seen(home, "could not be saved")) == number, "the word")  # type: ignore[misc]
        pending.unlink()
        away.rename(pending)
        await home.person.sees(asked)


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
        with process_lock.hold_bot(home.config().telegram.bot_id, "/elsewhere", "another store's"), pytest.raises(Held):
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
    await home.person.sees(unreadable(1, spool.host()).text)
    await until(lambda: len(seen(home, ASKED)) == 2, "the question again")
    await until(lambda: not home.listener._parts.phone.memory.at.damaged, "a note that it was said")
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
        listener._parts.background.spawn(failing())
        await until(lambda: "ZeroDivisionError: a defect" in caplog.text, "a line in the log")


async def test_nothing_is_due_twice(home: House) -> None:
    """The step that ends joined texts finds nothing to do for an ask that is closed, or has nothing due."""
    async with home.still() as listener:
        assert await listener._parts.phone.updates.join("nobody22") is None
        home.hook("question.asked", a_request())
        await listener._loops.take_inbox()
        assert await listener._parts.phone.updates.join(home.entry().id) is None


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
        reaper._parts.steps.kick("phone", entry.id)
    await reaping
    assert await home.person.toast(tap) == "SQLite"
    assert list((home.store / "pending").glob("*.json")) == []
    assert not home.api.control.state().polling


async def test_a_reaper_calls_no_server_away(home: House) -> None:
    """It follows none, so that it knows of none when it answers /status; OpenCode runs."""
    home.person.write("/status")
    await home.new().run_once()
    assert "is not there" not in (await home.person.sees("Nothing is open")).text


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
    home._listener = home.new()
    reaping = asyncio.create_task(home.listener.run_once())
    await until(lambda: home.agent.effects, "the answer at the agent")
    await until(lambda: home.listener._parts.phone.connection.refusal, "the refusal of the token")
    home.api.control.clear_faults()  # nothing is polled any more: this lets it leave before its time is up
    await home.put_away()
    with pytest.raises(ChatRefused, match="does not accept the bot's token"):
        await reaping
    assert len(home.agent.effects) == 1


async def test_reaping_leaves_a_listener_its_work(home: House) -> None:
    """Held, by name."""
    await home.start()
    with pytest.raises(Held, match="hermes listen"):
        await home.new().run_once()
    await home.stop()
    with a_store(home.store).home.hold("another"), pytest.raises(Held, match="another"):
        await home.new().run_once()


# --- upgrades -----------------------------------------------------------------------------------------------------

UPGRADED = """
import asyncio, os, pathlib, sys, time
import hermes
installed = pathlib.Path("installed.py")
installed.touch()
hermes.__file__ = str(installed)
from hermes.commands import cli
from hermes.config import reading
from hermes.listener.daemon import Listener
from hermes.storage.files import FileStore
from tests.stores import a_store
ahead = 0.0
listener = None
def monotonic():
    global ahead
    ahead += 200.0
    if listener is not None and listener.serves:
        os.utime(installed)
    return time.monotonic() + ahead
sys.argv = ["hermes", "--version"]
config = reading.load(pathlib.Path(sys.stdin.readline().strip()), environ={})
listener = Listener(config, a_store(config.store.path), monotonic=monotonic)
asyncio.run(listener.run())
print("never said")
"""


async def test_an_upgrade_starts_it_anew(home: House, tmp_path: Path) -> None:
    """It becomes the Hermes that was installed meanwhile, with the same arguments; the version may be the same."""
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


# --- a store that is removed --------------------------------------------------------------------------------------


def take_away(store: Path, how: str) -> None:
    """Take the folder away, put another one in its place, or remove the listener's lock alone."""
    if how == "lock":
        (store / "locks" / "listener.lock").unlink()
        return
    store.rename(store.with_name("removed"))
    if how == "replaced":
        (store / "pending").mkdir(parents=True)


REMOVED = pytest.mark.parametrize("how", ["removed", "replaced", "lock"])


@REMOVED
async def test_a_removed_store_is_made_again_for_what_is_open(home: House, how: str) -> None:
    """Said on the phone; both asks can be answered, and nobody else can take the store or the bot meanwhile."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    home.hook("question.asked", a_request("que_2", question("From a hook?"), session="ses_2", call="call_2"))
    with home.waiting("que_2"):
        await home.noted(await home.person.sees("From a hook?"))
        spool.nudge(home.store)
        await until(lambda: all(entry.waits for entry in home.entries() if not entry.ask.source.server), "the hook")
        await home.listener._store.lock_phone()
        spool.nudge(home.store)
        await until(lambda: home.listener._parts.watch._phone_was_locked, "the lock noticed")
        take_away(home.store, how)
        spool.nudge(home.store)
        await home.person.sees(store_made_again(2, spool.host()).text)
    assert await home.listener._store.unlock_phone() is True
    assert stat.S_IMODE(home.store.stat().st_mode) == 0o700
    assert {entry.id for entry in (await a_store(home.store).pending())} == {entry.id for entry in home.entries()}
    with pytest.raises(Held, match="holds the store"):
        await home.new().run()
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    with home.waiting("que_2"):  # its hook has taken its place again
        await home.person.taps(await home.person.sees("From a hook?"), "PostgreSQL")
        await until(lambda: spool.take_answer(home.store, home.wait_id("que_2")), "the answer")


@pytest.mark.parametrize("idle_s", [None, 600.0])
@REMOVED
async def test_a_listener_whose_store_was_removed_leaves_if_nothing_is_open(
    home: House, how: str, idle_s: float | None
) -> None:
    """With one sentence, and without an error if a hook had started it; it makes no folder, and lets go of the bot."""
    await home.start(idle_s=idle_s)
    take_away(home.store, how)
    spool.nudge(home.store)
    if idle_s is None:
        with pytest.raises(StoreError, match=r"was removed while Hermes listened; nothing was open"):
            await home.ended()
        home._running = None
    else:
        await home.ended()
    assert home.store.exists() is (how != "removed")
    with process_lock.hold_bot(home.config().telegram.bot_id, home.store, "a test"):
        pass


async def test_a_store_that_cannot_be_made_again_is_tried_until_it_can(home: House) -> None:
    """What is open stands in memory alone until then; the bot's lock is free, since no store belongs to it."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    take_away(home.store, "removed")
    home.store.touch()
    spool.nudge(home.store)
    await until(lambda: not home.listener._locks.has_bot(), "the locks released")
    with process_lock.hold_bot(home.config().telegram.bot_id, home.store, "a test"):
        pass
    spool.nudge(home.store)
    home.store.unlink()
    await home.person.sees(store_made_again(1, spool.host()).text)
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)


async def test_a_file_in_the_place_of_the_store_ends_the_listener(home: House) -> None:
    """It can make no folder there, and nothing is open that would be lost."""
    await home.start()
    take_away(home.store, "removed")
    home.store.touch()
    spool.nudge(home.store)
    with pytest.raises(StoreError, match="was removed while Hermes listened"):
        await home.ended()
    home._running = None
    home.store.unlink()


async def test_what_is_asked_in_a_folder_that_was_just_removed_is_posted(home: House) -> None:
    """A hook makes the folder again for its record, and finds the listener at its socket."""
    await home.start()
    take_away(home.store, "removed")
    home.hook("question.asked", a_request())
    await home.person.sees(ASKED)
    assert not home.person.find("My folder")


async def test_a_bots_lock_that_was_removed_is_taken_again(home: House) -> None:
    """A logout or a cleaner removes it; a listener of another store must not take the bot meanwhile."""
    await home.start()
    lock = process_lock.bot_lock(home.config().telegram.bot_id, home.store)
    lock.unlink()
    spool.nudge(home.store)
    await until(lambda: process_lock.holder(lock), "the lock taken again")
    lock.unlink()
    with process_lock.hold_bot(home.config().telegram.bot_id, home.store, "another store's"):
        spool.nudge(home.store)
        with pytest.raises(Held, match="another store's"):
            await home.ended()
        home._running = None


# --- a machine that gets another name -----------------------------------------------------------------------------


async def test_another_host_name_shows_one_question_once(home: House) -> None:
    """Asked under one name, told again by the agent's server under another: one message, answered by its hook."""
    await home.start()
    home.hook("question.asked", a_request(), host="laptop")
    shown = await home.person.sees("laptop")
    await home.stop()
    with home.waiting("que_1"):
        await home.start()
        home.hook("question.asked", a_request(), host="laptop.local")
        home.hook(
            "question.asked", a_request("que_2", question("Another one?"), session="s", call="c"), host="notebook"
        )
        await home.person.sees("notebook")
        assert len(home.entries()) == 2
        await home.person.taps(shown, "SQLite")
        await until(lambda: spool.take_answer(home.store, home.wait_id("que_1")), "the answer")


async def test_an_older_store_keeps_its_hooks(home: House) -> None:
    """Its records and hooks say the host's name; they are found under it after the upgrade."""
    (home.store / "inbox").mkdir(parents=True)
    held = spool.hold_wait(home.store, wait := spool.wait_id("opencode", spool.host(), "que_1"))
    home.hook("question.asked", a_request(), machine=spool.host(), host=None)
    await home.start()
    shown = await home.person.sees(f"OpenCode on {spool.host()}")
    await home.person.taps(shown, "SQLite")
    await until(lambda: spool.take_answer(home.store, wait), "the answer")
    spool.leave_wait(home.store, wait, held)
    assert spool.machine(home.store) == spool.host()


@pytest.mark.parametrize("folder", ["pending", "done", "locks"])
async def test_a_folder_that_is_removed_alone_is_made_again(home: House, folder: str) -> None:
    """As by a removal that goes on while the listener makes the store again; nothing is lost."""
    await home.start()
    home.agent.ask([question()])
    shown = await home.person.sees(ASKED)
    shutil.rmtree(home.store / folder)
    spool.nudge(home.store)
    await until((home.store / folder).is_dir, "the folder")
    await home.person.taps(shown, "SQLite")
    await home.person.sees("✅ SQLite", buttons=False)
    await home.closed()


async def test_a_store_that_is_made_again_keeps_its_machine_id(home: House) -> None:
    """Hooks go on waiting under it."""
    await home.start()
    home.agent.ask([question()])
    await home.person.sees(ASKED)
    machine = spool.machine(home.store)
    take_away(home.store, "removed")
    spool.nudge(home.store)
    await home.person.sees("My folder")
    assert spool.machine(home.store) == machine


async def test_a_hook_that_asks_again_under_another_machine_id_asks_no_second_question(home: House) -> None:
    """The store was removed, and the hook was quicker than the listener: the hook's own id is the right one."""
    await home.start()
    home.hook("question.asked", a_request(), machine="before")
    shown = await home.person.sees(ASKED)
    wait = spool.wait_id("opencode", "meanwhile", "que_1")
    held = spool.hold_wait(home.store, wait)
    home.hook("question.asked", a_request(), machine="meanwhile")
    await until(lambda: home.entry().ask.source.machine == "meanwhile", "the second account")
    await home.person.taps(shown, "SQLite")
    await until(lambda: spool.take_answer(home.store, wait), "the answer")
    spool.leave_wait(home.store, wait, held)
    assert len(home.entries()) == 1


async def test_an_entry_that_cannot_be_looked_at_holds_up_no_other(
    home: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A defect in one: logged with its traceback, and the questions beside it are posted."""
    await home.start()
    changed = home.listener._parts.agent.errands.changed

    def failing(entry: Entry) -> None:
        if entry.ask.source.request_id == "que_2":
            raise ZeroDivisionError("a defect")
        changed(entry)

    monkeypatch.setattr(home.listener._parts.agent.errands, "changed", failing)
    for name in ("que_1", "que_2", "que_3"):
        home.hook("question.asked", a_request(name, question(f"Which {name}?"), session=name, call=name))
    await home.person.sees("Which que_1?")
    await home.person.sees("Which que_3?")
    assert "ZeroDivisionError: a defect" in caplog.text
    assert home.person.find("Which que_2?") is None


def test_a_signal_counts_after_a_change_of_sides() -> None:
    """Else the listener would go on in the next round."""
    ending = Ending()
    ending.change_sides("another machine is the phone side now")
    assert ending.another_round == "another machine is the phone side now"
    ending.begin()
    assert ending.another_round == ""
