"""The folders of a store, and the files that may lie beside them."""

import os
from pathlib import Path
from typing import Final

from hermes import disk
from hermes.errors import StoreError
from hermes.hook import spool

NAMES: Final = ("pending", "done", "quarantine", "locks")
RECORDS: Final = ("notices", "prompts", "cards")
_MARKS = {"pending", "inbox", "store.lock"}
_FILES = {"telegram.json", "locked", "machine", "refused", "servers.json", spool.TAKES_PROMPTS}
_KNOWN = _MARKS | _FILES | {*NAMES, *RECORDS, "wait", "run", "log", "plugins", "files"}


def are_whole(root: Path) -> bool:
    """Tell whether none of the folders was removed."""
    return all(os.path.lexists(root / name) for name in NAMES)


def make(root: Path) -> None:
    """Make or check the folders.

    Raises:
        StoreError: the folder belongs to another user, or holds other things.
        NotSaved: the folder cannot be made.
    """
    with disk.saving(root):
        found = {path.name for path in disk.listing(root)}
        if not (found & _MARKS or found <= _KNOWN):
            raise StoreError(f"{root} holds other things; set store.path to a folder of its own")
        disk.own_folder(root)
        spool.machine(root)  # first, because these folders mark a store that is in use
        for name in NAMES:
            disk.own_folder(root / name)


def let_prompts(root: Path, *, on: bool) -> None:
    """Write or remove the file that tells plugins and hooks that prompts from the phone are on. Raises NotSaved."""
    with disk.saving(root):
        mark = root / spool.TAKES_PROMPTS
        if not on:
            mark.unlink(missing_ok=True)
        elif not spool.takes_prompts(root):
            disk.write(mark, b"prompts from the phone are on\n")
