"""A home folder for OpenCode, isolated from this machine: its environment, and settings with the scripted model."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from hermes.sandbox.model_server import MODEL_ID

if TYPE_CHECKING:
    from pathlib import Path

DEAD_REGISTRY: Final = "http://127.0.0.1:9/"

Json = dict[str, Any]


def make(home: Path, version: str) -> None:
    """Make the folders for temporary files and configuration, with OpenCode's plugin package declared as installed.

    OpenCode installs that package as soon as there is any plugin, and waits for it: 1.1.53 waits 3 s even for a dead
    registry, 1.18.33 up to 70 s for a silent one. The model catalogue is empty: the settings name the scripted model,
    and 1.18.33 reads the whole catalogue for each directory, which takes most of the time of the first prompt there.
    """
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    has_package(home / ".config" / "opencode", version)
    _catalogue(home).write_text("{}")


def has_package(folder: Path, version: str) -> None:
    """Declare OpenCode's own plugin package as installed in a folder from which OpenCode loads plugins."""
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    wanted = {"dependencies": {"@opencode-ai/plugin": version}}
    (folder / "package.json").write_text(json.dumps(wanted))


def environ(home: Path) -> dict[str, str]:
    """Return the whole environment of an OpenCode with this home; it downloads no updates, model lists or plugins."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": "/bin/sh",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_MODELS_PATH": str(_catalogue(home)),
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "npm_config_fetch_retries": "0",
        "npm_config_registry": DEAD_REGISTRY,
    }


def _catalogue(home: Path) -> Path:
    return home / ".config" / "models.json"


def settings(model_url: str) -> Json:
    """Return the content of a project's opencode.json: use the scripted model, and ask before each command."""
    model = f"fake/{MODEL_ID}"
    return {
        "model": model,
        "small_model": model,
        "provider": {
            "fake": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": model_url, "apiKey": "x"},
                "models": {MODEL_ID: {"limit": {"context": 200000, "output": 8000}}},
            }
        },
        "permission": {"bash": "ask"},
        "snapshot": False,  # a git snapshot at each step takes time, and nothing here uses it
    }
