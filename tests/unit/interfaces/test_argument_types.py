"""What a program hands over wrongly is told in its own words: the parameter, the row, what was given."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import Database, PenstockError
from penstock.plan.script import analyze_script


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with penstock.connect(tmp_path_factory.mktemp("home")) as opened:
        opened.execute("CREATE STREAM t (a STRING, n INT) WITH (partitions = 2)")
        opened.execute("CREATE STREAM texts (a STRING) WITH (format = 'csv')")
        yield opened


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("execute", (None,), "execute() takes a text for sql, not None"),
        ("sql", (123,), "sql() takes a text for sql, not 123"),
        ("sql", (["password"],), "sql() takes a text for sql, not a list"),
        ("stream", (None,), "stream() takes a text for sql, not None"),
        ("follow", (1.5,), "follow() takes a text for sql, not 1.5"),
        ("select_once", ("SELECT 1", "soon"), "select_once() takes a number for timeout, not a str"),
        ("tail_query", ({},), "tail_query() takes a text for sql, not a dict"),
        ("append", (None, []), "append() takes a text for stream, not None"),
        ("append", ("t", [], "0"), "append() takes a whole number or None for partition, not a str"),
        ("append", ("t", [], 0.5), "append() takes a whole number or None for partition, not 0.5"),
        ("append", ("t", [], None, 5), "append() takes a text or None for key, not 5"),
        ("subscribe", (None,), "subscribe() takes a text for name, not None"),
        ("subscribe", ("v", None, "1 s"), "subscribe() takes a number or None for timeout, not a str"),
        ("settle", (None,), "settle() takes a number for timeout, not None"),
        ("drain", (7,), "drain() takes a text for name, not 7"),
        ("advance_watermark", (None, 5), "advance_watermark() takes a text for stream, not None"),
        ("checkpoints", (None,), "checkpoints() takes a text for job, not None"),
        ("register_table", (None, []), "register_table() takes a text for name, not None"),
        (
            "register_function",
            (len, len),
            "register_function() takes a text for name, not a builtin_function_or_method",
        ),
        ("register_dimension", (5, []), "register_dimension() takes a text for name, not 5"),
        ("update_dimension", (None, []), "update_dimension() takes a text for name, not None"),
    ],
)
def test_a_wrong_type_is_named(db: Database, method: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError) as error:
        getattr(db, method)(*arguments)
    assert str(error.value) == message


def test_by_keyword_and_what_python_says_itself(db: Database) -> None:
    with pytest.raises(TypeError, match=r"append\(\) takes a text for stream, not 5"):
        db.append(data=[], stream=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'sql'"):
        db.execute()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"connect\(\) takes a path for path, not None"):
        penstock.connect(None)  # type: ignore[arg-type]


def test_what_fits_goes_through_as_before(db: Database) -> None:
    assert db.sql(b"SELECT 1 AS one").rows() == [(1,)]  # type: ignore[arg-type]
    assert db.append("t", [{"a": "x"}], partition=np.int64(1))[0].partition == 1  # type: ignore[arg-type]
    db.settle(timeout=np.float64(5))
    db.settle(timeout=5)
    assert list(inspect.signature(db.append).parameters) == ["stream", "data", "partition", "key"]
    assert (db.append.__doc__ or "").startswith("Append rows")


@pytest.mark.parametrize(
    ("data", "row", "given"),
    [
        (["a", None], 2, "None"),
        ([None, "a"], 1, "None"),
        ([b"a", "b", 5, None], 3, "of type int"),
        (("a", {"a": "b"}), 2, "of type dict"),
    ],
)
def test_the_row_that_is_no_text_is_named(db: Database, data: Any, row: int, given: str) -> None:
    with pytest.raises(PenstockError) as error:
        db.append("texts", data)
    assert error.value.condition == "INVALID_ROWS"
    assert error.value.message == f'row {row} for "texts" is {given}, and others are texts or bytes'
    assert "text or bytes in the format 'csv'" in (error.value.hint or "")


def test_rows_of_dicts_name_the_row_that_is_none(db: Database) -> None:
    for stream in ("t", "texts"):
        with pytest.raises(PenstockError, match="row 2 is None, not a dict"):
            db.append(stream, [{"a": "x"}, None])
    with pytest.raises(PenstockError, match="row 1 is 'a', not a dict"):
        db.append("t", ["a", None])
    assert db.append("texts", ["a", b"b"])[0].count == 2


def test_a_path_of_any_kind_opens(tmp_path: Path) -> None:
    with penstock.connect(str(tmp_path / "home")) as opened:
        assert opened.path == tmp_path / "home"


def test_a_partition_and_a_key_at_once_are_refused(db: Database) -> None:
    """Either would be silently ignored for the other."""
    with pytest.raises(PenstockError, match="append takes a partition or a key, and both are given") as error:
        db.append("t", [{"a": "x"}], partition=0, key="a")
    assert error.value.condition == "INVALID_ARGUMENT"
    assert "leave one out" in (error.value.hint or "")
    assert db.append("t", [{"a": "x"}], key="a")[0].count == 1


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        (" \t", "is empty"),
        ("a\nb", "holds a character that cannot be shown"),
        ("a\0b", "holds a character that cannot be shown"),
        ("..", "is made of dots only"),
        ("ä" * 40, "is too long: at most 200 plain letters"),
        ("penstock.jobs", "is that of a system table"),
    ],
)
def test_names_that_nothing_can_have(db: Database, name: str, problem: str) -> None:
    def one(value: int) -> int:
        return value

    for register, given in (
        (db.register_table, [{"a": 1}]),
        (db.register_dimension, [{"a": 1}]),
        (db.register_function, one),
    ):
        with pytest.raises(PenstockError) as raised:
            register(name, given)  # type: ignore[arg-type]
        assert isinstance(raised.value, ValueError)
        assert raised.value.condition == "INVALID_ARGUMENT"
        assert raised.value.message == f"{register.__name__}(): name {problem}"
    written = name.replace('"', '""')
    with pytest.raises(PenstockError):
        db.execute(f'CREATE STREAM "{written}" (a INT)')
    with pytest.raises(PenstockError):
        db.execute(f'ALTER STREAM t RENAME TO "{written}"')
    assert db.sql("SHOW TABLES").rows() == []


def test_names_that_want_quotes_are_names(db: Database) -> None:
    for name in ("a b", 'a"b', "a.b", "a/b", "..a", "select", "ä"):
        db.register_table(name, [{"n": 1}])
        quoted = name.replace('"', '""')
        assert db.sql(f'SELECT n FROM "{quoted}"').rows() == [(1,)]
        db.execute(f'DROP TABLE "{quoted}"')


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "a'b", "../x", "9x", "a\nb"])
def test_connectors_have_plain_names(name: str) -> None:
    with pytest.raises(PenstockError, match=r"register_connector\(\): name .* is not one that a connector can have"):
        penstock.register_connector(name, penstock.Connector)  # type: ignore[type-abstract]
    with pytest.raises(TypeError, match="takes a text for name, not int"):
        penstock.register_connector(5, penstock.Connector)  # type: ignore[arg-type, type-abstract]


def test_the_state_path_of_an_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for empty in ("", "  "):
        with pytest.raises(ValueError, match="state_path is empty"):
            penstock.StreamingSQLExecutor(state_path=empty)
    for other in (5, b"x", ["a"]):
        with pytest.raises(TypeError, match="takes a path for state_path"):
            penstock.StreamingSQLExecutor(state_path=other)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [" ", "..", "a\tb"])
def test_jobs_have_names_that_can_be_shown(name: str) -> None:
    script = f"CREATE STREAM s (a INT); CREATE SINK k (a INT) WITH (connector = 'blackhole'); INSERT INTO k WITH (job_name = '{name}') SELECT a FROM s"
    error = analyze_script(script)[-1].error
    assert error is not None
    assert error.condition == "INVALID_OPTION"
    assert "job_name must be a name that can be shown" in error.message
    assert analyze_script(script.replace(f"'{name}'", "'etl:orders@home'"))[-1].error is None
