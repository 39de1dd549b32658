"""Streaming SQL for Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.options.registry import register_connector

__all__ = ["PenstockError", "__version__", "register_connector"]

__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> object:
    """What is imported only when it is asked for, so that `import penstock` stays light."""
    if name == "register_connector":
        from penstock.options.registry import register_connector

        return register_connector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
