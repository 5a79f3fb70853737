"""The book of open asks: on disk before it is seen, found by identity, and not thrown by one bad file."""

from __future__ import annotations

import errno
import gc
import pathlib
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.errors import InUse, Missing, NotSaved, Stuck
from hermes.listener.entries import RECENT, SEEN, identities
from hermes.listener.wakes import Wake
from hermes.model.actions import Arm
from hermes.model.ask import Ask, Permission, Source
from hermes.model.entry import Closed, Entry, Timing
from hermes.model.events import Ended, Tapped
from tests.asks import ANN, ask, question
from tests.at_once import at_once
from tests.books import TTL_S, a_book, entry_of, woken
from tests.stores import a_store

if TYPE_CHECKING:
    from pathlib import Path

PATHLIB = str(pathlib.__file__)
NOW_S = 1_757_000_000.0
SHOP = "/home/dev/shop-api"


class Shelf:
    """A book with its store."""

    def __init__(self, root: Path, now_s: float = NOW_S) -> None:
        self.now_s = now_s
        self.store = a_store(root, now=lambda: self.now_s)
        at_once(self.store.open())
        self.book = a_book(self.store)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """An empty book."""
    return Shelf(tmp_path / "store")


def an_ask(request_id: str | None = "que_1", call_id: str | None = None, session: str = "ses_1") -> Ask:
    """An ask of this identity."""
    one = ask(question())
    return replace(one, source=replace(one.source, request_id=request_id, call_id=call_id, session_id=session))


def end(shelf: Shelf, entry: Entry) -> None:
    """Settle an entry and put it away."""
    at_once(shelf.book.apply(entry.id, Ended(shelf.now_s, "gone")))
    at_once(shelf.book.close(entry_of(shelf.book, entry.id)))


def test_a_change_is_on_disk_before_it_is_told(shelf: Shelf) -> None:
    """And what changes nothing is not told."""
    entry = at_once(shelf.book.create(an_ask()))
    assert [one.id for one in at_once(shelf.store.pending())] == [entry.id]
    at_once(
        shelf.book.change(
            entry.id, lambda found: replace(found, timing=Timing(posted_s=1.0, set_at=0.0, expires_at=1.0))
        )
    )
    at_once(shelf.book.apply(entry.id, Tapped(5, NOW_S, ANN, Arm(0), 0)))
    assert at_once(shelf.store.get(entry.id)).state.armed is not None
    assert at_once(shelf.store.get(entry.id)).timing.expires_at == TTL_S, "a touch starts the time again"
    assert woken(shelf.book) == [Wake(entry.id)]
    at_once(shelf.book.apply(entry.id, Tapped(5, NOW_S, ANN, Arm(0), 0)))
    assert woken(shelf.book) == []


def test_asks_are_found_by_request_and_by_call(shelf: Shelf) -> None:
    """A call joins the request that appears; a repeated call id with another request is another ask."""
    entry = at_once(shelf.book.create(an_ask(None, "call_1"), matching=True))
    assert shelf.book.find(an_ask("que_1", "call_1").source) == entry
    assert shelf.book.find(an_ask("que_1").source) is None
    assert shelf.book.find(an_ask(None, "call_1", session="ses_2").source) is None
    joined = at_once(shelf.book.change(entry.id, lambda found: replace(found, ask=an_ask("que_1", "call_1"))))
    assert shelf.book.find(an_ask("que_1").source) == joined
    assert shelf.book.find(an_ask("que_2", "call_1").source) is None


def test_the_end_of_one_is_not_the_end_of_its_namesake(shelf: Shelf) -> None:
    """The call id was given to another ask meanwhile: that one is still found, by its request."""
    first = at_once(shelf.book.create(an_ask("que_1", "call_1")))
    second = at_once(shelf.book.create(an_ask("que_2", "call_1")))
    end(shelf, first)
    assert shelf.book.find(an_ask("que_2", "call_1").source) == second
    assert at_once(shelf.book.is_closed(an_ask("que_1").source))
    assert not at_once(shelf.book.is_closed(an_ask(None, "call_1").source))


def test_closed_asks_stay_known_after_a_restart(shelf: Shelf, tmp_path: Path) -> None:
    """Their requests for as long as they are kept, and the newest updates that they have seen."""
    entry = at_once(shelf.book.create(an_ask()))
    at_once(shelf.book.apply(entry.id, Tapped(5, NOW_S, ANN, Arm(0), 0)))
    end(shelf, entry)
    assert shelf.book.was_seen(5)
    again = Shelf(tmp_path / "store")
    assert at_once(again.book.is_closed(an_ask().source))
    assert again.book.was_seen(5)
    assert not again.book.was_seen(6)
    later = Shelf(tmp_path / "store", now_s=NOW_S + 365 * 86400.0)
    assert at_once(later.book.is_closed(an_ask().source)), "a wall clock that is wrong forgets nothing"
    assert later.book.was_seen(5)


def test_a_call_that_never_became_a_request_is_not_remembered(shelf: Shelf, tmp_path: Path) -> None:
    """There is nothing to know it by."""
    end(shelf, at_once(shelf.book.create(an_ask(None, "call_1"), matching=True)))
    assert not at_once(Shelf(tmp_path / "store").book.is_closed(an_ask("que_1", "call_1").source))


def test_updates_and_closed_asks_are_remembered_up_to_a_limit(shelf: Shelf, tmp_path: Path) -> None:
    """The newest ones; a call's end, and who allowed it, is known in short, also after a restart."""
    for number in range(3):
        entry = at_once(shelf.book.create(an_ask(f"que_{number}", f"call_{number}")))
        at_once(shelf.book.apply(entry.id, Tapped(number, NOW_S, ANN, Arm(0), 0)))
        shelf.now_s += 1
        end(shelf, entry)
    ids = [one.id for one in shelf.book.recently_closed]
    ended = [one.ended_s for one in shelf.book.recently_closed]
    closed = [
        Closed(entry_id, "ses_1", f"call_{at}", awaits_news=False, ended_s=ended_s, agent="opencode", directory=SHOP)
        for at, (entry_id, ended_s) in enumerate(zip(ids, ended, strict=True))
    ]
    assert list(shelf.book.recently_closed) == closed
    assert list(Shelf(tmp_path / "store").book.recently_closed) == closed
    assert (shelf.book.recently_closed.maxlen, shelf.book._seen_by_closed.maxlen) == (RECENT, SEEN)


def test_a_code_is_never_given_twice(shelf: Shelf, tmp_path: Path) -> None:
    """As long as its ask is kept, also after a restart; a reply to an old message finds no other ask."""
    entry = at_once(shelf.book.place(at_once(shelf.book.create(an_ask()))))
    end(shelf, entry)
    assert shelf.store._done.has_code(entry.code)
    again = Shelf(tmp_path / "store")
    assert again.store._done.has_code(entry.code)
    assert at_once(again.book.place(at_once(again.book.create(an_ask("que_2"))))).code not in {"", entry.code}


def traced() -> int:
    """Bytes in use, without the interpreter's own table of strings: it grows by doubling, by what ran before."""
    found = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(inclusive=False, filename_pattern=PATHLIB)])
    return sum(one.size for one in found.traces)


def test_nothing_in_memory_grows_with_closed_asks(shelf: Shelf) -> None:
    """Three hundred permissions with a change of 30 KB each: less than one of them is left for each hundred."""

    def play(number: int) -> None:
        change = f"{number}{'x' * 30_000}"
        one = an_ask(f"que_{number}")
        one = replace(one, permission=Permission("edit", "change", "a.py", detail=change))
        end(shelf, at_once(shelf.book.create(one)))
        woken(shelf.book)

    for number in range(RECENT + 20):
        play(number)
    tracemalloc.start()
    try:
        gc.collect()
        before = traced()
        for number in range(1000, 1300):
            play(number)
        gc.collect()
        grown = traced() - before
    finally:
        tracemalloc.stop()
    assert grown < 90_000
    assert at_once(shelf.book.is_closed(an_ask("que_0").source))


def test_open_asks_are_read_back_in_the_order_asked(shelf: Shelf, tmp_path: Path) -> None:
    """With the same identities."""
    second = at_once(shelf.book.create(an_ask("que_2")))
    shelf.now_s -= 60
    first = at_once(shelf.book.create(an_ask("que_1")))
    again = Shelf(tmp_path / "store").book
    assert [entry.id for entry in again.all()] == [first.id, second.id]
    assert again.find(an_ask("que_2").source) == second
    assert again.get(first.id) == first
    assert again.get("nobody22") is None


def spoil(shelf: Shelf, entry: Entry, damage: str) -> None:
    """Take the entry's file away, or tear it."""
    file = shelf.store.home.root / "pending" / f"{entry.id}.json"
    if damage == "gone":
        file.unlink()
    else:
        file.write_text("{")


DAMAGED = pytest.mark.parametrize("damage", ["gone", "torn"])


@DAMAGED
def test_an_entry_whose_file_went_bad_loses_nothing(
    shelf: Shelf, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """What it said is known here: it is written anew, and what was found there is kept for a person to look at."""
    entry = at_once(shelf.book.create(an_ask()))
    spoil(shelf, entry, damage)
    woken(shelf.book)
    at_once(shelf.book.apply(entry.id, Ended(NOW_S, "gone")))
    assert f"entry {entry.id}: its file is damaged" in caplog.text
    (found,) = at_once(shelf.store.pending())
    assert (found.state.phase, found.revision) == ("settled", entry.revision + 1)
    assert woken(shelf.book) == [Wake(entry.id)]
    assert [path.read_text() for path in shelf.store.home.quarantined()] == ([] if damage == "gone" else ["{"])


@DAMAGED
def test_an_entry_whose_file_went_bad_at_its_end(shelf: Shelf, damage: str) -> None:
    """What is put away is whole."""
    entry = at_once(shelf.book.create(an_ask()))
    at_once(shelf.book.apply(entry.id, Ended(NOW_S, "gone")))
    ended = shelf.book.get(entry.id)
    spoil(shelf, entry, damage)
    at_once(shelf.book.close(entry_of(shelf.book, entry.id)))
    assert shelf.book.all() == at_once(shelf.store.pending()) == []
    assert at_once(shelf.store.done(entry.id)) == ended
    assert at_once(shelf.book.is_closed(entry.ask.source))


def test_an_entry_whose_bad_file_cannot_be_put_away(shelf: Shelf) -> None:
    """It is not written over: the change is refused, and is made as soon as there is a quarantine."""
    entry = at_once(shelf.book.create(an_ask()))
    spoil(shelf, entry, "torn")
    quarantine = shelf.store.home.root / "quarantine"
    quarantine.rmdir()
    quarantine.write_text("in the way")
    with pytest.raises(Stuck, match="could not be put into quarantine"):
        at_once(shelf.book.apply(entry.id, Ended(NOW_S, "gone")))
    assert (shelf.store.home.root / "pending" / f"{entry.id}.json").read_text() == "{"
    at_once(shelf.store.pending())
    assert shelf.store.put_away == 0
    quarantine.unlink()
    quarantine.mkdir()
    at_once(shelf.book.apply(entry.id, Ended(NOW_S, "gone")))
    assert shelf.book.all() == at_once(shelf.store.pending())


def test_an_entry_whose_file_went_bad_while_the_disk_is_full(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept in memory until there is room."""
    entry = at_once(shelf.book.create(an_ask()))
    file = shelf.store.home.root / "pending" / f"{entry.id}.json"
    file.unlink()

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("hermes.disk.write", refuse)
        with pytest.raises(NotSaved):
            at_once(shelf.book.apply(entry.id, Ended(NOW_S, "gone")))
    assert shelf.book.all() == [entry]
    at_once(shelf.book.apply(entry.id, Ended(NOW_S, "gone")))
    assert shelf.book.all() == at_once(shelf.store.pending())


def test_what_the_book_does_not_know_is_missing(shelf: Shelf) -> None:
    """Nothing is made up."""
    with pytest.raises(Missing):
        at_once(shelf.book.apply("nobody22", Ended(NOW_S, "gone")))


def test_identities_are_agent_and_ids() -> None:
    """Another machine id makes no other ask: what comes here is of this machine."""
    source = Source("opencode", "laptop", "ses_1", request_id="que_1", call_id="call_1")
    assert len(identities(source)) == 2
    assert identities(source) == identities(replace(source, machine="desktop"))
    assert not set(identities(source)) & set(identities(replace(source, agent="claude-code")))
    assert identities(Source("opencode", "laptop", "ses_1")) == ()


def test_the_end_of_an_ask_meanwhile_is_no_fault(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    """What is done with all open asks, one after the other, meets the end of one of them; it leaves no trace."""
    entry = at_once(shelf.book.create(an_ask()))
    end(shelf, entry)
    with shelf.book.apart(entry.id):
        at_once(shelf.book.change(entry.id, lambda found: found))
    assert not [one for one in caplog.messages if "there is no" in one]
    assert not shelf.book._said


@pytest.mark.parametrize("error", [NotSaved("the disk is full"), InUse("it is locked")])
def test_what_was_not_saved_is_told_to_the_caller(shelf: Shelf, error: NotSaved) -> None:
    """News of an agent must be kept and taken again; it would be lost if only the log had the error."""
    with pytest.raises(NotSaved), shelf.book.apart("aaaa2222"):
        raise error
