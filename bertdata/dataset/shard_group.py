"""Writing of several shards at the same time, such as the length bins (files for ranges of lengths) of a
part.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bertdata._native import Engine
from bertdata.dataset.lengths import ShardLengths
from bertdata.dataset.manifest import ShardEntry
from bertdata.dataset.writer import Dataset
from bertdata.io.file_check import HashingSink
from bertdata.records import ShardLayout
from bertdata.shards.protocol import ShardWriter
from bertdata.shards.write import CountingWriter


def write_shard_group(
    dataset: Dataset,
    names: Sequence[str],
    layout: ShardLayout,
    make_writer: Callable[[int, HashingSink], ShardWriter],
    write: Callable[[Sequence[CountingWriter]], None],
    *,
    source: str = "",
    engine: Engine | None = None,
) -> tuple[ShardEntry, ...]:
    """Write several shards at the same time.

    Returns their manifest entries. The caller must then record the shards as finished (``Dataset.record``).

    make_writer: function that returns the writer of a shard. Its arguments are the shard's index and its open
        file.
    write: function that writes the examples. It is called once with the writers of all shards.
    source: name of the input that the shards are made from. Their manifest entries contain it.
    """
    lengths = [ShardLengths() for _ in names]
    with ExitStack() as files:
        sinks = [HashingSink(files.enter_context(dataset.open_shard(name)).write) for name in names]
        writers = [
            CountingWriter(make_writer(number, sink), layout, engine=engine, on_batch=found.add)
            for number, (sink, found) in enumerate(zip(sinks, lengths, strict=True))
        ]
        write(writers)
        contents = [writer.close() for writer in writers]
    return tuple(
        ShardEntry(
            name=name,
            input=source,
            bytes=sink.bytes,
            md5=sink.md5,
            content_md5=content,
            examples=writer.examples,
            tokens=writer.tokens,
            masked_tokens=writer.masked,
            lengths_md5=dataset.write_lengths(name, found),
        )
        for name, sink, writer, content, found in zip(names, sinks, writers, contents, lengths, strict=True)
    )
