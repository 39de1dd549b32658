"""The logical plan: one frozen value for each operator, from the result down to the sources.

A node says what happens, for `EXPLAIN` and for the checks; the text that Spark runs is made beside it from the bound
tree. Expressions stand in nodes as canonical SQL text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from penstock.frozen import frozen
from penstock.plan.relation import EventTime, Field, Mode, State
from penstock.plan.windows import WindowSpec
from penstock.sql.statements import Emit, Option


@frozen(kw_only=True)
class Node:
    """The root of all operators, and what each knows of its output."""

    fields: tuple[Field, ...]
    inputs: tuple[Node, ...] = ()
    mode: Mode = Mode.APPEND
    key: tuple[str, ...] | None = None
    event_time: EventTime | None = None
    bounded: bool = False
    state: State | None = None

    @property
    def label(self) -> str:
        """The operator's name in EXPLAIN."""
        return type(self).__name__

    @property
    def stateful(self) -> bool:
        return self.state is not None

    @property
    def broadcast(self) -> bool:
        return False

    @property
    def shuffles(self) -> bool:
        """Whether rows move between tasks."""
        return False

    def details(self) -> dict[str, str]:
        """What EXPLAIN prints behind the label, in order."""
        return {}

    @property
    def visible(self) -> tuple[Field, ...]:
        """The columns a user can see."""
        return tuple(field for field in self.fields if not field.hidden)


@frozen(kw_only=True)
class Scan(Node):
    """Reads a stream, table, dimension, view or system table.

    `looked_up`: it is there to be joined with, and read as a whole, not row by row as a stream: a dimension, or a table
    with the option `refresh`. `changes`: how its rows change at their source, also where `mode` is that of the latest
    row of each key, which the view store keeps; then `version` is the column that tells later rows from earlier ones.
    `reading`: what the statement says of this reading, in the place of what the source says.
    """

    relation: str
    kind: Literal["stream", "table", "dimension", "materialized view", "system table", "unknown"]
    alias: str
    connector: str | None = None
    looked_up: bool = False
    changes: Mode = Mode.APPEND
    version: str | None = None
    reading: tuple[Option, ...] = ()

    def details(self) -> dict[str, str]:
        found = {"relation": self.relation, "kind": self.kind}
        if self.alias != self.relation:
            found["as"] = self.alias
        if self.connector:
            found["connector"] = self.connector
        if self.changes is not Mode.APPEND:
            found["changes"] = f"by ({', '.join(self.key)})" if self.key else self.changes.value
        if self.version is not None:
            found["version"] = self.version
        if self.event_time is not None:
            found["event time"] = describe_event_time(self.event_time)
        if self.reading:
            found["hint"] = ", ".join(f"{option.key} = {option.value.reveal()}" for option in self.reading)
        return found


@frozen(kw_only=True)
class Values(Node):
    """Rows written in the statement."""

    rows: int

    def details(self) -> dict[str, str]:
        return {"rows": str(self.rows)}


@frozen(kw_only=True)
class WindowAssign(Node):
    """Puts every row into its windows."""

    window: WindowSpec

    @property
    def label(self) -> str:
        return "Window"

    def details(self) -> dict[str, str]:
        return {"window": str(self.window)}


@frozen(kw_only=True)
class SessionRows(Node):
    """Rows with the session they belong to, when it has closed."""

    window: WindowSpec

    @property
    def shuffles(self) -> bool:
        return True

    def details(self) -> dict[str, str]:
        found = {"window": str(self.window)}
        if self.window.keys:
            found["partition by"] = ", ".join(self.window.keys)
        return found


@frozen(kw_only=True)
class Filter(Node):
    """Keeps the rows for which a condition holds."""

    condition: str

    def details(self) -> dict[str, str]:
        return {"condition": self.condition}


@frozen(kw_only=True)
class Project(Node):
    """Computes the columns of a SELECT list."""

    columns: tuple[str, ...]

    def details(self) -> dict[str, str]:
        return {"columns": ", ".join(self.columns)}


@frozen(kw_only=True)
class Unnest(Node):
    """Turns the elements of an array or map, or a lateral function, into rows."""

    expression: str

    def details(self) -> dict[str, str]:
        return {"expression": self.expression}


@frozen(kw_only=True)
class Aggregate(Node):
    """Groups rows and aggregates each group."""

    group_by: tuple[str, ...]
    aggregates: tuple[str, ...]
    window: WindowSpec | None
    emit: Emit | None
    grouping_sets: bool = False

    @property
    def shuffles(self) -> bool:
        return True

    def details(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.group_by:
            found["group by"] = ", ".join(self.group_by)
        if self.grouping_sets:
            found["grouping sets"] = "yes"
        if self.window is not None:
            found["window"] = str(self.window)
        if self.aggregates:
            found["aggregates"] = ", ".join(self.aggregates)
        if self.emit is not None:
            found["emit"] = self.emit.value.lower()
        return found


JoinStrategy = Literal["broadcast", "stream", "batch", "view store"]


@frozen(kw_only=True)
class Join(Node):
    """Joins two relations."""

    kind: str  # 'inner' | 'left' | 'right' | 'full' | 'semi' | 'anti' | 'cross'
    strategy: JoinStrategy
    condition: str | None
    time_bound: str | None = None  # for an interval join, in words
    window: WindowSpec | None = None  # for a window join
    static: Literal["left", "right"] | None = None  # the side that every batch sees as a whole, for a broadcast join

    @property
    def static_input(self) -> Node | None:
        """The dimension of a broadcast join."""
        return None if self.static is None else self.inputs[0 if self.static == "left" else 1]

    @property
    def label(self) -> str:
        if self.window is not None:
            return "WindowJoin"
        if self.time_bound is not None:
            return "IntervalJoin"
        return "DimensionJoin" if self.strategy == "broadcast" else "Join"

    @property
    def broadcast(self) -> bool:
        return self.strategy == "broadcast"

    @property
    def shuffles(self) -> bool:
        return self.strategy not in ("broadcast", "view store")

    def details(self) -> dict[str, str]:
        found = {"kind": self.kind, "strategy": self.strategy}
        if self.condition:
            found["on"] = self.condition
        if self.time_bound:
            found["time bound"] = self.time_bound
        if self.window is not None:
            found["window"] = str(self.window)
        return found


@frozen(kw_only=True)
class SetOperation(Node):
    """UNION ALL, UNION, EXCEPT or INTERSECT."""

    operator: str

    @property
    def label(self) -> str:
        return "Union" if self.operator == "UNION ALL" else "SetOperation"

    @property
    def shuffles(self) -> bool:
        return self.operator != "UNION ALL"

    def details(self) -> dict[str, str]:
        return {"operator": self.operator}


@frozen(kw_only=True)
class Deduplicate(Node):
    """SELECT DISTINCT, or the row of each key that arrives first."""

    first_of: tuple[str, ...] = ()

    @property
    def shuffles(self) -> bool:
        return True

    def details(self) -> dict[str, str]:
        return {"first of": ", ".join(self.first_of)} if self.first_of else {}


@frozen(kw_only=True)
class TopN(Node):
    """The rows of each window and key with their ranks: the first N, or all of them."""

    window: WindowSpec
    functions: tuple[str, ...]
    partition_by: tuple[str, ...]
    order_by: tuple[str, ...]
    limit: int | None

    @property
    def label(self) -> str:
        return "WindowTopN" if self.limit is not None else "WindowRank"

    @property
    def shuffles(self) -> bool:
        return True

    def details(self) -> dict[str, str]:
        found = {"window": str(self.window), "functions": ", ".join(self.functions)}
        if self.order_by:
            found["order by"] = ", ".join(self.order_by)
        if self.limit is not None:
            found["limit"] = str(self.limit)
        if self.partition_by:
            found["partition by"] = ", ".join(self.partition_by)
        return found


@frozen(kw_only=True)
class BestOfWindow(Node):
    """The rows with the largest or smallest value of their window, written as a join with it."""

    window: WindowSpec
    value: str
    condition: str | None

    @property
    def label(self) -> str:
        return "WindowBest"

    @property
    def shuffles(self) -> bool:
        return self.stateful  # groups are compared where they are kept

    def details(self) -> dict[str, str]:
        found = {"rows with": self.value}
        if self.condition:
            found["on"] = self.condition
        return found | {"window": str(self.window)}


@frozen(kw_only=True)
class Rank(Node):
    """OVER over bounded input."""

    functions: tuple[str, ...]

    @property
    def shuffles(self) -> bool:
        return True

    def details(self) -> dict[str, str]:
        return {"functions": ", ".join(self.functions)}


@frozen(kw_only=True)
class Sort(Node):
    """ORDER BY over bounded input."""

    order_by: tuple[str, ...]

    @property
    def shuffles(self) -> bool:
        return True

    def details(self) -> dict[str, str]:
        return {"order by": ", ".join(self.order_by)}


@frozen(kw_only=True)
class Limit(Node):
    """At most n rows, over the life of the query."""

    limit: str
    offset: str | None = None

    def details(self) -> dict[str, str]:
        return {"rows": self.limit} | ({"offset": self.offset} if self.offset is not None else {})


@frozen(kw_only=True)
class Core(Node):
    """A subquery that Spark runs by itself, which only ever adds rows: the view store keeps them, and answers what
    stands above over all of them. One that is used twice is run once; its operators stand below the first."""

    relation: str
    words: str

    def details(self) -> dict[str, str]:
        return {"rows": self.words} if self.inputs else {"rows": f"{self.words}, as above"}


@frozen(kw_only=True)
class Finish(Node):
    """What stands below is answered by the view store over the rows that it keeps, anew where a batch touches it."""

    answers: str

    def details(self) -> dict[str, str]:
        return {"answers": self.answers}


@frozen(kw_only=True)
class Output(Node):
    """Where the result goes."""

    target: str | None
    kind: Literal["view", "materialized view", "sink", "topic", "result"]
    connector: str | None = None

    @property
    def label(self) -> str:
        return {"view": "View", "materialized view": "MaterializedView", "result": "Result"}.get(self.kind, "Sink")

    def details(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.target:
            found["name"] = self.target
        if self.connector:
            found["connector"] = self.connector
        return found


def all_nodes(root: Node) -> Iterator[Node]:
    """A node and everything below it, from the top."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.inputs))


def describe_event_time(event_time: EventTime) -> str:
    """`ts, delay 5 seconds`, with a word on where the delay comes from when the user did not write it."""
    from penstock.plan.windows import duration_words

    column = "end of the window" if event_time.of_window else event_time.column
    origin = "" if event_time.declared == "watermark" else " (default_watermark_delay)"
    return f"{column}, delay {duration_words(event_time.delay_us)}{origin}"
