"""Streaming SQL for Apache Spark."""

from __future__ import annotations

from penstock.errors import PenstockError

__all__ = ["PenstockError", "__version__"]

__version__ = "0.1.0.dev0"
