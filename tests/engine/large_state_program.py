"""A job whose state is larger than the memory of its process. Run by a test, in a process of its own.

python large_state_program.py HOME KEYS AGAIN
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import penstock
from tests.engine.answers import job, until

# A kilobyte for each key, hard to press together; the last rows bring old keys for the second time.
LETTERS = 1_024
KEY = ", ".join(f"sha2(CONCAT(n % {{keys}}, '{part}'), 512)" for part in range(LETTERS // 128))
SCRIPT = f"""
CREATE STREAM s (n BIGINT) WITH (connector = 'datagen', number_of_rows = {{rows}}, 'fields.n.kind' = 'sequence',
    'fields.n.start' = 0, 'fields.n.end' = {{last}}, max_rows_per_batch = 50000);
CREATE MATERIALIZED VIEW twice WITH (state = 'spark') AS
SELECT k, COUNT(*) AS n FROM (SELECT CONCAT({KEY}) AS k FROM s) GROUP BY k HAVING COUNT(*) = 2;
"""


def main(home: Path, keys: int, again: int) -> dict[str, float]:
    with penstock.connect(home, driver_memory="512MB", parallelism=2) as db:
        db.execute(SCRIPT.format(rows=keys + again, last=keys + again - 1, keys=keys))
        until(lambda: db.metrics().get("twice", {}).get("input_rows") == keys + again, 3_000)
        until(lambda: job(db, "twice").state == "stopped", 120)
        spark = db._engine.home.spark()
        assert spark._jvm is not None
        checkpoint = db.path / "jobs" / "twice" / "checkpoint"
        kept = [path.stat().st_size for path in (checkpoint / "state").rglob("*") if path.is_file()]
        return {
            **db.metrics()["twice"],
            "twice": float(db.sql("SELECT COUNT(*) AS n FROM twice WHERE n = 2").rows()[0][0]),
            "keys": float(spark.read.format("statestore").load(str(checkpoint)).count()),
            "heap_bytes": float(spark._jvm.java.lang.Runtime.getRuntime().maxMemory()),
            "disk_bytes": float(sum(kept)),
        }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))) + "\n")
