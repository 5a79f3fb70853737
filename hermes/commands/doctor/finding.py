"""What a check found, what all checks look at, and the guard around each: no check ever raises."""

import asyncio
import logging
import shlex
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hermes.config.reading import Config, config_path
from hermes.errors import HermesError
from hermes.storage.store import Store

log = logging.getLogger(__name__)

Verdict = Literal["good", "warning", "broken"]
Fix = Callable[[], Awaitable[str]]
"""Mends what was found, without loss, and returns what it did: one sentence."""

LIMIT_S = 5.0
OPEN_TO_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one area: what was seen, the command (or the deed) that mends it, and, where that is safe, a fix."""

    area: str
    check: str
    verdict: Verdict
    seen: str
    mend: str = ""
    fix: Fix | None = field(default=None, compare=False)


def free_bytes(folder: Path) -> int:
    """Return how much this user may still write on the disk of a folder."""
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True)
class Around:
    """What the checks look at. `directory` is where the doctor was called, `python` the interpreter that has Hermes.

    `watch_s` is how long another poller of the bot is watched for.
    """

    config: Config
    config_file: Path
    environ: Mapping[str, str]
    directory: Path
    python: str = sys.executable
    now: Callable[[], float] = time.time
    free_bytes: Callable[[Path], int] = free_bytes
    watch_s: float = 4.0

    def store(self) -> Store:
        """Return the store, not opened: nothing is made."""
        return Store(self.config.store.path, now=self.now)

    def hermes(self, *words: str) -> str:
        """Return the command line of this Hermes, with this configuration."""
        return command(*words, place=self.config_file, environ=self.environ)

    async def put(self, install: Callable[..., list[str]], paths: Mapping[str, Path]) -> str:
        """Connect an agent anew, with these paths as `plugin_paths` names them, and return what was done."""
        said = await asyncio.to_thread(
            install,
            environ=self.environ,
            python=self.python,
            config_path=paths["config"],
            store=paths["store"],
            log=paths["log"],
        )
        return " ".join(said)

    def plugin_paths(self) -> dict[str, Path]:
        """Return what a plugin must name so that its questions come to this store, by the names that it has for it."""
        return {
            "store": self.config.store.path.absolute(),
            "log": self.config.log.file.absolute(),
            "config": self.config_file.absolute(),
        }


class Area:
    """Makes the findings of one area, and runs its checks."""

    def __init__(self, name: str) -> None:
        self.name = name

    def good(self, check: str, seen: str) -> Finding:
        """Return what is as it should be."""
        return Finding(self.name, check, "good", seen)

    def warning(self, check: str, seen: str, mend: str = "", fix: Fix | None = None) -> Finding:
        """Return what a person should know of."""
        return Finding(self.name, check, "warning", seen, mend, fix)

    def broken(self, check: str, seen: str, mend: str = "", fix: Fix | None = None) -> Finding:
        """Return what keeps questions or answers from arriving, or lets others read them."""
        return Finding(self.name, check, "broken", seen, mend, fix)

    async def guarded(
        self, check: str, work: Awaitable[Iterable[Finding]], *, limit_s: float = LIMIT_S, late: Verdict = "broken"
    ) -> tuple[Finding, ...]:
        """Return the findings of a check; one that fails, or takes longer than `limit_s` (`late`), is a finding too."""
        try:
            async with asyncio.timeout(limit_s):
                return tuple(await work)
        except TimeoutError:
            return (Finding(self.name, check, late, f"no answer within {limit_s:g} s"),)
        except HermesError as error:
            return (self.broken(check, str(error)),)
        except OSError as error:
            return (self.broken(check, f"{error.filename or check} cannot be used ({error.strerror or error})"),)
        except Exception as error:  # a guard: the other checks still have something to say
            log.exception("the check %r failed", check)
            return (self.broken(check, f"this check itself failed ({type(error).__name__}); that is a defect"),)

    async def each(
        self, around: Around, checks: Mapping[str, Callable[[Around], Iterable[Finding]]]
    ) -> tuple[Finding, ...]:
        """Run the checks at once, each in a thread of its own, and return their findings in order."""
        found = await asyncio.gather(
            *(self.guarded(name, asyncio.to_thread(check, around)) for name, check in checks.items())
        )
        return tuple(finding for findings in found for finding in findings)


def command(*words: str, place: Path, environ: Mapping[str, str]) -> str:
    """Return the command line of this Hermes, with the configuration that is at `place`."""
    usual = place == config_path(None, environ=environ)
    return shlex.join(["hermes", *words, *([] if usual else ["--config", str(place)])])


def open_to_others(path: Path) -> bool:
    """Tell whether somebody besides the owner may read or change what is there; nobody may what cannot be seen."""
    try:
        return bool(path.stat().st_mode & OPEN_TO_OTHERS)
    except OSError:
        return False


def close_to_others(paths: Iterable[Path]) -> Fix:
    """Return the fix that takes all rights of others away from these files and folders."""
    closed = tuple(paths)

    async def close() -> str:
        for path in closed:
            path.chmod(path.stat().st_mode & 0o777 & ~OPEN_TO_OTHERS)
        first = str(closed[0]) if len(closed) == 1 else f"{len(closed)} files and folders"
        return f"Closed to others: {first}."

    return close
