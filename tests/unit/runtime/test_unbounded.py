"""A query that would never end is refused before anything runs."""

from __future__ import annotations

import pytest

from penstock.errors import RuntimeFailure
from penstock.runtime.queries import refuse_unbounded
from tests.unit.plan.analysis import planned

RELATIONS = """
CREATE TABLE ended (k STRING, v INT) WITH (connector = 'datagen', number_of_rows = 10);
CREATE MATERIALIZED VIEW counts AS SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;
"""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT symbol FROM trades",
        "SELECT symbol, COUNT(*) FROM trades GROUP BY symbol",
        "SELECT s.symbol FROM (SELECT symbol FROM trades) AS s",
    ],
)
def test_a_query_over_a_stream_is_refused_and_the_stream_named(sql: str) -> None:
    with pytest.raises(RuntimeFailure, match='"trades" is a stream') as caught:
        refuse_unbounded(planned(RELATIONS + sql), None)
    assert caught.value.condition == "UNBOUNDED_QUERY"


@pytest.mark.parametrize("sql", ["SELECT k FROM ended", "SELECT symbol FROM counts", "SELECT name FROM penstock.jobs"])
def test_a_query_over_what_ends_is_not(sql: str) -> None:
    refuse_unbounded(planned(RELATIONS + sql), None)
