"""Sizes of files that do not tell them, and which directories an ``index.json`` makes one of MDS."""

import pytest

from bertdata.records import ShardLayout
from bertdata.shards.mds.listing import list_mds_shards
from bertdata.shards.measured_sizes import share_largest_sizes


def layout(longest: int, masks: int, objective: str = "mlm") -> ShardLayout:
    return ShardLayout(objective=objective, max_seq_length=longest, max_predictions_per_seq=masks)


def test_measured_files_get_the_largest_of_each_size():
    found = share_largest_sizes([("a", layout(8, 3), True), ("b", layout(9, 1), True)])
    assert found == [("a", layout(9, 3)), ("b", layout(9, 3))]


def test_files_that_tell_their_sizes_keep_them():
    found = [("a", layout(8, 1), True), ("b", layout(64, 9), False), ("c", layout(7, 1), True)]
    assert [one for _, one in share_largest_sizes(found)] == [layout(8, 1), layout(64, 9), layout(8, 1)]


def test_files_of_two_objectives_have_sizes_of_their_own():
    found = [("a", layout(8, 1), True), ("b", layout(64, 9, "sop"), True)]
    assert share_largest_sizes(iter(found)) == [(path, one) for path, one, _ in found]


@pytest.mark.parametrize(
    "name", ["data-00000-of-00001.arrow", "part.3.parquet_2", "x.tfrecord-0-of-9", "a.pq", "in/a.h5"]
)
def test_an_index_beside_shards_of_another_kind_is_not_read(tmp_path, name):
    (tmp_path / "index.json").write_text("not MDS's")
    assert list_mds_shards(str(tmp_path), ["index.json", name]) == []
