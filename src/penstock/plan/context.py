"""What one planning run knows and remembers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.nodes import Core, Node
from penstock.plan.relation import Field
from penstock.plan.windows import WindowSpec

if TYPE_CHECKING:
    from penstock.catalog.model import FunctionDefinition
    from penstock.catalog.snapshot import Catalog
    from penstock.errors import Span
    from penstock.plan.scope import Resolved, Scope
    from penstock.plan.versioned_views import Versions
    from penstock.sql.statements import Emit, Option


@frozen
class PlanSettings:
    """The settings that change what a query means."""

    dialect: str = "penstock"
    default_watermark_delay_us: int = 5_000_000
    emit_changes_always: bool = False  # RisingWave's default: windows too emit every change
    truncating_division: bool = False  # integers divide to integers, as in Flink, Arroyo and RisingWave


@dataclass(slots=True)
class Relation:
    """A planned query: the operators, the Spark tree that gives their columns, and the window of its rows.

    open: a relation of unknown columns, in lenient mode
    direct: a plain scan, which can stand in a FROM clause by its name
    unmerged: rows of a session window before they are grouped: their sessions are not known yet
    versions: its rows are all versions of those that a view shows the latest of
    """

    node: Node
    tree: exp.Query
    window: WindowSpec | None = None
    open: bool = False
    direct: bool = False
    unmerged: bool = False
    versions: Versions | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.node.fields


class EventTimeWantedError(Exception):
    """A window stands over a column of a stream that declares no event time: plan again with that column as it."""

    def __init__(self, relation: str, column: str) -> None:
        super().__init__(relation, column)
        self.relation = relation
        self.column = column


class UnmergedSessionError(NotYetError):
    """Rows of sessions are read one by one, or in groups of their own: plan again with sessions that have closed."""


@frozen
class CoreQuery:
    """A subquery that Spark runs by itself while the view store keeps its rows: its name in the tree around, its tree
    and its columns. `static` are the relations that it joins with as a whole."""

    relation: str
    tree: exp.Query
    node: Core
    words: str
    static: frozenset[str]


@dataclass(slots=True)
class PlanContext:
    """One planning run. `continuous` is false only for a bare query over bounded relations."""

    catalog: Catalog
    settings: PlanSettings
    bind_query: Callable[[PlanContext, exp.Expr, Scope | None, RankLimit | None], Relation]
    lenient: bool = False
    continuous: bool = True
    emit: Emit | None = None
    emit_span: Span | None = None
    emit_depth: int = 0  # the depth of the SELECT that `emit` speaks of: a view in it may say its own
    kept: bool = False  # the rows of streams are kept: each is read as the whole of what has come so far
    open_windows: bool = False  # beside `kept`: windows that Spark cannot close are groups like any other
    forgets: bool = False  # beside `kept`: Spark, which never forgets by age, keeps no first rows of keys for ever
    in_spark: bool = False  # Spark is asked to keep the groups of a running aggregate, with the sets of distinct values
    inlined: bool = False  # a materialized view that rows are only added to is read as its query, from its streams anew
    closed_sessions: bool = False  # the rows of sessions are read when these have closed; see session_rows
    unique_names: bool = False  # the result is stored, so its columns need names of their own
    assumed_event_times: dict[str, str] = field(default_factory=dict)
    reads: dict[str, set[str]] = field(default_factory=dict)
    readings: dict[str, tuple[Option, ...]] = field(default_factory=dict)  # of each source, what hints say of it
    depends_on: dict[str, None] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)
    in_place: dict[str, None] = field(default_factory=dict)  # functions in SQL, whose bodies stand for their calls
    subqueries: list[Node] = field(default_factory=list)  # those inside expressions, over bounded relations
    notices: dict[str, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)
    cores: dict[str, CoreQuery] = field(default_factory=dict)  # see append_cores; by their text
    repeated: dict[str, int] = field(default_factory=dict)  # how often each subquery stands in the statement
    views: int = 0  # put in place so far
    all_versions: bool = False  # the relation that is read next is joined as of an event time
    in_front: bool = False  # the relation that is read next meets once what is joined with it as of PROCTIME()
    view: str = ""  # the name of the view whose query is bound next
    grace_us: int | None = None  # the delay of watermarks below a window that says how long it waits for late rows
    depth: int = 0  # 0: the outermost SELECT, whose emission the statement says

    def notice(self, text: str) -> None:
        self.notices[text] = None

    def warn(self, text: str) -> None:
        self.warnings[text] = None

    def read(self, found: Resolved) -> None:
        """Remembers that a column of a source is needed."""
        self.read_field(found.field)

    def read_field(self, entry: Field) -> None:
        """As `read`, for a column that was found without a reference to it."""
        if entry.source is not None:
            relation, column = entry.source
            self.reads.setdefault(relation, set()).add(column)

    def user_function(self, name: str) -> FunctionDefinition | None:
        from penstock.sql.statements import Name

        found = self.catalog.find_function(Name(name))
        if found is not None:
            (self.functions if found.expression is None else self.in_place)[found.name.text] = None
        return found


@frozen
class RankLimit:
    """What the query around a ranked subquery keeps of it: rows whose rank column is at most `limit`."""

    column: str
    limit: int
