"""Databases for the tests of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from tests.databases import Opened, databases


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with databases(tmp_path) as opens:
        yield opens


@pytest.fixture
def db(opened: Opened) -> penstock.Database:
    return opened()
