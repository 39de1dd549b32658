"""A user's function as Spark calls it in its workers: Arrow arrays in, one Arrow array of the declared type out.

Every function comes through here, whatever it takes. A function over Arrow arrays is called once for a batch of some
thousand rows; one over single values is called for each row, which costs what Python costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.spark.function_code import FunctionCode, load
from penstock.spark.function_error import failure
from penstock.spark.merging_function import Step, for_groups, plain

if TYPE_CHECKING:
    import pyarrow as pa

Takes = Literal["values", "arrow", "pandas"]


@dataclass(frozen=True)
class FunctionCall:
    """What Spark is given for a function. An aggregate gets the collected rows of each group as a list of structs.

    `step` is what an aggregate in parts is asked for: its result, or a partial one that the view store merges.
    """

    name: str
    code: FunctionCode
    takes: Takes
    returns: pa.DataType
    aggregate: bool = False
    null_on_error: bool = False
    step: Step = "whole"

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        """One batch of rows, or of groups."""
        try:
            function = load(self.code)
            if self.aggregate:
                return self._groups(for_groups(function, self.step), arrays[0])
            return self._rows(function, arrays)
        except (Exception, SystemExit) as error:
            raise failure(self.name, error) from error

    # rows

    def _rows(self, function: Callable[..., Any], arrays: tuple[pa.Array, ...]) -> pa.Array:
        if self.takes == "values":
            columns = [array.to_pylist() for array in arrays]
            return self._made(self._each(function, zip(*columns, strict=True)))
        try:
            return self._whole(function, arrays)
        except Exception:
            if not self.null_on_error:
                raise
        return self._one_by_one(function, arrays)

    def _each(self, function: Callable[..., Any], rows: Iterator[tuple[Any, ...]]) -> list[Any]:
        if not self.null_on_error:
            return [function(*row) for row in rows]
        found: list[Any] = []
        for row in rows:
            try:
                found.append(function(*row))
            except Exception:  # noqa: BLE001 - the user asks for NULL where it fails
                found.append(None)
        return found

    def _whole(self, function: Callable[..., Any], arrays: tuple[pa.Array, ...]) -> pa.Array:
        """One call for all rows."""
        import pyarrow as pa

        if self.takes == "pandas":
            found = pa.array(function(*[array.to_pandas() for array in arrays]), from_pandas=True)
        else:
            found = function(*arrays)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if not isinstance(found, pa.Array):
            found = pa.array(found)
        if len(found) != len(arrays[0]):
            raise ValueError(f"it returned {len(found)} values for {len(arrays[0])} rows")
        return found if found.type == self.returns else found.cast(self.returns)

    def _one_by_one(self, function: Callable[..., Any], arrays: tuple[pa.Array, ...]) -> pa.Array:
        """A batch with rows that the function fails on: those become NULL, and only those."""
        import pyarrow as pa

        found: list[pa.Array] = []
        for place in range(len(arrays[0])):
            try:
                found.append(self._whole(function, tuple(array.slice(place, 1) for array in arrays)))
            except Exception:  # noqa: BLE001 - the user asks for NULL where it fails
                found.append(pa.nulls(1, self.returns))
        return pa.concat_arrays(found)

    # groups

    def _groups(self, function: Callable[..., Any], lists: pa.Array) -> pa.Array:
        return self._made(self._each(function, (self._arguments(group) for group in lists)))

    def _arguments(self, group: pa.Scalar) -> tuple[Any, ...]:
        columns = group.values.flatten()
        if self.takes == "values":
            return tuple(column.to_pylist() for column in columns)
        return tuple(column.to_pandas() for column in columns) if self.takes == "pandas" else tuple(columns)

    # what comes out

    def _made(self, values: list[Any]) -> pa.Array:
        import pyarrow as pa

        found = [plain(value) for value in values]
        try:
            return pa.array(found, self.returns)
        except (pa.ArrowException, TypeError, ValueError):
            if not self.null_on_error:
                raise
        return pa.concat_arrays([self._or_null(value) for value in found])

    def _or_null(self, value: Any) -> pa.Array:
        import pyarrow as pa

        try:
            return pa.array([value], self.returns)
        except (pa.ArrowException, TypeError, ValueError):
            return pa.nulls(1, self.returns)
