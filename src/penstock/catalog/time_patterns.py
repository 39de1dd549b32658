"""Patterns of dates and times: which family one belongs to, and what it is in Spark.

Flink and Spark write `yyyy-MM-dd HH:mm:ss`, PostgreSQL and RisingWave `YYYY-MM-DD HH24:MI:SS`. Spark refuses or
misreads the second kind row by row, so a constant pattern is recognised, checked and translated when the query is
planned.
"""

from __future__ import annotations

import re
from typing import Literal

Family = Literal["spark", "postgres", "numeric"]


class PatternError(ValueError):
    """A pattern that has no form in Spark; the text says why, `hint` what to write."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


_EITHER = "write yyyy-MM-dd HH:mm:ss or YYYY-MM-DD HH24:MI:SS, not a mixture"

# Compiled when first used: most scripts format no times, and every command pays for its imports.
_NUMERIC = r"(?i)(?=.*[09])(?:FM)?[09.,DGSL$PRBMI+\- ]+$"
_SURE = r"(?i)HH24|HH12|MI|FM|MON|DY|DAY|[AP]\.?M\b|IYYY|TZH|US|FF[1-9]"
_UPPER = r"YYYY|(?<!D)DD(?!D)|(?<!S)SS(?!S)"
_LOWER = r"yy|dd|mm|ss|HH|hh|kk"
_MONTH_BY_PLACE = r"y[-/. ]?mm|mm[-/. ]?d"


def family(pattern: str) -> Family:
    """Which kind of pattern this is; raises PatternError for a mixture.

    >>> family("yyyy-MM-dd"), family("YYYY-MM-DD"), family("999.99")
    ('spark', 'postgres', 'numeric')
    """
    if re.match(_NUMERIC, pattern):
        return "numeric"
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", " ", pattern)
    if re.search(_SURE, bare):
        return "postgres"
    if re.search(_UPPER, bare):
        if re.search(_LOWER, bare):
            raise PatternError("the pattern mixes two kinds of fields", _EITHER)
        return "postgres"
    return "postgres" if re.search(_MONTH_BY_PLACE, bare) else "spark"


# Letters that Spark's formatter knows but refuses for every row, and what to write instead.
_WEEK_BASED = frozenset("YwWuec")
_NEVER = frozenset("ABnNp")
_FORMAT_ONLY = frozenset("EFqQ")


def check_spark(pattern: str, *, parsing: bool) -> str:
    """A pattern of Spark's own kind, unchanged; raises PatternError for one that would fail on every row."""
    letters = set(re.sub(r"'[^']*'", "", pattern))
    if "Y" in letters:
        raise PatternError("Y is the year of a week and has no place beside months and days", "write yyyy for the year")
    refused = letters & (_WEEK_BASED | _NEVER | (_FORMAT_ONLY if parsing else frozenset()))
    if refused:
        listed = ", ".join(sorted(refused))
        raise PatternError(f"the pattern field {listed} is not supported", "use y, M, d, H, h, m, s, S, a and x")
    return pattern


_FIELD = (
    r"(?is)\"(?P<quoted>[^\"]*)\"|(?P<zone>TZH:TZM|TZHTZM|TZH)"
    r"|(?P<field>FMMONTH|FMDAY|MONTH|IYYY|IYY|IDDD|YYYY|Y,YYY|HH24|HH12|SSSSS|SSSS|YYY|DDD|MON|DAY|FF[1-6]"
    r"|A\.M\.|P\.M\.|AM|PM|AD|BC|HH|MI|MM|MS|DD|DY|SS|US|NS|YY|IY|IW|ID|WW|CC|RM|TZM|TZ|OF|FM|[YIDWQJ])"
    r"|(?P<other>.)"
)

_FIELDS = {
    "YYYY": "yyyy", "YY": "yy", "MM": "MM", "DD": "dd", "DDD": "DDD", "HH24": "HH", "HH12": "hh", "HH": "hh",
    "MI": "mm", "SS": "ss", "MS": "SSS", "US": "SSSSSS", "NS": "SSSSSSSSS", "AM": "a", "PM": "a",
    "FMMONTH": "MMMM", "MON": "MMM", **{f"FF{count}": "S" * count for count in range(1, 7)},
}  # fmt: skip
_FORMATTED_FIELDS = {"FMDAY": "EEEE", "DY": "EEE", "Q": "q"}
_PARSED_FIELDS = {"MONTH": "MMMM"}
_ZONES = {"TZH:TZM": "xxx", "TZHTZM": "xx", "TZH": "x"}
# What a formatted name or half of the day looks like in Spark; PostgreSQL follows the case of the field.
_SPARK_CASE = {"FMMONTH": "FMMonth", "MON": "Mon", "FMDAY": "FMDay", "DY": "Dy", "AM": "AM", "PM": "PM"}


def from_postgres(pattern: str, *, parsing: bool) -> str:
    """A pattern of PostgreSQL's kind as Spark writes it.

    >>> from_postgres('YYYY-MM-DD"T"HH24:MI:SS.MS', parsing=False)
    "yyyy-MM-dd'T'HH:mm:ss.SSS"
    """
    known = _FIELDS | (_PARSED_FIELDS if parsing else _FORMATTED_FIELDS)
    parts: list[str] = []
    literal = ""
    for match in re.finditer(_FIELD, pattern):
        written, zone = match["field"], match["zone"]
        if written is None and zone is None:
            literal += match["quoted"] or match["other"] or ""
            continue
        parts += [_quoted(literal), _ZONES[zone.upper()] if zone else _field(written, known, parsing=parsing)]
        literal = ""
    return "".join([*parts, _quoted(literal)])


def _field(written: str, known: dict[str, str], *, parsing: bool) -> str:
    key = written.upper()
    if key not in known:
        unpadded = {"MONTH": "FMMonth", "DAY": "FMDay"}.get(key)
        hint = f"write {unpadded}" if unpadded else "format the parts one by one, or use Spark's pattern"
        raise PatternError(f"the pattern field {key} has no form in Spark", hint)
    spelt = _SPARK_CASE.get(key, written)
    if not parsing and spelt != written:
        raise PatternError(
            f"the pattern field {key} is offered as {spelt} only", f"write {spelt}, and use UPPER or LOWER"
        )
    return known[key]


def _quoted(run: str) -> str:
    """Characters that stand for themselves; letters and the formatter's own signs need quotes."""
    return "'" + run.replace("'", "''") + "'" if re.search(r"[A-Za-z\[\]{}#']", run) else run
