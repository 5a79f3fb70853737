"""Every command in README, run as it stands there; and every link leads somewhere."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.commands.setup.desk import CTRL_C, Desk, Terminal, a_desk, pairs
from tests.harness.home import ROOT
from tests.harness.processes import Proc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "hermes/README.md", "hermes/agents/README.md", "tests/README.md", "tests/faults/README.md")
SHELL = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]
NAMED = {" ".join(said.split()) for said in re.findall(r"`((?:hermes|make) [^`]*)`", README)}

PLAIN = (
    "hermes status",
    "hermes log --since 7d",
    "hermes config",
    "hermes config --example",
    "hermes hook --help",
    "hermes install opencode",
    "hermes install claude-code",
    "hermes install oh-my-pi",
    "hermes install neovate",
    "hermes install service",
    "hermes install reap",
    "hermes lock",
    "hermes unlock",
    "hermes stop",
    "hermes uninstall all",
)
"""They end with 0 in a home that is set up, in this order."""
JUDGES = ("hermes doctor", "hermes doctor --fix")
"""Their status says what they found."""
ASKING = ("hermes doctor --test", "hermes ask", "hermes hook generic")
SERVING = ("hermes listen", "hermes status --watch")
"""They run in a terminal until Ctrl-C."""
ELSEWHERE = {
    "hermes setup": "test_the_steps_of_a_newcomer",
    "hermes mcp": "tests/commands/ask/test_mcp.py",
    "hermes store": "tests/commands/store",
    "hermes store move files": "tests/commands/store/test_move.py",
    "hermes store remove workstation": "tests/commands/store/test_machines.py",
    "make quick": "test_the_targets_are_there",
    "make test": "test_the_targets_are_there",
}
ASKED = [line for line in SHELL if "hermes ask" in line]
NOT_RUN = {
    "git clone <the address of this repository> hermes && cd hermes",
    "pipx install .",
    "pipx install --force '.[postgres]' && hermes setup",
    "hermes store add workstation",
    "pipx install '.[postgres]' && hermes setup --join 'postgresql://workstation@db.example/hermes'",
}
"""What needs a network; the wheel is built and run by `make test`, and the rest by `tests/commands/setup`."""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A home that is set up, with `hermes` on its PATH, OpenCode, and a systemd that says that all is well."""
    with a_desk(tmp_path) as ready:
        ready.has("hermes", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -m hermes "$@"\n')
        ready.has_opencode()
        ready.has_systemd()
        ready.has_config()
        yield ready


def typed(desk: Desk, line: str, name: str = "typed") -> Proc:
    """A line that is typed into a shell."""
    return Proc(["/bin/sh", "-c", line], cwd=desk.root, environ=desk.environ, log_dir=desk.root / "logs", name=name)


def test_no_command_of_readme_is_left_out() -> None:
    """Each is in a list above, and each of those stands in README."""
    ours = {said for said in NAMED if said.startswith("hermes ")}
    assert ours - {*PLAIN, *JUDGES, *ASKING, *SERVING, *ELSEWHERE} == set()
    said = {line.partition("  ")[0].strip() for line in SHELL if not line.startswith("#")}
    lines = said - {"", "make demo", "hermes setup", *ASKED}
    assert lines == NOT_RUN
    everything = README.replace("\n", " ")
    assert [said for said in (*PLAIN, *SERVING, *ELSEWHERE) if said not in everything] == []


def test_the_commands_that_end(desk: Desk) -> None:
    """In the order of the list, from `install` to `uninstall all`: each with the status 0."""
    for number, line in enumerate(PLAIN):
        with typed(desk, line, f"plain-{number}") as process:
            assert process.wait(60) == 0, f"{line}: {process.output()}"


@pytest.mark.parametrize("line", JUDGES)
def test_the_commands_that_judge(desk: Desk, line: str) -> None:
    """0 or 1, and never a traceback."""
    with typed(desk, line) as process:
        assert process.wait(60) in {0, 1}
        assert "Traceback" not in process.output()


@pytest.mark.parametrize("line", SERVING)
def test_the_commands_that_stay(desk: Desk, line: str) -> None:
    """Until Ctrl-C."""
    command = ["/bin/sh", "-c", f"exec {line}"]
    with Terminal(command, desk.environ, desk.root, columns=80, lines=24) as terminal:
        terminal.sees("Ctrl-C stops." if line == "hermes listen" else "listener")
        terminal.presses(CTRL_C)
        assert terminal.ends() in {0, 130}


@pytest.mark.parametrize(("line", "answer", "said"), [
    (ASKED[0], "Yes", "deployed"), (ASKED[0], "No", "Yes no"), (ASKED[1], "Small", "provisioned Small"),
])  # fmt: skip
def test_the_questions_of_a_script(desk: Desk, line: str, answer: str, said: str) -> None:
    """What is behind && runs for a yes alone, and gets the answer."""
    for name, word in (("deploy", "deployed"), ("provision", 'provisioned "$1"')):
        (desk.root / name).write_text(f"#!/bin/sh\necho {word}\n")
        (desk.root / name).chmod(0o755)
    with typed(desk, line) as process:
        question = "Deploy to production?" if "--yes-no" in line else "Which tier?"
        desk.api.phone.tap(desk.api.phone.message_with(question, 60), answer)
        status = process.wait(60)
        shown = process.output()
    assert ("deployed" in shown) == (said == "deployed")
    assert status == (13 if answer == "No" else 0)
    assert said in shown or answer == "No"


def test_a_question_as_json(desk: Desk) -> None:
    """The example of `hermes hook --help`."""
    told = subprocess.run(
        [sys.executable, "-m", "hermes", "hook", "--help"], capture_output=True, text=True, check=True
    )
    (example,) = re.findall(r"^  (echo .*?\| hermes hook generic)$", told.stdout, re.MULTILINE | re.DOTALL)
    with typed(desk, example) as process:
        desk.api.phone.tap(desk.api.phone.message_with("Go?", 60), "Yes")
        assert process.wait(60) == 0
        (printed,) = [line for line in process.output().splitlines() if line.startswith("{")]
        assert json.loads(printed) == {"kind": "answer", "answers": [["Yes"]]}


def test_the_steps_of_a_newcomer(tmp_path: Path) -> None:
    """`hermes setup` in a terminal, in a home that has never seen Hermes."""
    with a_desk(tmp_path) as desk, desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        pairs(terminal, desk)
        assert terminal.ends() == 0
        assert "All set." in terminal.said() or "Saved" in terminal.said()


def test_the_targets_are_there() -> None:
    """Of make; `make -n` knows each."""
    targets = {word for page in PAGES for word in re.findall(r"\bmake ([a-z]+)`", (ROOT / page).read_text())} | {"demo"}
    assert {"quick", "test"} <= targets
    for target in sorted(targets):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


@pytest.mark.parametrize("page", [*PAGES, "tests/bench/README.md"])
def test_the_links_lead_somewhere(page: str) -> None:
    """Within the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    inside = [link for link in found if not link.startswith("https://")]
    assert [link for link in inside if not ((ROOT / page).parent / link).exists()] == []
