"""What the planner knows of a function."""

from __future__ import annotations

from typing import Literal

from penstock.frozen import frozen

Kind = Literal["scalar", "aggregate", "window", "generator", "special"]

# Without arguments these read the clock; with one they convert it.
_CLOCK_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp"})

# The first argument is a unit, written as a bare word; of the second group with three arguments only.
_UNIT_FIRST = frozenset({"timestampadd", "timestampdiff"})
_UNIT_FIRST_OF_THREE = frozenset({"date_add", "date_diff", "dateadd", "datediff"})


@frozen
class FunctionInfo:
    """A function a query may call.

    kind: 'scalar', 'aggregate', 'window' (needs OVER), 'generator' (makes rows), 'special' (the planner handles it)
    deterministic: the same rows give the same value, whenever and in whatever order they are computed
    min_args, max_args: how many arguments it takes; max_args is None where there is no limit
    returns: the rule for its type, see `penstock.catalog.return_types`
    mergeable: (aggregates) the results of two batches can be merged into the result of both; never with
        DISTINCT or an ORDER BY inside
    higher_order: it takes lambdas
    """

    name: str
    kind: Kind
    deterministic: bool = True
    min_args: int = 0
    max_args: int | None = None
    returns: str = "unknown"
    mergeable: bool = False
    higher_order: bool = False

    def takes(self, count: int) -> bool:
        """Whether it can be called with `count` arguments."""
        return self.min_args <= count and (self.max_args is None or count <= self.max_args)

    def repeatable(self, count: int) -> bool:
        """Whether a call with `count` arguments has the same value each time it is computed for the same rows."""
        return self.deterministic and not (count == 0 and self.name in _CLOCK_WITHOUT_ARGUMENTS)

    def unit_first(self, count: int) -> bool:
        """Whether the first of `count` arguments is a unit such as HOUR, a bare word and no column."""
        return self.name in _UNIT_FIRST or (count == 3 and self.name in _UNIT_FIRST_OF_THREE)

    def arguments(self) -> str:
        """How many arguments it takes, in words for a message.

        >>> FunctionInfo("f", "scalar", min_args=1, max_args=2).arguments()
        '1 or 2 arguments'
        """
        if self.max_args is None:
            return f"at least {self.min_args} {_plural(self.min_args)}" if self.min_args else "any number of arguments"
        if self.min_args == self.max_args:
            return f"{self.min_args or 'no'} {_plural(self.min_args)}"
        joint = "or" if self.max_args == self.min_args + 1 else "to"
        return f"{self.min_args} {joint} {self.max_args} arguments"


def _plural(count: int) -> str:
    return "argument" if count == 1 else "arguments"
