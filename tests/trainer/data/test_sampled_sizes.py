"""The sample of sizes that budgets are chosen from."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bertdata.cli.main import main
from bertdata.dataset.reader import OpenedDataset, open_dataset
from bertdata.examples.columns import compute_lengths
from bertdata.records import ShardLayout
from tests.support.commands import SMALL
from trainer.data.batches import Form
from trainer.data.budgets import ExampleSizes, sample_sizes
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data

LAYOUT = ShardLayout(max_seq_length=128, max_predictions_per_seq=20)


@pytest.fixture(scope="module")
def dataset(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> OpenedDataset:
    place = tmp_path_factory.mktemp("sizes") / "set"
    words = ["create", *map(str, corpus), "--output", str(place), "--vocab", str(small_vocabulary_file)]
    assert main([*words, *SMALL]) == 0
    return open_dataset(str(place))


def test_masks_are_a_share_of_the_tokens_and_a_deviation_from_it():
    found = ExampleSizes.of(np.array([10, 30]), np.array([3, 5]))
    assert found.masks_per_token == 0.2
    assert found.deviation == 1  # 3 and 5 in place of 2 and 6


def test_a_datasets_lengths_are_those_of_its_examples(dataset):
    batches = [batch for shard in dataset.shards for batch in dataset.batches(shard)]
    tokens = np.concatenate([compute_lengths(batch.ends) for batch in batches])
    masks = np.concatenate([compute_lengths(batch.mask_ends) for batch in batches])
    found = sample_sizes(dataset)
    assert sorted(found.lengths.tolist()) == sorted(tokens.tolist())
    assert found.masks_per_token == pytest.approx(masks.sum() / tokens.sum())


def test_without_lengths_the_decoded_examples_tell_the_same(dataset):
    bare = dataclasses.replace(
        dataset, shards=tuple(dataclasses.replace(shard, lengths_md5=None) for shard in dataset.shards)
    )
    assert not bare.has_lengths
    assert sample_sizes(bare).lengths.tolist() == sample_sizes(dataset).lengths.tolist()


@pytest.mark.parametrize(("files", "step"), [(16, 1), (17, 2), (40, 3)])
def test_lengths_are_sampled_from_at_most_16_files_over_the_whole_dataset(files, step):
    data = generate_data(LAYOUT, vocabulary_size=100, fill=0.5, files=files, examples=300)
    found = sample_sizes(data).lengths.reshape(-1, 300)
    for own, shard in zip(found, data.shards[::step], strict=True):
        assert own.tolist() == np.asarray(data.lengths(shard)).tolist()


def test_budgets_of_dealt_micro_batches_are_fewer():
    data = generate_data(LAYOUT, vocabulary_size=100, fill=0.5, files=2)
    alone, dealt = (make_form(Rows(data), batch_size=16, micro_batches=q) for q in (1, 64))
    assert isinstance(alone, Form)
    assert isinstance(dealt, Form)
    assert len(dealt.budgets.budgets) < len(alone.budgets.budgets)
