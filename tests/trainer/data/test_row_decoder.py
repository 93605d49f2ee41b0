"""Single rows: a worker that decodes only its own rows gets the batches that whole files and chunks give."""

import dataclasses
import io
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from hashlib import md5
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import h5py
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertdata.cli.main import main
from bertdata.dataset.reader import OpenedDataset, open_dataset
from bertdata.errors import MissingInputError, ShardError
from bertdata.io.file_check import compute_file_md5s
from bertdata.records import ShardLayout
from bertdata.shards.framing import find_record_starts
from bertdata.shards.tfrecord import TFRecordReader, TFRecordWriter
from tests.support.held_checks import hold_checks
from tests.support.padded_examples import PaddedForm
from tests.support.sample_sets import create
from trainer.config.settings import Config
from trainer.data import loader as loader_module
from trainer.data.dynamic_masks import UnmaskedData, make_masked_rows
from trainer.data.examples import Rows
from trainer.data.file_checks import FileChecks
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.opening import open_configured, prepare_for_training
from trainer.data.row_decoder import RowDecoder

LAYOUT = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)
STREAMS = {"open_files": 10, "chunk_rows": 30}


def write_files(place: Path, count: int, examples: int = 90) -> OpenedDataset:
    """A dataset of TFRecord files with md5s and lengths, so that micro-batches exchange examples."""
    data = generate_data(LAYOUT, vocabulary_size=60000, files=count, examples=examples, fill=0.6)
    shards = []
    for shard in data.shards:
        path = place / f"{shard.name}.tfrecord"
        with path.open("wb") as file:
            writer = TFRecordWriter(file, LAYOUT)
            for batch in data.batches(shard):
                writer.write(batch)
            writer.close()
        lengths = place / f"{shard.name}.u16"
        lengths.write_bytes(data.lengths(shard).astype("<u2").tobytes())
        digests = {
            "md5": md5(path.read_bytes()).hexdigest(),
            "lengths_md5": md5(lengths.read_bytes()).hexdigest(),
        }
        paths = {"name": path.name, "path": str(path), "lengths_path": str(lengths)}
        shards.append(dataclasses.replace(shard, **paths, **digests))
    return OpenedDataset(
        name=str(place), layout=LAYOUT, shards=tuple(shards), vocabulary_size=data.vocabulary_size
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> OpenedDataset:
    return write_files(tmp_path_factory.mktemp("files"), 10)


@pytest.fixture(scope="module")
def sets(tmp_path_factory, corpus, small_vocabulary_file) -> dict[str, Rows]:
    """The rows of the sample corpus, by the format of its shards. They record lengths."""
    made = {}
    for container in ("tfrecord", "hdf5", "parquet"):
        place = tmp_path_factory.mktemp(container) / "set"
        create(corpus, small_vocabulary_file, place, container)
        made[container] = Rows(open_dataset(str(place)))
    place = tmp_path_factory.mktemp("mds") / "set"
    flags = ["--objective=mlm", "--no-masks", "--format=mds", "--max-seq-length=64", "--workers=1"]
    words = ["--output", str(place), "--vocab", str(small_vocabulary_file)]
    assert main(["create", *map(str, corpus), *words, *flags]) == 0
    for name, source in (("mds, dynamic", place), ("tfrecord, dynamic", Path(made["tfrecord"].data.name))):
        config = Config.of(train_data=str(source), masking="dynamic")
        data = prepare_for_training(config, open_configured(config, str(source)))
        assert isinstance(data, UnmaskedData)
        made[name] = make_masked_rows(config, data)
    return made


Made = list[list[dict[str, list[Any]]]]


def list_batches(rows: Rows, count: int, *, single: bool, **settings: Any) -> Made:
    """The columns of each micro-batch of each worker's updates, with or without decoding of single rows."""
    workers, found = settings.pop("workers"), []
    with patch.object(loader_module, "can_decode_single_rows", lambda rows: single):
        loaders = [
            Loader(rows, form=PaddedForm(), workers=workers, rank=rank, **settings) for rank in range(workers)
        ]
    for loader in loaders:
        assert isinstance(loader._decoder, RowDecoder) == single
        found.append(
            [
                {field.name: getattr(batch, field.name).tolist() for field in dataclasses.fields(batch)}
                for update in islice(loader, count)
                for batch in update.batches
            ]
        )
        loader.close()
    return found


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    workers=st.integers(2, 4),
    accumulation=st.integers(1, 2),
    batch_size=st.integers(1, 40),
    chunk_rows=st.sampled_from([0, 7, 64]),
    start=st.integers(0, 899),
)
def test_single_rows_give_the_batches_of_whole_files(
    files, workers, accumulation, batch_size, chunk_rows, start
):
    each = {
        "workers": workers,
        "accumulation": accumulation,
        "batch_size": batch_size,
        "open_files": 10 if chunk_rows else 3,
        "chunk_rows": chunk_rows,
        "position": (0, start),
    }
    plain, single = (list_batches(Rows(files), 6, single=single, **each) for single in (False, True))
    assert single == plain


@pytest.mark.parametrize("reading", [{"open_files": 2}, {"open_files": 3, "chunk_rows": 16}])
@pytest.mark.parametrize("name", ["tfrecord", "hdf5", "parquet", "mds, dynamic", "tfrecord, dynamic"])
def test_each_format_gives_the_same_batches(sets, name, reading):
    each = {"workers": 3, "batch_size": 5, **reading}
    plain, single = (list_batches(sets[name], 25, single=single, **each) for single in (False, True))
    assert single == plain


@pytest.mark.parametrize("reading", [{"open_files": 4}, STREAMS])
def test_a_worker_decodes_its_own_rows_once_an_epoch(files, reading):
    decoded = Counter[int]()
    plain = TFRecordReader.decode_rows

    def count(self: TFRecordReader, data: bytes, sizes: list[int], first: int = 0) -> Iterator[Any]:
        decoded[0] += len(sizes)
        return plain(self, data, sizes, first)

    # 900 examples are 25 updates of 4 x 9 examples. They are gathered at once, as are the next 900.
    with patch.object(TFRecordReader, "decode_rows", count):
        loader = Loader(Rows(files), form=PaddedForm(), batch_size=9, workers=4, rank=1, **reading)
        for _ in range(25):
            next(loader)
        loader.close()
    assert decoded[0] in (225, 450)


def list_open_files(place: str) -> set[str]:
    """The open files of this process in a directory."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed in the meantime
            found.add(str(descriptor.readlink()))
    return {path for path in found if path.startswith(place)}


@pytest.mark.parametrize("single", [True, False])
def test_a_file_of_a_stream_is_opened_once_an_epoch_and_closed_when_it_was_read(tmp_path, single):
    data, most = write_files(tmp_path, 30), 0
    with (
        patch.object(loader_module, "can_decode_single_rows", lambda rows: single),
        patch.object(loader_module, "_STREAM_ROWS_AT_ONCE", 18),
        patch.object(FileChecks, "begin", lambda self, shard: Future[None]()),  # it opens files too
        patch.object(
            OpenedDataset, "open_shard", autospec=True, side_effect=OpenedDataset.open_shard
        ) as opened,
    ):
        loader = Loader(Rows(data), form=PaddedForm(), batch_size=9, open_files=3, chunk_rows=30)
        for _ in range(250):  # an epoch has 300 updates
            next(loader)
            most = max(most, len(list_open_files(str(tmp_path))))
        loader.close()
    # Each of the 3 streams reads a file, and perhaps opens the next one. A file that was read to its end is
    # closed a few turns later.
    assert 3 <= most <= 9
    assert max(Counter(call.args[1].path for call in opened.call_args_list).values()) == 1


# --- damaged files


def split_records(path: str | Path) -> list[bytes]:
    records = Path(path).read_bytes()
    return [records[start:end] for start, end in pairwise(find_record_starts(io.BytesIO(records), str(path)))]


def damage_payload(records: list[bytes]) -> str:
    records[40] = records[40][:20] + bytes([records[40][20] ^ 1]) + records[40][21:]
    return "record 40: the checksum of its data does not fit: damaged"


def damage_length(records: list[bytes]) -> str:
    records[40] = b"\1" + records[40][1:]
    return "record 40: the checksum of its length does not fit: damaged, or not a TFRecord file"


def truncate(records: list[bytes]) -> str:
    records[-1] = records[-1][:-3]
    return "record 89: the file ends inside this record: truncated"


def leave_out(records: list[bytes]) -> str:
    del records[80]
    return "holds 89 examples, expected 90"


def repeat(records: list[bytes]) -> str:
    records.append(records[0])
    return "holds 91 examples, expected 90"


@pytest.mark.parametrize("change", [damage_payload, damage_length, truncate, leave_out, repeat])
@pytest.mark.parametrize("reading", [{"open_files": 4}, STREAMS])
def test_damage_is_found_and_named_as_in_whole_files(tmp_path, change: Callable[[list[bytes]], str], reading):
    data = write_files(tmp_path, 10)
    unverified = tuple(dataclasses.replace(shard, md5=None) for shard in data.shards)
    records = split_records(data.shards[6].path)
    expected = f"{data.shards[6].path}: {change(records)}"
    Path(data.shards[6].path).write_bytes(b"".join(records))
    rows, found = Rows(dataclasses.replace(data, shards=unverified)), list[str]()
    for single in (False, True):
        for rank in range(2):
            try:
                run_epoch(rows, single=single, rank=rank, workers=2, batch_size=9, **reading)
            except ShardError as error:
                found.append(str(error))
    # A damaged example is found by the worker that trains on it, anything else by both workers.
    assert found == [expected] * (3 if change is damage_payload else 4)


def run_epoch(rows: Rows, *, single: bool, **settings: Any) -> None:
    with patch.object(loader_module, "can_decode_single_rows", lambda rows: single):
        loader = Loader(rows, form=PaddedForm(), **settings)
    try:
        for _ in range(60):
            next(loader)
    finally:
        loader.close()


def test_an_id_beyond_the_vocabulary_is_found_and_named(files):
    data = dataclasses.replace(files, vocabulary_size=30000)
    with pytest.raises(
        ShardError,
        match=r"generated-\d\.tfrecord: record \d+: id [3-5]\d{4}, expected less than 30000, the size",
    ):
        run_epoch(Rows(data), single=True, workers=2, batch_size=9, open_files=4)


def test_a_wrong_md5_is_found_before_a_row_of_the_file_is_used(tmp_path):
    data = write_files(tmp_path, 10)
    records = split_records(data.shards[3].path)
    Path(data.shards[3].path).write_bytes(b"".join(reversed(records)))
    with pytest.raises(ShardError, match=rf"{data.shards[3].name}: found md5 [0-9a-f]+, expected"):
        run_epoch(Rows(data), single=True, workers=2, batch_size=9, open_files=4)


def test_a_whole_file_without_single_rows_is_compared_before_its_rows_are_used(sets, tmp_path):
    stored, plain = sets["tfrecord"].data.shards[0], sets["hdf5"].data.shards[1]
    damaged = shutil.copy(plain.path, tmp_path)
    with h5py.File(damaged, "r+") as file:
        file["input_ids"][0, 1] = 77
    shards = (stored, dataclasses.replace(plain, path=str(damaged)))
    rows = Rows(dataclasses.replace(sets["tfrecord"].data, shards=shards))
    start = time.monotonic()
    late = hold_checks(lambda: time.monotonic() - start > 2)
    with patch("trainer.data.file_checks.compute_file_md5s", late):
        loader = Loader(rows, form=PaddedForm(), workers=2, batch_size=20, open_files=2)
        assert isinstance(loader._decoder, RowDecoder)
        with pytest.raises(ShardError, match=f"{damaged}: found md5 "):
            next(loader)
        loader.close()


def test_a_file_is_compared_with_its_md5_once_while_it_does_not_change(tmp_path):
    files, compared = write_files(tmp_path, 10, examples=900), Counter[str]()

    def compute(paths: list[str], before_blocks: Callable[[], None]) -> list[str]:
        compared.update(paths)
        return compute_file_md5s(paths, before_blocks)

    with (
        patch("trainer.data.file_checks.compute_file_md5s", compute),
        patch.object(
            OpenedDataset, "open_shard", autospec=True, side_effect=OpenedDataset.open_shard
        ) as opened,
    ):
        loader = Loader(Rows(files), form=PaddedForm(), batch_size=90, workers=2, open_files=4)
        for _ in range(110):  # two epochs of 50 updates
            next(loader)
        loader.close()
    assert compared == Counter(shard.path for shard in files.shards)
    assert opened.call_count > 15


def test_a_file_that_cannot_be_read_for_its_md5_is_named(tmp_path):
    data = write_files(tmp_path, 3)
    checks = FileChecks()
    results = [checks.begin(shard) for shard in data.shards]
    for result in results:
        assert result.result(timeout=60) is None
    Path(data.shards[1].path).unlink()
    results = [checks.begin(shard) for shard in data.shards]
    errors = [result.exception(timeout=60) for result in results]
    checks.close()
    assert [type(error) for error in errors] == [type(None), MissingInputError, type(None)]
    assert data.shards[1].path in str(errors[1])


def test_an_unknown_error_of_one_comparison_leaves_no_file_waiting(tmp_path):
    data = write_files(tmp_path, 2)
    checks = FileChecks()
    with patch("trainer.data.file_checks.compute_file_md5s", side_effect=RuntimeError("of a client")):
        results = [checks.begin(shard) for shard in data.shards]
        assert [result.result(timeout=60) for result in results] == [None, None]
    checks.close()


def test_a_file_that_is_written_to_while_it_is_open_ends_the_run(tmp_path):
    data = write_files(tmp_path, 10, examples=900)
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=20, workers=2, open_files=4)
    next(loader)
    for shard in data.shards:
        with Path(shard.path).open("ab") as file:
            file.write(b"more")
    with pytest.raises(ShardError, match="was changed while it was being read|found md5"):
        sum(len(update.batches) for update in islice(loader, 400))
    loader.close()
