"""Check the store: it is writable, closed to others, has free space, and holds no damaged files."""

import asyncio
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes import disk
from hermes.commands.doctor.finding import Area, Around, Finding, close_to_others
from hermes.config.reading import open_to_others
from hermes.errors import StoreError
from hermes.storage.home import is_usable

AREA = Area("Store")

LITTLE_BYTES: Final = 200_000_000
_PROBE: Final = "doctor"
_ELSEWHERE: Final = "set store.path to a folder of its own"
_MB: Final = 1_000_000


async def look(around: Around) -> tuple[Finding, ...]:
    """Check the folder, unless it does not exist yet or is not Hermes' own: then say so, and look no further."""
    if place := await AREA.guarded("folder", asyncio.to_thread(_place, around)):
        return place
    checks: dict[str, Callable[[Around], list[Finding]]] = {
        "writing": _writing,
        "modes": _modes,
        "space": _space,
        "quarantine": _quarantine,
        "entries": _entries,
        "folder": _folder,
    }
    return await AREA.each(around, checks)


def _place(around: Around) -> list[Finding]:
    """Report a folder that does not exist yet, or that holds other things: nothing in it is for Hermes to change."""
    root = around.config.store.path
    if not root.exists():  # if that cannot be seen, the error is the finding
        if (above := disk.closed_above(root)) is None:
            return [AREA.good("folder", f"{root} is not there yet; the first question makes it")]
        seen = f"{root} cannot be made: {above} is not a folder that you may write to"
        return [AREA.broken("folder", seen, f"free the way to it, or {_ELSEWHERE}")]
    with suppress(OSError):  # the check "writing" says why it cannot be read
        if not is_usable(root):
            return [AREA.broken("folder", f"{root} holds other things, and is left as it is", _ELSEWHERE)]
    return []


def _writing(around: Around) -> list[Finding]:
    """Write a file as a real change does, and remove it at once."""
    root = around.config.store.path
    place = root / f".{_PROBE}.tmp"  # a listener removes files of such a name at its start
    try:
        with disk.saving(root):
            disk.write(place, b"written by `hermes doctor`, and removed at once\n")
            place.unlink()
    except StoreError as error:
        return [AREA.broken("writing", str(error))]
    return [AREA.good("writing", f"{root} can be written")]


def _modes(around: Around) -> list[Finding]:
    root = around.config.store.path
    opened = [path for path in _all(root) if not path.is_symlink() and open_to_others(path)]
    if not opened:
        return [AREA.good("modes", "closed to others")]
    what = str(opened[0]) if len(opened) == 1 else f"{len(opened)} files and folders of it"
    mend = f"chmod -R go= {shlex.quote(str(root))}"
    return [AREA.broken("modes", f"others may read or change {what}", mend, close_to_others(opened))]


def _all(folder: Path) -> Iterator[Path]:
    yield folder
    for path in disk.listing(folder):
        if path.is_dir() and not path.is_symlink():
            yield from _all(path)
        else:
            yield path


def _space(around: Around) -> list[Finding]:
    return [_room(shutil.disk_usage(around.config.store.path).free)]


def _room(free: int) -> Finding:
    seen = f"{free // _MB:,} MB are free"
    if free < disk.NO_BYTES:
        return AREA.broken("space", seen, "free some: nothing can be saved soon")
    return AREA.warning("space", seen, "free some") if free < LITTLE_BYTES else AREA.good("space", seen)


def _quarantine(around: Around) -> list[Finding]:
    files = around.home().quarantined()
    if not files:
        return [AREA.good("quarantine", "empty")]
    seen = (
        f"{len(files)} files that could not be understood" if len(files) > 1 else "a file that could not be understood"
    )
    return [AREA.warning("quarantine", seen, f"look at {files[-1]}; once you have, delete it")]


def _entries(around: Around) -> list[Finding]:
    survey = asyncio.run(around.look(lambda store: store.survey()))
    found = [
        AREA.broken("questions", f"{path} is damaged: {why}", around.hermes("reap")) for path, why in survey.damaged
    ]
    found += [AREA.broken("questions", why) for _, why in survey.unread]
    found += [
        AREA.broken("questions", f"{path} was written by a newer Hermes, and is left alone", "upgrade this one")
        for path in survey.too_new
    ]
    return found or [AREA.good("questions", f"{len(survey.entries) or 'none'} open")]


def _folder(around: Around) -> list[Finding]:
    """Look for questions that the listener does not see, because a database is configured."""
    count = around.home().count_asks() if around.config.store.address else 0
    if not count:
        return []
    what = "an open question is" if count == 1 else f"{count} open questions are"
    seen = f"{what} in {around.config.store.path}, and not in the database: nobody sees them there"
    return [AREA.warning("folder", seen, around.hermes("store", "move", "database"))]
