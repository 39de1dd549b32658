"""A refused CREATE leaves nothing behind, and one broken relation does not keep the others from being used."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock import PenstockError

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
        db.execute("CREATE STREAM wider (x INT) WITH (topic = 'shared', partitions = 6)")
        assert db.notices() == []
        assert db.append("wide", [{"x": 1}], partition=5)[0].partition == 5
