"""Why no listener can start: one sentence in the store, from a listener that a hook started to the hooks that wait.

Each hook that waits takes it as the end of its ask, so it must not outlive its cause: a listener that starts removes
it, and a reason from before the last change of the configuration does not count.
"""

# ruff: noqa: PTH108, PTH116, PTH118, PTH123 (pathlib would cost as much as json does)

from __future__ import annotations

import contextlib
import os
import time

from hermes import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_FILE = "refused"
_MAX_BYTES = 4096


def write(root: str | Path, why: str) -> None:
    """Write, for waiting hooks, why a listener cannot start: one sentence without a secret. Raises OSError."""
    disk.make_folder(str(root))
    disk.write(os.path.join(root, _FILE), why.encode("utf-8", "backslashreplace")[:_MAX_BYTES])


def read(root: str | Path, config: str = "", *, within_s: float | None = None) -> str:
    """Return why the last listener could not start, or "" if `write` wrote nothing in the last `within_s` seconds.

    A reason from before the last change of the configuration file `config` does not count: the change may have mended
    it. Without `within_s` the age does not count. After a jump of the clock a young reason may look old, which costs
    one more try to start a listener.
    """
    try:
        with open(os.path.join(root, _FILE), "rb") as file:
            said_ns = os.fstat(file.fileno()).st_mtime_ns
            why = file.read(_MAX_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    is_old = within_s is not None and abs(time.time_ns() - said_ns) >= within_s * 1e9
    return "" if is_old or _was_changed(config, said_ns) else why or "it did not say why"


def _was_changed(path: str, since_ns: int) -> bool:
    """Return whether a file was written, or moved to this place, after that time; False if there is none."""
    try:
        return os.stat(path).st_ctime_ns > since_ns
    except OSError:
        return False


def remove(root: str | Path) -> None:
    """Remove the reason that `write` wrote, because a listener has started or is being started again."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(root, _FILE))
