"""A real Claude Code for a test: a home of its own with a scripted model, run with a prompt or in a terminal."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.sandbox.model_server import script
from tests.harness.home import ROOT, SHORT_LIVES, BinaryMissingError
from tests.harness.processes import Proc
from tests.harness.tui import Terminal

VERSION = "2.1.330"
Steps = Sequence[Mapping[str, Any]]


def binary(*, cache: Path = ROOT / ".cache" / "npm") -> Path:
    """Return the executable of this Claude Code: the one package that npm took for this machine.

    Raises:
        BinaryMissingError: it is not in the cache.
    """
    modules = cache / "claude-code" / VERSION / "node_modules" / "@anthropic-ai"
    found = [path for path in modules.glob("claude-code-*/claude") if os.access(path, os.X_OK)]
    if not found:
        raise BinaryMissingError("no Claude Code: run `make scenes`; needs npm")
    return found[0]


class Home:
    """One user's home with nothing of the machine in it, its first steps done, and a project that it trusts."""

    def __init__(self, root: Path, model_url: str) -> None:
        self.root = root
        self.path = root / "home"
        self.project = root / "shop-api"
        self.settings = self.path / ".claude" / "settings.json"
        self.model_url = model_url
        for folder in (self.settings.parent, self.path / "tmp", self.project):
            folder.mkdir(parents=True)
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        first = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(self.project): trusted}}
        (self.path / ".claude.json").write_text(json.dumps(first))
        self.settings.write_text(json.dumps({"permissions": {"defaultMode": "default"}}))
        self.extra: dict[str, str] = {}
        self._runs = 0

    def environ(self, **extra: str) -> dict[str, str]:
        """Return the whole environment of a process in this home; it calls nobody but its model.

        A variable that `extra` has empty is left out.
        """
        variables = {
            "HOME": str(self.path),
            "TMPDIR": str(self.path / "tmp"),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/sh",
            "ANTHROPIC_BASE_URL": self.model_url,
            "ANTHROPIC_AUTH_TOKEN": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            # Whatever else it would want from outside finds nobody there.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **SHORT_LIVES,
            **self.extra,
            **extra,
        }
        return {name: value for name, value in variables.items() if value}

    def run(self, steps: Steps, *words: str, key: str = "desk") -> Proc:
        """Let the model take these steps without a terminal (`-p`)."""
        self._runs += 1
        return Proc(
            [binary(), "-p", script(steps, key), *words],
            cwd=self.project,
            environ=self.environ(),
            log_dir=self.root / "logs",
            name=f"claude-{self._runs}",
        )


class ClaudeCode(Terminal):
    """A Claude Code in a terminal whose model takes these steps at once; what it received is kept under `key`.

    Without steps it goes on with its last session.
    """

    def __init__(self, home: Home, steps: Steps, *, key: str = "desk") -> None:
        super().__init__(
            [binary(), script(steps, key) if steps else "--continue"],
            cwd=home.project,
            environ=home.environ(COLORTERM="truecolor"),
            log_dir=home.root / "logs",
            name="claude",
        )
