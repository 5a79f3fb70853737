"""A person's machine, for the doctor to look at: a home, a configuration, a store, and a bot of its own."""

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hermes.agents.opencode import install as connect
from hermes.commands.doctor.checkup import mend
from hermes.commands.doctor.finding import Around, Finding
from hermes.config import reading as configuration
from hermes.sandbox.botapi import RunningBotApi
from hermes.storage.files import FileStore
from hermes.storage.postgres.address import Address
from tests.at_once import at_once
from tests.stores import a_store

Tables = dict[str, Any]


def a_token() -> str:
    """Return the token of a bot that nobody else on this machine has."""
    return f"{secrets.randbelow(10**9) + 10**9}:{secrets.token_hex(17)}"


class Patient:
    """`tables` is the configuration; `api` is where its bot lives, where it has one."""

    def __init__(self, root: Path, api: RunningBotApi | None = None) -> None:
        self.root = root
        self.api = api
        self.token = api.token if api else a_token()
        self.home = root / "home"
        self.bin = root / "bin"
        self.project = root / "project"
        for folder in (self.home, self.bin, self.project):
            folder.mkdir()
        self.config_file = root / "config.toml"
        self.tables: Tables = {
            "telegram": {
                "token": self.token,
                "chat_id": 1001,
                "users": [1001],
                "api_base": api.base_url if api else "http://127.0.0.1:9",
            },
            "store": {"path": str(root / "store")},
            "log": {"file": str(root / "log" / "hermes.log")},
        }
        self.write()

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment of this person; no program of the machine is in its PATH."""
        return {"HOME": str(self.home), "PATH": str(self.bin)}

    @property
    def plugin(self) -> Path:
        """Where the plugin belongs."""
        return connect.PLUGIN.path(self.environ)

    @property
    def store(self) -> FileStore:
        """The store, made."""
        store = a_store(self.root / "store")
        at_once(store.open())
        return store

    def write(self, **telegram: Any) -> None:
        """Write the configuration, closed to others; `telegram` is laid over its table."""
        if telegram:
            self.tables["telegram"] |= telegram
        lines = []
        for section, table in self.tables.items():
            for one in table if isinstance(table, list) else [table]:
                lines.append(f"[[{section}]]" if isinstance(table, list) else f"[{section}]")
                lines += [f"{key} = {json.dumps(value)}" for key, value in one.items()]
        self.config_file.write_text("\n".join(lines))
        self.config_file.chmod(0o600)

    def share(self, address: Address, **more: str) -> None:
        """Keep the store in this database; the password is in a file that only this person can read."""
        secret = self.root / "database-password"
        secret.write_text(address.password)
        secret.chmod(0o600)
        self.tables["store"] |= {"url": address.url, "password_file": str(secret), **more}
        self.write()

    def serve(self, url: str, **more: str) -> None:
        """Name a server in the configuration."""
        self.tables.setdefault("opencode", []).append({"url": url, **more})
        self.write()

    def install(self) -> str:
        """Install the plugin; its text."""
        around = self.around()
        paths = around.plugin_paths()
        connect.install(
            environ=self.environ,
            python=sys.executable,
            config_path=paths["config"],
            store=paths["store"],
            log=paths["log"],
        )
        return self.plugin.read_text()

    def program(self, name: str, script: str) -> Path:
        """Put a program into the PATH."""
        place = self.bin / name
        place.write_text(f"#!/bin/sh\n{script}\n")
        place.chmod(0o755)
        return place

    def around(self, *, watch_s: float = 0, ahead_s: float = 0) -> Around:
        """Return what the doctor looks at; its clock is `ahead_s` ahead."""
        config = configuration.load(self.config_file, environ={})
        return Around(
            config,
            self.config_file,
            self.environ,
            now=lambda: time.time() + ahead_s,
            watch_s=watch_s,
        )


def named(findings: Iterable[Finding], check: str) -> Finding:
    """Return the one finding of this check."""
    (found,) = (one for one in findings if one.check == check)
    return found


def told(findings: Iterable[Finding]) -> dict[str, str]:
    """Return the verdict of each check."""
    return {one.check: one.verdict for one in findings}


def mended(finding: Finding) -> str:
    """Let `--fix` mend it; what it says."""
    (said,) = asyncio.run(mend([finding]))
    return said


def old(path: Path, age_s: float) -> Path:
    """Make a file look that old."""
    then_s = time.time() - age_s
    os.utime(path, (then_s, then_s))
    return path
