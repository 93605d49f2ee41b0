"""Write unmasked blocks as lines of fairseq's ``.bin``.

A line is a block without its start token, which fairseq adds again (break mode ``eos``). Ids are converted to
fairseq's numbering, in which the special tokens come first and <mask> comes last. This module imports NumPy.
"""

import numpy as np

from bertdata.examples.columns import compute_lengths, convert_to_arrays
from bertdata.examples.groups import count_masks, get_masks
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout, Vocabulary
from bertdata.shards.fairseq.blocks import check_blocks, make_lines
from bertdata.shards.fairseq.lines import LinesWriter, choose_id_type
from bertdata.shards.protocol import Sink
from bertdata.shards.rows import RecordCheck, check_batch
from bertdata.tokens.fairseq_dictionary import compute_fairseq_ids, make_dictionary


class FairseqWriter:
    """Writer of blocks to a ``.bin``.

    At the end ``index`` and ``dump_dictionary`` return the files next to it.
    """

    def __init__(self, sink: Sink, layout: ShardLayout, vocabulary: Vocabulary) -> None:
        check_blocks(find_objective(layout.objective), "fairseq shard")
        self._layout, self._vocabulary, self._received = layout, vocabulary, 0
        self._table = np.array(compute_fairseq_ids(vocabulary), np.uint32)
        self._counts = np.zeros(len(self._table), np.int64)
        make_dictionary(vocabulary, self._counts.tolist())
        self._lines = LinesWriter(sink=sink, kind=choose_id_type(len(self._table)))

    def write(self, batch: ExampleBatch) -> None:
        batch = convert_to_arrays(batch)
        record = RecordCheck(name="fairseq shard", first=self._received)
        check_batch(batch, self._layout, record)
        if count_masks(batch):
            masked = compute_lengths(get_masks(batch).ends) > 0
            record.refuse(masked, lambda _: "has masks, expected a block of create --no-masks")
        wrong = np.asarray(batch.ids) >= len(self._table)
        most = len(self._table)
        record.refuse_items(
            wrong, batch.ends, lambda item: f"id {batch.ids[item]}, expected less than {most}"
        )
        ids, ends = make_lines(batch, self._vocabulary.role("cls"), record)
        found = self._table[ids]
        self._lines.write(found, ends)
        self._counts += np.bincount(found, minlength=most)
        self._received += len(batch)

    def close(self) -> None:
        """Do nothing, because all lines are already written."""

    def index(self) -> bytes:
        """Return the contents of the ``.idx`` file."""
        return self._lines.index()

    def dump_dictionary(self) -> bytes:
        """Return the contents of ``dict.txt``: a line for each token with its number in the written
        blocks.
        """
        return make_dictionary(self._vocabulary, self._counts.tolist()).dump()
