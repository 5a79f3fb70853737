"""The result of a check, the input of all checks, and the guard around each check, so that no check raises."""

import asyncio
import logging
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from hermes.commands.stores import home_of, look, store_of
from hermes.config.reading import OPEN_TO_OTHERS, config_path
from hermes.config.settings import Config
from hermes.errors import HermesError, StoreError
from hermes.storage.home import Home
from hermes.storage.store import Store

log = logging.getLogger(__name__)

Verdict = Literal["good", "warning", "broken"]
Fix = Callable[[], Awaitable[str]]
"""Repairs the finding, without loss of data, and returns one sentence about what it did."""

LIMIT_S = 5.0


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check. `mend` is the command or step that repairs it; `fix` repairs it, if that is safe."""

    area: str
    check: str
    verdict: Verdict
    seen: str
    mend: str = ""
    fix: Fix | None = field(default=None, compare=False)


class NotLooked(StoreError):
    """The database cannot be used, so the store is not read."""


@dataclass(frozen=True, slots=True)
class Around:
    """The input of the checks.

    - `watch_s`: how long the Telegram check watches for another poller of the bot.
    - `is_store_away`: the database cannot be used, as the part Database reports; no other check reads the store then.
    """

    config: Config
    config_file: Path
    environ: Mapping[str, str]
    now: Callable[[], float] = time.time
    watch_s: float = 4.0
    is_store_away: bool = False

    def home(self) -> Home:
        """Return the folder of this machine; no file or folder is made."""
        return home_of(self.config, now=self.now)

    async def look(self, what: Callable[[Store], Awaitable[T]]) -> T:
        """Return the result of `what`, for a store that is not opened, so that no file or folder is made.

        Raises NotLooked, StoreError, and as `what`.
        """
        if self.is_store_away:
            raise NotLooked
        return await look(store_of(self.config, now=self.now), what)

    def hermes(self, *words: str) -> str:
        """Return a command line of Hermes with this configuration; `words` follow `hermes`."""
        return command(*words, place=self.config_file, environ=self.environ)

    async def put(self, install: Callable[..., list[str]], paths: Mapping[str, Path]) -> str:
        """Call `install` again with these paths (keys as of `plugin_paths`), and return what it did."""
        said = await asyncio.to_thread(
            install,
            environ=self.environ,
            python=sys.executable,
            config_path=paths["config"],
            store=paths["store"],
            log=paths["log"],
        )
        return " ".join(said)

    def plugin_paths(self) -> dict[str, Path]:
        """Return the paths that a plugin must name, by the keys of its settings, to send its questions here."""
        return {
            "store": self.config.store.path.absolute(),
            "log": self.config.log.file.absolute(),
            "config": self.config_file.absolute(),
        }

    def paths_of(self, named: Mapping[str, object]) -> dict[str, Path]:
        """Return the paths that a plugin names, by the same keys, and ours for those that it does not name."""
        ours = self.plugin_paths()
        said = {name: named.get(name) for name in ours}
        return ours | {name: Path(path) for name, path in said.items() if isinstance(path, str) and path}


class Area:
    """An area by name: makes its findings, and runs its checks."""

    def __init__(self, name: str) -> None:
        self.name = name

    def good(self, check: str, seen: str) -> Finding:
        """Return a finding about something that is as it should be."""
        return Finding(self.name, check, "good", seen)

    def warning(self, check: str, seen: str, mend: str = "", fix: Fix | None = None) -> Finding:
        """Return a finding that a person should know about."""
        return Finding(self.name, check, "warning", seen, mend, fix)

    def broken(self, check: str, seen: str, mend: str = "", fix: Fix | None = None) -> Finding:
        """Return a finding about something that stops questions or answers, or lets others read them."""
        return Finding(self.name, check, "broken", seen, mend, fix)

    async def guarded(
        self, check: str, work: Awaitable[Iterable[Finding]], *, limit_s: float = LIMIT_S, late: Verdict = "broken"
    ) -> tuple[Finding, ...]:
        """Return the findings of a check, or none if it needs a store that is away.

        An error, or a timeout after `limit_s` (verdict `late`), is a finding, too.
        """
        try:
            async with asyncio.timeout(limit_s):
                return tuple(await work)
        except TimeoutError:
            return (Finding(self.name, check, late, f"no answer within {limit_s:g} s"),)
        except NotLooked:
            return ()
        except HermesError as error:
            return (self.broken(check, str(error)),)
        except OSError as error:
            return (self.broken(check, f"{error.filename or check} cannot be used ({error.strerror or error})"),)
        except Exception as error:  # a guard: the findings of the other checks still count
            log.exception("the check %r failed", check)
            return (
                self.broken(
                    check, f"this check failed by a defect of Hermes ({type(error).__name__}); please report it"
                ),
            )

    async def each(
        self, around: Around, checks: Mapping[str, Callable[[Around], Iterable[Finding]]]
    ) -> tuple[Finding, ...]:
        """Run the checks at once, each in its own thread, and return their findings in order."""
        found = await asyncio.gather(
            *(self.guarded(name, asyncio.to_thread(check, around)) for name, check in checks.items())
        )
        return tuple(finding for findings in found for finding in findings)


def command(*words: str, place: Path, environ: Mapping[str, str]) -> str:
    """Return a command line of Hermes; `--config` is left out if `place` is the usual one."""
    usual = place == config_path(None, environ=environ)
    return shlex.join(["hermes", *words, *([] if usual else ["--config", str(place)])])


def close_to_others(paths: Iterable[Path]) -> Fix:
    """Return the fix that removes all rights of other users from these files and folders."""
    closed = tuple(paths)

    async def close() -> str:
        for path in closed:
            path.chmod(path.stat().st_mode & 0o777 & ~OPEN_TO_OTHERS)
        first = str(closed[0]) if len(closed) == 1 else f"{len(closed)} files and folders"
        return f"Closed to others: {first}."

    return close
