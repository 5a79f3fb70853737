"""The files with which a prompt from the phone comes to the hook that waits for it in its session.

    ROOT/wait/NAME.prompts.lock   the hook that waits in this session, alive as long as its flock is held; says for
                                  which session, and since when
    ROOT/wait/NAME.prompt         the prompt that lies ready; taken by rename
    ROOT/wait/NAME.ended          the session has ended, in the process that the file names, and no hook waits in it;
                                  removed if it begins again
    ROOT/wait/NAME.taken          the prompt from then on until the hook's receipt is in the inbox
    RUNTIME/KEY.NAME.prompts.sock the datagram socket of that hook

NAME is the `wait_id` of the session. At most one hook waits in a session, so one prompt is taken once.
"""

# pathlib would cost the hook as much time as json does:
# ruff: noqa: PTH104, PTH108, PTH110, PTH118, PTH123

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time

from hermes import disk
from hermes.hook import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as _Socket  # noqa: N812 (the name is a class)
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

GONE_WITHIN_S = 1.0  # Claude Code gives the hooks of SessionEnd 1.5 s
_LOCK = ".prompts.lock"
_PROBES = 20
_PROBE_S = 0.01


def name_of(agent: str, machine: str, session_id: str) -> str:
    """Return the name under which a hook waits for prompts to this session."""
    return spool.wait_id(agent, machine, f"prompts-{session_id}")


# --- the hook that waits ----------------------------------------------------------------------------------------------


def take_place(root: str | Path, name: str, session: Mapping[str, str]) -> int | None:
    """Become the hook that waits in this session; return the descriptor of the lock, None if another hook waits.

    The lock file says `session`. Raises OSError.
    """
    disk.make_folder(os.path.join(root, "wait"))
    path = _path(root, name + _LOCK)
    for _ in range(_PROBES):
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if _is_locked(held) and spool.is_same_file(held, path):
            os.ftruncate(held, 0)
            os.pwrite(held, json.dumps(dict(session)).encode(), 0)
            return held
        os.close(held)
        # A process that looks whether the lock is held has it for a moment.
        if is_waiting(root, name):
            return None
        time.sleep(_PROBE_S)
    return None


def _is_locked(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def has_place(root: str | Path, name: str, held: int) -> bool:
    """Return whether the lock file of `take_place` is still there."""
    return spool.is_same_file(held, _path(root, name + _LOCK))


def leave_place(root: str | Path, name: str, held: int) -> None:
    """Wait no longer."""
    with contextlib.suppress(OSError):
        os.unlink(_path(root, name + _LOCK))
    os.close(held)


def bell(root: str | Path, name: str) -> _Socket:
    """Return the socket that wakes this hook. Raises OSError."""
    return spool.named_socket(root, f"{name}.prompts")


def take(root: str | Path, name: str) -> str | None:
    """Take the prompt that lies ready, None if nothing lies there. Raises OSError.

    From now on `is_being_taken`, until `confirm_taken` or `put_back`.
    """
    taken = _path(root, f"{name}.taken")
    try:
        os.rename(_path(root, f"{name}.prompt"), taken)
    except FileNotFoundError:
        return None
    with open(taken, "rb") as file:
        return file.read().decode("utf-8", "replace")


def confirm_taken(root: str | Path, name: str) -> None:
    """Say that the receipt is in the inbox, or that nothing was taken. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_path(root, f"{name}.taken"))


def put_back(root: str | Path, name: str) -> None:
    """Lay a prompt ready again whose receipt could not be written. Raises OSError."""
    os.rename(_path(root, f"{name}.taken"), _path(root, f"{name}.prompt"))


def read(text: str) -> dict[str, Any] | None:
    """Return the prompt in a text that lies, or lay, ready; None if another program damaged it."""
    with contextlib.suppress(ValueError):
        given = json.loads(text)
        if isinstance(given, dict) and isinstance(given.get("until"), int | float):
            return given | {"id": str(given.get("id", "")), "text": str(given.get("text", ""))}
    return None


# --- all others -------------------------------------------------------------------------------------------------------


def is_waiting(root: str | Path, name: str) -> bool:
    """Return whether a hook waits in this session."""
    return spool.is_held(_path(root, name + _LOCK))


def session_of(root: str | Path, name: str) -> dict[str, str]:
    """Return what the hook that waits there says about its session; {} if none waits."""
    return _said(_path(root, name + _LOCK)) if is_waiting(root, name) else {}


def waiting(root: str | Path) -> dict[str, dict[str, str]]:
    """Return the name and the session of each hook that waits."""
    names = [file.removesuffix(_LOCK) for file in spool.names_in(_path(root, "")) if file.endswith(_LOCK)]
    return {name: _said(_path(root, name + _LOCK)) for name in names if is_waiting(root, name)}


def _said(path: str) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError):
        with open(path, "rb") as file:
            said = json.loads(file.read(65536))
        if isinstance(said, dict):
            return {key: value for key, value in said.items() if isinstance(value, str)}
    return {}


def lay(root: str | Path, name: str, text: str) -> None:
    """Lay this ready instead of the text that lies there, and wake the hook. Raises OSError."""
    disk.make_folder(os.path.join(root, "wait"))
    disk.write(_path(root, f"{name}.prompt"), text.encode("utf-8", "surrogatepass"))
    spool.poke(root, spool.socket_name(root, f"{name}.prompts"))


def lying(root: str | Path, name: str) -> str | None:
    """Return the text that lies ready, or None. Raises OSError."""
    try:
        with open(_path(root, f"{name}.prompt"), "rb") as file:
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def take_back(root: str | Path, name: str) -> bool:
    """Remove what lies ready; return False if nothing lay there, or a hook was first. Raises OSError."""
    try:
        os.unlink(_path(root, f"{name}.prompt"))
    except FileNotFoundError:
        return False
    return True


def is_being_taken(root: str | Path, name: str) -> bool:
    """Return whether a live hook has taken a prompt, and may not have written its receipt yet."""
    return os.path.exists(_path(root, f"{name}.taken")) and is_waiting(root, name)


def end_session(root: str | Path, name: str, process_id: int) -> None:
    """Return when no hook waits in this session any more, or after `GONE_WITHIN_S`. Raises OSError.

    The session after it, in the same process (`process_id`), must not get a prompt of this one.
    """
    disk.make_folder(os.path.join(root, "wait"))
    # Before the look at the hook: one that starts now finds it.
    disk.write(_path(root, f"{name}.ended"), str(process_id).encode())
    until_s = time.monotonic() + GONE_WITHIN_S
    while is_waiting(root, name) and time.monotonic() < until_s:
        spool.poke(root, spool.socket_name(root, f"{name}.prompts"))
        time.sleep(_PROBE_S)
    take_back(root, name)


def has_ended(root: str | Path, name: str) -> bool:
    """Return whether the session has ended, and has not begun again."""
    return os.path.lexists(_path(root, f"{name}.ended"))


def has_ended_in(root: str | Path, name: str, process_id: int) -> bool:
    """Return whether the session has ended in this process; it may be open in another one."""
    with contextlib.suppress(OSError), open(_path(root, f"{name}.ended"), "rb") as file:
        return file.read(32) == str(process_id).encode()
    return False


def begin_session(root: str | Path, name: str) -> None:
    """Let a hook wait in this session again. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_path(root, f"{name}.ended"))


def _path(root: str | Path, file: str) -> str:
    return os.path.join(root, "wait", file)
