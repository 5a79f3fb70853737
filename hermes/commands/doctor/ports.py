"""Find the process that listens on a port of this machine: a hint for people, if this user may see it."""

import contextlib
import ipaddress
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_LISTENING = "0A"
_PORTS = {"http": 80, "https": 443}
_LSOF_S = 2.0


@dataclass(frozen=True, slots=True)
class Listening:
    """`who` is "opencode (pid 12)", or "" if it is not known; `everywhere`: other machines can connect too."""

    who: str
    everywhere: bool


def is_here(url: str) -> bool:
    """Tell whether the host of this URL is a loopback address or "localhost"."""
    host = urlsplit(url).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def port_of(url: str) -> int:
    """Return the port of this URL, by default that of its scheme; 0 if neither is known."""
    parts = urlsplit(url)
    return parts.port or _PORTS.get(parts.scheme, 0)


def listening(port: int, *, proc: Path = Path("/proc")) -> Listening | None:
    """Return the process that listens there, or None if no process does or no tool can tell. Raises OSError."""
    if not (proc / "net" / "tcp").exists():
        return _by_lsof(port)
    sockets = [one for table in ("tcp", "tcp6") for one in _sockets(proc / "net" / table, port)]
    if not sockets:
        return None
    return Listening(_owner(proc, {inode for inode, _ in sockets}), any(everywhere for _, everywhere in sockets))


def _sockets(table: Path, port: int) -> Iterator[tuple[str, bool]]:
    """Yield the inode of each socket that listens on this port, and whether it listens on all addresses."""
    if not table.exists():
        return
    for line in table.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        address, _, number = fields[1].partition(":")
        if fields[3] == _LISTENING and int(number, 16) == port:
            yield fields[9], not int(address, 16)


def _owner(proc: Path, inodes: set[str]) -> str:
    names = {f"socket:[{inode}]" for inode in inodes}
    for process in (path for path in proc.iterdir() if path.name.isdecimal()):
        with contextlib.suppress(OSError):  # another user's process, or one that has ended
            if any(str(descriptor.readlink()) in names for descriptor in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name} (pid {process.name})"
    return ""


def _by_lsof(port: int) -> Listening | None:
    command = ["lsof", "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fpcn"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=_LSOF_S, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"^p(\d+)\nc(.*)", told, re.MULTILINE)
    return Listening(f"{found[2]} (pid {found[1]})", "\nn*:" in told) if found else None
