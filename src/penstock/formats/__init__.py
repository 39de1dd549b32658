"""Record formats: bytes to typed columns on Spark, and rows to bytes."""

from __future__ import annotations

from penstock.formats.decode import decode, learns_from_sample
from penstock.formats.encode import encode_envelopes, encode_rows
from penstock.formats.encode_frame import encode_frame
from penstock.formats.outside import Outside
from penstock.formats.quick_records import quick_json_columns

__all__ = [
    "Outside",
    "decode",
    "encode_envelopes",
    "encode_frame",
    "encode_rows",
    "learns_from_sample",
    "quick_json_columns",
]
