"""Of many shapes of a query some in `make test`; the others are marked slow, for `make test-slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(shapes: Iterable[str], every: int) -> list[Any]:
    """All shapes; all but each `every`-th of them are slow."""
    marks = [() if place % every == 0 else pytest.mark.slow for place, _ in enumerate(shapes)]
    return [pytest.param(shape, marks=mark) for shape, mark in zip(shapes, marks, strict=True)]
