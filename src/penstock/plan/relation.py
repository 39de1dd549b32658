"""What the planner knows of a relation: its columns, its event time, how it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal

from penstock.frozen import frozen
from penstock.types import TIMESTAMP, SqlType
from penstock.types import Field as StructField

# Columns of our own inside generated text; users cannot write a name that begins like this.
HIDDEN_PREFIX: Final = "__"
WINDOW_COLUMN: Final = "__window"
EVENT_TIME_COLUMN: Final = "__event_time"

WINDOW_TYPE: Final = SqlType("STRUCT", fields=(StructField("start", TIMESTAMP), StructField("end", TIMESTAMP)))


class Mode(Enum):
    """How a result changes: rows are only added, rows are replaced by key, or rows are taken back one by one."""

    APPEND = "append"
    UPSERT = "upsert"
    RETRACT = "retract"


WindowPart = Literal["start", "end", "time"]
WINDOW_PARTS: Final[tuple[WindowPart, ...]] = ("start", "end", "time")


@dataclass(frozen=True, slots=True)  # made by the hundred: quicker to make than a `frozen` value
class Field:
    """A column of a relation while a query is planned.

    `part` says that the column is a bound of the relation's window (its value is computed from the hidden window
    column); `window` that it is a whole window with the fields start and end; `source` names the scan and column it
    comes from unchanged, by which an undeclared event time is found; `pseudo` that it is there by its name only, and *
    does not stand for it.
    """

    name: str
    type: SqlType | None
    nullable: bool = True
    qualifier: str | None = None
    event_time: bool = False
    part: WindowPart | None = None
    window: bool = False
    processing_time: bool = False
    source: tuple[str, str] | None = None
    hidden: bool = False
    pseudo: bool = False

    def renamed(self, name: str) -> Field:
        return replace(self, name=name)

    def under(self, qualifier: str | None) -> Field:
        return replace(self, qualifier=qualifier)


@frozen
class EventTime:
    """Where a relation carries its event time in the generated text.

    `column` is a visible time column, the hidden copy of one, or (`of_window`) the hidden window column of a windowed
    aggregate, whose time is the end of the window.
    """

    column: str
    delay_us: int
    of_window: bool = False
    declared: Literal["watermark", "option", "default"] = "watermark"


@frozen
class State:
    """What an operator remembers between batches, and what bounds it (None: it grows for ever)."""

    keeps: str
    bound: str | None
