"""A planned statement."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.context import CoreQuery
from penstock.plan.nodes import Node, Output, Scan, all_nodes
from penstock.plan.relation import Field, Mode
from penstock.plan.ttl import Ttl
from penstock.sql.statements import Emit


@frozen
class LogicalPlan:
    """What a query does: its operators from the output down, and the tree of the text that Spark runs."""

    root: Output
    spark: exp.Query
    emit: Emit | None
    warnings: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    reads: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of each source, the columns that are needed
    subqueries: tuple[Node, ...] = ()  # inside expressions: `IN (SELECT …)`, EXISTS, a value; over bounded relations
    kept: bool = False  # planned over all rows so far, which the view store keeps; see finishing
    cores: tuple[CoreQuery, ...] = ()  # the subqueries of a kept plan that Spark runs by itself
    ttl: Ttl | None = None  # how long state is kept
    state: str | None = None  # 'spark' where a view asks that Spark keeps its state
    in_place: tuple[str, ...] = ()  # functions in SQL, whose bodies stand in the places of their calls
    pairs: bool = False  # of a kept plan: Spark could keep it too, and the store only adds rows; see added_pairs

    @property
    def mode(self) -> Mode:
        return self.root.mode

    @property
    def bounded(self) -> bool:
        return self.root.bounded

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.root.visible

    def nodes(self) -> Iterator[Node]:
        """All operators, the output first."""
        return all_nodes(self.root)

    def scans(self) -> tuple[Scan, ...]:
        """The relations that are read, without those of subqueries inside expressions."""
        return tuple(node for node in self.nodes() if isinstance(node, Scan))

    def subquery_nodes(self) -> Iterator[Node]:
        """The operators of subqueries inside expressions."""
        return (node for query in self.subqueries for node in all_nodes(query))

    def streams(self) -> tuple[Scan, ...]:
        """The relations whose rows never end, those of subqueries too, also where the plan is one as if they did."""
        return tuple(
            node for node in (*self.nodes(), *self.subquery_nodes()) if isinstance(node, Scan) and node.kind == "stream"
        )
