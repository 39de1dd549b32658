"""Values of generated columns, a whole Arrow array at a time. Loaded by Spark's own processes and by tests.

Every value is a hash of the column's salt and the row's key, so that it does not matter in which batch, task or process
it is made. The hash is the finaliser of SplitMix64, which takes nine array operations.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import pyarrow as pa  # noqa: TID253  loaded by Spark's processes, never at start-up
import pyarrow.compute as pc  # noqa: TID253

from penstock.connectors.field_plan import FieldPlan
from penstock.connectors.generator_plan import GeneratorPlan, Timing
from penstock.frozen import frozen

_U64: Final = pa.uint64()
_I64: Final = pa.int64()
_WORD: Final = 2**64
_GOLDEN: Final = 0x9E3779B97F4A7C15
_NULLS: Final = 0x6E756C6C6E756C6C  # another stream of random numbers than that of the values
_LENGTHS: Final = 0x6C656E6774687373
_PARTITION_BITS: Final = 48  # of an offset, in the key of a row
_LETTERS: Final = pa.array([b"abcdefghijklmnopqrstuvwxyz012345"[byte % 32] for byte in range(256)], pa.uint8())


@frozen
class Rows:
    """Rows to make values for: `key` tells them apart, `number` counts them in the whole source."""

    key: pa.Array
    number: pa.Array
    offset: pa.Array
    partition: int
    moment_us: pa.Array
    started_us: int


def rows_of(plan: GeneratorPlan, partition: int, first: int, end: int, started_us: int) -> Rows:
    """The rows of a partition with first <= offset < end."""
    offset = _counting(first, end - first)
    key = pc.add(offset.cast(_U64), _word(partition << _PARTITION_BITS))
    number = pc.add(pc.multiply(offset, plan.partitions), partition)
    return Rows(key, number, offset, partition, _moments(plan.timing, offset, partition, started_us), started_us)


def values_of(field: FieldPlan, kind: pa.DataType, rows: Rows) -> pa.Array:
    """The values of a column, NULLs included."""
    values = _made(field, kind, rows)
    if field.null_rate <= 0:
        return values
    missing = pc.less(_hash(rows.key, field.salt ^ _NULLS), _word(min(int(field.null_rate * _WORD), _WORD - 1)))
    return pc.if_else(missing, pa.scalar(None, kind), values)


def _made(field: FieldPlan, kind: pa.DataType, rows: Rows) -> pa.Array:
    match field.form:
        case "integer" | "real" | "text" if field.sequence:
            return _sequence(field, kind, rows)
        case "integer" if pa.types.is_decimal(kind):
            return _decimal(field, kind, rows)
        case "integer":
            return _between(field, rows).cast(kind)
        case "real":
            assert field.low is not None
            assert field.high is not None
            share = pc.multiply(pc.shift_right(_hash(rows.key, field.salt), _word(11)).cast(pa.float64()), 2.0**-53)
            return pc.add(pc.multiply(share, field.high - field.low), field.low).cast(kind)
        case "boolean":
            return pc.less(_hash(rows.key, field.salt), _word(2**63))
        case "text":
            return _text(field, rows).cast(kind)
        case "time" | "date":
            return _time(field, kind, rows)
        case "array":
            return _array(field, kind, rows)
        case "struct":
            parts = [values_of(part, kind.field(at).type, rows) for at, part in enumerate(field.inside)]
            return pa.StructArray.from_arrays(parts, fields=[kind.field(at) for at in range(kind.num_fields)])
        case "moment":
            return rows.moment_us.cast(kind)
        case "offset":
            return rows.offset.cast(kind)
        case _:
            return pa.repeat(pa.scalar(rows.partition, _I64), len(rows.offset)).cast(kind)


def _sequence(field: FieldPlan, kind: pa.DataType, rows: Rows) -> pa.Array:
    """Counts up from `low`, and begins again after `high` where the source goes on."""
    low, high = _bounds(field)
    counted = pc.add(_remainder(rows.number.cast(_U64), high - low + 1), _word(low % _WORD)).view(_I64)
    if pa.types.is_decimal(kind):
        return counted.cast(pa.decimal128(19, 0)).cast(kind)
    return counted.cast(kind, safe=False)


def _between(field: FieldPlan, rows: Rows) -> pa.Array:
    """Random whole numbers from low to high."""
    low, high = _bounds(field)
    return pc.add(_remainder(_hash(rows.key, field.salt), high - low + 1), _word(low % _WORD)).view(_I64)


def _decimal(field: FieldPlan, kind: pa.DataType, rows: Rows) -> pa.Array:
    """Random unscaled numbers from low to high; where these are more than a word counts, every so manieth of them."""
    low, high = _bounds(field)
    step = 1
    while (high - low) // step >= 10**19:
        step *= 10
    found = _remainder(_hash(rows.key, field.salt), (high - low) // step + 1).cast(pa.decimal128(20, 0))
    if step > 1:
        found = pc.multiply(found, _unscaled(step, len(str(step))))
    found = pc.add(found.cast(pa.decimal128(36, 0)), _unscaled(low, 36)).cast(pa.decimal128(38, 0))
    # The same bytes, with the point moved.
    return pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(found), found.buffers()).cast(kind)


def _bounds(field: FieldPlan) -> tuple[int, int]:
    assert isinstance(field.low, int)
    assert isinstance(field.high, int)
    return field.low, field.high


def _text(field: FieldPlan, rows: Rows) -> pa.Array:
    """Random letters and digits; with `varies` of 1 to `length` characters."""
    count, words = len(rows.key), -(-field.length // 8)
    keys = _several_keys(rows.key, field.salt, words)
    random = pa.Array.from_buffers(pa.uint8(), count * words * 8, [None, _hash(keys, 0).buffers()[1]])
    letters = pc.take(_LETTERS, random)
    fixed = pa.Array.from_buffers(pa.binary(words * 8), count, [None, letters.buffers()[1]])
    whole = pc.binary_slice(fixed, 0, field.length)
    if not field.varies:
        return whole.cast(pa.binary())
    lengths = pc.add(_remainder(_hash(rows.key, field.salt ^ _LENGTHS), field.length), _word(1)).cast(pa.int32())
    characters = pa.Array.from_buffers(pa.uint8(), count * field.length, [None, whole.buffers()[1]])
    limit, place = _repeated(lengths, field.length)
    kept = characters.filter(pc.less(place.cast(pa.int32()), limit))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    return pa.Array.from_buffers(pa.binary(), count, [None, offsets.buffers()[1], kept.buffers()[1]])


def _time(field: FieldPlan, kind: pa.DataType, rows: Rows) -> pa.Array:
    if field.low is not None:
        days_or_us = _between(field, rows)
        return days_or_us.cast(pa.int32()).cast(kind) if field.form == "date" else days_or_us.cast(kind)
    base = rows.moment_us
    if field.fixed:
        base = pa.repeat(pa.scalar(rows.started_us if field.base_us is None else field.base_us, _I64), len(base))
    if field.past_us:
        back = _remainder(_hash(rows.key, field.salt), field.past_us + 1)
        base = pc.subtract(base, back.view(_I64))
    moments = base.cast(pa.timestamp("us", tz="UTC"))
    # A date is that of the time, which Arrow rounds down for naive times only.
    return base.cast(pa.timestamp("us")).cast(kind, safe=False) if field.form == "date" else moments.cast(kind)


def _array(field: FieldPlan, kind: pa.DataType, rows: Rows) -> pa.Array:
    keys = _several_keys(rows.key, field.salt, field.length)
    number, offset, moment = (
        _repeated(values, field.length)[0] for values in (rows.number, rows.offset, rows.moment_us)
    )
    inside = Rows(keys, number, offset, rows.partition, moment, rows.started_us)
    values = values_of(field.inside[0], kind.value_type, inside)
    offsets = pc.multiply(_counting(0, len(rows.key) + 1), field.length).cast(pa.int32())
    return pa.ListArray.from_arrays(offsets, values, type=kind)


def _moments(timing: Timing, offset: pa.Array, partition: int, started_us: int) -> pa.Array:
    step = pc.add(pc.multiply(offset, timing.stride), partition * timing.phase)
    passed = pc.floor(pc.multiply(step.cast(pa.float64()), timing.spacing_us)).cast(_I64)
    base = started_us if timing.base_us is None else timing.base_us
    return pc.add(passed, base + timing.shift_us)


def _hash(key: pa.Array, salt: int) -> pa.Array:
    """A random word for each key."""
    words = pc.add(pc.multiply(key, _word(_GOLDEN)), _word(salt))
    words = pc.multiply(pc.bit_wise_xor(words, pc.shift_right(words, _word(30))), _word(0xBF58476D1CE4E5B9))
    words = pc.multiply(pc.bit_wise_xor(words, pc.shift_right(words, _word(27))), _word(0x94D049BB133111EB))
    return pc.bit_wise_xor(words, pc.shift_right(words, _word(31)))


def _remainder(words: pa.Array, divisor: int) -> pa.Array:
    if divisor >= _WORD:
        return words
    return pc.subtract(words, pc.multiply(pc.divide(words, _word(divisor)), _word(divisor)))


def _several_keys(key: pa.Array, salt: int, times: int) -> pa.Array:
    """Several keys for each row, to make several values of it."""
    repeated, place = _repeated(_hash(key, salt), times)
    return pc.add(repeated, place.cast(_U64))


def _repeated(values: pa.Array, times: int) -> tuple[pa.Array, pa.Array]:
    """Each value several times over, and which time it is, from 0."""
    flat = _counting(0, len(values) * times)
    which = pc.divide(flat, times)
    return pc.take(values, which), pc.subtract(flat, pc.multiply(which, times))


def _counting(first: int, count: int) -> pa.Array:
    """first, first + 1, …: `count` numbers."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, _I64), count), start=first - 1)


def _word(value: int) -> pa.Scalar:
    return pa.scalar(value, _U64)


def _unscaled(value: int, digits: int) -> pa.Scalar:
    return pa.scalar(Decimal(value), pa.decimal128(digits, 0))
