"""How the values of one generated column are made, read from its type and its `fields.<column>` options."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.option_values import integer, microseconds, moment_us, real, text
from penstock.errors import NotYetError, OptionError
from penstock.frozen import frozen
from penstock.types import SqlType

if TYPE_CHECKING:
    from penstock.catalog.model import ColumnDefinition

_HIGHEST: Final = 32_767
_TEXT_LENGTH: Final = 10
_ARRAY_LENGTH: Final = 3
# Arrow multiplies decimals of at most 38 digits.
_WIDEST: Final = 10**35
_DAY_US: Final = 86_400_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_UNSIGNED_BITS: Final = {"UTINYINT": 8, "USMALLINT": 16, "UINT": 32, "UBIGINT": 64}
_FORMS: Final = {
    "STRING": "text",
    "BINARY": "text",
    "BOOLEAN": "boolean",
    "FLOAT": "real",
    "DOUBLE": "real",
    "DECIMAL": "integer",
    "DATE": "date",
    "TIMESTAMP": "time",
    "ARRAY": "array",
    "STRUCT": "struct",
}


@frozen
class FieldPlan:
    """How one column is made.

    form: integer, real, text, boolean, time, date, array or struct; for impulse also moment, offset and partition.
    low, high: the bounds of random values, or where a sequence starts and starts again. Those of random DECIMALs are
        unscaled, of a DATE days, of a TIMESTAMP microseconds.
    past_us: how far back random times reach, from `base_us`, the start (fixed) or the row's own time.
    count: how many rows there are at most, where a sequence ends.
    """

    form: str
    salt: int = 0
    sequence: bool = False
    low: int | float | None = None
    high: int | float | None = None
    length: int = 0
    varies: bool = False
    null_rate: float = 0.0
    past_us: int = 0
    base_us: int | None = None
    fixed: bool = False
    count: int | None = None
    inside: tuple[FieldPlan, ...] = ()

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> FieldPlan:
        """A plan from what JSON holds of one."""
        return cls(**{**kept, "inside": tuple(cls.of(part) for part in kept["inside"])})


def plan_field(column: ColumnDefinition, values: Mapping[str, object], *, seed: int) -> FieldPlan:
    """The plan of a column; refused by name where no values of its type can be made."""
    assert column.type is not None
    given = _Given(column.name, values)
    own_seed = integer(values, given.key("seed"))
    plan = _plan(column.type, f"{seed if own_seed is None else own_seed}/{column.name}", given)
    return replace(plan, null_rate=real(values, given.key("null_rate")) or 0.0)


@frozen
class _Given:
    """The options of one column; those of a value inside an array or struct have none."""

    column: str
    values: Mapping[str, object]

    def key(self, name: str) -> str:
        return f"fields.{self.column}.{name}"

    def text(self, name: str) -> str | None:
        return text(self.values, self.key(name))

    def refuse(self, name: str, expected: str) -> OptionError:
        return OptionError("INVALID_OPTION", f"option {self.key(name)} must be {expected}")


def _plan(kind: SqlType, path: str, given: _Given) -> FieldPlan:
    form = "integer" if kind.integral else _FORMS.get(kind.name)
    if form is None:
        raise NotYetError(
            "CONNECTOR_NOT_YET",
            f"column {given.column}: datagen makes no values of type {kind.name}",
            hint="leave the column out, or compute it from others",
        )
    plan = FieldPlan(form, salt=_salt(path))
    if given.text("kind") == "sequence":
        return _sequence(plan, kind, given)
    if form in ("integer", "real"):
        return _bounded(plan, kind, given)
    if form == "text":
        length = integer(given.values, given.key("length")) or _TEXT_LENGTH
        return replace(plan, length=length, varies=given.text("var_len") == "true")
    if form in ("time", "date"):
        return _time(plan, kind, given)
    inner = _Given(given.column, {})
    if form == "array":
        length = integer(given.values, given.key("length")) or _ARRAY_LENGTH
        return replace(plan, length=length, inside=(_plan(kind.elements[0], f"{path}/element", inner),))
    if form == "struct":
        return replace(plan, inside=tuple(_plan(part.type, f"{path}/{part.name}", inner) for part in kind.fields))
    return plan


def _sequence(plan: FieldPlan, kind: SqlType, given: _Given) -> FieldPlan:
    if not (kind.numeric or kind.name == "STRING"):
        raise OptionError(
            "INVALID_OPTION",
            f"option {given.key('kind')}: a sequence counts numbers, and column {given.column} is {kind}",
            hint="a TIMESTAMP goes up by itself; leave the option out",
        )
    start = _whole(given, "start") or 0
    end = _whole(given, "end")
    lowest, highest = _holds(kind)
    if not lowest <= start <= highest or (end is not None and not start <= end <= highest):
        wrong = "start" if not lowest <= start <= highest else "end"
        raise given.refuse(wrong, f"a whole number that {kind} holds and, for the end, not below the start")
    last = end if end is not None else highest
    count = None if end is None else end - start + 1
    return replace(plan, sequence=True, low=start, high=last, count=count)


def _whole(given: _Given, name: str) -> int | None:
    written = given.text(name)
    if written is None:
        return None
    try:
        return int(written)
    except ValueError:
        raise given.refuse(name, "a whole number") from None


def _bounded(plan: FieldPlan, kind: SqlType, given: _Given) -> FieldPlan:
    lowest, highest = _holds(kind)
    low = _number(given, "min", kind)
    high = _number(given, "max", kind)
    if low is None:
        low = Decimal(0) if high is None or high >= 0 else max(Decimal(lowest), high - _HIGHEST)
    if high is None:
        high = min(Decimal(highest), max(low, Decimal(0)) + _HIGHEST)
    for name, bound in (("min", low), ("max", high)):
        if kind.name not in ("FLOAT", "DOUBLE") and not lowest <= bound <= highest:
            raise given.refuse(name, f"a number that {kind} holds")
    if low > high:
        raise given.refuse("max", "at least the min")
    if plan.form == "real":
        return replace(plan, low=float(low), high=float(high))
    scale = kind.parameters[1] if kind.name == "DECIMAL" else 0
    unscaled = [int(bound * 10**scale) for bound in (low, high)]
    if max(map(abs, unscaled)) >= _WIDEST:
        raise given.refuse("max", f"of at most 35 digits, {scale} of them behind the point")
    return replace(plan, low=unscaled[0], high=unscaled[1])


def _number(given: _Given, name: str, kind: SqlType) -> Decimal | None:
    written = given.text(name)
    if written is None:
        return None
    try:
        found = Decimal(written)
        fits = found.is_finite() and (not kind.integral or found == found.to_integral_value())
    except InvalidOperation:
        fits = False
    if not fits:
        raise given.refuse(name, "a whole number" if kind.integral else "a number")
    return found


def _holds(kind: SqlType) -> tuple[int, int]:
    """The whole numbers that a type holds at least."""
    if kind.name in _BITS:
        return -(2 ** (_BITS[kind.name] - 1)), 2 ** (_BITS[kind.name] - 1) - 1
    if kind.name in _UNSIGNED_BITS:
        return 0, 2 ** _UNSIGNED_BITS[kind.name] - 1
    if kind.name == "DECIMAL":
        whole = 10 ** (kind.parameters[0] - kind.parameters[1]) - 1  # and what stands behind the point
        return -whole, whole
    return -(2**53), 2**53


def _time(plan: FieldPlan, kind: SqlType, given: _Given) -> FieldPlan:
    low, high = _moment(given, "min", kind), _moment(given, "max", kind)
    if (low is None) != (high is None):
        raise given.refuse("min" if low is None else "max", "given with the other bound, where times have bounds")
    if low is not None and high is not None:
        if low > high:
            raise given.refuse("max", "at least the min")
        return replace(plan, low=low, high=high)
    base = moment_us(given.values, given.key("basetime"))
    fixed = base is not None or given.text("max_past_mode") == "absolute"
    past = microseconds(given.values, given.key("max_past"))
    if past is None:
        past = _DAY_US if fixed else 0
    return replace(plan, past_us=past, base_us=base, fixed=fixed)


def _moment(given: _Given, name: str, kind: SqlType) -> int | None:
    written = given.text(name)
    if written is None:
        return None
    try:
        if kind.name == "DATE":
            return (date.fromisoformat(written) - _EPOCH.date()).days
        if written.lstrip("-").isdigit():
            return int(written) * 1_000
        found = datetime.fromisoformat(written)
    except ValueError:
        raise given.refuse(name, "a time such as '2026-01-31T12:00:00Z'") from None
    return (found.replace(tzinfo=found.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)


def _salt(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little")
