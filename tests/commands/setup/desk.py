"""A person who runs `hermes setup` in a terminal: what it shows, what they type, and what is left on the disk."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pexpect
import pyte

from hermes.chat.bot import Bot
from hermes.sandbox.botapi import Chat, RunningBotApi, User, running_botapi
from tests.harness.listeners import end, end_listener
from tests.harness.processes import Proc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANN, BOB, STRANGER = User(1001, "Ann", "ann"), User(1002, "Bob", "bob"), User(6666, "Mallory", "mallory")
TEAM = Chat(-4242, "Team")
PATIENCE_S = 40.0


def _with_usual_signals() -> None:
    """Be a process of a terminal: whoever started the tests may have them ignored (`nohup`, `&`)."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


CTRL_C, CTRL_D = "\x03", "\x04"
OPENCODE = "#!/bin/sh\necho 1.18.33\n"
NO_SYSTEMD = "#!/bin/sh\nexit 1\n"
SYSTEMD = """#!/bin/sh
echo "$*" >>"$HOME/systemctl.log"
case "$*" in
  *ActiveState*)
    echo "ActiveState=$(cat "$HOME/service")"
    echo "MainPID=$(cat "$HOME/pid" 2>/dev/null)"
    printf 'SubState=running\\nStatusText=all well\\nUnitFileState=enabled\\n' ;;
  *stop*) rm -f "$HOME/pid" ;;
  *start*) echo active >"$HOME/service" ;;
esac
"""


class Terminal:
    """`hermes setup` in a terminal of this size; leaving the block ends it."""

    def __init__(self, command: list[str], environ: dict[str, str], cwd: Path, *, columns: int, lines: int) -> None:
        self.raw = b""
        self._screen = pyte.HistoryScreen(columns, lines, history=2000, ratio=1.0)
        self._stream = pyte.ByteStream(self._screen)
        self.child = pexpect.spawn(
            command[0],
            command[1:],
            env=environ,
            cwd=str(cwd),
            dimensions=(lines, columns),
            timeout=PATIENCE_S,
            preexec_fn=_with_usual_signals,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)

    def screen(self) -> str:
        """What stands on the screen, without the blank ends of its lines."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def cells(self) -> list[list[pyte.screens.Char]]:
        """The signs on the screen with their colours."""
        return [[self._screen.buffer[y][x] for x in range(self._screen.columns)] for y in range(self._screen.lines)]

    def said(self) -> str:
        """All that was ever shown, in one line: wherever the terminal broke it."""
        plain = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", self.raw).decode("utf-8", "replace")
        return " ".join(plain.split())

    def sees(self, words: str) -> None:
        """Wait until this was shown after the last keys."""
        end = time.monotonic() + PATIENCE_S
        while words not in self.said():
            assert time.monotonic() < end, f"{words!r} never came:\n{self.screen()}"
            assert self._read(), f"it ended before {words!r} came:\n{self.screen()}"

    def types(self, keys: str) -> None:
        """Type, with Enter behind it; what was shown before does not count any more."""
        self.raw = b""
        self.child.sendline(keys)

    def presses(self, keys: str) -> None:
        """Press keys without Enter."""
        self.raw = b""
        self.child.send(keys)

    def answers(self, question: str, keys: str) -> None:
        """Wait for a question, and type."""
        self.sees(question)
        self.types(keys)

    def ends(self) -> int:
        """Wait for the end; the exit status."""
        end = time.monotonic() + PATIENCE_S
        while self._read():
            assert time.monotonic() < end, f"it does not end:\n{self.screen()}"
        status: int = self.child.wait()
        return status

    def _read(self) -> bool:
        try:
            piece: bytes = self.child.read_nonblocking(65536, 0.1)  # type: ignore[assignment]
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += piece
        self._stream.feed(piece)
        return True

    def link(self) -> tuple[str, str]:
        """Wait for a deep link: its parameter, and the code."""
        self.sees("Waiting for you to ")
        found = re.search(r"\?(start|startgroup)=([A-Za-z0-9_-]{22})", self.raw.decode("utf-8", "replace"))
        assert found is not None, self.screen()
        return found[1], found[2]


@dataclass
class Desk:
    """A person's computer, with a Telegram that is far away."""

    root: Path
    api: RunningBotApi
    columns: int = 80
    lines: int = 24

    @property
    def config(self) -> Path:
        """Where the configuration is."""
        return self.root / ".config" / "hermes" / "config.toml"

    @property
    def store(self) -> Path:
        """Where the store is."""
        return self.root / ".local" / "state" / "hermes"

    @property
    def environ(self) -> dict[str, str]:
        """The environment of whatever runs there."""
        return {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.root),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            **{name: text for name, text in os.environ.items() if name.startswith("COVERAGE")},
        }

    def has(self, program: str, script: str) -> None:
        """Put a program on the PATH."""
        place = self.root / "bin" / program
        place.parent.mkdir(exist_ok=True)
        place.write_text(script)
        place.chmod(0o755)

    def has_opencode(self) -> None:
        """Put an OpenCode on the PATH."""
        self.has("opencode", OPENCODE)

    def has_systemd(self) -> None:
        """Let systemd seem to run here: it does nothing but say that all is well."""
        self.has("systemctl", SYSTEMD)
        self.has("loginctl", "#!/bin/sh\necho yes\n")
        (self.root / "service").write_text("inactive\n")

    def systemd_did(self) -> list[str]:
        """What systemd was asked to do."""
        log = self.root / "systemctl.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.removeprefix("--user ") for line in lines if " show " not in line]

    def has_config(
        self, more: str = "", *, chat_id: int = ANN.id, token: str = "", users: tuple[int, ...] = (ANN.id,)
    ) -> bytes:
        """Write a configuration; its bytes."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            f'# my own\n[telegram]  # the bot\ntoken = "{token or self.api.token}"  # from him\nchat_id = {chat_id}\n'
            f'users = {list(users)}\napi_base = "{self.api.base_url}"\n{more}'
        )
        self.config.chmod(0o600)
        return self.config.read_bytes()

    def left(self) -> list[str]:
        """The names of all files in the configuration's folder."""
        return sorted(path.name for path in self.config.parent.iterdir()) if self.config.parent.exists() else []

    def command(self, *options: str) -> list[str]:
        """The command line."""
        return [sys.executable, "-m", "hermes", "setup", "--api-base", self.api.base_url, *options]

    def setup(self, *options: str, **environ: str) -> Terminal:
        """Run it in a terminal, on a machine that is to stay alone."""
        return self.terminal(self.command("--one-machine", *options), **environ)

    def terminal(self, command: list[str], **environ: str) -> Terminal:
        """Run a command in a terminal."""
        return Terminal(command, self.environ | environ, self.root, columns=self.columns, lines=self.lines)

    def unattended(self, *options: str, stdin: Path | None = None, **environ: str) -> tuple[int, str]:
        """Run it without a terminal; its status, and all that it said."""
        return self.alone(self.command(*options), stdin=stdin, **environ)

    def alone(self, words: list[str], *, stdin: Path | None = None, **environ: str) -> tuple[int, str]:
        """Run a command without a terminal; its status, and all that it said."""
        command = ["/bin/sh", "-c", 'exec "$@" <"$0"', str(stdin or os.devnull), *words]
        name = f"setup-{secrets.token_hex(4)}"
        with Proc(
            command, cwd=self.root, environ=self.environ | environ, log_dir=self.root / "logs", name=name
        ) as process:
            return process.wait(PATIENCE_S), process.output()

    def write(self, text: str, user: User = ANN, chat: int | None = None) -> None:
        """Let somebody write to the bot."""
        self.api.control.write(text, user_id=user.id, chat_id=user.id if chat is None else chat)

    def told(self, chat: int = ANN.id) -> list[str]:
        """What the bot said in a chat."""
        with suppress(LookupError):
            return [one.text for one in self.api.control.messages(chat) if one.from_bot]
        return []

    async def waiting(self) -> list[str]:
        """The texts that still wait at Telegram for whoever listens next (and the data of taps)."""
        async with Bot(self.api.token, api_base=self.api.base_url) as bot:
            updates = await bot.updates(None, 0)
        return [
            one["callback_query"]["data"] if "callback_query" in one else one.get("message", {}).get("text", "")
            for one in updates
        ]

    @contextmanager
    def clock(self) -> Iterator[tuple[str, str]]:
        """The option that bends the clock of what runs there; `advance` moves it."""
        self._tell_clock(0)
        yield "--test-clock", str(self.root / "clock.json")

    def advance(self, seconds: float) -> None:
        """Let the wall clock of what runs there jump."""
        self._tell_clock(seconds)

    def _tell_clock(self, ahead_s: float) -> None:
        told = {"epoch_s": time.time(), "steady_s": time.monotonic(), "ahead_s": ahead_s, "pace": 1}
        fresh = self.root / "clock.new"
        fresh.write_text(json.dumps(told))
        fresh.replace(self.root / "clock.json")

    def stop_listener(self) -> None:
        """End the listener of this desk, whoever started it.

        A hook that waits for a slow start begins a second one, which waits to take over.
        """
        end_listener(self.store)
        end("listen", self.root, signal.SIGTERM)


def gives_token(terminal: Terminal, desk: Desk) -> None:
    """Paste the token."""
    terminal.answers("Paste the token", desk.api.token)
    terminal.sees("@hermes_demo_bot answers")


def pairs(terminal: Terminal, desk: Desk) -> None:
    """Come as far as the approval, and say yes."""
    gives_token(terminal, desk)
    terminal.answers("Use a group?", "")
    desk.write(f"/start {terminal.link()[1]}")
    terminal.answers("Let Ann answer your agents?", "y")


@contextmanager
def a_desk(root: Path) -> Iterator[Desk]:
    """A desk whose bot nobody else has."""
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    with running_botapi(token=token, users=(ANN, BOB, STRANGER), chats=(Chat(ANN.id), TEAM)) as api:
        desk = Desk(root, api)
        desk.has("systemctl", NO_SYSTEMD)
        try:
            yield desk
        finally:
            desk.stop_listener()
