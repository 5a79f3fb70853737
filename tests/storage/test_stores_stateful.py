"""Any mix of saving, closing and restarts: each store tells what a plain dictionary would."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)

from hermes.errors import Conflict, Missing
from hermes.model.entry import Entry
from hermes.model.notice import Notice
from tests.harness.postgres import Server
from tests.storage.store_process import an_entry
from tests.storage.stores import DAY_S, InFiles, InPostgres, Kept

T = TypeVar("T")
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
FEW = settings(max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))


class StoreMachine(RuleBasedStateMachine):
    """A store, and beside it what should be in it."""

    open_ids: Bundle[str] = Bundle("open_ids")
    closed_ids: Bundle[str] = Bundle("closed_ids")

    def __init__(self, server: Server | None) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="hermes-stateful-"))
        self.resources = contextlib.ExitStack()
        self.runner = self.resources.enter_context(asyncio.Runner())
        self.kept: Kept = (
            InFiles(self.root / "store")
            if server is None
            else InPostgres(self.root / "store", self.resources.enter_context(server.database()))
        )
        self.pending: dict[str, Entry] = {}
        self.done: dict[str, tuple[float, Entry]] = {}
        self.notices: dict[str, Notice] = {}
        self.store = self.kept.make()
        self.now(self.start())

    def now(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this to its end."""
        return self.runner.run(work)

    async def start(self) -> None:
        await self.store.join("desk", "1.0")
        assert await self.store.take_phone()
        await self.store.open()

    def teardown(self) -> None:
        self.now(self.store.leave())
        self.resources.close()
        shutil.rmtree(self.root)

    @rule()
    def restart(self) -> None:
        self.now(self.store.leave())
        self.store = self.kept.make()
        self.now(self.start())

    @rule(days=st.integers(0, 40))
    def wait(self, days: int) -> None:
        before_s = self.store.now()
        self.kept.wait(days)
        if self.store.now() - before_s < DAY_S:  # the clock is not ours: what was closed became older
            self.done = {name: (at_s - days * DAY_S, entry) for name, (at_s, entry) in self.done.items()}

    @rule(target=open_ids, text=ANY_TEXT)
    def create(self, text: str) -> str:
        entry_id = self.now(self.store.new_id())
        assert entry_id not in self.pending
        assert entry_id not in self.done
        entry = an_entry(entry_id, code=self.now(self.store.new_code(self.pending.values())))
        assert entry.code not in {other.code for other in self.pending.values()}
        entry = replace(entry, phone=replace(entry.phone, drawn=text))
        self.pending[entry_id] = self.now(self.store.create(entry))
        assert self.pending[entry_id] == replace(entry, revision=1)
        return entry_id

    @rule(entry_id=open_ids)
    def create_again(self, entry_id: str) -> None:
        if entry_id in self.pending:
            with pytest.raises(Conflict):
                self.now(self.store.create(an_entry(entry_id)))

    @rule(entry_id=open_ids, text=ANY_TEXT, is_known=st.booleans())
    def change(self, entry_id: str, text: str, is_known: bool) -> None:
        before = self.pending.get(entry_id)

        def draw(entry: Entry) -> Entry:
            return replace(entry, phone=replace(entry.phone, drawn=text))

        if before is None:
            with pytest.raises(Missing):
                self.now(self.store.change(entry_id, draw))
            return
        after = self.now(self.store.change(entry_id, draw, before if is_known else None))
        assert after == replace(draw(before), revision=before.revision + (text != before.phone.drawn))
        self.pending[entry_id] = after

    @rule(entry_id=open_ids)
    def keep(self, entry_id: str) -> None:
        if entry_id in self.pending:
            assert self.now(self.store.keep(self.pending[entry_id])) == self.pending[entry_id]

    @rule(entry_id=open_ids)
    def move_away_and_back(self, entry_id: str) -> None:
        self.now(self.store.forget(entry_id))
        if entry_id in self.pending:
            with pytest.raises(Missing):
                self.now(self.store.get(entry_id))
            assert self.now(self.store.keep(self.pending[entry_id])) == self.pending[entry_id]

    @rule(target=closed_ids, entry_id=consumes(open_ids))
    def settle(self, entry_id: str) -> str:
        if entry_id in self.pending:
            self.now(self.store.settle(entry_id))
            self.done[entry_id] = self.store.now(), self.pending.pop(entry_id)
        with pytest.raises(Missing):
            self.now(self.store.settle(entry_id))
        return entry_id

    @rule(at=st.integers(0, 60))
    def forget(self, at: int) -> None:
        days = sorted(self.now(self.store.days_done()))[at : at + 1]
        gone = [name for name, (at_s, _) in self.done.items() if day_of(at_s) in days]
        assert self.now(self.store.forget_done(days)) == len(gone)
        for name in gone:
            del self.done[name]

    @rule(entry_id=closed_ids)
    def look_up(self, entry_id: str) -> None:
        if entry_id in self.done:
            assert self.now(self.store.done(entry_id)) == self.done[entry_id][1]
        else:
            with pytest.raises(Missing):
                self.now(self.store.done(entry_id))

    @rule(number=st.integers(0, 2), text=ANY_TEXT)
    def note(self, number: int, text: str) -> None:
        notice_id = f"notice{number}a"
        if notice_id in self.notices:
            saved = self.now(
                self.store.notices.change(self.notices[notice_id], lambda old: replace(old, session_id=text))
            )
        else:
            saved = self.now(self.store.notices.create(Notice(notice_id, "opencode", text, machine="desk")))
        assert saved.session_id == text
        self.notices[notice_id] = saved

    @rule(number=st.integers(0, 2))
    def forget_notice(self, number: int) -> None:
        self.notices.pop(f"notice{number}a", None)
        self.now(self.store.notices.forget(f"notice{number}a"))

    @invariant()
    def the_store_tells_what_the_dictionary_tells(self) -> None:
        assert {entry.id: entry for entry in self.now(self.store.open())} == self.pending
        assert {entry.id: entry for entry in self.now(self.store.newest_done(10_000))} == {
            name: entry for name, (_, entry) in self.done.items()
        }
        assert set(self.now(self.store.days_done())) == {day_of(at_s) for at_s, _ in self.done.values()}
        assert {each.id: each for each in self.now(self.store.notices.all())} == self.notices


class FilesMachine(StoreMachine):
    """A store of files, some of which are damaged."""

    def __init__(self) -> None:
        self.damaged = 0
        super().__init__(None)

    @rule(entry_id=StoreMachine.open_ids, kept=st.integers(0, 60))
    def damage(self, entry_id: str, kept: int) -> None:
        if self.pending.pop(entry_id, None):
            path = self.root / "store" / "pending" / f"{entry_id}.json"
            path.write_bytes(path.read_bytes()[:kept])
            self.damaged += 1

    @invariant()
    def what_is_damaged_is_in_quarantine(self) -> None:
        self.now(self.store.open())
        assert len(self.store.home.quarantined()) == self.damaged
        assert not list(self.root.rglob("*.tmp"))


def day_of(at_s: float) -> str:
    """The day of this moment."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d")


@pytest.mark.long
def test_the_store_of_files_behaves_like_a_dictionary() -> None:
    """Whatever is done, also if files are damaged."""
    run_state_machine_as_test(FilesMachine, settings=settings(FEW, max_examples=20, stateful_step_count=25))


def test_the_store_in_postgres_behaves_like_a_dictionary(postgres: Server) -> None:
    """Whatever is done."""
    run_state_machine_as_test(lambda: StoreMachine(postgres), settings=FEW)  # type: ignore[arg-type]
