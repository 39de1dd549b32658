"""Arrow under the name that the streaming guides use: `from penstock import cyarrow as ca` is pyarrow.

from penstock import cyarrow as ca
securities = ca.Table.from_pydict({"instrumentId": ["AAPL"], "NAME": ["Apple Inc"]})
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Everything that pyarrow has, loaded with the first use."""
    import pyarrow as pa

    return getattr(pa, name)
