"""`hermes doctor` as a person starts it: in a terminal, in a pipe, for machines; all at once, and within its time."""

import asyncio
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pexpect
import pytest

from hermes.commands.doctor import checkup
from hermes.commands.doctor.finding import Area
from hermes.commands.doctor.report import summary
from hermes.sandbox.botapi import RunningBotApi
from hermes.sandbox.opencode.server import running_agent
from tests.at_once import at_once
from tests.commands.doctor.patient import Patient
from tests.sandbox.raw_bot import raw_bot
from tests.storage.store_process import an_entry

HERMES = [sys.executable, "-I", "-m", "hermes"]
AREAS = [
    "Configuration",
    "Telegram",
    "OpenCode servers",
    "OpenCode 2",
    "OpenCode plugin",
    "Listener",
    "Prompts",
    "Store",
]


def environ(patient: Patient, **more: str) -> dict[str, str]:
    """Return the environment of a person's terminal."""
    return {**patient.environ, "PATH": f"{patient.bin}:/usr/bin:/bin", "TERM": "xterm-256color", **more}


def command(patient: Patient, *options: str) -> list[str]:
    """Return the command line of the doctor for this patient."""
    return [*HERMES, "doctor", "--config", str(patient.config_file), *options]


def run(patient: Patient, *options: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run it in a pipe."""
    return subprocess.run(
        command(patient, *options),
        cwd=patient.project, env=environ(patient), capture_output=True, text=True, check=False, **more,
    )  # fmt: skip


def in_terminal(patient: Patient, line: str, *, columns: int = 100, timeout_s: float = 60) -> tuple[str, int | None]:
    """Run a line of shell in a terminal; what stood on it, without its colours, and the status."""
    child = pexpect.spawn(
        "/bin/sh", ["-c", line], cwd=str(patient.project), env=environ(patient),
        dimensions=(50, columns), encoding="utf-8", timeout=timeout_s,
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.close()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", str(child.before)).replace("\r", "\n")
    return shown, child.exitstatus


@pytest.fixture
def sick(healthy: Patient, api: RunningBotApi) -> Patient:
    """Much is wrong at once, some of which can be mended."""
    healthy.serve("http://127.0.0.1:9", password="hush-hush")
    text = healthy.install()
    healthy.plugin.write_text(f"{text}// of old\n")
    healthy.config_file.chmod(0o644)
    at_once(healthy.store.create(an_entry(asked_s=time.time())))
    healthy.store.home.root.chmod(0o755)
    api.phone.block()
    with raw_bot(api) as bot:
        bot("setWebhook", url="https://hooks.example.org/s3cret")
    return healthy


def test_a_sick_machine_in_a_terminal(sick: Patient, api: RunningBotApi) -> None:
    """Every trouble with its sign and its mend, by area, and the count; status 1. `--fix` mends what is safe."""
    line = shlex.join(command(sick))
    shown, status = in_terminal(sick, line)
    assert status == 1
    assert [area for area in shown.splitlines() if area.strip() in AREAS] == AREAS
    for check in ("modes", "webhook", "writing", "opencode", "version", "lock"):
        assert re.search(rf"^ *✘ {check} ", shown, re.MULTILINE), check
    assert f"→ chmod 600 {sick.config_file}\n" in shown
    assert "7 problems, 1 warning; `hermes doctor --fix` fixes 4." in shown
    assert not {sick.token, "hush-hush", "s3cret"} & set(re.split(r"[\s'\"/]", shown))

    shown, status = in_terminal(sick, f"{line} --fix")
    assert status == 1
    for said in ("Closed to others: ", "The webhook was deleted", "was updated."):
        assert said in shown
    assert "3 problems." in shown
    assert not api.phone.state().webhook
    assert len(at_once(sick.store.survey()).entries) == 1


def test_a_healthy_machine_in_a_pipe(healthy: Patient) -> None:
    """One line a check, without colours; status 0."""
    healthy.install()
    with running_agent() as agent:
        healthy.serve(agent.url)
        done = run(healthy)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line in AREAS] == AREAS
    assert all(line in AREAS or line.startswith("  ✔ ") for line in lines[:-2])
    assert lines[-1] == "All is well."
    assert "\x1b" not in done.stdout


def test_a_list_for_machines_holds_no_secret(sick: Patient) -> None:
    """Standard output is the list alone; what `--fix` did goes beside."""
    done = run(sick, "--json", "--fix")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert {tuple(one) for one in found} == {("area", "check", "verdict", "seen", "mend", "fixable")}
    assert {one["verdict"] for one in found} == {"good", "broken"}
    assert [one["area"] for one in found] == sorted((one["area"] for one in found), key=AREAS.index)
    assert "The webhook was deleted" in done.stderr
    for secret in (sick.token, sick.token.partition(":")[2], "hush-hush", "s3cret"):
        assert secret not in done.stdout + done.stderr


def test_a_full_disk_is_told_in_a_terminal(healthy: Patient) -> None:
    """No file may grow: the store says so in plain words."""
    healthy.install()
    assert at_once(healthy.store.survey()).entries == ()
    shown, status = in_terminal(healthy, f"ulimit -f 0; {shlex.join(command(healthy))}", columns=200)
    assert status == 1
    assert re.search(r"✘ writing .*nothing was saved in .*larger than this process may write", shown)


def test_everything_out_of_reach_is_given_up_within_seconds(patient: Patient) -> None:
    """Telegram and two servers take connections and never answer; a Python and a service manager hang."""
    altered = patient.install().replace(sys.executable, str(patient.program("python", "exec sleep 600")))
    patient.plugin.write_text(altered)
    patient.program("systemctl", "exec sleep 600")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        patient.serve(url, name="one")
        patient.serve(url, name="two")
        patient.write(api_base=url)
        began_s = time.monotonic()
        found = asyncio.run(checkup.examine(patient.config_file, environ=environ(patient)))
    assert time.monotonic() - began_s < 20  # one after another would be more
    assert [one.check for one in found if one.verdict == "broken"] == ["reach", "one", "two", "python"]


def test_without_a_configuration_there_is_one_thing_to_do(patient: Patient) -> None:
    """Status 1, and the command that makes one."""
    patient.config_file.unlink()
    done = run(patient)
    assert done.returncode == 1
    assert done.stdout.count("\n") < 8
    assert "→ hermes setup" in done.stdout


def test_a_test_question_goes_all_the_way(healthy: Patient, api: RunningBotApi) -> None:
    """Hook, store, listener, phone, and back: by a listener that is started for it."""
    healthy.install()
    child = pexpect.spawn(
        command(healthy, "--test")[0], command(healthy, "--test")[1:], cwd=str(healthy.project),
        env=environ(healthy), dimensions=(50, 120), encoding="utf-8", timeout=60,
    )  # fmt: skip
    child.expect("answer it on the phone")
    asked = api.phone.message_with("Does this question reach you?", 30)
    (entry,) = asyncio.run(healthy.store.survey()).entries
    assert entry.ask.ttl_s == checkup.TRIAL_S, "the phone must show when it ends"
    api.phone.tap(asked, "Yes")
    child.expect(pexpect.EOF)
    child.close()
    assert re.search(r"answered after .*: Yes", str(child.before))
    assert child.exitstatus == 0
    holder = healthy.store.home.listener()
    assert holder is not None
    os.kill(holder.pid, 15)  # the one that the question started; it would stay for ten minutes


def test_a_test_question_is_not_asked_where_it_cannot_arrive(sick: Patient) -> None:
    """What is broken comes first."""
    done = run(sick, "--test")
    assert "not run: first fix what is broken (Configuration, Telegram, Store)" in done.stdout
    assert "Asking" not in done.stdout


@pytest.mark.parametrize(
    ("broken", "warnings", "fixes", "words"),
    [
        (0, 0, 0, "All is well."),
        (1, 0, 0, "1 problem."),
        (0, 2, 1, "2 warnings; `hermes doctor --fix` fixes 1."),
        (3, 1, 2, "3 problems, 1 warning; `hermes doctor --fix` fixes 2."),
    ],
)
def test_the_last_line_counts(broken: int, warnings: int, fixes: int, words: str) -> None:
    """Problems, warnings, and how many of both are mended."""
    area = Area("x")

    async def mend() -> str:
        return "done"

    found = [area.broken("a", "b")] * broken + [area.warning("c", "d")] * warnings
    fixable = [replace(one, fix=mend) for one in found[:fixes]]
    assert summary(fixable + found[fixes:]).plain == words
