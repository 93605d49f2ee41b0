"""Memory of streams: an open file keeps its chunk, and little else, whatever its format."""

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow
import pytest

from bertdata.dataset.reader import OpenedDataset, Shard, open_dataset
from bertdata.records import ShardLayout
from bertdata.shards.arrow import ArrowWriter
from bertdata.shards.containers import make_writer
from bertdata.shards.packed.layouts import make_pack_writer
from tests.support.packed_data import pack_in_turn
from tests.support.padded_examples import PaddedForm
from trainer.data import loader as loader_module
from trainer.data.decoder import ChunkReader
from trainer.data.examples import CompactExamples, Rows
from trainer.data.generated import generate_data
from trainer.data.loader import Loader, make_dealer, make_order
from trainer.data.packs import PackRows
from trainer.data.reading import Reading, count_chunk_rows

FORMATS = (
    "hdf5",
    "parquet",
    "tfrecord",
    "arrow",
    "habana.hdf5",
    "habana.tfrecord",
    "nvidia.hdf5",
    "flat.parquet",
)
PAGES = 5e6  # of Parquet: a page of 1 MB for each of three columns of lists, and the buffers of the reader
BLOCK = 2e6  # of TFRecord: 1 MiB of records, and a batch of them
LISTS = 3e6  # of rows of varying length: where they are in the file, and the lists around the last one


def write_file(place: Path, format: str, longest: int, count: int, fill: float = 1.0) -> OpenedDataset:
    """Write a file of random examples, or of packed rows if the format is LAYOUT.CONTAINER. Open it.

    count: number of examples, or of packed rows at least.
    """
    layout = ShardLayout(max_seq_length=longest, max_predictions_per_seq=max(1, round(0.15 * longest)))
    packing, _, container = format.rpartition(".")
    examples = 3 * count if packing else count
    data = generate_data(
        layout, vocabulary_size=30522, files=1, examples=examples, fill=0.4 if packing else fill
    )
    path = place / f"part-{longest}-{count}.{container}"
    with path.open("wb") as file:
        if packing:
            packed = pack_in_turn(data)
            layout = ShardLayout(
                max_seq_length=longest,
                max_predictions_per_seq=layout.max_predictions_per_seq,
                packing=packing,
                sequences_per_row=3,
            )
            writer = make_pack_writer(layout, container, file)
            for packs in packed.packs(packed.shards[0]):
                writer.write(packs)
        else:
            # ``make_writer`` knows no Arrow, because only ``convert`` writes it.
            writer = ArrowWriter(file, layout) if format == "arrow" else make_writer(container, file, layout)
            for batch in data.batches(data.shards[0]):
                writer.write(batch)
        writer.close()
    return open_dataset(str(path), unverified=True)


def rows_of(data: OpenedDataset) -> Rows:
    return PackRows(data) if data.layout.packing else Rows(data)


def count_rows(shard: Shard) -> int:
    return shard.examples if shard.rows is None else shard.rows


def count_bytes() -> int:
    """The bytes of all objects of Python, NumPy and Arrow."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0] + pyarrow.total_allocated_bytes()


@pytest.mark.parametrize("longest", [128, 512, 8192])
@pytest.mark.parametrize(
    "format", ["hdf5", "parquet", "habana.hdf5", "flat.parquet", "habana.tfrecord", "nvidia.hdf5"]
)
def test_an_open_file_holds_little_more_than_its_chunk(tmp_path, format, longest):
    chunk_rows = count_chunk_rows(longest)
    data = write_file(tmp_path, format, longest, 2 * chunk_rows + chunk_rows // 4)
    (shard,) = data.shards
    rows = rows_of(data)
    sizes = [chunk_rows] * (count_rows(shard) // chunk_rows)
    sizes.append(count_rows(shard) - sum(sizes))
    for _ in rows.decode_chunks(shard, sizes):  # loads modules
        pass
    tracemalloc.start()
    try:
        before = count_bytes()
        reader = ChunkReader(lambda: rows.decode_chunks(shard, sizes))
        reader.take(0)
        held = count_bytes() - before
        reader.close()
    finally:
        tracemalloc.stop()
    # as ``CompactExamples`` says: 2 bytes for each id, 4 for each mask and 13 for each example
    whole = chunk_rows * (2 * longest + 4 * data.layout.max_predictions_per_seq + 13)
    print(f"{format} {longest}: {held / 1e6:.2f} MB, {held / whole:.2f} chunks of {whole / 1e6:.2f} MB")
    more = {"parquet": PAGES, "tfrecord": BLOCK, "nvidia.hdf5": LISTS}
    assert held <= 1.7 * whole + sum(size for ending, size in more.items() if format.endswith(ending))


def list_columns(held: CompactExamples, numbers: np.ndarray) -> Iterator[tuple[str, list[list[int]]]]:
    """The columns of some examples by name, without the items that follow an example in its window."""
    taken = held.take(numbers)
    for item in held._kind.columns():
        values = taken[item.name].tolist()
        if item.ends is not None:
            values = [row[:size] for row, size in zip(values, taken[item.ends].tolist(), strict=True)]
        yield item.name, values


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("sizes", [[700], [1, 699], [300, 256, 144], [233, 233, 233, 1]])
def test_chunks_are_the_rows_of_the_file(tmp_path, format, sizes):
    data = write_file(tmp_path, format, 24, 700, fill=0.6)
    (shard,) = data.shards
    rows = rows_of(data)
    sizes = [*sizes[:-1], count_rows(shard) - sum(sizes[:-1])]
    whole, first = rows.decode(shard), 0
    for chunk in rows.decode_chunks(shard, sizes):
        count = len(chunk.lengths)
        assert chunk.first_example == first
        numbers = np.arange(count)
        assert list(list_columns(chunk, numbers)) == list(list_columns(whole, first + numbers))
        first += count
    assert first == len(whole.lengths)
    if data.layout.packing:
        bounds = [chunk.row_bounds + chunk.first_example for chunk in rows.decode_chunks(shard, sizes)]
        assert np.unique(np.concatenate(bounds)).tolist() == whole.row_bounds.tolist()


def test_a_chunk_is_forgotten_when_its_stream_is_past_it(tmp_path):
    data = write_file(tmp_path, "hdf5", 24, 700)
    (shard,), opened = data.shards, []

    def open_chunks() -> Iterator[CompactExamples]:
        opened.append(shard.name)
        return Rows(data).decode_chunks(shard, [100] * 7)

    reader = ChunkReader(open_chunks)
    chunks = [reader.take(number) for number in range(3)]
    reader.request(1)
    reader.forget_others([2])
    assert sorted(reader._kept) == [1, 2]  # 1 was announced
    assert reader.take(1) is chunks[1]
    reader.forget_others([2])
    assert list(reader._kept) == [2]
    # The next epoch begins while the last rows of this one are needed.
    reader.take(0)
    for needed in ([2], [2, 0]):
        reader.forget_others(needed)
        assert sorted(reader._kept) == [0, 2]
    reader.forget_others([0])
    assert list(reader._kept) == [0]
    reader.close()
    assert len(opened) == 2


def test_the_chunks_in_memory_are_fewer_than_two_for_each_stream():
    data = generate_data(
        ShardLayout(max_seq_length=12, max_predictions_per_seq=3),
        vocabulary_size=60000,
        files=40,
        examples=2000,
    )
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=400, open_files=40, chunk_rows=512)
    counts = []
    for _ in range(600):  # three epochs
        next(loader)
        counts.append(sum(len(reader._kept) for reader in loader._decoder._readers.values()))
    loader.close()
    assert np.mean(counts) < 1.6 * 40


@pytest.mark.parametrize("reading", [Reading(8), Reading(20, 16), Reading(512, 16)])
@pytest.mark.parametrize("longest", [128, 512, 1024, 8192, 65535])
def test_fewer_long_rows_are_gathered_at_once(longest, reading):
    layout = ShardLayout(max_seq_length=longest, max_predictions_per_seq=20)
    data = generate_data(layout, vocabulary_size=30522, files=600, examples=100)
    rows = Rows(data)
    dealer = make_dealer(
        rows, make_order(data, 3, reading), reading, lengths=data.lengths, batch_size=2, accumulation=2,
        workers=1, rank=0, seed=3,
    )  # fmt: skip
    gathered = dealer.updates * dealer.update_rows
    assert gathered * longest <= 2**21
    if longest <= 512:  # not less than before
        assert gathered == (4096 if reading.chunk_rows else 1024)


@pytest.mark.parametrize("reading", [{"open_files": 4}, {"open_files": 12, "chunk_rows": 64}])
def test_the_order_does_not_depend_on_how_many_rows_are_gathered_at_once(reading):
    layout = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)
    data = generate_data(layout, vocabulary_size=60000, files=12, examples=200, fill=0.6)
    found = []
    for ids in (2**21, 12 * 100, 1):
        with patch.object(loader_module, "_IDS_AT_ONCE", ids):
            loader = Loader(Rows(data), form=PaddedForm(), batch_size=16, accumulation=2, seed=3, **reading)
            updates = [next(loader) for _ in range(90)]
            loader.close()
        batches = [batch.input_ids.numpy().tobytes() for update in updates for batch in update.batches]
        found.append((batches, [update.position for update in updates]))
    assert found[0] == found[1] == found[2]
