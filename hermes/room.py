"""The listener's end of the spool: the waiting room and the inbox, as the steps see them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from hermes import spool
from hermes.errors import NotSaved, PayloadError, StoreError, TooNew

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from hermes.agents import Adapter
    from hermes.model import Ask, Signal
    from hermes.store import Store

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
        """Lay the text ready and wake who waits. Raises NotSaved."""
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
        strays = {name for name in names - self._sent if not _answer(self._root, name).exists()}
        self._since_s = {name: now_s if unread else self._since_s.get(name, now_s) for name in strays}
        due = [name for name, since_s in self._since_s.items() if now_s - since_s > STRAY_S]
        for name in due[:STRAYS_A_LOOK]:
            log.warning("a hook waits for what is not known here (%s): it is sent away", name)
            _lay_ready(self._root, name, "")
            self._sent.add(name)


def _answer(root: Path, name: str) -> Path:
    return root / "wait" / f"{name}.answer"


def _lay_ready(root: Path, name: str, text: str) -> None:
    try:
        spool.put_answer(root, name, text)
    except OSError as error:
        raise NotSaved(f"the answer could not be laid ready in {root / 'wait'}: {error}") from error


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
        self._too_new: set[str] = set()

    def drain(self) -> None:
        """Take everything in; a file goes when its effect is on disk. Raises NotSaved: the rest stays."""
        for path in spool.listing(self._root):
            record: Mapping[str, object] = {}
            try:
                record = spool.read(path)
                self._take(record)
            except NotSaved:
                raise
            except TooNew as error:
                if path.name not in self._too_new:
                    self._too_new.add(path.name)
                    log.error("inbox: %s is left alone: %s", path.name, error)  # noqa: TRY400 (no defect)
                continue
            except (PayloadError, ValueError) as error:
                log.warning("inbox: %s was put into quarantine: %s", path.name, error)
                self._refuse(record, str(error))
                self._store.quarantine(path.name, path.read_bytes(), str(error))
            except FileNotFoundError:
                continue
            except (OSError, StoreError):
                # One file must not keep those behind it from being taken in.
                log.exception("inbox: %s could not be taken in, and stays", path.name)
                continue
            path.unlink(missing_ok=True)

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
        self._took(self._adapters[agent].read(payload, machine=machine))
