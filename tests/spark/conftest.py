"""One Spark session for all tests of a process, with its log in a temporary directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from penstock.spark.session import SparkSettings, shared_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = SparkSettings(tmp_path_factory.mktemp("spark"), driver_memory_bytes=1024**3, parallelism=2)
    yield shared_session(settings)
    stop_session()
