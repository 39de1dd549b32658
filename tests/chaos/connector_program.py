"""A program with a connector of its own that feeds a view and a web service; it is killed and started again.

python connector_program.py HOME LINES URL
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

import penstock

SCRIPT = """
CREATE STREAM s (id BIGINT, k STRING)
WITH (connector = 'numbered_lines', path = '{path}', max_rows_per_batch = 40);
CREATE MATERIALIZED VIEW counted AS SELECT k, COUNT(*) AS n, SUM(id) AS total FROM s GROUP BY k;
CREATE SINK hooks WITH (connector = 'http', url = '{url}', rows_per_request = 15) AS SELECT id FROM s;
"""


class NumberedLines(penstock.Connector):
    """Lines of a file, one number each; it writes down every commit."""

    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])

    class options(BaseModel):  # noqa: N801
        path: str

    def initialize(self, config: penstock.ConnectorConfig) -> None:
        self.path = Path(config["path"])
        self.file = self.path.open("rb")

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch:
        found: list[int] = []
        while len(found) < max_rows and (line := self.file.readline()).endswith(b"\n"):
            found.append(int(line))
        return pa.record_batch([found, [f"k{number % 3}" for number in found]], schema=self.schema)

    def get_current_offset(self) -> int:
        return self.file.tell()

    def seek_to_offset(self, offset: int) -> None:
        self.file.seek(offset)

    def commit_offset(self, offset: int) -> None:
        with self.path.with_suffix(".commits").open("a") as file:
            file.write(f"{offset}\n")

    def shutdown(self) -> None:
        self.file.close()


def main(home: str, path: str, url: str) -> None:
    penstock.register_connector("numbered_lines", NumberedLines)
    with penstock.connect(home, driver_memory="1GB") as db:
        db.execute(SCRIPT.format(path=path, url=url))
        db.settle(150)
        found: list[Any] = sorted(db.sql("SELECT k, n, total FROM counted").rows())
        offsets = db.sql("SELECT job, partition, offset FROM penstock.connector_offsets").rows()
    sys.stdout.write(json.dumps({"counted": found, "offsets": sorted(offsets)}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
