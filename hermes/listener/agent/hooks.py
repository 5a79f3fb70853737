"""The listener's side of the waiting hooks: who waits, what lies ready for them, and the socket that they ring."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes.agents.registry import Adapter
from hermes.errors import NotSaved, Stuck
from hermes.hook import spool
from hermes.model.ask import Ask

if TYPE_CHECKING:
    from hermes.listener.entries import Entries  # `hermes ask` has hooks and no entries

log = logging.getLogger(__name__)

STRAY_S: Final = 30.0
"""A hook takes its place before it drops its record: one that is new here may still do so."""
STRAYS_A_LOOK: Final = 50


class WaitingHooks:
    """Where hooks wait for the text that they print."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def waiting(self, ask: Ask) -> bool:
        """Tell whether a live hook waits for this ask."""
        return bool(spool.waiters(self.root, wait_id(ask)))

    def all_waiting(self) -> set[str]:
        """Return the names (`wait_id`) of all asks that a live hook waits for."""
        return spool.waited_for(self.root)

    def put(self, ask: Ask, text: str) -> None:
        """Lay the text ready and wake the hooks that wait. Raises NotSaved; Stuck: a folder stands in its place."""
        lay_ready(self.root, wait_id(ask), text)

    def is_ready(self, ask: Ask) -> bool:
        """Tell whether a text lies ready that nobody took yet."""
        return _answer(self.root, wait_id(ask)).exists()

    def withdraw(self, ask: Ask) -> None:
        """Take back a text that nobody took, and that nobody may take any more."""
        try:
            spool.take_answer(self.root, wait_id(ask))
        except OSError as error:
            log.warning("an answer that is no longer wanted could not be removed: %s", error)


class Bell:
    """The listener's socket: a hook rings it, and the listener looks into the inbox.

    `look` binds it again if its file is gone (a cleaner, a logout) or is another's. Without a socket, since no folder
    can hold one, the listener looks by itself now and then; that is said once.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._socket: socket.socket | None = None
        self._place: tuple[str, int, int] | None = None
        self._trouble = ""
        self.look()

    def look(self) -> None:
        """Bind the socket, if it is not bound or its file is no longer there."""
        if self._is_there():
            return
        self._drop()
        try:
            self._socket = spool.listen_socket(self._root)
            path = self._socket.getsockname()
            self._place = (path, *_inode(path))
        except OSError as error:
            self._drop()
            if str(error) != self._trouble:
                self._trouble = str(error)
                log.warning("no hook can ring: %s; the inbox is looked into every few seconds", error)
        else:
            self._trouble = ""

    async def rings(self, longest_s: float) -> None:
        """Return when a hook has rung, or after `longest_s` seconds."""
        if self._socket is None:
            await asyncio.sleep(longest_s)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await asyncio.get_running_loop().sock_recv(self._socket, 64)

    def close(self) -> None:
        """Close the socket, and take its name away if it is still ours: a hook starts a listener from now on."""
        if self._place is not None and self._is_there():
            with suppress(OSError):
                Path(self._place[0]).unlink()
        self._drop()

    def _is_there(self) -> bool:
        with suppress(OSError):
            path = spool.socket_path(self._root)
            return self._place == (path, *_inode(path))
        return False

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._place = None


def _inode(path: str) -> tuple[int, int]:
    found = Path(path).lstat()
    return found.st_dev, found.st_ino


class Strays:
    """Releases hooks that wait for no known ask: its record was damaged, or its end could not be laid ready."""

    def __init__(
        self, entries: Entries, hooks: WaitingHooks, adapters: Mapping[str, Adapter], *, monotonic: Callable[[], float]
    ) -> None:
        self._entries = entries
        self._hooks = hooks
        self._adapters = adapters
        self._monotonic = monotonic
        self._since_s: dict[str, float] = {}
        self._released: set[str] = set()

    async def release(self) -> None:
        """Release, at most once, each hook that has waited 30 s for an unknown ask. Raises StoreError.

        Its plugin may start it again, and it asks again then. If an answer lies ready it stays: the hook may be
        stopped, and take it later. A plugin that ends its hooks itself may keep those of closed asks.
        """
        store = self._entries.store
        # An unread file may be the ask that a hook waits for; so may one in the folder of a machine with a database.
        if store.has_unread or (store.is_shared and store.home.count_asks()):
            return
        names = self._hooks.all_waiting() - {wait_id(entry.ask) for entry in self._entries.ours()}
        if names:
            keeping = {agent for agent, adapter in self._adapters.items() if adapter.goodbye is None}
            names -= {name for name in names if await store.done_by(name) in keeping}
        now_s, root = self._monotonic(), self._hooks.root
        is_unread = bool(names) and bool(spool.listing(root))
        self._released &= names
        strays = {name for name in names - self._released if not _answer(root, name).exists()}
        self._since_s = {name: now_s if is_unread else self._since_s.get(name, now_s) for name in strays}
        due = [name for name, since_s in self._since_s.items() if now_s - since_s > STRAY_S]
        for name in due[:STRAYS_A_LOOK]:
            log.warning("a hook waits for an ask that is not known here (%s): it is released", name)
            self._released.add(name)
            with suppress(Stuck):
                lay_ready(root, name, "")


def _answer(root: Path, name: str) -> Path:
    return root / "wait" / f"{name}.answer"


def lay_ready(root: Path, name: str, text: str) -> None:
    """Lay a text ready under this name. Raises NotSaved; Stuck: a folder stands in its place."""
    try:
        spool.put_answer(root, name, text)
    except OSError as error:
        message = f"the answer could not be written to {root / 'wait'}: {error.strerror}"
        if error.errno in {errno.EISDIR, errno.ENOTEMPTY}:
            raise Stuck(f"{message}; remove {name}.answer") from error
        raise NotSaved(message, disk_full=error.errno in {errno.ENOSPC, errno.EDQUOT}) from error


def wait_id(ask: Ask) -> str:
    """Return the name under which hooks wait for this ask."""
    source = ask.source
    return spool.wait_id(source.agent, source.machine, source.request_id or "")
