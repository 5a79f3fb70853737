"""Turns voice notes into text by a program of the person's own, which the configuration names.

The program is started without a shell, in a new environment, in a process group that ends with it. It gets the path of
the sound file as its last argument, and prints the text. Time, memory and output are limited.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.errors import NotHeard
from hermes.hook.starting import built_environment

LONGEST_S: Final = 60.0
MOST_OUTPUT: Final = 16 * 1024
MOST_MEMORY: Final = 8 << 30
"""The address space of the program. Large models of speech take three gigabytes, and are mapped once more as a file."""
LONGEST_TEXT: Final = 2500
"""So many characters fit, with a caption, into the message that shows the person what was heard."""
_ENDS_S: Final = 2.0
_NOT_STARTED: Final = 127
_LIMITED: Final = f"""
import os, resource, sys
for kind, most in ((resource.RLIMIT_AS, int(sys.argv[1])), (resource.RLIMIT_CORE, 0)):
    try:
        resource.setrlimit(kind, (most, most))
    except (OSError, ValueError):
        pass
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError:
    sys.exit({_NOT_STARTED})
"""


class Transcriber:
    """Runs the program, for one voice note at a time. `command` are its arguments, the program first."""

    def __init__(self, command: Sequence[str], *, longest_s: float = LONGEST_S, most_memory: int = MOST_MEMORY) -> None:
        self._command = tuple(command)
        self._longest_s = longest_s
        self._most_memory = most_memory
        self._turn = asyncio.Lock()

    async def text_of(self, sound: Path) -> str:
        """Return the text in one line. Raises NotHeard: the message says why, for the person."""
        async with self._turn:
            status, printed = await self._run(sound)
        if status == _NOT_STARTED:
            raise NotHeard(f"{self._name} could not be started; give its whole path in `[prompts] transcribe`")
        if status:
            raise NotHeard(f"{self._name} ended with the status {status}; try it at the computer")
        text = " ".join(printed.decode(errors="replace").split())
        if not text:  # whisper.cpp also ends so, with the status 0, when it cannot read Opus
            raise NotHeard(f"{self._name} heard no words; if there are some, try it at the computer")
        if len(text) > LONGEST_TEXT:
            raise NotHeard("that voice note is too long to show you its text; please send shorter ones")
        return text

    @property
    def _name(self) -> str:
        return Path(self._command[0]).name

    async def _run(self, sound: Path) -> tuple[int, bytes]:
        """Return the exit status, and what was printed."""
        limited = (sys.executable, "-I", "-c", _LIMITED, str(self._most_memory))
        process = await asyncio.create_subprocess_exec(
            *limited,
            *self._command,
            str(sound),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=built_environment(os.environ),
            cwd="/",
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._longest_s):
                return await self._ended(process)
        except TimeoutError:
            raise NotHeard(f"{self._name} took more than {self._longest_s:g} s") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):  # it has ended
                os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
            with suppress(TimeoutError):  # one that has left the group may hold the output open
                async with asyncio.timeout(_ENDS_S):
                    await process.wait()

    async def _ended(self, process: asyncio.subprocess.Process) -> tuple[int, bytes]:
        printed = b""
        while process.stdout is not None and (piece := await process.stdout.read(MOST_OUTPUT)):
            printed += piece
            if len(printed) > MOST_OUTPUT:
                raise NotHeard(f"{self._name} printed more than {MOST_OUTPUT // 1024} KiB")
        return await process.wait(), printed
