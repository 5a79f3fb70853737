"""The folder of the files that wait to be sent. What every store promises of such files is in `test_stores`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hermes import disk
from hermes.errors import Missing, NoRoom, NotSaved, StoreError
from hermes.storage.prompt_files import FOLDER, PromptFolder


def names(root: Path) -> list[str]:
    """The names of the files that are kept."""
    return [path.name for path in disk.listing(root / FOLDER)]


async def test_a_file_is_private_and_has_a_name_of_ours(tmp_path: Path) -> None:
    """Nobody else can read it."""
    await PromptFolder(tmp_path).write("prompt_a", 7, b"one")
    assert names(tmp_path) == ["prompt_a.7"]
    assert stat.S_IMODE((tmp_path / FOLDER).stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / FOLDER / "prompt_a.7").stat().st_mode) == 0o600


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Whoever has put it there."""
    files = PromptFolder(tmp_path)
    await files.write("prompt_b", 7, b"x")
    (tmp_path / FOLDER / "prompt_a.7").symlink_to("/etc/passwd")
    with pytest.raises(StoreError, match="cannot be read"):
        await files.read("prompt_a", 7)


async def test_a_file_that_is_being_written_is_of_no_prompt(tmp_path: Path) -> None:
    """It is not tidied away."""
    files = PromptFolder(tmp_path)
    await files.write("prompt_a", 7, b"x")
    (tmp_path / FOLDER / ".prompt_b.3.17.tmp").write_bytes(b"half")
    assert await files.prompt_ids() == {"prompt_a"}


async def test_a_voice_note_is_there_while_a_program_hears_it(tmp_path: Path) -> None:
    """Then it is gone, and the other files of its prompt stay; one that was left over is removed at the next start."""
    folder = PromptFolder(tmp_path, most_bytes=20)
    folder.remove_sounds()
    assert names(tmp_path) == []
    await folder.write("prompt_a", 7, b"a picture")
    async with folder.sound("prompt_a", 8, b"a sound") as path:
        assert path.read_bytes() == b"a sound"
        assert names(tmp_path) == ["prompt_a.7", "prompt_a.8.ogg"]
    assert names(tmp_path) == ["prompt_a.7"]
    with pytest.raises(NoRoom):
        async with folder.sound("prompt_a", 8, bytes(12)):
            pass
    (tmp_path / FOLDER / "prompt_a.8.ogg").write_bytes(b"left")
    (tmp_path / FOLDER / ".prompt_a.8.ogg.17.tmp").write_bytes(b"half")
    folder.remove_sounds()
    assert names(tmp_path) == ["prompt_a.7"]


async def test_a_file_that_cannot_be_read_is_not_missing(tmp_path: Path) -> None:
    """A disk may be well again later; who believes that the file is gone forgets it."""
    (tmp_path / FOLDER / "prompt_a.7").mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot be read") as said:
        await PromptFolder(tmp_path).read("prompt_a", 7)
    assert not isinstance(said.value, Missing)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_cannot_be_written_is_not_saved(tmp_path: Path) -> None:
    """With a sentence."""
    tmp_path.chmod(0o500)
    with pytest.raises(NotSaved):
        await PromptFolder(tmp_path).write("prompt_a", 7, b"x")
    tmp_path.chmod(0o700)
