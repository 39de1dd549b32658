"""Streaming SQL for Apache Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from penstock.errors import JobFailed, PenstockError

if TYPE_CHECKING:
    from penstock import cyarrow
    from penstock.connectors.connector import Connector, ConnectorConfig
    from penstock.connectors.registration import register_connector
    from penstock.interfaces.bridge import create_penstock_sql_bridge, create_sabot_sql_bridge
    from penstock.interfaces.changes import Change, Job
    from penstock.interfaces.database import Database, connect
    from penstock.interfaces.dimension_manager import DimensionBroadcastManager, DimensionStatus
    from penstock.interfaces.dimension_table import DimensionTable
    from penstock.interfaces.executor import StreamingSQLExecutor
    from penstock.interfaces.result import Result
    from penstock.interfaces.window_operator import WindowOperator
    from penstock.runtime.checkpoints import CheckpointCoordinator
    from penstock.runtime.watermark_tracker import WatermarkTracker
    from penstock.stores.topics.topic import Appended

__all__ = [
    "Appended",
    "Change",
    "CheckpointCoordinator",
    "Connector",
    "ConnectorConfig",
    "Database",
    "DimensionBroadcastManager",
    "DimensionStatus",
    "DimensionTable",
    "Job",
    "JobFailed",
    "PenstockError",
    "Result",
    "StreamingSQLExecutor",
    "WatermarkTracker",
    "WindowOperator",
    "__version__",
    "connect",
    "create_penstock_sql_bridge",
    "create_sabot_sql_bridge",
    "cyarrow",
    "register_connector",
]

__version__ = "0.1.0.dev0"

# What is imported only when it is asked for, so that `import penstock` stays light.
_LATER = {
    "Appended": "penstock.stores.topics.topic",
    "Change": "penstock.interfaces.changes",
    "CheckpointCoordinator": "penstock.runtime.checkpoints",
    "Connector": "penstock.connectors.connector",
    "ConnectorConfig": "penstock.connectors.connector",
    "Database": "penstock.interfaces.database",
    "DimensionBroadcastManager": "penstock.interfaces.dimension_manager",
    "DimensionStatus": "penstock.interfaces.dimension_manager",
    "DimensionTable": "penstock.interfaces.dimension_table",
    "Job": "penstock.interfaces.changes",
    "Result": "penstock.interfaces.result",
    "StreamingSQLExecutor": "penstock.interfaces.executor",
    "WatermarkTracker": "penstock.runtime.watermark_tracker",
    "WindowOperator": "penstock.interfaces.window_operator",
    "connect": "penstock.interfaces.database",
    "register_connector": "penstock.connectors.registration",
    "create_penstock_sql_bridge": "penstock.interfaces.bridge",
    "create_sabot_sql_bridge": "penstock.interfaces.bridge",
}


def __getattr__(name: str) -> object:
    """The public names, each loaded when it is first used."""
    if name == "cyarrow":
        return import_module("penstock.cyarrow")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
