"""Nothing that was saved is ever lost, torn or doubled; and where it cannot be saved, it is said."""

import contextlib
import errno
import json
import logging
import os
import random
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hermes import disk
from hermes.errors import Conflict, Held, Missing, NotSaved, StoreError, TooNew, Unreadable
from hermes.hook import spool
from hermes.model.chat_memory import ChatMemory
from hermes.model.entry import Entry
from hermes.storage.codec import CHATS
from hermes.storage.files import FileStore
from tests.at_once import at_once
from tests.storage.store_process import an_entry, one_more
from tests.stores import a_store

PROJECT = Path(__file__).parents[2]
SEPTEMBER_S, OCTOBER_S = 1_757_000_000.0, 1_759_500_000.0


class Clock:
    def __init__(self) -> None:
        self.now_s = SEPTEMBER_S

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until it is set."""
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the store will be."""
    return tmp_path / "state" / "hermes"


@pytest.fixture
def store(root: Path, clock: Clock) -> FileStore:
    """An open store without entries."""
    store = a_store(root, now=clock)
    assert at_once(store.open()) == []
    return store


@contextlib.contextmanager
def running(*words: object) -> Iterator[subprocess.Popen[str]]:
    """A process of tests/storage/store_process.py, killed at the end."""
    command = [sys.executable, "-m", "tests.storage.store_process", *map(str, words)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=PROJECT, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that the process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let the system refuse longer files than this: the nearest to a full disk that needs no root."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def everything(root: Path) -> dict[str, bytes]:
    """All files below, with their content."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def mode(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.lstat().st_mode)


# --- saving and reading --------------------------------------------------------------------------------


def test_a_change_of_nothing_writes_nothing(store: FileStore, root: Path) -> None:
    """Neither the same object nor an equal one touches the file."""
    created = at_once(store.create(an_entry()))
    before = (root / "pending/aaaa2222.json").stat()
    assert at_once(store.change("aaaa2222", lambda entry: entry)) == created
    assert at_once(store.change("aaaa2222", replace)) == created
    after = (root / "pending/aaaa2222.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_change_that_fails_changes_nothing_and_frees_the_lock(store: FileStore) -> None:
    """The caller's own error comes through."""
    created = at_once(store.create(an_entry()))
    with pytest.raises(ZeroDivisionError):
        at_once(store.change("aaaa2222", lambda entry: replace(entry, asked_s=1 / entry.state.epoch)))
    assert at_once(a_store(store.home.root, lock_timeout_s=0).change("aaaa2222", lambda entry: entry)) == created


def test_pending_entries_come_oldest_first(store: FileStore) -> None:
    """Whatever their ids and whatever else lies there."""
    for name, asked_s in (("cccc2222", 3.0), ("aaaa2222", 2.0), ("bbbb2222", 1.0)):
        at_once(store.create(an_entry(name, asked_s=asked_s)))
    (store.home.root / "pending/notes.txt").write_text("not an entry")
    assert [entry.id for entry in at_once(store.pending())] == ["bbbb2222", "aaaa2222", "cccc2222"]


def test_new_ids_are_free_and_short(store: FileStore) -> None:
    """Eight signs that suit a file name and the data of a button."""
    ids = {at_once(store.new_id()) for _ in range(50)}
    assert len(ids) == 50
    assert all(len(name) == 8 and name.isascii() and name.islower() for name in ids if name.isalpha())
    assert all(at_once(store.create(an_entry(name))).id == name for name in ids)


def test_codes_are_short_and_taken_by_nobody_open(store: FileStore) -> None:
    """Five signs, the first a letter, and none that looks like another."""
    entries: list[Entry] = []
    for _ in range(400):
        entries.append(an_entry(code=at_once(store.new_code(entries))))
    codes = {entry.code for entry in entries}
    assert len(codes) == 400
    assert {len(code) for code in codes} == {5}
    assert all(code[0].isalpha() for code in codes)
    assert not set("".join(codes)) & set("01ilo")


# --- settled entries -----------------------------------------------------------------------------------


def test_a_settled_entry_moves_to_its_month(store: FileStore, root: Path, clock: Clock) -> None:
    """It is no longer pending, and stays known."""
    entry = at_once(store.create(an_entry()))
    clock.now_s = OCTOBER_S
    at_once(store.settle("aaaa2222"))
    assert at_once(store.pending()) == []
    assert at_once(store.done("aaaa2222")) == entry
    assert (root / "done/2025-10/aaaa2222.json").exists()
    with pytest.raises(Missing):
        at_once(store.get("aaaa2222"))
    with pytest.raises(Missing):
        at_once(store.settle("aaaa2222"))
    with pytest.raises(Missing):
        at_once(store.done("bbbb2222"))


def test_entries_come_last_settled_first(store: FileStore, clock: Clock) -> None:
    """By the time at which they were settled, over the months, so many at most; what is damaged is left out."""
    for number, name in enumerate(("aaaa2222", "bbbb2222", "cccc2222", "dddd2222")):
        clock.now_s = SEPTEMBER_S + number * 864_000
        at_once(store.create(an_entry(name)))
        at_once(store.settle(name))
    (damaged,) = store.home.root.glob("done/*/dddd2222.json")
    content = damaged.stat()
    damaged.write_bytes(b"")
    os.utime(damaged, (content.st_mtime, content.st_mtime))
    names = [entry.id for entry in at_once(store.newest_done(3))]
    assert names == ["cccc2222", "bbbb2222"]
    assert [path.name[-13:] for path in store.home.quarantined()] == ["dddd2222.json"]


def test_old_entries_are_forgotten_and_pending_ones_never(store: FileStore, root: Path, clock: Clock) -> None:
    """Empty months go with them."""
    for name in ("aaaa2222", "bbbb2222", "cccc2222"):
        at_once(store.create(an_entry(name)))
    at_once(store.settle("aaaa2222"))
    clock.now_s = OCTOBER_S
    at_once(store.settle("bbbb2222"))
    clock.now_s += 100.0
    september, october = sorted(at_once(store.days_done()))
    assert (september, october) == ("2025-09-04", "2025-10-03")
    assert at_once(store.days_done())[october] == OCTOBER_S
    assert at_once(store.forget_done({september})) == 1
    assert [entry.id for entry in at_once(store.newest_done(9))] == ["bbbb2222"]
    assert [path.name for path in (root / "done").iterdir()] == ["2025-10"]
    assert at_once(store.forget_done({september, october})) == 1
    assert at_once(store.forget_done({october})) == 0
    assert list((root / "done").iterdir()) == []
    assert [entry.id for entry in at_once(store.pending())] == ["cccc2222"]


def test_a_settled_ask_is_known_by_its_wait_id_and_its_code(store: FileStore, root: Path) -> None:
    """Also after a restart; a line that was torn, and months of an older Hermes without lines, do no harm."""
    entry = at_once(store.create(an_entry(code="kkkkk")))
    source = entry.ask.source
    wait_id = spool.wait_id(source.agent, source.machine, source.request_id or "")
    assert at_once(store.done_by(wait_id)) is None
    (month,) = [root / "done" / name for name in ["2025-09"]]
    month.mkdir(mode=0o700)
    (month / "closed").write_text("\n0123456789abcdef q7")  # a process died here
    at_once(store.settle(entry.id))
    assert at_once(store.done_by(wait_id)) == "opencode"
    assert (month / "closed").stat().st_mode & 0o077 == 0
    (month / "closed").unlink()
    again = a_store(root)
    at_once(again.open())
    assert at_once(again.done_by(wait_id)) == "opencode"
    assert again._done.has_code("kkkkk")
    assert not again._done.has_code("kkkk")
    assert at_once(again.done_by(wait_id[:-1])) is None


# --- what cannot be read -------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\0" * 900, b'{"v":1,"entry":{"id":', b'{"v":1,"entry":{"id":"x"}}'])
def test_a_damaged_entry_goes_to_quarantine_and_the_rest_goes_on(
    store: FileStore, root: Path, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Loudly, as it was, and once."""
    whole = at_once(store.create(an_entry("bbbb2222")))
    (root / "pending/aaaa2222.json").write_bytes(data)
    assert at_once(a_store(root).open()) == [whole]
    (kept,) = store.home.quarantined()
    assert kept.read_bytes() == data
    assert kept.name.endswith("-aaaa2222.json")
    (event,) = [event for event in caplog.records if event.levelno >= logging.ERROR]
    assert "aaaa2222.json is damaged" in event.getMessage()
    caplog.clear()
    assert at_once(a_store(root).open()) == [whole]
    assert not caplog.records


def test_a_damaged_entry_that_cannot_be_moved_stops_nothing(
    store: FileStore, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It stays where it is, as it is, and that is said."""
    whole = at_once(store.create(an_entry("bbbb2222")))
    (root / "pending/aaaa2222.json").write_bytes(b"{")
    (root / "quarantine").rmdir()
    assert at_once(store.pending()) == [whole]
    assert "aaaa2222.json is left alone: nothing was saved" in caplog.text
    assert (root / "pending/aaaa2222.json").read_bytes() == b"{"


def test_an_entry_under_another_name_is_damaged(store: FileStore, root: Path) -> None:
    """A copied file would answer one ask twice."""
    entry = at_once(store.create(an_entry()))
    (root / "pending/bbbb2222.json").write_bytes((root / "pending/aaaa2222.json").read_bytes())
    assert at_once(store.pending()) == [entry]
    assert len(store.home.quarantined()) == 1


@pytest.mark.parametrize("how", ["get", "change"])
def test_whoever_meets_a_damaged_entry_is_told_and_it_is_put_away(store: FileStore, root: Path, how: str) -> None:
    """The second one finds it missing."""
    at_once(store.create(an_entry()))
    (root / "pending/aaaa2222.json").write_bytes(b"{")
    action = store.get if how == "get" else lambda name: store.change(name, one_more)
    with pytest.raises(Unreadable, match="not JSON"):
        at_once(action("aaaa2222"))
    with pytest.raises(Missing):
        at_once(action("aaaa2222"))
    assert [path.read_bytes() for path in store.home.quarantined()] == [b"{"]


def test_what_a_newer_hermes_wrote_is_left_alone_and_said_once(
    store: FileStore, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither read, nor changed, nor put away, nor created over."""
    path = root / "pending/aaaa2222.json"
    path.write_bytes(b'{"v":99,"entry":"what the future brings"}')
    assert at_once(store.open()) == []
    assert at_once(store.pending()) == []
    assert store.too_new == [path]
    assert [event.getMessage().count("newer Hermes") for event in caplog.records] == [1]
    with pytest.raises(TooNew, match="left alone"):
        at_once(store.get("aaaa2222"))
    with pytest.raises(TooNew):
        at_once(store.change("aaaa2222", one_more))
    with pytest.raises(Conflict):
        at_once(store.create(an_entry()))
    assert path.read_bytes() == b'{"v":99,"entry":"what the future brings"}'
    assert store.home.quarantined() == []


def test_what_cannot_be_read_just_now_is_left_alone(
    store: FileStore, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only damage leads to quarantine; a refusal of the system may pass."""
    whole = at_once(store.create(an_entry("bbbb2222")))
    (root / "pending/aaaa2222.json").mkdir()
    assert at_once(store.open()) == [whole]
    assert "aaaa2222.json cannot be read" in caplog.text
    assert store.home.quarantined() == []
    with pytest.raises(StoreError, match="cannot be read"):
        at_once(store.get("aaaa2222"))


def test_a_survey_changes_nothing(store: FileStore, root: Path) -> None:
    """It tells the same, and leaves all where it is."""
    whole = at_once(store.create(an_entry("bbbb2222")))
    (root / "pending/aaaa2222.json").write_bytes(b"")
    (root / "pending/cccc2222.json").write_bytes(b'{"v":99}')
    before = everything(root)
    survey = at_once(store.survey())
    assert survey.entries == (whole,)
    assert survey.damaged == ((root / "pending/aaaa2222.json", "it is empty"),)
    assert survey.too_new == (root / "pending/cccc2222.json",)
    assert everything(root) == before
    assert at_once(a_store(root.parent / "nothing").survey()).entries == ()


def test_quarantine_keeps_the_newest_files(root: Path, clock: Clock) -> None:
    """By their number."""
    store = a_store(root, now=clock, quarantine_files=3)
    at_once(store.open())
    for number in range(5):
        clock.now_s += 1
        store.home.quarantine("../in box?.json", b"%d" % number, "it is not JSON")
    assert [path.read_bytes() for path in store.home.quarantined()] == [b"2", b"3", b"4"]
    assert {path.parent for path in store.home.quarantined()} == {root / "quarantine"}
    assert all(path.name.endswith("-.._in_box_.json") for path in store.home.quarantined())


def test_quarantine_keeps_so_many_bytes_and_always_the_newest_file(root: Path, clock: Clock) -> None:
    """What has just been put there can be looked at."""
    store = a_store(root, now=clock, quarantine_bytes=10)
    at_once(store.open())
    kept = []
    for size in (4, 4, 6, 5, 40):
        clock.now_s += 1
        store.home.quarantine("x", b"x" * size, "why")
        kept.append([path.stat().st_size for path in store.home.quarantined()])
    assert kept == [[4], [4, 4], [4, 6], [5], [40]]


# --- the chat's memory ---------------------------------------------------------------------------------


def test_a_damaged_memory_goes_to_quarantine(store: FileStore, root: Path) -> None:
    """The bot begins anew."""
    (root / "telegram.json").write_bytes(b'{"v":1,"ch')
    assert at_once(store.load_chat(42)) == ChatMemory(42)
    assert [path.read_bytes() for path in store.home.quarantined()] == [b'{"v":1,"ch']
    assert not (root / "telegram.json").exists()


def test_a_memory_of_a_newer_hermes_is_left_alone(store: FileStore, root: Path) -> None:
    """Taking up updates from a wrong place is worse than not starting."""
    data = CHATS.encode(ChatMemory(42)).replace(b'"v":1', b'"v":99')
    (root / "telegram.json").write_bytes(data)
    with pytest.raises(TooNew, match=r"telegram\.json is left alone"):
        at_once(store.load_chat(42))
    assert (root / "telegram.json").read_bytes() == data


# --- the disk refuses ----------------------------------------------------------------------------------


def test_a_full_disk_changes_nothing(store: FileStore, root: Path) -> None:
    """No new content, no temporary file; the sentence names the folder; afterwards all goes on."""
    created = at_once(store.create(an_entry()))
    at_once(store.save_chat(ChatMemory(42, offset=7)))
    before = everything(root)
    with files_up_to(100):
        for action in (
            lambda: at_once(store.change("aaaa2222", one_more)),
            lambda: at_once(store.create(an_entry("bbbb2222"))),
            lambda: store.home.quarantine("x", b"x" * 200, "why"),
            lambda: at_once(store.save_chat(ChatMemory(42, offset=8, trouble="x" * 200))),
        ):
            with pytest.raises(NotSaved, match=f"nothing was saved in {root}: .*larger"):
                action()
    assert everything(root) == before
    assert at_once(store.change("aaaa2222", one_more)).revision == created.revision + 1


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "may not write there"),
        (errno.ETIMEDOUT, "timed out; see that"),
    ],
)
def test_every_refusal_has_a_sentence(number: int, words: str) -> None:
    """What, where, and what to do."""
    with pytest.raises(NotSaved, match=words) as caught, disk.saving(Path("/the/folder")):
        raise OSError(number, os.strerror(number))
    assert str(caught.value).startswith("nothing was saved in /the/folder: ")


def test_what_stands_in_its_place_is_saved_whatever_its_folder_says(store: FileStore, root: Path) -> None:
    """A folder that cannot be brought to the disk: nobody says "not saved" of what everybody reads."""
    at_once(store.create(an_entry()))
    with running("folders", root, "aaaa2222") as process:
        assert process.wait(60) == 0, process.stderr
    assert at_once(store.done("aaaa2222")).state.epoch == 1


def test_a_folder_that_turned_into_a_file_refuses_in_words(store: FileStore, root: Path) -> None:
    """While it runs, and at the next start."""
    at_once(store.create(an_entry()))
    (root / "pending").rename(root / "elsewhere")
    (root / "pending").write_text("in the way")
    for action in (lambda: store.create(an_entry("bbbb2222")), store.open):
        with pytest.raises(NotSaved, match="a file is where a folder should be"):
            at_once(action())
    with pytest.raises(StoreError, match="cannot be read"):
        at_once(store.pending())
    assert (root / "elsewhere/aaaa2222.json").exists()


def test_a_folder_that_is_gone_refuses_in_words_until_the_next_start(store: FileStore, root: Path) -> None:
    """Nothing is written to a place that nobody made."""
    (root / "pending").rmdir()
    with pytest.raises(NotSaved, match="the folder was removed; start Hermes again"):
        at_once(store.create(an_entry()))
    at_once(store.open())
    at_once(store.create(an_entry()))


def test_a_folder_full_of_other_things_is_refused(tmp_path: Path) -> None:
    """A slip in the configuration does not close somebody's home to others."""
    (tmp_path / "letters").mkdir()
    before = mode(tmp_path)
    with pytest.raises(StoreError, match="holds other things"):
        at_once(a_store(tmp_path).open())
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]
    assert mode(tmp_path) == before


def test_a_hook_makes_no_store_of_a_folder_of_other_things(tmp_path: Path) -> None:
    """A hook writes where it is told, and looks at nothing: its inbox does not mark a store."""
    (tmp_path / "letters").mkdir()
    spool.drop(tmp_path, spool.record("generic", {}))
    with pytest.raises(StoreError, match="holds other things"):
        at_once(a_store(tmp_path).open())


@pytest.mark.parametrize("name", ["inbox", "wait", "log"])
def test_a_folder_that_the_hook_or_the_log_began_is_taken(root: Path, name: str) -> None:
    """Both may be there before the first listener."""
    (root / name).mkdir(parents=True)
    assert at_once(a_store(root).open()) == []


def test_a_settled_file_that_cannot_be_read_hides_no_other(store: FileStore, root: Path) -> None:
    """A listener reads the newest ones at its start, and must start; a file is no month, whatever its name."""
    whole = at_once(store.create(an_entry()))
    at_once(store.settle(whole.id))
    (closed,) = (root / "done").glob("*/*.json")
    (closed.parent / "bbbb2222.json").mkdir()
    (root / "done" / "2024-01").write_text("not a folder")
    assert at_once(a_store(root).open()) == []
    assert at_once(store.newest_done(9)) == [whole]


@pytest.mark.parametrize("name", ["inbox", "wait"])
def test_a_folder_of_hooks_that_cannot_be_used_is_named(root: Path, name: str) -> None:
    """No question could come, and no answer leave; a folder that is only closed to all is opened for its owner."""
    (root / name).mkdir(parents=True, mode=0)
    a_store(root).home.hold("a listener").release()
    assert mode(root / name) == 0o700
    (root / name).rmdir()
    (root / name).write_text("not a folder")
    with pytest.raises(NotSaved, match=f"{root / name}: a file is where a folder should be; move it away"):
        a_store(root).home.hold("a listener")
    at_once(a_store(root).lock_phone())


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """As root a folder is given away; for anybody else "/" is one."""
    place = tmp_path / "store" if os.geteuid() == 0 else Path("/")
    if os.geteuid() == 0:
        place.mkdir(mode=0o755)
        os.chown(place, 12345, -1)
    before = mode(place)
    with pytest.raises(StoreError, match=r"belongs to another user \(uid"):
        disk.own_folder(place)
    assert mode(place) == before


def test_a_link_that_another_user_made_is_refused(tmp_path: Path) -> None:
    """Where links can be given away at all: it could lead anywhere."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    if os.geteuid() == 0:
        os.lchown(tmp_path / "link", 12345, -1)
        with pytest.raises(StoreError, match="is a link that belongs to another user"):
            disk.own_folder(tmp_path / "link")


def test_a_link_to_a_folder_of_ours_is_followed(tmp_path: Path) -> None:
    """A person may keep the store on another disk."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    at_once(a_store(tmp_path / "link").open())
    assert (tmp_path / "real/pending").is_dir()


def test_everything_is_closed_to_others_whatever_the_umask(tmp_path: Path, clock: Clock) -> None:
    """Folders 0700, files 0600, also those that were open before."""
    root = tmp_path / "a" / "b"
    before = os.umask(0)
    try:
        store = a_store(root, now=clock)
        at_once(store.open())
        at_once(store.create(an_entry()))
        at_once(store.change("aaaa2222", one_more))
        at_once(store.settle("aaaa2222"))
        at_once(store.create(an_entry("bbbb2222")))
        store.home.quarantine("x", b"x", "why")
        at_once(store.save_chat(ChatMemory(1)))
        store.home.hold("test").release()
        (root / "pending").chmod(0o777)
        at_once(store.open())
    finally:
        os.umask(before)
    found = {path: mode(path) for path in (root.parent, root, *root.rglob("*"))}
    assert {value for path, value in found.items() if path.is_dir()} == {0o700}
    assert {value for path, value in found.items() if path.is_file()} == {0o600}
    assert len(found) > 10


# --- several processes, and their deaths ---------------------------------------------------------------


@pytest.mark.long
def test_four_writers_lose_no_change(store: FileStore, root: Path) -> None:
    """Each change is made to what the one before left."""
    at_once(store.create(an_entry()))
    with contextlib.ExitStack() as stack:
        for process in [stack.enter_context(running("count", root, "aaaa2222", 40)) for _ in range(4)]:
            assert process.wait(60) == 0
    entry = at_once(store.get("aaaa2222"))
    assert (entry.state.epoch, entry.revision) == (160, 161)


def test_four_threads_of_one_process_lose_no_change(store: FileStore) -> None:
    """They share one store."""
    at_once(store.create(an_entry()))
    with ThreadPoolExecutor(4) as pool:
        epochs = {
            entry.state.epoch for entry in pool.map(lambda _: at_once(store.change("aaaa2222", one_more)), range(100))
        }
    assert epochs == set(range(1, 101))


def test_a_writer_that_is_killed_leaves_whole_entries(
    store: FileStore, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty times: what it reported is there, nothing is torn, and what it left behind is swept."""
    caplog.set_level(logging.ERROR)
    at_once(store.create(an_entry()))
    randomly = random.Random(7)
    with running("nursery", root, "aaaa2222") as mother:
        assert mother.stdin is not None
        for _ in range(20):
            mother.stdin.write("go\n")
            mother.stdin.flush()
            child, reported = int(line_of(mother)), 0
            for _ in range(randomly.randint(1, 12)):
                reported = int(line_of(mother))
            os.kill(child, 9)
            while (line := line_of(mother)) != "gone":
                assert line, "the nursery died"
                reported = int(line) if line.isdigit() else reported
            entries = {entry.id: entry for entry in at_once(a_store(root).open())}
            assert entries.pop("aaaa2222").state.epoch >= reported
            assert len(entries) <= 20  # one may be created and not yet settled, each time
            assert not [name for name in everything(root) if name.endswith(".tmp")]
    assert store.home.quarantined() == []
    assert not caplog.records


def test_temporary_files_of_the_dead_are_swept_at_start(
    store: FileStore, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever the store writes, and only there."""
    entry = at_once(store.create(an_entry()))
    at_once(store.settle(at_once(store.create(an_entry("bbbb2222"))).id))
    (root / "inbox").mkdir()
    left = [
        root / ".telegram.json.1.tmp",
        root / "pending/.a.json.1.tmp",
        root / "done/2025-09/.b.json.1.tmp",
    ]
    spooled = root / "inbox/.c.json.1.tmp"
    for path in (*left, spooled):
        path.write_bytes(b'{"v":1,')
    assert at_once(a_store(root).open()) == [entry]
    assert [path.exists() for path in (*left, spooled)] == [False, False, False, True]
    assert "removed 3 temporary files" in caplog.text


def test_a_lock_that_nobody_lets_go_of_refuses_in_words(store: FileStore, root: Path) -> None:
    """A frozen process must not freeze this one."""
    at_once(store.create(an_entry()))

    def meanwhile(entry: Entry) -> Entry:
        with pytest.raises(NotSaved, match=r"does not let go of store\.lock"):
            at_once(a_store(root, lock_timeout_s=0.05).change("aaaa2222", one_more))
        return one_more(entry)

    assert at_once(store.change("aaaa2222", meanwhile)).state.epoch == 1


def test_a_change_costs_the_same_whatever_else_is_open(store: FileStore, root: Path) -> None:
    """At 10 and at 2,000 entries it opens the same number of files, and lists no folder."""
    at_once(store.create(an_entry()))
    seen = []
    for crowd in (range(10), range(10, 2000)):
        for number in crowd:
            os.link(root / "pending/aaaa2222.json", root / f"pending/n{number}.json")
        with running("audit", root, "aaaa2222") as process:
            seen.append(json.loads(line_of(process)))
    assert seen[0] == seen[1]
    assert seen[0]["os.listdir"] == seen[0]["os.scandir"] == 0
    assert seen[0]["open"] <= 5


def test_the_lock_of_a_listener_says_who_holds_it_and_goes_with_its_holder(store: FileStore, root: Path) -> None:
    """Kill -9 frees it at once."""
    assert store.home.listener() is None
    with running("hold", root) as process:
        assert line_of(process) == "held"
        holder = store.home.listener()
        assert holder is not None
        assert (holder.pid, holder.who) == (process.pid, "hermes test")
        with pytest.raises(Held, match=rf"hermes test \(pid {process.pid}\) holds the store {root}"):
            store.home.hold("me")
        process.kill()
        process.wait()
        assert store.home.listener() is None
        with store.home.hold("me"):
            assert store.home.listener() is not None
    assert store.home.listener() is None
