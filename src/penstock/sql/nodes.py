"""The tree nodes that streaming SQL adds to sqlglot's.

Every spelling of a window (`GROUP BY TUMBLE(ts, …)`, `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), …))`, `TUMBLE(t, ts, …)`,
Arroyo's `tumble(interval '1 minute')`, Spark's `window(ts, '1 minute')`) becomes one node, `WindowCall`. Where it is
a grouping expression the node stands by itself; where it makes a relation it stands inside a `WindowTable`.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

TUMBLE, HOP, SESSION, CUMULATE = "TUMBLE", "HOP", "SESSION", "CUMULATE"


class WindowCall(exp.Expression, exp.Condition):
    """The canonical window.

    kind: 'TUMBLE' | 'HOP' | 'SESSION' | 'CUMULATE', a plain string
    time: the time column (exp.Column), absent in Arroyo's spelling, which means the event time of the input
    size, slide, gap, step, offset: constant durations in microseconds, plain ints, those the kind has
    keys: for SESSION as a relation, the PARTITION BY columns
    grace: as a grouping expression, how long after its end a window closes, instead of the delay of the watermark
    retention: how long ksqlDB keeps a window

    TUMBLE has size; HOP slide and size; SESSION gap; CUMULATE step and size; all but SESSION may have offset.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "time": False,
        "size": False,
        "slide": False,
        "gap": False,
        "step": False,
        "offset": False,
        "keys": False,
        "grace": False,
        "retention": False,
    }

    @property
    def kind(self) -> str:
        return str(self.args["kind"])

    def micros(self, name: str) -> int:
        """A duration of the window in microseconds, 0 where the kind has none."""
        return int(self.args.get(name) or 0)


class WindowPart(exp.Expression, exp.Condition):
    """A helper over a window: TUMBLE_START, HOP_END, SESSION_ROWTIME, …

    `this` is the WindowCall, `part` a plain string: 'start' | 'end' | 'rowtime' | 'proctime'.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "part": True}

    @property
    def part(self) -> str:
        return str(self.args["part"])


class WindowTable(exp.Expression):
    """A window as a relation of the FROM clause: the input (`this`: exp.Table or exp.Subquery) with the columns
    window_start, window_end and window_time added. `window` is the WindowCall; `alias` an exp.TableAlias."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "window": True,
        "alias": False,
        "joins": False,
        "laterals": False,
    }


class SystemTime(exp.Expression):
    """`FOR SYSTEM_TIME AS OF expression` behind a table name; stands in exp.Table's arg `system_time`.
    `this` is the time expression; PROCTIME() is exp.Anonymous(this='PROCTIME')."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class ReadOption(exp.Expression):
    """One `'key' = 'value'` of ReadOptions, both literals."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class ReadOptions(exp.Expression):
    """`/*+ OPTIONS('key' = 'value', …) */` behind the name of a table, for this reading of it; stands in exp.Table's
    arg `hints`. `expressions` are ReadOption."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Within(exp.Expression):
    """How far the event times of two streams of a join may lie apart, as ksqlDB writes it: so many microseconds
    `before` that of the stream in front, and `after` it. `grace` is how late rows may be there."""

    arg_types: ClassVar[dict[str, bool]] = {"before": True, "after": True, "grace": False}
