"""The command line: what it does, its exit status, and one clear sentence for each error."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import shlex
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import hermes
from hermes.agents.generic.shape import SHAPE
from hermes.clock import Clock
from hermes.commands import cli, listening, loading
from hermes.commands.install import AGENTS
from hermes.config.reading import Followed
from hermes.hook import refusal, spool
from hermes.hook.run import NAMES
from hermes.sandbox.botapi import RunningBotApi, running_botapi
from hermes.sandbox.opencode2.server import running_opencode2
from hermes.storage import process_lock
from tests.at_once import at_once
from tests.harness.processes import Proc, until
from tests.listening import a_request
from tests.storage.store_process import an_entry
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A Bot API, with a bot of its own."""
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with running_botapi(token=token) as running:
        yield running


@pytest.fixture
def config(api: RunningBotApi, tmp_path: Path) -> Path:
    """A configuration file."""
    path = tmp_path / "config.toml"
    path.write_text(
        f'[telegram]\ntoken = "{api.token}"\nchat_id = 1001\nusers = [1001]\napi_base = "{api.base_url}"\n'
        f'[store]\npath = "{tmp_path / "store"}"\n[log]\nfile = "{tmp_path / "hermes.log"}"\n'
        '[[opencode]]\nurl = "http://127.0.0.1:9"\npassword = "hunter2-of-old"\n'
    )
    path.chmod(0o600)
    return path


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """Leave the logging of this process as it was: a command sets it up for itself."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    loud = {name: logging.getLogger(name).level for name in list(root.manager.loggerDict)}
    yield
    for handler in [one for one in root.handlers if one not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
    for name, was in loud.items():
        logging.getLogger(name).setLevel(was)


def run(*arguments: str) -> int:
    """Run a command in this process; its exit status."""
    with pytest.raises(SystemExit) as left:
        cli.main(list(arguments))
    return int(left.value.code or 0)


# --- words --------------------------------------------------------------------------------------------------------


def test_the_version_and_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """0 for both; wrong usage is 2."""
    assert run("--version") == 0
    assert capsys.readouterr().out == f"hermes {hermes.__version__}\n"
    assert run("--help") == 0
    assert "Answer your coding agent's questions from your phone." in capsys.readouterr().out
    assert run("listen", "--sideways") == cli.WRONG
    assert run() == cli.WRONG


@pytest.mark.parametrize("command", ["listen", "reap", "status", "log"])
def test_a_wrong_configuration_is_one_sentence(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2: the file, the key, what is wrong, what would be right."""
    path = tmp_path / "config.toml"
    path.write_text('[telegram]\ntoken = "1:x"\nusers = []\n')
    assert run(command, "--config", str(path)) == cli.WRONG
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"hermes: {path}, [telegram] ")
    assert run(command, "--config", str(tmp_path / "none.toml")) == cli.WRONG
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("command", [(), ("setup",), ("listen",), ("store",), ("store", "add"), ("demo",)])
def test_a_flag_takes_no_value(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Its help names none, also that of --help."""
    assert run(*command, "--help") == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert "bool" not in shown.lower()


def test_the_setup_names_every_agent_that_it_connects(capsys: pytest.CaptureFixture[str]) -> None:
    """In its help."""
    assert run("setup", "--help") == 0
    told = capsys.readouterr().out
    assert [agent.name for agent in AGENTS if agent.name not in told] == []


def test_a_piece_that_nobody_knows(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, and those that are known."""
    assert run("install", "skynet", "--config", str(config)) == cli.WRONG
    assert run("uninstall", "skynet") == cli.WRONG
    known = ", ".join(agent.name for agent in AGENTS)
    assert capsys.readouterr().err.splitlines() == [
        f"hermes: 'skynet' is nothing that Hermes can install; it knows {known}, service, reap.",
        f"hermes: 'skynet' is nothing that Hermes can uninstall; it knows {known}, service, reap, all.",
    ]


# --- listening ----------------------------------------------------------------------------------------------------


def test_a_listener_leaves_when_nothing_is_open(config: Path, tmp_path: Path) -> None:
    """Status 0; its log is a file, with no secret in it."""
    assert run("listen", "--until-idle", "--idle-after-s", "0", "--log-json", "--config", str(config)) == 0
    lines = [json.loads(line) for line in (tmp_path / "hermes.log").read_text().splitlines()]
    assert any("listening for bot" in line["message"] for line in lines)
    assert "hunter2" not in (tmp_path / "hermes.log").read_text()


def test_a_listener_stops_at_a_signal(config: Path, api: RunningBotApi) -> None:
    """Status 0: that is how it is meant to end."""

    def stop() -> None:
        until(lambda: api.control.state().polling, 60, "a poll")
        os.kill(os.getpid(), signal.SIGTERM)

    stopper = threading.Thread(target=stop)
    stopper.start()
    assert run("listen", "--config", str(config)) == 0
    stopper.join()


def test_a_second_listener_leaves_with_three(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says who holds the store; one that a hook started leaves in silence, and a reaper has nothing to do."""
    with a_store(tmp_path / "store").home.hold("hermes listen, on the sofa"):
        assert run("listen", "--config", str(config)) == cli.TAKEN
        said = capsys.readouterr().err
        assert f"hermes listen, on the sofa (pid {os.getpid()}) holds the store" in said
        assert run("listen", "--until-idle", "--config", str(config)) == 0
        assert run("reap", "--config", str(config)) == 0
        assert "A listener is at work" in capsys.readouterr().out


def test_a_reaper_whose_bot_serves_another_store_says_so(
    config: Path, api: RunningBotApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """That listener does nothing for this store: it is not done, and who holds the bot is named."""
    bot_id = int(api.token.partition(":")[0])
    with process_lock.hold_bot(bot_id, "/elsewhere", "hermes listen, store /elsewhere"):
        assert run("reap", "--config", str(config)) == cli.TAKEN
    told = capsys.readouterr()
    assert "A listener is at work" not in told.out
    assert f"hermes listen, store /elsewhere (pid {os.getpid()}) holds the bot {bot_id}" in told.err


def test_one_that_a_hook_started_waits_for_the_one_that_is_leaving(
    config: Path, api: RunningBotApi, tmp_path: Path
) -> None:
    """Something lies in the inbox, which the other may not take in any more: then it does."""
    payload: dict[str, object] = {"type": "question.asked", "properties": a_request(), "directory": "/"}
    spool.drop(tmp_path / "store", spool.record("opencode", payload))
    held = a_store(tmp_path / "store").home.hold("one that leaves")

    def leave() -> None:
        threading.Event().wait(0.2)
        held.release()
        until(lambda: [one for one in api.control.messages() if "Which database?" in one.text], 60, "the question")
        os.kill(os.getpid(), signal.SIGTERM)

    leaver = threading.Thread(target=leave)
    leaver.start()
    assert run("listen", "--until-idle", "--config", str(config)) == 0
    leaver.join()


def test_a_bot_that_is_held_for_long_is_said(config: Path, api: RunningBotApi, tmp_path: Path) -> None:
    """Another store's listener has the bot, and the inbox is not empty: an error in the log, and no endless try."""
    spool.drop(tmp_path / "store", spool.record("opencode", {"type": "receipt", "waitID": "0123"}))
    waits: list[float] = []

    async def sleep(pause_s: float) -> None:
        waits.append(pause_s)

    with process_lock.hold_bot(int(api.token.partition(":")[0]), "/elsewhere", "hermes listen of another store"):
        loaded = loading.load(config, log_json=False, console=False)
        made = listening.Listening(loaded, Followed(config, environ={}), Clock())
        asyncio.run(listening.serve_until_idle(made, 0.0, tries=2, sleep=sleep))
    assert waits == [listening.HELD_PAUSE_S]
    assert "another store" in refusal.read(tmp_path / "store"), "hooks that wait must not wait for ever"
    assert (
        "questions that agents asked are kept in the inbox, and hermes listen of another store"
        in (tmp_path / "hermes.log").read_text()
    )


@pytest.mark.parametrize("words", [("listen",), ("lock",), ("ask", "Go?")])
def test_a_store_that_cannot_be_used_is_status_one(
    words: tuple[str, ...], config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence: which folder, and what to do. Nothing is written into it."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "thesis.tex").write_text("")
    assert run(*words, "--config", str(config)) == cli.FAILED
    assert "holds other things; set store.path to a folder of its own" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["thesis.tex"]


def test_reaping_is_done_and_over(config: Path, tmp_path: Path) -> None:
    """Status 0, also where no agent answers."""
    assert run("reap", "--config", str(config)) == 0
    assert (tmp_path / "store" / "pending").is_dir()


def test_an_agent_that_does_not_run_is_no_trouble_for_a_reaper(config: Path, tmp_path: Path) -> None:
    """Many a machine has no OpenCode 2; the log says that none was found, and does not warn."""
    config.write_text(f'{config.read_text()}[opencode2]\nfile = "{tmp_path / "service.json"}"\n')
    assert run("reap", "--config", str(config)) == 0
    told = (tmp_path / "hermes.log").read_text()
    assert " INFO hermes.listener.loops: server opencode2: " in told
    assert " WARNING hermes.listener.loops: server opencode2: " not in told


def test_a_reaper_whose_token_is_refused_fails(
    config: Path, api: RunningBotApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 1 and a sentence, so that its timer shows it; all is well again with the first run that gets through."""
    api.control.fault(method="*", status=401, description="Unauthorized", times=99)
    assert run("reap", "--config", str(config)) == cli.FAILED
    assert capsys.readouterr().err.splitlines()[-1] == (
        "hermes: Telegram does not accept the bot's token: look at telegram.token and telegram.api_base"
    )
    store, bot_id = a_store(tmp_path / "store"), int(api.token.partition(":")[0])
    assert "does not accept" in at_once(store.load_chat(bot_id)).trouble
    api.control.clear_faults()
    assert run("reap", "--config", str(config)) == 0
    assert at_once(store.load_chat(bot_id)).trouble == ""


def test_stopping_where_nobody_listens_is_no_error(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the first listener, and after the last."""
    assert run("stop", "--config", str(config)) == 0
    assert capsys.readouterr().out == "Nobody listens.\n"


def test_a_locked_phone_is_unlocked_once(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The words say whether there was anything to unlock."""
    assert run("reap", "--config", str(config)) == 0
    at_once(a_store(tmp_path / "store").lock_phone())
    assert (tmp_path / "store" / "locked").stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    assert run("unlock", "--config", str(config)) == 0
    assert "Unlocked: taps and texts count again." in capsys.readouterr().out
    assert run("unlock", "--config", str(config)) == 0
    assert "It was not locked." in capsys.readouterr().out


# --- looking ------------------------------------------------------------------------------------------------------


def test_a_phone_is_locked_at_the_computer(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `/lock` does it, with a listener or without, and before the first question."""
    assert run("lock", "--config", str(config)) == 0
    assert at_once(a_store(tmp_path / "store").is_phone_locked())
    assert run("lock", "--config", str(config)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Locked: no tap, text or prompt counts until `hermes unlock`.",
        "It was locked already.",
    ]


def test_a_lock_that_another_listener_does_not_see_is_no_lock(
    config: Path, api: RunningBotApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of another store has the bot: whoever has lost the phone must not believe that it is locked."""
    bot_id = int(api.token.partition(":")[0])
    with process_lock.hold_bot(bot_id, tmp_path / "other", process_lock.named("hermes listen", tmp_path / "other")):
        assert run("lock", "--config", str(config)) == cli.TAKEN
        told = capsys.readouterr()
        assert told.out == ""
        assert f"only {tmp_path / 'store'} is locked. hermes listen, store {tmp_path / 'other'} (pid" in told.err
        assert at_once(a_store(tmp_path / "store").is_phone_locked())
        with a_store(tmp_path / "store").home.hold("hermes listen, which is ours"):
            assert run("lock", "--config", str(config)) == 0


def test_status_for_people_and_for_machines(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether anybody listens or not."""
    assert run("status", "--config", str(config)) == 0
    assert "nobody listens" in capsys.readouterr().out
    assert run("status", "--json", "--config", str(config)) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["listener"]["running"] is False
    assert told["servers"][0]["trouble"]


def test_log_for_people_and_for_machines(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last ones, or all; what cannot be read is said beside, on standard error."""
    assert run("log", "--config", str(config)) == 0
    assert capsys.readouterr().out.startswith("Nothing was asked (what is settled is kept for 7 days")
    store = a_store(tmp_path / "store")
    at_once(store.open())
    for number in range(22):
        at_once(store.create(an_entry(f"aaaa22{number:02}", asked_s=1000.0 + number)))
    assert run("log", "--config", str(config)) == 0
    told = capsys.readouterr().out
    assert told.startswith("2 earlier not shown: hermes log -n 22\n\n")
    assert told.count("waits for you") == 20
    assert run("log", "-n", "3", "--json", "--config", str(config)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["aaaa2219", "aaaa2220", "aaaa2221"]
    (store.home.root / "pending/aaaa2200.json").write_bytes(b"")
    assert run("log", "--since", "2h", "--json", "--config", str(config)) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 21
    assert said.err == f"hermes: cannot be read: {store.home.root / 'pending/aaaa2200.json'}\n"
    assert run("log", "--since", "once", "--config", str(config)) == cli.WRONG
    assert "neither a length of time" in capsys.readouterr().err


def test_monitoring_is_told_in_one_line(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1 where nobody listens, 0 where a listener does; an agent that is away is a remark."""
    assert run("status", "--check", "--config", str(config)) == cli.FAILED
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("nobody is listening; Telegram was not reached yet; opencode: ")
    with Proc(
        [sys.executable, "-I", "-m", "hermes", "listen", "--config", config],
        cwd=tmp_path,
        environ=os.environ,
        log_dir=tmp_path,
        name="listener",
    ):
        until(lambda: run("status", "--check", "--config", str(config)) == 0, 60, "a good word")
    assert capsys.readouterr().out.splitlines()[-1].startswith("all is well, 0 open; opencode: ")


def test_idle_is_well_unless_a_service_should_run(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connected agent starts a listener when it asks; somebody who installed a service wants one that always runs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("status", "--check", "--config", str(config)) == cli.FAILED
    assert run("install", "opencode", "--config", str(config)) == 0
    assert run("status", "--check", "--config", str(config)) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("all is well, 0 open")
    unit = tmp_path / "xdg/systemd/user/hermes.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    assert run("status", "--check", "--config", str(config)) == cli.FAILED


# --- agents -------------------------------------------------------------------------------------------------------


def test_install_and_uninstall(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin is put in place and taken away again, in the folder that the environment names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("install", "opencode", "--config", str(config)) == 0
    assert list((tmp_path / "xdg").rglob("*.js"))
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/xdg/opencode/plugin/hermes-telegram-phone.js is installed.",
        "Restart OpenCode to load it.",
        "No `opencode` was found on this PATH. Hermes is ready for when OpenCode is there.",
    ]
    assert run("uninstall", "opencode") == 0
    assert not (tmp_path / "xdg").exists()


def test_an_opencode_2_that_runs_is_named(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its program need not be on the PATH; the plugin is put in place for version 1 all the same."""
    for name, value in {"HOME": tmp_path, "XDG_CONFIG_HOME": tmp_path / "xdg", "XDG_STATE_HOME": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", str(tmp_path))
    with running_opencode2(file=tmp_path / "opencode" / "service.json") as agent:
        assert run("install", "opencode", "--config", str(config)) == 0
    assert f"An OpenCode 2 runs (process {agent.pid}). It needs no plugin" in capsys.readouterr().out
    assert list((tmp_path / "xdg").rglob("*.js"))


def test_options_are_for_the_agents_that_know_them(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code's permission prompts; for anything else one sentence, and nothing is put anywhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert run("install", "claude-code", "--permissions", "--config", str(config)) == 0
    settings = tmp_path / ".claude" / "settings.json"
    assert "SubagentStop" in settings.read_text()
    assert run("install", "claude-code", "--no-permissions", "--config", str(config)) == 0
    assert "SubagentStop" not in settings.read_text()
    assert run("uninstall", "claude-code") == 0
    assert not settings.exists()
    capsys.readouterr()
    assert run("install", "opencode", "--headless", "--config", str(config)) == cli.WRONG
    assert run("install", "reap", "--no-permissions", "--config", str(config)) == cli.WRONG
    assert capsys.readouterr().err.splitlines() == [
        "hermes: --headless is nothing that opencode knows; it is for claude-code, oh-my-pi.",
        "hermes: --permissions is nothing that reap knows; it is for claude-code.",
    ]
    assert not list(tmp_path.rglob("*.js"))


def test_a_service_without_a_service_manager(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 1, one sentence that says what to do instead, and nothing is written; there is nothing to take away."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    for what in ("service", "reap"):
        assert run("install", what, "--config", str(config)) == cli.FAILED
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("hermes: systemd does not run here for this user")
        assert "run `hermes " in line
        assert not (tmp_path / ".config").exists()
        assert run("uninstall", what) == 0
        assert "is not there; nothing was changed." in capsys.readouterr().out


def test_hook_is_handed_on(capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever follows is its own business; without a terminal it leaves with 0."""
    assert run("hook", "--what", "-x") == 0
    told = "hermes: the agents are opencode, generic, claude-code, oh-my-pi, neovate; see `hermes hook --help`.\n"
    assert capfd.readouterr().err == told


@pytest.mark.parametrize("words", [("hook", "--help"), ("hook", "-h"), ("hook", "generic", "--help")])
def test_the_help_of_the_hook_has_the_json(
    words: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the setup, too."""
    monkeypatch.setenv("HERMES_CONFIG", str(tmp_path / "none"))
    assert run(*words) == 0
    told = capfd.readouterr().out
    assert told.startswith("Usage: hermes hook generic [--config PATH]\n")
    assert [name for name in NAMES if name not in told] == []
    assert [key for key in SHAPE.carried or () if key not in told] == []


def test_the_configuration_is_found_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is, whether it is there, and an example that can be loaded."""
    monkeypatch.setenv("HERMES_CONFIG", str(tmp_path / "mine.toml"))
    cli.app(["config"], standalone_mode=False)
    assert capsys.readouterr().out == f"{tmp_path / 'mine.toml'} (not there yet: `hermes setup` writes it)\n"
    cli.app(["config", "--example"], standalone_mode=False)
    (tmp_path / "mine.toml").write_text(capsys.readouterr().out)
    assert (tmp_path / "mine.toml").read_text() == loading.shipped("config.example.toml").read_text()
    cli.app(["config"], standalone_mode=False)
    assert capsys.readouterr().out == f"{tmp_path / 'mine.toml'}\n"


@pytest.mark.parametrize("words", [("config",), ("status",), ("setup", "--yes"), ("uninstall", "all")])
def test_a_folder_that_cannot_be_seen_is_no_defect(words: tuple[str, ...], tmp_path: Path) -> None:
    """A home with a name that no disk takes: its files count as absent. A folder that is closed to us is the same."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / ("x" * 300))}
    command = [sys.executable, "-I", "-m", "hermes", *words]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr
    assert (ended.stdout + ended.stderr).strip()


NOBODY = """
import pwd
def getpwuid(uid):
    raise KeyError(uid)
pwd.getpwuid = getpwuid
from hermes.__main__ import main
main()
"""


@pytest.mark.parametrize("words", [("status",), ("listen",), ("setup", "--yes"), ("uninstall", "all"), ("config",)])
def test_a_user_without_a_home_is_told_to_name_one(words: tuple[str, ...], tmp_path: Path) -> None:
    """As in a container: no HOME, and the system does not know the user."""
    command = [sys.executable, "-I", "-c", NOBODY, *words]
    ended = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
    told = "hermes: this user has no home folder here; set HOME, and run it again.\n"
    assert (ended.returncode, ended.stderr) == (2, told)


@pytest.mark.parametrize(
    "words",
    [
        *[(*words, "--config", "mine.toml") for words in (("status",), ("config",), ("doctor",), ("ask", "Go?"))],
        ("setup", "--token-file", "token"),
    ],
)
def test_a_current_folder_that_was_removed_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    """A relative path leads nowhere there."""
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'rmdir "$PWD"; exec "{sys.executable}" -I -m hermes {shlex.join(words)}'
    ended = subprocess.run(["bash", "-c", line], cwd=gone, capture_output=True, text=True, check=False)
    told = "hermes: the current folder was removed; go to another one, and run it again.\n"
    assert (ended.returncode, ended.stderr) == (2, told)


@pytest.mark.parametrize("word", ["--wiat", "--config"])
def test_what_hook_generic_does_not_know_is_not_passed_over(
    word: str, config: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says where its usage is, and does not read standard input."""
    monkeypatch.setenv("HERMES_CONFIG", str(config))
    assert run("hook", "generic", word) == 0
    assert "the arguments are wrong, or some are missing; see `hermes hook --help`." in capfd.readouterr().err


@pytest.mark.parametrize("text", [None, "[telegram]\nusers = []\n"], ids=["missing", "broken"])
def test_a_program_is_told_of_the_configuration_as_of_everything_else(text: str | None, tmp_path: Path) -> None:
    """By a line of JSON and the status 0, as if it had given --store: some agents take another status as a veto."""
    place = tmp_path / "config.toml"
    if text is not None:
        place.write_text(text)
    command = [sys.executable, "-I", "-m", "hermes", "hook", "generic", "--config", str(place)]
    ended = subprocess.run(command, input=b'{"questions": []}\n', capture_output=True, check=False)
    told = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr, told["kind"]) == (0, b"", "refused")
    assert told["error"].startswith(str(place))


INTERRUPTED = """
from hermes.commands import cli
@cli.app.command()
def nap():
    raise KeyboardInterrupt
cli.main(["nap"])
"""


def test_an_interrupt_before_anything_runs(config: Path, tmp_path: Path) -> None:
    """Ctrl-C while it still loads, or where nothing catches it: 130, as shells expect."""
    with Proc(
        [sys.executable, "-c", INTERRUPTED], cwd=tmp_path, environ=os.environ, log_dir=tmp_path, name="nap"
    ) as process:
        assert process.wait() == 130


LOADED = """
import atexit, sys
atexit.register(lambda: print(*(f"{name}:{module is None}" for name, module in sys.modules.items())))
from hermes.__main__ import main
main()
"""
BY_FEW = {"rich", "pygments", "click"}


def loaded(*words: str) -> dict[str, str]:
    """The modules of a process that runs this command, and "True" for those that are hidden."""
    told = subprocess.run([sys.executable, "-I", "-c", LOADED, *words], capture_output=True, text=True, check=False)
    return dict(word.split(":") for word in told.stdout.split() if word.count(":") == 1)


def test_a_listener_loads_nothing_that_only_draws(config: Path) -> None:
    """It keeps for years whatever it loads: no tables, no colours of source code, no ciphers."""
    found = loaded("reap", "--config", str(config))
    assert "hermes.listener.daemon" in found
    assert not BY_FEW & set(found)
    assert found["cryptography"] == "True"


def test_a_command_that_needs_no_listener_loads_none() -> None:
    """It starts in a blink: no client of the Bot API, no store, no agent's messages."""
    found = loaded("--version")
    of_ours = {"hermes.listener.daemon", "hermes.storage.codec", "hermes.agents.claude_code.adapter"}
    assert not (of_ours | {"telegram", "httpx"} | BY_FEW) & set(found)
