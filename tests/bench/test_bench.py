"""The benchmark measures what it says: a very small form of each figure, and what becomes of the numbers."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.bench import probes, report
from tests.bench.__main__ import GROUPS, Group, main, run
from tests.bench.burst import earliest_s
from tests.bench.figures import FULL, Effort, Figure, ratios
from tests.harness.home import BinaryMissingError
from tests.harness.processes import Proc, until

TINY: Final = Effort(
    rounds=1, warm_up=0, starts=1, pause_s=0.0, idle_s=0.2, few=2, many=20, changes=2,
    at_once=20, rate_scale=2.0, waiters=1, settle_s=0.1, machines=2, takeovers=1,
)  # fmt: skip
WITH_OPENCODE: Final = ("opencode", "permission", "plugin", "prompt")
_NEEDS_OPENCODE: Final = (pytest.mark.scene, pytest.mark.xdist_group("opencode-1.18.33"), pytest.mark.nightly)
_LONG: Final = ("burst", "idle", "machines", "opencode2", "start")
MARKS: Final = dict.fromkeys(WITH_OPENCODE, _NEEDS_OPENCODE) | dict.fromkeys(_LONG, (pytest.mark.nightly,))
"""The groups that are marked take seconds each, most of them half a minute, even in their smallest form."""
SPEED: Final = Figure("the speed of a test", "ms", 8.0)


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in GROUPS])
def test_each_group_measures_each_of_its_figures(name: str, tmp_path: Path) -> None:
    """No row is left out, none is made up, and none is zero where something was at work.

    From an event to a message it may be less: who follows the events beside Hermes may be the slower one.
    """
    figures, failed = run([name], TINY, tmp_path)
    assert not failed
    assert [figure.name for figure in figures] == [figure.name for figure in GROUPS[name].figures(TINY)]
    assert [figure.missing for figure in figures] == [""] * len(figures)
    assert all(value != 0 for figure in figures for value in figure.values if "CPU" not in figure.name)


def test_every_row_of_the_issue_has_its_limit() -> None:
    """The full benchmark judges all that must be reached, and by these numbers."""
    figures = [figure for group in GROUPS.values() for figure in group.figures(FULL)]
    limits = {(figure.most, figure.unit) for figure in figures if figure.most is not None}
    wanted = {(2.2, "×"), (8.0, "ms"), (4.0, "× pass"), (4.0, "ms"), (3.0, "calls"), (1.3, "×"), (1.5, "×")}
    wanted |= {(50.0, "ms"), (3.0, "×"), (200.0, "MB"), (20.0, "s"), (2.0, "a second")}
    assert limits == wanted | {(1.2, "×"), (60.0, "MB"), (90.0, "MB"), (14.0, "MB"), (0.3, "% of a core"), (1.0, "s")}
    assert len({figure.name for figure in figures}) == len(figures)
    assert min(FULL.rounds, FULL.starts, FULL.changes) >= 30


# --- figures --------------------------------------------------------------------------------------------------------


def test_a_figure_is_judged_by_its_median() -> None:
    """A few slow ones are told by p95, and do not make it miss."""
    figure = SPEED.measured(*[7.0] * 35, *[50.0] * 5)
    assert (figure.median, figure.p95, figure.reached) == (7.0, 50.0, True)
    assert SPEED.measured(8.0).reached is True
    assert SPEED.measured(8.1).reached is False


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    """It has no number at all, and says why."""
    for figure in (SPEED, SPEED.impossible("no disk"), SPEED.measured()):
        assert (figure.median, figure.p95, figure.reached) == (None, None, None)
        assert figure.missing
    assert SPEED.measured(1.0).impossible("after all").values == ()


def test_a_ratio_is_taken_against_the_median() -> None:
    """One slow bare Python does not flatter what is compared with it."""
    assert ratios([0.02, 0.04], [0.01, 0.01, 0.5]) == (2.0, 4.0)


def test_the_earliest_end_keeps_telegrams_windows() -> None:
    """Three at once and then three in any three seconds; what is asked later goes later."""
    assert earliest_s([0.0] * 3, 1.0) == 0.0
    assert earliest_s([0.0] * 4, 1.0) == 3.0
    assert earliest_s([0.0] * 7, 1.0) == 6.0
    assert earliest_s([0.0, 1.0, 2.0, 2.5], 1.0) == 3.0
    assert earliest_s([0.0] * 1000, 20.0) == 48.0
    assert earliest_s([0.0] * 31, 10.0) == 3.0


# --- probes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def spinner(tmp_path: Path) -> Iterator[Proc]:
    """A process that holds 50 MB and spins."""
    code = "held = bytearray(b'x' * 50_000_000)\nprint('held', flush=True)\nwhile True: pass"
    command = [sys.executable, "-I", "-c", code]
    with Proc(command, cwd=tmp_path, environ=os.environ, log_dir=tmp_path, name="spinner") as process:
        process.wait_line("held")
        yield process


def test_memory_and_processor_time_are_those_of_the_process(spinner: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its 50 MB and its spinning are seen, and one that spins is never at rest."""
    held = probes.memory(spinner.pid)
    assert held.rss > 50
    assert 50 < held.pss <= held.rss
    until(lambda: probes.cpu_share(spinner.pid, 0.3) > 0, 60, "its spinning")
    # Where the machine has no time for it, it seems to rest.
    spun = itertools.count()
    monkeypatch.setattr(probes, "cpu_s", lambda _: float(next(spun)))
    with pytest.raises(AssertionError, match="at rest"):
        probes.settle(spinner.pid, look_s=0.3, timeout_s=1)


def test_a_process_at_rest_has_settled(tmp_path: Path) -> None:
    """One that waits for its input is."""
    with subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE) as waiting:
        probes.settle(waiting.pid, look_s=0.1)
        assert probes.cpu_share(waiting.pid, 0.1) < 50
        waiting.kill()


def test_a_command_that_fails_is_not_timed(tmp_path: Path) -> None:
    """How fast something broke is no figure."""
    (tmp_path / "nothing").touch()
    command = [sys.executable, "-I", "-c", "import sys; sys.exit(3)"]
    with pytest.raises(AssertionError):
        probes.lasted_s(command, environ=probes.ENVIRON, stdin=tmp_path / "nothing")


# --- the tool -------------------------------------------------------------------------------------------------------


def _good(_: Effort, __: Path) -> list[Figure]:
    return [SPEED.measured(9.0, 9.0, 9.5, note="as expected")]


def _without_binary(_: Effort, __: Path) -> list[Figure]:
    raise BinaryMissingError("no OpenCode binary: run `make opencode`; needs npm")


def _broken(_: Effort, __: Path) -> list[Figure]:
    raise TimeoutError("nobody came")


def _group(measure: object) -> Group:
    return Group(lambda _: (SPEED,), measure)  # type: ignore[arg-type]


def test_a_missed_figure_is_shown_and_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table says ✘, the JSON keeps every value with date, machine and command."""
    kept = tmp_path / "bench.json"
    assert main(["--quick", "--json", str(kept)], groups={"good": _group(_good)}) == 0
    shown = capsys.readouterr().out
    assert "✘" in shown
    assert "9 ms" in shown
    assert f"python -m tests.bench --quick --json {kept}" in " ".join(shown.split())
    told = json.loads(kept.read_text())
    assert told["figures"][0]["values"] == [9.0, 9.0, 9.5]
    assert told["figures"][0]["median"] == statistics.median([9.0, 9.0, 9.5])
    assert told["figures"][0]["reached"] is False
    assert {"processor", "kernel", "file system", "python", "hermes", "commit"} <= set(told["machine"])
    assert set(told["load_before_each"]) == {"good", "the end"}
    assert told["date"].startswith(time.strftime("%Y-", time.gmtime()))


def test_without_the_binary_a_figure_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """It shows no number, and the rest goes on."""
    groups = {"binary": _group(_without_binary), "good": _group(_good)}
    assert main([], groups=groups) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "not measured: no OpenCode" in shown
    assert "✘" in shown


def test_a_measurement_that_goes_wrong_is_a_failure_of_the_tool(tmp_path: Path) -> None:
    """Its rows say so, the other groups are measured all the same, and the exit status is 1."""
    groups = {"broken": _group(_broken), "good": _group(_good)}
    figures, failed = run(list(groups), TINY, tmp_path, groups=groups)
    assert failed
    assert [figure.reached for figure in figures] == [None, False]
    assert main(["--only", "broken"], groups=groups) == 1


def test_one_row_a_figure() -> None:
    """What must be reached stands beside what was."""
    table = report.table([SPEED.measured(1.0, 2.0), Figure("only told", "MB").measured(3.0)], "a test")
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["the speed of a test", "only told"]
    assert cells[4] == ["≤ 8 ms", "–"]
    assert cells[5] == ["✔", " "]
