"""Ask the person on the phone something, and wait: from a command of Hermes itself, through the hook as any program.

The hook is a process of its own, so whatever happens to this one, the question is closed on the phone: the hook sees
that its parent is gone.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from hermes.config.settings import Config
from hermes.errors import NotSaved, PayloadError
from hermes.hook import spool
from hermes.listener.agent.hooks import wait_id
from hermes.storage.store import Store

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

TEST: Final[Mapping[str, Any]] = {
    "agent": "Hermes",
    "title": "A test",
    "questions": [
        {
            "header": "Test",
            "question": "Does this question reach you?",
            "options": [{"label": "Yes"}, {"label": "Yes, and it looks good"}],
        }
    ],
}
"""A question that shows that all of it works."""
_LONGEST_LINE_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Told:
    """What came back: for each question its labels, then the typed text; nothing came where `kind` is "unanswered".

    "desk": what was said here came first, and stands. `by_timer`: nobody decided, the time to answer ran out.
    """

    kind: Literal["answer", "skip", "reject", "desk", "unanswered"]
    answers: tuple[tuple[str, ...], ...] = ()
    by_timer: bool = False


class Asking:
    """A question that is on its way. `pid` is its hook's."""

    def __init__(self, hook: asyncio.subprocess.Process, config: Config) -> None:
        self._hook = hook
        self._said = cast("StreamWriter", hook.stdin)
        self._printed = cast("StreamReader", hook.stdout)
        self._heard = cast("StreamReader", hook.stderr)
        self._config = config
        self._line = asyncio.ensure_future(self._first_line())
        self._came = False

    async def told(self) -> Told:
        """Wait for what comes of it.

        Raises PayloadError: nothing was asked, and why; NotSaved: its hook was ended, or never told a word.
        """
        line = await asyncio.shield(self._line)
        if not line and self._hook.returncode:
            raise NotSaved("the hook that waited for the answer was ended from outside; the question is taken back.")
        if not line:
            store, log = self._config.store.path, self._config.log.file
            raise NotSaved(f"the question could not be kept in {store}; {log} says why.")
        return _told(line)

    async def said_here(self, answers: Sequence[Sequence[str]]) -> Told:
        """Answer it here; what is returned came first: this ("desk"), or what the phone had said. Raises as `told`."""
        await self.say({"answers": answers})  # lost where the phone's answer has just come
        return await self.told()

    async def say(self, line: Mapping[str, Any]) -> None:
        """Hand the hook a line, if it still listens: it says itself what it makes of it."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._said.write(json.dumps(line).encode() + b"\n")
            await self._said.drain()

    async def stopped(self) -> Told:
        """Take it back, unless an answer has come at the last moment; the phone is told. Raises as `told`."""
        if not self._line.done():  # one that has ended is asyncio's to reap: `terminate` would do it first
            with suppress(ProcessLookupError):
                self._hook.terminate()
        await self._line
        return await self.told()

    def was_on_phone(self) -> bool:
        """Tell whether its message is on the phone, or was seen there before. Raises StoreError."""
        self._came = self._came or self._is_on_phone()
        return self._came

    def _is_on_phone(self) -> bool:
        waits = [name for name in spool.waited_for(self._config.store.path) if self._is_mine(name)]
        entries = Store(self._config.store.path).survey().entries if waits else ()
        return any(entry.phone.message_id is not None for entry in entries if wait_id(entry.ask) in waits)

    def _is_mine(self, name: str) -> bool:
        return self._hook.pid in spool.waiters(self._config.store.path, name)

    async def _first_line(self) -> bytes:
        """Return what the hook prints: a blank line where it left without a word, b"" where it kept nothing."""
        line = await self._printed.readline()
        if line:
            return line
        heard = await self._heard.read()
        return b"\n" if b"kept" in heard and await self._hook.wait() == 0 else b""


@asynccontextmanager
async def asking(config: Config, config_path: Path, asked: Mapping[str, Any]) -> AsyncIterator[Asking]:
    """Ask what `asked` says (the payload of `hermes hook generic`); left, the question is closed on the phone.

    If nobody listens, a listener is started that stays for as long as anything is open. What our own environment says
    of the configuration does not reach it.
    """
    # Our caller has just read the configuration: that a listener could not, a moment ago, says nothing any more.
    spool.accept(config.store.path)
    pipe = asyncio.subprocess.PIPE
    hook = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "hermes", "hook", "generic"),
        *("--store", str(config.store.path), "--log", str(config.log.file), "--config", str(config_path)),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        limit=_LONGEST_LINE_BYTES,
        start_new_session=True,  # a Ctrl-C is for us, who then take the question back
    )
    it = Asking(hook, config)
    try:
        await it.say(asked)
        yield it
    finally:
        with suppress(NotSaved, PayloadError):
            await it.stopped()
        await hook.wait()


async def ask(
    config: Config,
    config_path: Path,
    asked: Mapping[str, Any],
    *,
    timeout_s: float | None,
) -> Told:
    """Ask as `asking` does, and wait for at most `timeout_s` seconds. Raises NotSaved, PayloadError."""
    async with asking(config, config_path, asked) as it:
        try:
            async with asyncio.timeout(timeout_s):
                return await it.told()
        except TimeoutError:
            return await it.stopped()


def _told(line: bytes) -> Told:
    if not line.strip():
        return Told("unanswered")
    told = json.loads(line)
    if told["kind"] == "refused":
        raise PayloadError(f"this cannot be asked: {told['error'].rstrip('.')}.")
    return Told(told["kind"], tuple(map(tuple, told.get("answers", ()))), told.get("by") == "timer")
