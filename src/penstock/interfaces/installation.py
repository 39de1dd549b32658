"""The packages we stand on, and what to say when one of them is not installed.

Nothing but the standard library is imported here: any other package may be the one that is missing.
"""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.util import find_spec
from typing import Final

from penstock.errors import PenstockError

# What `import` calls a package, and what pip is to install for it; the same as in pyproject.toml.
REQUIRED: Final = {
    "click": "click>=8.2,<9",
    "confluent_kafka": "confluent-kafka>=2.16.1,<3",
    "duckdb": "duckdb>=2.0,<2.1",
    "numpy": "numpy>=2.2,<3",
    "prompt_toolkit": "prompt-toolkit>=3.0.50,<4",
    "protobuf": "protobuf>=6.33.5,<8",
    "pyarrow": "pyarrow>=22,<27",
    "pydantic": "pydantic>=2.11,<3",
    "pyspark": "pyspark>=4.2,<4.4",
    "rich": "rich>=14",
    "sqlglot": "sqlglot~=30.30.0",
}


def missing_package(error: ImportError) -> PenstockError | None:
    """INSTALLATION_UNUSABLE where a package that we need is not there; None for any other import that fails."""
    name = (error.name or "").partition(".")[0]
    name = "protobuf" if name == "google" else name
    return _missing(name) if name in REQUIRED and isinstance(error, ModuleNotFoundError) else None


def require(*packages: str) -> None:
    """Refuse to begin without these packages; they are looked for, not loaded."""
    for name in packages:
        if find_spec(name) is None:
            raise _missing(name)


def _missing(name: str) -> PenstockError:
    return PenstockError(
        "INSTALLATION_UNUSABLE",
        f"the package {name} is not installed, or not all of it",
        hint=f"{sys.executable} -m pip install '{REQUIRED[name]}'",
    )


def installed_version(package: str) -> str | None:
    """The version of an installed package; None where it is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
