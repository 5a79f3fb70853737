"""`status` tells a person in plain words, and a program in stable keys, what is going on."""

import io
import json
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hermes import __version__
from hermes.codec import ChatMemory
from hermes.errors import AgentAway
from hermes.model import Entry, Timing
from hermes.settings import Config, OpenCode
from hermes.status import Health, Status, gather, show, to_json
from hermes.store import LISTENER, Store
from tests.store_process import an_entry

NOW_S = 1_757_000_000.0
TOKEN = "987654321:AAFakeFakeFakeFakeFakeFakeFakeFake_-x"


def a_config(root: Path, *servers: OpenCode) -> Config:
    """A configuration with a store there."""
    telegram = {"token": TOKEN, "chat_id": 7, "users": (7,)}
    return Config.model_validate({"telegram": telegram, "store": {"path": root}, "opencode": servers})


def a_server(name: str, url: str = "http://127.0.0.1:4096") -> OpenCode:
    """A configured server."""
    return OpenCode.model_validate({"name": name, "url": url, "password": "hush-hush"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An open store."""
    store = Store(tmp_path / "store", now=lambda: NOW_S)
    store.open()
    return store


async def look(
    store: Store, *servers: OpenCode, health: Health | None = None, config_file: Path | None = None
) -> Status:
    """Gather at NOW_S."""
    config = a_config(store.root, *servers)
    return await gather(config, store, config_file=config_file, health=health, now=lambda: NOW_S)


def words(status: Status) -> str:
    """What a person reads."""
    out = io.StringIO()
    show(status, Console(file=out, width=160, color_system=None))
    return out.getvalue()


def an_open_entry(entry_id: str = "aaaa2222", **timing: float) -> Entry:
    """An ask of 65 minutes ago."""
    return replace(an_entry(entry_id, asked_s=NOW_S - 3900), timing=Timing(**timing))  # type: ignore[arg-type]


async def test_without_a_store_nothing_is_made(tmp_path: Path) -> None:
    """Looking is not starting."""
    status = await look(Store(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    assert not status.listener.running
    assert words(status) == (
        "Nobody is listening: answers wait until `hermes listen` runs.\nTelegram: not reached yet\nNothing is open.\n"
    )


async def test_a_running_listener_is_named(store: Store) -> None:
    """With its process, since when, and the last time that Telegram answered."""
    store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S - 8))
    with store.hold(LISTENER, "hermes listen"):
        status = await gather(a_config(store.root), store, health=None, now=lambda: NOW_S + 7500)
    assert (status.listener.running, status.listener.pid) == (True, os.getpid())
    assert f"Listening: hermes listen (pid {os.getpid()}), for 2 h 05 min\n" in words(status)
    assert "Telegram: last reached 2 h 05 min ago\n" in words(status)


async def test_a_locked_phone_is_said(store: Store) -> None:
    """And what ends that."""
    assert "hermes unlock" not in words(await look(store))
    store.lock_phone()
    assert "no answers are taken until `hermes unlock`" in words(await look(store))


async def test_trouble_with_the_chat_is_said(store: Store) -> None:
    """As the listener wrote it down."""
    store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S, trouble="the bot was blocked"))
    assert "Telegram: the bot was blocked\n" in words(await look(store))


async def test_every_server_is_asked_and_one_that_is_away_hides_no_other(store: Store) -> None:
    """Each with its version, or with what is wrong."""

    async def health(server: OpenCode) -> str:
        if server.name == "two":
            raise AgentAway("two cannot be reached: connection refused")
        return "1.18.33"

    status = await look(store, a_server("one"), a_server("two"), health=health)
    assert [(server.version, server.trouble) for server in status.servers] == [
        ("1.18.33", ""),
        ("", "two cannot be reached: connection refused"),
    ]
    assert "one (http://127.0.0.1:4096): version 1.18.33\n" in words(status)
    assert "two (http://127.0.0.1:4096): trouble: two cannot be reached" in words(status)
    assert "not asked" in words(await look(store, a_server("one")))


async def test_a_server_that_is_not_there_is_said_by_default(store: Store) -> None:
    """The real question goes out, and its failure shows no password."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        config = a_config(store.root, a_server("one", f"http://127.0.0.1:{nobody.getsockname()[1]}"))
        status = await gather(config, store)
    assert status.servers[0].trouble
    assert "hush" not in words(status) + to_json(status)


async def test_open_entries_show_where_what_and_how_long(store: Store) -> None:
    """Oldest first, in a table."""
    store.save_chat(ChatMemory(987654321, answerable_s=100.0))
    store.create(an_open_entry(set_at=50.0, expires_at=1375.0))
    away = an_open_entry("bbbb2222")
    store.create(replace(away, code="m4", state=replace(away.state, phase="sending", away=True)))
    status = await look(store)
    assert [(entry.phase, entry.age_s, entry.left_s) for entry in status.entries] == [
        ("open", 3900.0, 1275.0),
        ("sending", 3900.0, None),
    ]
    rows = [" | ".join(filter(None, map(str.strip, line.split("  ")))) for line in words(status).splitlines()]
    assert "k7 | shop | Colour | waiting for an answer | 1 h 05 min | 21 min" in rows
    assert "m4 | shop | Colour | answered, waits for OpenCode to be back | 1 h 05 min | –" in rows


async def test_time_stands_still_while_nobody_listens(store: Store) -> None:
    """A minute that is left is a minute; but ten, for a start, when a listener comes back."""
    store.save_chat(ChatMemory(987654321, answerable_s=100.0))
    store.create(an_open_entry(set_at=50.0, expires_at=160.0))
    assert (await look(store)).entries[0].left_s == 600.0
    with store.hold(LISTENER, "hermes listen"):
        assert (await look(store)).entries[0].left_s == 60.0


async def test_a_paused_entry_has_no_time_left_to_show(store: Store) -> None:
    """It waits for a word on several at once."""
    entry = an_open_entry(set_at=50.0, expires_at=1375.0)
    store.create(replace(entry, timing=replace(entry.timing, paused=True)))
    assert (await look(store)).entries[0].left_s is None


async def test_files_that_cannot_be_used_are_named_and_stay(store: Store) -> None:
    """Looking puts nothing away; what is in quarantine already is counted."""
    store.quarantine("x", b"x", "why")
    damaged, newer = store.root / "pending/aaaa2222.json", store.root / "pending/bbbb2222.json"
    damaged.write_bytes(b"")
    newer.write_bytes(b'{"v":99}')
    status = await look(store)
    assert damaged.exists()
    assert (status.quarantined, status.damaged, status.too_new) == (1, (str(damaged),), (str(newer),))
    assert f"1 file is in quarantine: {store.root / 'quarantine'}\n" in words(status)
    assert f"Cannot be read: {damaged}\n" in words(status)
    assert f"Written by a newer Hermes, left alone: {newer}\n" in words(status)


async def test_a_configuration_that_others_can_read_is_a_warning(store: Store, tmp_path: Path) -> None:
    """With the command that closes it."""
    file = tmp_path / "config.toml"
    file.write_text("")
    file.chmod(0o644)
    assert f"Warning: others can read {file}; close it: chmod 600 {file}" in words(await look(store, config_file=file))
    file.chmod(0o600)
    assert not (await look(store, config_file=file)).warnings


async def test_a_memory_of_a_newer_hermes_is_a_warning(store: Store) -> None:
    """The rest is still told."""
    (store.root / "telegram.json").write_bytes(b'{"v":99}')
    status = await look(store)
    assert "telegram.json is left alone" in status.warnings[0]


async def test_what_agents_write_moves_no_cursor_and_makes_no_markup(store: Store) -> None:
    """It is only displayed."""
    entry = an_open_entry()
    source = replace(entry.ask.source, directory="/srv/[red]\x1b[2J\u202e")
    questions = (replace(entry.ask.questions[0], header="[bold]a\nb\ud800"),)
    store.create(replace(entry, ask=replace(entry.ask, source=source, questions=questions)))
    status = await look(store)
    assert "[red] [2J" in words(status)
    assert "[bold]a b" in words(status)
    assert not {"\x1b", "\u202e", "\ud800"} & set(words(status))
    assert json.loads(to_json(status))["entries"][0]["header"] == "[bold]a\nb\ud800"


async def test_an_ask_without_questions_is_named_by_its_session(store: Store) -> None:
    """And a project without a folder by its machine."""
    entry = an_open_entry()
    source = replace(entry.ask.source, directory="", session_title="Fix the shop")
    store.create(replace(entry, ask=replace(entry.ask, source=source, questions=())))
    assert "k7  desk     Fix the shop" in words(await look(store))


async def test_the_keys_for_programs_are_stable(store: Store) -> None:
    """Who reads them may rely on them."""
    store.create(an_open_entry())
    told = json.loads(to_json(await look(store, a_server("one"))))
    assert list(told) == [
        "version",
        "at_s",
        "store",
        "listener",
        "servers",
        "entries",
        "quarantined",
        "damaged",
        "too_new",
        "warnings",
    ]
    assert list(told["listener"]) == ["running", "pid", "command", "since_s", "last_poll_s", "trouble", "phone_locked"]
    assert list(told["servers"][0]) == ["name", "url", "version", "trouble"]
    assert list(told["entries"][0]) == [
        "id",
        "code",
        "agent",
        "machine",
        "directory",
        "session",
        "header",
        "phase",
        "away",
        "asked_s",
        "age_s",
        "left_s",
    ]
    assert told["version"] == __version__


@pytest.mark.parametrize(
    ("age_s", "shown"),
    [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h 00 min"), (90_000, "1 d 1 h")],
)
async def test_ages_are_shown_in_their_largest_units(store: Store, age_s: float, shown: str) -> None:
    """Two at most."""
    store.create(replace(an_open_entry(), asked_s=NOW_S - age_s))
    assert f"  {shown}  " in words(await look(store))
