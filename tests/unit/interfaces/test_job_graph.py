"""Which job waits for which."""

from __future__ import annotations

from penstock.interfaces.changes import Job
from penstock.interfaces.cli.job_graph import depth, fed_by, feeding, upstream_first


def job(name: str, reads: str, writes: str | None = None) -> Job:
    return Job(name, "running", reads=tuple(reads.split()), writes=writes or name)


CHAIN = [job("c", "B"), job("insert_b", "a", "b"), job("insert_a", "src", "a"), job("other", "elsewhere")]


def names(jobs: list[Job]) -> list[str]:
    return [item.name for item in jobs]


def test_a_job_comes_behind_those_that_write_what_it_reads() -> None:
    assert names(upstream_first(CHAIN)) == ["insert_a", "insert_b", "c", "other"]


def test_the_jobs_that_feed_a_relation_are_found_through_others() -> None:
    assert names(feeding(CHAIN, ["C"])) == ["insert_a", "insert_b", "c"]
    assert feeding(CHAIN, ["src"]) == []


def test_a_relation_feeds_a_job_through_others() -> None:
    assert fed_by(CHAIN[0], CHAIN, ["SRC"])
    assert not fed_by(CHAIN[0], CHAIN, ["elsewhere"])


def test_the_depth_is_that_of_the_longest_chain() -> None:
    assert depth(CHAIN) == 3
    assert depth([]) == 0


def test_a_circle_does_not_hang() -> None:
    circle = [job("x", "b", "a"), job("y", "a", "b")]
    assert set(names(upstream_first(circle))) == {"x", "y"}
    assert len(feeding(circle, ["a"])) == 2
