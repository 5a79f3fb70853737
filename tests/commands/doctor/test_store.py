"""The store under the doctor's eyes."""

import pytest

from hermes.commands.doctor import store as stores
from hermes.commands.doctor.checkup import mend
from tests.commands.doctor.patient import Patient, named, told
from tests.storage.store_process import an_entry

WELL = dict.fromkeys(["writing", "modes", "space", "quarantine", "questions"], "good")
DAY_S = 86400.0


async def test_none_yet_is_well_and_none_is_made(patient: Patient) -> None:
    """The first question makes it."""
    assert told(await stores.look(patient.around())) == {"folder": "good"}
    assert not (patient.root / "store").exists()


async def test_a_folder_that_cannot_be_made_is_broken(patient: Patient) -> None:
    """The first question could not make it either."""
    (patient.root / "store").write_text("")
    patient.tables["store"]["path"] = str(patient.root / "store" / "mine")
    patient.write()
    found = named(await stores.look(patient.around()), "folder")
    assert (found.verdict, str(patient.root / "store") in found.seen) == ("broken", True)


async def test_a_folder_of_other_things_is_broken_and_left_as_it_is(patient: Patient) -> None:
    """Its modes are nobody's fault, and nothing is written to try it."""
    project = patient.root / "store"
    (project / "sub").mkdir(parents=True)
    (project / "run.sh").write_text("")
    (project / "run.sh").chmod(0o755)
    found = await stores.look(patient.around())
    assert told(found) == {"folder": "broken"}
    assert "holds other things" in found[0].seen
    assert await mend(found) == []
    assert sorted(path.name for path in project.iterdir()) == ["run.sh", "sub"]
    assert (project / "run.sh").stat().st_mode & 0o777 == 0o755


async def test_all_is_well_and_stays_as_it_was(patient: Patient) -> None:
    """What was written to see whether one can is gone."""
    root = patient.store.home.root
    before = sorted(root.rglob("*"))
    assert told(await stores.look(patient.around())) == WELL
    assert sorted(root.rglob("*")) == before


async def test_a_store_that_cannot_be_written_is_broken(patient: Patient) -> None:
    """The disk's own refusal, in plain words (a full disk: see the test of the whole command)."""
    (patient.store.home.root / ".doctor.tmp").mkdir()
    found = named(await stores.look(patient.around()), "writing")
    assert (found.verdict, "a folder is where a file should be" in found.seen) == ("broken", True)


async def test_a_file_in_place_of_the_store_is_broken(patient: Patient) -> None:
    """Every check says what it met; none fails."""
    (patient.root / "store").write_text("")
    found = told(await stores.look(patient.around()))
    assert found["writing"] == "broken"


async def test_what_others_may_read_is_broken_and_mended(patient: Patient) -> None:
    """Folders and files; a link is nobody's mode."""
    root = patient.store.home.root
    (root / "link").symlink_to("/etc/passwd")
    await patient.store.create(an_entry())
    root.chmod(0o755)
    (root / "pending" / "aaaa2222.json").chmod(0o644)
    found = named(await stores.look(patient.around()), "modes")
    assert (found.verdict, found.seen) == ("broken", "others may read or change 2 files and folders of it")
    assert found.mend == f"chmod -R go= {root}"
    assert await mend([found]) == ["Closed to others: 2 files and folders."]
    assert (root.stat().st_mode & 0o777, (root / "pending" / "aaaa2222.json").stat().st_mode & 0o777) == (0o700, 0o600)
    assert named(await stores.look(patient.around()), "modes").verdict == "good"


@pytest.mark.parametrize(("free", "verdict"), [(300_000_000, "good"), (150_000_000, "warning"), (5_000_000, "broken")])
def test_little_room_is_told(free: int, verdict: str) -> None:
    """In megabytes."""
    found = stores._room(free)
    assert (found.verdict, found.seen) == (verdict, f"{free // 1_000_000} MB are free")


async def test_the_room_is_that_of_the_disk(patient: Patient) -> None:
    """The machine's own figure."""
    await patient.store.open()
    assert named(await stores.look(patient.around()), "space").seen != stores._room(0).seen


async def test_files_in_quarantine_are_a_warning(patient: Patient) -> None:
    """The newest is named; they stay."""
    patient.store.home.quarantine("x", b"x", "why")
    place = patient.store.home.quarantine("y", b"y", "why")
    found = named(await stores.look(patient.around()), "quarantine")
    assert (found.verdict, found.seen, found.fix) == ("warning", "2 files that could not be understood", None)
    assert str(place) in found.mend


async def test_damaged_and_newer_questions_are_broken_and_stay(patient: Patient) -> None:
    """Each by name; what a newer Hermes wrote is nobody's to touch."""
    root = patient.store.home.root
    damaged, newer, unread = (root / f"pending/{name}.json" for name in ("aaaa2222", "bbbb2222", "cccc2222"))
    damaged.write_bytes(b"")
    newer.write_bytes(b'{"v":99}')
    unread.mkdir()
    found = [one for one in await stores.look(patient.around()) if one.check == "questions"]
    assert [one.verdict for one in found] == ["broken"] * 3
    assert f"{damaged} is damaged: it is empty" in found[0].seen
    assert str(unread) in found[1].seen
    assert str(newer) in found[2].seen
    assert damaged.exists()
