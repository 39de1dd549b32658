"""A refused CREATE leaves nothing behind, and one broken relation does not keep the others from being used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock import PenstockError
from penstock.plan import job_plan
from penstock.plan.job_model import JobPlan
from penstock.plan.logical import LogicalPlan

REFUSED = {
    "another row type in a shared topic": (
        "CREATE STREAM q (x INT) WITH (topic = 'shared')",
        "CREATE STREAM q2 (x STRING) WITH (topic = 'shared')",
        "TOPIC_MISMATCH",
    ),
    "replaced by another row type": (
        "CREATE STREAM q (x INT)",
        "CREATE OR REPLACE STREAM q (x STRING)",
        "TOPIC_MISMATCH",
    ),
    "options that contradict each other": (
        "CREATE STREAM q (x INT)",
        "CREATE STREAM q2 (x INT) WITH (connector = 'datagen', fields.x.min = 5, fields.x.max = 1)",
        "INVALID_OPTION",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_left(tmp_path: Path, case: str) -> None:
    first, refused, condition = REFUSED[case]
    with penstock.connect(tmp_path / "home") as db:
        db.execute("SET default_watermark_delay = '7 seconds'")
        db.execute(first)
        db.append("q", [{"x": 1}])
        before = db.sql("SELECT * FROM penstock.columns").rows()
        for _ in range(2):
            with pytest.raises(PenstockError) as error:
                db.execute(refused)
            assert error.value.condition == condition
        assert db.sql("SELECT * FROM penstock.columns").rows() == before
    with penstock.connect(tmp_path / "home") as db:
        assert db.sql("SELECT * FROM penstock.columns").rows() == before
        assert db.append("q", [{"x": 2}])[0].first_offset == 1


@pytest.mark.parametrize("call", ["execute", "select_once", "follow"])
def test_a_bug_is_told_as_one_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def broken(_plan: LogicalPlan, _state: str | None) -> JobPlan:
        raise KeyError("secret text")

    with penstock.connect(tmp_path / "home") as db:
        db.execute("CREATE STREAM q (x INT)")
        monkeypatch.setattr(job_plan, "_plan_job", broken)
        calls: dict[str, Callable[[], object]] = {
            "execute": lambda: db.execute("CREATE MATERIALIZED VIEW v AS SELECT x FROM q"),
            "select_once": lambda: db.select_once("SELECT x FROM q"),
            "follow": lambda: next(db.follow("SELECT x FROM q")),
        }
        with pytest.raises(PenstockError, match="an unexpected KeyError") as error:
            calls[call]()
        assert error.value.condition == "INTERNAL_ERROR"
        assert "secret" not in str(error.value)
        assert isinstance(error.value.__cause__, KeyError)
        assert db.sql("SHOW MATERIALIZED VIEWS").rows() == []


def test_a_damaged_topic_is_told_and_can_be_dropped(tmp_path: Path) -> None:
    with penstock.connect(tmp_path / "home") as db:
        db.execute("CREATE STREAM t (x INT); CREATE STREAM u (x INT)")
        for number in range(5):
            db.append("t", [{"x": number}])
    (segment,) = (tmp_path / "home" / "topics" / "t").rglob("*.segment")
    content = bytearray(segment.read_bytes())
    content[0] ^= 0xFF
    segment.write_bytes(content)
    with penstock.connect(tmp_path / "home") as db:
        assert db.append("u", [{"x": 1}])[0].count == 1
        db.execute("DROP STREAM t; CREATE STREAM t (x STRING)")
        assert db.append("t", [{"x": "new"}])[0].first_offset == 0


def test_a_topic_keeps_its_partitions_and_says_so(tmp_path: Path) -> None:
    with penstock.connect(tmp_path / "home") as db:
        db.execute("CREATE STREAM wide (x INT) WITH (topic = 'shared', partitions = 4)")
        db.execute("CREATE STREAM silent (x INT) WITH (topic = 'shared'); CREATE STREAM own (x INT)")
        assert db.notices() == []
        db.execute("CREATE STREAM narrow (x INT) WITH (topic = 'shared', partitions = 2)")
        assert db.notices() == ["topic shared has 4 partitions and keeps them, though narrow asks for 2"]
        assert db.append("narrow", [{"x": 1}], partition=3)[0].partition == 3
        db.execute("CREATE OR REPLACE STREAM wide (x INT) WITH (topic = 'shared', partitions = 6)")
        assert db.notices() == ["stream wide was replaced"]
        assert db.append("narrow", [{"x": 1}], partition=5)[0].partition == 5


@pytest.mark.parametrize("connector", ["topic", "memory"])
def test_partitions_only_grow(tmp_path: Path, connector: str) -> None:
    with penstock.connect(tmp_path / "home") as db:
        db.execute(f"CREATE STREAM s (x INT) WITH (connector = '{connector}', partitions = 4)")
        for text, column, length in (
            ("ALTER STREAM s SET (retention = '1 day', partitions = 1)", 55, 1),
            ("ALTER STREAM s SET (partitions = 3)", 34, 1),
            ("ALTER STREAM s RESET (partitions)", 14, 1),
        ):
            if "retention" in text and connector == "memory":
                continue
            with pytest.raises(PenstockError) as error:
                db.execute(text)
            assert error.value.condition == "INVALID_OPTION"
            assert "topic s has 4, and a topic keeps its partitions" in error.value.message
            assert "4 or more" in (error.value.hint or "")
            assert error.value.span is not None
            assert (error.value.span.column, error.value.span.length) == (column, length)
        shown = dict(db.sql("SELECT name, value FROM penstock.options WHERE relation = 's'").rows())
        assert shown["partitions"] == "4"
        db.execute("ALTER STREAM s SET (max_rows_per_batch = 7); ALTER STREAM s SET (partitions = 6)")
        assert db.append("s", [{"x": 1}], partition=5)[0].partition == 5


def test_a_relation_with_fewer_partitions_than_its_topic_can_be_altered(tmp_path: Path) -> None:
    with penstock.connect(tmp_path / "home") as db:
        db.execute("CREATE STREAM wide (x INT) WITH (topic = 'shared', partitions = 4)")
        db.execute("CREATE STREAM narrow (x INT) WITH (topic = 'shared', partitions = 2)")
        db.execute("ALTER STREAM narrow SET (max_rows_per_batch = 7)")


@pytest.mark.parametrize("kind", ["STREAM", "SINK"])
def test_a_topic_that_is_shared_grows_by_alter_only(tmp_path: Path, kind: str) -> None:
    text = f"CREATE {kind} wider (x INT) WITH (connector = 'topic', topic = 'shared', partitions = 6)"
    with penstock.connect(tmp_path / "home") as db:
        db.execute("CREATE STREAM narrow (x INT) WITH (topic = 'shared', partitions = 4); CREATE STREAM own (x INT)")
        with pytest.raises(PenstockError) as error:
            db.execute(text)
        assert error.value.condition == "INVALID_OPTION"
        assert error.value.message == "option partitions asks for 6, and topic shared has 4, which narrow uses, too"
        assert error.value.hint == "leave partitions out, or first ALTER STREAM narrow SET (partitions = 6)"
        assert error.value.span is not None
        assert text[error.value.span.start : error.value.span.end] == "6"
        with pytest.raises(PenstockError, match="has no partition 5"):
            db.append("narrow", [{"x": 1}], partition=5)
        db.execute("ALTER STREAM narrow SET (partitions = 6)")
        db.execute(text)
        assert db.append("narrow", [{"x": 1}], partition=5)[0].partition == 5
    with penstock.connect(tmp_path / "home") as db:
        assert db.append("wider", [{"x": 1}], partition=5)[0].first_offset == 1


@pytest.mark.parametrize(
    ("text", "pointed"),
    [
        ("CREATE STREAM q2 (x STRING) WITH (topic = 'shared')", "'shared'"),
        ("CREATE OR REPLACE STREAM q (x STRING)", "q"),
        (
            "CREATE SINK k (x INT) WITH (connector = 'http', url = 'http://h', bearer_token = 't', username = 'u')",
            "bearer_token",
        ),
        ("CREATE STREAM n WITH (connector = 'nexmark', event_gap = '0 s', runtime = '2 s')", "'2 s'"),
        ("CREATE STREAM n WITH (connector = 'datagen', fields.x.min = 5, fields.x.max = 1) ", None),
    ],
)
def test_the_error_points_at_the_option_or_the_name(tmp_path: Path, text: str, pointed: str | None) -> None:
    script = f"-- first\n  {text}"
    with penstock.connect(tmp_path / "home") as db:
        db.execute("CREATE STREAM q (x INT); CREATE STREAM q1 (x INT) WITH (topic = 'shared')")
        with pytest.raises(PenstockError) as error:
            db.execute(script)
        span = error.value.span
        assert span is not None
        assert span.line == 2
        assert pointed is None or script[span.start : span.end] == pointed
