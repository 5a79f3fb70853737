"""What a test does to a folder that programs are at work in."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def remove(folder: Path) -> None:
    """Remove a folder at once: file by file, a program would make its part of it again in the meantime."""
    shutil.rmtree(folder.rename(folder.with_name(f"{folder.name}-removed")))
