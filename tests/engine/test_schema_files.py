"""Schema files that change while jobs read by them: no record is in no result and no dead letter either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.errors import PenstockError
from penstock.formats.protobuf_messages import message_type
from penstock.spark.checked_scan import CheckedScan

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DEAD = "SELECT offset FROM penstock.dead_letters WHERE job = '{}' ORDER BY offset"


def described(price: str) -> bytes:
    """The descriptor file of shop.Trade, whose price is of this type."""
    from google.protobuf import descriptor_pb2

    kinds: Any = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="shop", syntax="proto3")
    trade = file.message_type.add(name="Trade")
    trade.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=1)
    trade.field.add(name="price", number=2, type=kinds.Type.Value(f"TYPE_{price}"), label=1)
    found: bytes = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    return found


def test_a_descriptor_that_is_mended_and_broken_under_a_running_job(db: penstock.Database, tmp_path: Path) -> None:
    """I11: a run judges by the files it began with; RETRY DEAD LETTERS and RESTART JOB go on with those of now."""
    file = tmp_path / "trade.desc"
    file.write_bytes(described("STRING"))
    db.execute(f"""
        CREATE STREAM trades (id BIGINT, price DOUBLE) WITH (
          connector = 'topic', format = 'protobuf', 'protobuf.descriptor' = '{file}', message = 'shop.Trade'
        );
        CREATE MATERIALIZED VIEW seen AS SELECT id, price FROM trades;
        CREATE MATERIALIZED VIEW counted AS SELECT price, COUNT(*) AS n, SUM(id) AS s FROM trades GROUP BY price;
    """)
    trade = message_type(described("DOUBLE"), "Trade")

    def send(*ids: int) -> None:
        db.append("trades", [trade(id=each, price=each / 2).SerializeToString() for each in ids])
        db.settle()

    def seen() -> list[int]:
        ids = [row[0] for row in db.sql("SELECT id FROM seen ORDER BY id").rows()]
        assert db.sql("SELECT SUM(n), SUM(s) FROM counted").rows() == [(len(ids) or None, sum(ids) or None)]
        return ids

    def dead() -> list[int]:
        found = [row[0] for row in db.sql(DEAD.format("seen")).rows()]
        assert [row[0] for row in db.sql(DEAD.format("counted")).rows()] == found
        return found

    send(0, 1)
    assert (seen(), dead()) == ([], [0, 1])
    file.write_bytes(described("DOUBLE"))
    send(2)  # the file is mended, and nobody has told the jobs
    assert (seen(), dead()) == ([], [0, 1, 2])
    db.execute("RETRY DEAD LETTERS")
    assert (seen(), dead()) == ([0, 1, 2], [])
    send(3)
    assert (seen(), dead()) == ([0, 1, 2, 3], [])

    db.append("trades", [b"\xff\xff\xff"])
    file.write_bytes(b"no descriptor")
    send(5)
    assert (seen(), dead()) == ([0, 1, 2, 3, 5], [4])
    for job in ("seen", "counted"):
        with pytest.raises(PenstockError) as raised:
            db.execute(f"RETRY DEAD LETTERS FOR {job}")
        assert raised.value.condition == "INVALID_OPTION"
    send(6)  # it could not read by that file, and goes on
    assert (seen(), dead()) == ([0, 1, 2, 3, 5, 6], [4])

    file.write_bytes(described("STRING"))
    send(7)
    assert (seen(), dead()) == ([0, 1, 2, 3, 5, 6, 7], [4])
    db.execute("RESTART JOB seen; RESTART JOB counted")
    send(8)
    assert (seen(), dead()) == ([0, 1, 2, 3, 5, 6, 7], [4, 8])


def test_bad_rows_that_are_not_found_again(db: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """I11: whatever made them look good, the batch is run anew by a new run, and counts once."""
    db.execute("""
        CREATE STREAM lines (id INT) WITH (connector = 'topic', format = 'json');
        CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(id) AS s FROM lines;
    """)
    whole, found = CheckedScan.bad_again, []

    def fewer(*given: Any) -> Any:
        found.append(given)
        rows = whole(*given)
        return rows.limit(1) if len(found) == 1 else rows

    monkeypatch.setattr(CheckedScan, "bad_again", fewer)
    db.append("lines", ['{"id": 1}', "{", '{"id": 2}', "}"])
    db.settle()
    assert db.sql("SELECT n, s FROM total").rows() == [(2, 3)]
    assert db.sql(DEAD.format("total")).rows() == [(1,), (3,)]
    assert db.sql("SELECT restarts FROM penstock.jobs WHERE name = 'total'").rows() == [(1,)]
    reasons = [row[0] or "" for row in db.sql("SELECT reason FROM penstock.job_history WHERE job = 'total'").rows()]
    assert any("1 rows of stream" in reason for reason in reasons)
