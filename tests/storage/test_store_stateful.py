"""Any mix of saving, settling, damage and restarts: the store tells what a plain dictionary would."""

import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from hermes.errors import Conflict, Missing
from hermes.model.entry import Entry
from tests.at_once import at_once
from tests.storage.store_process import an_entry
from tests.stores import a_store

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
DAY_S = 86_400.0


class StoreMachine(RuleBasedStateMachine):
    """A store, and beside it what should be in it."""

    open_ids: Bundle[str] = Bundle("open_ids")
    settled_ids: Bundle[str] = Bundle("settled_ids")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="hermes-stateful-"))
        self.now_s = 1_757_000_000.0
        self.pending: dict[str, Entry] = {}
        self.done: dict[str, tuple[float, Entry]] = {}
        self.damaged = 0
        self.restart()

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @rule()
    def restart(self) -> None:
        self.store = a_store(self.root, now=lambda: self.now_s)
        at_once(self.store.open())

    @rule(days=st.integers(0, 40))
    def wait(self, days: int) -> None:
        self.now_s += days * DAY_S

    @rule(target=open_ids, text=ANY_TEXT)
    def create(self, text: str) -> str:
        entry_id = at_once(self.store.new_id())
        assert entry_id not in self.pending
        assert entry_id not in self.done
        entry = an_entry(entry_id, code=at_once(self.store.new_code(self.pending.values())))
        assert entry.code not in {other.code for other in self.pending.values()}
        entry = replace(entry, phone=replace(entry.phone, drawn=text))
        self.pending[entry_id] = at_once(self.store.create(entry))
        assert self.pending[entry_id] == replace(entry, revision=1)
        return entry_id

    @rule(entry_id=open_ids)
    def create_again(self, entry_id: str) -> None:
        if entry_id in self.pending:
            with pytest.raises(Conflict):
                at_once(self.store.create(an_entry(entry_id)))

    @rule(entry_id=open_ids, text=ANY_TEXT)
    def change(self, entry_id: str, text: str) -> None:
        if entry_id not in self.pending:
            with pytest.raises(Missing):
                at_once(self.store.change(entry_id, lambda entry: entry))
            return
        before = self.pending[entry_id]
        after = at_once(
            self.store.change(entry_id, lambda entry: replace(entry, phone=replace(entry.phone, drawn=text)))
        )
        assert after.phone.drawn == text
        assert after.revision == before.revision + (text != before.phone.drawn)
        self.pending[entry_id] = after

    @rule(target=settled_ids, entry_id=consumes(open_ids))
    def settle(self, entry_id: str) -> str:
        if entry_id in self.pending:
            at_once(self.store.settle(entry_id))
            self.done[entry_id] = self.now_s, self.pending.pop(entry_id)
        with pytest.raises(Missing):
            at_once(self.store.settle(entry_id))
        return entry_id

    @rule(entry_id=open_ids, keep=st.integers(0, 60))
    def damage(self, entry_id: str, keep: int) -> None:
        if self.pending.pop(entry_id, None):
            path = self.root / f"pending/{entry_id}.json"
            path.write_bytes(path.read_bytes()[:keep])
            self.damaged += 1

    @rule(at=st.integers(0, 60))
    def forget(self, at: int) -> None:
        days = sorted(at_once(self.store.days_done()))[at : at + 1]
        old = [name for name, (at_s, _) in self.done.items() if day_of(at_s) in days]
        assert at_once(self.store.forget_done(days)) == len(old)
        for name in old:
            del self.done[name]

    @rule(entry_id=settled_ids)
    def look_up(self, entry_id: str) -> None:
        if entry_id in self.done:
            assert at_once(self.store.done(entry_id)) == self.done[entry_id][1]
        else:
            with pytest.raises(Missing):
                at_once(self.store.done(entry_id))

    @invariant()
    def the_store_tells_what_the_dictionary_tells(self) -> None:
        assert {entry.id: entry for entry in at_once(self.store.pending())} == self.pending
        assert {entry.id: entry for entry in at_once(self.store.newest_done(10_000))} == {
            name: entry for name, (_, entry) in self.done.items()
        }
        assert len(self.store.home.quarantined()) == self.damaged
        assert set(at_once(self.store.days_done())) == {day_of(at_s) for at_s, _ in self.done.values()}
        assert not list(self.root.rglob("*.tmp"))


def day_of(at_s: float) -> str:
    """The day of this moment."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d")


StoreMachine.TestCase.settings = settings(
    max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_the_store_behaves_like_a_dictionary = StoreMachine.TestCase
