"""Find the OpenCode 2 server of this user, by the file that it keeps while it runs.

The file is only read: a server whose file is moved or replaced stops itself. It stays behind if the server is killed,
so that its process is looked for, and the caller must compare what the server says of itself with it. By then it
has sent the password. So the port must belong to this user before: once the server is gone, another user may take its
port, and another process of this user the number of its process. Only Linux tells whose port it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hermes.agents.wire import Text, Wire, shaped
from hermes.errors import AgentAway, AgentError, AgentRefused, NotRunning
from hermes.hook.plugin_folders import is_alive

NAME: Final = "opencode2"
"""The name, on the phone and in `hermes status`, of the server that is found by its file."""
EXPOSED: Final = "exposed"
"""The tag of the refusal of a file that others can write."""
SOCKETS: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""The tables of the sockets of this machine; other systems than Linux have none."""
_LISTENS: Final = "0A"
_PORTS: Final = {"http": 80, "https": 443}
_LARGEST: Final = 64 * 1024


class _Kept(Wire):
    id: Text
    version: Text
    url: Text
    pid: int
    password: Text = ""


@dataclass(frozen=True, slots=True)
class Address:
    """The URL and the password of a server. `pid` and `id` are those of its file; None and "" without a file."""

    url: str
    password: str = ""
    username: str = "opencode"
    pid: int | None = None
    id: str = ""

    def __repr__(self) -> str:
        return f"<Address {self.url} pid {self.pid}>"


Locate = Callable[[], Address]
"""Return the address of now. Raises what `read` raises."""


def at(address: Address) -> Locate:
    """Return what always tells this address."""
    return lambda: address


def found_by(file: Path, sockets: tuple[Path, ...] = SOCKETS) -> Locate:
    """Return what reads this file anew each time."""
    return lambda: read(file, sockets)


def read(file: Path, sockets: tuple[Path, ...] = SOCKETS) -> Address:
    """Read the file of a server.

    Raises:
        NotRunning: there is none, or its process has ended.
        AgentAway: it cannot be read or is not whole, or the port of its URL is not only this user's.
        AgentRefused: others may write it, or its URL is none.
    """
    try:
        # Without O_NONBLOCK, a pipe in the place of the file would never be opened.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise AgentRefused(f"{file}: not a file")
            if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                said = f"{file}: others can write it, so Hermes does not trust it; `chmod 600 {shlex.quote(str(file))}`"
                raise AgentRefused(said, tag=EXPOSED)
            content = opened.read(_LARGEST)
    except FileNotFoundError:
        raise NotRunning(f"{file} is not there: no OpenCode 2 runs") from None
    except OSError as error:
        raise AgentAway(f"{file}: {error.strerror}") from None
    try:
        kept = shaped(_Kept, json.loads(content))
    except (ValueError, RecursionError) as error:
        # It may be half written just now; the next look tells.
        raise AgentAway(
            f"{file} cannot be read: {error if isinstance(error, ValueError) else 'nested too deeply'}"
        ) from None
    if not _is_url(kept.url):
        raise AgentRefused(f"{file}: its url is not an http(s) URL")
    if kept.pid <= 0 or not is_alive(kept.pid):
        raise NotRunning(f"{file} was left behind: process {kept.pid} has ended")
    if not _is_ours(kept.url, sockets):
        raise AgentAway(f"{file}: nobody listens at {kept.url}, or another user does, so Hermes sends nothing there")
    return Address(kept.url, kept.password, pid=kept.pid, id=kept.id)


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0  # to read it raises ValueError if it is none
    except ValueError:
        return False
    return has_port and parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None


def port_of(url: str) -> int:
    """Return the port of this URL, by default that of its scheme; 0 if neither is known."""
    parts = urlsplit(url)
    return parts.port or _PORTS.get(parts.scheme, 0)


def _is_ours(url: str, sockets: tuple[Path, ...]) -> bool:
    """Tell whether this user, and nobody else, listens at the port of this URL; True if the system does not tell."""
    port = f":{port_of(url):04X}"
    does_tell, users = False, set[str]()
    for table in sockets:
        with contextlib.suppress(OSError), table.open(encoding="ascii") as rows:
            next(rows, "")  # the heading
            for row in rows:
                does_tell = True
                _, local, _, state, _, _, _, user, *_ = row.split()
                if state == _LISTENS and local.endswith(port):
                    users.add(user)
    return not does_tell or users == {str(os.getuid())}


def running(file: Path) -> str:
    """Return a sentence about the server that keeps this file, "" if none runs."""
    try:
        address = read(file)
    except AgentError:
        return ""
    return (
        f"An OpenCode 2 runs (process {address.pid}). It needs no plugin: Hermes finds its server by itself, "
        "as long as a listener runs (`hermes install service`)."
    )
