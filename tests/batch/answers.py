"""Answers of different engines as values that can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any


def alike(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows in their order; decimals and fractions as numbers, without the digits in which engines may differ."""
    return [tuple(round(float(v), 6) if isinstance(v, Decimal | float) else v for v in row) for row in rows]
