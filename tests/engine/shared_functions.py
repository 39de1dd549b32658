"""Functions that tests register by where they stand: another process finds them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def shout(text: str) -> str:
    return text.upper() + "!"


class Span:
    """How far the smallest and the largest value lie apart, in parts that merge."""

    def partial(self, values: pa.Array) -> dict[str, Any]:
        import pyarrow.compute as pc

        return pc.min_max(values).as_py()  # type: ignore[no-any-return]

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        found = [value for value in (*left.values(), *right.values()) if value is not None]
        return {"min": min(found, default=None), "max": max(found, default=None)}

    def finish(self, kept: dict[str, Any]) -> int | None:
        return None if kept["min"] is None else kept["max"] - kept["min"]


def plus_one(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.add(values, 1)
