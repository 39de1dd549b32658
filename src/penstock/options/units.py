"""Durations and sizes as people write them in options: '5 s', '1min', '64 MB'."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_BYTES: Final = {
    "": 1,
    "b": 1,
    "bytes": 1,
    **{f"{letter}{tail}": 1024**power for power, letter in enumerate("kmgt", 1) for tail in ("", "b", "ib")},
}
_LONGEST: Final = timedelta.max // timedelta(microseconds=1)


def read_duration(text: str, unit: str | None = None) -> timedelta | None:
    """A duration of at least zero, or None where the text is none; `unit` is the meaning of a bare number.

    >>> read_duration("1min"), read_duration("1 hour 30 minutes"), read_duration("250", "ms")
    (datetime.timedelta(seconds=60), datetime.timedelta(seconds=5400), datetime.timedelta(microseconds=250000))
    """
    # Imported here because it brings sqlglot, which a reader of the schemas alone does not need.
    from penstock.sql.durations import NotADuration, duration_us, parse_duration

    wanted = text.strip()
    try:
        if re.fullmatch(r"[0-9]{1,18}", wanted):
            micros = int(wanted) // 1_000 if unit == "ns" else parse_duration(wanted, unit or "us").micros
            if unit is None and micros != 0:  # only zero needs no unit
                return None
        else:
            micros = duration_us(wanted)
    except NotADuration:
        return None
    return timedelta(microseconds=micros) if 0 <= micros <= _LONGEST else None


def read_size(text: str) -> int | None:
    """A number of bytes, or None where the text is none; a kilobyte is 1024 bytes, as in the systems we follow.

    >>> read_size("64 MB"), read_size("1GiB"), read_size("512"), read_size("many")
    (67108864, 1073741824, 512, None)
    """
    match = re.fullmatch(r"([0-9]{1,15})\s*([a-z]*)", text.strip().lower())
    return int(match[1]) * _BYTES[match[2]] if match and match[2] in _BYTES else None


def show_size(size: int) -> str:
    """A number of bytes as people read it.

    >>> show_size(300), show_size(64 * 1024**2), show_size(1_600_000_000)
    ('300 B', '64 MB', '1.5 GB')
    """
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"
