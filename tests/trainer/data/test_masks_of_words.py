"""Whole words at load by the word starts that a shard holds: those of the twin, and no target of the task."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertdata.cli.main import main
from bertdata.dataset.masked_data import mask_dataset
from bertdata.errors import SettingsError
from bertdata.examples.dynamic_masking.masker import make_masker
from bertdata.examples.masking.settings import MaskingSettings
from tests.support.word_start_shards import SETTINGS, VOCABULARY, words_of_example, write
from trainer.config.settings import Config
from trainer.data.dynamic_masks import UnmaskedData
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader
from trainer.data.opening import open_configured, prepare_for_training
from trainer.data.packs import PackRows

Masked = tuple[bytes, bytes]
"""An example's ids and its masked positions."""
RATE, SEED = 0.4, 42


@pytest.fixture(autouse=True)
def ids_alone_tell_nothing(monkeypatch):
    """Any vocabulary beside data stands for one whose ids do not tell where words start."""
    monkeypatch.setattr(
        "trainer.data.dynamic_masks.load_dataset_vocabulary", lambda path, dataset: VOCABULARY
    )


def opened(place: Path, **keys: Any) -> UnmaskedData:
    masks = {"masking": "dynamic", "whole_word_mask": True, "masked_lm_prob": RATE}
    config = Config.of(train_data=str(place), unverified=True, **masks, **keys)
    data = prepare_for_training(config, open_configured(config, str(place)))
    assert isinstance(data, UnmaskedData)
    return data


def epoch_of(rows: Rows, count: int) -> Counter[Masked]:
    """The masked examples of the first update, a whole epoch."""
    loader = Loader(rows, form=make_form(rows, batch_size=count), batch_size=count, seed=SEED)
    found: Counter[Masked] = Counter()
    for batch in next(loader).batches:
        assert "word_starts" not in batch.targets
        found.update(_sequences(batch))
    loader.close()
    return found


def _sequences(batch: Any) -> Iterator[Masked]:
    ends = batch.ends.numpy()
    rows = batch.masked_lm_rows[batch.masked_lm_weights > 0].numpy()
    for sequence in range(int((batch.next_sentence_labels >= 0).sum())):
        start, end = ends[sequence], ends[sequence + 1]
        own = rows[(rows >= start) & (rows < end)] - start
        yield batch.input_ids[start:end].numpy().tobytes(), own.tobytes()


def expected(data: UnmaskedData) -> list[Any]:
    """The examples of epoch 0, masked by the readable twin."""
    settings = MaskingSettings(
        masked_lm_prob=RATE, max_predictions_per_seq=data.layout.max_predictions_per_seq, whole_word_mask=True
    )
    masker = make_masker(VOCABULARY, settings, "python")
    made = mask_dataset(data.masked.source, masker, seed=SEED)
    return [example for shard in made.shards for batch in made.batches(shard) for example in batch.examples()]


def as_masked(examples: list[Any]) -> Counter[Masked]:
    arrays = [(np.array(one.ids, np.int32), np.array(one.positions, np.int32)) for one in examples]
    return Counter((ids.tobytes(), positions.tobytes()) for ids, positions in arrays)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("format", ["tfrecord", "hdf5", "parquet"])
def test_the_loader_masks_the_words_that_the_twin_masks(name, format, tmp_path):
    write(tmp_path / f"a.{format}", name)
    data = opened(tmp_path, seed=SEED)
    twin = expected(data)
    assert epoch_of(Rows(data, data), data.examples) == as_masked(twin)
    masked = [len(word & set(example.positions)) for example in twin for word in words_of_example(example)]
    assert 3 in masked


def test_packed_rows_keep_word_starts_for_their_masks(tmp_path, small_vocabulary_file):
    write(tmp_path / "a.tfrecord", "mlm_word_starts")
    words = ["pack", str(tmp_path / "a.tfrecord"), "--output", str(tmp_path / "packed"), "--layout=flat"]
    assert main([*words, "--unverified", "--vocab", str(small_vocabulary_file), "--workers=1"]) == 0
    data = opened(tmp_path / "packed", seed=SEED)
    rows = sum(shard.rows or 0 for shard in data.shards)
    assert 0 < rows < data.examples
    assert epoch_of(PackRows(data, data), rows) == as_masked(expected(data))


def test_evaluation_data_are_masked_by_their_word_starts_once(tmp_path):
    write(tmp_path / "a.tfrecord", "mlm_word_starts")
    place = str(tmp_path)
    config = Config.of(train_data=place, masking="dynamic", unverified=True, whole_word_mask=True)
    data = open_configured(config, place, held_out=True)
    for shard in data.shards:
        for batch in data.batches(shard):
            for example in batch.examples():
                for word in words_of_example(example):
                    assert len(word & set(example.positions)) in (0, len(word))


def test_whole_words_of_data_without_word_starts_are_refused(tmp_path):
    write(tmp_path / "a.tfrecord", "mlm")
    with pytest.raises(SettingsError, match="holds no word starts, .* create --no-masks, which keeps them$"):
        opened(tmp_path)
