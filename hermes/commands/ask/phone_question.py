"""Let a command of Hermes ask the person on the phone, and wait. It uses `hermes hook generic`, as any program can.

The hook is a separate process. If this process ends in any way, the hook sees that its parent is gone and closes the
question on the phone.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from hermes.commands.stores import look, store_of
from hermes.config.settings import Config
from hermes.errors import NotSaved, PayloadError
from hermes.hook import refusal, spool
from hermes.listener.agent.hooks import wait_id

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
"""The payload of a test question: if the person can answer it, everything works."""
Answers = tuple[tuple[str, ...], ...]

_LONGEST_LINE_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a question.

    - `kind`: "unanswered" means that no answer came; "desk", in the line of a hook, that the answer from here counts.
    - `answers`: for each question the chosen labels, then the typed text.
    - `by`: "terminal" is an answer from here; with "timer", no person decided before the time to answer ran out.
    """

    kind: Literal["answer", "skip", "reject", "desk", "unanswered"]
    answers: Answers = ()
    by: Literal["phone", "terminal", "timer"] = "phone"


class Asking:
    """A question that was handed to a hook process."""

    def __init__(self, hook: asyncio.subprocess.Process, config: Config) -> None:
        self._hook = hook
        self._said = cast("StreamWriter", hook.stdin)
        self._printed = cast("StreamReader", hook.stdout)
        self._heard = cast("StreamReader", hook.stderr)
        self._config = config
        self._line = asyncio.ensure_future(self._first_line())
        self._came = self._was_taken_back = False

    async def told(self) -> Told:
        """Wait for the result.

        Raises PayloadError: no answer can come; the text says why. Raises NotSaved: the hook was ended from outside, or
        did not keep the question.
        """
        line = await asyncio.shield(self._line)
        if not line and self._was_taken_back:  # the hook may not have kept the question yet
            return Told("unanswered")
        if not line and self._hook.returncode:
            raise NotSaved("the hook that waited for the answer was ended from outside; the question is taken back.")
        if not line:
            store, log = self._config.store.path, self._config.log.file
            raise NotSaved(f"the question could not be kept in {store}; {log} says why.")
        return _told(line)

    async def said_here(self, answers: Answers) -> Told:
        """Answer from here; return the first result: this answer or the phone's. Raises as `told`."""
        await self.say({"answers": answers})  # has no effect if the phone's answer has just come
        told = await self.told()
        return Told("answer", answers, "terminal") if told.kind in {"desk", "unanswered"} else told

    async def say(self, line: Mapping[str, Any]) -> None:
        """Write a line to the hook, if it still reads. The line that the hook prints shows the effect."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._said.write(json.dumps(line).encode() + b"\n")
            await self._said.drain()

    async def stopped(self) -> Told:
        """Take the question back, also on the phone, and return the result if one came before. Raises as `told`."""
        if not self._line.done():  # asyncio must reap a hook that has ended; `terminate` would reap it first
            self._was_taken_back = True
            with suppress(ProcessLookupError):
                self._hook.terminate()
        await self._line
        return await self.told()

    async def was_on_phone(self) -> bool:
        """Tell whether the question is or was on the phone, as seen by this or an earlier call. Raises StoreError."""
        if self._came:
            return True
        store = self._config.store.path
        waits = [name for name in spool.waited_for(store) if self._hook.pid in spool.waiters(store, name)]
        if waits:
            entries = (await look(store_of(self._config), lambda store: store.survey())).entries
            # The post's time and not its message id, which a machine without the bot does not see.
            self._came = any(entry.timing.posted_s is not None for entry in entries if wait_id(entry.ask) in waits)
        return self._came

    async def is_phone_locked(self) -> bool:
        """Tell whether the phone is locked. Raises StoreError."""
        return await look(store_of(self._config), lambda store: store.is_phone_locked())

    async def _first_line(self) -> bytes:
        """Return the line that the hook prints.

        If it prints none, return a blank line if it kept the question and ended normally, else b"".
        """
        line = await self._printed.readline()
        if line:
            return line
        heard = await self._heard.read()
        return b"\n" if b"kept" in heard and await self._hook.wait() == 0 else b""


@asynccontextmanager
async def asking(config: Config, config_path: Path, asked: Mapping[str, Any]) -> AsyncIterator[Asking]:
    """Ask with `asked`, the payload of `hermes hook generic`; at the end of the block, close the question on the phone.

    If no listener runs, the hook starts one, which runs until no ask has been open for a while. That listener gets no
    configuration from the environment of this process.
    """
    # The caller has just read the configuration, so the reason why an earlier listener could not start is outdated.
    refusal.remove(config.store.path)
    pipe = asyncio.subprocess.PIPE
    hook = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "hermes", "hook", "generic"),
        *("--store", str(config.store.path), "--log", str(config.log.file), "--config", str(config_path)),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        limit=_LONGEST_LINE_BYTES,
        start_new_session=True,  # so that Ctrl-C reaches only this process, which then takes the question back
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
    """Ask as `asking` does; take the question back after `timeout_s` seconds. Raises NotSaved, PayloadError."""
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
        raise PayloadError(f"no answer can come: {told['error'].rstrip('.')}.")
    return Told(told["kind"], tuple(map(tuple, told.get("answers", ()))), told.get("by", "phone"))
