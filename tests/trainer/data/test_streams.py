"""Streams: each epoch once, the same for any number of workers, and reading that is shared out."""

import dataclasses
import io
import os
import resource
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from hashlib import md5
from itertools import islice, pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError, ShardError
from bertdata.io.file_check import compute_file_md5s
from bertdata.records import ShardLayout
from bertdata.shards.framing import find_record_starts
from bertdata.shards.tfrecord import TFRecordWriter
from tests.support.launching import ROOT
from tests.support.padded_examples import PaddedForm
from trainer.data import file_checks
from trainer.data.decoder import ChunkReader
from trainer.data.examples import Rows
from trainer.data.file_checks import ChecksEnded, FileChecks
from trainer.data.generated import GeneratedData, generate_data
from trainer.data.loader import Loader, make_dealer, make_order
from trainer.data.open_chunks import OpenChunks
from trainer.data.order import Dealer, FileRows, Order, Position
from trainer.data.reading import Reading, choose_reading, count_chunk_rows, count_streams
from trainer.data.streams import StreamDealer, StreamOrder, rank_by_reversed_digits

LAYOUT = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)


def order_of(sizes: list[int], streams: int, chunk_rows: int = 64, seed: int = 5) -> StreamOrder:
    files = [(f"part-{number}", size) for number, size in enumerate(sizes)]
    return StreamOrder(files, seed=seed, reading=Reading(streams, chunk_rows))


def rows_of(order: Order, position: Position, offsets: np.ndarray) -> list[tuple[int, int]]:
    """The (file, row) at each distance from a position."""
    found: list[tuple[int, int]] = [(-1, -1)] * offsets.size
    for part in order.find(position, offsets.ravel()):
        for target, row in zip(part.targets.tolist(), part.rows.tolist(), strict=True):
            found[target] = part.file, row
    return found


def dealer_of(
    order: StreamOrder, workers: int, rank: int, accumulation: int, batch_size: int, **more: object
):
    own = {"lengths": lambda file: np.ones(1), "by_lengths": False, "most_rows": 1, "ahead": 1} | more
    return StreamDealer(
        order=order, world_size=workers, rank=rank, micro_batches=workers * accumulation,
        batch_size=batch_size, seed=5, **own,
    )  # fmt: skip


def dealt(
    order: StreamOrder, position: Position, count: int, **settings: int
) -> list[list[list[tuple[int, int]]]]:
    """For each of some updates, the rows of each micro-batch, in the order of micro-batches."""
    workers, size = settings["workers"], settings["batch_size"]
    found: list[list[list[tuple[int, int]]]] = [[] for _ in range(count)]
    each = [iter(dealer_of(order, rank=rank, **settings).find(position)) for rank in range(workers)]
    for update in range(count):
        of_workers = []
        for worker in each:
            rows = {}
            own = next(worker)
            assert len(own.positions) == 1
            for part in own.parts:
                rows |= {int(t): (part.file, int(r)) for t, r in zip(part.targets, part.rows, strict=True)}
            flat = [rows[place] for place in range(len(rows))]
            of_workers.append([flat[at : at + size] for at in range(0, len(flat), size)])
        found[update] = [batch for turn in zip(*of_workers, strict=True) for batch in turn]
    return found


def test_numbers_with_reversed_digits_are_spread_evenly():
    assert rank_by_reversed_digits(8).tolist() == [0, 4, 2, 6, 1, 5, 3, 7]
    assert sorted(rank_by_reversed_digits(500).tolist()) == list(range(500))


@settings(max_examples=10, deadline=None)
@given(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=7), streams=st.integers(1, 5))
def test_each_epoch_is_every_row_once(sizes, streams):
    total = sum(sizes)
    if not total:
        return
    order = order_of(sizes, streams)
    every = Counter((file, row) for file, size in enumerate(sizes) for row in range(size))
    found = rows_of(order, Position(), np.arange(2 * total))
    assert Counter(found[:total]) == Counter(found[total:]) == every
    # a position in the middle goes on where the order from the beginning is
    half = total // 2
    assert rows_of(order, Position(0, half), np.arange(total)) == found[half : half + total]


def test_streams_take_turns_with_rows_of_shuffled_chunks():
    # 3 files of 640 rows make 3 streams, which provide one row in a turn when a chunk has 64 rows
    order = order_of([640] * 3, 3)
    found = rows_of(order, Position(), np.arange(1920))
    assert all(len({file for file, _ in found[at : at + 3]}) == 3 for at in range(0, 1920, 3))
    for file in range(3):
        rows = [row for own, row in found if own == file]
        sizes = order.chunks.sizes(f"part-{file}", 640)
        assert sum(sizes) == 640
        assert set(sizes[1:-1]) == {64}
        start = 0
        for size in sizes:  # one chunk after the other, each in random order
            assert sorted(rows[start : start + size]) == list(range(start, start + size))
            start += size
        assert rows != sorted(rows)


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=6),
    chunk_rows=st.sampled_from([16, 64, 256]),
    start=st.integers(0, 400),
    update=st.integers(1, 12),
    count=st.sampled_from([1, 2, 3, 8]),
)
def test_the_parts_of_an_update_are_all_its_rows_and_sorted_by_stream(
    sizes, chunk_rows, start, update, count
):
    order = order_of(sizes, 4, chunk_rows)
    position, rows = order.advance(Position(), start), update * count
    parts = order.take_parts(position, rows, np.arange(count), count)
    assert sorted(parts.ravel().tolist()) == list(range(rows))
    if count > 1 and position.examples + rows <= order.examples:
        # Within an epoch, the streams of a part do not come before the streams of an earlier part.
        stream = {}
        for nth in order._find_stretches(position, rows):
            for number, own in enumerate(nth.streams.tolist()):
                taken = np.arange(nth.counts[number])
                places = nth.locate(np.full(len(taken), number), taken)
                stream |= {int(place): int(order.ranks[own]) for place in places}
        ranks = [[stream[place] for place in part] for part in parts.tolist()]
        assert all(max(a) <= min(b) for a, b in pairwise(ranks))


@pytest.mark.parametrize("by_lengths", [False, True])
@pytest.mark.parametrize(
    ("workers", "accumulation", "batch_size"), [(16, 1, 8), (16, 1, 512), (3, 2, 8), (8, 8, 4), (24, 1, 64)]
)
def test_each_part_of_an_update_goes_to_one_group_of_micro_batches(
    workers, accumulation, batch_size, by_lengths
):
    order = order_of([500] * 20, 20)
    dealers = [
        dealer_of(order, workers, rank, accumulation, batch_size, by_lengths=by_lengths)
        for rank in range(workers)
    ]
    parts = dict[int, int]()
    for dealer in dealers:
        groups = range(dealer.rank, dealer.micro_batches, workers)
        own = sorted({number // dealer.group for number in groups})
        for group, part in zip(own, dealer.parts.tolist(), strict=True):
            assert parts.setdefault(group, part) == part
    assert sorted(parts) == sorted(parts.values()) == list(range(workers * accumulation // dealers[0].group))


@pytest.mark.parametrize(("workers", "accumulation"), [(1, 16), (4, 4), (8, 2)])
def test_micro_batches_do_not_depend_on_the_number_of_workers(workers, accumulation):
    sizes = [500 + number for number in range(20)]
    settings = {"count": 6, "batch_size": 8}
    alone = dealt(order_of(sizes, 20), Position(0, 10000), workers=16, accumulation=1, **settings)
    assert (
        dealt(order_of(sizes, 20), Position(0, 10000), workers=workers, accumulation=accumulation, **settings)
        == alone
    )
    flat = [row for update in alone for batch in update for row in batch]
    wanted = rows_of(order_of(sizes, 20), Position(0, 10000), np.arange(6 * 128))
    assert Counter(flat) == Counter(wanted)


def list_found(parts: list[FileRows]) -> dict[int, tuple[int, int, int, int]]:
    """The epoch, file, chunk and row of each target."""
    return {
        target: (part.epoch, part.file, part.chunk, row)
        for part in parts
        for target, row in zip(part.targets.tolist(), part.rows.tolist(), strict=True)
    }


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=2, max_size=9),
    chunk_rows=st.sampled_from([16, 64]),
    start=st.integers(0, 700),
    workers=st.integers(1, 4),
    by_lengths=st.booleans(),
    kept=st.sampled_from([1, 3, 100]),
)
def test_rows_found_at_once_are_those_found_chunk_by_chunk(
    sizes, chunk_rows, start, workers, by_lengths, kept
):
    order = order_of(sizes, 5, chunk_rows)
    lengths = [np.random.default_rng(file).integers(1, 99, size) for file, size in enumerate(sizes)]
    more = {"lengths": lengths.__getitem__, "by_lengths": by_lengths}
    for rank in range(workers):
        dealer = dealer_of(order, workers, rank, accumulation=2, batch_size=5, **more)
        dealer.__dict__["open_chunks"] = OpenChunks(
            order.permute_chunk, dealer.lengths if by_lengths else None, chunk_rows=chunk_rows, kept=kept
        )
        position = order.advance(Position(), start)
        for _ in range(8):
            parts, now = dealer.find_for_updates(position)
            plain, needed = Dealer.find_for_updates(dealer, position)
            assert list_found(parts) == list_found(plain)
            assert Counter(now) == Counter(needed)
            position = order.advance(position, dealer.update_rows)


def find_readers(
    order: StreamOrder, workers: int, accumulation: int, batch_size: int, **more: object
) -> list[set[int]]:
    """For each worker, the files that it reads in an epoch."""
    found = []
    for rank in range(workers):
        dealer, files, seen = dealer_of(order, workers, rank, accumulation, batch_size, **more), set(), 0
        for own in dealer.find(Position()):
            seen += dealer.update_rows
            if seen > order.examples:
                break
            files |= {file for file, _ in own.now}
        found.append(files)
    return found


@pytest.mark.parametrize("accumulation", [1, 4])
def test_workers_that_divide_the_streams_read_each_file_once(accumulation):
    order = order_of([1024] * 64, 64, 256)
    readers = find_readers(order, 16, accumulation, 32)
    assert Counter(file for files in readers for file in files) == Counter(range(64))


def test_workers_that_do_not_divide_the_streams_share_only_the_files_between_them():
    order = order_of([1024 + number % 7 for number in range(50)], 50, 256)
    readers = find_readers(order, 12, 1, 64)
    assert set().union(*readers) == set(range(50))
    # 50 files and 11 borders between workers, of which each is within a file or beside one
    assert sum(map(len, readers)) <= 50 + 2 * 11


def test_more_workers_than_files_read_one_or_two_files_each():
    order = order_of([4096] * 10, 10, 256)
    readers = find_readers(order, 16, 1, 64)
    assert max(map(len, readers)) <= 3
    assert set().union(*readers) == set(range(10))


def test_the_number_of_streams_follows_from_the_number_of_files():
    found = {files: count_streams(files) for files in (9, 500, 512, 700, 2048, 37000)}
    assert found == {9: 9, 500: 500, 512: 512, 700: 350, 2048: 512, 37000: 512}
    assert choose_reading("auto", 500, 128, is_shareable=True) == Reading(500, 2048)
    # few files, rows that come from all files, and a configured number: whole files
    assert choose_reading("auto", 8, 128, is_shareable=True) == Reading(8)
    assert choose_reading("auto", 500, 128, is_shareable=False) == Reading(8)
    assert choose_reading(12, 500, 128, is_shareable=True) == Reading(12)


def test_chunks_of_long_rows_have_fewer_rows():
    found = {longest: count_chunk_rows(longest) for longest in (5, 128, 512, 513, 1024, 8192, 65535, 2**21)}
    assert found == {5: 2048, 128: 2048, 512: 2048, 513: 2044, 1024: 1024, 8192: 128, 65535: 16, 2**21: 1}


@pytest.mark.parametrize("start", [0, 60, 124])  # at 60 both streams go on to their next file, at 124 epochs
def test_a_stream_is_counted_once_although_its_next_file_begins(start):
    order = order_of([32] * 4, streams=2, chunk_rows=64)
    dealers = [dealer_of(order, workers=2, rank=rank, accumulation=1, batch_size=4) for rank in range(2)]
    assert [dealer.count_own_streams(Position(0, start)) for dealer in dealers] == [1, 1]


class Recorder(GeneratedData):
    """Generated data that records the files read."""

    read: ClassVar[list[str]]

    def batches(self, shard):
        self.read.append(shard.name)
        yield from super().batches(shard)


def generate(files: int, examples: int, **more: float) -> Recorder:
    data = generate_data(LAYOUT, vocabulary_size=60000, files=files, examples=examples, **more)

    class OwnRecorder(Recorder):  # threads of an earlier loader may still read their own data
        read: ClassVar[list[str]] = []

    return OwnRecorder(**{field.name: getattr(data, field.name) for field in dataclasses.fields(data)})


@pytest.mark.parametrize("fill", [1.0, 0.5])
def test_the_loader_decodes_each_file_once_an_epoch_and_a_resumed_one_goes_on(fill):
    data = generate(12, 3000, fill=fill)
    settings = {"form": PaddedForm(), "batch_size": 180, "open_files": 12, "chunk_rows": 128, "seed": 3}
    loader = Loader(Rows(data), **settings)
    seen = [next(loader) for _ in range(120)]
    assert Counter(data.read) == Counter(shard.name for shard in data.shards)
    # 4,096 rows are gathered at once, from four chunks of each file, and four more come next
    assert len(loader._decoder._pieces) <= 8 * 12
    seen += [next(loader) for _ in range(80)]
    loader.close()
    ids = [row.tobytes() for update in seen for batch in update.batches for row in batch.input_ids.numpy()]
    assert len(set(ids)) == len(ids) == 36000
    resumed = Loader(Rows(data), position=seen[90].position, **settings)
    for update in seen[91:94]:
        assert [b.input_ids.tolist() for b in next(resumed).batches] == [
            b.input_ids.tolist() for b in update.batches
        ]
    resumed.close()


def write_files(place: Path, count: int) -> OpenedDataset:
    """A dataset of TFRecord files with a manifest's md5s, in a directory of its own."""
    data = generate_data(LAYOUT, vocabulary_size=60000, files=count, examples=200)
    shards = []
    for shard in data.shards:
        path = place / f"{shard.name}.tfrecord"
        with path.open("wb") as file:
            writer = TFRecordWriter(file, LAYOUT)
            for batch in data.batches(shard):
                writer.write(batch)
            writer.close()
        digest = md5(path.read_bytes()).hexdigest()
        shards.append(dataclasses.replace(shard, name=path.name, path=str(path), md5=digest))
    return OpenedDataset(
        name=str(place), layout=LAYOUT, shards=tuple(shards), vocabulary_size=data.vocabulary_size
    )


def reverse_records(path: Path) -> bytes:
    """A TFRecord file with its records in another order, which only its md5 shows."""
    records = path.read_bytes()
    starts = list(find_record_starts(io.BytesIO(records), path.name))
    return b"".join(reversed([records[start:end] for start, end in pairwise(starts)]))


def test_chunks_of_files_are_the_examples_of_the_files(tmp_path):
    data = write_files(tmp_path, 10)
    settings = {"form": PaddedForm(), "batch_size": 2000, "seed": 3}
    found = []
    for more in ({"open_files": 10}, {"open_files": 10, "chunk_rows": 30}):
        loader = Loader(Rows(data), **settings, **more)
        (batch,) = next(loader).batches
        loader.close()
        found.append(sorted(map(bytes, batch.input_ids.numpy())))
    assert found[0] == found[1]


def test_a_damaged_file_ends_the_run_although_its_records_are_sound(tmp_path):
    data = write_files(tmp_path, 10)
    path = tmp_path / data.shards[4].name
    path.write_bytes(reverse_records(path))
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=20, open_files=10, chunk_rows=30)
    with pytest.raises(ShardError, match=f"{path.name}: found md5 [0-9a-f]+, expected {data.shards[4].md5}"):
        sum(len(update.batches) for update in islice(loader, 1000))
    loader.close()


class HeldChecks:
    """The function that computes md5s, on a disk that gives the files only after ``release`` is set."""

    def __init__(self) -> None:
        self.release, self.read = threading.Event(), list[list[str]]()

    def __call__(self, paths: list[str], before_blocks: Callable[[], None]) -> list[str]:
        self.read.append([Path(path).name for path in paths])
        while not self.release.wait(0.01):
            before_blocks()
        return compute_file_md5s(paths, before_blocks)


@pytest.fixture
def held_checks(monkeypatch: pytest.MonkeyPatch) -> HeldChecks:
    checks = HeldChecks()
    monkeypatch.setattr(file_checks, "compute_file_md5s", checks)
    return checks


@pytest.mark.parametrize("workers", [1, 2])
def test_files_are_waited_for_when_their_rows_were_used_and_are_compared_first(
    tmp_path, held_checks, workers
):
    data = write_files(tmp_path, 40)
    reading = Reading(40, 2048)
    order = make_order(data, 0, reading)
    for rank in range(workers):
        held_checks.release.clear()
        held_checks.read.clear()
        share = {"batch_size": 8, "workers": workers, "rank": rank}
        loader = Loader(Rows(data), form=PaddedForm(), **reading._asdict(), **share)
        assert loader.compare_files(0) == []
        no_lengths = {"lengths": lambda file: np.ones(1), "accumulation": 1, "seed": 0}
        own = next(make_dealer(Rows(data), order, reading, **share, **no_lengths).find(Position(0, 0)))
        files = np.empty(8 * len(own.positions), int)
        for part in own.parts:
            files[part.targets] = part.file
        used = set[str]()
        for update in range(6):
            next(loader)
            used |= {data.shards[file].name for file in files[update * 8 : (update + 1) * 8]}
            assert set(loader.compare_files(0)) == used
        assert 8 < len(used) < 40
        held_checks.release.set()
        assert loader.compare_files(60) == []
        # The first eight were being read already.
        after = [name for batch in held_checks.read[1:] for name in batch]
        waited = used - set(held_checks.read[0])
        assert set(after[: len(waited)]) == waited
        loader.close()


def test_a_damaged_file_is_found_only_when_its_rows_are_used(tmp_path, held_checks):
    data = write_files(tmp_path, 10)
    settings = {"form": PaddedForm(), "batch_size": 4, "open_files": 10, "chunk_rows": 128}
    order = StreamOrder(data.file_rows, seed=0, reading=Reading(10, 128))
    _, files, _ = order.locate(Position(0, 0), np.arange(2000))
    first = dict.fromkeys(files.tolist())
    damaged = data.shards[list(first)[5]]
    Path(damaged.path).write_bytes(reverse_records(Path(damaged.path)))
    loader = Loader(Rows(data), **settings)
    next(loader)
    held_checks.release.set()
    assert loader.compare_files(60) == []
    loader.close()
    loader = Loader(Rows(data), **settings)
    for _ in range(int(np.flatnonzero(files == list(first)[5])[0]) // 4 + 1):
        next(loader)
    with pytest.raises(ShardError, match=f"{damaged.name}: found md5 [0-9a-f]+, expected {damaged.md5}"):
        loader.compare_files(60)
    loader.close()


@pytest.mark.parametrize("chunk_rows", [0, 30], ids=["whole files", "streams"])
def test_files_that_an_earlier_run_used_are_compared_by_one_worker_each(tmp_path, held_checks, chunk_rows):
    data = write_files(tmp_path, 12)
    names = [shard.name for shard in data.shards[3:8]]
    Path(data.shards[4].path).write_bytes(reverse_records(Path(data.shards[4].path)))
    loaders = [
        Loader(
            Rows(data), form=PaddedForm(), batch_size=2, workers=2, rank=rank, open_files=12,
            chunk_rows=chunk_rows, unchecked_files=names,
        )
        for rank in range(2)
    ]  # fmt: skip
    assert [sorted(loader.compare_files(0)) for loader in loaders] == [names[::2], names[1::2]]
    held_checks.release.set()
    assert loaders[0].compare_files(60) == []
    with pytest.raises(ShardError, match=f"{data.shards[4].name}: found md5"):
        loaders[1].compare_files(60)
    for loader in loaders:
        loader.close()


def test_the_end_of_a_run_does_not_wait_until_a_long_file_is_read(tmp_path):
    (tmp_path / "long").touch()
    os.truncate(tmp_path / "long", 1 << 40)
    shard = dataclasses.replace(write_files(tmp_path, 1).shards[0], path=str(tmp_path / "long"))
    checks = FileChecks()
    results = [checks.begin(shard) for _ in range(2)]
    assert checks.await_results(results, 0.1) == set(results)
    checks.close()
    assert all(
        isinstance(result.exception(timeout=60), ChecksEnded) for result in results if not result.cancelled()
    )


SMALL_LIMIT = """
import resource, sys
from itertools import islice
from pathlib import Path
from tests.support.padded_examples import PaddedForm
from tests.trainer.data.test_streams import write_files
from trainer.data.examples import Rows
from trainer.data.loader import Loader

data = write_files(Path(sys.argv[1]), 300)
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
loader = Loader(Rows(data), form=PaddedForm(), batch_size=300, open_files=300, chunk_rows=64)
for update in islice(loader, 40):
    pass
assert loader.compare_files(60) == []
assert len(list(Path("/proc/self/fd").iterdir())) > 300
loader.close()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_many_streams_are_read_under_a_small_limit_of_open_files(tmp_path):
    """macOS allows 256 open files, and some batch systems 1,024."""
    command = [sys.executable, "-c", SMALL_LIMIT, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "256\n"


def test_a_limit_that_cannot_be_raised_names_what_helps(tmp_path, monkeypatch):
    data = write_files(tmp_path, 10)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (100, 200))
    with pytest.raises(SettingsError, match=r"allowed are 200; raise ulimit -Hn, or .* --open-files 8"):
        Loader(Rows(data), form=PaddedForm(), batch_size=2, open_files=10, chunk_rows=64)


def test_every_chunk_behind_damage_raises_its_error():
    """Threads take several chunks at once, and the error of any of them may be the one that ends the run."""

    def read_damaged():
        yield "chunk 0"
        raise ShardError("part-6: record 40: is damaged")

    reader = ChunkReader(read_damaged)
    assert reader.take(0) == "chunk 0"
    for chunk in (1, 2, 1):
        with pytest.raises(ShardError, match="record 40"):
            reader.take(chunk)
    assert reader.take(0) == "chunk 0"
