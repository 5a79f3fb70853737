"""The listener's end of the spool: the waiting room and the inbox, as the steps see them."""

from __future__ import annotations

import asyncio
import errno
import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes.errors import NotSaved, PayloadError, StoreError, Stuck, TooNew
from hermes.hook import spool
from hermes.model.signals import Announced, Asked

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping

    from hermes.agents.registry import Adapter
    from hermes.model.ask import Ask
    from hermes.model.signals import Signal
    from hermes.storage.store import Store

log = logging.getLogger(__name__)

VERSION: Final = 1
STRAY_S: Final = 30.0
"""A hook takes its place before it drops its record: one that is new here may still do so."""
STRAYS_A_LOOK: Final = 50


class Room:
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
        _lay_ready(self.root, wait_id(ask), text)

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
    """Hooks that wait for nothing: what they asked was damaged on disk, or found no room there for its end."""

    def __init__(self, root: Path, *, monotonic: Callable[[], float]) -> None:
        self._root = root
        self._monotonic = monotonic
        self._since_s: dict[str, float] = {}
        self._sent: set[str] = set()

    def send_away(self, names: set[str]) -> None:
        """Let those go, once, that have waited for nothing all the while; one that its plugin starts anew asks anew.

        Where an answer lies ready it stays: who waits may be stopped, and takes it later. Raises NotSaved.
        """
        now_s = self._monotonic()
        unread = bool(names) and bool(spool.listing(self._root))
        self._sent &= names
        strays = {name for name in names - self._sent if not _answer(self._root, name).exists()}
        self._since_s = {name: now_s if unread else self._since_s.get(name, now_s) for name in strays}
        due = [name for name, since_s in self._since_s.items() if now_s - since_s > STRAY_S]
        for name in due[:STRAYS_A_LOOK]:
            log.warning("a hook waits for an ask that is not known here (%s): it is sent away", name)
            self._sent.add(name)
            with suppress(Stuck):
                _lay_ready(self._root, name, "")


def _answer(root: Path, name: str) -> Path:
    return root / "wait" / f"{name}.answer"


def _lay_ready(root: Path, name: str, text: str) -> None:
    try:
        spool.put_answer(root, name, text)
    except OSError as error:
        message = f"the answer could not be laid ready in {root / 'wait'}: {error.strerror}"
        if error.errno in {errno.EISDIR, errno.ENOTEMPTY}:
            raise Stuck(f"{message}; remove {name}.answer") from error
        raise NotSaved(message, disk_full=error.errno in {errno.ENOSPC, errno.EDQUOT}) from error


def wait_id(ask: Ask) -> str:
    """Return the name under which hooks wait for this ask."""
    source = ask.source
    return spool.wait_id(source.agent, source.machine, source.request_id or "")


class Inbox:
    """What hooks dropped, in the order in which they did.

    `took(signal, waits)` is called for what an agent tells, `word(type, wait_id)` for what hooks say of themselves
    ("receipt", "waiter.gone").
    """

    def __init__(
        self,
        root: Path,
        store: Store,
        adapters: Mapping[str, Adapter],
        *,
        took: Callable[[Signal], None],
        word: Callable[[str, str], None],
    ) -> None:
        self._root = root
        self._store = store
        self._adapters = adapters
        self._took = took
        self._word = word
        self._left: dict[str, str] = {}

    def drain(self) -> None:
        """Take everything in; a file goes when its effect is on disk. Raises NotSaved: the rest stays."""
        for _ in self.files():
            pass

    def files(self) -> Iterator[None]:
        """Take everything in, as `drain` does, one file at each step: a caller may do other work between two.

        A file that cannot be taken in, or not be removed, stays and holds up no other; the log says it once.
        """
        paths = spool.listing(self._root)
        there = {path.name for path in paths}
        self._left = {name: why for name, why in self._left.items() if name in there}
        for path in paths:
            yield
            try:
                self._take_file(path)
            except FileNotFoundError:
                continue
            except NotSaved:
                raise
            except (OSError, StoreError) as error:
                if self._left.get(path.name) != str(error):
                    self._left[path.name] = str(error)
                    log.error("inbox: %s could not be taken in, and stays: %s", path.name, error)  # noqa: TRY400

    def _take_file(self, path: Path) -> None:
        record: Mapping[str, object] = {}
        try:
            record = spool.read(path)
            self._take(record)
        except (PayloadError, ValueError, RecursionError) as error:
            self._set_aside(path, record, str(error))
        path.unlink(missing_ok=True)

    def _set_aside(self, path: Path, record: Mapping[str, object], why: str) -> None:
        """Put a damaged record into quarantine. Raises NotSaved: the disk is full; Stuck: this file stays."""
        try:
            self._refuse(record, why)
            self._store.quarantine(path.name, path.read_bytes(), why)
        except NotSaved as error:
            if error.disk_full:
                raise
            raise Stuck(f"it is damaged ({why}), and cannot be put into quarantine: {error}") from error

    def _refuse(self, record: Mapping[str, object], why: str) -> None:
        """Tell the program that asked, or send its hook away: it waits for what nobody sees. Raises NotSaved."""
        agent, machine, payload = record.get("agent"), record.get("machine"), record.get("payload")
        request_id = payload.get("id") if isinstance(payload, dict) else None
        if isinstance(agent, str) and isinstance(machine, str) and isinstance(request_id, str):
            adapter = self._adapters.get(agent)
            last_word = None if adapter is None else adapter.refusal(why) or adapter.goodbye
            name = spool.wait_id(agent, machine, request_id)
            if last_word is not None and spool.waiters(self._root, name):
                _lay_ready(self._root, name, last_word)

    def _take(self, record: Mapping[str, object]) -> None:
        version = record.get("v")
        if isinstance(version, int) and version > VERSION:
            raise TooNew(f"its version is {version}, this Hermes reads {VERSION}; start the listener anew")
        if version != VERSION:
            raise PayloadError(f"it does not say its version, or another one; this Hermes reads {VERSION}")
        payload, agent, machine = record.get("payload"), record.get("agent"), record.get("machine")
        if isinstance(payload, dict) and isinstance(payload.get("waitID"), str):
            kind = payload.get("type")
            if not isinstance(kind, str):
                raise PayloadError("a hook's word about itself has no type")
            self._word(kind, payload["waitID"])
            return
        if not isinstance(agent, str) or agent not in self._adapters or not isinstance(machine, str):
            raise PayloadError("it names no agent and machine that this Hermes knows")
        host = record.get("host")
        # A record of an older Hermes has the host's name for its machine.
        self._took(_with_host(self._adapters[agent].read(payload, machine=machine), str(host or machine)))


def _with_host(signal: Signal, host: str) -> Signal:
    """Return what an agent told with the name of the machine for people."""
    if isinstance(signal, Asked | Announced):
        ask = signal.ask
        return replace(signal, ask=replace(ask, source=replace(ask.source, host=host)))
    return signal
