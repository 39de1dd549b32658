"""What type a call returns, as far as the planner must know it: event times, keys, counts, sums, sink columns.

A rule is the name of a type (`BIGINT`, `ARRAY<STRING>`) or one of the words of `_RULES`. `None` stands for a type we do
not know; Spark's analyzer has the last word, so a rule says nothing rather than something uncertain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from penstock.types import BIGINT, DATE, DECIMAL, DOUBLE, INT, INTERVAL, STRING, TIMESTAMP, Field, SqlType

Types = Sequence[SqlType | None]

_MAX_PRECISION = 38


def _nth(types: Types, index: int) -> SqlType | None:
    return types[index] if index < len(types) else None


def _first_known(types: Types) -> SqlType | None:
    return next((known for known in types if known is not None), None)


def _same(types: Types) -> SqlType | None:
    """The type of all arguments when they agree."""
    first = _nth(types, 0)
    return first if all(other == first for other in types) else None


_LADDER = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}


def _widest(types: Types) -> SqlType | None:
    """The type that holds all known arguments, where that needs none of Spark's finer rules."""
    known = [each for each in types if each is not None]
    if not known or all(other == known[0] for other in known):
        return known[0] if known else None
    if all(each.name in _LADDER for each in known):
        return max(known, key=lambda each: _LADDER.index(each.name))
    decimals = [each for each in known if each.name == "DECIMAL"]
    whole = [_DIGITS.get(each.name) for each in known if each.name != "DECIMAL"]
    if decimals and _same(decimals) and None not in whole:
        precision, scale = decimals[0].parameters
        return decimals[0] if all(digits is not None and digits <= precision - scale for digits in whole) else None
    return None


def _all_known(types: Types) -> SqlType | None:
    return None if None in types else _widest(types)


def _as_decimal(source: SqlType) -> tuple[int, int] | None:
    """Precision and scale of a type that Spark keeps as a decimal."""
    if source.name == "DECIMAL":
        return (source.parameters[0], source.parameters[1])
    return (20, 0) if source.name == "UBIGINT" else None


def _widened(source: SqlType, digits: int, scale: int) -> SqlType | None:
    shape = _as_decimal(source)
    if shape is None:
        return None
    return SqlType("DECIMAL", (min(_MAX_PRECISION, shape[0] + digits), min(_MAX_PRECISION, shape[1] + scale)))


def _sum(types: Types) -> SqlType | None:
    source = _nth(types, 0)
    if source is None or source == INTERVAL:
        return source
    if source.integral and source.name != "UBIGINT":
        return BIGINT
    return _widened(source, 10, 0) or DOUBLE


def _avg(types: Types) -> SqlType | None:
    source = _nth(types, 0)
    if source is None or source == INTERVAL:
        return source
    return _widened(source, 4, 4) or DOUBLE


def _floor(types: Types) -> SqlType | None:
    source = _nth(types, 0)
    if source is None or len(types) != 1:
        return None
    shape = _as_decimal(source)
    if shape is not None:
        return SqlType("DECIMAL", (shape[0] - shape[1] + 1, 0)) if shape[1] else SqlType("DECIMAL", shape)
    return BIGINT


def _number(types: Types) -> SqlType | None:
    """A numeric function of one value; Spark reads a string as DOUBLE."""
    source = _nth(types, 0)
    return DOUBLE if source == STRING else source


def _round(types: Types) -> SqlType | None:
    source = _number(types)
    return None if source is None or _as_decimal(source) else source


def _whole(types: Types) -> SqlType | None:
    """A sum, a difference or a product of whole numbers, or of DOUBLEs."""
    plain = all(each is not None and (each.name in _DIGITS or each == DOUBLE) for each in types)
    return _all_known(types) if plain and len({each == DOUBLE for each in types}) == 1 else None


def _shift(types: Types) -> SqlType | None:
    source = _nth(types, 0)
    return source if source in {INT, BIGINT} else None


def _text(types: Types) -> SqlType | None:
    """A string function that also takes bytes, and then returns bytes."""
    source = _nth(types, 0)
    return source if source is not None and source.name == "BINARY" else STRING


def _characters(types: Types) -> SqlType | None:
    """STRING, where bytes might make something else of it."""
    source = _nth(types, 0)
    return None if source is not None and source.name == "BINARY" else STRING


def _reverse(types: Types) -> SqlType | None:
    source = _nth(types, 0)
    return source if source is None or source.name in {"ARRAY", "BINARY"} else STRING


def _concat(types: Types) -> SqlType | None:
    known = _first_known(types)
    if known is not None and known.name in {"ARRAY", "BINARY"}:
        return _same(types)
    return STRING if known is not None or not types else None


def _array(types: Types) -> SqlType | None:
    element = _first_known(types[:1])
    return None if element is None else SqlType("ARRAY", elements=(element,))


def _map(types: Types) -> SqlType | None:
    key, value = _nth(types, 0), _nth(types, 1)
    return None if key is None or value is None else SqlType("MAP", elements=(key, value))


def _array_of_all(types: Types) -> SqlType | None:
    element = _all_known(types)
    return None if element is None else SqlType("ARRAY", elements=(element,))


def _pairs(types: Types) -> SqlType | None:
    """MAP(k1, v1, k2, v2, …)"""
    return _map([_all_known(types[0::2]), _all_known(types[1::2])]) if len(types) > 1 else None


def _of_map(types: Types) -> tuple[SqlType, SqlType] | None:
    source = _nth(types, 0)
    return (source.elements[0], source.elements[1]) if source is not None and source.name == "MAP" else None


def _keys(types: Types) -> SqlType | None:
    found = _of_map(types)
    return _array(found[:1]) if found else None


def _values(types: Types) -> SqlType | None:
    found = _of_map(types)
    return _array(found[1:]) if found else None


def _entries(types: Types) -> SqlType | None:
    found = _of_map(types)
    return _array([SqlType("STRUCT", fields=(Field("key", found[0]), Field("value", found[1])))]) if found else None


def _map_of_arrays(types: Types) -> SqlType | None:
    return _map([_element(types[:1]), _element(types[1:])])


def _map_of_entries(types: Types) -> SqlType | None:
    entry = _element(types)
    return _map([field.type for field in entry.fields]) if entry is not None and len(entry.fields) == 2 else None


def _sequence(types: Types) -> SqlType | None:
    """From one value to another of the same type, by whatever step."""
    return _array(types) if len(types) > 1 and types[0] == types[1] else None


def _decoded(types: Types) -> SqlType | None:
    """DECODE(x, when, then, …, otherwise); what two arguments mean depends on the encoding."""
    if len(types) == 2:
        return None
    results = [*types[2::2], *(types[-1:] if len(types) % 2 == 0 else ())]
    return _same(results)


def _element(types: Types) -> SqlType | None:
    """An element of an array, a value of a map."""
    source = _nth(types, 0)
    return source.elements[-1] if source is not None and source.name in {"ARRAY", "MAP"} else None


def _by(types: Types) -> SqlType | None:
    """MAX_BY(x, y) has the type of x; MAX_BY(x, y, n) is an array of them."""
    return _array(types) if len(types) == 3 else _nth(types, 0)


def _quantile(types: Types) -> SqlType | None:
    """An exact quantile of numbers; several at once are an array."""
    source, fraction = _nth(types, 0), _nth(types, 1)
    if source is None or not source.numeric:
        return None
    return SqlType("ARRAY", elements=(DOUBLE,)) if fraction is not None and fraction.name == "ARRAY" else DOUBLE


def _percentile(types: Types) -> SqlType | None:
    fraction = _nth(types, 1)
    return _array(types) if fraction is not None and fraction.name == "ARRAY" else _nth(types, 0)


def _trunc(types: Types) -> SqlType | None:
    """TRUNC of a date is a date; of a number it depends on the digits."""
    source = _nth(types, 0)
    return DATE if _nth(types, 1) == STRING or (source is not None and source.temporal) else None


def _shifted(types: Types) -> SqlType | None:
    """DATE_ADD: of days a date, of units a timestamp, of an interval what was given."""
    if len(types) == 3:
        return TIMESTAMP
    return _nth(types, 0) if _nth(types, 1) == INTERVAL else DATE


_RULES: dict[str, Callable[[Types], SqlType | None]] = {
    "unknown": lambda _types: None,
    "arg0": lambda types: _nth(types, 0),
    "arg1": lambda types: _nth(types, 1),
    "arg2": lambda types: _nth(types, 2),
    "first": _widest,
    "branch": lambda types: _widest(types[1:]),
    "common": _all_known,
    "number": _number,
    "whole": _whole,
    "or_zero": lambda types: _all_known([*types, INT]),
    "shift": _shift,
    "sum": _sum,
    "avg": _avg,
    "floor": _floor,
    "round": _round,
    "text": _text,
    "characters": _characters,
    "reverse": _reverse,
    "concat": _concat,
    "array": _array,
    "map": _map,
    "array_of_all": _array_of_all,
    "pairs": _pairs,
    "keys": _keys,
    "values": _values,
    "entries": _entries,
    "map_of_arrays": _map_of_arrays,
    "map_of_entries": _map_of_entries,
    "sequence": _sequence,
    "decoded": _decoded,
    "quantile": _quantile,
    "element": _element,
    "by": _by,
    "percentile": _percentile,
    "trunc": _trunc,
    "difference": lambda types: BIGINT if len(types) == 3 else INT,
    "shifted": _shifted,
}


@lru_cache(maxsize=256)
def _named(rule: str) -> SqlType:
    """A type written in a rule: a plain name, `ARRAY<…>` or `MAP<…,…>` of plain names."""
    if rule == "DECIMAL":
        return DECIMAL
    name, _, inner = rule.partition("<")
    return SqlType(name, elements=tuple(map(SqlType, inner[:-1].split(","))) if inner else ())


def apply_rule(rule: str, types: Types) -> SqlType | None:
    """The type that `rule` gives for arguments of `types`.

    >>> str(apply_rule("sum", [SqlType("INT")])), str(apply_rule("sum", [SqlType("DECIMAL", (10, 2))]))
    ('BIGINT', 'DECIMAL(20, 2)')
    >>> apply_rule("arg0", [None]) is None
    True
    """
    known = _RULES.get(rule)
    return known(types) if known else _named(rule)
