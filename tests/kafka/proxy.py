"""A bad network: everything between clients and a broker goes through here, late, slowly, not at all, or cut off."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Final

from penstock.runtime.kafka_broker import HOST, KafkaBroker, free_port

TROUBLES: Final = ("cut", "late", "slow", "silent", "resets")
_LATE_S: Final = 2.0
_BYTES_A_SECOND: Final = 10_000


class Proxy:
    """Forwards connections to a port, with the trouble that is set; `open` are those that are there now."""

    def __init__(self, target: int, seed: int) -> None:
        self.port = free_port()
        self.open: set[asyncio.StreamWriter] = set()
        self._target = target
        self._chance = random.Random(seed)  # noqa: S311
        self._trouble: str | None = None
        self._loop = asyncio.new_event_loop()
        self._healed = asyncio.Event()
        self._healed.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        server = asyncio.start_server(self._accept, HOST, self.port)
        self._server = asyncio.run_coroutine_threadsafe(server, self._loop).result(30)

    def trouble(self, kind: str | None) -> None:
        """Set one of TROUBLES, or none."""
        asyncio.run_coroutine_threadsafe(self._set(kind), self._loop).result(30)

    def close(self) -> None:
        """Cut everything off, and end."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _set(self, kind: str | None) -> None:
        self._trouble = kind
        (self._healed.clear if kind == "silent" else self._healed.set)()
        if kind == "cut":
            self._abort_all()

    async def _end(self) -> None:
        self._trouble = "cut"
        self._server.close()
        self._healed.set()
        self._abort_all()
        await asyncio.sleep(0.1)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _abort_all(self) -> None:
        for writer in tuple(self.open):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._trouble == "cut":
            writer.transport.abort()
            return
        try:
            upward_reader, upward = await asyncio.open_connection(HOST, self._target)
        except OSError:
            writer.transport.abort()
            return
        self.open.add(writer)
        try:
            await asyncio.gather(self._pump(reader, upward), self._pump(upward_reader, writer), return_exceptions=True)
        finally:
            self.open.discard(writer)
            writer.transport.abort()
            upward.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                if self._trouble == "late":
                    await asyncio.sleep(_LATE_S)
                elif self._trouble == "slow":
                    await asyncio.sleep(min(len(data) / _BYTES_A_SECOND, 5.0))
                elif self._trouble == "resets" and self._chance.random() < 0.05:
                    return
                await self._healed.wait()
                sink.write(data)
                await sink.drain()
        finally:
            sink.transport.abort()


class BehindProxy(KafkaBroker):
    """A broker that tells its clients to come through a proxy."""

    proxy_port = 0

    def _properties(self, port: int) -> str:
        there = f"advertised.listeners=PLAINTEXT://{HOST}:"
        return super()._properties(port).replace(f"{there}{port}", f"{there}{self.proxy_port}")
