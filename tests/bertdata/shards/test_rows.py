"""Checks of a batch's values that hold for all containers."""

from dataclasses import replace

import numpy as np
import pytest

from bertdata.errors import ShardError
from bertdata.records import ShardLayout
from bertdata.shards.rows import RecordCheck, check_batch
from tests.support.example_batches import example_batch

LAYOUT = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
def test_an_id_below_the_lowest_is_named_whatever_its_type(kind: type) -> None:
    """Where 0 is the padding at which a row ends, 0 cannot be an id."""
    batch = example_batch([(4, 1), (5, 2), (6, 1)])
    batch.first_lengths[:] = 2
    batch.positions[:] = [1, 1, 2, 1]
    ids = batch.ids.astype(kind)
    ids[7] = 0
    batch = replace(batch, ids=ids)
    record = RecordCheck(name="shard", first=10)
    check_batch(batch, LAYOUT, record)
    with pytest.raises(ShardError, match=r"shard: record 11: id 0, expected 1 to \d+"):
        check_batch(batch, LAYOUT, record, {"ids": 1})
