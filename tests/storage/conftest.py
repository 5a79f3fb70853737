"""The PostgreSQL server of the tests of stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.harness.postgres import Database, Server, ServerMissingError, programs

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for each worker of a test run; without PostgreSQL the tests are skipped, but not in CI."""
    try:
        programs()
    except ServerMissingError as error:
        if os.environ.get("CI") or os.environ.get("HERMES_REQUIRE_SCENES") == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    with Server() as server:
        yield server


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    """A database of this test's own."""
    with postgres.database() as made:
        yield made
