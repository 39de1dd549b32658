"""Dates and times as text: what stands in DATE '…' and TIMESTAMP '…', checked before anything runs.

The rules are those of Spark, which computes with them: a year has four digits and more, everything behind it one or
two and may be left out from the end, and a zone may follow seconds. Whatever it may take is taken here, a zone of
another name included: only what cannot be read is refused.
"""

from __future__ import annotations

import re
from calendar import isleap
from typing import Final

DATE_FORM: Final = "DATE '2026-01-31'"
TIMESTAMP_FORM: Final = "TIMESTAMP '2026-01-31 12:00:00'"

_SPECIAL: Final = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)(?:\s.*)?", re.IGNORECASE | re.DOTALL)
_DAY: Final = r"(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
_DATE: Final = re.compile(rf"[-+]?(?P<year>\d{{4,7}}){_DAY}(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_CLOCK: Final = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.\d*)?(?P<zone>[^\d.].*)?)?)?"
_TIMESTAMP: Final = re.compile(rf"[-+]?(?P<year>\d{{4,6}}){_DAY}(?:[ T]{_CLOCK})?)?)?", re.ASCII | re.DOTALL)
_TIME: Final = re.compile(rf"(?:T|(?=\d+:)){_CLOCK}", re.ASCII | re.DOTALL)
_OFFSET: Final = re.compile(r"[-+](?=\d\d?(?::|\Z)|(?:\d\d){2,3}\Z)(\d\d?)(?::?(\d\d?)(?::?(\d\d))?)?", re.ASCII)
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FARTHEST_ZONE: Final = 18  # hours from Greenwich, as far as Java goes
# What Java takes off both ends: white space and control characters.
_BLANK: Final = "".join(map(chr, (*range(33), *range(127, 160))))


class NotAMoment(ValueError):
    """The text is no date or time; the message says why, in words fit for an error message."""


def is_moment(text: str, kind: str) -> bool:
    """Whether a text can stand in a literal of this type, DATE or TIMESTAMP; of no other type there are any.

    >>> is_moment("2026-01-31", "DATE"), is_moment("2026-02-30", "DATE"), is_moment("5", "INT")
    (True, False, False)
    """
    check = {"DATE": check_date, "TIMESTAMP": check_timestamp}.get(kind)
    try:
        if check is not None:
            check(text)
    except NotAMoment:
        return False
    return check is not None


def check_date(text: str) -> None:
    """Make sure that a text is a date: NotAMoment where it is none.

    >>> check_date("2026-02-30")
    Traceback (most recent call last):
    penstock.sql.moments.NotAMoment: month 2 of 2026 has no day 30
    """
    trimmed = text.strip(_BLANK)
    if _SPECIAL.fullmatch(trimmed) is not None:
        return
    match = _DATE.fullmatch(trimmed)
    if match is None:
        raise NotAMoment("this is no date")
    _check_day(match)


def check_timestamp(text: str) -> None:
    """Make sure that a text is a point in time: NotAMoment where it is none.

    >>> check_timestamp("2026-13-01 10:00:00")
    Traceback (most recent call last):
    penstock.sql.moments.NotAMoment: there is no month 13
    """
    trimmed = text.strip(_BLANK)
    if _SPECIAL.fullmatch(trimmed) is not None:
        return
    match = _TIMESTAMP.fullmatch(trimmed)
    if match is not None:
        _check_day(match)
    else:
        match = _TIME.fullmatch(trimmed)
    if match is None:
        raise NotAMoment("this is no point in time")
    for unit, end in (("hour", 24), ("minute", 60), ("second", 60)):
        if int(match[unit] or 0) >= end:
            raise NotAMoment(f"there is no {unit} {int(match[unit])}")
    _check_zone((match["zone"] or "").strip(_BLANK))


def _check_day(match: re.Match[str]) -> None:
    year, month, day = int(match["year"]), int(match["month"] or 1), int(match["day"] or 1)
    if not 1 <= month <= 12:
        raise NotAMoment(f"there is no month {month}")
    if not 1 <= day <= _DAYS[month - 1] or (month == 2 and day == 29 and not isleap(year)):
        raise NotAMoment(f"month {month} of {year} has no day {day}")


def _check_zone(zone: str) -> None:
    """Offsets are checked; a name of a zone is left to Java, which knows all of them."""
    if zone in ("", "Z") or (zone[0].isalpha() and len(zone) > 1):
        return
    match = _OFFSET.fullmatch(zone)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match is not None else (99, 0, 0)
    if hours > _FARTHEST_ZONE or minutes > 59 or seconds > 59 or (hours == _FARTHEST_ZONE and minutes + seconds):
        raise NotAMoment("this is no time zone")
