"""Agents that are found, and what starts a listener."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from hermes.agents.claude_code import install as claude_code
from hermes.commands.install import AGENTS
from hermes.commands.setup.background import Background
from hermes.commands.setup.parts import find_agents
from hermes.commands.setup.terminal import Terminal
from tests.commands.setup.a_context import a_config, a_context

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo 1.18.33", "1.18.33"),
        ("echo 1.18.33; echo more", "1.18.33"),
        ("exit 3", ""),
        ("printf '\\377\\n'", "\ufffd"),
    ],
)
def test_an_agent_on_the_path_and_its_version(tmp_path: Path, script: str, version: str) -> None:
    """One that cannot tell its version is there all the same."""
    program = tmp_path / "opencode"
    program.write_text(f"#!/bin/sh\n{script}\n")
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert find_agents(environ) == []
    program.chmod(0o755)
    assert find_agents(environ) == [(AGENTS[0], str(program), version)]


def test_claude_codes_hooks_start_a_listener_too(tmp_path: Path) -> None:
    """Without OpenCode, and without a service; settings that cannot be read start nothing."""
    environ = {"HOME": str(tmp_path), "PATH": "/nowhere"}
    place = tmp_path / "config.toml"
    config = a_config(store={"path": tmp_path / "store"})
    terminal = Terminal(Console(file=io.StringIO()), interactive=False)
    background = Background(a_context(terminal, place, config=config, environ=environ))
    assert not background.will_listen()
    claude_code.install(environ=environ, python=sys.executable, config_path=place, store=tmp_path, log=tmp_path)
    assert background.will_listen()
    claude_code.settings_path(environ).write_text("{")
    assert not background.will_listen()
