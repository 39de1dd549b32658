"""Random queries whose answer changes, over random batches: the view and its folded changes are DuckDB's batch answer
after every batch, and after a way back (G13, G16, G18)."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.unit.stores.views.changing import Changing
from tests.unit.stores.views.finishing import Finished, job_of, random_batch
from tests.updating_queries import queries

BASES = ("SELECT k, id, v, s FROM l", "SELECT k, id, w AS v, s FROM r", "SELECT k, id, v, s FROM l WHERE v > 1")


def holds(query: str, seed: int) -> None:
    """What the view store answers after each batch is what DuckDB answers over all rows so far."""
    job: Any = job_of(query)
    assume(job.finish is not None)  # Spark only adds rows, or the store merges an aggregate
    found = Finished(query, None)
    rnd = random.Random(seed)  # noqa: S311
    batches = [random_batch(rnd, 10 * number) for number in range(4)]
    batches[0]["l"].append((1, 0, 2, "a"))  # an aggregate of all rows is there from the first row on
    batches[0]["r"].append((1, 0, 2, "a"))
    for number, batch in enumerate(batches):
        found.add(number, batch)
        found.follow()
        expected = found.answer()
        assert found.view() == expected, f"{query}\nthe view after batch {number}"
        assert +found.fold == expected, f"{query}\nthe folded changes after batch {number}"
    found.store.rollback("job", 1)
    for number in (2, 3):
        found.commit(number, batches[number])
    assert found.view() == expected, f"{query}\nafter a way back"
    found.store.rollback("job", -1)
    assert not found.view(), f"{query}\nbefore the first batch"
    found.store.close()


def holds_over_changes(query: str, seed: int) -> None:
    """The same over sources whose rows change, with a stop between two batches, somewhere."""
    rnd = random.Random(seed)  # noqa: S311
    with TemporaryDirectory() as path:
        found = Changing(query, Path(path) / "views.duckdb", versioned=bool(seed % 2))
        stop = rnd.randrange(3)
        row = (1, 0, 2, "a", 5, False, 0, 0)  # an aggregate of all rows is there from the first row on
        for number in range(4):
            batch = found.batch(rnd)
            if number == 0:
                batch = {**batch, "l": [*batch["l"], row], "r": [*batch["r"], row]}
            found.add(number, batch)
            if number == stop:
                found.reopen()
            found.follow()
            expected = found.answer()
            assert found.view() == expected, f"{query}\nthe view after batch {number}"
            assert +found.fold == expected, f"{query}\nthe folded changes after batch {number}"
        found.store.close()


# A smaller query that fails takes minutes to find: the first one is told as it is.
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(queries(BASES), st.integers(0, 1000))
def test_random_queries(query: str, seed: int) -> None:
    holds(query, seed)


@settings(
    max_examples=8, deadline=None, derandomize=True, phases=(Phase.generate,), suppress_health_check=list(HealthCheck)
)
@given(queries(BASES), st.integers(0, 1000))
def test_random_queries_over_changes(query: str, seed: int) -> None:
    """SC40"""
    holds_over_changes(query, seed)


@pytest.mark.soak
@settings(max_examples=500, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(queries(BASES), st.integers(0, 1_000_000))
def test_many_random_queries_over_changes(query: str, seed: int) -> None:
    holds_over_changes(query, seed)


@pytest.mark.soak
@settings(max_examples=1500, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(queries(BASES), st.integers(0, 1_000_000))
def test_many_random_queries(query: str, seed: int) -> None:
    holds(query, seed)
