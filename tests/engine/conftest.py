"""Databases for the tests of the engine: each test has a state directory of its own, all share one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import penstock


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., penstock.Database]]:
    """Opens a database under a name in the test's directory; what is still open at the end is closed."""
    found: list[penstock.Database] = []

    def open_database(name: str = "home", **settings: object) -> penstock.Database:
        database = penstock.connect(tmp_path / name, **{"parallelism": 2, "driver_memory": "1g", **settings})
        found.append(database)
        return database

    yield open_database
    for database in found:
        database.close()


@pytest.fixture
def db(opened: Callable[..., penstock.Database]) -> penstock.Database:
    return opened()
