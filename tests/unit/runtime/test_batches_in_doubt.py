"""Which batches a sink may have that the ledger of the job does not know of."""

from __future__ import annotations

from pathlib import Path

import penstock
from penstock.runtime.sinks import batches_in_doubt
from penstock.stores.views import BatchCommit


def test_those_that_were_planned_before_the_run_and_are_not_in_the_ledger(tmp_path: Path) -> None:
    with penstock.connect(tmp_path) as db:
        home = db._engine.home
        offsets = home.checkpoint("j") / "offsets"
        offsets.mkdir(parents=True)
        for number in range(3):
            (offsets / str(number)).touch()
        doubtful = batches_in_doubt(home, "j")
        assert not any(doubtful(number) for number in range(5)), "it has written nothing before"
        for number, rows in enumerate((0.0, 7.0)):
            home.views.commit(
                BatchCommit(
                    job="j", batch_id=number, offsets_hash=str(number), tracker="{}", counters={"output_rows": rows}
                )
            )
        doubtful = batches_in_doubt(home, "j")
        (offsets / "3").touch()  # planned by the run itself
        assert [number for number in range(5) if doubtful(number)] == [2]
