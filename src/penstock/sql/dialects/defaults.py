"""What a dialect takes for granted where a statement says nothing."""

from __future__ import annotations

from typing import Literal

from penstock.frozen import frozen
from penstock.sql.statements import Emit


@frozen
class Defaults:
    """The defaults of one dialect, taken when `SET dialect` asks for them.

    windows, others: when the results of windowed and of other queries leave
    start: where a new job begins to read ('default' is the connector's own)
    integer_division: whether a division of two integers drops the fraction
    """

    dialect: str
    windows: Emit
    others: Emit
    start: Literal["default", "earliest", "latest", "group-offsets"]
    integer_division: bool = True


PENSTOCK = Defaults("penstock", windows=Emit.FINAL, others=Emit.CHANGES, start="default", integer_division=False)
