"""The rows of a streaming query as `async for` meets them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.owned_database import OwnedDatabase


class ResultStream:
    """What `execute_streaming_sql` returns: an async iterable of Arrow record batches.

    Nothing runs before a loop asks for the first batch. Each loop runs a query of its own and is the only one who holds
    it: when the loop is left, in whatever way, the query is closed, also while this object lives on in a variable.
    """

    def __init__(self, owner: OwnedDatabase, sql: str) -> None:
        self._owner = owner
        self._sql = sql
        self._own: AsyncGenerator[pa.RecordBatch] | None = None

    def __aiter__(self) -> AsyncGenerator[pa.RecordBatch]:
        return self._owner.get().stream(self._sql)

    async def __anext__(self) -> pa.RecordBatch:
        """One batch without a loop: `await anext(stream)`; `aclose` ends the query behind it."""
        if self._own is None:
            self._own = self.__aiter__()
        return await anext(self._own)

    async def aclose(self) -> None:
        """End the query that `anext` has begun."""
        own, self._own = self._own, None
        if own is not None:
            await own.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
