"""The stage of a scene: a local Bot API, a configuration, and Hermes as processes of its own."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from hermes.commands.cli import TAKEN
from hermes.sandbox.botapi import RunningBotApi, running_botapi
from hermes.sandbox.botapi.serving import SpawnedBotApi, spawn_botapi
from hermes.sandbox.botapi.world import Chat, User
from tests.harness.home import VERSIONS
from tests.harness.listeners import end, left_behind
from tests.harness.processes import Proc, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from hermes.sandbox.phone import Phone
    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.opencode import OpenCode

Json = dict[str, Any]
NEWEST = pytest.mark.parametrize("opencode_version", VERSIONS[:1], indirect=True)
"""For what is between Hermes and the phone alone: it makes no difference which OpenCode asks."""
KEEPING_TIME = frozenset({"listen", "reap", "hook"})
"""The commands that take a clock of a test's."""
PATIENCE_S = 60.0
"""Long enough for an agent to start on a machine that does much else."""
ANN, BOB, STRANGER = User(1001, "Ann", "ann"), User(1002, "Bob", "bob"), User(6666, "Mallory", "mallory")


def question(
    text: str = "Which database should I use?",
    labels: Sequence[str] = ("PostgreSQL", "SQLite", "Redis"),
    *,
    header: str = "Database",
    multiple: bool = False,
) -> Json:
    """One question in the shape that the model writes."""
    options = [{"label": label, "description": f"about {label}"} for label in labels]
    asked: Json = {"question": text, "header": header, "options": options}
    return {**asked, "multiple": True} if multiple else asked


def asking(*questions: Json, say: str = "", call_id: str | None = None) -> Json:
    """One step of the scripted model: ask these questions."""
    step: Json = {"tool": "question", "args": {"questions": list(questions)}, "say": say}
    return {**step, "call_id": call_id} if call_id else step


COLOUR = question("Which colour?", ("Red", "Blue"), header="Colour")
SIZES = question("Which sizes?", ("S", "M", "L"), header="Sizes", multiple=True)
NAME = question("Which name?", ("Ada", "Bea"), header="Name")


@dataclass
class Stage:
    """Hermes between a phone and its agents; `root` holds configuration, store and log."""

    root: Path
    api: RunningBotApi | SpawnedBotApi
    chat_id: int = ANN.id
    users: tuple[int, ...] = (ANN.id,)
    servers: list[Json] = field(default_factory=list)
    settings: dict[str, Json] = field(default_factory=dict)
    listener: Proc | None = None
    variables: dict[str, str] = field(default_factory=dict)
    test_clock: Path | None = None
    prefix: tuple[str, ...] = ()
    folder: str = "store"
    """Where the store is, below `root`."""
    unattended: bool = False
    """Whether a hook may start a listener here that outlives the test; it is ended with the stage."""
    _starts: int = 0

    @property
    def phone(self) -> Phone:
        """The person's phone."""
        return self.api.phone

    @property
    def store(self) -> Path:
        """The store's folder."""
        return self.root / self.folder

    @property
    def config(self) -> Path:
        """The configuration file, as last written."""
        return self.root / "config.toml"

    @property
    def log(self) -> Path:
        """The log that listener and hooks share."""
        return self.root / "hermes.log"

    def connect(self, server: OpenCode, *, url: str = "", name: str = "", **extra: str) -> None:
        """Name an OpenCode server in the configuration."""
        self.servers.append({"name": name or f"oc-{server.version}", "url": url or server.url, **extra})

    def write_config(self, **sections: Json) -> None:
        """Write the configuration; `sections` are laid over what the stage says by itself."""
        self.settings.update(sections)
        telegram = {
            "token": self.api.token,
            "chat_id": self.chat_id,
            "users": list(self.users),
            "api_base": self.api.base_url,
        }
        tables: dict[str, Json] = {
            "store": {"path": str(self.store)},
            "log": {"level": "debug", "file": str(self.log)},
            **self.settings,
            "telegram": telegram | self.settings.get("telegram", {}),
        }
        lines = [f"[{name}]\n{_toml(table)}" for name, table in tables.items()]
        lines += [f"[[opencode]]\n{_toml(server)}" for server in self.servers]
        self.config.write_text("\n".join(lines), encoding="utf-8")
        self.config.chmod(0o600)

    def command(self, *arguments: str) -> list[str]:
        """The command line of Hermes."""
        bent = ["--test-clock", str(self.test_clock)] if self.test_clock and arguments[0] in KEEPING_TIME else []
        return [*self.prefix, sys.executable, "-I", "-m", "hermes", *arguments, *bent]

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Proc:
        """Start Hermes with these arguments."""
        self._starts += 1
        return Proc(
            self.command(*arguments),
            cwd=self.root,
            environ={**self.environ(), **(environ or {})},
            log_dir=self.root / "logs",
            name=f"{arguments[0]}-{self._starts}",
        )

    def environ(self) -> dict[str, str]:
        """The environment of Hermes' processes: nothing of the machine's own but the path."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.root), "LANG": "C.UTF-8", **self.variables}

    def start(self, *, settle: bool = True, **sections: Json) -> Proc:
        """Start the listener, and wait until it polls and follows every server."""
        self.write_config(**sections)
        self._take_over()
        assert self.listener is not None
        if settle:
            self._serve()
            self.phone.wait_for_poll()
            for server in self.servers:
                self.listener.wait_line(f"server {server['name']}: connected")
        return self.listener

    def _take_over(self) -> None:
        """Start the listener; one that a waiting hook started meanwhile is ended first."""
        end("listen", self.root, signal.SIGTERM)
        self.listener = self.run("listen", "--config", str(self.config))

    def _serve(self) -> None:
        """Wait until the stage's own listener serves, however often a waiting hook's listener is there before it."""

        def serves() -> bool:
            assert self.listener is not None
            ended = not self.listener.alive()  # looked at first: its last words are not missed
            if "listening for bot" in self.listener.output():
                return True
            if ended and self.listener.wait() != TAKEN:
                raise RuntimeError(f"{self.listener!r} does not serve; output:\n{self.listener.output()[-2000:]}")
            if ended:
                self._take_over()
            return False

        until(serves, PATIENCE_S, "a listener of the stage's own")

    def install(self, install: Callable[..., object], environ: Mapping[str, str], **switches: bool) -> None:
        """Connect an agent, by its own `install`, to this stage."""
        paths = {"config_path": self.config, "store": self.store, "log": self.log}
        install(environ=environ, python=sys.executable, **paths, **switches)

    def kill(self) -> None:
        """`kill -9` of the listener. From now on a hook that waits may start one of its own."""
        assert self.listener is not None
        self.unattended = True
        self.listener.sigkill()

    def stop(self) -> int:
        """SIGTERM, and the exit status."""
        assert self.listener is not None
        return self.listener.sigterm()

    def entries(self) -> list[Json]:
        """What is pending in the store."""
        found: list[Json] = []
        for file in sorted((self.store / "pending").glob("*.json")):
            with suppress(FileNotFoundError):  # it has just left
                found.append(json.loads(file.read_text())["entry"])
        return found

    def wait_phase(self, phase: str) -> Json:
        """Wait until the one pending entry is in this phase."""

        def reached() -> Json:
            found = [entry for entry in self.entries() if entry["state"]["phase"] == phase]
            assert found, [entry["state"]["phase"] for entry in self.entries()]
            return found[0]

        return until(reached, PATIENCE_S, f"an entry in phase {phase}")

    def wait_closed(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait until nothing is open any more."""

        def closed() -> bool:
            assert not self.entries(), [(entry["id"], entry["state"]["phase"]) for entry in self.entries()]
            return True

        until(closed, timeout_s, "nothing open")

    def ended(self, text: str, timeout_s: float = PATIENCE_S) -> ShownMessage:
        """Wait for a message with this text and no buttons."""
        return self._message(text, timeout_s, has_buttons=False)

    def asked(self, text: str, timeout_s: float = PATIENCE_S) -> ShownMessage:
        """Wait for a message with this text and buttons."""
        return self._message(text, timeout_s, has_buttons=True)

    def _message(self, text: str, timeout_s: float, *, has_buttons: bool) -> ShownMessage:
        def shown() -> ShownMessage | None:
            found = [message for message in self.phone.shown(chat=self.chat_id) if text in message.text]
            return next((message for message in found if bool(message.rows) == has_buttons), None)

        what = f"{'a question' if has_buttons else 'an end'} with {text!r}"
        return self.phone.wait(shown, timeout_s, what=what, chat=self.chat_id)

    def line_of(self, written: int, *texts: str) -> ShownMessage:
        """Wait until the line of the prompt that this message began has all of `texts`, and buttons."""

        def shown() -> ShownMessage | None:
            found = [message for message in self.phone.shown(chat=self.chat_id) if message.reply_to == written]
            return next((one for one in found if one.rows and all(text in one.text for text in texts)), None)

        return self.phone.wait(shown, PATIENCE_S, what=f"a line of message {written} with {texts}", chat=self.chat_id)

    def told(self, text: str) -> ShownMessage:
        """Wait for a notice with this text and buttons, and until Hermes knows its id: an earlier tap is too early."""
        message = self.asked(text)

        def known() -> bool:
            assert f"is message {message.message_id}\n" in self.log.read_text(), "the notice is not noted yet"
            return True

        until(known, PATIENCE_S, "the note of a notice")
        return message

    def noted(self, message: ShownMessage) -> ShownMessage:
        """Wait until Hermes knows the id of this message: a plain text that comes before is too early for its ask."""

        def known() -> bool:
            assert message.message_id in [entry["phone"]["message_id"] for entry in self.entries()]
            return True

        until(known, PATIENCE_S, "the message noted")
        return message

    def turned(self, message: ShownMessage, *texts: str, button: str = "") -> ShownMessage:
        """Wait until this message says all of `texts` (and has a button that says `button`)."""

        def drawn() -> ShownMessage | None:
            now = self.phone.message(message.message_id, chat=message.chat_id)
            words = [word for row in now.labels for word in row]
            there = all(text in now.text for text in texts) and (not button or any(button in word for word in words))
            return now if there else None

        what = f"message {message.message_id} with {texts} and {button!r}"
        return self.phone.wait(drawn, PATIENCE_S, what=what, chat=message.chat_id)

    def gone(self, message: ShownMessage) -> None:
        """Wait until this message is deleted."""

        def deleted() -> bool:
            return self.phone.message(message.message_id, chat=message.chat_id).deleted

        self.phone.wait(deleted, PATIENCE_S, what=f"no more {message.text!r}", chat=message.chat_id)

    def over(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait until nothing is open; then no button is left on the phone, and nothing foreign is a link there."""
        self.wait_closed(timeout_s)
        for message in self.phone.messages(chat=self.chat_id):
            assert not message.from_bot or message.deleted or not message.rows, message.text
            assert not message.from_bot or not message.link_preview
            found = {entity.type for version in message.versions for entity in version.entities}
            # The one tag is Hermes' own: the short code.
            assert not message.from_bot or found <= {
                "bold",
                "italic",
                "code",
                "pre",
                "expandable_blockquote",
                "hashtag",
            }, found

    def close(self) -> None:
        """End what still runs.

        Raises:
            AssertionError: a listener was left that is not the stage's own, and the stage is not `unattended`.
        """
        end("hook", self.root, signal.SIGKILL)  # before the listener: a hook that misses it starts another one
        if self.listener is not None:
            self.listener.close()
        left = left_behind(self.root)
        assert self.unattended or not left, f"a listener was left behind: {left}"


def _toml(table: Json) -> str:
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items())


@contextmanager
def staged(
    root: Path,
    *,
    users: Sequence[User] = (ANN, BOB, STRANGER),
    chats: Sequence[Chat] = (),
    test_clock: Path | None = None,
    spawned: bool = False,
    **api: Any,
) -> Iterator[Stage]:
    """Set up a stage with a Bot API of its own; each has another bot, since a bot has one listener a machine.

    `spawned` makes the Bot API a process, which costs half a second and can be frozen; `test_clock` is its, too, then.
    """
    token = f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"
    root.mkdir(parents=True, exist_ok=True)
    serving = partial(spawn_botapi, test_clock=test_clock) if spawned else running_botapi
    with serving(token=token, users=users, chats=chats, **api) as botapi:
        stage = Stage(root, botapi, test_clock=test_clock)
        try:
            yield stage
        finally:
            stage.close()
