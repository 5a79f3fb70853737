"""Trouble around Hermes: the environment of its hooks, the host name, and its folders, files and sockets."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Final

from tests.faults import hostname

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.faults.round import Round
    from tests.faults.world import World

    Lift = Callable[[], None]

SEEN_S: Final = 25.0
"""A question whose hook has to start the listener is on the phone within this, on the wall."""
REFUSED_S: Final = 20.0
"""A program whose question nobody can ever see hears so within this, on the wall."""
ELSEWHERE: Final = "/nonexistent/hermes"
QUESTION: Final = {"questions": [{"question": "Does anybody hear this?", "options": [{"label": "Yes"}]}]}


def hostile_environments(world: World) -> Mapping[str, Mapping[str, str]]:
    """Return what an agent may have loaded from a repository, or stand in, by a short name."""
    trap = world.trap.url
    named = world.clock_file.with_name("trap.toml")
    named.write_text(f'[telegram]\ntoken = "1:a"\nchat_id = 1\nusers = [1]\napi_base = "{trap}"\n')
    named.chmod(0o600)
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), trap)
    folders = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "HOME", "TMPDIR")
    return {
        "another Bot API": {"HERMES_TELEGRAM__API_BASE": trap},
        "a proxy": proxies | {name.lower(): trap for name in proxies},
        "a setting that does not exist": {"HERMES_FOO__BAR": "1"},
        "another configuration": {"HERMES_CONFIG": str(named)},
        "no configuration": {"HERMES_CONFIG": ELSEWHERE},
        "other folders": dict.fromkeys(folders, ELSEWHERE),
        "no certificates": {"SSL_CERT_FILE": ELSEWHERE, "SSL_CERT_DIR": ELSEWHERE},
        "another clock": {"HERMES_TEST_CLOCK": ELSEWHERE},
        "another store and chat": {"HERMES_STORE__PATH": ELSEWHERE, "HERMES_TELEGRAM__CHAT_ID": "1"},
        "a Python of its own": {"PYTHONPATH": ELSEWHERE, "PYTHONHOME": ELSEWHERE, "PYTHONSTARTUP": ELSEWHERE},
    }


def hostile_environment(play: Round) -> None:
    """Let a hook with an environment like these start the listener: its question is seen all the same."""
    world, usual = play.world, play.world.environ
    environments = hostile_environments(world)
    chosen = play.rng.sample(sorted(environments), play.rng.randint(1, 3))
    world.environ = {**usual, **{name: text for one in chosen for name, text in environments[one].items()}}
    world.signal_listeners(signal.SIGKILL)
    person = play.ask_more("env", "single", "terminal")

    def is_seen() -> bool:
        return bool(person.first_seen_s)

    if not play.meanwhile(is_seen, SEEN_S):
        play.violations.append(f"the question of a hook with {' and '.join(chosen)} around it was seen by nobody")
    world.environ = usual


def another_hostname(play: Round) -> Lift:
    """A laptop joins another network, or somebody renames it; what starts after that has another one."""
    hostname.change(f"machine-{play.number}-{play.rng.randrange(10**6)}")
    match play.rng.choice(["all go on", "hooks start again", "the listener starts again"]):
        case "hooks start again":
            for pid in play.world.terminal.hooks():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        case "the listener starts again":
            play.world.signal_listeners(signal.SIGTERM)
            play.meanwhile(lambda: not play.world.listeners(), SEEN_S)
            play.world.start()
    # Its hook and its server tell of the same question.
    play.ask_more("name", "single", "both")

    def lift() -> None:
        if play.rng.random() < 0.5:
            hostname.change("machine")

    return lift


def no_socket(play: Round) -> None:
    """A logout, or a cleaner of temporary files, takes the listener's socket away."""
    if play.world.listeners():
        play.wants_socket = True
        play.world.socket.unlink(missing_ok=True)


def no_store(play: Round) -> None:
    """Somebody removes the state folder while Hermes runs. What is open is known to the listener alone."""
    if play.world.listeners():
        play.world.planted.clear()
        shutil.rmtree(play.world.stage.store, ignore_errors=True)


def no_configuration(play: Round) -> None:
    """No listener can start: a program that asks hears that it was refused, and does not wait for ever."""
    world = play.world
    content = world.stage.config.read_bytes()
    _spoil(play)
    world.signal_listeners(signal.SIGKILL)
    hook = [*world.programs.command, "generic", *world.programs.options]
    with subprocess.Popen(
        hook,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=world.environ,
        cwd="/",
    ) as asking:
        assert asking.stdin is not None
        assert asking.stdout is not None
        asking.stdin.write(json.dumps(QUESTION).encode() + b"\n")
        asking.stdin.flush()
        left = play.meanwhile(lambda: asking.poll() is not None, REFUSED_S)
        asking.kill()
        said = asking.stdout.read().decode()
    if not left:
        play.violations.append("a program waits in silence, though no listener can start without a configuration")
    elif '"refused"' not in said:
        play.violations.append(f"a program that nobody can hear was told {said!r}")
    _restored(world, content)


def bad_configuration(play: Round) -> Lift:
    """Somebody is in the middle of editing it; a listener that runs goes on as it was."""
    content = play.world.stage.config.read_bytes()
    _spoil(play)
    return lambda: _restored(play.world, content)


def _spoil(play: Round) -> None:
    config = play.world.stage.config
    match play.rng.choice(["removed", "cut", "unknown"]):
        case "removed":
            config.unlink()
        case "cut":
            config.write_bytes(config.read_bytes()[:40])
        case _:
            config.write_bytes(config.read_bytes() + b"\n[telegramm]\n")


def _restored(world: World, content: bytes) -> None:
    world.stage.config.write_bytes(content)
    world.stage.config.chmod(0o600)


def no_quarantine(play: Round) -> None:
    """What is damaged cannot be put away; it holds up nothing else, for as long as that lasts."""
    store = play.world.stage.store
    place = store / "quarantine"
    if place.is_dir():
        place.chmod(0o500)
        play.lasts(lambda: place.chmod(0o700))
    else:
        place.write_bytes(b"")
        play.lasts(lambda: place.unlink(missing_ok=True))
    _lay(play, store / "inbox", play.rng.randbytes(40))
    if play.rng.random() < 0.5:
        play.world.plant(f"stuck{play.number}.json", play.rng.randbytes(40))


def folders_for_files(play: Round) -> None:
    """Folders stand among the entries and among the records, under names that files have."""
    for room in ("pending", "inbox"):
        place = play.world.stage.store / room / f"{play.rng.randrange(10**8):020d}-1-ab.json"
        with contextlib.suppress(OSError):
            place.mkdir(parents=True)
            (place / "inside").write_bytes(b"")
        play.lasts(lambda place=place: shutil.rmtree(place, ignore_errors=True))  # type: ignore[misc]


def _lay(play: Round, inbox: Path, content: bytes) -> None:
    with contextlib.suppress(OSError):
        inbox.mkdir(mode=0o700, exist_ok=True)
        (inbox / f"{play.rng.randrange(10**8):020d}-1-ab.json").write_bytes(content)
