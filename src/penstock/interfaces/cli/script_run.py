"""Runs a script statement by statement, and decides what an answer has to wait for.

once:   every query is answered for the rows that are there. Before a query over a view, the jobs that feed the view are
        drained, so that every window is closed; where the script goes on to feed them, they are only settled, because
        rows behind a closed window would be late. At the end all jobs of the script are drained.
follow: queries go on for as long as somebody looks; jobs go on with them.
asked:  statements from a pipe into the prompt: answers wait for the input that is there, and jobs stay as they are.
prompt: a query over streams goes on until Ctrl-C; one over views is answered for the moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from penstock.errors import JobFailed, PenstockError
from penstock.interfaces.cli.change_tables import QuerySubscription, Subscription
from penstock.interfaces.cli.following import Event, Followers
from penstock.interfaces.cli.job_graph import depth, fed_by, feeding, upstream_first
from penstock.interfaces.cli.messages import print_error, remark
from penstock.interfaces.cli.outcomes import is_new, jobs_of, outcome
from penstock.interfaces.table_output import RowWriter, count_rows
from penstock.sql import statements as s

if TYPE_CHECKING:
    from penstock.interfaces.changes import Job
    from penstock.interfaces.cli.answers import Answers
    from penstock.interfaces.cli.engine_port import EnginePort
    from penstock.interfaces.cli.progress import Progress
    from penstock.plan.script import StatementReport
    from penstock.sql.redact import Source
    from penstock.sql.script import Parsed

Mode = Literal["once", "follow", "asked", "prompt"]

# A script waits for its input however long that takes; Ctrl-C ends the wait.
PATIENT: Final = 7 * 86_400.0
_PULSE: Final = 0.5
# The system tables of rows that no answer counts, and what such rows are.
SET_ASIDE: Final = {"late_rows": "too late", "dead_letters": "bad"}


class ScriptRun:
    """One run of one script on an open engine."""

    def __init__(
        self,
        engine: EnginePort,
        name: str,
        answers: Answers,
        progress: Progress,
        *,
        mode: Mode,
        quiet: bool = False,
        debug: bool = False,
    ) -> None:
        self._engine = engine
        self._name = name
        self._answers = answers
        self._progress = progress
        self._mode: Mode = mode
        self._quiet = quiet
        self._debug = debug
        self._followers = Followers(engine)
        self._started: dict[str, None] = {}
        self._writers: dict[int, RowWriter] = {}
        self._last: int | None = None

    def run(self, statements: Sequence[Parsed], source: Source) -> bool:
        """Run the statements in order; whether all went well. The first that fails is told, and none runs after it."""
        before = self._set_aside()
        try:
            for position, parsed in enumerate(statements):
                if not self._statement(parsed, source, statements[position + 1 :]):
                    return False
            try:
                if self._mode == "once":
                    self._drain([job for job in self._jobs() if job.name in self._started])
                elif self._mode in {"follow", "prompt"}:
                    return self._follow()
            except PenstockError as error:
                self._complain(error, source)
                return False
            return True
        finally:
            with self._progress.during("stopping"):
                self._followers.stop()
            self._tell_set_aside(before)

    # one statement

    def _statement(self, parsed: Parsed, source: Source, later: Sequence[Parsed]) -> bool:
        report = self._engine.plan_statement(parsed, source)
        if report.error is not None:
            self._complain(report.error, source)
            return False
        if not self._quiet:
            self._tell(report, report.notices)
        try:
            self._execute(report, later)
        except PenstockError as error:
            if error.span is None:
                error.span = report.span
            self._complain(error, source)
            return False
        self._tell(report, self._engine.take_notices())
        return True

    def _execute(self, report: StatementReport, later: Sequence[Parsed]) -> None:
        statement = report.statement
        if isinstance(statement, s.Select):
            self._select(report, later)
        elif isinstance(statement, s.Subscribe | s.SubscribeQuery):
            self._subscribe(report, later)
        else:
            with self._progress.during(self._label(report)):
                result = self._engine.run_statement(report)
                self._keep_running(report)
            if result is not None and statement is not None:
                self._answers.show(statement, result)
            done = outcome(report)
            if done is not None and not self._quiet:
                remark(done)

    def _label(self, report: StatementReport) -> str:
        """What takes time about a statement: the first job has Spark to wait for."""
        if jobs_of(report) and not self._started:
            return "starting Spark"
        return f"running {report.kind} (line {report.span.line})"

    def _keep_running(self, report: StatementReport) -> None:
        """The jobs of a statement go on where an earlier run has left them."""
        names = jobs_of(report)
        self._started |= dict.fromkeys(names)
        if not names or is_new(report) or self._mode not in {"once", "follow"}:
            return
        for job in self._jobs():
            if job.name in names and job.state in {"stopped", "failed"}:
                self._engine.resume_job(job.name)
            elif job.name in names and job.state == "paused" and not self._quiet:
                remark(f"job {job.name} is paused; RESUME JOB {job.name} lets it go on")

    def _select(self, report: StatementReport, later: Sequence[Parsed]) -> None:
        assert report.plan is not None
        assert report.statement is not None
        scans = report.plan.scans()
        unbounded = bool(report.plan.streams())
        views = any(scan.kind == "materialized view" for scan in scans)
        if self._mode in {"follow", "prompt"} and unbounded:
            self._followers.stream(report)
        elif self._mode == "follow" and views:
            self._followers.view(report)
        else:
            self._catch_up([scan.relation for scan in scans], later)
            if any(scan.kind == "system table" for scan in scans) and self._mode in {"once", "asked"}:
                self._settle(self._jobs())
            with self._progress.during("starting Spark and reading" if unbounded else "answering"):
                answer = self._engine.select_once(report) if unbounded else self._engine.run_statement(report)
            if answer is not None:
                self._answers.show(report.statement, answer)

    def _subscribe(self, report: StatementReport, later: Sequence[Parsed]) -> None:
        statement = report.statement
        if self._mode in {"follow", "prompt"}:
            self._followers.subscription(report)
            return
        if isinstance(statement, s.SubscribeQuery):
            self._subscribe_query(report, later)
            return
        assert isinstance(statement, s.Subscribe)
        self._catch_up([statement.target.text], later)
        self._show_changes(Subscription(self._engine, statement))

    def _subscribe_query(self, report: StatementReport, later: Sequence[Parsed]) -> None:
        """What there is now, as inserts."""
        assert report.plan is not None
        self._catch_up([scan.relation for scan in report.plan.scans()], later)
        with self._progress.during("starting Spark and reading"):
            asked = QuerySubscription(self._engine, report)
        try:
            with self._progress.during(self._reading):
                asked.drain(PATIENT)
            self._show_changes(asked)
        finally:
            asked.close()

    def _show_changes(self, asked: Subscription | QuerySubscription) -> None:
        changes = [change for together in asked.changes(0.0) for change in together]
        self._answers.separate()
        self._answers.writer().add(asked.table(changes))

    # waiting for input

    def _catch_up(self, relations: Iterable[str], later: Sequence[Parsed]) -> None:
        """Have the jobs that feed these relations take in everything that is there."""
        jobs = self._jobs()
        wanted = [job for job in feeding(jobs, relations) if job.active]
        if self._mode in {"follow", "prompt"} or not wanted:
            return
        if self._mode == "asked":
            self._settle(wanted)
            return
        streams, controlled = _used_later(later)
        waiting = [
            job
            for job in wanted
            # What another script has started is not ours to stop.
            if job.name not in self._started or fed_by(job, jobs, streams) or job.name.casefold() in controlled
        ]
        self._drain([job for job in wanted if job not in waiting])
        self._settle(waiting)

    def _settle(self, jobs: Sequence[Job]) -> None:
        # What one job writes is input to the next only once it is written: once a level.
        for _ in range(depth([job for job in jobs if job.active])):
            with self._progress.during(self._reading):
                self._engine.settle(PATIENT)

    def _drain(self, jobs: Sequence[Job]) -> None:
        for job in upstream_first(jobs):
            if job.state == "failed":
                raise JobFailed(job.name, job.error or f"job {job.name} has failed")
            if job.active:
                with self._progress.during(self._reading):
                    self._engine.drain(job.name, PATIENT)

    def _reading(self) -> str:
        return f"reading, {count_rows(sum(job.input_rows for job in self._jobs()))}"

    def _jobs(self) -> Sequence[Job]:
        return self._engine.jobs()

    # following

    def _follow(self) -> bool:
        """Show what comes until everything has ended by itself; Ctrl-C leaves as an exception."""
        looked = 0.0
        while self._active() or self._followers.running:
            event = self._followers.next(_PULSE)
            if event is not None and not self._show(event):
                return False
            if time.monotonic() - looked > _PULSE:
                looked = time.monotonic()
                self._progress.status(self._following())
        return True

    def _active(self) -> bool:
        """Whether a job of the script goes on; one that has failed ends the run."""
        jobs = [job for job in self._jobs() if job.name in self._started]
        for job in jobs:
            if job.state == "failed":
                raise JobFailed(job.name, job.error or f"job {job.name} has failed")
        # At a prompt the jobs go on behind it.
        return self._mode == "follow" and any(job.active for job in jobs)

    def _following(self) -> str:
        jobs = [f"{job.name} batch {job.batch_id}" for job in self._jobs() if job.batch_id is not None]
        return f"following; {', '.join(jobs)}; Ctrl-C ends" if jobs else "following; Ctrl-C ends"

    def _show(self, event: Event) -> bool:
        self._progress.clear()
        if event.rows is None:
            if event.error is None:
                return True
            if not isinstance(event.error, PenstockError):
                raise event.error
            self._complain(event.error, event.report.source)
            return False
        line = event.report.span.line
        several = len(self._followers) > 1
        if line not in self._writers or (several and self._last != line and self._answers.how == "table"):
            self._answers.separate(f"-- line {line}" if several else None)
            self._writers[line] = self._answers.writer()
        self._writers[line].add(event.rows)
        self._last = line
        return True

    # telling

    def _tell_set_aside(self, before: Mapping[str, int]) -> None:
        """Rows that were not counted are not passed over in silence."""
        with suppress(PenstockError):  # what has ended the run is told already
            for table, count in self._set_aside().items():
                new = count - before[table]
                if new > 0:
                    remark(f"{SET_ASIDE[table]}: {count_rows(new)}, kept in penstock.{table}")

    def _set_aside(self) -> Mapping[str, int]:
        return {} if self._quiet or self._mode not in {"once", "follow"} else self._engine.set_aside()

    def _tell(self, report: StatementReport, notices: Iterable[str]) -> None:
        import sys

        import click

        from penstock.interfaces.render import render_notice, wants_color

        color = wants_color(sys.stderr)
        for notice in () if self._quiet else notices:
            click.echo(render_notice(notice, self._name, report.span, color=color), err=True, color=color)

    def _complain(self, error: PenstockError, source: Source) -> None:
        self._progress.clear()
        print_error(error, source, self._name, trace_of=error if self._debug else None)


def _used_later(later: Sequence[Parsed]) -> tuple[set[str], set[str]]:
    """The relations that statements write to or move the time of, and the jobs they name."""
    streams: set[str] = set()
    jobs: set[str] = set()
    for parsed in later:
        statement = parsed.statement
        inserts = statement.inserts if isinstance(statement, s.StatementSet) else (statement,)
        streams |= {insert.target.text.casefold() for insert in inserts if isinstance(insert, s.Insert)}
        if isinstance(statement, s.CreateSink) and statement.into is not None:
            streams.add(statement.into.text.casefold())
        if isinstance(statement, s.AdvanceWatermark):
            streams.add(statement.stream.text.casefold())
        if isinstance(statement, s.ControlJob):
            jobs.add(statement.name.text.casefold())
        if isinstance(statement, s.RetryDeadLetters) and statement.job is not None:
            jobs.add(statement.job.text.casefold())
    return streams, jobs
