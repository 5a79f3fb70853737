"""`hermes hook AGENT`: keep the payload of an agent and exit; if the agent asks, stay until the answer is there.

`generic` is for any program, and always waits; `usage.HELP` describes the JSON that it reads and prints. A program
that no longer wants the answer ends the hook with SIGTERM; the question is then closed. It is also closed when the
program that started the hook is gone. If a person answers in the program itself, the program writes a second line. The
first answer wins: the hook prints `{"kind": "desk"}` or the phone's answer.

If `hermes hook generic` is started without --store, the command line takes --store, --log and --config from the
configuration.

The environment of an agent is not trusted: agents load `.env` files and the settings of a project. A hook takes its
settings only from its arguments, and the listener that it starts gets a new environment.

An agent's plugin or settings start the hook, so it must not disturb the agent: it exits with 0, and prints only the
answer on stdout. An error is one line in the log, which quotes nothing from a question. Stderr gets the words "kept"
and "refused" for the plugin; on a terminal it gets sentences instead, and wrong usage has the status 2.

The hook is started as `/absolute/python -I -m hermes hook …`: without -I it would execute a `json.py` of the folder
that it is started in. It loads little, because an agent waits: it takes about twice the time of a bare Python. The
code that waits is in `wait.py`.
"""

# ruff: noqa: PTH100, PTH104, PTH119, PTH120 (pathlib would cost as much as json does)

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time

from hermes.hook import refusal, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.hook.shape import Shape

MAX_LINE_BYTES = 1024 * 1024
MAX_READ_BYTES = 64 * 1024 * 1024  # for agents that also send the results of their tools, which the hook does not keep
PATIENCE_S = 10.0
REFUSED_S = 60.0  # after a listener could not start, hooks start no other one for this long
LOG_BYTES = 5_000_000  # a log of this size is renamed before the next line
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NOT_KEPT = "not kept:"

NAMES = ("opencode", "generic", "claude-code", "oh-my-pi", "neovate")


class _Refused(Exception):
    """The payload cannot be kept; the message is the line for the log."""


def main(argv: list[str]) -> int:
    """Run the hook with the arguments after the word `hook` on the command line; return the exit status.

    It is 0, except for wrong usage on a terminal: some agents take status 2 of a hook as a veto.
    """
    if not {"--help", "-h"}.isdisjoint(argv):
        from hermes.hook.usage import HELP  # noqa: PLC0415 (only for a person)

        sys.stdout.write(HELP)
        return 0
    options = _options(argv)
    if options is None:
        known = bool(argv) and argv[0] in NAMES
        fault = "the arguments are wrong, or some are missing" if known else f"the agents are {', '.join(NAMES)}"
        sys.stderr.write(f"hermes: {fault}; see `hermes hook --help`.\n")
        return 2 if os.isatty(2) else 0
    try:
        _run(options)
    except _Refused as refused:
        _log(options, str(refused))
        _refuse(options, str(refused))
        _tell_plugin(b"refused\n")  # another try is useless
    except OSError as error:
        why = f"{error.strerror or 'an unknown fault'} ({error.filename or options['store']})"
        _log(options, why)
        _refuse(options, f"it could not be kept: {why}")
    except Exception as error:  # noqa: BLE001 (no error may reach the agent)
        # Log only the type and the place: the message may quote the payload.
        _log(options, f"{type(error).__name__} at {_place_of(error)}")
    return 0


def shape_of(agent: str) -> Shape:
    """Return the shape of the agent's payloads from the agent's folder; no other agent's folder is loaded."""
    module: Any = __import__(f"hermes.agents.{agent.replace('-', '_')}.shape", fromlist=["SHAPE"])
    shape: Shape = module.SHAPE
    return shape


def _refuse(options: dict[str, str], why: str) -> None:
    """Print why nothing was asked, for a program or person that started the hook by hand, and need not read the log."""
    if options["state"] == NOT_KEPT:
        with contextlib.suppress(OSError):
            if shape_of(options["agent"]).by_hand:
                os.write(1, json.dumps({"kind": "refused", "error": why}).encode() + b"\n")
            elif os.isatty(2):
                os.write(2, f"hermes: nothing was asked: {why}\n".encode())


def _options(argv: list[str]) -> dict[str, str] | None:
    """Return the options by name, or None for wrong usage.

    argparse is not used, because it alone would cost as much time as a bare Python.
    """
    if not argv or argv[0] not in NAMES:
        return None
    found = {"agent": argv[0], "state": NOT_KEPT, "parent": str(os.getppid())}
    rest = iter(argv[1:])
    for word in rest:
        if word in {"--wait", "--stay"}:
            found[word.removeprefix("--")] = "yes"
        elif word in {"--store", "--log", "--config", "--test-clock"}:
            found[word.removeprefix("--")] = next(rest, "")
        else:
            return None
    return found if found.get("store") and found.get("log") else None


def _run(options: dict[str, str]) -> None:
    agent = shape_of(options["agent"])
    if not agent.by_hand:
        with contextlib.suppress(OSError):
            os.setsid()  # keeps the terminal's Ctrl-C and hang-up away; fails if the plugin has done it
    if "wait" in options or not agent.calls:
        _stay(options, agent)
        return
    payload = _payload(agent, _line(0, PATIENCE_S)[0])
    if agent.needs_listener(payload) and not spool.nudge(options["store"]):
        _tell_plugin(b"kept\n")  # another try is useless
        return
    _keep(options, payload)
    _nudge(options, opens=agent.asks(payload))


def _stay(options: dict[str, str], agent: Shape) -> None:
    """Keep an ask and wait for its answer; keep news only if a listener runs or an ask is open.

    Otherwise news would pile up.
    """
    from hermes.hook import wait  # noqa: PLC0415 (a hook that only drops a record does not need it)

    released = wait.release_on_signal(by_hand=agent.by_hand)
    line, rest = _line(0, PATIENCE_S, MAX_LINE_BYTES if agent.carried is None else MAX_READ_BYTES)
    payload = _payload(agent, line)
    asks = agent.asks(payload)
    if asks or agent.calls:
        options["machine"] = spool.machine(options["store"])
        hook = wait.Hook(
            options["agent"],
            options["store"],
            int(options["parent"]),
            machine=options["machine"],
            config=options.get("config", ""),
            ours=not agent.calls,
            patient=agent.has_desk(payload),
            log=lambda sentence: _log(options | {"state": "no room:"}, sentence),
        )
        why = wait.wait(
            hook,
            _request_id(payload if "id" in payload else payload["properties"]),
            released,
            keep=lambda: _keep(options, payload),
            nudge=lambda: _nudge(options, opens=asks),
            told=lambda word: _told(options, payload, word),
            rest=rest,
            stay="stay" in options,
        )
        if why:
            options["state"] = NOT_KEPT
            raise _Refused(why)
    elif spool.nudge(options["store"]) or spool.has_asks(options["store"]):
        _keep(options, payload)
        spool.nudge(options["store"])


def _told(options: dict[str, str], payload: dict[str, Any], word: bytes) -> bool:
    """Keep the answer from the desk; return False, and log why, if `word` is not a JSON object."""
    try:
        _keep(options, payload | {"desk": _object(word)})
    except _Refused as refused:
        _log(options, f"the answer from the terminal is ignored: {refused}")
        return False
    return True


# --- what comes in --------------------------------------------------------------------------------------


def _line(stdin: int, patience_s: float, most: int = MAX_LINE_BYTES) -> tuple[bytes, bytes]:
    """Read one line, which the end of stdin ends too; return it and the bytes that were read after it.

    Raises _Refused: no line came within `patience_s`, or more than `most` bytes came.
    """
    wait = select.poll()
    wait.register(stdin, select.POLLIN)
    end_s = time.monotonic() + patience_s
    data = bytearray()
    more = b""
    while b"\n" not in more:
        left_s = end_s - time.monotonic()
        if left_s <= 0 or not wait.poll(left_s * 1000):
            raise _Refused(f"no line came within {patience_s:g} s")
        more = os.read(stdin, 65536)
        if not more:
            break
        data += more
        if len(data) > most + 1:
            raise _Refused(f"more than {most} bytes")
    line, _, rest = bytes(data).partition(b"\n")
    return line, rest


def _object(line: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(line.decode())
    except json.JSONDecodeError as error:
        raise _Refused(f"not JSON (column {error.colno}: {error.msg})") from None
    except UnicodeDecodeError:
        raise _Refused("not UTF-8") from None
    except (ValueError, RecursionError):
        raise _Refused("not JSON that can be read (a number of too many digits, or too deep)") from None
    if not isinstance(payload, dict):
        raise _Refused("not a JSON object")
    return payload


def _payload(agent: Shape, line: bytes) -> dict[str, Any]:
    payload = _object(line)
    for key, kind in agent.keys.items():
        if not isinstance(payload.get(key, {} if key == "context" else None), kind):
            raise _Refused(f"its {key!r} is missing or of the wrong type")
    if agent.carried is None:
        return payload
    carried = {key: payload[key] for key in agent.carried if key in payload}
    if len(line) > MAX_LINE_BYTES and _size(carried) > MAX_LINE_BYTES:
        raise _Refused(f"more than {MAX_LINE_BYTES} bytes")
    # Each hook is a separate ask. Its id is made here, so that a payload cannot take the id of another ask.
    return {"id": os.urandom(8).hex()} | carried if agent.asks(payload) else carried


def _size(payload: dict[str, Any]) -> int:
    """Return the bytes of a payload without escapes, as an agent writes it: an escape turns two bytes into six."""
    return len(json.dumps(payload, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _request_id(request: object) -> str:
    request_id = request.get("id") if isinstance(request, dict) else None
    if not request_id or not isinstance(request_id, str):
        raise _Refused("its 'properties' have no 'id' to wait for")
    return request_id


def _keep(options: dict[str, str], payload: dict[str, Any]) -> str:
    named = {"machine": options["machine"]} if "machine" in options else {}
    path = spool.drop(options["store"], spool.record(options["agent"], payload) | named)
    if options["state"] == NOT_KEPT:
        options["state"] = "kept, but then:"  # how each later line in the log begins
        _tell_plugin(b"kept\n")
    return path


def _tell_plugin(word: bytes) -> None:
    """Write a word to the plugin that started the hook; a person at a terminal could not make sense of it."""
    if not os.isatty(2):
        with contextlib.suppress(OSError):
            os.write(2, word)


def _nudge(options: dict[str, str], *, opens: bool) -> bool:
    """Nudge the listener and return whether one runs; if none runs and the payload `opens` an ask, start one.

    If a listener could not start in the last `REFUSED_S`, and the configuration is as it was, no other one is started:
    a hook that waits reads the reason and exits.
    """
    store = options["store"]
    try:
        if spool.nudge(store):
            return True
        if opens and not refusal.read(store, options.get("config", ""), within_s=REFUSED_S):
            refusal.remove(store)
            _start_listener(options)
    except OSError as error:
        _log(options, f"no listener was started: {error.strerror}")
    return False


def _start_listener(options: dict[str, str]) -> None:
    """Start a listener as a daemon (double fork) that inherits no pipe, no lock and no working folder.

    Two listeners that start at once do no harm: the second exits and says nothing.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)  # the child exits at once
        return
    try:
        os.setsid()
        if os.fork() == 0:
            _become_listener(options)
    except OSError as error:
        _log(options, f"no listener was started: {error.strerror}")
    finally:
        os._exit(0)


def _become_listener(options: dict[str, str]) -> None:
    import signal  # noqa: PLC0415 (only here, and in wait.py)

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--until-idle"]
    for name in ("store", "log", "config", "test-clock"):
        if options.get(name):
            command += [f"--{name}", os.path.abspath(options[name])]
    os.chdir("/")
    null = log = os.open(os.devnull, os.O_RDWR)
    with contextlib.suppress(OSError):  # a listener is useful without a log, too
        log = _open_log(options)
    for ours, theirs in ((null, 0), (null, 1), (log, 2)):
        os.dup2(ours, theirs)
    spool.close_inherited()
    os.execve(sys.executable, command, built_environment(os.environ))  # noqa: S606 (no shell is wanted)


def built_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a process that the hook starts: only LANG, LC_* and TZ come from `environ`."""
    import pwd  # noqa: PLC0415 (only here)

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = "/"  # the user of a container may have no entry; code that needs the home then reports missing files
    kept = {name: text for name, text in environ.items() if name in {"LANG", "TZ"} or name.startswith("LC_")}
    return {"HOME": home, "PATH": PATH, **kept}


# --- trouble --------------------------------------------------------------------------------------------


def _log(options: dict[str, str], sentence: str) -> bool:
    """Append one line to the log and return whether this succeeded; a failure can be reported nowhere else."""
    when = f"{time.strftime('%Y-%m-%d %H:%M:%S')} WARNING hook {options['agent']}:"
    line = f"{when} {options['state']} {sentence}\n"
    with contextlib.suppress(OSError):
        log = _open_log(options)
        try:
            return os.write(log, line.encode("utf-8", "backslashreplace")) > 0
        finally:
            os.close(log)
    return False


def _open_log(options: dict[str, str]) -> int:
    """Open the log for appending; rename it first if it has reached `LOG_BYTES`, as the listener does."""
    path, flags = options["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT
    spool.make_folder(os.path.dirname(os.path.abspath(path)))
    log = os.open(path, flags, 0o600)
    if os.fstat(log).st_size < LOG_BYTES:
        return log
    os.close(log)
    for older, newer in ((f"{path}.2", f"{path}.1"), (f"{path}.1", path)):
        with contextlib.suppress(OSError):
            os.rename(newer, older)
    return os.open(path, flags, 0o600)


def _place_of(error: BaseException) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}" if at else "an unknown place"
