"""What becomes of a batch when its bad rows are looked at again."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import RuntimeFailure
from penstock.runtime.backoff import transient
from penstock.runtime.rereads import OffsetRange, Rereads


class _Session:
    def newSession(self) -> _Session:  # noqa: N802  Spark's name
        return self


class _Scan:
    """A scan that finds so many bad rows when it reads a range again."""

    def __init__(self, found: int, *, schemas_come: bool) -> None:
        self.found = found
        self.schemas_come = schemas_come
        self.scan = self
        self.relation = "orders"

    def judges(self, other: object) -> bool:
        return False

    def bad_again(self, *_: object) -> _Scan:
        return self

    def toArrow(self) -> Any:  # noqa: N802  Spark's name
        import pyarrow as pa

        places = list(range(self.found))
        texts = pa.array(["x"] * self.found, pa.string())
        return pa.table({"partition": places, "offset": places, "raw": texts, "reason": texts, "error": texts})


def dead(found: int, counted: int | None, *, schemas_come: bool) -> Any:
    scan: Any = _Scan(found, schemas_come=schemas_come)
    session: Any = _Session()
    plan: Any = None  # it is not looked at
    rereads = Rereads(session, plan, [scan])
    return rereads.dead([OffsetRange(None, "1")], [counted], 0)


def test_rows_that_are_good_by_now_make_the_job_start_again() -> None:
    with pytest.raises(RuntimeFailure, match='records of stream "orders"') as raised:
        dead(1, 2, schemas_come=True)
    assert raised.value.condition == "SCHEMA_CHANGED"
    assert transient(raised.value)
    assert dead(2, 2, schemas_come=True).num_rows == 2
    assert dead(0, 0, schemas_come=True) is None


def test_bad_rows_that_are_not_found_again_make_the_job_start_again() -> None:
    with pytest.raises(RuntimeFailure, match='1 rows of stream "orders"') as raised:
        dead(1, 2, schemas_come=False)
    assert raised.value.condition == "ROWS_CHANGED"
    assert transient(raised.value)
    with pytest.raises(RuntimeFailure, match="ROWS_CHANGED"):
        dead(0, 1, schemas_come=False)
    assert dead(2, 2, schemas_come=False).column("stream").to_pylist() == ["orders"] * 2


def test_what_nobody_has_counted_is_what_is_found() -> None:
    for schemas_come in (False, True):
        assert dead(0, None, schemas_come=schemas_come).num_rows == 0
        assert dead(3, None, schemas_come=schemas_come).num_rows == 3
