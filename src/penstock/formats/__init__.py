"""Record formats: bytes to typed columns on Spark, and rows to bytes."""

from __future__ import annotations

from penstock.formats.decode import decode
from penstock.formats.encode import encode_envelopes, encode_rows
from penstock.formats.encode_frame import encode_frame
from penstock.formats.outside import KeptReadings, Outside

__all__ = [
    "KeptReadings",
    "Outside",
    "decode",
    "encode_envelopes",
    "encode_frame",
    "encode_rows",
]
