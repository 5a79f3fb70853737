"""The hook that stays until its answer is there.

Once the payload is on disk, the hook ends in one of these ways:

- The answer comes: the hook prints it as one line and drops a receipt into the inbox.
- The ask is over without an answer for this hook (the answer is an empty text): the hook prints nothing.
- The agent is gone: the hook drops a record that says so ("waiter.gone").
- SIGTERM releases the hook.
- No answer can come, because no listener can start or the store is gone: the hook withdraws its payload and exits.

A hook of OpenCode's plugin takes the end of stdin as the end of the agent. At SIGTERM it drops no record, because the
plugin starts it again.

A hook that has made the id of its ask itself (`Hook.ours`) drops "waiter.gone" if its parent process has changed, if
stdout has no reader any more, and at SIGTERM (if started by hand, also at Ctrl-C and hang-up). Its stdin may end at
once, or bring one more line: the answer from the desk. The hook decides whether that line came before the phone's
answer, and its program follows the line that the hook prints.

With `stay` the hook goes on waiting after it has printed the answer: as long as the hook runs, the agent runs too, and
may still read the answer.
"""

# ruff: noqa: PTH108, PTH112, PTH123 (pathlib would cost the hook memory, and the agent time)

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal

from hermes.hook import refusal, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_EVERY_S = 2.0
FIRST_LOOKS = 3  # a listener that was about to exit may have received the first nudge
LOOKS_A_NUDGE = 15
MOST_LOOKS_A_NUDGE = 300  # if no listener comes up, the pauses before the next start grow to this
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MAX_WORD_BYTES = 1024 * 1024
DESK = '{"kind": "desk"}'


class Refused(Exception):
    """No answer to the ask can come; the message says why."""


class Hook:
    """A hook that waits: its agent, its store, and the id of the process that started it (`parent`).

    `machine` is the store's machine id at the start of the hook; the name of the ask keeps it even if the store is
    removed. `config` is the path of the configuration, "" if unknown. With `ours` the hook itself made the id of the
    ask. A `patient` hook waits for room on a full disk, because the agent's own dialog is open meanwhile. `log` writes
    one line to the log and returns whether this succeeded.
    """

    def __init__(
        self,
        agent: str,
        store: str,
        parent: int,
        *,
        machine: str,
        config: str,
        ours: bool,
        patient: bool = False,
        log: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.agent = agent
        self.store = store
        self.parent = parent
        self.machine = machine
        self.config = config
        self.ours = ours
        self.patient = patient
        self.log = log


class Place:
    """The files of an ask on disk: the lock that shows that this hook waits, and the payload in the inbox."""

    def __init__(self, hook: Hook, wait_id: str, keep: Callable[[], str]) -> None:
        self._hook = hook
        self._wait_id = wait_id
        self._keep = keep
        self._held: int | None = None
        self._record = ""
        self._trouble = ""
        self._is_said = False

    @property
    def is_taken(self) -> bool:
        """Whether the ask is kept; False as long as a full disk has no room for it."""
        return self._held is not None

    def take(self) -> bool:
        """Take the lock and keep the ask; return False if the disk is full and the hook is patient.

        The hook then tries again later. Raises OSError: the ask could not be kept.
        """
        held = None
        try:
            held = spool.hold_wait(self._hook.store, self._wait_id)  # first: a reader of the record must find the lock
            self._record = self._keep()
        except OSError as error:
            if held is not None:
                spool.leave_wait(self._hook.store, self._wait_id, held)
            if not self._hook.patient or error.errno not in FULL:
                raise
            self._trouble = self._trouble or f"{error.strerror}; the question is kept as soon as there is some"
            self._say_trouble()
            return False
        self._held = held
        self._say_trouble()
        return True

    def _say_trouble(self) -> None:
        """Log once that the disk was full; if the log is on that disk, this may succeed only at a later call."""
        if self._trouble and not self._is_said:
            self._is_said = self._hook.log(self._trouble)

    def is_lost(self) -> bool:
        """Return whether the lock file, and maybe the whole store, was removed."""
        return self._held is not None and not spool.is_held_by(self._hook.store, self._wait_id, self._held)

    def withdraw(self) -> bool:
        """Remove the ask from the inbox, if it is there; return False if a listener has read it already."""
        try:
            os.unlink(self._record)
        except OSError:
            return not (self._record and os.path.isdir(self._hook.store))
        return True

    def leave(self) -> None:
        """Release the lock, if this hook has it."""
        held, self._held = self._held, None
        if held is not None:
            spool.leave_wait(self._hook.store, self._wait_id, held)


def release_on_signal(*, by_hand: bool) -> int:
    """Return a descriptor that becomes readable at SIGTERM; also close all inherited descriptors.

    SIGTERM interrupts nothing, so that no answer is lost after it was taken and before it is printed. For a hook that
    was started by hand, Ctrl-C and the terminal's hang-up count as well; any other hook ignores them.
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
    keep: Callable[[], str],
    nudge: Callable[[], bool],
    told: Callable[[bytes], bool],
    rest: bytes = b"",
    stay: bool = False,
) -> str:
    """Keep the ask, nudge the listener at the start and at intervals, and wait until the ask has ended for this hook.

    `keep` keeps the ask and returns the path of its record. `nudge` returns whether a listener runs. `told` keeps an
    answer from the desk and returns whether it was understood; `rest` are the bytes that came after the ask's line.
    Returns "", or why no answer can come; then the ask is withdrawn. Raises OSError.
    """
    wait_id = spool.wait_id(hook.agent, hook.machine, request_id)
    place = Place(hook, wait_id, keep)
    why = ""
    place.take()
    try:
        nudge()
        watch = Watch(hook, wait_id, released, nudge, told, rest, place=place)
        outcome = watch.outcome()
        if outcome == "receipt" and stay:
            with contextlib.suppress(*([OSError] if hook.ours else [])):  # the answer is printed: nothing takes it back
                _report(hook, outcome, wait_id, nudge)
            outcome = watch.left()
        outcome = outcome if place.is_taken else None  # nothing is reported of an ask that the listener does not know
    except (Refused, OSError) as error:
        if isinstance(error, OSError) and not hook.ours:
            raise  # the plugin of the agent starts the hook again
        why = f"{error.strerror} ({error.filename or hook.store})" if isinstance(error, OSError) else str(error)
        outcome = None if place.withdraw() or not hook.ours else "waiter.gone"
    finally:
        if hook.ours:
            with contextlib.suppress(OSError):
                spool.take_answer(hook.store, wait_id)  # too late for this hook, and no other waits under this name
        place.leave()
    if outcome is not None:
        with contextlib.suppress(*([OSError] if why else [])):  # the listener sees that this hook has left
            _report(hook, outcome, wait_id, nudge)
    return why


def _report(hook: Hook, outcome: str, wait_id: str, nudge: Callable[[], bool]) -> None:
    spool.drop(hook.store, spool.record(hook.agent, {"type": outcome, "waitID": wait_id}))
    nudge()


class Watch:
    """The wait of one hook: it polls stdin, SIGTERM, and the socket on which the listener wakes it."""

    def __init__(
        self,
        hook: Hook,
        wait_id: str,
        released: int,
        again: Callable[[], bool],
        told: Callable[[bytes], bool],
        rest: bytes = b"",
        look_every_s: float = LOOK_EVERY_S,
        place: Place | None = None,
    ) -> None:
        self._hook = hook
        self._wait_id = wait_id
        self._released = released
        self._again = again
        self._told = told
        self._word = rest
        self._look_every_s = look_every_s
        self._place = place
        self._looks = 0
        self._pause = FIRST_LOOKS
        self._looking = select.poll()
        for descriptor in (0, released):
            self._looking.register(descriptor, select.POLLIN)

    def outcome(self) -> str | None:
        """Wait, print the answer, and return the type of the record that reports the result, or None."""
        bell = None
        with contextlib.suppress(OSError):  # without a socket the hook still looks every two seconds
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
        """Wait for the text to print and return it: "" if there is nothing to print, None at SIGTERM.

        Raises EOFError: the agent is gone. Raises Refused: no answer can come.
        """
        while not self._hook.ours or (os.getppid() == self._hook.parent and has_reader()):
            # A stopped parent reads nothing, and a printed answer counts as taken: leave it until the parent continues.
            stands_still = self._hook.ours and is_stopped(self._hook.parent)
            answer = None if stands_still else spool.take_answer(self._hook.store, self._wait_id)
            if answer is not None:
                return answer
            if b"\n" in self._word and self._was_told():
                return ""
            self._look_after_place()
            self._look_after_listener()
            for descriptor, _ in self._looking.poll(self._look_every_s * 1000):
                if descriptor == self._released:
                    return None
                self._read(descriptor)
        raise EOFError

    def _look_after_place(self) -> None:
        """Keep the ask again if its files were removed, or now if the disk was full before.

        Raises Refused: the files were removed, and no listener runs. Raises OSError.
        """
        if self._place is None:
            return
        if self._place.is_lost():
            if not spool.nudge(self._hook.store):
                raise Refused(f"the folder {self._hook.store} was removed, and no listener is there")
            if not os.path.isdir(self._hook.store):
                return  # the listener makes the folder again, with the same machine id, or exits
            self._place.leave()
        if not self._place.is_taken and self._place.take():
            self._again()

    def _look_after_listener(self) -> None:
        """Nudge the listener, or start one, at intervals. Raises Refused: no listener can start."""
        store = self._hook.store
        why = refusal.read(store, self._hook.config)
        if why and not spool.nudge(store):
            raise Refused(f"no listener can start: {why}")
        if why:
            refusal.remove(store)  # a listener has started since then
        self._looks += 1
        if self._looks >= self._pause:
            self._ask_for_listener()

    def _ask_for_listener(self) -> None:
        """Nudge the listener, or start one if none runs, because the buttons need it; set the next pause."""
        self._looks = 0
        grown = max(LOOKS_A_NUDGE, min(2 * self._pause, MOST_LOOKS_A_NUDGE))
        self._pause = LOOKS_A_NUDGE if self._again() else grown

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
        """Take one line from the desk, which came before the phone's answer, and print `DESK` to confirm it.

        Returns False, and prints nothing, if the line could not be understood. If the ask is not kept yet, the line
        is only confirmed.
        """
        word, _, self._word = self._word.partition(b"\n")
        if self._place is None or self._place.is_taken:
            if not self._told(word):
                return False
            self._again()
        _print(DESK)
        return True

    def _hand_over(self, answer: str) -> str | None:
        """Report a receipt and print the answer; return the type of the record that is still to be dropped, or None.

        The hook reports the receipt itself, because its program confirms nothing.
        """
        told = False
        with contextlib.suppress(OSError):
            # Before printing: the program may end this hook as soon as it has read the line.
            _report(self._hook, "receipt", self._wait_id, self._again)
            told = True
        outcome = _print(answer)
        return None if told and outcome == "receipt" else outcome

    def left(self) -> str | None:
        """Stay until SIGTERM (return None), or until the agent is gone (return "waiter.gone")."""
        while True:
            ready = self._looking.poll(self._pause * self._look_every_s * 1000)
            if not ready:
                self._ask_for_listener()
            for descriptor, _ in ready:
                if descriptor == self._released:
                    return None
                if not os.read(descriptor, 65536):
                    return "waiter.gone"


def is_stopped(process_id: int) -> bool:
    """Return whether a process is stopped, for example by Ctrl-Z or a debugger; False if it cannot be read in /proc."""
    try:
        with open(f"/proc/{process_id}/stat", "rb") as file:
            told = file.read()
    except OSError:
        return False
    # The state follows the process name, which stands in brackets and may contain brackets.
    return told.rpartition(b")")[2].split()[0] in {b"T", b"t"}


def has_reader() -> bool:
    """Return whether a process still has the other end of stdout open."""
    looking = select.poll()
    looking.register(1, 0)
    return not looking.poll(0)


def _print(answer: str) -> str:
    """Print one line; return "receipt", or "waiter.gone" if stdout has no reader or no room.

    A receipt only says that the line was written; the agent's own events tell whether it took effect.
    """
    return "receipt" if write(1, answer.replace("\n", " ").encode() + b"\n") else "waiter.gone"


def write(descriptor: int, data: bytes) -> bool:
    """Write all of it; return False if nobody reads, or it cannot be written."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        return False
    return True
