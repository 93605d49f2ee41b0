"""Masks drawn at load: the same for any workers, batch, form and stop; refused where they cannot be drawn."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertdata
from bertdata.cli.main import main
from bertdata.dataset.masked_data import MaskedData
from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.dynamic_masking.counter_stream import derive_shard_key
from bertdata.examples.dynamic_masking.masker import Draws, make_masker, remove_masks
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.io.file_check import HashingSink
from bertdata.shards.packed.layouts import make_pack_writer
from bertdata.shards.packed.packs import PackBatch
from bertdata.tokens.load import load_vocabulary
from tests.support.sample_sets import create_mixed
from tests.support.training_runs import Trainer, errors, losses, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.sections.masking import MaskingSection
from trainer.config.settings import Config
from trainer.data.batches import FlatBatch
from trainer.data.bins import RowsFromBins
from trainer.data.budgets import sample_sizes
from trainer.data.dynamic_masks import MaskRate, UnmaskedData
from trainer.data.evaluation import load_evaluation_batches
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.load_packing import RowsPackedAtLoad
from trainer.data.loader import Loader
from trainer.data.opening import describe_phase, open_configured, prepare_for_training
from trainer.data.packs import PackRows
from trainer.data.padded_rows import RowForm
from trainer.data.row_batches import RowBatch
from trainer.tasks.pretraining import Pretraining

LENGTH, PREDICTIONS, SEED = 64, 10, 42
Masked = tuple[bytes, bytes, bytes]
"""An example's ids, masked positions and labels."""


@pytest.fixture(scope="module")
def datasets(tmp_path_factory, corpus, small_vocabulary_file) -> dict[str, Path]:
    """The sample corpus's three shards, masked and not, in two containers."""
    made = {}
    for container in ("tfrecord", "hdf5"):
        for name, more in (("masked", []), ("unmasked", ["--no-masks"])):
            place = tmp_path_factory.mktemp(f"{container}-{name}") / "set"
            flags = [f"--max-seq-length={LENGTH}", f"--max-predictions-per-seq={PREDICTIONS}"]
            flags += ["--dupe-factor=1", "--workers=1", f"--format={container}", *more]
            paths = ["--output", str(place), "--vocab", str(small_vocabulary_file)]
            assert main(["create", *map(str, corpus), *paths, *flags]) == 0
            made[f"{container}-{name}"] = place
    return made


def configured(place: object, **keys: Any) -> Config:
    return Config.of(train_data=str(place), masking="dynamic", **keys)


def opened(place: object, **keys: Any) -> UnmaskedData:
    """The data as training takes it."""
    config = configured(place, **keys)
    data = prepare_for_training(config, open_configured(config, str(place)))
    assert isinstance(data, UnmaskedData)
    return data


def rows_of(data: UnmaskedData) -> Rows:
    return Rows(data, data)


def masked_rows(batch: RowBatch) -> Iterator[Masked]:
    for row in range(len(batch)):
        if batch.next_sentence_labels[row] >= 0:
            used = batch.masked_lm_weights[row] > 0
            yield (
                batch.input_ids[row][batch.attention_mask[row] > 0].numpy().tobytes(),
                batch.masked_lm_positions[row][used].numpy().tobytes(),
                batch.masked_lm_ids[row][used].numpy().tobytes(),
            )


def masked_sequences(batch: FlatBatch) -> Iterator[Masked]:
    ends = batch.ends.numpy()
    used = batch.masked_lm_weights > 0
    rows, labels = batch.masked_lm_rows[used].numpy(), batch.masked_lm_ids[used].numpy()
    for sequence in range(int((batch.next_sentence_labels >= 0).sum())):
        start, end = ends[sequence], ends[sequence + 1]
        own = (rows >= start) & (rows < end)
        yield (
            batch.input_ids[start:end].numpy().tobytes(),
            (rows[own] - start).tobytes(),
            labels[own].tobytes(),
        )


def updates(
    data: UnmaskedData, count: int, form: Any = None, rows: Rows | None = None, **settings: Any
) -> list[Counter[Masked]]:
    """The examples of each update over all workers."""
    workers = settings.pop("workers", 1)
    each = {"batch_size": 2, "open_files": 2, "seed": SEED} | settings
    loaders = [
        Loader(rows or rows_of(data), form=form or RowForm(), workers=workers, rank=rank, **each)
        for rank in range(workers)
    ]
    found = []
    for _ in range(count):
        batches = [batch for loader in loaders for batch in next(loader).batches]
        read = [masked_rows(one) if isinstance(one, RowBatch) else masked_sequences(one) for one in batches]
        found.append(Counter(example for examples in read for example in examples))
    for loader in loaders:
        loader.close()
    return found


def expected(data: UnmaskedData, epoch: int, vocabulary: Path) -> Counter[Masked]:
    """All examples of an epoch, masked by the readable twin as the specification says."""
    masker = make_masker(
        load_vocabulary(str(vocabulary), "mlperf"),
        MaskingSettings(max_predictions_per_seq=PREDICTIONS),
        "python",
    )
    found = Counter[Masked]()
    for shard in data.shards:
        first = 0
        for batch in data.masked.source.batches(shard):
            assert isinstance(batch, BertBatch)
            count = len(batch)
            draws = Draws(
                keys=np.full(count, derive_shard_key(SEED, epoch, shard.name), np.uint64),
                numbers=np.arange(first, first + count, dtype=np.uint64),
                rates=np.full(count, 0.15),
            )
            for one in masker.mask_batch(remove_masks(batch), draws).examples():
                arrays = (np.array(values, np.int32) for values in (one.ids, one.positions, one.labels))
                ids, positions, labels = (array.tobytes() for array in arrays)
                found[ids, positions, labels] += 1
            first += count
    return found


@pytest.mark.parametrize("name", ["tfrecord-masked", "tfrecord-unmasked", "hdf5-masked", "hdf5-unmasked"])
def test_each_epoch_has_the_masks_that_the_twin_draws_for_it(name, datasets, small_vocabulary_file):
    data = opened(datasets[name], seed=SEED)
    counts = updates(data, 2, batch_size=data.examples)
    seen = [expected(data, epoch, small_vocabulary_file) for epoch in (0, 1)]
    assert counts == seen
    assert not seen[0] & seen[1]


def test_masks_do_not_depend_on_files_being_read_in_chunks(datasets, small_vocabulary_file):
    """An example's stream of random numbers follows from its place in the file, not in the chunk."""
    data = opened(datasets["tfrecord-unmasked"], seed=SEED)
    counts = updates(data, 2, batch_size=data.examples, open_files=3, chunk_rows=50)
    assert counts == [expected(data, epoch, small_vocabulary_file) for epoch in (0, 1)]


@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("rows", [True, False])
def test_masks_do_not_depend_on_workers_or_form(workers, rows, datasets):
    data = opened(datasets["tfrecord-unmasked"], seed=SEED)
    alone = updates(data, 12, batch_size=16)
    form = RowForm() if rows else make_form(rows_of(data), batch_size=2, micro_batches=8)
    assert updates(data, 12, form, workers=workers, accumulation=8 // workers) == alone


@pytest.mark.parametrize("make", [partial(RowsFromBins, bins=3), partial(RowsPackedAtLoad, window=200)])
def test_masks_do_not_depend_on_bins_or_packs(make, datasets, small_vocabulary_file):
    data = opened(datasets["tfrecord-unmasked"], seed=SEED)
    rows = make(data, data)
    loader = Loader(rows, form=make_form(rows, batch_size=4), batch_size=4, open_files=2, seed=SEED)
    found = Counter[Masked]()
    while True:
        update = next(loader)
        if update.position.epoch:
            break
        found.update(example for batch in update.batches for example in masked_sequences(batch))
    loader.close()
    assert found.total() > 0.8 * data.examples
    assert not found - expected(data, 0, small_vocabulary_file)


def test_masks_are_those_that_open_dataset_draws(datasets):
    place = datasets["tfrecord-unmasked"]
    data = opened(place, seed=SEED)
    (epoch,) = updates(data, 1, batch_size=data.examples)
    ours = Counter[Masked]()
    for one in bertdata.open_dataset(place).masked(seed=SEED):
        arrays = (np.array(values, np.int32) for values in (one.ids, one.positions, one.labels))
        ids, positions, labels = (array.tobytes() for array in arrays)
        ours[ids, positions, labels] += 1
    assert ours == epoch


def test_masked_examples_are_restored_first(datasets):
    found = [updates(opened(datasets[f"tfrecord-{name}"]), 9) for name in ("masked", "unmasked")]
    assert found[0] == found[1]


def test_training_resumes_with_the_same_masks(datasets):
    data = opened(
        datasets["tfrecord-masked"], masked_lm_prob_end=0.4, masked_lm_prob_schedule="linear", steps=40
    )
    whole = updates(data, 40, batch_size=8)
    loader = Loader(rows_of(data), form=RowForm(), batch_size=8, open_files=2, seed=SEED)
    positions = [(0, 0), *(next(loader).position for _ in range(40))]
    loader.close()
    for stop in np.random.default_rng(1).integers(1, 39, 6).tolist():
        rest = updates(data, 40 - stop, batch_size=8, position=positions[stop], first_update=stop)
        assert rest == whole[stop:], stop


def masks_of(examples: Counter[Masked]) -> int:
    return sum(len(positions) // 4 * count for (_, positions, _), count in examples.items())


def test_a_schedule_changes_the_number_of_masks(datasets):
    keys = {"masked_lm_prob": 0.4, "masked_lm_prob_end": 0.05, "max_predictions_per_seq": 40}
    schedule = {"masked_lm_prob_schedule": "steps", "masked_lm_prob_steps": 2, "steps": 8}
    counts = [masks_of(one) for one in updates(opened(datasets["tfrecord-masked"], **keys, **schedule), 10)]
    constant = {
        rate: [masks_of(one) for one in updates(opened(datasets["tfrecord-masked"], **again), 10)]
        for rate, again in ((0.4, keys | {"masked_lm_prob_end": None}), (0.05, {"masked_lm_prob": 0.05}))
    }
    assert counts == constant[0.4][:4] + constant[0.05][4:]


@pytest.mark.parametrize(
    ("schedule", "expected_rates"),
    [
        ("constant", [0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]),
        ("linear", [0.3, 0.27, 0.24, 0.21, 0.18, 0.15, 0.15]),
        ("cosine", [0.3, 0.285676, 0.248176, 0.201824, 0.164324, 0.15, 0.15]),
        ("steps", [0.3, 0.3, 0.225, 0.225, 0.15, 0.15, 0.15]),
    ],
)
def test_rates_go_from_the_first_to_the_last(schedule, expected_rates):
    end = None if schedule == "constant" else 0.15
    ends = {"masked_lm_prob": 0.3, "masked_lm_prob_end": end, "masked_lm_prob_steps": 3}
    rate = MaskRate(MaskingSection(masking="dynamic", masked_lm_prob_schedule=schedule, **ends), 6)
    assert [rate.at(update) for update in range(7)] == pytest.approx(expected_rates, abs=1e-6)
    assert rate.largest == 0.3


def test_packed_rows_have_masks_by_the_number_of_the_sequence(datasets, tmp_path, small_vocabulary_file):
    source = open_configured(Config.of(), str(datasets["tfrecord-masked"]))
    layout = replace(source.layout, packing="flat", sequences_per_row=2, max_seq_length=2 * LENGTH)
    batch = next(iter(source.batches(source.shards[0])))
    ends = np.array([*range(1, len(batch), 2), len(batch)], np.uint32)  # the first row has one example
    path = tmp_path / "packed.parquet"
    with path.open("wb") as file:
        writer = make_pack_writer(layout, "parquet", HashingSink(file.write))
        writer.write(PackBatch(examples=batch, ends=ends))
        writer.close()
    data = opened(path, seed=SEED, unverified=True, vocab=str(small_vocabulary_file))
    rows = sum(shard.rows or 0 for shard in data.shards)
    assert (data.examples, rows) == (len(batch), len(ends))
    packs = PackRows(data, data)
    found = updates(data, 2, make_form(packs, batch_size=rows), packs, batch_size=rows)
    assert found == [expected(data, epoch, small_vocabulary_file) for epoch in (0, 1)]


def test_masks_do_not_depend_on_packing_at_load(datasets):
    """An epoch in windows of packed rows has the masked examples that the plain order has."""
    data, found = opened(datasets["tfrecord-unmasked"]), []
    for rows in (rows_of(data), RowsPackedAtLoad(data, data, window=60)):
        form = make_form(rows, batch_size=1)
        loader, seen = Loader(rows, form=form, batch_size=1), Counter[Masked]()
        while sum(seen.values()) < data.examples:
            seen.update(example for batch in next(loader).batches for example in masked_sequences(batch))
        loader.close()
        found.append(seen)
    assert found[0] == found[1]


def test_more_slots_than_the_datasets_hold_more_masks(datasets):
    data = opened(datasets["tfrecord-unmasked"], masked_lm_prob=0.5, max_predictions_per_seq=32)
    (examples,) = updates(data, 1, batch_size=40)
    assert max(len(positions) // 4 for _, positions, _ in examples) == 32
    assert rows_of(data).sizes().masks_per_token == pytest.approx(0.5, abs=0.02)


def test_budgets_count_the_masks_that_will_be_drawn(datasets):
    static = sample_sizes(open_configured(Config.of(), str(datasets["tfrecord-masked"])))
    dynamic = rows_of(opened(datasets["tfrecord-unmasked"])).sizes()
    assert dynamic.masks_per_token == pytest.approx(static.masks_per_token)
    assert (dynamic.lengths == static.lengths).all()


def test_evaluation_on_unmasked_examples_has_the_same_masks_each_time(datasets):
    place = str(datasets["tfrecord-unmasked"])
    data = open_configured(configured(place), place)
    assert type(data) is MaskedData

    def evaluated(batch_size: int) -> Counter[Masked]:
        batches = load_evaluation_batches(data, form=RowForm(), batch_size=batch_size)
        return Counter(example for batch in batches for example in masked_rows(batch))

    assert evaluated(5) == evaluated(32)
    assert masks_of(evaluated(5)) > data.examples


def test_evaluation_on_masked_examples_keeps_their_masks(datasets):
    place = str(datasets["tfrecord-masked"])
    assert type(open_configured(configured(place), place)) is OpenedDataset


# Configuration and command


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"mask_share": 0.9},
            "mask_share 0.9, random_share 0.1, kept_share 0.1: their sum is 1.1, expected 1",
        ),
        (
            {"masked_lm_prob_end": 0.1},
            "masked_lm_prob_end needs a masked_lm_prob_schedule other than constant",
        ),
        ({"masked_lm_prob_schedule": "cosine"}, "masked_lm_prob_schedule cosine needs masked_lm_prob_end"),
        ({"masked_lm_prob": 1.5}, "masked_lm_prob is 1.5, expected"),
        ({"masked_lm_prob": 0.0}, "masked_lm_prob is 0.0, expected"),
        ({"mask_counts": "some"}, "mask_counts is 'some', expected"),
    ],
)
def test_settings_that_cannot_be_are_refused(keys, message, trainer, tmp_path):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in keys.items()]
    outcome = trainer(*words(tmp_path, tmp_path / "run", "--masking=dynamic", *flags))
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert message.split(", expected")[0].split("'")[0] in outcome.err


@pytest.fixture
def trainer(capsys) -> Trainer:
    return Trainer(capsys)


def test_keys_of_dynamic_masks_are_idle_with_static_ones():
    assert "mask_share" in MaskingSection().list_idle_keys()
    assert MaskingSection(masking="dynamic").list_idle_keys() == []


def test_unmasked_examples_need_dynamic_masks(datasets, trainer, tmp_path):
    outcome = trainer(*words(datasets["tfrecord-unmasked"], tmp_path / "run"))
    assert outcome.status == 2
    (line,) = errors(outcome) or [outcome.err]
    assert "its examples have no masks; --masking dynamic draws them" in line


def test_dynamic_masks_need_a_vocabulary(datasets, trainer, tmp_path):
    shard = datasets["hdf5-unmasked"] / "part-00000-of-00003.hdf5"
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / shard.name).write_bytes(shard.read_bytes())
    flags = ["--unverified", "--vocab-size=4000", "--masking=dynamic"]
    outcome = trainer(*words(tmp_path / "alone", tmp_path / "run", *flags))
    assert outcome.status == 2
    assert "masking dynamic needs its vocabulary, which is not beside the data; give --vocab" in outcome.err


@pytest.mark.usefixtures("one_thread")
def test_the_trainer_learns_with_dynamic_masks_and_resumes_exactly(datasets, trainer, tmp_path):
    flags = ["--masking=dynamic", "--masked-lm-prob=0.3", "--max-predictions-per-seq=20", "--whole-word-mask"]
    schedule = ["--masked-lm-prob-end=0.15", "--masked-lm-prob-schedule=linear"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    data = datasets["tfrecord-unmasked"]
    outcome = trainer(*words(data, whole, *flags, *schedule))
    assert outcome.status == 0, outcome.err
    assert ", masked anew in each epoch" in outcome.err
    assert trainer(*words(data, parts, *flags, *schedule, "--steps-this-run=4")).status == 0
    assert trainer(*words(data, parts, *flags, *schedule, "--resume")).status == 0
    assert losses(parts) == losses(whole)
    assert tensors(parts, 10) == tensors(whole, 10)


@pytest.mark.thorough
@pytest.mark.usefixtures("one_thread")
def test_a_changing_rate_reaches_its_end_with_the_last_update_of_the_epochs(datasets, trainer, tmp_path):
    flags = ("--masking=dynamic", "--max-predictions-per-seq=20", "--masked-lm-prob=0.3")
    flags += ("--masked-lm-prob-end=0.1", "--masked-lm-prob-schedule=linear", "--batch-size=40")
    counted, given = tmp_path / "counted", tmp_path / "given"
    data = datasets["tfrecord-unmasked"]
    arguments = [word for word in words(data, counted, *flags) if not word.startswith("--steps=")]
    assert trainer(*arguments, "--num-train-epochs=1").status == 0
    (steps,) = find_checkpoints(str(counted))
    assert steps > 3
    assert trainer(*words(data, given, *flags, f"--steps={steps}")).status == 0
    assert losses(counted) == losses(given)


def test_masks_drawn_at_load_know_the_files_that_are_left_out(corpus, small_vocabulary_file, tmp_path):
    mixed = create_mixed(corpus, small_vocabulary_file, tmp_path)
    config = Config.of(train_data=str(mixed), masking="dynamic")
    data = prepare_for_training(config, Pretraining().open(config, str(mixed)))
    assert ", masked anew in each epoch, without 1 file of test text" in describe_phase(config, data)
