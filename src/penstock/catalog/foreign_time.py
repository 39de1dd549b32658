"""Dates and times of other systems, written for Spark."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.foreign_call import (
    POSTGRES_LIKE,
    Arguments,
    Builder,
    ForeignFunction,
    as_timestamp,
    call,
    constant_number,
    constant_text,
    foreign,
    grouped,
    invalid,
    number,
    renamed,
    required_text,
    text,
    word,
)
from penstock.catalog.time_patterns import PatternError, check_spark, family, from_postgres

_TRUNC_UNITS = {
    "year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEK", "day": "DAY", "hour": "HOUR",
    "minute": "MINUTE", "second": "SECOND", "millisecond": "MILLISECOND", "microsecond": "MICROSECOND",
    "yyyy": "YEAR", "yy": "YEAR", "mon": "MONTH", "mm": "MONTH", "dd": "DAY",
}  # fmt: skip
_SHIFT_UNITS = frozenset(
    ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
)
_PART_UNITS = {
    "year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEK", "day": "DAY", "hour": "HOUR",
    "minute": "MINUTE", "second": "SECOND", "dow": "DOW", "dayofweek": "DOW", "isodow": "DOW_ISO", "dow_iso": "DOW_ISO",
    "dayofweek_iso": "DOW_ISO", "doy": "DOY", "isoyear": "YEAROFWEEK", "yearofweek": "YEAROFWEEK",
}  # fmt: skip


def _singular(unit: str) -> str:
    plain = unit.lower().removeprefix("sql_tsi_")
    return plain[:-1] if plain.endswith("s") and plain[:-1] in _TRUNC_UNITS else plain


def _translated(function: str, node: exp.Expr, *, parsing: bool) -> exp.Expr:
    """A constant pattern as Spark writes it."""
    pattern = required_text(function, "pattern", node)
    try:
        kind = family(pattern)
        if kind == "postgres":
            return text(from_postgres(pattern, parsing=parsing))
        return text(check_spark(pattern, parsing=parsing))
    except PatternError as error:
        raise invalid(function, str(error), node, error.hint) from None


def _parsed(function: str, spark: str) -> Builder:
    def build(args: Arguments, _dialect: str | None) -> exp.Expr:
        rest = [_translated(function, args[1], parsing=True)] if len(args) > 1 else []
        return call(spark, *args[:1], *rest)

    return build


def _date_format(function: str) -> Builder:
    """Functions whose pattern is of Spark's kind in every system that has them."""

    def build(args: Arguments, dialect: str | None) -> exp.Expr:
        if function == "from_unixtime" and dialect == "arroyo" and len(args) == 1:
            return call("timestamp_seconds", *args)
        if len(args) > 1:
            try:
                check_spark(required_text(function, "pattern", args[1]), parsing=False)
            except PatternError as error:
                raise invalid(function, str(error), args[1], error.hint) from None
        return call(function, *args)

    return build


def _to_char(args: Arguments, _dialect: str | None) -> exp.Expr:
    pattern = required_text("to_char", "pattern", args[1])
    if _is_numeric(pattern):
        if pattern[:2].upper() == "FM":
            raise invalid(
                "to_char", "the prefix FM has no form in Spark for numbers", args[1], "leave it out and use TRIM"
            )
        return call("to_char", *args)
    return call("date_format", args[0], _translated("to_char", args[1], parsing=False))


def _is_numeric(pattern: str) -> bool:
    try:
        return family(pattern) == "numeric"
    except PatternError:
        return False


def _epoch(args: Arguments, precision: int) -> exp.Expr:
    if precision == 9:
        return call("timestamp_micros", exp.IntDiv(this=grouped(args[0]), expression=number(1000)))
    return call({0: "timestamp_seconds", 3: "timestamp_millis", 6: "timestamp_micros"}[precision], args[0])


def _epoch_of(precision: int) -> Builder:
    return lambda args, _dialect: _epoch(args, precision)


def _to_timestamp_ltz(args: Arguments, dialect: str | None) -> exp.Expr:
    """Flink's second argument is the precision of a number; Spark's is the pattern of a string."""
    if len(args) == 1 or constant_text(args[1]) is not None:
        return _parsed("to_timestamp_ltz", "to_timestamp_ltz")(args, dialect)
    precision = constant_number(args[1])
    if precision not in {0, 3, 6, 9}:
        raise invalid(
            "to_timestamp_ltz", "the precision must be 0, 3, 6 or 9", args[1], "3 means milliseconds since 1970"
        )
    return _epoch(args, precision)


def _date_trunc(args: Arguments, _dialect: str | None) -> exp.Expr:
    # Spark answers an unknown unit with NULL for every row.
    unit = _TRUNC_UNITS.get(_singular(required_text("date_trunc", "unit", args[0])))
    if unit is None:
        raise invalid("date_trunc", "there is no such unit", args[0], "use year, quarter, month, week, day, hour, …")
    if len(args) == 2:
        return call("date_trunc", text(unit), args[1])
    local = call("date_trunc", text(unit), call("from_utc_timestamp", args[1], args[2]))
    return call("to_utc_timestamp", local, args[2].copy())


def _trunc(args: Arguments, dialect: str | None) -> exp.Expr:
    """TRUNC(date, 'month') of Spark, TRUNC(number [, digits]) of the others."""
    unit = constant_text(args[1]) if len(args) > 1 else None
    if unit is None:
        return truncated(args, dialect)
    if _TRUNC_UNITS.get(unit.lower()) not in {"YEAR", "QUARTER", "MONTH", "WEEK"}:
        raise invalid(
            "trunc", "there is no such unit for dates", args[1], "use year, quarter, month or week, or DATE_TRUNC"
        )
    return call("trunc", args[0], text(_TRUNC_UNITS[unit.lower()]))


def truncated(args: Arguments, _dialect: str | None) -> exp.Expr:
    """A number cut off towards zero."""
    value, digits = args[0], list(args[1:])
    below = exp.LT(this=grouped(value.copy()), expression=number(0))
    up, down = call("ceil", value.copy(), *digits), call("floor", value, *[digit.copy() for digit in digits])
    return call("if", below, up, down)


def date_part(function: str, unit: str, value: exp.Expr, dialect: str | None, at: exp.Expr) -> exp.Expr:
    """A part of a time: EXTRACT(unit FROM value) and DATE_PART('unit', value).

    `at` is the node to blame. EPOCH is in seconds with a fraction. In PostgreSQL's family DOW counts from Sunday = 0.
    """
    key = unit.lower() if unit.lower() in _PART_UNITS else _singular(unit)
    if key == "epoch":
        return exp.Paren(this=exp.Div(this=call("unix_micros", as_timestamp(value)), expression=number(1_000_000)))
    if key in {"millisecond", "microsecond"}:
        factor = 1_000 if key == "millisecond" else 1_000_000
        return exp.Paren(this=exp.Mul(this=call("date_part", text("SECOND"), value), expression=number(factor)))
    if key not in _PART_UNITS:
        raise invalid(
            function, "there is no such part of a time", at, "use year, month, day, hour, minute, second, epoch, …"
        )
    part = call("date_part", text(_PART_UNITS[key]), value)
    if key == "dow" and dialect in POSTGRES_LIKE:
        return exp.Paren(this=exp.Sub(this=part, expression=number(1)))
    return part


def _date_part(args: Arguments, dialect: str | None) -> exp.Expr:
    unit = word(args[0])
    if unit is None:
        raise invalid("date_part", "the part must be a string constant", args[0], "write DATE_PART('hour', ts)")
    return date_part("date_part", unit, args[1], dialect, args[0])


def _moved(spark: str, node: type[exp.Binary]) -> Builder:
    """DATE_ADD(d, days) of Spark beside DATE_ADD(ts, INTERVAL …) of others, which is plain arithmetic."""

    def build(args: Arguments, _dialect: str | None) -> exp.Expr:
        if isinstance(args[1].unnest(), exp.Interval):
            return exp.Paren(this=node(this=grouped(args[0]), expression=args[1]))
        return call(spark, *args)

    return build


def _date_add(args: Arguments, dialect: str | None) -> exp.Expr:
    return (_moved("date_add", exp.Add) if len(args) == 2 else _with_unit("date_add", "timestampadd"))(args, dialect)


def _with_unit(function: str, spark: str, plain: str | None = None) -> Builder:
    """TIMESTAMPDIFF(unit, a, b) and its like; `plain` is the Spark function of the two-argument form."""

    def build(args: Arguments, _dialect: str | None) -> exp.Expr:
        if len(args) == 2 and plain is not None:
            return call(plain, *args)
        unit = _singular(word(args[0]) or "")
        if unit not in _SHIFT_UNITS:
            raise invalid(
                function, "the first argument must be a unit", args[0], f"write {function.upper()}(HOUR, a, b)"
            )
        return call(spark, exp.var(unit.upper()), *args[1:])

    return build


def _convert_tz(args: Arguments, _dialect: str | None) -> exp.Expr:
    instant = call("to_utc_timestamp", call("to_timestamp", args[0]), args[1])
    return call("date_format", call("from_utc_timestamp", instant, args[2]), text("yyyy-MM-dd HH:mm:ss"))


def _clock(_args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("current_timestamp")


def _zoneless(name: str) -> Builder:
    return lambda args, _dialect: as_timestamp(call(name, *args))


def _to_timestamp_ntz(args: Arguments, dialect: str | None) -> exp.Expr:
    return as_timestamp(_parsed("to_timestamp_ntz", "to_timestamp_ntz")(args, dialect))


_PATTERN = "patterns of both families: yyyy-MM-dd HH:mm:ss and YYYY-MM-DD HH24:MI:SS"

TIME: dict[str, ForeignFunction] = {
    **foreign("1..2 TIMESTAMP to_timestamp", _parsed("to_timestamp", "to_timestamp"), "Flink, PostgreSQL", _PATTERN),
    **foreign("1..2 TIMESTAMP try_to_timestamp", _parsed("try_to_timestamp", "try_to_timestamp"), "Spark", _PATTERN),
    **foreign("1..2 DATE to_date", _parsed("to_date", "to_date"), "Flink, PostgreSQL", _PATTERN),
    **foreign("1..2 DATE try_to_date", _parsed("try_to_date", "try_to_date"), "Spark", _PATTERN),
    **foreign("0..2 BIGINT unix_timestamp", _parsed("unix_timestamp", "unix_timestamp"), "Flink", _PATTERN),
    **foreign("1..2 BIGINT to_unix_timestamp", _parsed("to_unix_timestamp", "to_unix_timestamp"), "Spark", _PATTERN),
    **foreign("1..2 TIMESTAMP to_timestamp_ntz", _to_timestamp_ntz, "Spark", "the same as TIMESTAMP here"),
    **foreign(
        "1..2 TIMESTAMP to_timestamp_ltz", _to_timestamp_ltz, "Flink", "of a number: seconds (0), milliseconds (3)"
    ),
    **foreign("1 TIMESTAMP to_timestamp_seconds", _epoch_of(0), "Arroyo", "timestamp_seconds"),
    **foreign("1 TIMESTAMP to_timestamp_millis", _epoch_of(3), "Arroyo", "timestamp_millis"),
    **foreign("1 TIMESTAMP to_timestamp_micros", _epoch_of(6), "Arroyo", "timestamp_micros"),
    **foreign("1 TIMESTAMP to_timestamp_nanos", _epoch_of(9), "Arroyo", "timestamp_micros of a thousandth"),
    **foreign("1 BIGINT to_unixtime", renamed("unix_seconds"), "Arroyo", "unix_seconds"),
    **foreign("2 STRING date_format", _date_format("date_format"), "Flink", "the pattern is checked"),
    **foreign("1..2 STRING from_unixtime", _date_format("from_unixtime"), "Flink", "a timestamp for dialect 'arroyo'"),
    **foreign("2 STRING to_char to_varchar", _to_char, "PostgreSQL", "date_format for times, to_char for numbers"),
    **foreign(
        "2..3 TIMESTAMP date_trunc", _date_trunc, "PostgreSQL", "the unit is checked; a third argument is the zone"
    ),
    **foreign("1..2 trunc trunc", _trunc, "PostgreSQL", "of a date with a unit, of a number towards zero"),
    **foreign("1..2 unknown truncate", truncated, "Flink", "towards zero"),
    **foreign("2 unknown date_part datepart", _date_part, "PostgreSQL", "epoch, isodow, milliseconds too"),
    **foreign(
        "3 BIGINT timestampdiff", _with_unit("timestampdiff", "timestampdiff"), "Flink", "whole units from a to b"
    ),
    **foreign("3 TIMESTAMP timestampadd", _with_unit("timestampadd", "timestampadd"), "Flink", "ts plus n units"),
    **foreign(
        "2..3 difference datediff date_diff",
        _with_unit("datediff", "timestampdiff", "datediff"),
        "Spark",
        "days, or units",
    ),
    **foreign("2..3 shifted dateadd date_add", _date_add, "Spark", "days, an interval, or units"),
    **foreign("2 shifted date_sub", _moved("date_sub", exp.Sub), "Spark", "days, or an interval"),
    **foreign(
        "2..3 TIMESTAMP date_bin", renamed("time_bucket"), "PostgreSQL, Arroyo", "time_bucket; origin 1970-01-01"
    ),
    **foreign("3 STRING convert_tz", _convert_tz, "Flink", "a time as text, from one zone to another"),
    **foreign("1 INT week", renamed("weekofyear"), "Flink", "weekofyear"),
    **foreign("0 TIMESTAMP localtimestamp~", _clock, "all", "current_timestamp"),
    **foreign("0 TIMESTAMP current_row_timestamp~", _clock, "Flink", "current_timestamp, the same for a whole batch"),
    **foreign(
        "0 TIMESTAMP clock_timestamp~ statement_timestamp~ transaction_timestamp~",
        _clock,
        "PostgreSQL",
        "current_timestamp",
    ),
    **foreign("0 TIMESTAMP mz_now~", _clock, "Materialize", "the clock of a view in conditions; else now()"),
    **foreign("2..3 TIMESTAMP convert_timezone", _zoneless("convert_timezone"), "Spark", "as TIMESTAMP"),
    **foreign("2..6 TIMESTAMP make_timestamp_ntz", _zoneless("make_timestamp_ntz"), "Spark", "as TIMESTAMP"),
    **foreign("2..6 TIMESTAMP try_make_timestamp_ntz", _zoneless("try_make_timestamp_ntz"), "Spark", "as TIMESTAMP"),
}
