"""The folders of a store, and the files that may lie beside them."""

import os
from pathlib import Path
from typing import Final

from hermes import disk
from hermes.errors import StoreError
from hermes.hook import spool

NAMES: Final = ("pending", "done", "quarantine", "locks")
RECORDS: Final = ("notices", "prompts", "cards")
_OF_HOOKS: Final = ("inbox", "wait")
_MARKS = {"pending", "store.lock"}  # not "inbox": a hook makes it in any folder that the configuration names
_FILES = {"telegram.json", "locked", "machine", "refused", "servers.json", spool.TAKES_PROMPTS}
_KNOWN = _MARKS | _FILES | {*NAMES, *RECORDS, *_OF_HOOKS, "run", "log", "plugins", "files"}


def are_whole(root: Path) -> bool:
    """Tell whether none of the folders was removed."""
    return all(os.path.lexists(root / name) for name in NAMES)


def is_usable(root: Path) -> bool:
    """Tell whether this folder is a store, or can become one: it holds no other things. Raises OSError."""
    found = {path.name for path in disk.listing(root)}
    return bool(found & _MARKS) or found <= _KNOWN


def check(root: Path) -> None:
    """Check, without a change, that the folder holds no other things.

    Raises:
        StoreError: it holds other things.
        NotSaved: it cannot be read.
    """
    with disk.saving(root):
        if not is_usable(root):
            raise StoreError(f"{root} holds other things; set store.path to a folder of its own")


def make(root: Path) -> None:
    """Make or check the folders.

    Raises:
        StoreError: the folder belongs to another user, or holds other things.
        NotSaved: the folder cannot be made.
    """
    check(root)
    with disk.saving(root):
        disk.own_folder(root)
        spool.machine(root)  # first, because these folders mark a store that is in use
        for name in NAMES:
            disk.own_folder(root / name)


def check_hook_folders(root: Path) -> None:
    """Check the folders that hooks make. Without them no question comes, and no answer goes. Raises as `make`."""
    for name in _OF_HOOKS:
        if os.path.lexists(root / name):
            with disk.saving(root / name):
                disk.own_folder(root / name)


def let_prompts(root: Path, *, on: bool) -> None:
    """Write or remove the file that tells plugins and hooks that prompts from the phone are on. Raises NotSaved."""
    with disk.saving(root):
        mark = root / spool.TAKES_PROMPTS
        if not on:
            mark.unlink(missing_ok=True)
        elif not spool.takes_prompts(root):
            disk.write(mark, b"prompts from the phone are on\n")
