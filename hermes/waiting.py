"""The hook that stays until its answer is there.

Once the payload is on disk it ends in one of these ways: the answer comes (printed as one line, and a receipt dropped);
the agent is gone and a record says so; the ask is over without an answer for it (an empty text: nothing is printed);
or SIGTERM releases it. A hook of OpenCode's plugin is gone when the plugin has closed stdin, and SIGTERM releases it in
silence, since the plugin starts it again. One that has called its ask itself (`Hook.ours`) is gone when its parent is
another, when nobody reads, and at SIGTERM (started by hand, at Ctrl-C, too); there stdin may be closed at once, or
bring one more line: what was said at the desk. Whether that came first is decided here: whoever starts the hook does
what it prints.

With `stay` it goes on waiting after the answer: as long as it is there, the agent is too, and may still read what was
printed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal

from hermes import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_EVERY_S = 2.0
LOOKS_A_NUDGE = 15
MAX_WORD_BYTES = 1024 * 1024
DESK = '{"kind": "desk"}'


class Hook:
    """Who waits: for which agent and store, started by which process; `ours`: it has called its ask itself."""

    def __init__(self, agent: str, store: str, parent: int, *, ours: bool) -> None:
        self.agent = agent
        self.store = store
        self.parent = parent
        self.ours = ours


def release_on_signal(*, by_hand: bool) -> int:
    """Return a descriptor that is readable after SIGTERM: between taking and printing it loses nothing.

    Where it was started by hand, Ctrl-C and the terminal's end count as well.
    """
    spool.close_inherited()
    released, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGTERM, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, (lambda *_: None) if by_hand else signal.SIG_IGN)
    return released


def wait(
    hook: Hook,
    request_id: str,
    released: int,
    *,
    keep: Callable[[], None],
    nudge: Callable[[], None],
    told: Callable[[bytes], bool],
    rest: bytes = b"",
    stay: bool = False,
) -> None:
    """Keep the ask (`keep`), tell the listener (`nudge`, and now and then again), and wait for what comes of it.

    `told` keeps a word from the desk, and tells whether it was one; `rest` is what of it came behind the ask.
    Raises OSError.
    """
    wait_id = spool.wait_id(hook.agent, spool.machine(), request_id)
    held = spool.hold_wait(hook.store, wait_id)  # before the drop: whoever reads the record finds us waiting
    try:
        keep()
        nudge()
        watch = Watch(hook, wait_id, released, nudge, told, rest)
        outcome = watch.outcome()
        if outcome == "receipt" and stay:
            _report(hook, outcome, wait_id, nudge)
            outcome = watch.left()
    finally:
        if hook.ours:
            with contextlib.suppress(OSError):
                spool.take_answer(hook.store, wait_id)  # too late for us, and nobody else waits under this name
        spool.leave_wait(hook.store, wait_id, held)
    if outcome is not None:
        _report(hook, outcome, wait_id, nudge)


def _report(hook: Hook, outcome: str, wait_id: str, nudge: Callable[[], None]) -> None:
    spool.drop(hook.store, spool.record(hook.agent, {"type": outcome, "waitID": wait_id}))
    nudge()


class Watch:
    """What a waiting hook looks at: stdin, SIGTERM, and the bell that the listener rings."""

    def __init__(
        self,
        hook: Hook,
        wait_id: str,
        released: int,
        again: Callable[[], None],
        told: Callable[[bytes], bool],
        rest: bytes = b"",
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._hook = hook
        self._wait_id = wait_id
        self._released = released
        self._again = again
        self._told = told
        self._word = rest
        self._look_every_s = look_every_s
        self._looking = select.poll()
        for descriptor in (0, released):
            self._looking.register(descriptor, select.POLLIN)

    def outcome(self) -> str | None:
        """Wait, print the answer, and return the type of the record that tells how it went; None: nothing to tell."""
        bell = None
        with contextlib.suppress(OSError):  # without a bell there is still the look every two seconds
            bell = spool.wait_socket(self._hook.store, self._wait_id)
            self._looking.register(bell.fileno(), select.POLLIN)
        try:
            answer = self.answer()
            if answer == "":
                return None
            if not self._hook.ours:
                return None if answer is None else _print(answer)
            return "waiter.gone" if answer is None else self._hand_over(answer)
        except EOFError:
            return "waiter.gone"
        finally:
            if bell:
                self._looking.unregister(bell.fileno())
                spool.close_socket(bell)

    def answer(self) -> str | None:
        """Return what is to be printed once it is there, "" for nothing; None at SIGTERM.

        Raises EOFError where the agent is gone.
        """
        looks = 0
        while not self._hook.ours or (os.getppid() == self._hook.parent and _has_reader()):
            # Who stands still reads nothing, and what is printed would look taken: it stays ready until he goes on.
            stands_still = self._hook.ours and _is_stopped(self._hook.parent)
            answer = None if stands_still else spool.take_answer(self._hook.store, self._wait_id)
            if answer is not None:
                return answer
            if b"\n" in self._word and self._was_told():
                return ""
            looks += 1
            if looks % LOOKS_A_NUDGE == 0:
                self._again()  # a listener that died is started anew, or the buttons would be dead
            for descriptor, _ in self._looking.poll(self._look_every_s * 1000):
                if descriptor == self._released:
                    return None
                self._read(descriptor)
        raise EOFError

    def _read(self, descriptor: int) -> None:
        data = os.read(descriptor, 65536)
        if descriptor != 0:
            return
        if not data and not self._hook.ours:
            raise EOFError
        self._word += data
        if not data or len(self._word) > MAX_WORD_BYTES:
            self._looking.unregister(0)
            self._word += b"\n" if self._word.strip() else b""

    def _was_told(self) -> bool:
        """Take the desk's word, which came first; whoever said it is told so."""
        word, _, self._word = self._word.partition(b"\n")
        if not self._told(word):
            return False
        self._again()
        _print(DESK)
        return True

    def _hand_over(self, answer: str) -> str | None:
        """Print it for who does not tell what it got; return what is still to be told."""
        told = False
        with contextlib.suppress(OSError):
            # Before: whoever has read the line may end this at once.
            _report(self._hook, "receipt", self._wait_id, self._again)
            told = True
        outcome = _print(answer)
        return None if told and outcome == "receipt" else outcome

    def left(self) -> str | None:
        """Stay until SIGTERM (None), or until the agent is gone."""
        while True:
            ready = self._looking.poll(LOOKS_A_NUDGE * self._look_every_s * 1000)
            if not ready:
                self._again()
            for descriptor, _ in ready:
                if descriptor == self._released:
                    return None
                if not os.read(descriptor, 65536):
                    return "waiter.gone"


def _is_stopped(process_id: int) -> bool:
    """Tell whether a process was stopped, as by Ctrl-Z or a debugger; where there is no /proc, nobody knows."""
    try:
        with open(f"/proc/{process_id}/stat", "rb") as file:  # noqa: PTH123 (pathlib would cost a hook memory)
            told = file.read()
    except OSError:
        return False
    # Its name stands in brackets, and may hold any of them.
    return told.rpartition(b")")[2].split()[0] in {b"T", b"t"}


def _has_reader() -> bool:
    """Tell whether somebody still has the other end of stdout."""
    looking = select.poll()
    looking.register(1, 0)
    return not looking.poll(0)


def _print(answer: str) -> str:
    """Print one line; a receipt says that it left, nothing more: the plugin's own events tell the rest."""
    data = memoryview(answer.replace("\n", " ").encode() + b"\n")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError as error:
        if error.errno == errno.EPIPE:
            return "waiter.gone"
        raise
    return "receipt"
