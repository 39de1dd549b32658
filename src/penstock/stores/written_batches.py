"""Which batches of a job a sink has, as the sink itself remembers them: the number of each, and a mark of its input.

A batch that broke off is run again with the same input, and must not be written twice. A job whose state was put back
to an older copy counts up to the same numbers again with other input: its batches are not there, whatever their numbers
say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen

# So many are remembered: a job goes back no further, and a broker takes no more than 4,096 bytes of such notes.
_MOST: Final = 100
_MARK: Final = 12


@frozen
class WrittenBatches:
    """The last batches that were written, by number; a mark is empty where the input of a batch is not known."""

    marks: Mapping[int, str]

    def has(self, batch_id: int, input_hash: str, where: str) -> bool:
        """Whether a batch is there; SINK_REFUSED where another one of its number, or a later one, is."""
        last = max(self.marks, default=-1)
        if batch_id > last:
            return False
        known = self.marks.get(batch_id)
        if known is not None and (not known or not input_hash or known == input_hash[:_MARK]):
            return True
        raise RuntimeFailure(
            "SINK_REFUSED",
            f"{where} has batches of this job up to {last}, and batch {batch_id} now has other input than there",
            hint="the state of the job is older than what it has written, such as a copy that was put back: put back a "
            "newer one, or drop the job and create it again, which begins anew",
        )

    def with_batch(self, batch_id: int, input_hash: str) -> WrittenBatches:
        """With one more, and without what is too old."""
        marks = {**self.marks, batch_id: input_hash[:_MARK]}
        return WrittenBatches({number: marks[number] for number in sorted(marks)[-_MOST:]})

    def text(self) -> str:
        """The batches as a sink keeps them.

        >>> kept = WrittenBatches({7: "0a1b", 9: ""})
        >>> kept.text()
        '7:0a1b 9:'
        >>> read_written(kept.text()) == kept
        True
        """
        return " ".join(f"{number}:{mark}" for number, mark in self.marks.items())


def read_written(text: str) -> WrittenBatches:
    """What `WrittenBatches.text` wrote."""
    parts = (part.partition(":") for part in text.split())
    return WrittenBatches({int(number): mark for number, _, mark in parts})
