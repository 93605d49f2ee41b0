"""Shards whose md5s were checked side by side are read without it, unless their file is another one now."""

import os
from pathlib import Path

import pytest

import bertdata
from bertdata.dataset import reader
from bertdata.dataset.reader import OpenedDataset, open_dataset
from bertdata.errors import ShardError
from bertdata.packing.sort import check_consecutive_shards
from golden.cases import VOCABULARY


@pytest.fixture
def opened(tmp_path: Path) -> OpenedDataset:
    corpus = sorted(str(path) for path in (Path(VOCABULARY).parent / "corpus").glob("part-*"))
    settings = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1, "workers": 1}
    bertdata.create(corpus, tmp_path / "shards", vocab=VOCABULARY, **settings)
    return open_dataset(str(tmp_path / "shards"))


def flip(path: str, at: int) -> None:
    data = bytearray(Path(path).read_bytes())
    data[at] ^= 1
    Path(path).write_bytes(data)


def test_a_shard_with_another_md5_is_named(opened):
    flip(opened.shards[1].path, 999)
    with pytest.raises(ShardError, match=r"part-00001-of-00003\.tfrecord: found md5 .* damaged or changed"):
        check_consecutive_shards(opened.shards)


def test_checked_shards_are_not_hashed_again_until_they_change(opened, monkeypatch):
    checked = check_consecutive_shards(opened.shards)
    monkeypatch.setattr(reader.hashlib, "md5", lambda **_: pytest.fail("hashed again"))
    assert sum(len(batch) for shard in checked for batch in opened.batches(shard)) == opened.examples
    monkeypatch.undo()
    flip(checked[0].path, 999)
    os.utime(checked[0].path, ns=(1, 1))
    with pytest.raises(ShardError, match=r"part-00000-of-00003\.tfrecord: found md5"):
        next(opened.batches(checked[0]))
