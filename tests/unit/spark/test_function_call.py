"""What Spark's workers do with a function of the user, without Spark."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle

from penstock.catalog.python_types import read_signature
from penstock.spark.function_call import FunctionCall
from penstock.spark.function_code import FunctionCode, load
from penstock.spark.function_error import FunctionError
from penstock.spark.merging_function import MergingFunction

NUMBERS = pa.array([1, None, 3], pa.int64())


def call(function: Any, returns: pa.DataType, takes: Any = "values", **more: Any) -> FunctionCall:
    code = FunctionCode("pickle", "", "f", cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
    sent = pickle.dumps(FunctionCall("f", code, takes, returns, **more))  # as Spark does
    made: FunctionCall = pickle.loads(sent)  # noqa: S301
    return made


def test_values_and_arrays_and_series() -> None:
    """Q1: Arrow in and out, of the declared type."""
    assert call(lambda v: v and v * 2, pa.int64())(NUMBERS).to_pylist() == [2, None, 6]
    assert call(pc.negate, pa.float64(), "arrow")(NUMBERS).equals(pa.array([-1.0, None, -3.0]))
    chunked = call(lambda v: pa.chunked_array([v]), pa.int64(), "arrow")
    assert chunked(NUMBERS).equals(NUMBERS)
    assert call(lambda v: v.to_numpy(zero_copy_only=False), pa.float64(), "arrow")(pa.array([1.5])).to_pylist() == [1.5]
    series = call(lambda a, b: a + b, pa.int64(), "pandas")
    assert series(pa.array([1, 2]), pa.array([3, 4])).to_pylist() == [4, 6]


@pytest.mark.parametrize(
    ("value", "returns"),
    [
        (decimal.Decimal("1.50"), pa.decimal128(10, 2)),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), pa.timestamp("us", tz="UTC")),
        ({"a": 1, "b": None}, pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ([1, None], pa.list_(pa.int64())),
        (b"\x00", pa.binary()),
    ],
)
def test_every_type_comes_back(value: Any, returns: pa.DataType) -> None:
    found = call(lambda _: value, returns)(pa.array([1]))
    assert (found.type, found.to_pylist()) == (returns, [value])


@pytest.mark.parametrize(
    ("function", "takes", "told"),
    [
        (lambda v: 1 / (v - 3), "values", "TypeError"),
        (lambda v: v.slice(1), "arrow", "it returned 2 values for 3 rows"),
        (lambda v: pc.cast(v, pa.string()), "arrow", None),
        (lambda v: pa.array(["x"] * len(v)), "arrow", "ArrowInvalid"),
        (lambda _: object(), "values", "ArrowInvalid"),
        (lambda _: exit(), "values", "SystemExit"),
    ],
)
def test_failures_name_the_function(function: Any, takes: str, told: str | None) -> None:
    """Q6: what goes wrong is one line with the name of the function, whatever was raised."""
    made = call(function, pa.int64(), takes)
    if told is None:
        assert made(NUMBERS).equals(NUMBERS)  # text of numbers can be cast
        return
    with pytest.raises(FunctionError) as raised:
        made(NUMBERS)
    assert str(raised.value).startswith("[FUNCTION_FAILED] function f failed: ")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_null_for_failing_rows_and_no_others() -> None:
    """Q6."""

    def picky(values: pa.Array) -> pa.Array:
        if 3 in values.to_pylist():
            raise ValueError
        return values

    assert call(picky, pa.int64(), "arrow", null_on_error=True)(NUMBERS).to_pylist() == [1, None, None]
    assert call(lambda v: 6 // (v - 1), pa.int64(), null_on_error=True)(NUMBERS).to_pylist() == [None, None, 3]
    mixed = call(lambda v: "x" if v == 1 else v, pa.int64(), null_on_error=True)
    assert mixed(NUMBERS).to_pylist() == [None, None, 3]


def test_aggregates_get_whole_groups() -> None:
    """Q7: also of a slice of a batch, with NULLs and empty groups."""
    rows = pa.struct([("a0", pa.int64()), ("a1", pa.int64())])
    groups = pa.array(
        [[{"a0": 99, "a1": 1}], [{"a0": 1, "a1": 2}, {"a0": None, "a1": 3}], [], [{"a0": 5, "a1": 5}]], pa.list_(rows)
    ).slice(1)
    whole = call(lambda a, b: [a.to_pylist(), b.to_pylist()], pa.list_(pa.list_(pa.int64())), "arrow", aggregate=True)
    assert whole(groups).to_pylist() == [[[1, None], [2, 3]], [[], []], [[5], [5]]]
    lists = call(lambda a, b: sum(b) / len(a), pa.float64(), aggregate=True, null_on_error=True)
    assert lists(groups).to_pylist() == [2.5, None, 5.0]
    assert call(lambda a, _: pc.sum(a), pa.int64(), "arrow", aggregate=True)(groups).to_pylist() == [1, None, 5]
    assert call(lambda a, _: a.max(), pa.float64(), "pandas", aggregate=True)(groups).to_pylist()[2] == 5.0


class Longest:
    """The longest text, in parts."""

    def partial(self, texts: list[str | None]) -> dict[str, Any]:
        return {"seen": pc.count(pa.array(texts, pa.string())), "text": max(filter(None, texts), key=len, default="")}

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        text = max(left["text"], right["text"], key=len)
        return {"seen": left["seen"] + right["seen"], "text": text}

    def finish(self, kept: dict[str, Any]) -> str | None:
        return f"{kept['text']} of {kept['seen']}" if kept["seen"] else None


def test_aggregates_in_parts() -> None:
    """Q7: as a whole, and in parts that travel as text, the result is the same."""
    row = pa.struct([("a0", pa.string())])
    groups = pa.array([[{"a0": "to"}, {"a0": None}, {"a0": "fro"}], [], [{"a0": "x"}]], pa.list_(row))
    assert call(Longest, pa.string(), aggregate=True)(groups).to_pylist() == ["fro of 2", None, "x of 1"]
    partial = call(Longest, pa.string(), aggregate=True, step="partial")
    texts = partial(groups).to_pylist()
    assert texts[0] == '{"seen": 2, "text": "fro"}'
    merging = MergingFunction("longest", partial.code, pa.string())
    assert merging.finish(merging.merge(texts[1], merging.merge(texts[2], texts[0]))) == "fro of 3"
    assert merging.finish(texts[1]) is None
    signature = read_signature(Longest, aggregate=True)
    assert (signature.takes, str(signature.returns)) == ("values", "STRING")
    assert [str(kind) for _, kind in signature.parameters or ()] == ["STRING"]


def test_parts_that_fail() -> None:
    class Wrong(Longest):
        def partial(self, texts: list[str | None]) -> dict[str, Any]:
            return {"seen": object()}

        def finish(self, kept: dict[str, Any]) -> str | None:
            return kept["seen"]  # type: ignore[no-any-return]

    partial = call(Wrong, pa.string(), aggregate=True, step="partial")
    with pytest.raises(FunctionError, match="a partial result is what JSON can hold, and no object"):
        partial(pa.array([[{"a0": "x"}]], pa.list_(pa.struct([("a0", pa.string())]))))
    merging = MergingFunction("f", partial.code, pa.string())
    with pytest.raises(FunctionError, match="function f failed: ArrowTypeError"):
        merging.finish('{"seen": 1}')
    with pytest.raises(FunctionError, match="function f failed: KeyError"):
        merging.merge("{}", "{}")


def test_code_from_sources(tmp_path: Any) -> None:
    """Q2: source may be indented and spell its name in another case; what is no function is refused."""
    text = b"\n    LIMIT = 2\n    def Small(v: int) -> bool:\n        return v < LIMIT\n"
    assert load(FunctionCode("source", "<f>", "small", text))(1) is True
    with pytest.raises(AttributeError):
        load(FunctionCode("source", "<f>", "other", text))
    with pytest.raises(TypeError, match="LIMIT is a int, not a function"):
        load(FunctionCode("source", "<f>", "LIMIT", text))
    (tmp_path / "fresh_module.py").write_text("def one():\n    return 1\n")
    assert load(FunctionCode("module", "fresh_module", "one", paths=(str(tmp_path),)))() == 1
