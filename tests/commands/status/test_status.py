"""`status` tells a person in plain words, and a program in stable keys, what is going on."""

import asyncio
import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pexpect
import pyte
import pytest
from rich.cells import cell_len
from rich.console import Console

from hermes import __version__, disk
from hermes.agents.questions import with_permission
from hermes.commands.status import survey
from hermes.commands.status.survey import Health, Status, ask_health, gather, to_json
from hermes.commands.status.table import SILENT_S, fitting, show, verdict
from hermes.config.settings import Config, OpenCode, Prompts, Questions
from hermes.errors import AgentAway, StoreError
from hermes.hook import spool
from hermes.model.answer import Answer
from hermes.model.ask import Permission
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry, Timing
from hermes.model.state import Phase, State
from hermes.storage import process_lock
from hermes.storage.files import FileStore
from tests.at_once import at_once
from tests.storage.store_process import an_entry
from tests.stores import a_store

NOW_S = 1_757_000_000.0
HERMES = str(Path(sys.executable).with_name("hermes"))
TOKEN = "987654321:AAFakeFakeFakeFakeFakeFakeFakeFake_-x"


def a_config(root: Path, *servers: OpenCode) -> Config:
    """A configuration with a store there."""
    telegram = {"token": TOKEN, "chat_id": 7, "users": (7,)}
    return Config.model_validate({"telegram": telegram, "store": {"path": root}, "opencode": servers})


def a_server(name: str, url: str = "http://127.0.0.1:4096") -> OpenCode:
    """A configured server."""
    return OpenCode.model_validate({"name": name, "url": url, "password": "hush-hush"})


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """An open store."""
    store = a_store(tmp_path / "store", now=lambda: NOW_S)
    at_once(store.open())
    return store


async def look(
    store: FileStore,
    *servers: OpenCode,
    health: Health = ask_health,
    config_file: Path | None = None,
    asks_start_it: bool = False,
) -> Status:
    """Gather at NOW_S."""
    config = a_config(store.home.root, *servers)
    return await gather(config, store, config_file=config_file, asks_start_it=asks_start_it, health=health)


def words(status: Status) -> str:
    """What a person reads."""
    return "".join(f"{line}\n" for line in lines(status))


def lines(status: Status, width: int = 160) -> list[str]:
    """What a terminal of this width shows."""
    out = io.StringIO()
    show(status, Console(file=out, width=width, color_system=None))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def rows(status: Status) -> list[str]:
    """The rows of the table."""
    return [" | ".join(filter(None, map(str.strip, line.split("  ")))) for line in lines(status)]


def an_open_entry(entry_id: str = "aaaa2222", **timing: float) -> Entry:
    """An ask of 65 minutes ago, which is on the phone."""
    posted = Timing(posted_s=NOW_S - 3900, **timing)  # type: ignore[arg-type]
    return replace(an_entry(entry_id, asked_s=NOW_S - 3900), timing=posted)


async def test_without_a_store_nothing_is_made(tmp_path: Path) -> None:
    """Looking is not starting."""
    status = await look(a_store(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    assert not status.listener.running
    assert words(status) == (
        "✗ listener nobody listens: answers wait until `hermes listen` runs\n"
        "○ Telegram not reached yet\n"
        "○ prompts  from the phone: off\n\nNothing is open.\n"
    )


async def test_a_running_listener_is_named(store: FileStore) -> None:
    """With its process, since when, and the last time that Telegram answered."""
    await store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S - 8))
    with store.home.hold("hermes listen"):
        later = a_store(store.home.root, now=lambda: NOW_S + 7500)
        status = await gather(a_config(store.home.root), later)
    assert (status.listener.running, status.listener.pid) == (True, os.getpid())
    assert f"● listener for 2 h 05 min · hermes listen (pid {os.getpid()})\n" in words(status)
    assert "! Telegram reached 2 h 05 min ago\n" in words(status)


async def test_a_listener_of_another_store_is_named(store: FileStore) -> None:
    """It has the bot, so none can listen here."""
    with process_lock.hold_bot(987654321, "/elsewhere", "hermes listen, store /elsewhere"):
        status = await look(store)
    said = f"hermes listen, store /elsewhere (pid {os.getpid()}) holds this bot, for another store"
    assert f"✗ listener {said}\n" in words(status)
    assert verdict(status) == (True, f"{said}; Telegram was not reached yet")


async def test_a_listener_that_the_next_ask_starts_is_idle(store: FileStore) -> None:
    """It is an error only while something waits for it: an open ask, or a record in the inbox."""
    status = await look(store, asks_start_it=True)
    assert "○ listener nobody listens now; the plugin starts a listener when the agent asks\n" in words(status)
    assert status.listener.idle
    assert verdict(status) == (False, "all is well, 0 open")
    dropped = spool.drop(store.home.root, spool.record("generic", {}))
    assert verdict(await look(store, asks_start_it=True))[0]
    Path(dropped).unlink()
    await store.create(an_open_entry())
    status = await look(store, asks_start_it=True)
    assert "✗ listener nobody listens: answers wait until `hermes listen` runs\n" in words(status)
    assert verdict(status) == (True, "nobody is listening; Telegram was not reached yet")


async def test_a_bot_that_another_store_holds_is_not_idle(store: FileStore) -> None:
    """No ask could start a listener."""
    with process_lock.hold_bot(987654321, "/elsewhere", "hermes listen, store /elsewhere"):
        status = await look(store, asks_start_it=True)
    assert not status.listener.idle
    assert verdict(status)[0]


async def test_a_locked_phone_is_said(store: FileStore) -> None:
    """And what ends that."""
    assert "hermes unlock" not in words(await look(store))
    await store.lock_phone()
    assert "no answers and no prompts are taken until `hermes unlock`" in words(await look(store))


async def test_a_person_who_is_away_is_said(store: FileStore) -> None:
    """And how long things wait at the computer otherwise, if they do."""
    config = a_config(store.home.root)
    assert " you " not in words(await gather(config, store))
    waiting = config.model_copy(update={"questions": Questions.model_validate({"post_after": "90s"})})
    there = words(await gather(waiting, store))
    assert "● you      at the computer: questions and notices wait 1 min there first (/away ends that)\n" in there
    await store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S, is_away=True))
    for one in (config, waiting):
        gone = words(await gather(one, store))
        assert "● you      away: questions and notices go to the phone at once, until /desk there\n" in gone
    agent_only = waiting.model_copy(update={"phone": None})
    assert " you " not in words(await gather(agent_only, store))


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        ({}, "○ prompts  from the phone: off"),
        ({"enabled": True}, "● prompts  from the phone: on (all projects)"),
        (
            {"enabled": True, "projects": ["shop-api", "/srv/docs"]},
            "● prompts  from the phone: on (shop-api, /srv/docs)",
        ),
        ({"enabled": True, "projects": ["[red]\x1b[2Ja"]}, "● prompts  from the phone: on ([red] [2Ja)"),
        ({"projects": ["shop-api"]}, "○ prompts  from the phone: off"),
    ],
)
async def test_what_the_phone_may_start_is_said(store: FileStore, prompts: dict[str, object], said: str) -> None:
    """On or off, and for which projects; their names are only text."""
    config = a_config(store.home.root).model_copy(update={"prompts": Prompts.model_validate(prompts)})
    status = await gather(config, store)
    assert said in lines(status)
    told = json.loads(to_json(status))["prompts"]
    assert told == {"enabled": False, "projects": []} | prompts


async def test_prompts_need_a_listener(store: FileStore) -> None:
    """Without one they wait, as answers do."""
    config = a_config(store.home.root).model_copy(update={"prompts": Prompts(enabled=True)})
    assert "nobody listens: answers and prompts wait until" in words(await gather(config, store))


async def test_trouble_with_the_chat_is_said(store: FileStore) -> None:
    """As the listener wrote it down."""
    await store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S, trouble="the bot was blocked"))
    assert "✗ Telegram the bot was blocked\n" in words(await look(store))


async def test_every_server_is_asked_and_one_that_is_away_hides_no_other(store: FileStore) -> None:
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
    assert "● one      version 1.18.33 · http://127.0.0.1:4096\n" in words(status)
    assert "✗ two      two cannot be reached: connection refused\n" in words(status)


async def test_a_server_that_is_not_there_is_said_by_default(store: FileStore) -> None:
    """The real question goes out, and its failure shows no password."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        config = a_config(store.home.root, a_server("one", f"http://127.0.0.1:{nobody.getsockname()[1]}"))
        status = await gather(config, store)
    assert status.servers[0].trouble
    assert "hush" not in words(status) + to_json(status)


async def test_open_entries_show_where_what_and_how_long(store: FileStore) -> None:
    """Oldest first, in a table."""
    await store.save_chat(ChatMemory(987654321, answerable_s=100.0))
    await store.create(an_open_entry(set_at=50.0, expires_at=1375.0))
    away = an_open_entry("bbbb2222")
    await store.create(replace(away, code="m4", state=replace(away.state, phase="sending", away=True)))
    status = await look(store)
    assert [(entry.phase, entry.age_s, entry.left_s) for entry in status.entries] == [
        ("open", 3900.0, 1275.0),
        ("sending", 3900.0, None),
    ]
    assert "k7 | 65 min | shop | Colour: Which colour? | waits for you | 21 min" in rows(status)
    assert "m4 | 65 min | shop | Colour: Which colour? | agent is away | –" in rows(status)


async def test_an_ask_that_is_not_on_the_phone_yet_waits_for_nobody(store: FileStore) -> None:
    """For example, because Telegram takes no message now; `hermes ask` says to look here."""
    await store.create(replace(an_open_entry(), timing=Timing()))
    assert "k7 | 65 min | shop | Colour: Which colour? | not on your phone yet | –" in rows(await look(store))


async def test_time_stands_still_while_nobody_listens(store: FileStore) -> None:
    """A minute that is left is a minute; but ten, for a start, when a listener comes back."""
    await store.save_chat(ChatMemory(987654321, answerable_s=100.0))
    await store.create(an_open_entry(set_at=50.0, expires_at=160.0))
    assert (await look(store)).entries[0].left_s == 600.0
    with store.home.hold("hermes listen"):
        assert (await look(store)).entries[0].left_s == 60.0


async def test_time_stands_still_while_a_machine_is_away(store: FileStore) -> None:
    """Nobody knows how long."""
    asked = an_open_entry(set_at=50.0, expires_at=1375.0)
    await store.create(replace(asked, timing=replace(asked.timing, away_at=60.0)))
    assert (await look(store)).entries[0].left_s is None


async def test_files_that_cannot_be_used_are_named_and_stay(store: FileStore) -> None:
    """Looking puts nothing away; what is in quarantine already is counted."""
    store.home.quarantine("x", b"x", "why")
    damaged, newer = store.home.root / "pending/aaaa2222.json", store.home.root / "pending/bbbb2222.json"
    damaged.write_bytes(b"")
    newer.write_bytes(b'{"v":99}')
    status = await look(store)
    assert damaged.exists()
    assert (status.quarantined, status.damaged, status.too_new) == (1, (str(damaged),), (str(newer),))
    assert f"! 1 file is in quarantine: {store.home.root / 'quarantine'}\n" in words(status)
    assert f"✗ cannot be read: {damaged}\n" in words(status)
    assert f"✗ written by a newer Hermes, left alone: {newer}\n" in words(status)


async def test_a_configuration_that_others_can_read_is_a_warning(store: FileStore, tmp_path: Path) -> None:
    """With the command that closes it, whatever its folder is called."""
    file = tmp_path / "my files" / "config.toml"
    file.parent.mkdir()
    file.write_text("")
    file.chmod(0o644)
    told = " ".join(words(await look(store, config_file=file)).split())
    assert f"! others can read {file}; close it: chmod 600 '{file}'" in told
    file.chmod(0o600)
    assert not (await look(store, config_file=file)).warnings


async def test_a_log_file_that_is_a_folder_is_a_warning(store: FileStore, tmp_path: Path) -> None:
    """A listener serves without it; for monitoring it is said, too."""
    config = a_config(store.home.root)
    config = config.model_copy(update={"log": config.log.model_copy(update={"file": tmp_path})})
    status = await gather(config, store)
    assert f"! {tmp_path} is a folder, so there is no log; set log.file" in " ".join(words(status).split())
    assert verdict(status)[1].endswith(f"; {tmp_path} is a folder, so there is no log; set log.file")


async def test_an_inbox_that_is_no_folder_is_one_sentence(store: FileStore) -> None:
    """No question comes in then, so nothing else is worth a look."""
    inbox = store.home.root / "inbox"
    inbox.write_text("")
    with pytest.raises(StoreError, match=f"{inbox} cannot be read: Not a directory"):
        await look(store)


async def test_a_file_that_cannot_be_reached_is_told_and_hides_nothing_else(store: FileStore, tmp_path: Path) -> None:
    """Root, who runs some tests, may enter a closed folder, but nobody may use so long a name."""
    file, config = tmp_path / ("x" * 300), a_config(store.home.root)
    log, second = (part.model_copy(update={"file": file}) for part in (config.log, config.opencode2))
    status = await gather(config.model_copy(update={"log": log, "opencode2": second}), store)
    assert [server.trouble for server in status.servers] == [f"{file}: File name too long"]
    told = f"{file} cannot be reached (File name too long), so there is no log; set log.file, or free the way to it"
    assert status.warnings == (told,)


async def test_a_disk_without_room_is_wrong(store: FileStore) -> None:
    """Answers would be lost while `--check` says that all is well. Enough room is not mentioned."""
    root = store.home.root
    assert survey._little_room(root, disk.NO_BYTES) == ""
    trouble = f"nothing can be saved in {root} soon: 5 MB are free"
    assert survey._little_room(root, 5_999_999) == trouble
    await store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S))
    with store.home.hold("hermes listen"):
        status = await look(store)
        assert status.store_trouble == ""
        status = replace(status, store_trouble=trouble)
    assert verdict(status) == (True, trouble)
    assert f"✗ {trouble}" in " ".join(words(status).split())


async def test_a_store_that_cannot_be_made_is_wrong(tmp_path: Path) -> None:
    """Root, who runs some tests, may write everywhere, but nobody makes a folder in a file."""
    (tmp_path / "file").write_text("")
    trouble = f"nothing can be saved in {tmp_path / 'file'}: {tmp_path / 'file'} is not a folder that you may write to"
    assert survey._store_trouble(tmp_path / "file") == trouble


async def test_a_memory_of_a_newer_hermes_is_a_warning(store: FileStore) -> None:
    """The rest is still told."""
    (store.home.root / "telegram.json").write_bytes(b'{"v":99}')
    status = await look(store)
    assert "telegram.json is left alone" in status.warnings[0]


async def test_what_agents_write_moves_no_cursor_and_makes_no_markup(store: FileStore) -> None:
    """It is only displayed."""
    entry = an_open_entry()
    source = replace(entry.ask.source, directory="/srv/[red]\x1b[2J\u202e")
    questions = (replace(entry.ask.questions[0], header="[bold]a\nb\ud800"),)
    await store.create(replace(entry, ask=replace(entry.ask, source=source, questions=questions)))
    status = await look(store)
    assert "[red] [2J" in words(status)
    assert "[bold]a b" in words(status)
    assert not {"\x1b", "\u202e", "\ud800"} & set(words(status))
    assert json.loads(to_json(status))["entries"][0]["header"] == "[bold]a\nb\ud800"


async def test_an_ask_without_questions_is_named_by_its_session(store: FileStore) -> None:
    """And a project without a folder by its machine."""
    entry = an_open_entry()
    source = replace(entry.ask.source, directory="", session_title="Fix the shop")
    await store.create(replace(entry, ask=replace(entry.ask, source=source, questions=())))
    assert "k7 | 65 min | desk | Fix the shop | waits for you | –" in rows(await look(store))


async def test_an_answer_for_a_machine_that_is_away_is_told_as_on_the_phone(store: FileStore) -> None:
    """It waits, as one for an agent that is away does."""
    entry = an_open_entry()
    timing, state = replace(entry.timing, away_at=5.0), replace(entry.state, phase="sending")
    await store.create(replace(entry, state=state, timing=timing))
    assert "| agent is away | –" in "\n".join(rows(await look(store)))


async def test_a_windows_project_is_named_as_on_the_phone(store: FileStore) -> None:
    """By its folder alone."""
    entry = an_open_entry()
    source = replace(entry.ask.source, directory="C:\\work\\shop api\\", session_title="Fix the shop")
    await store.create(replace(entry, ask=replace(entry.ask, source=source, questions=())))
    assert "k7 | 65 min | shop api | Fix the shop | waits for you | –" in rows(await look(store))


async def test_a_machine_without_a_bot_lacks_nothing(store: FileStore) -> None:
    """Another machine reaches Telegram for it."""
    url = "postgresql://ci@127.0.0.1/hermes"
    config = Config.model_validate({"store": {"path": store.home.root, "url": url}})
    with store.home.hold("hermes listen"):
        status = await gather(config, store)
    assert verdict(status) == (False, "all is well, 0 open")
    assert "Telegram agent-only: another machine brings the questions of this one to the phone" in words(status)


async def test_the_keys_for_programs_are_stable(store: FileStore) -> None:
    """Who reads them may rely on them."""
    await store.create(an_open_entry())
    told = json.loads(to_json(await look(store, a_server("one"))))
    assert list(told) == [
        "version",
        "at_s",
        "store",
        "store_trouble",
        "listener",
        "prompts",
        "machines",
        "servers",
        "entries",
        "quarantined",
        "damaged",
        "too_new",
        "warnings",
    ]
    assert list(told["listener"]) == [
        "running",
        "pid",
        "command",
        "since_s",
        "last_poll_s",
        "trouble",
        "phone_locked",
        "bot_held_by",
        "idle",
        "agent_only",
        "person_away",
        "post_after_s",
    ]
    assert told["prompts"] == {"enabled": False, "projects": []}
    assert told["machines"] == []
    assert list(told["servers"][0]) == ["name", "url", "version", "trouble", "idle"]
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
        "kind",
        "question",
        "questions",
        "answerable",
        "posted",
    ]
    assert told["version"] == __version__


async def test_all_is_well_in_one_line(store: FileStore) -> None:
    """Somebody listens, and Telegram answered within three minutes; an agent that is away is a remark."""

    async def health(server: OpenCode) -> str:
        raise AgentAway(f"{server.name} cannot be reached:\nconnection refused")

    await store.create(an_open_entry())
    await store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S - SILENT_S))
    with store.home.hold("hermes listen"):
        assert verdict(await look(store)) == (False, "all is well, 1 open")
        await store.lock_phone()
        assert verdict(await look(store, a_server("one"), health=health)) == (
            False,
            "all is well, 1 open; one: one cannot be reached: connection refused; the phone is locked",
        )


async def test_what_is_wrong_is_one_line(store: FileStore) -> None:
    """Each by itself: no listener, no poll, an old poll, a chat in trouble, files that cannot be read."""
    assert verdict(await look(store)) == (True, "nobody is listening; Telegram was not reached yet")
    with store.home.hold("hermes listen"):
        await store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S - SILENT_S - 1))
        assert verdict(await look(store)) == (True, "Telegram was last reached 3 min ago")
        await store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S, trouble="the bot was blocked"))
        assert verdict(await look(store)) == (True, "the bot was blocked")
        await store.save_chat(ChatMemory(987654321, last_poll_s=NOW_S))
        damaged, newer = store.home.root / "pending/aaaa2222.json", store.home.root / "pending/bbbb2222.json"
        damaged.write_bytes(b"")
        assert verdict(await look(store)) == (True, f"{damaged} cannot be read")
        damaged.unlink()
        newer.write_bytes(b'{"v":99}')
        assert verdict(await look(store)) == (True, f"{newer} was written by a newer Hermes")


@pytest.mark.parametrize(
    ("age_s", "shown"),
    [(-5, "0 s"), (119, "119 s"), (120, "2 min"), (3900, "65 min"), (7200, "2 h"), (90_000, "25 h"), (172_800, "2 d")],
)
async def test_ages_are_shown_in_one_unit(store: FileStore, age_s: float, shown: str) -> None:
    """The largest of which there are two."""
    await store.create(replace(an_open_entry(), asked_s=NOW_S - age_s))
    assert f"  {shown}  " in words(await look(store))


@pytest.mark.parametrize(
    ("lasted_s", "shown"), [(8, "8 s"), (60, "1 min"), (3600, "1 h 00 min"), (7500, "2 h 05 min"), (90_000, "1 d 1 h")]
)
async def test_how_long_it_listens_is_shown_in_two_units(store: FileStore, lasted_s: float, shown: str) -> None:
    """At most."""
    with store.home.hold("hermes listen"):
        later = a_store(store.home.root, now=lambda: NOW_S + lasted_s)
        status = await gather(a_config(store.home.root), later)
    assert f"for {shown} · " in words(status)


# --- the table ------------------------------------------------------------------------------------------------------


def of_every_kind() -> list[Entry]:
    """One ask in each state, with a permission, a long question and a wide name among them."""
    may = Permission("bash", "command", "npm publish --access public", patterns=("npm publish",))
    permission = with_permission(replace(an_entry().ask, questions=()), may)
    long = replace(an_entry().ask.questions[0], text="Which of all the colours that there are? " * 30)
    shop = replace(an_entry().ask.source, directory="/srv/東京-a-long-name-of-a-project")
    asks = [
        permission,
        replace(an_entry().ask, questions=(long, long), source=shop),
        replace(an_entry().ask, answerable=False),
    ]
    found = [replace(an_open_entry(f"{n}aaa2222"), ask=ask, code=f"a{n}") for n, ask in enumerate(asks, 2)]
    phases: tuple[Phase, ...] = ("matching", "sending", "settled")
    found += [
        replace(an_open_entry(f"{n}bbb2222"), state=State(phase, answers=(Answer(),)), code=f"b{n}")
        for n, phase in enumerate(phases, 2)
    ]
    return found


async def test_each_state_has_its_words(store: FileStore) -> None:
    """A permission is told as what it is; of several questions the first one and how many more."""
    for entry in of_every_kind():
        await store.create(entry)
    told = rows(await look(store))
    assert "a2 | 65 min | shop | Wants to run npm publish --access public | waits for you | –" in told
    assert any("a3 | 65 min | 東京-a-long-nam… | Colour: Which of all" in row for row in told)
    for state in ("computer only", "just coming in", "on its way", "done"):
        assert any(f"| Colour: Which colour? | {state} | –" in row for row in told)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
async def test_the_table_keeps_its_shape(store: FileStore, width: int) -> None:
    """One line an ask at any width, whatever agents write; state and time are never cut."""
    for entry in of_every_kind():
        await store.create(entry)
    status = await look(store)
    head, *table = lines(status, width)[-1 - len(status.entries) :]
    assert head.split() == ["Age", "Project", "Question", "State", "Left"]
    assert all(cell_len(line) <= width for line in table)
    assert sum(line.endswith("  –") for line in table) == len(status.entries)


async def test_a_low_terminal_shows_the_first_and_counts_the_rest(store: FileStore) -> None:
    """The head and what is wrong stay on the screen."""
    for entry in of_every_kind():
        await store.create(entry)
    store.home.quarantine("x", b"x", "why")
    out = io.StringIO()
    console = Console(file=out, width=80, height=11, color_system=None)
    console.print(fitting(await look(store), console))
    shown = [line.rstrip() for line in out.getvalue().splitlines()]
    assert len(shown) == 11
    assert shown[0].endswith("Ctrl-C leaves")
    there = sum("65 min" in line for line in shown)
    assert there >= 1
    assert f"… and {len(of_every_kind()) - there} more" in shown
    assert "in quarantine" in " ".join(shown[-2:])


# --- watching -------------------------------------------------------------------------------------------------------


def watching(config_file: Path, term: str = "xterm-256color") -> "pexpect.spawn[bytes]":
    """A process in a terminal of 80 x 20."""
    arguments = ["status", "--watch", "--config", str(config_file)]
    # Whoever has loaded readline hands these on, and they stand above what the terminal itself says.
    environ = {name: text for name, text in os.environ.items() if name not in {"LINES", "COLUMNS"}}
    return pexpect.spawn(HERMES, arguments, dimensions=(20, 80), env={**environ, "TERM": term})


def on_screen(screen: pyte.Screen) -> str:
    """What stands there."""
    return "\n".join(line.rstrip() for line in screen.display)


async def test_watching_shows_what_changes_and_leaves_a_clean_terminal(store: FileStore, tmp_path: Path) -> None:
    """A real process in a terminal of 80 columns: an ask comes and goes; Ctrl-C is status 0."""
    child = watching(a_file(store, tmp_path))
    screen = pyte.Screen(80, 20)
    stream = pyte.ByteStream(screen)

    async def sees(words: str, *, gone: bool = False) -> None:
        async with asyncio.timeout(30):
            while (words in on_screen(screen)) is gone:
                await asyncio.sleep(0.02)
                with contextlib.suppress(pexpect.TIMEOUT):
                    stream.feed(child.read_nonblocking(65536, timeout=0))

    try:
        await sees("Nothing is open.")
        await sees("nobody listens")
        entry = await store.create(an_open_entry())
        await sees("Colour: Which colour?")
        with store.home.hold("hermes listen"):
            await sees("hermes listen (pid")
        await store.settle(entry.id)
        await sees("Colour: Which colour?", gone=True)
        child.sendcontrol("c")
        rest = child.read()
        assert rest.endswith(b"\x1b[?25h\x1b[?1049l")  # the cursor is back, and what stood there before
    finally:
        child.close(force=True)
    assert child.exitstatus == 0


async def test_watching_ends_cleanly_when_it_is_told_to(store: FileStore, tmp_path: Path) -> None:
    """SIGTERM, too, leaves no hidden cursor."""
    child = watching(a_file(store, tmp_path))
    try:
        child.expect("Nothing is open", timeout=30)
        child.kill(signal.SIGTERM)
        assert child.read().endswith(b"\x1b[?25h\x1b[?1049l")
    finally:
        child.close(force=True)
    assert child.exitstatus == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--watch"], "--watch draws on a terminal"),
        (["--watch", "--json"], "--watch draws on a terminal"),
        (["--check", "--json"], "--check and --json do not go together"),
    ],
)
def test_what_does_not_go_is_refused(store: FileStore, tmp_path: Path, arguments: list[str], why: str) -> None:
    """To watch into a pipe would be a mess, and a sentence is no JSON: status 2, and one sentence."""
    place = str(a_file(store, tmp_path))
    ended = subprocess.run(
        [HERMES, "status", *arguments, "--config", place], capture_output=True, text=True, check=False, timeout=30
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"hermes: {why}")


def test_watching_needs_a_terminal_that_can_be_redrawn(store: FileStore, tmp_path: Path) -> None:
    """One whose cursor cannot be moved would be filled line by line."""
    child = watching(a_file(store, tmp_path), "dumb")
    assert b"--watch draws on a terminal" in child.read()
    child.close()
    assert child.exitstatus == 2


def a_file(store: FileStore, folder: Path) -> Path:
    """A configuration file for this store."""
    file = folder / "config.toml"
    file.write_text(f'[telegram]\ntoken = "{TOKEN}"\nchat_id = 7\nusers = [7]\n[store]\npath = "{store.home.root}"\n')
    file.chmod(0o600)
    return file
