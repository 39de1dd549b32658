"""An aggregate of the user's in parts: what a batch gives for a group, how two such results merge, and what is shown.

It is a class with `partial`, `merge` and `finish`. A partial result is whatever JSON can hold, and travels and is kept
as such text: from Spark's workers, where `partial` runs, to the view store, which merges and finishes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from penstock.catalog.python_types import in_parts
from penstock.frozen import frozen
from penstock.spark.function_code import FunctionCode, load
from penstock.spark.function_error import failure

if TYPE_CHECKING:
    import pyarrow as pa

Step = Literal["whole", "partial"]


def for_groups(function: Callable[..., Any], step: Step) -> Callable[..., Any]:
    """What is called with the columns of a group: for the result, or for one that can be merged, as text."""
    if not in_parts(function):
        return function
    made = function()
    if step == "partial":
        return lambda *columns: _text(made.partial(*columns))
    # Through text, as in the store: one result, however it came about.
    return lambda *columns: made.finish(json.loads(_text(made.partial(*columns))))


@frozen
class MergingFunction:
    """The parts that the view store calls."""

    name: str
    code: FunctionCode
    returns: pa.DataType

    def merge(self, left: str, right: str) -> str:
        """Two partial results of a group as one."""
        try:
            return _text(load(self.code)().merge(json.loads(left), json.loads(right)))
        except (Exception, SystemExit) as error:
            raise failure(self.name, error) from error

    def finish(self, partial: str) -> Any:
        """The value of a group, of the type that was declared."""
        import pyarrow as pa

        try:
            return pa.array([plain(load(self.code)().finish(json.loads(partial)))], self.returns)[0].as_py()
        except (Exception, SystemExit) as error:
            raise failure(self.name, error) from error


def plain(value: Any) -> Any:
    """A value of Arrow or NumPy as one of Python."""
    if hasattr(value, "as_py"):
        return value.as_py()
    if type(value).__module__ == "numpy":
        return value.tolist() if hasattr(value, "tolist") else value
    return value


def _text(value: Any) -> str:
    return json.dumps(plain(value), default=_inner)


def _inner(value: Any) -> Any:
    found = plain(value)
    if found is value:
        raise TypeError(f"a partial result is what JSON can hold, and no {type(value).__name__}")
    return found
