"""Fixtures that all tests share: a scripted model and real OpenCode servers, terminals and projects."""

import contextlib
import os
import re
import signal
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from hermes.sandbox.model_server import ScriptedModel, running_model
from hermes.sandbox.postgres import ServerMissingError, programs
from tests.harness.home import LONG_LIFE, VERSIONS, BinaryMissingError, Home, binary
from tests.harness.listeners import left_behind
from tests.harness.opencode import OpenCode
from tests.harness.postgres import Database, Server
from tests.harness.processes import SWEEPER
from tests.harness.tui import Tui

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")  # how long an example takes says nothing on a machine that does much else

PARTS = 3
"""One worker alone would play the scenes of the newest version for longer than the others play all the rest."""


def pytest_configure() -> None:
    """Take Ctrl-C back: a shell that runs the tests in the background lets them, and their programs, ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that runs a real OpenCode as a scene, and each with a real PostgreSQL: `make quick` has neither.

    The scenes of the older version go to one worker, which needs only one shared server for them; those of the newest
    go to three, by their files.
    Files are played in no order: those that mostly wait stand beside those that mostly work.
    Of the older version `make test` plays the gotchas and one story of each file, of the demo's page in a real browser
    those marked as stories, and of all else what is not marked `nightly`: that mark is for tests that take long, and
    show a variant or a rare trouble. `make nightly` plays all.
    """
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()) and item.get_closest_marker("story") is None:
            item.add_marker("nightly")
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker("database")
        if "opencode_version" in getattr(item, "fixturenames", ()):
            item.add_marker("scene")
            parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
            part = zlib.crc32(item.path.name.encode()) % PARTS
            if parameters.get("opencode_version") == VERSIONS[-1]:
                part = 0
                if item.path.name != "test_gotchas.py" and item.get_closest_marker("story") is None:
                    item.add_marker("nightly")
            item.add_marker(pytest.mark.xdist_group(f"opencode-{parameters.get('opencode_version')}-{part}"))
    items.sort(key=lambda item: zlib.crc32(item.path.name.encode()))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip scenes whose binary is missing, all in one line; fail them where scenes are required.

    `scene(needs=…)` names what looks for the binary of another agent than OpenCode.
    """
    marker = item.get_closest_marker("scene")
    if marker is None:
        return
    parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    wanted = parameters.get("opencode_version")
    try:
        if "needs" in marker.kwargs:
            marker.kwargs["needs"]()
            return
        for version in [wanted] if wanted else VERSIONS:
            binary(version)
    except BinaryMissingError as error:
        if os.environ.get("HERMES_REQUIRE_SCENES") == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def pytest_unconfigure() -> None:
    """End what a test may have left, now, and reap the process that watched for it."""
    SWEEPER.close()


@pytest.fixture(scope="session", autouse=True)
def _no_listener_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """End the listeners that any test of this run left behind, and fail: the folder in the words tells which one."""
    yield
    left = left_behind(tmp_path_factory.getbasetemp())
    assert not left, f"a test left a listener behind: {left}"


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedModel]:
    """A scripted model for all OpenCodes of this run; its memory is kept apart by key."""
    with running_model() as running:
        yield running


@pytest.fixture(scope="session", params=VERSIONS)
def opencode_version(request: pytest.FixtureRequest) -> str:
    """Each OpenCode version in turn."""
    version: str = request.param
    return version


@pytest.fixture(scope="session")
def opencode(
    opencode_version: str, model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenCode]:
    """One server of this version for all tests that leave it as it was: use it with `project`.

    For a password, a freeze, a restart, or a plugin in the home: `private_opencode`.
    """
    root = tmp_path_factory.mktemp(f"opencode-{opencode_version}")
    with OpenCode(Home(root, opencode_version, model.base_url), environ=LONG_LIFE) as server:
        yield server


@pytest.fixture(scope="session")
def _desk(opencode: OpenCode) -> Path:
    return opencode.home.project("desk")


@pytest.fixture
def project(opencode: OpenCode, _desk: Path) -> Iterator[Path]:
    """The project that tests share on the shared server; nothing of a test is left in it when that has ended.

    The first prompt in a directory keeps OpenCode 1.18.33 busy for seconds, each further one for a fraction of that.
    What stays in an instance (an "always") or needs another configuration wants an `own_project`.
    """
    yield _desk
    opencode.clear(_desk)


@pytest.fixture
def own_project(opencode: OpenCode, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A project of this test's own on the shared server."""
    name = re.sub(r"\W+", "-", request.node.name)[:40].strip("-")
    directory = opencode.home.project(f"{name}-{len(list(opencode.home.projects.iterdir()))}")
    yield directory
    opencode.discard(directory)


@pytest.fixture
def plugged(opencode: OpenCode, tmp_path: Path) -> Iterator[Callable[..., OpenCode]]:
    """Go to a fresh project of the shared server that has Hermes' plugin; arguments as of `Home.project`.

    Its Hermes is in `tmp_path`, its directory the server's own meanwhile.
    """
    usual = opencode.directory

    def go(hermes: Path = tmp_path, **config: Any) -> OpenCode:
        opencode.directory = opencode.home.project(f"plugged-{uuid.uuid4().hex[:6]}", **config)
        opencode.home.plug(opencode.directory, hermes)
        return opencode

    yield go
    plugged, opencode.directory = opencode.directory, usual
    if plugged != usual:
        opencode.discard(plugged)


@pytest.fixture
def home(opencode_version: str, model: ScriptedModel, tmp_path: Path) -> Home:
    """A home of one's own, where nothing runs yet."""
    return Home(tmp_path / "desk", opencode_version, model.base_url)


@pytest.fixture
def private_opencode(home: Home) -> Iterator[Callable[..., OpenCode]]:
    """Start servers that only this test uses, in its own `home`; arguments as of `OpenCode` after the home.

    They may be frozen, restarted and killed. About 1 s each.
    """
    with contextlib.ExitStack() as running:

        def start(**arguments: Any) -> OpenCode:
            return running.enter_context(OpenCode(home, **arguments))

        yield start


@pytest.fixture
def tui(home: Home) -> Iterator[Callable[..., Tui]]:
    """Start `opencode` in a terminal, in this test's own `home`; arguments as of `Tui` after the home."""
    with contextlib.ExitStack() as running:

        def start(directory: Path, **arguments: Any) -> Tui:
            return running.enter_context(Tui(home, directory, **arguments))

        yield start


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder of `initdb`; without PostgreSQL the tests are skipped, but not in CI."""
    try:
        return programs()
    except ServerMissingError as error:
        if os.environ.get("CI") or os.environ.get("HERMES_REQUIRE_SCENES") == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def postgres(postgres_programs: Path) -> Iterator[Server]:
    """One server for each worker of a test run."""
    with Server() as server:
        yield server


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    """A database of this test's own."""
    with postgres.database() as made:
        yield made
