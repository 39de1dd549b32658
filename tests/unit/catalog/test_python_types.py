"""Signatures from annotations, and where the body of a function says its code is."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any, Optional

import pandas as pd
import pyarrow as pa
import pytest

from penstock.catalog.function_body import REGISTERED, FunctionBody, read_body
from penstock.catalog.python_types import python_type, read_signature


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, "BIGINT"),
        (bool, "BOOLEAN"),
        (Optional[str], "STRING"),  # noqa: UP045 - both spellings are in use
        (bytes | None, "BINARY"),
        (dt.datetime, "TIMESTAMP"),
        (dt.date, "DATE"),
        (decimal.Decimal, "DECIMAL(38, 18)"),
        (list[float], "ARRAY<DOUBLE>"),
        (dict[str, list[int]], "MAP<STRING, ARRAY<BIGINT>>"),
        (int | str, None),
        (list, None),
        (dict[str, object], None),
        (None, None),
        ("int", None),
    ],
)
def test_types_of_annotations(annotation: Any, expected: str | None) -> None:
    """Q4."""
    found = python_type(annotation)
    assert (str(found) if found is not None else None) == expected


def one(a: int, b: str | None, c: float = 1.0) -> bool:
    return bool(a or b or c)


def bare(a, b):  # type: ignore[no-untyped-def]
    return a + b


def arrow(a: pa.Array, b: pa.Array) -> pa.Array:
    return a or b


def series(a: pd.Series) -> float:
    return float(a.sum())


def many(*values: int) -> int:
    return sum(values)


def lists(values: list[int], names: list[str]) -> int:
    return len(values) + len(names)


def broken(a: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    return int(a)


class Adder:
    def __call__(self, a: int) -> int:
        return a + 1


@pytest.mark.parametrize(
    ("function", "aggregate", "expected"),
    [
        (one, False, ("values", ["BIGINT", "STRING"], "BOOLEAN")),
        (bare, False, ("values", None, None)),
        (arrow, False, ("arrow", None, None)),
        (series, True, ("pandas", None, "DOUBLE")),
        (many, False, ("values", None, "BIGINT")),
        (lists, True, ("values", ["BIGINT", "STRING"], "BIGINT")),
        (one, True, ("values", None, "BOOLEAN")),
        (broken, False, ("values", None, None)),
        (Adder(), False, ("values", ["BIGINT"], "BIGINT")),
        (dict.get, False, ("values", None, None)),
    ],
)
def test_signatures(function: Callable[..., Any], *, aggregate: bool, expected: tuple[Any, ...]) -> None:
    """Q4: what is not annotated with a SQL type is left open."""
    found = read_signature(function, aggregate=aggregate)
    types = None if found.parameters is None else [str(sql_type) for _, sql_type in found.parameters]
    assert (found.takes, types, str(found.returns) if found.returns else None) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a.b.c", FunctionBody("module", "a.b", "c")),
        (" a.b:c ", FunctionBody("module", "a.b", "c")),
        ("text.py:c", FunctionBody("file", "text.py", "c")),
        ("/some where/text.py:c", FunctionBody("file", "/some where/text.py", "c")),
        (REGISTERED, FunctionBody("registered", "", "f")),
        ("def f(x): return x", FunctionBody("source", "def f(x): return x", "f")),
        ("def f(x):\n  return 'a.py:b'", FunctionBody("source", "def f(x):\n  return 'a.py:b'", "f")),
    ],
)
def test_bodies(body: str, expected: FunctionBody) -> None:
    """Q2."""
    assert read_body(body, "f") == expected
