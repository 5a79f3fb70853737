"""What can go wrong on the way, each provoked: a sentence says what, and what to do."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from hermes.config import reading as configuration
from hermes.storage import process_lock
from tests.commands.setup.desk import ANN, PATIENCE_S, STRANGER, Desk, gives_token, pairs
from tests.harness.processes import CuttableProxy, Proc, until
from tests.stores import a_store

WRONG = "7000000001:AAF-this-token-belongs-to-nobody-at-all"

# What another thread receives sets the same mark as what comes just before a read, and ends that read as little.
_A_SIGNAL_BEFORE_THE_READ = """
import os, signal, sys, threading
from pathlib import Path
from hermes.commands.setup.wizard import told_to_leave

def receive():
    while Path(f"/proc/self/task/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        pass
    signal.pthread_kill(threading.get_ident(), int(sys.argv[1]))

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, which may have started the tests, ignores it
try:
    with told_to_leave():
        threading.Thread(target=receive, daemon=True).start()
        input("Well? ")
except KeyboardInterrupt:
    print("left")
"""


def test_a_token_of_another_form_is_never_sent(desk: Desk) -> None:
    """It is looked at before any request: that nobody is there to be asked does not come out."""
    with desk.setup("--api-base", "http://127.0.0.1:9") as terminal:
        for typed in ("BotFather said hello", "7000000001:short", f"token {WRONG}"):
            terminal.answers("Paste the token", typed)
            terminal.sees("That is not a bot token; one looks like 123456789:AAF…")
            assert "cannot be reached" not in terminal.said()


def test_a_token_that_telegram_does_not_know(desk: Desk) -> None:
    """401: it says where to copy it again, and asks anew; what was typed is never shown."""
    with desk.setup() as terminal:
        terminal.answers("Paste the token", WRONG)
        terminal.sees("Telegram does not know this token; copy it again from @BotFather")
        assert WRONG.encode() not in terminal.raw
        gives_token(terminal, desk)


def test_telegram_is_away_at_first(desk: Desk) -> None:
    """It can be tried again; a no is status 1."""
    with CuttableProxy(int(desk.api.base_url.rpartition(":")[2])) as proxy:
        proxy.cut()
        with desk.setup("--api-base", proxy.url) as terminal:
            terminal.answers("Paste the token", desk.api.token)
            terminal.sees("Telegram cannot be reached")
            proxy.restore()
            terminal.answers("Try again?", "")
            terminal.sees("@hermes_demo_bot answers")
        proxy.cut()
        with desk.setup("--api-base", proxy.url) as terminal:
            terminal.answers("Paste the token", desk.api.token)
            terminal.answers("Try again?", "n")
            assert terminal.ends() == 1
            assert desk.api.token.encode() not in terminal.raw


def test_telegram_goes_away_while_the_code_is_shown(desk: Desk) -> None:
    """The wait says so, and goes on by itself."""
    with (
        CuttableProxy(int(desk.api.base_url.rpartition(":")[2])) as proxy,
        desk.setup("--api-base", proxy.url) as terminal,
    ):
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        proxy.cut()
        terminal.sees("Telegram cannot be reached")
        desk.write(f"/start {code}")
        proxy.restore()
        terminal.sees("Ann (id 1001) opened the link")


def set_webhook(desk: Desk) -> None:
    """Point the bot at a web address."""
    httpx.post(f"{desk.api.base_url}/bot{desk.api.token}/setWebhook", data={"url": "https://example.org/x"})


def test_a_webhook_is_removed_if_that_is_wanted(desk: Desk) -> None:
    """And nothing that waits is thrown away with it."""
    set_webhook(desk)
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        desk.write(f"/start {terminal.link()[1]}")
        terminal.answers("Remove the webhook?", "")
        terminal.answers("Let Ann answer your agents?", "y")
        assert terminal.ends() == 0
    assert desk.api.control.state().webhook == ""
    (call,) = desk.api.control.calls("deleteWebhook")
    assert call.params.get("drop_pending_updates") != "true"


def test_a_webhook_that_is_to_stay(desk: Desk) -> None:
    """Then this bot is not for Hermes: status 1, and everything as it was."""
    set_webhook(desk)
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        terminal.answers("Remove the webhook?", "n")
        assert terminal.ends() == 1
        assert "make another bot with @BotFather" in terminal.said()
    assert desk.api.control.state().webhook == "https://example.org/x"
    assert desk.left() == []


def test_another_program_takes_the_messages(desk: Desk) -> None:
    """409: it is said while it lasts, and the wait goes on."""
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        desk.api.control.fault(method="getUpdates", status=409, times=3)
        terminal.answers("Use a group?", "")
        terminal.sees(
            "Another program takes this bot's messages, perhaps Hermes of another user or computer: stop it there"
        )
        desk.write(f"/start {terminal.link()[1]}")
        terminal.sees("Ann (id 1001) opened the link")


def test_a_token_that_is_withdrawn_while_the_code_is_shown(desk: Desk) -> None:
    """Waiting would be for ever: status 1."""
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        desk.api.control.fault(method="getUpdates", status=401, times=9)
        terminal.answers("Use a group?", "")
        assert terminal.ends() == 1
        assert "Telegram does not accept the token" in terminal.said()


@pytest.fixture
def listener(desk: Desk) -> Proc:
    """A listener of this desk, with a configuration."""
    desk.has_config()
    command = [sys.executable, "-I", "-m", "hermes", "listen", "--config", str(desk.config)]
    process = Proc(command, cwd=desk.root, environ=desk.environ, log_dir=desk.root / "logs", name="listener")
    desk.api.phone.wait_for_poll(30)
    return process


def test_our_own_listener_makes_way_and_comes_back(desk: Desk, listener: Proc) -> None:
    """It is asked for, since it would take the code away; afterwards one runs with the new settings."""
    with listener, desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "y")
        terminal.sees(f"pid {listener.pid}")
        terminal.answers("Let it pause?", "")
        code = terminal.link()[1]
        assert listener.wait() == 0
        desk.write(f"/start@hermes_demo_bot {code}", chat=-4242)
        terminal.answers("let Ann answer?", "y")
        terminal.answers("May somebody else", "")
        assert terminal.ends() == 0
        assert "The listener was started again" in terminal.said()
        desk.api.phone.wait_for_poll(30)
    assert configuration.load(desk.config, environ={}).telegram.chat_id == -4242


def comes_back(desk: Desk) -> None:
    """Wait for a listener that polls, and has said who it is."""
    desk.api.phone.wait_for_poll(60)
    until(
        lambda: (found := a_store(desk.store).home.listener()) is not None and found.pid,
        60,
        "the listener's name",
    )


def test_our_own_listener_comes_back_after_ctrl_c(desk: Desk, listener: Proc) -> None:
    """Buttons on the phone are never dead for long, and the configuration is as it was."""
    before = desk.config.read_bytes()
    with listener, desk.setup() as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "")
        terminal.answers("Let it pause?", "")
        terminal.link()
        terminal.presses("\x03")
        assert terminal.ends() == 130
        comes_back(desk)
    assert desk.config.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGHUP, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "prompt", [pytest.param("Waiting for you to press Start", marks=pytest.mark.nightly), "Let Ann"]
)
def test_our_own_listener_comes_back_after_a_signal(
    desk: Desk, listener: Proc, number: signal.Signals, prompt: str
) -> None:
    """A terminal that is closed while a code is shown, or a question: as Ctrl-C."""
    with listener, desk.setup() as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "")
        terminal.answers("Let it pause?", "")
        code = terminal.link()[1]
        if prompt == "Let Ann":
            desk.write(f"/start {code}")
            terminal.sees("Let Ann answer your agents? [y/N]")
        terminal.child.kill(number)
        assert terminal.ends() == 130
        assert "Traceback" not in terminal.said()
        comes_back(desk)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_a_prompt_and_its_read(number: signal.Signals) -> None:
    """It is not kept waiting for the next key."""
    command = [sys.executable, "-c", _A_SIGNAL_BEFORE_THE_READ, str(int(number))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
        try:
            asking.wait(PATIENCE_S)
        finally:
            asking.kill()
        assert asking.stdout is not None
        assert asking.stdout.read() == "Well? left\n"


def test_a_yes_that_was_typed_ahead_lets_nobody_in(desk: Desk) -> None:
    """Nobody had read who it is about."""
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        terminal.types("y")
        desk.write(f"/start {code}", STRANGER)
        terminal.answers("Let Mallory answer your agents? [y/N]", "")
        terminal.sees("Nobody was let in.")


def test_our_own_listener_may_stay(desk: Desk, listener: Proc) -> None:
    """Then nobody is paired: status 3, with who holds the bot."""
    with listener, desk.setup() as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "")
        terminal.answers("Let it pause?", "n")
        assert terminal.ends() == 3
        assert f"(pid {listener.pid}) holds the bot" in terminal.said()
        assert listener.alive()


def test_two_setups_at_once(desk: Desk) -> None:
    """The second one does not stop the first: status 3."""
    with (
        process_lock.hold_bot(int(desk.api.token.partition(":")[0]), "/elsewhere", "hermes setup"),
        desk.setup() as terminal,
    ):
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        assert terminal.ends() == 3


def test_a_folder_that_cannot_be_written(desk: Desk) -> None:
    """That is said before anything is asked: status 2."""
    (desk.root / "file").touch()
    with desk.setup("--config", str(desk.root / "file" / "config.toml")) as terminal:
        assert terminal.ends() == 2
        assert f"{desk.root / 'file'} is not a folder that you may write to" in terminal.said()
        assert "Paste the token" not in terminal.said()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write in")
def test_a_folder_that_refuses_in_the_end(desk: Desk) -> None:
    """One sentence, and another try; without one status 1."""
    with desk.setup(
        "--config", "/proc/hermes/config.toml", "--no-agents", "--no-prompts", "--no-service", "--no-test"
    ) as terminal:
        if os.geteuid() != 0:
            assert terminal.ends() == 2
            return
        pairs(terminal, desk)
        terminal.sees("nothing was saved in /proc/hermes")
        terminal.answers("Try again?", "n")
        assert terminal.ends() == 1


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit, which only Linux has")
def test_a_full_disk(desk: Desk) -> None:
    """What was there stays byte for byte; once there is room, the answers that were given are enough."""
    before = desk.has_config("[questions]\nttl = '1h'\n", chat_id=ANN.id + 1)
    with desk.setup("--chat", str(ANN.id), "--no-agents", "--no-prompts", "--no-service") as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.sees("test question at the end?")
        _let_write(terminal.child.pid, 0)
        terminal.types("n")
        terminal.sees("nothing was saved in")
        terminal.sees("Try again?")
        assert desk.config.read_bytes() == before
        assert desk.left() == ["config.toml"]
        _let_write(terminal.child.pid, resource.RLIM_INFINITY)
        terminal.types("")
        assert terminal.ends() == 0
    assert desk.config.read_text().count(f"chat_id = {ANN.id}\n") == 1


def _let_write(pid: int | None, limit: int) -> None:
    assert pid is not None
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))  # type: ignore[attr-defined,unused-ignore]


def test_a_chat_that_the_bot_may_not_write_to(desk: Desk) -> None:
    """The configuration is saved, and what is missing is said: status 1."""
    desk.has_config()
    with desk.setup(
        "--chat", "-99", "--user", "5", "--no-agents", "--no-prompts", "--no-service", "--no-test"
    ) as terminal:
        terminal.answers("Keep this bot?", "")
        assert terminal.ends() == 1
        assert "The bot cannot write to the chat -99" in terminal.said()
        assert "Add @hermes_demo_bot to the group." in terminal.said()
        assert "Saved, but not all of it works yet" in terminal.said()
