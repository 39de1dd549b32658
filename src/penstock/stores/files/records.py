"""Bytes of a text file as records, one a line, without a loop over them.

A line break inside a quoted value belongs to the value, as long as the quotes make sense: each opens at the beginning
of a value and closes at its end, and those inside are written twice. Where one does not, lines are records whatever is
in them, so that one stray quote does not swallow what follows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

_NEWLINE: Final = 10
_RETURN: Final = 13


def record_ends(data: bytes, quote: str | None, delimiter: str, *, whole: bool) -> Any:
    """Where the line breaks are that end records, as an array of numpy.

    `whole`: the bytes end with a record; else the last one may go on behind them.
    """
    import numpy as np

    view = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(view == _NEWLINE)
    if quote is None or quote.encode() not in data:
        return breaks
    quotes = np.flatnonzero(view == ord(quote))
    if not _make_sense(view, quotes, ord(delimiter), whole=whole):
        return breaks
    return breaks[np.searchsorted(quotes, breaks) % 2 == 0]


def count_records(data: bytes, quote: str | None, delimiter: str) -> int:
    """How many records there are in bytes that begin and end with one."""
    if quote is None or quote.encode() not in data:
        lines = data.count(b"\n")
        return lines if data.endswith(b"\n") or not data else lines + 1
    ends = record_ends(data, quote, delimiter, whole=True)
    return len(ends) + (0 if len(ends) and ends[-1] == len(data) - 1 else 1)


def last_end(data: bytes, quote: str | None, delimiter: str) -> int:
    """How many of the bytes are whole records, behind which more may come; 0 where not even one is."""
    if quote is None or quote.encode() not in data:
        return data.rfind(b"\n") + 1
    ends = record_ends(data, quote, delimiter, whole=False)
    return int(ends[-1]) + 1 if len(ends) else 0


def split_records(data: bytes, quote: str | None, delimiter: str) -> pa.Array:
    """Each record as its bytes, without its line break."""
    import numpy as np
    import pyarrow as pa

    view = np.frombuffer(data, np.uint8)
    ends = record_ends(data, quote, delimiter, whole=True)
    kept = np.ones(len(view), bool)
    kept[ends] = False
    returns = np.zeros(len(ends), bool)
    some = ends > 0
    returns[some] = view[ends[some] - 1] == _RETURN
    kept[ends[returns] - 1] = False
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(ends)) - np.cumsum(returns)
    values = view[kept]
    if not len(ends) or ends[-1] != len(view) - 1:
        offsets = np.append(offsets, np.int32(len(values)))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _make_sense(view: Any, quotes: Any, delimiter: int, *, whole: bool) -> bool:
    import numpy as np

    if whole and len(quotes) % 2:
        return False
    around = np.zeros(256, bool)
    around[[delimiter, _NEWLINE, _RETURN]] = True
    # Every second quote opens: at the beginning of a value, or right behind the one that was written twice.
    opens, closes = quotes[0::2], quotes[1::2]
    inner = opens[opens > 0]
    before = around[view[inner - 1]] | np.isin(inner - 1, closes, assume_unique=True)
    ended = closes[closes < len(view) - 1]
    behind = around[view[ended + 1]] | np.isin(ended + 1, opens, assume_unique=True)
    return bool(before.all() and behind.all())
