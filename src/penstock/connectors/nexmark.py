"""Nexmark as a source: the persons, auctions and bids of the benchmark, made when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.generator import GeneratorSource
from penstock.connectors.nexmark_plan import plan_nexmark

if TYPE_CHECKING:
    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.generator_plan import Pace
    from penstock.connectors.range_reader import RangeDataSource


class NexmarkSource(GeneratorSource):
    """Reads Nexmark relations."""

    def plan(self, definition: SourceDefinition) -> Pace:
        return plan_nexmark(definition)

    def data_source(self) -> type[RangeDataSource]:
        from penstock.connectors.nexmark_reader import NexmarkDataSource

        return NexmarkDataSource
