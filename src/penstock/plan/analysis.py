"""What is known of a statement once it is analyzed; each kind of statement is analyzed by a function of its own."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.plan.relation import Mode
from penstock.sql import statements as s

if TYPE_CHECKING:
    from penstock.catalog.model import Definition
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.session import Session


@frozen
class Analysis:
    """The session after a statement, the plans in it, and what to tell the user."""

    session: Session
    plans: tuple[LogicalPlan, ...] = ()
    notices: tuple[str, ...] = ()
    definition: Definition | None = None

    @property
    def plan(self) -> LogicalPlan | None:
        return self.plans[0] if self.plans else None

    @property
    def mode(self) -> Mode | None:
        """The change mode of the result; of several, the one that promises least."""
        order = [Mode.APPEND, Mode.UPSERT, Mode.RETRACT]
        return max((plan.mode for plan in self.plans), key=order.index, default=None)


@singledispatch
def by_statement(statement: s.Statement, session: Session) -> Analysis:
    """What a statement of some kind does: see analyze and analyze_jobs, which say it for theirs."""
    raise InternalError(f"no analysis for {type(statement).__name__}")
