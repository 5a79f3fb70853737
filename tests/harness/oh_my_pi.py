"""A real oh-my-pi for a test: a home of its own with a scripted model, run with a prompt or in a terminal."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.sandbox.model_server import MODEL_ID, script
from tests.harness.home import ROOT, SHORT_LIVES, BinaryMissingError
from tests.harness.processes import LOOPBACK, Proc
from tests.harness.tui import Terminal

VERSION = "18.2.3"
Steps = Sequence[Mapping[str, Any]]

# No look for updates or for local models on their usual ports, and no first steps. Written as JSON, which is YAML too.
SETTINGS: dict[str, Any] = {
    "startup": {"checkUpdate": False, "quiet": True, "setupWizard": False},
    "marketplace": {"autoUpdate": "off"},
    "lsp": {"enabled": False},
    "disabledProviders": ["llama.cpp", "lm-studio", "ollama"],
}


def command(*, cache: Path = ROOT / ".cache" / "npm") -> list[str]:
    """Return what starts this oh-my-pi.

    Raises:
        BinaryMissingError: it is not in the cache.
    """
    modules = cache / "oh-my-pi" / VERSION / "node_modules"
    buns = sorted(modules.glob("@oven/bun-*/bin/bun"))
    if not buns:
        raise BinaryMissingError("no oh-my-pi: run `make scenes`; needs npm")
    return [str(buns[0]), str(modules / "@oh-my-pi" / "pi-coding-agent" / "dist" / "cli.js")]


class Home:
    """One user's home with nothing of the machine in it, and a project folder."""

    def __init__(self, root: Path, model_url: str) -> None:
        self.root = root
        self.path = root / "home"
        self.project = root / "shop-api"
        self.agent = self.path / ".omp" / "agent"
        for folder in (self.agent, self.project):
            folder.mkdir(parents=True)
        model = {"id": MODEL_ID, "name": "A scripted model", "contextWindow": 100_000, "maxTokens": 4000}
        provider = {"baseUrl": model_url, "apiKey": "none", "api": "openai-completions", "models": [model]}
        (self.agent / "models.yml").write_text(json.dumps({"providers": {"scripted": provider}}))
        (self.agent / "config.yml").write_text(json.dumps(SETTINGS))
        self._runs = 0

    def environ(self, **extra: str) -> dict[str, str]:
        """Return the whole environment of a process in this home; `extra` is laid over it."""
        return {
            "HOME": str(self.path),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "OMP_SKIP_SETUP": "1",
            "PI_NO_TITLE": "1",
            "HTTPS_PROXY": f"http://{LOOPBACK}:9",  # it asks many providers for their models, also without any key
            **SHORT_LIVES,
            **extra,
        }

    def arguments(self, *words: str) -> list[str]:
        """Return the command line with these words behind it."""
        return [*command(), "--model", f"scripted/{MODEL_ID}", *words]

    def run(self, steps: Steps, *words: str, key: str = "desk") -> Proc:
        """Let the model take these steps without a terminal (`-p`)."""
        self._runs += 1
        return Proc(
            self.arguments(*words, "-p", script(steps, key)),
            cwd=self.project,
            environ=self.environ(),
            log_dir=self.root / "logs",
            name=f"omp-{self._runs}",
        )


class OhMyPi(Terminal):
    """An oh-my-pi in a terminal whose model takes these steps at once; what it received is kept under `key`.

    Without steps it goes on with its last session.
    """

    def __init__(
        self, home: Home, steps: Steps, *, key: str = "desk", environ: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(
            home.arguments(script(steps, key) if steps else "--continue"),
            cwd=home.project,
            environ=home.environ(COLORTERM="truecolor", **(environ or {})),
            log_dir=home.root / "logs",
            name=f"omp-{key}",
        )
