"""Which files of a project go to the phone: those inside it, by whatever way, and no others."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pytest

from hermes.agents.prompting import nothing_excluded
from hermes.listener.phone import project_file
from hermes.model.project_file import MOST_BYTES, ProjectFile

if TYPE_CHECKING:
    from hermes.model.project_file import FileFault

fetch = partial(project_file.fetch, excludes=nothing_excluded)


NOBODY: Final = 54321


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with git, and a file outside of it."""
    project = tmp_path / "shop"
    (project / "src").mkdir(parents=True)
    (project / "src" / "a.py").write_text("print()\n")
    (project / "empty.txt").touch()
    (tmp_path / "outside.txt").write_text("not for the phone")
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    return project


def fault(project: Path, path: str) -> FileFault:
    """Why this path is not sent."""
    found = fetch(str(project), path)
    assert isinstance(found, str), found
    return found


def test_a_file_is_fetched_by_every_way_that_leads_to_it(shop: Path) -> None:
    """From the project's folder, by an absolute path, by a link inside the project, and if the project is a link."""
    (shop / "link.py").symlink_to("src/a.py")
    (shop / "folder").symlink_to(shop / "src")
    wanted = ProjectFile("a.py", b"print()\n")
    ways = ("src/a.py", "./src//a.py", "src/../src/a.py", str(shop / "src" / "a.py"), "link.py", "folder/a.py")
    assert {fetch(str(shop), way) for way in ways} == {wanted}
    (shop.parent / "alias").symlink_to(shop)
    assert fetch(str(shop.parent / "alias"), "src/a.py") == wanted
    assert fetch(str(shop.parent / "alias"), str(shop.parent / "alias" / "src" / "a.py")) == wanted


def test_what_the_permissions_exclude_stays(shop: Path) -> None:
    """By its real path, and by each name that leads to it; whatever they exclude, it is not opened."""
    (shop / "link.py").symlink_to("src/a.py")
    (shop / "folder").symlink_to("src")
    (shop.parent / "alias").symlink_to(shop)
    os.mkfifo(shop / "pipe")
    asked: list[str] = []

    def excludes(path: str) -> bool:
        asked.append(path)
        return path in {str(shop / "src" / "a.py"), str(shop / "pipe"), str(shop.parent / "alias" / "empty.txt")}

    ways = ("src/a.py", "src/../src/a.py", "link.py", "folder/a.py", "pipe", str(shop.parent / "alias" / "empty.txt"))
    for way in ways:
        assert fetch(str(shop), way, excludes=excludes) == "excluded"
    assert fetch(str(shop.parent / "alias"), "empty.txt", excludes=excludes) == "excluded"
    asked.clear()
    assert fetch(str(shop), "empty.txt", excludes=excludes) == "empty"
    assert asked == [str(shop / "empty.txt")]


def test_what_is_outside_stays_there(shop: Path) -> None:
    """By dots, by an absolute path, by a link to a file or to a folder; a name that begins like the project's."""
    (shop / "out").symlink_to(shop.parent / "outside.txt")
    (shop / "up").symlink_to("..")
    (shop.parent / "shop2").mkdir()
    (shop.parent / "shop2" / "b").write_text("b")
    ways = (
        "../outside.txt",
        str(shop.parent / "outside.txt"),
        "out",
        "up/outside.txt",
        "../shop2/b",
        "/etc/passwd",
        "..",
    )
    assert {way: fault(shop, way) for way in ways} == dict.fromkeys(ways, "outside")


def test_only_plain_files_are_opened(shop: Path) -> None:
    """A pipe would hold the reader up; a device may do anything."""
    os.mkfifo(shop / "pipe")
    (shop / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(shop / "socket"))
        assert fault(shop, "socket") == "special"
    assert fault(shop, "pipe") == "special"
    assert fault(shop, "zero") == "outside"
    assert fault(shop, "src") == "folder"
    assert fault(shop, ".") == "folder"


def test_what_is_not_there_is_missing(shop: Path) -> None:
    """Also behind a file, and in a project that was deleted; a loop and an odd path cannot be read."""
    (shop / "loop").symlink_to("loop")
    assert fault(shop, "b.py") == "missing"
    assert fault(shop, "src/a.py/b") == "missing"
    assert fault(shop.parent / "gone", "a.py") == "missing"
    assert fault(shop, "loop") in {"special", "unreadable"}
    assert fault(shop, "a\0b") == "unreadable"
    assert fault(shop, "a" * 5000) == "unreadable"


def test_size_has_two_ends(shop: Path) -> None:
    """Telegram takes no empty file, and none of more than 50 MB."""
    with (shop / "large").open("wb") as large:
        large.truncate(MOST_BYTES + 1)
    assert fault(shop, "large") == "large"
    assert fault(shop, "empty.txt") == "empty"
    with (shop / "large").open("wb") as large:
        large.truncate(MOST_BYTES)
    assert isinstance(fetch(str(shop), "large"), ProjectFile)


def test_the_environment_of_hermes_is_no_file_of_a_project() -> None:
    """It may have the token; an agent in a container often works in the folder /."""
    assert fault(Path("/"), "proc/self/environ") == "empty"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_file_of_others_is_not_readable(shop: Path) -> None:
    """It is said."""
    (shop / "src" / "a.py").chmod(0)
    assert fault(shop, "src/a.py") == "unreadable"


def test_secrets_stay_by_both_of_their_names(shop: Path) -> None:
    """By that of the file, and by that of a link to it; whether they are there is not told."""
    (shop / ".env").write_text("KEY=1")
    (shop / "notes.txt").symlink_to(".env")
    (shop / "id_rsa").symlink_to("src/a.py")
    assert {fault(shop, one) for one in (".env", "notes.txt", "id_rsa", ".git/config", "no.pem")} == {"secret"}


def test_what_is_hermes_own_stays(shop: Path) -> None:
    """A file and a folder, by any of their names; if the project is within the folder, too."""
    for name in ("state", "odd/state"):
        (shop / name).mkdir(parents=True)
        (shop / name / "a.json").write_text("{}")
    (shop / "token").write_text("123:abc")
    (shop / "also").hardlink_to(shop / "token")
    (shop / "link").symlink_to("state")
    (shop.parent / "alias").symlink_to(shop)
    private = (shop.parent / "alias" / "state", shop / "token", shop / "gone")
    for name in ("token", "also", "state/a.json", "link/a.json"):
        assert fetch(str(shop), name, private=private) == "secret", name
    assert fetch(str(shop / "state"), "a.json", private=private) == "secret"
    for name in ("src/a.py", "odd/state/a.json"):
        assert isinstance(fetch(str(shop), name, private=private), ProjectFile)


@pytest.mark.parametrize("project", [".", ".."])
def test_what_is_hidden_stays_if_the_project_contains_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: str
) -> None:
    """Programs keep logins there. In another project, such a file is one like others."""
    home = tmp_path / "real"
    (home / ".config" / "gh").mkdir(parents=True)
    (home / "shop" / ".github").mkdir(parents=True)
    (tmp_path / "me").symlink_to(home)
    for name in (".config/gh/hosts.yml", ".history", "plan.md", "shop/.github/ci.yml"):
        (home / name).write_text("x")
    (home / "link").symlink_to(".history")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    root = str(home / project)
    for name in (".config/gh/hosts.yml", ".history", "shop/.github/ci.yml", "link"):
        assert fetch(root, str(home / name)) == "secret", name
    assert isinstance(fetch(root, str(home / "plan.md")), ProjectFile)
    assert isinstance(fetch(str(home / "shop"), ".github/ci.yml"), ProjectFile)


def test_a_project_in_a_folder_of_secrets_has_only_secrets(tmp_path: Path) -> None:
    """A session can be started anywhere."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("x")
    assert fault(tmp_path / ".ssh", "config") == "secret"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_an_entry_fetches_files() -> None:
    """As in a container: nobody knows the home folder of that user."""
    with TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        Path(folder, "a.py").write_text("print()\n")
        for place in (Path(folder), *Path(folder).rglob("*")):
            os.chown(place, NOBODY, NOBODY)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setuid(NOBODY)
                status = 0 if isinstance(fetch(folder, "a.py"), ProjectFile) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_git_ignores_stays(shop: Path) -> None:
    """By a rule of the project, of a folder in it, of the repository alone, or of a repository above it."""
    (shop / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n:(top)odd\n")
    (shop / "src" / ".gitignore").write_text("local.py\n")
    (shop / ".git" / "info" / "exclude").write_text("mine.txt\n")
    (shop / "build").mkdir()
    for name in ("a.log", "keep.log", "build/b", "src/local.py", "mine.txt", ":(top)odd", "-q"):
        (shop / name).write_text("x")
    ignored = ("a.log", "build/b", "src/local.py", "mine.txt", ":(top)odd")
    assert {one: fault(shop, one) for one in ignored} == dict.fromkeys(ignored, "ignored")
    assert isinstance(fetch(str(shop), "keep.log"), ProjectFile)
    assert isinstance(fetch(str(shop), "-q"), ProjectFile)
    assert fetch(str(shop / "src"), "local.py") == "ignored"
    subprocess.run(["git", "init", "--quiet", "inner"], cwd=shop, check=True)
    (shop / "inner" / ".git" / "info" / "exclude").write_text("c\n")
    (shop / "inner" / "c").write_text("x")
    assert fault(shop, "inner/c") == "ignored"


def test_without_a_repository_nothing_is_ignored_and_without_git_nothing_is_sent(shop: Path, tmp_path: Path) -> None:
    """A repository that git does not accept is no permission, either."""
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a").write_text("x")
    assert isinstance(fetch(str(plain), "a", programs="/nowhere"), ProjectFile)
    assert fetch(str(shop), "src/a.py", programs="/nowhere") == "unchecked"
    (shop / ".git" / "HEAD").write_text("damaged")
    (shop / ".git" / "config").write_text("[[")
    assert fault(shop, "src/a.py") == "unchecked"


def test_the_settings_of_a_project_run_nothing(shop: Path) -> None:
    """An agent can write them."""
    ran = shop.parent / "ran"
    trap = shop.parent / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {ran}\n")
    trap.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
        "diff.external",
        "pager.check-ignore",
    ):
        subprocess.run(["git", "config", key, str(trap)], cwd=shop, check=True)
    assert isinstance(fetch(str(shop), "src/a.py"), ProjectFile)
    assert not ran.exists()


def test_a_path_that_changes_meanwhile_leads_nowhere_else(shop: Path) -> None:
    """Somebody swaps a folder for a link to the outside, again and again, until it was met in both states."""
    (shop.parent / "src").mkdir()
    (shop.parent / "src" / "a.py").write_text("not for the phone")
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            with suppress(OSError):
                (shop / "src").rename(shop / "aside")
                (shop / "src").symlink_to("../src")
                (shop / "src").unlink()
                (shop / "aside").rename(shop / "src")

    swapping = threading.Thread(target=swap)
    swapping.start()
    found: Counter[bytes] = Counter()
    end_s = time.monotonic() + 30
    try:
        while (found.total() < 3000 or len(found) < 2) and time.monotonic() < end_s:
            found[read(shop)] += 1
    finally:
        ended.set()
        swapping.join()
    assert set(found) == {b"print()\n", b""}, "it was read, and it was not there, and nothing else was read"


def read(shop: Path) -> bytes:
    """Open the file after its path was resolved, and read it; nothing if that fails."""
    try:
        file = project_file._opened(shop, ("src", "a.py"))
    except OSError:
        return b""
    try:
        return os.read(file, 100)
    finally:
        os.close(file)
