"""The real `hermes listen` and `hermes hook` of the demo, as separate processes with a separate folder.

Ctrl-C, SIGTERM and SIGHUP end all of them, and remove the folder. If the demo is killed (`kill -9`), they end by
themselves, because the pipes to them end; the folder, the bot's lock and the socket stay. A listener that a hook has
started ends once nothing was open for ten minutes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hermes.agents.opencode import install as connect
from hermes.sandbox.tied import tied
from hermes.storage import process_lock
from hermes.storage.files import FileStore
from hermes.storage.home import Home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PATIENCE_S: Final = 10.0
LOOK_S: Final = 0.02

_ON_HOST: Final = (
    "import sys; from hermes.hook import spool; from hermes.__main__ import main; "
    "host, *sys.argv = sys.argv[1:]; spool.host = lambda: host; main()"
)
"""Run Hermes as on a machine with another name."""

Json = dict[str, Any]


def toml(table: Mapping[str, object]) -> str:
    """Return the TOML lines of one table, whose values are texts, numbers, truths, or lists of them."""
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items())


class Daemon:
    """One listener and its hooks; `root` holds configuration, store and log.

    The listener is found by the lock of its store, not as a child process, because a hook may have started it.
    `host`: the name of its machine, if not that of this computer; `database`: further keys of `[store]`.
    """

    def __init__(
        self, root: Path, telegram: Json, servers: Sequence[Json], *, host: str = "", database: Json | None = None
    ) -> None:
        self.root = root
        self.config = root / "config.toml"
        self._telegram = telegram
        self._servers = servers
        self._host = host
        self._database = database or {}
        self.store = FileStore(Home(root / "store"))
        self._child: subprocess.Popen[bytes] | None = None

    # --- the listener -------------------------------------------------------------------------------------------

    def configure(self, ttl_s: float) -> None:
        """Write the configuration that the next listener reads."""
        tables = {
            "telegram": self._telegram,
            "questions": {"ttl": f"{ttl_s:g}s"},
            "prompts": {"enabled": True},
            "store": {"path": str(self.store.home.root), **self._database},
            "log": {"file": str(self._log)},
            "opencode2": {"file": str(self.opencode2_file)},  # a listener that a hook starts has the person's own home
        }
        text = "\n".join(f"[{name}]\n{toml(table)}" for name, table in tables.items())
        text += "".join(f"\n[[opencode]]\n{toml(server)}" for server in self._servers)
        self.config.touch(mode=0o600)
        self.config.write_text(text, encoding="utf-8")

    def pid(self) -> int | None:
        """Return the process id of the listener, or None."""
        if self._child is not None:
            self._child.poll()  # reaps it if it has ended
        found = self.store.home.listener()
        return found.pid if found and found.pid else None

    def start(self) -> None:
        """Start a listener; it ends if another one holds the locks."""
        self._bury()
        self._child = tied(
            self._command("listen", "--config", str(self.config)),
            needed=self.config,  # a hook that finds no listener starts one, if there is a configuration
            cwd=self.root,
            env=self._environ(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # the log file has the same lines
        )

    def kill(self) -> None:
        """End the listener as `kill -9` does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the listener to end, and wait until it has."""
        self._end(signal.SIGTERM)

    def close(self) -> None:
        """End the listener, and remove the lock file that it leaves outside its folder."""
        self.config.unlink(missing_ok=True)  # a listener that is being started now fails without it
        if self._child is not None:
            self._child.terminate()
        self.stop()
        self._bury()
        bot_id = int(self._telegram["token"].partition(":")[0])
        process_lock.bot_lock(bot_id, self.store.home.root).unlink(missing_ok=True)

    def _bury(self) -> None:
        if self._child is not None:
            self._child.communicate(b"\n", PATIENCE_S)
            self._child = None

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid()
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + PATIENCE_S
        while self.pid() == pid and time.monotonic() < deadline:
            time.sleep(LOOK_S)

    def log_text(self) -> str:
        """Return the log of the listeners and hooks."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    # --- hooks --------------------------------------------------------------------------------------------------

    def hook(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a hook as a plugin does, with pipes for stdin and stdout."""
        places = {"--store": self.store.home.root, "--log": self._log, "--config": self.config}
        paths = [str(word) for pair in places.items() for word in pair]
        return subprocess.Popen(
            self._command("hook", "opencode", *paths, *options),
            cwd="/",
            env=self._environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def install(self, environ: Mapping[str, str]) -> None:
        """Install the plugin for an OpenCode with this environment. Raises HermesError."""
        connect.install(
            environ=environ, python=sys.executable, config_path=self.config, store=self.store.home.root, log=self._log
        )

    @property
    def opencode2_file(self) -> Path:
        """The file by which Hermes finds an OpenCode 2, in the home of the demo."""
        return self.root / ".local" / "state" / "opencode" / "service.json"

    @property
    def _log(self) -> Path:
        return self.root / "hermes.log"

    def _environ(self) -> dict[str, str]:
        """Return an environment without the settings of the person's own Hermes (`HERMES_TELEGRAM__TOKEN`, a proxy)."""
        kept = {name: os.environ[name] for name in ("PATH", "TZ") if name in os.environ}
        return {**kept, "HOME": str(self.root), "LANG": "C.UTF-8"}

    def _command(self, *words: str) -> list[str]:
        hermes = ["-c", _ON_HOST, self._host, "hermes"] if self._host else ["-m", "hermes"]
        return [sys.executable, "-I", *hermes, *words]
