"""Arroyo: what its statements mean by default. Its spellings are part of our grammar."""

from __future__ import annotations

from typing import Final

from penstock.sql.dialects.defaults import Defaults
from penstock.sql.statements import Emit

NAME = "Arroyo"

DEFAULTS: Final = Defaults("arroyo", windows=Emit.FINAL, others=Emit.CHANGES, start="latest")
