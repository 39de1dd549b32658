"""Record formats: bytes to typed columns on Spark, and rows to bytes."""

from __future__ import annotations

from penstock.formats.decode import decode
from penstock.formats.encode import encode_rows
from penstock.formats.encode_frame import encode_frame

__all__ = ["decode", "encode_frame", "encode_rows"]
