"""Casts and written-out times that give the same value in Spark and in the view store."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from penstock.plan.store_terms import DiffersError, Term, as_type, is_whole, store_type, wider
from penstock.types import SqlType

_TIME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(\.\d{1,6})?)?Z?")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_EXACT_DIGITS: Final = 15  # a DOUBLE holds every decimal of so many digits


def cast(term: Term, target: SqlType) -> Term:
    """CAST of a value, where both engines agree on it."""
    if term.type is None:
        return as_type(term, target)  # NULL is one of any type
    source = term.known
    if source == target:
        return term
    if is_whole(target):
        return _to_whole(term, target)
    if target.name == "DOUBLE":
        exact = source.name == "DECIMAL" and (term.constant is not None or source.parameters[0] <= _EXACT_DIGITS)
        if is_whole(source) or source.name == "FLOAT" or exact:
            return as_type(term, target)
    if target.name == "DECIMAL" and (is_whole(source) or source.name == "DECIMAL"):
        return Term(f"CAST({term.sql} AS {store_type(target)})", target)
    if target.name == "STRING" and (is_whole(source) or source.name in ("BOOLEAN", "DATE")):
        return Term(f"CAST({term.sql} AS VARCHAR)", target)
    if {source.name, target.name} == {"DATE", "TIMESTAMP"}:
        return Term(f"CAST({term.sql} AS {target.name})", target)
    raise DiffersError


def always_fits(source: SqlType, target: SqlType) -> bool:
    """Whether a cast has a value for every value: to the same type, to a text, to a wider whole number."""
    if source == target or target.name == "STRING":
        return True
    return is_whole(source) and is_whole(target) and wider(source, target) == target


def _to_whole(term: Term, target: SqlType) -> Term:
    source = term.known
    if is_whole(source) or source.name == "BOOLEAN":
        return Term(f"CAST({term.sql} AS {store_type(target)})", target)
    if source.name in ("DOUBLE", "DECIMAL"):
        # Spark drops the fraction, DuckDB alone would round
        return Term(f"CAST(trunc({term.sql}) AS {store_type(target)})", target)
    raise DiffersError


def temporal_literal(text: str, target: SqlType) -> Term:
    """A time or date that is written out, in the forms that both engines read alike."""
    pattern = {"TIMESTAMP": _TIME, "DATE": _DATE}.get(target.name)
    found = pattern.fullmatch(text) if pattern is not None else None
    if found is None:
        raise DiffersError
    try:
        datetime.fromisoformat(text[:10])
    except ValueError:
        raise DiffersError from None
    if target.name == "DATE":
        return Term(f"DATE '{text}'", target)
    day, clock, fraction = found.groups()
    if clock is not None and not ("00:00:00" <= clock <= "23:59:59" and clock[3:5] < "60" and clock[6:] < "60"):
        raise DiffersError
    return Term(f"TIMESTAMP '{day} {clock or '00:00:00'}{fraction or ''}'", target)
