"""A job that is dropped goes whole, wherever the process is killed: nothing of it meets the next job of its name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.failpoints import VARIABLE, FailpointError, enabled
from penstock.runtime.engine import Engine
from penstock.runtime.forgetting import forget_job
from penstock.stores.views import BatchCommit, ViewSpec
from penstock.types import BIGINT
from tests.project import ROOT

POINTS = ["job.before_files", "job.before_facts"]
DEFINED = {
    "of a view": ("minutes", "minutes", None),
    "of an INSERT": ("insert_k", None, "INSERT INTO k SELECT a FROM s"),
}


def leave_behind(engine: Engine, name: str, view: str | None, statement: str | None) -> Path:
    """What a job leaves in the state directory; the catalog has let go of it already, as DROP does first."""
    if view is not None:
        engine.home.views.create_view(ViewSpec(view, (("n", BIGINT),)))
    engine.home.views.save_job(name, statement=statement, state="stopped", fingerprint={})
    engine.home.views.commit(BatchCommit(name, 0, "hash", tracker="{}"))
    offsets = engine.home.checkpoint(name) / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}\n{}\n", encoding="utf-8")
    return offsets.parent.parent


def nothing_is_left(engine: Engine, name: str) -> bool:
    views = engine.home.views
    return (
        not engine.home.checkpoint(name).parent.exists()
        and name not in views.job_names()
        and views.ledger(name) is None
        and views.specs() == ()
    )


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("case", DEFINED)
def test_what_a_failure_leaves_is_gone_at_the_next_opening(tmp_path: Path, point: str, case: str) -> None:
    name, view, statement = DEFINED[case]
    engine = Engine(tmp_path, {})
    directory = leave_behind(engine, name, view, statement)
    with enabled(point, "error"), pytest.raises(FailpointError):
        forget_job(engine.home, name, view)
    assert directory.exists() is (point == "job.before_files"), "files go before what is known of them"
    assert name in engine.home.views.job_names()
    engine.close()
    engine = Engine(tmp_path, {})
    try:
        assert nothing_is_left(engine, name)
        assert engine.jobs == {}
        assert engine.notices == []
    finally:
        engine.close()


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_no_more_than_a_failure(tmp_path: Path, point: str) -> None:
    program = (
        "import sys; from pathlib import Path; from penstock.runtime.engine import Engine;"
        "from penstock.runtime.forgetting import forget_job; from tests.unit.runtime.test_forgetting import *;"
        "engine = Engine(Path(sys.argv[1]), {}); leave_behind(engine, 'minutes', 'minutes', None);"
        "forget_job(engine.home, 'minutes', 'minutes')"
    )
    environment = {
        **os.environ,
        VARIABLE: f"{point}=crash",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT))),
    }
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "home")], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 137, done.stderr
    engine = Engine(tmp_path / "home", {})
    try:
        assert nothing_is_left(engine, "minutes")
    finally:
        engine.close()


def test_files_and_rows_that_nothing_defines_are_swept_out(tmp_path: Path) -> None:
    """As a version that forgot the facts first could leave them."""
    engine = Engine(tmp_path, {})
    directory = leave_behind(engine, "Größe/2", "left", None)
    engine.home.views.forget_job("Größe/2")
    engine.close()
    with penstock.connect(tmp_path) as db:
        db.execute("CREATE STREAM s (a INT)")
        assert not directory.exists()
        assert list((tmp_path / "jobs").iterdir()) == []
        assert db._engine.home.views.specs() == ()
