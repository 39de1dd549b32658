"""The events that queries are verified with: those of the generator, around three moments that matter to the queries.

Query 14 tells day, evening and night apart, and three queries count by the day. A few minutes of events would see one
of each. So the events come in three stretches, one around 19:00, one around 20:00 and one around midnight; within a
stretch they follow each other as the generator makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.connectors.nexmark_plan import NexmarkPlan, rows_among
from penstock.frozen import frozen
from penstock.interfaces.nexmark_lines import declared
from penstock.stores.arrow_types import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE: Final = 50_000
_SECOND_US: Final = 1_000_000
_DAY_US: Final = 1_436_918_400 * _SECOND_US  # 15 July 2015
_MOMENTS_US: Final = tuple(_DAY_US + hour * 3_600 * _SECOND_US for hour in (19, 20, 24))
_PAUSE_US: Final = 60 * _SECOND_US


@frozen
class NexmarkEvents:
    """So many events. rate: to a second of event time; out_of_order: the share that is dated up to 3 seconds back."""

    count: int
    seed: int = 0
    out_of_order: float = 0.1
    rate: float = 10.0

    def rows(self, kind: str, first: int = 0, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """The events first <= number < end of one kind, or of `all` kinds, some thousand at a time."""
        import pyarrow as pa

        from penstock.connectors.nexmark_values import nexmark_batch

        definition, plan = declared(
            f"table_type = '{kind}', event_count = {self.count}, seed = {self.seed}, event_rate = {self.rate!r}, "
            f"out_of_order = {self.out_of_order!r}"
        )
        schema = pa.schema([(column.name, arrow_type(column.type)) for column in definition.columns if column.type])
        stop = self.count if end is None else min(end, self.count)
        for begins, ends, dated in self._stretches(plan):
            one, other = rows_among(kind, max(begins, first)), rows_among(kind, min(ends, stop))
            for row in range(one, other, _AT_ONCE):
                yield nexmark_batch(dated, schema, 0, row, min(row + _AT_ONCE, other))

    def table(self, kind: str) -> pa.Table:
        """All events of a kind."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self.rows(kind)))

    def _stretches(self, plan: NexmarkPlan) -> Iterator[tuple[int, int, NexmarkPlan]]:
        count = len(_MOMENTS_US)
        bounds = [self.count * place // count for place in range(count + 1)]
        free_us = 0
        for moment, first, end in zip(_MOMENTS_US, bounds, bounds[1:], strict=False):
            lasts = int((end - first) * plan.gap_us)
            starts = max(moment - lasts // 2, free_us)
            free_us = starts + lasts + _PAUSE_US
            yield first, end, replace(plan, base_us=starts - int(first * plan.gap_us))
