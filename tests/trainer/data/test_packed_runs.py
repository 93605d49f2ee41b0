"""Runs on packed rows of every layout, and on rows packed at load: losses, resuming, refusals."""

from pathlib import Path

import pytest

from bertdata.dataset.reader import open_dataset
from bertdata.steps.pack import pack
from tests.support.training_runs import losses, refuse, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state

pytestmark = pytest.mark.usefixtures("one_thread")

STILL = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0", "--steps=1", "--warmup=0")
LAYOUTS = ("flat", "habana", "graphcore", "nvidia")
AT_LOAD = ("--pack-on-load", "--pack-window=100", "--checkpoint-every=5")


@pytest.fixture(scope="module")
def packed_sets(training_set, tmp_path_factory) -> dict[str, Path]:
    """The training set in packed rows, by layout."""
    found = {}
    for layout in LAYOUTS:
        found[layout] = tmp_path_factory.mktemp(layout) / "set"
        pack(str(training_set), str(found[layout]), layout=layout)
    return found


@pytest.fixture(scope="module")
def unpacked_loss(training_set, tmp_path_factory) -> dict[str, float]:
    """The losses of one update of the whole set, one example a row."""
    from trainer.__main__ import main

    place = tmp_path_factory.mktemp("unpacked") / "run"
    count = open_dataset(str(training_set)).examples
    assert main(words(training_set, place, *STILL, f"--batch-size={count}")) == 0
    return losses(place)[0]


@pytest.mark.parametrize("rows", [False, True], ids=["flat", "rows"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.thorough_after_first
def test_an_update_of_the_whole_set_has_the_same_losses_packed(
    trainer, packed_sets, unpacked_loss, tmp_path, layout, rows
):
    """Every layout is read into the same sequences, and their losses do not depend on the packing."""
    data = open_dataset(str(packed_sets[layout]))
    count = sum(shard.rows for shard in data.shards)
    assert count < data.examples
    flags = [f"--batch-size={count}", "--packed-accumulation=rows", f"--rows={str(rows).lower()}"]
    outcome = trainer(*words(packed_sets[layout], tmp_path, *STILL, *flags))
    assert outcome.status == 0, outcome.err
    assert (
        f"{count} packed rows x {data.examples / count:.3f} (on average) = {data.examples} ex" in outcome.err
    )
    found = losses(tmp_path)[0]
    for name in ("mlm_loss", "nsp_loss", "mlm_acc", "nsp_acc"):
        assert found[name] == pytest.approx(unpacked_loss[name], rel=1e-5), name


def test_an_update_of_sequences_is_made_of_fewer_rows(trainer, packed_sets, training_set, tmp_path):
    run = words(
        packed_sets["flat"], tmp_path, "--batch-size=8", "--accumulation=4", "--steps=3", "--warmup=0"
    )
    outcome = trainer(*run, f"--eval-data={packed_sets['habana']}")
    assert outcome.status == 0, outcome.err
    data = open_dataset(str(packed_sets["flat"]))
    per_row = data.examples / sum(shard.rows for shard in data.shards)
    assert read_state(find_checkpoints(str(tmp_path))[3]).trained == pytest.approx(
        3 * 32, abs=3 * 2 * per_row
    )
    assert f"evaluates on {packed_sets['habana']}: {data.examples} examples" in outcome.err
    assert f"evaluating on {data.examples} examples" in outcome.err


def test_rows_packed_at_load_are_resumed_bit_for_bit(trainer, training_set, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert trainer(*words(training_set, whole, *AT_LOAD)).status == 0
    run = words(training_set, cut, *AT_LOAD)
    assert trainer(*run, "--steps-this-run=7").status == 0
    epoch, window, rows = read_state(find_checkpoints(str(cut))[7]).position
    assert (epoch, window % 100) == (0, 0)
    assert rows > 0, "it stops within a window"
    assert trainer(*run, "--resume").status == 0
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)
    refuse(trainer(*words(training_set, cut, "--steps=12"), "--resume"), 1, "belongs to another run",
           "its order is packed at load, 100 examples together", "this one's as stored")  # fmt: skip
    refuse(trainer(*run, "--pack-window=90", "--steps=12", "--resume"), 1, "90 examples together")


@pytest.mark.thorough
def test_two_workers_and_one_that_accumulates_train_alike_on_rows_packed_at_load(training_set, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    assert start_workers("alone", 1, *words(training_set, one, *AT_LOAD, "--accumulation=4")).status == 0
    run = words(training_set, two, *AT_LOAD, "--accumulation=2")
    assert start_workers("torchrun", 2, *run).status == 0
    for alone, shared in zip(losses(one), losses(two), strict=True):
        assert shared == pytest.approx(alone, rel=1e-5)


def test_packed_data_are_not_packed_at_load(trainer, packed_sets, tmp_path):
    outcome = trainer(*words(packed_sets["nvidia"], tmp_path, "--pack-on-load"))
    refuse(outcome, 2, f"{packed_sets['nvidia']}: its rows are packed already (layout nvidia)")
    assert not (tmp_path / "checkpoints").exists()
