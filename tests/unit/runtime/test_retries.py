"""Which dead letters a condition chooses, which jobs can read theirs again, and what is told of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock
from penstock.errors import JobFailed, NotYetError, OptionError, RuntimeFailure
from penstock.plan.analyze import analyze
from penstock.plan.script import analyze_script
from penstock.runtime.job_statements import make_insert_spec
from penstock.runtime.retries import chosen_places, retry_dead_letters
from penstock.runtime.states import JobState
from penstock.sql.script import parse_statement
from penstock.sql.statements import Insert
from penstock.stores.views import BatchCommit


def test_dead_letters_of_a_condition(tmp_path: Path) -> None:
    import pyarrow as pa

    dead = pa.table(
        {
            "stream": ["s", "s", "t"],
            "partition": pa.array([0, 1, 1], pa.int32()),
            "offset": pa.array([3, 9, 4], pa.int64()),
            "raw": [b"x", b"y", b"z"],
            "reason": ["malformed", "malformed", "not_null"],
            "error": ["e", "e", "f"],
            "recorded_at": pa.array([0, 0, 0], pa.timestamp("us", tz="UTC")),
        }
    )
    with penstock.connect(tmp_path) as db:
        engine = db._engine
        engine.home.views.commit(BatchCommit(job="j", batch_id=0, offsets_hash="h", tracker="{}", dead=dead))
        for condition, wanted in (
            ("partition = 1", {("j", "s", 1, 9), ("j", "t", 1, 4)}),
            ("reason = 'malformed' AND offset < 5", {("j", "s", 0, 3)}),
            ("job <> 'j'", set()),
        ):
            plan = analyze(parse_statement(f"RETRY DEAD LETTERS WHERE {condition}"), engine.session).plan
            assert plan is not None
            assert chosen_places(engine, plan) == wanted, condition


RELATIONS = """
    CREATE STREAM s (n INT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'kafka', topic = 't');
    CREATE SINK out (n BIGINT) WITH (connector = 'kafka', topic = 'o');
"""
PLAIN = "INSERT INTO out SELECT n FROM s"
REALTIME = "INSERT INTO out WITH (mode = 'realtime') SELECT n FROM s"
WINDOWS = (
    "INSERT INTO out SELECT COUNT(*) FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND) GROUP BY window_start"
)


class Jobs:
    """An engine with jobs that have a dead letter each, and take it with the next batch."""

    def __init__(self) -> None:
        views = SimpleNamespace(dead_places=lambda name: [tuple(place) for job, *place in self.dead if job == name])
        self.dead: list[tuple[Any, ...]] = []
        self.notices: list[str] = []
        self.steps: list[tuple[str, str]] = []
        self.jobs: dict[str, Any] = {}
        self.home = SimpleNamespace(views=views)

    def add(
        self,
        name: str,
        statement: str = PLAIN,
        state: JobState = JobState.RUNNING,
        *,
        breaks: bool = False,
        schemas_differ: Callable[[], bool] = lambda: False,
    ) -> None:
        *_, report = analyze_script(RELATIONS + statement)
        assert isinstance(report.statement, Insert)
        assert report.plan is not None
        assert report.analysis is not None
        spec = make_insert_spec(report.statement, report.plan, report.analysis.session)
        callback = SimpleNamespace(retry=None)

        def nudge() -> None:
            if breaks:
                raise JobFailed(name, f"job {name} has failed: broken")
            self.dead = [place for place in self.dead if place[0] != name]
            callback.retry.done.set()

        def wait(until: Any, *_: object, **__: object) -> None:
            assert until()

        run = SimpleNamespace(callback=callback, schemas_differ=schemas_differ)
        job = SimpleNamespace(
            name=name,
            spec=spec,
            state=state,
            run=run if state is JobState.RUNNING else None,
            stop=lambda after, _: self.steps.append((name, str(after))),
            start=lambda _: self.steps.append((name, "started")),
            wait_first_batch=lambda _: None,
            nudge=nudge,
            wait=wait,
        )
        self.jobs[name] = job
        self.dead.append((name, "s", 0, 7))


def test_a_job_starts_again_where_its_schemas_are_others_now() -> None:
    engine: Any = Jobs()

    def broken() -> bool:
        raise OptionError("INVALID_OPTION", "the schema is no JSON")

    engine.add("same")
    engine.add("other", schemas_differ=lambda: True)
    engine.add("unreadable", schemas_differ=broken)
    retry_dead_letters(engine, None)
    assert engine.steps == [("other", "stopped"), ("other", "started")]
    assert [job for job, *_ in engine.dead] == ["unreadable"]
    assert engine.notices == ["dead letters of job unreadable are left as they are: the schema is no JSON"]
    with pytest.raises(OptionError, match="no JSON"):
        retry_dead_letters(engine, "unreadable")
    assert engine.steps[2:] == []


def test_jobs_that_cannot_hold_up_no_others() -> None:
    engine: Any = Jobs()
    engine.add("flowing", REALTIME)
    engine.add("stopped", state=JobState.STOPPED)
    engine.add("failed", state=JobState.FAILED)
    engine.add("trying", state=JobState.RESTARTING)
    engine.add("windows", WINDOWS)
    engine.add("breaks", breaks=True)
    engine.add("well")
    retry_dead_letters(engine, None)
    assert [job for job, *_ in engine.dead] == ["flowing", "stopped", "failed", "trying", "windows", "breaks"]
    left = "dead letters of job {} are left as they are: "
    assert all(told.startswith(left.format(job)) for told, (job, *_) in zip(engine.notices, engine.dead, strict=True))
    told = dict(zip((job for job, *_ in engine.dead), engine.notices, strict=True))
    assert "real-time mode" in told["flowing"]
    assert "job stopped is stopped" in told["stopped"]
    assert "windows, joins or keys" in told["windows"]
    assert "job breaks has failed" in told["breaks"]


def test_a_job_that_cannot_says_why_where_it_is_named() -> None:
    engine: Any = Jobs()
    engine.add("flowing", REALTIME)
    engine.add("paused", state=JobState.PAUSED)
    engine.add("trying", state=JobState.RESTARTING)
    with pytest.raises(NotYetError, match="insert_out cannot be read again: it runs in real-time mode") as raised:
        retry_dead_letters(engine, "flowing")
    assert raised.value.hint is not None
    assert "without mode = 'realtime'" in raised.value.hint
    with pytest.raises(RuntimeFailure, match="job paused is paused and reads nothing") as failed:
        retry_dead_letters(engine, "paused")
    assert (failed.value.condition, failed.value.hint) == ("JOB_STATE", "RESUME JOB paused first")
    with pytest.raises(RuntimeFailure, match="job trying is restarting") as failed:
        retry_dead_letters(engine, "trying")
    assert failed.value.hint == "ask again once it runs"
    assert engine.notices == []
