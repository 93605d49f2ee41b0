"""The kinds of rows that a training deals: which one is configured, and its words in state.json."""

from dataclasses import replace

import pytest

from bertdata.errors import SettingsError
from bertdata.records import ShardLayout
from tests.support.packed_data import pack_in_turn
from trainer.config.settings import Config
from trainer.data.bins import RowsFromBins
from trainer.data.examples import Rows
from trainer.data.generated import generate_data
from trainer.data.load_packing import RowsPackedAtLoad
from trainer.data.packs import PackRows
from trainer.data.rows import find_rows

LAYOUT = ShardLayout(max_seq_length=32, max_predictions_per_seq=5)
PLAIN = generate_data(LAYOUT, vocabulary_size=100, fill=0.4, files=2, examples=30)
PACKED = pack_in_turn(PLAIN)
KINDS = {
    "stored": (PLAIN, {}, Rows, "as stored"),
    "packs": (PACKED, {}, PackRows, "as stored"),
    "bins": (
        PLAIN,
        {"bins": 3},
        RowsFromBins,
        "from 3 length bins of least padding, updates of 2 x 4 examples",
    ),
    "at load": (
        PLAIN,
        {"pack_on_load": True, "pack_window": 50, "sequences_per_row": 6},
        RowsPackedAtLoad,
        "packed at load, 50 examples together, at most 6 a row",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_configuration_and_the_dataset_choose_the_rows(kind):
    data, keys, expected, words = KINDS[kind]
    rows = find_rows(Config.of(**keys), data)
    assert type(rows) is expected
    assert rows.describe("2 x 4 examples") == words
    assert rows.data is data


def test_only_single_examples_with_lengths_are_dealt_by_length():
    bare = replace(PLAIN, fill=1.0)
    found = {kind: find_rows(Config.of(**keys), data).by_lengths for kind, (data, keys, *_) in KINDS.items()}
    assert found == {"stored": True, "packs": False, "bins": True, "at load": False}
    assert not find_rows(Config.of(), bare).by_lengths


@pytest.mark.parametrize("kind", KINDS)
def test_a_dataset_that_keeps_its_masks_is_masked_as_stored(kind):
    """Fine-tuning opens features under the same configuration, and masks none of them."""
    data, keys, *_ = KINDS[kind]
    assert find_rows(Config.of(masking="dynamic", **keys), data).masks is None


def test_rows_that_the_dataset_cannot_have_are_refused():
    with pytest.raises(SettingsError, match="its rows are packed already"):
        find_rows(Config.of(pack_on_load=True), PACKED)
    with pytest.raises(SettingsError, match="bins need single examples"):
        find_rows(Config.of(bins=3), PACKED)
