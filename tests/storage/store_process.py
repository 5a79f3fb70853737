"""A process that writes to a store, to be started several times at once, and killed.

python -m tests.storage.store_process count ROOT ID N     adds 1 to `epoch` N times
python -m tests.storage.store_process nursery ROOT ID     a line on stdin starts a writer that goes on and on
python -m tests.storage.store_process hold ROOT NAME      holds a lock until a kill
python -m tests.storage.store_process audit ROOT ID       counts what one change opens and lists
python -m tests.storage.store_process folders ROOT ID     changes and settles an entry where no folder can be synced
"""

import errno
import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes.model.answer import Answer
from hermes.model.ask import Ask, Capabilities, Option, Question, Source
from hermes.model.entry import Entry, Phone
from hermes.model.state import State
from hermes.storage.files import FileStore
from tests.at_once import at_once
from tests.stores import a_store


def an_entry(entry_id: str = "aaaa2222", *, asked_s: float = 1000.0, code: str = "k7") -> Entry:
    """Return a small open entry."""
    source = Source("opencode", "desk", "ses_1", directory="/home/ann/shop", request_id="que_1")
    question = Question("Which colour?", "Colour", (Option("Red", "warm"), Option("Blue")))
    ask = Ask(source, (question,), Capabilities("OpenCode"))
    return Entry(entry_id, code, ask, State(answers=(Answer(),)), Phone(chat_id=7), asked_s)


def one_more(entry: Entry) -> Entry:
    """Return the entry with a number that is one higher; it stands in `epoch`, and begins at 0."""
    return replace(entry, state=replace(entry.state, epoch=entry.state.epoch + 1))


def count(root: str, entry_id: str, times: str) -> None:
    """Add to `epoch`, one durable change at a time."""
    store = a_store(Path(root))
    for _ in range(int(times)):
        at_once(store.change(entry_id, one_more))


def nursery(root: str, entry_id: str) -> None:
    """Start a writer for each line; a fork of this process is there at once, and has no threads to lose."""
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            _write_for_ever(a_store(Path(root)), entry_id)
        os.waitpid(child, 0)
        _say("gone")


def _write_for_ever(store: FileStore, entry_id: str) -> None:
    _say(os.getpid())
    while True:
        _say(at_once(store.change(entry_id, one_more)).state.epoch)
        other = at_once(store.create(an_entry(at_once(store.new_id()))))
        at_once(store.settle(other.id))


def hold(root: str) -> None:
    """Hold the lock of the listener for as long as this process lives."""
    with a_store(Path(root)).home.hold("hermes test"):
        _say("held")
        sys.stdin.read()


def audit(root: str, entry_id: str) -> None:
    """Print how often one change opens a file and lists a folder."""
    store = a_store(Path(root))
    at_once(store.change(entry_id, one_more))
    seen: Counter[str] = Counter()
    sys.addaudithook(lambda event, _: seen.update([event]))
    at_once(store.change(entry_id, one_more))
    events = dict(seen)
    _say(json.dumps({name: events.get(name, 0) for name in ("open", "os.listdir", "os.scandir")}))


def folders(root: str, entry_id: str) -> None:
    """Change and settle the entry; a folder that is brought to the disk reports an error."""
    bring = os.fsync

    def refuse(fd: Any) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        bring(fd)

    os.fsync = refuse
    store = a_store(Path(root))
    at_once(store.change(entry_id, one_more))
    at_once(store.settle(entry_id))


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


_MODES: dict[str, Callable[..., None]] = {
    "count": count,
    "nursery": nursery,
    "hold": hold,
    "audit": audit,
    "folders": folders,
}

if __name__ == "__main__":
    _MODES[sys.argv[1]](*sys.argv[2:])
