"""On what it was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import hermes
from tests.bench.agents import OPENCODE
from tests.harness.home import ROOT, BinaryMissingError, binary

LIBRARIES = ("python-telegram-bot", "httpx", "httpx-sse", "pydantic", "filelock", "starlette", "uvicorn")


def described(folder: Path) -> dict[str, str]:
    """Return what decides the figures: processor, kernel, file system of `folder`, versions, the commit."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": _said("stat", "--file-system", "--format=%T", str(folder)),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "hermes": hermes.__version__,
        "opencode": _opencode(),
        "commit": _commit(),
        **{name: version(name) for name in LIBRARIES},
    }


def load() -> str:
    """Return the load average of the last minute."""
    return f"{os.getloadavg()[0]:.2f}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _opencode() -> str:
    try:
        binary(OPENCODE)
    except BinaryMissingError:
        return "not there"
    return OPENCODE


def _commit() -> str:
    changed = _said("git", "status", "--porcelain", "--", "hermes")
    return _said("git", "rev-parse", "--short=12", "HEAD") + (" with changes in hermes/" if changed else "")


def _said(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
