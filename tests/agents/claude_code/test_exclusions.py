"""Which files Claude Code's settings keep from it: as it reads, or does not read them, itself."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final

import pytest

from hermes.agents.claude_code.exclusions import LARGEST, exclusions
from hermes.agents.prompting import MOST_CHARACTERS
from hermes.errors import AgentRefused
from tests.harness.claude_code import Home, binary
from tests.harness.messages import running_messages

if TYPE_CHECKING:
    from pathlib import Path

PROJECT: Final = (
    "a.txt", "./b.txt", "/c.txt", "d", "e/**", "f/*.key", "*.PEM2", "[gh].txt", "[^x]1", "l/", "**/s.txt",
    "m/**/x.txt", "t/*", r"r\.txt", r"st\*r", "dd/*/e", "a{b,c}", "#z", "../up.txt", " y.txt ", "j?.txt",
)  # fmt: skip
DENIED: Final = (
    "a.txt", "sub/a.txt", "b.txt", "sub/b.txt", "c.txt", "d/x", "sub/d/x", "e/x", "sub/e/x", "f/x.key", "x.pem2",
    "X.PEM2", "g.txt", "x1", "j1.txt", "l/x", "s.txt", "sub/s.txt", "m/x.txt", "m/1/2/x.txt", "t/x", "t/u/x", "r.txt",
    "st*r", "dd/1/e/f", "a{b,c}", "#z", "local.txt", "mine.txt", "home.txt", "whole.txt", "link", "folder/x",
)  # fmt: skip
READ: Final = (
    "README.md", "sub/c.txt", "f/g/x.key", "sub/f/x.key", "i.txt", "y1", "jj1.txt", "star", "ab", "y.txt", "edit.txt",
    "up.txt", "sub/home.txt", "sub/whole.txt",
)  # fmt: skip


def denying(file: Path, *rules: object) -> None:
    """Write settings that deny these."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"permissions": {"deny": rules}}))


def furnish(home: Path, project: Path) -> None:
    """Write the settings, and all files."""
    denying(
        project / ".claude" / "settings.json", *(f"Read({one})" for one in PROJECT), "Edit(edit.txt)", "Bash(cat *)"
    )
    denying(project / ".claude" / "settings.local.json", "Read(local.txt)", f"Read(/{project}/whole.txt)", 5)
    denying(home / ".claude" / "settings.json", "Read(mine.txt)", f"Read(~/{os.path.relpath(project, home)}/home.txt)")
    (project / "link").symlink_to("a.txt")
    (project / "folder").symlink_to("d")
    for name in (*DENIED, *READ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("text")


def denied(home: Path, project: Path, *names: str) -> set[str]:
    """Return those of these files that are excluded by their own names, or by their real paths."""
    excludes = exclusions(str(project), "", {"HOME": str(home)})
    paths = {name: (project / name, (project / name).resolve()) for name in names}
    return {name for name, each in paths.items() if any(excludes(str(one)) for one in each)}


def test_the_rules_of_all_settings_count(tmp_path: Path) -> None:
    """Those of the project, of the person in it, and of the person everywhere."""
    project = tmp_path / "home" / "shop"
    project.mkdir(parents=True)
    furnish(tmp_path / "home", project)
    assert denied(tmp_path / "home", project, *DENIED, *READ) == set(DENIED)


@pytest.mark.scene(needs=binary)
def test_claude_code_reads_the_same(tmp_path: Path) -> None:
    """The real one; a path to the home folder goes no way upwards."""
    with running_messages() as messages:
        home = Home(tmp_path, messages.base_url)
        home.project = home.path / "shop"
        home.project.mkdir()
        furnish(home.path, home.project)
        names = (*DENIED, *READ)
        reads = [{"tool": "Read", "args": {"file_path": str(home.project / name)}} for name in names]
        with home.run([*reads, {"text": "Read."}], "--allowedTools", "Read") as claude:
            claude.wait(100)
        results = messages.received("desk")
    assert len(results) == len(names)
    assert {name for name, result in zip(names, results, strict=True) if "denied" in result} == set(DENIED)


def test_settings_above_and_the_rule_without_a_path_count(tmp_path: Path) -> None:
    """A session may have gone into a folder of the project; each pattern counts from both."""
    below = tmp_path / "shop" / "sub"
    denying(tmp_path / "shop" / ".claude" / "settings.json", "Read(/a.txt)", "Read(b/c.txt)")
    assert denied(tmp_path, below, "a.txt", "../a.txt", "../b/c.txt", "b/c.txt", "d.txt") == {
        "a.txt", "../a.txt", "../b/c.txt", "b/c.txt",
    }  # fmt: skip
    for everything in ("Read", "Read(**)", "Read(/**)", "Read(//**)", "Read(*)", "Read(~/)"):
        denying(below / ".claude" / "settings.json", everything)
        assert denied(tmp_path, below, "d.txt", "e/f.txt") == {"d.txt", "e/f.txt"}


def test_the_settings_of_the_user_count_from_each_folder_above(tmp_path: Path) -> None:
    """They may lie in another folder than ~/.claude: it is that of the session's record."""
    config, below = tmp_path / "config", tmp_path / "shop" / "secrets"
    denying(config / "settings.json", "Read(secrets/prod/**)")
    excluded = str(below / "prod" / "key")
    home = {"HOME": str(tmp_path / "home")}
    assert exclusions(str(below), str(config / "projects" / "-shop" / "s.jsonl"), home)(excluded)
    assert not exclusions(str(below), str(config / "other" / "-shop" / "s.jsonl"), home)(excluded)
    assert not exclusions(str(below), "", home)(excluded)


def test_the_settings_of_those_who_manage_the_machine_count(tmp_path: Path) -> None:
    """The file, and each of its pieces; a folder that is not there does not matter."""
    home, project, managed = tmp_path / "home", tmp_path / "project", tmp_path / "managed"
    denying(managed / "managed-settings.json", "Read(./customers.csv)")
    denying(managed / "managed-settings.d" / "10-more.json", "Read(more.txt)")
    denying(managed / "managed-settings.d" / "notes.txt", "Read(other.txt)")
    project.mkdir()
    excludes = exclusions(str(project), "", {"HOME": str(home)}, (managed, tmp_path / "nowhere"))
    names = ("customers.csv", "more.txt", "other.txt")
    assert [name for name in names if excludes(str(project / name))] == ["customers.csv", "more.txt"]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"permissions": []}', '{"permissions": {"deny": "Read(a)"}}', "[" * 9999, " " * LARGEST + "{}"],
    ids=lambda content: content[-30:],
)
def test_settings_that_cannot_be_understood_are_named(tmp_path: Path, content: str) -> None:
    """Nobody can tell what they exclude."""
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(AgentRefused) as refused:
        exclusions(str(tmp_path), "", {"HOME": str(tmp_path / "home")})
    assert refused.value.said == f"{file} cannot be read"


def test_settings_may_be_a_link_but_no_pipe_and_no_device(tmp_path: Path) -> None:
    """Nothing is opened that could hang; a link that leads nowhere is no file."""
    home, file = tmp_path / "home", tmp_path / "shop" / ".claude" / "settings.json"
    denying(tmp_path / "kept" / "claude.json", "Read(a.txt)")
    file.parent.mkdir(parents=True)
    file.symlink_to(tmp_path / "kept" / "claude.json")
    assert denied(home, tmp_path / "shop", "a.txt") == {"a.txt"}
    for other in ("/dev/zero", tmp_path / "pipe", tmp_path, file):
        file.unlink()
        file.symlink_to(other)
        if other == tmp_path / "pipe":
            os.mkfifo(other)
        with pytest.raises(AgentRefused):
            exclusions(str(tmp_path / "shop"), "", {"HOME": str(home)})
    file.unlink()
    file.symlink_to(tmp_path / "nowhere")
    assert denied(home, tmp_path / "shop", "a.txt") == set()


def test_no_pattern_takes_long(tmp_path: Path) -> None:
    """The settings are words of the repository."""
    steps = "/".join(["**", "*a" * 20] * 100)
    denying(tmp_path / ".claude" / "settings.json", *[f"Read({steps}/{number})" for number in range(4)])
    began = time.monotonic()
    assert denied(tmp_path / "home", tmp_path, "/".join(["a" * 30] * 100)) == set()
    assert time.monotonic() - began < 10
    denying(tmp_path / ".claude" / "settings.json", *["Read(a)"] * MOST_CHARACTERS)
    with pytest.raises(AgentRefused, match="too long"):
        exclusions(str(tmp_path), "", {"HOME": str(tmp_path)})
