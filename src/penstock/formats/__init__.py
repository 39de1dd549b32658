"""Record formats: bytes to typed columns on Spark, and rows to bytes."""

from __future__ import annotations

from penstock.formats.decode import decode
from penstock.formats.encode import encode_rows

__all__ = ["decode", "encode_rows"]
