"""`hermes hook AGENT`: keep what an agent tells and leave; with --wait, stay until its answer is there.

An agent's plugin starts this, so it never gets in the agent's way: whatever happens it leaves with 0, and
says nothing on stdout but the answer; trouble is one line in the log, without a word of any question.

It is started as `/absolute/python -I -m hermes hook …`: without -I it would execute a `json.py` of the
folder that it is started in. It loads little, since an agent waits for it: about twice a bare Python.

Once the payload is on disk it writes `kept` to stderr; a plugin that does not read that runs it again. With
--wait it then ends in one of three ways: the answer comes (printed as one line, and a receipt dropped), stdin
ends (the agent is gone, and a record says so), or SIGTERM releases it, in silence. With --stay besides, it
goes on waiting after the answer for one of the other two: as long as it is there, the agent is too, and may
still read what was printed.
"""

# ruff: noqa: PTH100, PTH119, PTH120 (pathlib would cost as much as json does)

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import sys
import time

from hermes import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE_BYTES = 1024 * 1024
PATIENCE_S = 10.0
LOOK_EVERY_S = 2.0
LOOKS_A_NUDGE = 15
USAGE = "usage: hermes hook opencode --store DIR --log FILE [--config PATH] [--wait [--stay]]"
OPENING = frozenset({"question.asked", "question.v2.asked", "permission.asked", "tool.execute.before"})
SHAPE: dict[str, type] = {"type": str, "properties": dict, "directory": str, "context": dict}


class _Refused(Exception):
    """What came cannot be kept; the message is the line for the log."""


def main(argv: list[str]) -> int:
    """Run the hook with what follows the word `hook` on the command line; the exit status is always 0.

    Not even wrong usage gets another one: to some agents a hook's status 2 is a veto.
    """
    options = _options(argv)
    if options is None:
        sys.stderr.write(f"{USAGE}\n")
        return 0
    try:
        _run(options)
    except _Refused as refusal:
        _log(options, str(refusal))
        with contextlib.suppress(OSError):
            os.write(2, b"refused\n")  # to try again would be of no use
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        _log(options, f"{error.strerror or type(error).__name__}{place}")
    except Exception as error:  # noqa: BLE001 (the agent is never troubled)
        # Only where and what kind: the message may quote what came.
        _log(options, f"{type(error).__name__} at {_place_of(error)}")
    return 0


def _options(argv: list[str]) -> dict[str, str] | None:
    """Return the command line by name; argparse alone would cost as much as a bare Python."""
    if argv[:1] != ["opencode"]:
        return None
    found = {"agent": argv[0], "state": "not kept:"}
    rest = iter(argv[1:])
    for word in rest:
        if word in {"--wait", "--stay"}:
            found[word.removeprefix("--")] = "yes"
        elif word in {"--store", "--log", "--config"}:
            found[word.removeprefix("--")] = next(rest, "")
        else:
            return None
    return found if found.get("store") and found.get("log") else None


def _run(options: dict[str, str]) -> None:
    with contextlib.suppress(OSError):
        os.setsid()  # no terminal's Ctrl-C or hang-up reaches us; fails where the plugin has done it already
    released = _release_on_sigterm() if "wait" in options else -1
    payload = _payload(_line(0, PATIENCE_S))
    record = spool.record(options["agent"], payload)
    if "wait" in options:
        _wait(options, record, payload, released)
    else:
        _keep(options, record)
        _nudge(options, payload)


# --- what comes in --------------------------------------------------------------------------------------


def _line(stdin: int, patience_s: float) -> bytes:
    """Read one line; the end of stdin ends it too."""
    waiting = select.poll()
    waiting.register(stdin, select.POLLIN)
    end_s = time.monotonic() + patience_s
    data = b""
    while b"\n" not in data:
        left_s = end_s - time.monotonic()
        if left_s <= 0 or not waiting.poll(left_s * 1000):
            raise _Refused(f"no line came within {patience_s:g} s")
        more = os.read(stdin, 65536)
        if not more:
            break
        data += more
        if len(data) > MAX_LINE_BYTES + 1:
            raise _Refused(f"more than {MAX_LINE_BYTES} bytes")
    return data.split(b"\n", 1)[0]


def _payload(line: bytes) -> dict[str, object]:
    try:
        payload = json.loads(line.decode())
    except json.JSONDecodeError as error:
        raise _Refused(f"no JSON (character {error.pos})") from None
    except UnicodeDecodeError:
        raise _Refused("not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise _Refused(f"no JSON that can be read ({type(error).__name__})") from None
    if not isinstance(payload, dict):
        raise _Refused("no JSON object")
    for key, kind in SHAPE.items():
        if not isinstance(payload.get(key, {} if key == "context" else None), kind):
            raise _Refused(f"its {key!r} is missing or of the wrong type")
    return payload


def _keep(options: dict[str, str], record: dict[str, object]) -> None:
    spool.drop(options["store"], record)
    options["state"] = "kept, but then:"  # what the log says of any trouble from here on
    with contextlib.suppress(OSError):
        os.write(2, b"kept\n")


def _nudge(options: dict[str, str], payload: dict[str, object]) -> None:
    """Tell the listener; where there is none and something was opened, start one."""
    if not spool.nudge(options["store"]) and payload["type"] in OPENING:
        _start_listener(options)


def _start_listener(options: dict[str, str]) -> None:
    """Start a listener that is nobody's child and holds nothing of ours: no pipe, no lock, no folder.

    Two that start at once do no harm: the second leaves in silence.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)  # it leaves at once
        return
    try:
        os.setsid()
        if os.fork() == 0:
            _become_listener(options)
    finally:
        os._exit(0)


def _become_listener(options: dict[str, str]) -> None:
    import signal  # noqa: PLC0415 (only here and in the waiter)

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    log = _open_log(options)
    for ours, theirs in ((null, 0), (null, 1), (log, 2)):
        os.dup2(ours, theirs)
    _close_inherited()
    config = ["--config", options["config"]] if options.get("config") else []
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--until-idle", *config]
    os.execv(sys.executable, command)  # noqa: S606 (no shell is wanted)


def _close_inherited() -> None:
    """Close what an agent left open for its children: its port, or the pipes of another waiter."""
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))


# --- waiting --------------------------------------------------------------------------------------------


def _release_on_sigterm() -> int:
    """Return a descriptor that is readable after SIGTERM: between taking and printing it loses nothing."""
    import signal  # noqa: PLC0415 (it loads `enum`; only a waiter needs it)

    _close_inherited()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    released, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGTERM, lambda *_: None)
    return released


def _wait(options: dict[str, str], record: dict[str, object], payload: dict[str, object], out: int) -> None:
    store, agent = options["store"], options["agent"]
    wait_id = spool.wait_id(agent, spool.machine(), _request_id(payload))
    held = spool.hold_wait(store, wait_id)  # before the drop: whoever reads the record finds us waiting
    try:
        _keep(options, record)
        _nudge(options, payload)

        def again() -> None:
            _nudge(options, payload)

        outcome = _outcome(store, wait_id, out, again)
        if outcome == "receipt" and "stay" in options:
            _report(options, outcome, wait_id)
            outcome = _left(out, again)
    finally:
        spool.leave_wait(store, wait_id, held)
    if outcome is not None:
        _report(options, outcome, wait_id)


def _report(options: dict[str, str], outcome: str, wait_id: str) -> None:
    spool.drop(options["store"], spool.record(options["agent"], {"type": outcome, "waitID": wait_id}))
    spool.nudge(options["store"])


def _request_id(payload: dict[str, object]) -> str:
    properties = payload["properties"]
    request_id = properties.get("id") if isinstance(properties, dict) else None
    if not request_id or not isinstance(request_id, str):
        raise _Refused("its 'properties' have no 'id' to wait for")
    return request_id


def _outcome(store: str, wait_id: str, released: int, again: Callable[[], None]) -> str | None:
    """Wait, print the answer, and return the type of the record that tells how it went; None: released."""
    bell = None
    with contextlib.suppress(OSError):  # without a bell there is still the look every two seconds
        bell = spool.wait_socket(store, wait_id)
    try:
        answer = _answer(store, wait_id, released, bell.fileno() if bell else -1, again)
        return None if answer is None else _print(answer)
    except EOFError:
        return "waiter.gone"
    finally:
        if bell:
            spool.close_socket(bell)


def _answer(
    store: str,
    wait_id: str,
    released: int,
    bell: int,
    again: Callable[[], None],
    look_every_s: float = LOOK_EVERY_S,
) -> str | None:
    """Return the answer once it is there, None at SIGTERM; raise EOFError where stdin has ended.

    `again` is called now and then: a listener that died is started anew, or the buttons would be dead.
    """
    looks = 0
    waiting = select.poll()
    for descriptor in (0, released, bell):
        if descriptor >= 0:
            waiting.register(descriptor, select.POLLIN)
    while True:
        answer = spool.take_answer(store, wait_id)
        if answer is not None:
            return answer
        looks += 1
        if looks % LOOKS_A_NUDGE == 0:
            again()
        for descriptor, _ in waiting.poll(look_every_s * 1000):
            if descriptor == released:
                return None
            if not os.read(descriptor, 65536) and descriptor == 0:
                raise EOFError


def _left(released: int, again: Callable[[], None], look_every_s: float = LOOK_EVERY_S) -> str | None:
    """Stay until SIGTERM (None), or until the agent is gone."""
    waiting = select.poll()
    for descriptor in (0, released):
        waiting.register(descriptor, select.POLLIN)
    while True:
        ready = waiting.poll(LOOKS_A_NUDGE * look_every_s * 1000)
        if not ready:
            again()
        for descriptor, _ in ready:
            if descriptor == released:
                return None
            if not os.read(descriptor, 65536):
                return "waiter.gone"


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


# --- trouble --------------------------------------------------------------------------------------------


def _log(options: dict[str, str], sentence: str) -> None:
    """Add one line to the log; where even that fails there is nobody left to tell."""
    when = f"{time.strftime('%Y-%m-%d %H:%M:%S')} WARNING hook {options['agent']}:"
    line = f"{when} {options['state']} {sentence}\n"
    with contextlib.suppress(OSError):
        log = _open_log(options)
        try:
            os.write(log, line.encode("utf-8", "backslashreplace"))
        finally:
            os.close(log)


def _open_log(options: dict[str, str]) -> int:
    spool.make_folder(os.path.dirname(os.path.abspath(options["log"])))
    return os.open(options["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _place_of(error: BaseException) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}" if at else "an unknown place"
