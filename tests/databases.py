"""Databases for tests: each test has state directories of its own, all share one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import penstock

Opened = Callable[..., penstock.Database]


@contextmanager
def databases(directory: Path, **given: object) -> Iterator[Opened]:
    """Opens a database under a name in a directory; what is still open at the end is closed."""
    with ExitStack() as stack:

        def opened(name: str = "home", **settings: object) -> penstock.Database:
            # A partition is idle only where a test asks for it: on a slow machine a minute is over between two appends.
            asked = {"parallelism": 2, "driver_memory": "1g", "idle_timeout": "1 hour", **given, **settings}
            return stack.enter_context(penstock.connect(directory / name, **asked))

        yield opened
