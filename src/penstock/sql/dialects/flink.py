"""Flink: what its statements mean by default. Its spellings are part of our grammar."""

from __future__ import annotations

from typing import Final

from penstock.sql.dialects.defaults import Defaults
from penstock.sql.statements import Emit

NAME = "Flink"

# Without committed offsets group-offsets fails in Flink; INTERFACES takes latest there.
DEFAULTS: Final = Defaults("flink", windows=Emit.FINAL, others=Emit.CHANGES, start="group-offsets")
