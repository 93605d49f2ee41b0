"""Convert the lines of fairseq's ``.bin`` to unmasked blocks, and blocks to lines.

A block is the start token ``<s>`` followed by a line. A blank line, which is a single end token, ends a
document and makes no block. fairseq makes the same blocks in its break mode ``eos``. ``bertdata create``
supports all break modes.

This module imports NumPy.
"""

from collections.abc import Iterator, Mapping
from typing import IO

import numpy as np

from bertdata.errors import SettingsError, ShardError
from bertdata.examples.columns import Array, compute_lengths, convert_to_item_types
from bertdata.examples.groups import MASKS, WORD_STARTS
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.records import IDS, ExampleBatch, ShardLayout
from bertdata.shards.fairseq import OBJECTIVE
from bertdata.shards.fairseq.lines import StoredLines, open_lines
from bertdata.shards.protocol import ShardReader
from bertdata.shards.rows import RecordCheck, check_batch, check_layout
from bertdata.tokens.fairseq_dictionary import END, START

_PIECE = 4096
_MASKED_SHARE = 0.15


def check_blocks(objective: Objective, name: str) -> None:
    """Raise SettingsError if the examples of an objective have more than token ids and masks. ``name`` is for
    the error.
    """
    if not set(objective.batch_type.groups()) <= {IDS, MASKS, WORD_STARTS}:
        raise SettingsError(
            f"{name}: fairseq holds blocks of ids, those of create --objective mlm --no-masks, not examples "
            f"of the objective {objective.name}"
        )


class FairseqReader(ShardReader):
    """Reader of fairseq's ``.bin``, with any integer type. Its ``.idx`` must be in the same directory."""

    layout: ShardLayout

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        objective: Objective | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        """Open the ``.bin`` and its ``.idx``, and find the sizes of the examples.

        objective: must be the objective mlm. None means mlm too.
        sizes: the largest sizes of the examples by name, from a manifest. None measures them in the file.
        """
        objective = objective or find_objective(OBJECTIVE)
        if objective.name != OBJECTIVE:
            raise SettingsError(f"{name}: holds blocks of ids, expected the objective {OBJECTIVE}")
        self._name, self._kind = name, objective.batch_type
        self._lines = open_lines(file, name)
        found = compute_lengths(self._lines.ends)
        if not len(found):
            raise ShardError(f"{name}: no lines, expected an end token at least")
        if not found.all():
            line = int(np.argmin(found))
            raise ShardError(f"{name}: line {line} has no ids, expected an end token at least")
        self._length = len(found)
        if (found == 1).any():  # A line of one id may be blank, or a block with a single id.
            self._length -= sum(
                int(_find_blank_lines(piece).sum()) for piece in self._lines.read_pieces(_PIECE)
            )
        self.is_measured = sizes is None
        longest = int(found.max()) + 1
        measured = {IDS.size: longest, MASKS.size: max(1, round(_MASKED_SHARE * longest))}
        self.layout = ShardLayout.of_sizes(sizes or measured, objective=OBJECTIVE)
        check_layout(self.layout, name, sizes or measured)

    def __len__(self) -> int:
        return self._length

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        first = 0
        for piece in self._lines.read_pieces(min(size, _PIECE)):
            batch = self._make_batch(piece)
            check_batch(batch, self.layout, RecordCheck(name=self._name, first=first))
            first += len(batch)
            if len(batch):
                yield convert_to_item_types(batch)

    def _make_batch(self, lines: StoredLines) -> ExampleBatch:
        kept = ~_find_blank_lines(lines)
        sizes = compute_lengths(lines.ends)
        ids = lines.ids if kept.all() else lines.ids[np.repeat(kept, sizes)]
        ends = np.cumsum(sizes[kept])
        whole = np.insert(ids, ends - sizes[kept], START)
        others = {item.name: np.zeros(0, np.uint32) for item in self._kind.columns()}
        masks = {name: np.zeros(len(ends), np.uint32) for name in self._kind.ragged()}
        columns = others | masks | {"ids": whole, "ends": ends + np.arange(1, len(ends) + 1)}
        return self._kind(**columns)


def _find_blank_lines(lines: StoredLines) -> Array:
    """Return for each line True if it is blank, that is, if it consists of a single end token."""
    found: Array = compute_lengths(lines.ends) == 1
    found[found] = lines.ids[lines.ends[found] - 1] == END
    return found


def make_lines(batch: ExampleBatch, start: int, record: RecordCheck) -> tuple[Array, Array]:
    """Convert blocks to lines by removing the start token of each block.

    Returns the ids of all lines, and for each line the index after its last id. Raises ShardError for a block
    without a start token, or with nothing after it.

    start: id of the start token.
    """
    ids, ends = np.asarray(batch.ids), np.asarray(batch.ends).astype(np.int64)
    sizes = compute_lengths(ends)
    first = ends - sizes
    record.refuse(
        (sizes < 2) | (ids[first] != start),
        lambda _: "is no block of a start token and a text, expected one, as create --objective mlm makes it",
    )
    return np.delete(ids, first), ends - np.arange(1, len(ends) + 1)
