"""When Spark takes out of a batch what the view store would not keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from penstock.runtime import targets
from tests.unit.stores.views.finishing import job_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Rows:
    """What comes out of Spark."""

    def __init__(self, count: int) -> None:
        self.num_rows = count


class Frame:
    """A frame of so many rows, and a session that leaves nine of ten; `asked` notes when it is."""

    def __init__(self, count: int, asked: list[int]) -> None:
        self._count = count
        self._asked = asked
        self.sparkSession = self

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        self._asked.append(self._count)

    def sql(self, text: str) -> Frame:
        assert "DISTINCT" in text
        return Frame(self._count * 9 // 10, self._asked)

    def toArrow(self) -> Rows:  # noqa: N802
        return Rows(self._count)


def test_what_does_not_pay_is_left_out_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large batch of which Spark takes out little is followed by batches that are handed over as they are."""
    monkeypatch.setattr(targets, "_ASKED_AGAIN", 2)
    asked: list[int] = []

    target = targets.ViewTarget("v", job_of("SELECT DISTINCT s FROM l"), {})
    taken = [
        target.take(cast("DataFrame", Frame(count, asked)), count, place)
        for place, count in enumerate([50_000, 50_000, 10, 50_000, 50_000])
    ]
    assert [rows.num_rows for rows in taken if rows is not None] == [45_000, 50_000, 10, 50_000, 45_000]
    assert asked == [50_000, 50_000]
