"""Write examples to one shard, or to one shard for each length bin. The content md5 is computed at the same
time.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence

from bertdata._native import Engine
from bertdata.config.settings import ExampleSettings
from bertdata.errors import MissingExtraError, install_extra
from bertdata.examples.bins import divide_into_bins
from bertdata.examples.groups import count_masks
from bertdata.io.file_check import HashingSink
from bertdata.records import ExampleBatch, MadeExamples, ShardLayout
from bertdata.shards.containers import find_container
from bertdata.shards.protocol import ShardWriter
from bertdata.shards.tfrecord import encode_batch

BATCH = 128
"""The number of examples that are encoded at a time.

It is large enough that calls of the C++ kernel cost almost no time, and small enough that the examples stay
in the CPU's cache.
"""


BIN_BATCH = 4096
"""The number of examples that are divided among length bins at a time."""


class CountingWriter:
    """Object that writes to a shard writer, counts examples, tokens and masks, and computes the content md5.

    on_batch: function that is called with each batch, for example to collect the examples' lengths.
    """

    def __init__(
        self,
        writer: ShardWriter,
        layout: ShardLayout,
        *,
        engine: Engine | None = None,
        on_batch: Callable[[ExampleBatch], None] | None = None,
    ) -> None:
        self.examples = self.tokens = self.masked = 0
        self._writer, self._layout, self._engine, self._on_batch = writer, layout, engine, on_batch
        self._content = hashlib.md5(usedforsecurity=False)

    def write(self, batch: ExampleBatch) -> None:
        self._writer.write(batch)
        self._content.update(encode_batch(batch, self._layout, self._engine))
        if self._on_batch is not None:
            self._on_batch(batch)
        self.examples += len(batch)
        self.tokens += len(batch.ids)
        self.masked += count_masks(batch)

    def close(self) -> str:
        """Finish the shard and return the content md5 of its examples."""
        self._writer.close()
        return self._content.hexdigest()


def write_bins(
    examples: MadeExamples,
    bin_size: int,
    writers: Sequence[CountingWriter],
    on_written: Callable[[int], None],
) -> None:
    """Write each example to the shard of its length bin, in order.

    bin_size: number of lengths in a bin. Bin 0 holds examples of 1 to bin_size tokens.
    writers: the writer of each bin's shard.
    on_written: reports progress. It is called after each batch with the number of the batch's first example.
    """
    for first, batch in _iterate_batches(examples):
        for number, inside in _cut_into_bins(batch, bin_size):
            writers[number].write(inside)
        on_written(first)


def _iterate_batches(examples: MadeExamples) -> Iterator[tuple[int, ExampleBatch]]:
    for first in range(0, len(examples), BIN_BATCH):
        yield first, examples.batch(first, min(first + BIN_BATCH, len(examples)))


def _cut_into_bins(batch: ExampleBatch, bin_size: int) -> Iterator[tuple[int, ExampleBatch]]:
    try:
        yield from divide_into_bins(batch, bin_size)
    except ModuleNotFoundError:
        raise MissingExtraError(f"bins of lengths need the package numpy: {install_extra('numpy')}") from None


def write_examples(
    examples: MadeExamples,
    settings: ExampleSettings,
    sink: HashingSink,
    *,
    engine: Engine | None,
    layout: ShardLayout | None = None,
    start: int = 0,
    step: int = 1,
    name: str | None = None,
    on_written: Callable[[int], None] | None = None,
    on_batch: Callable[[ExampleBatch], None] | None = None,
) -> str:
    """Write the examples with the numbers start, start + step and so on to a shard. Return their content md5.

    layout: shape of the records. None means the layout of the settings.
    name: the shard, for errors.
    on_written: reports progress. It is called after each batch with the number of the batch's first example.
    on_batch: called with each batch, for example to collect the examples' lengths.
    """
    layout = layout or settings.layout
    container = find_container(settings.format)
    writer = container.make_writer(sink, layout, engine, name or f"{container.name} shard")
    content = None if container.is_canonical else hashlib.md5(usedforsecurity=False)
    for first in range(start, len(examples), BATCH * step):
        batch = examples.batch(first, min(first + BATCH * step, len(examples)), step)
        writer.write(batch)
        if content is not None:
            content.update(encode_batch(batch, layout, engine))
        if on_batch is not None:
            on_batch(batch)
        if on_written is not None:
            on_written(first)
    writer.close()
    return sink.md5 if content is None else content.hexdigest()
