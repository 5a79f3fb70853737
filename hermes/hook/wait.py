"""The hook that stays until its answer is there.

Once the payload is on disk it ends in one of these ways: the answer comes (printed as one line, and a receipt dropped);
the agent is gone and a record says so; the ask is over without an answer for it (an empty text: nothing is printed);
or SIGTERM releases it. A hook of OpenCode's plugin is gone when the plugin has closed stdin, and SIGTERM releases it in
silence, since the plugin starts it again. If nothing can come of it (no listener can start, or the store is gone), it
takes its payload back and leaves. One that has called its ask itself (`Hook.ours`) is gone when its parent is
another, when nobody reads, and at SIGTERM (started by hand, at Ctrl-C, too); there stdin may be closed at once, or
bring one more line: what was said at the desk. Whether that came first is decided here: whoever starts the hook does
what it prints.

With `stay` it goes on waiting after the answer: as long as it is there, the agent is too, and may still read what was
printed.
"""

# ruff: noqa: PTH108, PTH112, PTH123 (pathlib would cost a hook memory, and its agent time)

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal

from hermes.hook import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_EVERY_S = 2.0
FIRST_LOOKS = 3  # a listener that was just dying may have taken the first nudge
LOOKS_A_NUDGE = 15
MOST_LOOKS_A_NUDGE = 300  # where no listener comes, the next one is started after ever longer pauses
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MAX_WORD_BYTES = 1024 * 1024
DESK = '{"kind": "desk"}'


class Refused(Exception):
    """Nothing can come of the ask; the message says why."""


class Hook:
    """Who waits: for which agent and store, started by which process; `ours`: it has called its ask itself.

    `machine` is the store's machine id when the hook began: it names the ask, whatever becomes of the store. A hook
    that is `patient` waits for room on a full disk, since its agent's own dialog is open meanwhile. `log` writes one
    line, and tells whether it is there.
    """

    def __init__(
        self,
        agent: str,
        store: str,
        parent: int,
        *,
        machine: str,
        ours: bool,
        patient: bool = False,
        log: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.agent = agent
        self.store = store
        self.parent = parent
        self.machine = machine
        self.ours = ours
        self.patient = patient
        self.log = log


class Place:
    """The place of an ask on disk: the lock that says that we wait, and the payload in the inbox."""

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
        """Whether the ask is kept: a full disk may have no room for it yet."""
        return self._held is not None

    def take(self) -> bool:
        """Keep the ask, and tell whether there was room for it; one that is patient tries again. Raises OSError."""
        held = None
        try:
            held = spool.hold_wait(self._hook.store, self._wait_id)  # first: whoever reads the record finds us waiting
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
        """Log once that there was no room; on the same disk there may be none for that either, until now."""
        if self._trouble and not self._is_said:
            self._is_said = self._hook.log(self._trouble)

    def is_lost(self) -> bool:
        """Whether the lock's file, and maybe all of the store, was removed."""
        return self._held is not None and not spool.is_held_by(self._hook.store, self._wait_id, self._held)

    def withdraw(self) -> bool:
        """Take the ask out of the inbox, and tell whether nobody has taken it in, so that it was never asked."""
        try:
            os.unlink(self._record)
        except OSError:
            return not (self._record and os.path.isdir(self._hook.store))
        return True

    def leave(self) -> None:
        """Give the lock up, if we have it."""
        held, self._held = self._held, None
        if held is not None:
            spool.leave_wait(self._hook.store, self._wait_id, held)


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
    keep: Callable[[], str],
    nudge: Callable[[], bool],
    told: Callable[[bytes], bool],
    rest: bytes = b"",
    stay: bool = False,
) -> str:
    """Keep the ask (`keep`), tell the listener (`nudge`, and now and then again), and wait for what comes of it.

    `keep` returns the path of the record, `nudge` tells whether there is a listener. `told` keeps a word from the desk,
    and tells whether it was one; `rest` is what of it came behind the ask. Returns why nothing can come of the ask,
    which is taken back then, else "". Raises OSError.
    """
    wait_id = spool.wait_id(hook.agent, hook.machine, request_id)
    place = Place(hook, wait_id, keep)
    why = ""
    try:
        place.take()
        nudge()
        watch = Watch(hook, wait_id, released, nudge, told, rest, place=place)
        outcome = watch.outcome()
        if outcome == "receipt" and stay:
            _report(hook, outcome, wait_id, nudge)
            outcome = watch.left()
        if not place.is_taken:
            outcome = None  # there is nobody to tell about it
    except Refused as refused:
        why = str(refused)
        outcome = None if place.withdraw() or not hook.ours else "waiter.gone"
    finally:
        if hook.ours:
            with contextlib.suppress(OSError):
                spool.take_answer(hook.store, wait_id)  # too late for us, and nobody else waits under this name
        place.leave()
    if outcome is not None:
        _report(hook, outcome, wait_id, nudge)
    return why


def _report(hook: Hook, outcome: str, wait_id: str, nudge: Callable[[], bool]) -> None:
    spool.drop(hook.store, spool.record(hook.agent, {"type": outcome, "waitID": wait_id}))
    nudge()


class Watch:
    """What a waiting hook looks at: stdin, SIGTERM, and the bell that the listener rings."""

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

        Raises EOFError where the agent is gone, and Refused where nothing can come of it.
        """
        while not self._hook.ours or (os.getppid() == self._hook.parent and _has_reader()):
            # Who stands still reads nothing, and what is printed would look taken: it stays ready until he goes on.
            stands_still = self._hook.ours and _is_stopped(self._hook.parent)
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
        """Take our place on disk, if a full disk had no room for it or somebody has removed it. Raises Refused."""
        if self._place is None:
            return
        if self._place.is_lost():
            if not spool.nudge(self._hook.store):
                raise Refused(f"the folder {self._hook.store} was removed, and no listener is there")
            if not os.path.isdir(self._hook.store):
                return  # the listener makes it again, with this machine's id, or leaves
            self._place.leave()
        if not self._place.is_taken and self._place.take():
            self._again()

    def _look_after_listener(self) -> None:
        """Leave if no listener can start; start one now and then if there is none. Raises Refused."""
        store = self._hook.store
        why = spool.refusal(store)
        if why and not spool.nudge(store):
            raise Refused(f"no listener can start: {why}")
        if why:
            spool.accept(store)  # one has started since
        self._looks += 1
        if self._looks >= self._pause:
            self._ask_for_listener()

    def _ask_for_listener(self) -> None:
        """Nudge the listener. One that died is started again, or the buttons would be dead."""
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
        """Take the desk's word, which came first; whoever said it is told so."""
        word, _, self._word = self._word.partition(b"\n")
        if self._place is None or self._place.is_taken:
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
            ready = self._looking.poll(self._pause * self._look_every_s * 1000)
            if not ready:
                self._ask_for_listener()
            for descriptor, _ in ready:
                if descriptor == self._released:
                    return None
                if not os.read(descriptor, 65536):
                    return "waiter.gone"


def _is_stopped(process_id: int) -> bool:
    """Tell whether a process was stopped, as by Ctrl-Z or a debugger; where there is no /proc, nobody knows."""
    try:
        with open(f"/proc/{process_id}/stat", "rb") as file:
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
