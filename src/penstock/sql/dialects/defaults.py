"""What a dialect takes for granted where a statement says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from penstock.frozen import frozen
from penstock.sql.statements import Emit


@frozen
class Defaults:
    """The defaults of one dialect, taken when `SET dialect` asks for them.

    windows, others: when the results of windowed and of other queries leave
    start: where a new job begins to read a topic of Kafka ('default' is the connector's own)
    integer_division: whether a division of two integers drops the fraction
    """

    dialect: str
    windows: Emit
    others: Emit
    start: Literal["default", "earliest", "latest", "group-offsets"]
    integer_division: bool = True


PENSTOCK: Final = Defaults("penstock", windows=Emit.FINAL, others=Emit.CHANGES, start="default", integer_division=False)
# Without a group to read the offsets of, Flink fails; we begin at the latest record there.
FLINK: Final = Defaults("flink", windows=Emit.FINAL, others=Emit.CHANGES, start="group-offsets")
ARROYO: Final = Defaults("arroyo", windows=Emit.FINAL, others=Emit.CHANGES, start="latest")
RISINGWAVE: Final = Defaults("risingwave", windows=Emit.CHANGES, others=Emit.CHANGES, start="earliest")

DEFAULTS: Final[Mapping[str, Defaults]] = {each.dialect: each for each in (PENSTOCK, FLINK, ARROYO, RISINGWAVE)}
