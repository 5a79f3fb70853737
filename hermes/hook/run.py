"""`hermes hook AGENT`: keep the payload of an agent and exit; if the agent asks, stay until the answer is there.

`generic` is for any program, and always waits; `usage.HELP` describes the JSON that it reads and prints. A program
that no longer wants the answer ends the hook with SIGTERM; the question is then closed. It is also closed when the
program that started the hook is gone. If a person answers in the program itself, the program writes a second line. The
first answer wins: the hook prints `{"kind": "desk"}` or the phone's answer.

If `hermes hook generic` is started without --store, the command line takes --store, --log and --config from the
configuration.

The environment of an agent is not trusted: agents load `.env` files and the settings of a project. A hook takes its
settings only from its arguments, and the listener that it starts gets a new environment. What a shape reads from the
environment may do no more than choose between things that are all allowed.

An agent's plugin or settings start the hook, so it must not disturb the agent: it exits with 0, and prints only the
answer on stdout. An error is one line in the log, which quotes nothing from a question. Stderr gets the words "kept"
and "refused" for the plugin; on a terminal it gets sentences instead, and wrong usage has the status 2.

The hook is started as `/absolute/python -I -m hermes hook …`: without -I it would execute a `json.py` of the folder
that it is started in. It loads little, because an agent waits: it takes about twice the time of a bare Python. The
code that waits is in `wait.py`.
"""

# ruff: noqa: PTH116, PTH119 (pathlib would cost as much as json does)

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from functools import partial

from hermes.hook import prompt_files, refusal, spool, starting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hermes.hook.shape import Shape

MAX_LINE_BYTES = 1024 * 1024
MAX_READ_BYTES = 64 * 1024 * 1024  # for agents that also send the results of their tools, which the hook does not keep
PATIENCE_S = 10.0
REFUSED_S = 60.0  # after a listener could not start, hooks start no other one for this long
NOT_KEPT = "not kept:"

NAMES = ("opencode", "generic", "claude-code", "oh-my-pi", "neovate")


class _Refused(Exception):
    """The payload cannot be kept; the message is the line for the log."""


def main(argv: list[str]) -> int:
    """Run the hook with the arguments after the word `hook` on the command line; return the exit status.

    It is 0, except for wrong usage on a terminal, because some agents take status 2 of a hook as a veto; and with
    --prompts, if the agent takes a prompt so.
    """
    if not {"--help", "-h"}.isdisjoint(argv):
        from hermes.hook.usage import HELP  # noqa: PLC0415 (only for a person)

        _print(1, HELP)
        return 0
    options = _options(argv)
    if options is None:
        known = bool(argv) and argv[0] in NAMES
        fault = "the arguments are wrong, or some are missing" if known else f"the agents are {', '.join(NAMES)}"
        _print(2, f"hermes: {fault}; see `hermes hook --help`.\n")
        return 2 if os.isatty(2) else 0
    try:
        _check_owner(options["store"])
        return _wait_for_prompts(options) if "prompts" in options else _run(options)
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
        _refuse(options, f"it could not be kept, by a fault in Hermes; {options['log']} says where")
    return 0


def _print(descriptor: int, words: str) -> None:
    """Write the words, unless an agent has closed this descriptor or nobody reads it."""
    with contextlib.suppress(OSError):
        os.write(descriptor, words.encode())


def shape_of(agent: str) -> Shape:
    """Return the shape of the agent's payloads from the agent's folder; no other agent's folder is loaded."""
    module: Any = __import__(f"hermes.agents.{agent.replace('-', '_')}.shape", fromlist=["SHAPE"])
    shape: Shape = module.SHAPE
    return shape


def _refuse(options: dict[str, str], why: str) -> None:
    """Print why no answer can come, for a program or person that started the hook by hand and need not read the log."""
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
        if word in {"--wait", "--stay", "--prompts"}:
            found[word.removeprefix("--")] = "yes"
        elif word in {"--store", "--log", "--config", "--test-clock"}:
            found[word.removeprefix("--")] = next(rest, "")
        else:
            return None
    return found if found.get("store") and found.get("log") else None


def _run(options: dict[str, str]) -> int:
    agent = shape_of(options["agent"])
    if not agent.by_hand:
        _leave_terminal()
    if "wait" in options or not agent.calls:
        _stay(options, agent)
        return 0
    payload, store = _payload(agent, _line(0, PATIENCE_S)[0]), options["store"]
    if agent.needs_listener(payload) and not (spool.takes_prompts(store) or spool.nudge(store)):
        _tell_plugin(b"kept\n")  # another try is useless
        return 0
    _keep(options, payload)
    _nudge(options, opens=agent.asks(payload))
    return 0


def _check_owner(store: str) -> None:
    """Raise _Refused if the store is another user's, who could neither read nor remove the files of this hook.

    Root could write there: with `sudo`, or in a container that has the home folder of a user.
    """
    with contextlib.suppress(OSError):  # there is none yet, or it cannot be seen
        owner = os.stat(store).st_uid
        if owner != os.geteuid():
            raise _Refused(f"{store} belongs to another user (uid {owner}); run it as that user")


def _leave_terminal() -> None:
    """Keep the terminal's Ctrl-C and hang-up away; this fails if the plugin has done it."""
    with contextlib.suppress(OSError):
        os.setsid()


def _wait_for_prompts(options: dict[str, str]) -> int:
    """Wait for prompts in the session of the payload, and return the exit status."""
    agent, store = shape_of(options["agent"]), options["store"]
    _leave_terminal()
    if agent.prompts is None or not spool.takes_prompts(store):
        return 0
    from hermes.hook import prompt_wait, wait  # noqa: PLC0415 (without prompts no hook needs them)

    released = wait.release_on_signal(by_hand=False)
    line, rest = _line(0, PATIENCE_S, MAX_READ_BYTES)
    _payload(agent, line)  # for its checks; what the agent says beyond that is needed, too
    place = agent.prompts.place(_object(line), os.environ)
    if place is None:
        return 0
    options["state"] = "waiting for prompts:"
    keep, log, stays = partial(_keep_news, options, agent), partial(_log, options), agent.prompts.stays
    parent = int(options["parent"])
    hook = prompt_wait.PromptHook(store, options["agent"], parent, place, stays=stays, keep=keep, log=log)
    return hook.wait(released, rest)


def _keep_news(options: dict[str, str], agent: Shape, line: bytes) -> None:
    """Keep a line of news of a plugin whose hook waits for prompts; a line that cannot be kept is logged."""
    try:
        _keep(options, _payload(agent, line))
    except (_Refused, OSError) as error:
        _log(options, f"news is lost: {error}")


def _stay(options: dict[str, str], agent: Shape) -> None:
    """Keep an ask and wait for its answer; keep news only if a listener runs or an ask is open.

    Otherwise news would pile up.
    """
    from hermes.hook import wait  # noqa: PLC0415 (a hook that only drops a record does not need it)

    released = wait.release_on_signal(by_hand=agent.by_hand)
    line, rest = _line(0, PATIENCE_S, MAX_LINE_BYTES if agent.carried is None else MAX_READ_BYTES)
    if agent.by_hand and line.lstrip().startswith(b"{") and not line.rstrip().endswith(b"}"):
        raise _Refused("its first line is not the whole JSON object; write all of it in one line")
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
        return
    store = options["store"]
    # With prompts on, the listener needs all news of turns, also what happened while it was restarted.
    has_prompts = spool.takes_prompts(store)
    if spool.nudge(store) or spool.has_asks(store) or has_prompts:
        _keep(options, payload)
        spool.nudge(store)
    if has_prompts and agent.prompts is not None and agent.prompts.ends_session(payload):
        name = prompt_files.name_of(options["agent"], spool.machine(store), str(payload["session_id"]))
        prompt_files.end_session(store, name, int(options["parent"]))


def _told(options: dict[str, str], payload: dict[str, Any], word: bytes) -> bool:
    """Keep the answer from the desk; return False, and log why, if `word` is not a JSON object.

    It counts even if it cannot be kept: then the phone hears only that the hook has left.
    """
    try:
        _keep(options, payload | {"desk": _object(word)})
    except _Refused as refused:
        _log(options, f"the answer from the terminal is ignored: {refused}")
        return False
    except OSError as error:
        _log(options, f"the phone does not hear the answer from the terminal: {error.strerror}")
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
    if agent.prompts is not None:
        carried |= agent.prompts.adds(payload, os.environ)
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
            starting.start_listener(options)
    except OSError as error:
        _log(options, f"no listener was started: {error.strerror}")
    return False


# --- trouble --------------------------------------------------------------------------------------------


def _log(options: dict[str, str], sentence: str) -> bool:
    """Append one line to the log and return whether this succeeded; a failure can be reported nowhere else."""
    when = f"{time.strftime('%Y-%m-%d %H:%M:%S')} WARNING hook {options['agent']}:"
    line = f"{when} {options['state']} {sentence}\n"
    with contextlib.suppress(OSError):
        log = starting.open_log(options)
        try:
            return os.write(log, line.encode("utf-8", "backslashreplace")) > 0
        finally:
            os.close(log)
    return False


def _place_of(error: BaseException) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}" if at else "an unknown place"
