"""Notices as files."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hermes.errors import NotSaved, StoreError
from hermes.model.ask import Source
from hermes.model.notice import Changes, Notice, Shown, Turn
from hermes.storage.files import FileStore
from tests.stores import a_store

TURN = Turn(
    Source("opencode", "laptop", "ses_1"), "OpenCode", "msg_1", 1.0, 2.0, "Done \ud800.", changes=Changes(1, 2, 3)
)
NOTICE = Notice("abcdefgh", "opencode", "ses_1", "posted", turn=TURN, shown=Shown(TURN, 2.0, 1001, 7))


@pytest.fixture
async def store(tmp_path: Path) -> FileStore:
    """A store that is open."""
    made = a_store(tmp_path / "store")
    await made.open()
    return made


async def test_a_notice_is_read_as_it_was_saved(store: FileStore) -> None:
    """With its own file, which others cannot read."""
    saved = await store.notices.create(NOTICE)
    assert saved.revision == 1
    assert await a_store(store.home.root).notices.all() == [saved]
    file = store.home.root / "notices" / "abcdefgh.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_a_damaged_file_costs_its_own_notice_alone(store: FileStore) -> None:
    """It goes to quarantine; one that a newer Hermes wrote stays where it is, and so does what is no file."""
    saved = await store.notices.create(NOTICE)
    folder = store.home.root / "notices"
    (folder / "damaged.json").write_bytes(b"{")
    (folder / "another.json").write_bytes((folder / "abcdefgh.json").read_bytes())
    (folder / "newer.json").write_bytes(b'{"v": 99}')
    (folder / "folder.json").mkdir()
    assert await store.notices.all() == [saved]
    assert sorted(path.name for path in folder.iterdir()) == ["abcdefgh.json", "folder.json", "newer.json"]
    assert len(store.home.quarantined()) == 2


async def test_whoever_looks_beside_the_listener_changes_nothing(store: FileStore) -> None:
    """What can be read is read, and a damaged file stays where it is; before the first notice there is no folder."""
    assert await store.notices.survey() == []
    saved = await store.notices.create(NOTICE)
    folder = store.home.root / "notices"
    (folder / "damaged.json").write_bytes(b"{")
    (folder / "newer.json").write_bytes(b'{"v": 99}')
    (folder / "folder.json").mkdir()
    assert await store.notices.survey() == [saved]
    assert len(list(folder.iterdir())) == 4
    assert store.home.quarantined() == []


async def test_a_notice_that_is_forgotten_is_gone(store: FileStore) -> None:
    """Also if that is done twice."""
    await store.notices.create(NOTICE)
    for _ in range(2):
        await store.notices.forget(NOTICE.id)
    assert await store.notices.all() == []


async def test_a_store_that_was_removed_is_not_made_again_by_a_notice(store: FileStore) -> None:
    """Its listener does that, with all that was open."""
    store.home.root.rename(store.home.root.with_name("elsewhere"))
    with pytest.raises(NotSaved, match="was removed"):
        await store.notices.create(NOTICE)
    assert not store.home.root.exists()


async def test_an_id_never_names_another_file(store: FileStore) -> None:
    """Ids also come from the phone."""
    with pytest.raises(StoreError):
        await store.notices.forget("../machine")


async def test_an_older_store_without_notices_opens(tmp_path: Path) -> None:
    """It has none."""
    store = a_store(tmp_path / "store")
    await store.open()
    assert await store.notices.all() == []
    assert not (store.home.root / "notices").exists()
