"""One user's world for an OpenCode: binary, home and XDG folders, project directories."""

import json
import os
import platform
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from hermes.agents.opencode import install
from hermes.agents.plugin_file import PLUGIN_NAME
from hermes.sandbox import opencode_home

VERSIONS = ("1.18.33", "1.1.53")
ROOT = Path(__file__).parents[2]

Json = dict[str, Any]

SHORT_LIVES = {"BUN_JSC_useDFGJIT": "0", "BUN_JSC_numberOfGCMarkers": "1"}
"""For agents that run in Bun: to compile code a second time, and to collect garbage in several threads, costs them a
fifth of their processor time, and those of one test live too short to gain by it."""
LONG_LIFE = {"BUN_JSC_useDFGJIT": "1"}
"""For a server that many tests share: it gains a third by the second compilation."""


class BinaryMissingError(Exception):
    """The binary of this OpenCode version was not fetched; the text says how to get it."""


def binary(version: str, *, cache: Path = ROOT / ".cache" / "opencode") -> Path:
    """Return the executable of this OpenCode version.

    Raises:
        BinaryMissingError: it is not in the cache.
    """
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, sys.platform)
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    path = cache / version / "node_modules" / f"opencode-{system}-{machine}" / "bin" / "opencode"
    if not os.access(path, os.X_OK):
        raise BinaryMissingError("no OpenCode binary: run `make opencode`; needs npm")
    return path


def in_query(directory: Path | str) -> str:
    """Return a directory as the value of the `directory` parameter, before the client's own encoding.

    OpenCode decodes it twice, so a literal percent sign is encoded once more.
    """
    return str(directory).replace("%", "%25")


class Home:
    """One user's world: HOME and XDG folders with nothing of the machine in them, and project directories.

    A server and several terminals may share one home, as at a real desk.
    """

    def __init__(self, root: Path, version: str, model_url: str) -> None:
        self.root = root
        self.version = version
        self.model_url = model_url
        self.path = root / "home"
        self.settings = self.path / ".config" / "opencode"
        self.projects = root / "projects"
        self.logs = root / "logs"
        opencode_home.make(self.path, version)
        state = self.path / ".local" / "state" / "opencode"
        state.mkdir(parents=True)
        (state / "kv.json").write_text('{"animations_enabled": false}')  # a terminal that waits draws nothing

    def environ(self, **extra: str) -> dict[str, str]:
        """Return the whole environment of a process in this home; `extra` is laid over it."""
        return {**opencode_home.environ(self.path), **SHORT_LIVES, **extra}

    def project(self, name: str = "project", **config: Any) -> Path:
        """Make a project directory; `config` is laid over its opencode.json (permission, agent, plugin …)."""
        directory = self.projects / name
        directory.mkdir(parents=True)
        settings = opencode_home.settings(self.model_url) | config
        (directory / "opencode.json").write_text(json.dumps(settings, ensure_ascii=False), encoding="utf-8")
        git = ["git", "-c", "user.name=Desk", "-c", "user.email=desk@localhost"]
        # OpenCode tells projects apart by their first commit: two equal empty ones would be one project.
        first = [*git, "commit", "--quiet", "--allow-empty", "--message", f"first {uuid.uuid4().hex}"]
        for command in (["git", "init", "--quiet"], first):
            subprocess.run(command, cwd=directory, env=self.environ(), check=True, capture_output=True)
        return directory

    def plug(self, directory: Path, hermes: Path) -> None:
        """Put Hermes' plugin into a project: it is as good there as in the user's folder, and meant for this one alone.

        `hermes` is the folder of its configuration, store and log. What plugins of one process share is named anew:
        they share no Hermes here.
        """
        folder = directory / ".opencode"
        opencode_home.has_package(folder, self.version)
        names = {"store": "store", "log": "hermes.log", "config": "config.toml"}
        settings = {"python": sys.executable} | {key: str(hermes / name) for key, name in names.items()}
        (folder / "plugin").mkdir()
        text = install.PLUGIN.text(settings)
        shared = 'Symbol.for("hermes-telegram-phone/'
        assert text.count(shared) == 1
        (folder / "plugin" / PLUGIN_NAME).write_text(text.replace(shared, f"{shared}{directory.name}/"))
