"""What is built and handed out: the wheel, and that it is what the tests have tested."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hermes

ROOT = Path(__file__).parent.parent


def test_what_is_tested_is_the_built_wheel() -> None:
    """`make test` runs the suite with the wheel installed; what lies in the checkout must not stand in for it."""
    if not os.environ.get("HERMES_REQUIRE_WHEEL"):
        pytest.skip("this run tests the checkout; `make test` tests the wheel")
    assert Path(hermes.__file__).is_relative_to(ROOT / ".cache" / "wheel" / "lib")


def test_the_wheel_holds_what_is_needed(tmp_path: Path) -> None:
    """Built as `make wheel` does; units, plugin and types are in it, and its code finds the units there."""
    build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, ROOT]
    subprocess.run([sys.executable, *map(str, build)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("hermes_phone-*.whl")
    unpacked = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, unpacked], check=True)
    held = {str(place.relative_to(unpacked)) for place in unpacked.rglob("*") if place.is_file()}
    units = {f"hermes/systemd/{name}" for name in ("hermes.service", "hermes-reap.service", "hermes-reap.timer")}
    units.add("hermes/config.example.toml")
    wanted = {"hermes/agents/opencode/plugin.js", "hermes/py.typed", "hermes/systemd/system/hermes.service", *units}
    assert wanted <= held
    assert not [name for name in held if not name.startswith(("hermes/", "hermes_phone-"))]
    asked = f"import sys; sys.path.insert(0, {str(unpacked)!r}); from hermes.commands.loading import shipped; "
    for unit in units:
        answer = subprocess.run(
            [sys.executable, "-c", f"{asked}print(shipped({unit.removeprefix('hermes/')!r}))"],
            cwd="/",
            check=True,
            capture_output=True,
            text=True,
        )
        assert answer.stdout.strip() == str(unpacked / unit)
