"""A real `systemd --user` in namespaces of its own, which knows our units alone and whose end leaves nothing.

It sees this machine's files, so nothing of the machine's own units is on its path, not even of its user units:
no `systemd-tmpfiles`, which would clear /tmp, and no system manager is ever started here.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.processes import Proc, until

MANAGER = "/usr/lib/systemd/systemd"
# In order: a cgroup of our own, which becomes the root of all that is seen; mounts that whoever is below sees too, as
# everywhere that systemd runs; a /run/systemd that says "systemd runs here" and holds nothing of the machine's; then
# the manager, below a shell that is the first process of its namespace.
_BEGIN = """
set -eu
mount -t cgroup2 none "$1/cgroup"
mkdir "$1/cgroup/$2"
echo $$ > "$1/cgroup/$2/cgroup.procs"
chown -R "$4" "$1/cgroup/$2"
exec unshare --cgroup --mount --pid --fork --kill-child --mount-proc sh -eu -c '
mount --make-rshared /
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs -o mode=755 none /run/systemd
mkdir /run/systemd/system
'"$3"' /usr/lib/systemd/systemd --user --unit=default.target &
wait'
"""
_TARGETS = ("basic", "default", "exit", "paths", "shutdown", "sockets", "timers")


def without(reason: str) -> None:
    """Skip this test in one clear line; where scenes are required, fail it."""
    if os.environ.get("HERMES_REQUIRE_SCENES") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def analyze(*words: str | Path) -> str:
    """Return what `systemd-analyze` prints; it must be pleased."""
    if shutil.which("systemd-analyze") is None:
        without("systemd-analyze is not installed")
    ran = subprocess.run(
        ["systemd-analyze", *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


class UserManager:
    """A running manager. `environ` is what a shell in it has; `run` and `systemctl` act as that shell would."""

    def __init__(self, process: Proc, environ: Mapping[str, str], prefix: Sequence[str]) -> None:
        self._process = process
        self.environ = dict(environ)
        self._prefix = list(prefix)

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command in there to its end."""
        return subprocess.run(
            [*self._prefix, *map(str, command)],
            env=self.environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )

    def systemctl(self, *words: str) -> str:
        """Return what `systemctl --user` prints; it must succeed."""
        ran = self.run("systemctl", "--user", *words)
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    def shown(self, unit: str, key: str) -> str:
        """Return one property of a unit."""
        return self.systemctl("show", unit, f"--property={key}", "--value").strip()


@contextmanager
def user_manager(root: Path, environ: Mapping[str, str], *, uid: int = 0) -> Iterator[UserManager]:
    """Start one whose home is `root`/home, as the user `uid`, and end it with everything that it started.

    The test is skipped where namespaces or cgroups are not ours to make.
    """
    if not Path(MANAGER).exists() or os.geteuid() != 0:
        without("a systemd user manager of our own needs systemd, and root")
    folders = {name: root / name for name in ("cgroup", "run", "units", "home")}
    for folder in folders.values():
        folder.mkdir(mode=0o700, parents=True)
    for name in _TARGETS:
        (folders["units"] / f"{name}.target").symlink_to(f"/usr/lib/systemd/user/{name}.target")
    home = folders["home"]
    for folder in folders.values():
        os.chown(folder, uid, uid)
    own = f"hermes-test-{os.getpid()}-{root.name}"
    seen = {
        **environ,
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(folders["run"]),
        "SYSTEMD_UNIT_PATH": f"{home}/.config/systemd/user:{folders['run']}/systemd/transient:{folders['units']}",
    }
    become = f"setpriv --reuid={uid} --regid={uid} --clear-groups" if uid else ""
    command = [
        "unshare",
        "--mount",
        "--propagation=private",
        "sh",
        "-c",
        _BEGIN,
        "sh",
        str(root),
        own,
        become,
        str(uid),
    ]
    with Proc(command, cwd=root, environ=seen, log_dir=root, name="systemd") as process:
        try:
            until(
                lambda: (folders["run"] / "systemd" / "private").exists() or not process.alive(), 60, "systemd --user"
            )
            if not process.alive():
                # Programs can be installed, rights on a machine often cannot: no CI is to fail for those.
                pytest.skip(f"a systemd user manager of our own cannot be started: {process.output().strip()}")
            # The shell below `unshare`, the first process of its namespace.
            (first,) = _children(process.pid)
            prefix = ["nsenter", f"--target={first}", "--all", f"--setuid={uid}", f"--setgid={uid}"]
            manager = UserManager(process, seen, prefix)
            until(lambda: manager.shown("default.target", "ActiveState") == "active", 60, "default.target")
            yield manager
        finally:
            process.close()
            _forget(own)


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def _forget(own: str) -> None:
    """Remove the empty cgroups that are left."""
    for mounted in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        for folder, _, _ in os.walk(mounted / own, topdown=False):
            until(lambda folder=folder: _removed(folder), 60, f"the end of {folder}")  # type: ignore[misc]


def _removed(folder: str) -> bool:
    try:
        Path(folder).rmdir()
    except OSError:
        return False
    return True
