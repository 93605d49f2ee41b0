"""fairseq's masks of a dataset of several shards: by its Python face and in the trainer, resumed, refused."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertdata
from bertdata.cli.main import main
from bertdata.dataset.discover import find_datasets
from bertdata.dataset.reader import open_dataset
from bertdata.dataset.vocabulary import load_dataset_vocabulary
from bertdata.errors import SettingsError
from bertdata.examples.fairseq.batch_order import fairseq_batches
from bertdata.examples.fairseq.masks import FairseqRules, compute_cumulative_shares, draw_masks
from bertdata.examples.fairseq.seeds import compute_seed
from bertdata.examples.fairseq.streams import RELEASES, STREAMS
from bertdata.examples.fairseq.words import find_word_begins
from tests.support.training_runs import losses, refuse, tensors, words
from trainer.config.settings import Config
from trainer.data.dynamic_masks import UnmaskedData
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader
from trainer.data.opening import open_configured, prepare_for_training
from trainer.data.padded_rows import RowForm

LENGTH, SEED = 64, 42
Example = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""An example's ids, masked positions and labels."""


@pytest.fixture(scope="module")
def tokenizer(corpus, tmp_path_factory) -> Path:
    """A byte-level BPE in RoBERTa's layout, which is that of fairseq's dictionary."""
    pytest.importorskip("tokenizers")
    from tests.support.tokenizer_files import train_bpe

    text = [line for part in corpus for line in part.read_text(encoding="utf-8").splitlines()]
    return train_bpe(tmp_path_factory.mktemp("tokenizer") / "tokenizer.json", text, 600)


@pytest.fixture(scope="module")
def blocks(corpus, tokenizer, tmp_path_factory) -> Path:
    """The sample corpus as unmasked blocks in three shards."""
    place = tmp_path_factory.mktemp("blocks") / "set"
    kind = ["--objective=mlm", "--no-masks", f"--tokenizer={tokenizer}", f"--max-seq-length={LENGTH}"]
    assert main(["create", *map(str, corpus), f"--output={place}", "--workers=1", *kind]) == 0
    return place


def expected(blocks: Path, release: str, epoch: int, *, whole: bool = False) -> list[Example]:
    """The examples of all shards, in order, masked by the readable twin. epoch: from 1."""
    vocabulary = load_dataset_vocabulary(None, find_datasets(str(blocks))[0])
    assert vocabulary is not None
    rules = FairseqRules(
        mask=vocabulary.size - 1,
        random_share=0.1,
        kept_share=0.1,
        limits=compute_cumulative_shares([1] * vocabulary.size),
        begins_word=find_word_begins(vocabulary) if whole else None,
    )
    found = []
    for number, one in enumerate(bertdata.open_dataset(str(blocks))):
        made = draw_masks(one.ids, 0.15, rules, STREAMS[release](compute_seed(SEED, epoch, number)))
        found.append((tuple(made.ids), tuple(made.positions), tuple(made.labels)))
    return found


def opened(blocks: Path, masking: str = "fairseq", **keys: Any) -> UnmaskedData:
    """The data as training takes it."""
    config = Config.of(train_data=str(blocks), masking=masking, seed=SEED, **keys)
    data = prepare_for_training(config, open_configured(config, str(blocks)))
    assert isinstance(data, UnmaskedData)
    return data


def read_rows(batch: Any) -> list[Example]:
    found = []
    for row in range(len(batch)):
        if batch.next_sentence_labels[row] >= 0:
            used = batch.masked_lm_weights[row] > 0
            ids = batch.input_ids[row][batch.attention_mask[row] > 0]
            columns = ids, batch.masked_lm_positions[row][used], batch.masked_lm_ids[row][used]
            found.append(tuple(tuple(one.tolist()) for one in columns))
    return found


def updates(data: UnmaskedData, count: int, **settings: Any) -> list[Counter[Example]]:
    """The examples of each update, in padded rows."""
    loader = Loader(Rows(data, data), form=RowForm(), open_files=2, seed=SEED, **settings)
    found = [Counter(one for batch in next(loader).batches for one in read_rows(batch)) for _ in range(count)]
    loader.close()
    return found


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.thorough_after_first
def test_an_example_is_known_by_its_number_in_the_whole_dataset(release, whole, blocks):
    data = bertdata.open_dataset(str(blocks))
    assert len(data.shards) == 3
    for epoch in (1, 2):
        masked = data.masked(masking=release, seed=SEED, epoch=epoch, whole_word_mask=whole)
        found = [(tuple(one.ids), tuple(one.positions), tuple(one.labels)) for one in masked]
        assert found == expected(blocks, release, epoch, whole=whole)
    first = [one.ids for one in data.masked(masking=release, seed=SEED, whole_word_mask=whole)]
    assert first == [list(ids) for ids, *_ in expected(blocks, release, 1, whole=whole)]


@pytest.mark.parametrize("world", [1, 3])
def test_batches_of_the_face_are_examples_in_fairseqs_order(world, blocks):
    data = bertdata.open_dataset(str(blocks)).masked(masking="fairseq", seed=SEED, epoch=2)
    examples = expected(blocks, "fairseq", 2)
    lengths = [len(ids) for ids, *_ in examples]
    for rank in range(world):
        places = {"seed": SEED, "epoch": 2, "batch_size": 16, "rank": rank, "world": world}
        wanted = fairseq_batches(lengths, **places)
        found = list(data.fairseq_batches(**places))
        assert len(found) == len(wanted)
        for rows, numbers in zip(found, wanted, strict=True):
            ids = [
                tuple(row[used > 0].tolist())
                for row, used in zip(rows["input_ids"], rows["attention_mask"], strict=True)
            ]
            assert ids == [examples[number][0] for number in numbers]
            labels = [tuple(row[row != -100].tolist()) for row in rows["labels"]]
            assert labels == [examples[number][2] for number in numbers]
        rest = list(data.fairseq_batches(**places, start=5))
        assert [one["input_ids"].tolist() for one in rest] == [one["input_ids"].tolist() for one in found[5:]]


@pytest.mark.parametrize("release", RELEASES)
def test_each_epoch_of_the_trainer_has_fairseqs_masks(release, blocks):
    data = opened(blocks, release)
    found = updates(data, 2, batch_size=data.examples)
    assert found == [Counter(expected(blocks, release, epoch)) for epoch in (1, 2)]


def test_masks_are_the_same_from_any_point_of_an_epoch(blocks):
    data = opened(blocks, whole_word_mask=True)
    steps = 3 * data.examples // 8
    whole = updates(data, steps, batch_size=8)
    loader = Loader(Rows(data, data), form=RowForm(), open_files=2, seed=SEED, batch_size=8)
    positions = [next(loader).position for _ in range(steps)]
    loader.close()
    for stop in (1, steps // 2, steps - 2):
        rest = updates(data, steps - stop, batch_size=8, position=positions[stop - 1], first_update=stop)
        assert rest == whole[stop:], stop


def test_flat_batches_have_every_mask_of_whole_words(blocks):
    data = opened(blocks, whole_word_mask=True)
    rows = Rows(data, data)
    loader = Loader(rows, form=make_form(rows, batch_size=data.examples), batch_size=data.examples, seed=SEED)
    (batch,) = next(loader).batches
    loader.close()
    wanted = expected(blocks, "fairseq", 1, whole=True)
    assert int((batch.masked_lm_weights > 0).sum()) == sum(len(positions) for _, positions, _ in wanted)


@pytest.mark.thorough
@pytest.mark.usefixtures("one_thread")
def test_a_run_that_is_resumed_has_the_same_bits(trainer, blocks, tmp_path):
    flags = [
        "--masking=fairseq",
        "--masked-lm-prob=0.2",
        "--steps=6",
        f"--eval-data={blocks}",
        "--batch-size=16",
    ]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    outcome = trainer(*words(blocks, whole, *flags))
    assert outcome.status == 0, outcome.err
    assert "masked anew in each epoch" in outcome.err
    assert trainer(*words(blocks, parts, *flags, "--steps-this-run=4")).status == 0
    assert trainer(*words(blocks, parts, *flags, "--resume")).status == 0
    assert losses(parts) == losses(whole)
    assert tensors(parts, 6) == tensors(whole, 6)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--max-predictions-per-seq=5"],
            "is 5, expected 10 or more, or none: masking fairseq-0.12 has no limit of masks",
        ),
        (["--mask-counts=drawn"], "mask_counts is drawn, expected fixed: masking fairseq-0.12"),
        (
            ["--masked-lm-prob-end=0.5", "--masked-lm-prob-schedule=linear", "--max-predictions-per-seq=10"],
            "is 10, expected 33 or more, or none: masking fairseq-0.12 has no limit",
        ),
    ],
)
def test_the_trainer_refuses_what_fairseq_does_not_have(flags, message, trainer, blocks, tmp_path):
    run = words(blocks, tmp_path / "run", "--masking=fairseq-0.12", *flags)
    refuse(trainer(*run), 2, message)


def test_the_trainer_refuses_another_programs_dictionary(trainer, block_set, tmp_path):
    run = words(block_set, tmp_path / "run", "--masking=fairseq")
    refuse(trainer(*run), 2, "masking fairseq needs fairseq's dictionary, with cls 0, pad 1, sep 2, unk 3")


def test_the_face_refuses_masking_and_epochs_that_are_not(blocks):
    data = bertdata.open_dataset(str(blocks))
    with pytest.raises(
        SettingsError, match="masking is 'fairsec', expected one of dynamic, fairseq, fairseq-0.12"
    ):
        data.masked(masking="fairsec")
    with pytest.raises(SettingsError, match="epoch is 0, expected 1 or more"):
        data.masked(masking="fairseq", epoch=0)


def test_a_changing_rate_has_room_for_its_largest(blocks):
    keys = {"masked_lm_prob": 0.1, "masked_lm_prob_end": 0.5, "masked_lm_prob_schedule": "steps", "steps": 4}
    data = opened(blocks, masked_lm_prob_steps=2, **keys)
    assert data.layout.max_predictions_per_seq == 33
    found = updates(data, 4, batch_size=64)
    shares = [
        sum(len(places) * count for (_, places, _), count in one.items())
        / sum(len(ids) * count for (ids, *_), count in one.items())
        for one in found
    ]
    assert shares == pytest.approx([0.1, 0.1, 0.5, 0.5], abs=0.02)


def test_shards_opened_by_pattern_count_their_own_examples(blocks):
    """fairseq numbers the examples of the dataset that is given."""
    last = [shard.path for shard in open_dataset(str(blocks)).shards][-1]
    alone = bertdata.open_dataset(last).masked(masking="fairseq", seed=SEED)
    within = list(bertdata.open_dataset(str(blocks)).masked(masking="fairseq", seed=SEED))[-len(alone) :]
    assert [one.positions for one in alone] != [one.positions for one in within]
    np.testing.assert_array_equal([len(one.ids) for one in alone], [len(one.ids) for one in within])
