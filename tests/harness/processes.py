"""Processes, conditions and connections that a test can start, freeze, cut and never leave behind.

Everything here is synchronous: scenes run real processes and poll for content with a deadline.
"""

import asyncio
import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from hermes.sandbox.serving import bound

T = TypeVar("T")
LOOPBACK = "127.0.0.1"

# The sweeper outlives the tests and kills what they left when their end of its pipe closes. A parent-death
# signal would do less: it follows the *thread* that forked, spares grandchildren, and is Linux only.
_SWEEPER = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    sign, group = line[0], int(line[1:])
    groups.add(group) if sign == "+" else groups.discard(group)
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
"""
# A terminal becomes the controlling one only by an ioctl in the child itself; a short Python that then
# becomes the command (same pid) does that without a fork of this threaded process.
_ON_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def until(
    predicate: Callable[[], T],
    timeout_s: float = 30,
    what: str = "the condition",
    *,
    every_s: float = 0.05,
) -> T:
    """Poll `predicate` until its value is truthy, and return that value.

    It is asked less and less often, down to four times as seldom: to be asked is work for who is waited for.
    An `AssertionError` raised by the predicate counts as "not yet", so a helper that asserts can be polled.

    Raises:
        AssertionError: nothing truthy within `timeout_s`; the message shows the last value.
    """
    end = time.monotonic() + timeout_s
    pause_s = every_s
    last: object
    while True:
        try:
            value = predicate()
        except AssertionError as error:
            last = error
        else:
            if value:
                return value
            last = value
        if time.monotonic() >= end:
            raise AssertionError(f"waited {timeout_s:g} s for {what}; last value: {last!r}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.25, 4 * every_s)


def state_of(pid: int) -> str:
    """Return the state letter of a process (T is stopped), or nothing where it ended."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    letter = told.stdout.strip()[:1]
    return "" if letter == "Z" else letter


def stop(pid: int) -> None:
    """Stop a process, as Ctrl-Z does, and wait until others can see that it stands still."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state_of(pid) == "T", what="the stop")


def has_ended(pid: int) -> bool:
    """Tell whether this process runs no more, also where nobody has taken note of its end yet (a zombie)."""
    return not state_of(pid)


def free_port() -> int:
    """Return a loopback port that nothing holds now, outside the range that outgoing connections take.

    Staying below that range keeps the port free while a server restarts on it.
    """
    for _ in range(200):
        port = random.randint(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port between 15000 and 32000")


class _Sweeper:
    """The one process that knows which process groups of this test run are alive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def note(self, sign: str, group: int) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _SWEEPER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,
                )
            pipe = self._process.stdin
            assert pipe is not None
            pipe.write(f"{sign}{group}\n")
            pipe.flush()

    def close(self) -> None:
        """Let the sweeper do its work now, and wait for it."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()
            self._process = None


SWEEPER = _Sweeper()


class Proc:
    """A command in a session and process group of its own, its output in files.

    Leaving the `with` block kills the whole group and reaps the leader; a crash of the tests does so too.
    `log_dir/NAME.out` and `.err` hold the output (appended to, mode 0600). With `terminal`, an open
    file descriptor of a pseudo-terminal, stdin, stdout and stderr are that terminal.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        log_dir: Path,
        name: str,
        terminal: int | None = None,
    ) -> None:
        log_dir.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.out = log_dir / f"{name}.out"
        self.err = log_dir / f"{name}.err"
        argv = [str(part) for part in command]
        if terminal is not None:
            argv = [sys.executable, "-I", "-S", "-c", _ON_TERMINAL, *argv]
        with _appending(self.out) as out, _appending(self.err) as err:
            self._popen = subprocess.Popen(
                argv,
                cwd=cwd,
                env=dict(environ),
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                stdout=out if terminal is None else terminal,
                stderr=err if terminal is None else terminal,
                start_new_session=True,
            )
        self.pid = self._popen.pid
        SWEEPER.note("+", self.pid)

    def __repr__(self) -> str:
        return f"<Proc {self.name} pid={self.pid} status={self._popen.poll()}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def alive(self) -> bool:
        """Say whether the leader still runs (a frozen one does)."""
        return self._popen.poll() is None

    def output(self) -> str:
        """Return everything written to stdout and then to stderr so far."""
        return "".join(path.read_text("utf-8", "replace") for path in (self.out, self.err))

    def wait_line(self, text: str, timeout_s: float = 30) -> str:
        """Return the first line of output that holds `text`.

        Raises:
            AssertionError: the process ended, or the time was up, without such a line.
        """
        end = time.monotonic() + timeout_s
        while True:
            ended = not self.alive()  # before reading, so that last words are not missed
            for line in self.output().splitlines():
                if text in line:
                    return line
            if ended or time.monotonic() >= end:
                raise AssertionError(f"{self!r}: no line with {text!r}; output:\n{self.output()[-2000:]}")
            time.sleep(0.02)

    def wait(self, timeout_s: float = 30) -> int:
        """Wait for the end and return the exit status (negative: the signal that ended it)."""
        try:
            status = self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self!r} did not end in {timeout_s:g} s; output:\n{self.output()[-2000:]}") from None
        return status

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send a signal to the leader, or to everything in its group; nothing happens if it is gone."""
        if self._popen.returncode is None:  # once reaped, the number may belong to somebody else
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number) if group else os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stop the whole group as if the machine slept (SIGSTOP)."""
        self.signal(signal.SIGSTOP, group=True)

    def thaw(self) -> None:
        """Let a frozen group go on (SIGCONT)."""
        self.signal(signal.SIGCONT, group=True)

    def sigterm(self, timeout_s: float = 30) -> int:
        """Ask the leader to end (SIGTERM), wait, and return its exit status."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def sigkill(self) -> int:
        """End the leader alone, as `kill -9` does, and return its exit status; its children live on."""
        self.signal(signal.SIGKILL)
        return self.wait(60)

    def close(self) -> None:
        """End everything in the group and reap the leader. Safe to repeat."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Also after the leader's death: its number stays taken while its group has members.
            if self._popen.returncode is None or _group_has_members(self.pid):
                os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait(60)
        SWEEPER.note("-", self.pid)


@contextlib.contextmanager
def _appending(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _group_has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class CuttableProxy:
    """A loopback port that forwards to another one until it is cut.

    `cut()` drops every connection (reset) and refuses new ones, `restore()` opens the same port again,
    `stall()` keeps connections but moves no byte, as a silent network does, until `restore()`.
    """

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cuttable-proxy", daemon=True)
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._reserved = bound(0)
        self.port: int = self._reserved.getsockname()[1]

    @property
    def url(self) -> str:
        """The address to use instead of the target's."""
        return f"http://{LOOPBACK}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self.restore()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._reserved.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """Drop all connections and refuse new ones. Safe to repeat."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    def restore(self) -> None:
        """Accept and forward again, on the same port. Safe to repeat."""
        asyncio.run_coroutine_threadsafe(self._restore(), self._loop).result(10)

    def stall(self) -> None:
        """Hold back every byte in both directions; nobody is told."""
        asyncio.run_coroutine_threadsafe(self._stall(), self._loop).result(10)

    async def _stall(self) -> None:
        self._flowing.clear()

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            self._reserved = bound(self.port)  # bound, not listening: refuses, and nobody else can take it
        for writer in self._writers:
            _reset(writer)
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    async def _restore(self) -> None:
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._accepted, sock=self._reserved)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pipes.add(task)
        try:
            await self._forward(reader, writer)
        except asyncio.CancelledError:
            pass  # cut; a stream callback that ends "cancelled" would be reported as a defect
        finally:
            writer.transport.abort()
            self._pipes.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self.target_port)
        except OSError:
            return  # the target is down: this side is reset, as if it had been asked directly
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        finally:
            far_writer.transport.abort()
            self._writers -= {writer, far_writer}

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await source.read(65536):
                await self._flowing.wait()
                sink.write(chunk)
                await sink.drain()
            sink.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close without a farewell: the other side sees "connection reset", not an end of file."""
    linger_0_s = struct.pack("ii", 1, 0)
    with contextlib.suppress(OSError):  # the other side may have closed it a moment ago
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_0_s)
    writer.transport.abort()
