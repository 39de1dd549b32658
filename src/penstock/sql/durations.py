"""Durations: every spelling of an interval, read into microseconds, and the one spelling we write.

Whatever is not a calendar unit is exact here, since sessions run in UTC: a day has 24 hours, a week 7 days. Months and
years stay what they are, because how long they are depends on when they begin.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from sqlglot import exp

from penstock.frozen import frozen

MICROSECOND: Final = 1
MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

# Longest first: the unit of a canonical interval is the first that divides it.
_EXACT: Final = (
    ("DAY", DAY),
    ("HOUR", HOUR),
    ("MINUTE", MINUTE),
    ("SECOND", SECOND),
    ("MILLISECOND", MILLISECOND),
    ("MICROSECOND", MICROSECOND),
)

# Unit words in lower case, singular; a plural `s` is taken off before looking here.
_MICROS: Final = {
    "week": 7 * DAY,
    "w": 7 * DAY,
    "day": DAY,
    "d": DAY,
    "hour": HOUR,
    "hr": HOUR,
    "h": HOUR,
    "minute": MINUTE,
    "min": MINUTE,
    "m": MINUTE,
    "second": SECOND,
    "sec": SECOND,
    "s": SECOND,
    "millisecond": MILLISECOND,
    "milli": MILLISECOND,
    "msec": MILLISECOND,
    "ms": MILLISECOND,
    "microsecond": MICROSECOND,
    "micro": MICROSECOND,
    "usec": MICROSECOND,
    "us": MICROSECOND,
}
_MONTHS: Final = {"year": 12, "yr": 12, "y": 12, "quarter": 3, "month": 1, "mon": 1}

_PART = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*([^\W\d_]+)", re.ASCII)
_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d+)(?::(\d+(?:\.\d{1,6})?))?\s*\Z", re.ASCII)
_DAY_CLOCK = re.compile(r"\s*([+-]?)(\d+)\s+(\d+)(?::(\d+)(?::(\d+(?:\.\d{1,6})?))?)?\s*\Z", re.ASCII)
_YEAR_MONTH = re.compile(r"\s*([+-]?)(\d+)-(\d+)\s*\Z", re.ASCII)
_NUMBER = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*\Z", re.ASCII)
_ISO = re.compile(
    r"\s*([+-]?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,6})?)S)?)?\s*\Z",
    re.ASCII | re.IGNORECASE,
)
_LIMIT: Final = 2**62  # well inside Spark's 64-bit intervals


@frozen
class Duration:
    """A constant stretch of time: calendar months, or microseconds."""

    months: int = 0
    micros: int = 0

    def node(self) -> exp.Interval:
        """The canonical interval of the tree."""
        amount, unit = self.largest()
        return exp.Interval(this=exp.Literal.string(str(amount)), unit=exp.Var(this=unit))

    def largest(self) -> tuple[int, str]:
        """The amount in the largest unit that is exact.

        >>> Duration(micros=90 * 60 * 1_000_000).largest()
        (90, 'MINUTE')
        """
        if self.months:
            return (self.months // 12, "YEAR") if self.months % 12 == 0 else (self.months, "MONTH")
        if self.micros == 0:
            return 0, "SECOND"
        return next((self.micros // size, unit) for unit, size in _EXACT if self.micros % size == 0)


class NotADuration(ValueError):
    """The text or node is no constant duration; the message says why, in words fit for an error message."""


def unit_name(word: str) -> str | None:
    """The unit a word stands for, singular and in upper case.

    >>> unit_name("Secs"), unit_name("hours"), unit_name("fortnight")
    ('SECOND', 'HOUR', None)
    """
    key = _unit(word)
    if key is None:
        return None
    if key in _MONTHS:
        return {12: "YEAR", 3: "QUARTER", 1: "MONTH"}[_MONTHS[key]]
    micros = _MICROS[key]
    return "WEEK" if micros == 7 * DAY else next(unit for unit, size in _EXACT if size == micros)


def parse_duration(text: str, unit: str | None = None, to: str | None = None) -> Duration:
    """The duration of an interval literal: its quoted text and the unit words behind it.

    >>> parse_duration("1 hour 30 minutes").micros, parse_duration("5", "SECOND").micros
    (5400000000, 5000000)
    >>> parse_duration("1 02:03:04", "DAY", "SECOND").micros == parse_duration("P1DT2H3M4S").micros
    True
    """
    if len(text) > 100:  # no interval is; and int() refuses digits without end by an error of its own
        raise NotADuration("the text of the interval is too long")
    if to is not None:
        return _checked(_span(text, unit or "", to))
    number = _NUMBER.match(text)
    if number is not None:
        if unit is None:
            raise NotADuration("an interval needs a unit")
        return _checked(_amount(number.group(1), number.group(2), unit))
    if unit is not None and unit_name(unit) in {"DAY", "HOUR", "MINUTE", "SECOND"} and _clock(text) is not None:
        return _checked(_clock(text) or Duration())
    if unit is not None and _PART.match(text) is None:
        raise NotADuration("the text of the interval is no number")
    if unit is not None:
        raise NotADuration("the interval has two units")
    return _checked(_free(text))


def duration_us(value: exp.Expr | str) -> int:
    """A constant duration in microseconds, of a text such as '5 minutes' or of a tree node.

    Raises NotADuration for months, years and everything that is not constant.
    """
    duration = parse_duration(value) if isinstance(value, str) else _of_node(value)
    if duration.months:
        raise NotADuration("months and years have no fixed length")
    return duration.micros


def interval_text(micros: int) -> str:
    """The canonical spelling of a duration.

    >>> interval_text(5_000_000), interval_text(86_400_000_000), interval_text(1_500_000)
    ("INTERVAL '5' SECOND", "INTERVAL '1' DAY", "INTERVAL '1500' MILLISECOND")
    """
    amount, unit = Duration(micros=micros).largest()
    return f"INTERVAL '{amount}' {unit}"


def is_interval(node: exp.Expr) -> bool:
    """Whether a node is an interval by its form: a literal, a cast to INTERVAL, or arithmetic of such."""
    if isinstance(node, exp.Paren | exp.Neg):
        return is_interval(node.this)
    if isinstance(node, exp.Add | exp.Sub):
        return is_interval(node.this) and is_interval(node.expression)
    if isinstance(node, exp.Mul | exp.Div):
        return is_interval(node.this) or (isinstance(node, exp.Mul) and is_interval(node.expression))
    return isinstance(node, exp.Interval) or _cast_to_interval(node)


def _cast_to_interval(node: exp.Expr) -> bool:
    return type(node) is exp.Cast and node.to.this is exp.DType.INTERVAL


def _of_node(node: exp.Expr) -> Duration:
    if isinstance(node, exp.Paren) or _cast_to_interval(node):
        return _of_node(node.this)
    if isinstance(node, exp.Neg):
        return _scaled(_of_node(node.this), Decimal(-1))
    if isinstance(node, exp.Add | exp.Sub):
        left, right = _of_node(node.this), _of_node(node.expression)
        right = right if isinstance(node, exp.Add) else _scaled(right, Decimal(-1))
        return _checked(Duration(left.months + right.months, left.micros + right.micros))
    if isinstance(node, exp.Mul | exp.Div):
        return _product(node)
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal):
        unit = node.args.get("unit")
        return parse_duration(str(node.this.this), unit.name if unit is not None else None)
    if isinstance(node, exp.Literal) and node.is_string:
        return parse_duration(str(node.this))
    raise NotADuration("it is not a constant interval")


def _product(node: exp.Mul | exp.Div) -> Duration:
    """2 * INTERVAL '5' MINUTE, INTERVAL '5' MINUTE * 2, INTERVAL '1' HOUR / 2"""
    divided = isinstance(node, exp.Div)
    interval, number = node.this, _number(node.expression)
    if number is None and not divided:
        interval, number = node.expression, _number(node.this)
    if number is None or (divided and number == 0):
        raise NotADuration("it is not a constant interval")
    return _checked(_scaled(_of_node(interval), number, divided=divided))


def _number(node: exp.Expr) -> Decimal | None:
    if isinstance(node, exp.Paren):
        return _number(node.this)
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    return Decimal(text) if _NUMBER.match(text) and len(text) <= 20 else None


def _scaled(duration: Duration, factor: Decimal, *, divided: bool = False) -> Duration:
    months, micros = (
        Decimal(amount) / factor if divided else amount * factor for amount in (duration.months, duration.micros)
    )
    if months != months.to_integral_value() or micros != micros.to_integral_value():
        raise NotADuration("the interval is finer than a microsecond or splits a month")
    return Duration(int(months), int(micros))


def _unit(word: str) -> str | None:
    key = word.lower()
    if key in _MICROS or key in _MONTHS:
        return key
    if key.endswith("s") and (key[:-1] in _MICROS or key[:-1] in _MONTHS):
        return key[:-1]
    return None


def _amount(sign: str, number: str, word: str) -> Duration:
    key = _unit(word)
    if key is None:
        raise NotADuration("the interval has a unit we do not know")
    amount = Decimal(number) * (-1 if sign == "-" else 1)
    size = _MONTHS[key] if key in _MONTHS else _MICROS[key]
    if len(number) > 20:
        raise NotADuration("the interval is too long")
    total = amount * size
    if total != total.to_integral_value():
        raise NotADuration("the interval is finer than a microsecond or splits a month")
    return Duration(months=int(total)) if key in _MONTHS else Duration(micros=int(total))


def _free(text: str) -> Duration:
    """'1 hour 30 minutes', '1 day 02:03:04', '00:05:00', 'PT5M'."""
    iso = _iso(text)
    if iso is not None:
        return iso
    months = micros = position = 0
    while (match := _PART.match(text, position)) is not None:
        part = _amount(*match.groups())
        months, micros, position = months + part.months, micros + part.micros, match.end()
    rest = text[position:].strip()
    if rest:
        clock = _clock(rest)
        if clock is None:
            raise NotADuration("the text of the interval cannot be read")
        micros += clock.micros
    elif position == 0:
        raise NotADuration("the text of the interval cannot be read")
    return Duration(months, micros)


def _iso(text: str) -> Duration | None:
    match = _ISO.match(text)
    if match is None or not any(match.groups()[1:]):
        return None
    sign, years, months, weeks, days, hours, minutes, seconds = match.groups()
    factor = -1 if sign == "-" else 1
    micros = int(weeks or 0) * 7 * DAY + int(days or 0) * DAY + int(hours or 0) * HOUR + int(minutes or 0) * MINUTE
    micros += int(Decimal(seconds or 0) * SECOND)
    return Duration(factor * (int(years or 0) * 12 + int(months or 0)), factor * micros)


def _clock(text: str) -> Duration | None:
    """'02:03[:04.5]' or '1 02:03:04'."""
    match = _CLOCK.match(text)
    if match is not None:
        sign, hours, minutes, seconds = match.groups()
        return _time(sign, "0", hours, minutes, seconds)
    match = _DAY_CLOCK.match(text)
    if match is not None:
        return _time(*match.groups())
    return None


def _time(sign: str, days: str, hours: str, minutes: str | None, seconds: str | None) -> Duration:
    micros = int(days) * DAY + int(hours) * HOUR + int(minutes or 0) * MINUTE + int(Decimal(seconds or 0) * SECOND)
    return Duration(micros=-micros if sign == "-" else micros)


def _span(text: str, first: str, last: str) -> Duration:
    """'1 02:03:04' DAY TO SECOND and its like."""
    units = (unit_name(first), unit_name(last))
    if units == ("YEAR", "MONTH"):
        match = _YEAR_MONTH.match(text)
        if match is not None:
            months = int(match.group(2)) * 12 + int(match.group(3))
            return Duration(months=-months if match.group(1) == "-" else months)
    order = ["DAY", "HOUR", "MINUTE", "SECOND"]
    if units[0] in order and units[1] in order and order.index(units[0]) < order.index(units[1]):
        fields = re.match(r"\s*([+-]?)(\d+(?:[ :]\d+)*(?:\.\d{1,6})?)\s*\Z", text, re.ASCII)
        names = order[order.index(units[0]) : order.index(units[1]) + 1]
        if fields is not None:
            values = re.split(r"[ :]", fields.group(2))
            if len(values) == len(names):
                sizes = dict(_EXACT)
                micros = sum(Decimal(value) * sizes[name] for value, name in zip(values, names, strict=True))
                if micros == int(micros):
                    return Duration(micros=-int(micros) if fields.group(1) == "-" else int(micros))
    raise NotADuration("the text of the interval does not fit its units")


def _checked(duration: Duration) -> Duration:
    if duration.months and duration.micros:
        raise NotADuration("an interval cannot mix months or years with shorter units")
    if abs(duration.micros) > _LIMIT or abs(duration.months) > 12 * 100_000:
        raise NotADuration("the interval is too long")
    return duration
