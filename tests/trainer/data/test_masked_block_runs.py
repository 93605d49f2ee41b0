"""Runs on masked blocks in flat packs, and with masks drawn at load: as unpacked, as masked, resumed."""

import json
from pathlib import Path

import pytest

from bertdata.dataset.reader import open_dataset
from bertdata.steps.pack import pack
from tests.support.fine_tuning import evaluations
from tests.support.training_runs import losses, refuse, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints

pytestmark = pytest.mark.usefixtures("one_thread")

STILL = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0", "--steps=1", "--warmup=0")
DYNAMIC = "--masking=dynamic"


@pytest.fixture(scope="module")
def packed_set(block_set, tmp_path_factory) -> Path:
    """The masked blocks in rows of several."""
    place = tmp_path_factory.mktemp("packed") / "set"
    pack(str(block_set), str(place), layout="flat")
    return place


@pytest.fixture(scope="module")
def unmasked_set(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """The blocks of block_set without masks."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("unmasked") / "set"
    sizes = ["--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1", "--workers=1"]
    kind = ["--objective=mlm", "--no-masks", f"--vocab={small_vocabulary_file}", f"--output={place}"]
    assert main(["create", *map(str, corpus), *kind, *sizes]) == 0
    return place


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [False, True], ids=["flat", "rows"])
def test_an_update_of_the_whole_set_has_the_same_losses_packed(
    trainer, block_set, packed_set, tmp_path, rows
):
    data = open_dataset(str(packed_set))
    count = sum(shard.rows for shard in data.shards)
    assert count < 0.8 * data.examples
    flags = ("--packed-accumulation=rows", f"--rows={str(rows).lower()}", f"--eval-data={packed_set}")
    run = words(packed_set, tmp_path / "packed", *STILL, f"--batch-size={count}", *flags)
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert f"= {data.examples} ex" in outcome.err
    run = words(block_set, tmp_path / "blocks", *STILL, f"--batch-size={data.examples}")
    assert trainer(*run, f"--eval-data={block_set}").status == 0
    (found,), (wanted,) = losses(tmp_path / "packed"), losses(tmp_path / "blocks")
    assert found == pytest.approx(wanted, rel=1e-5)
    (found,), (wanted,) = evaluations(tmp_path / "packed"), evaluations(tmp_path / "blocks")
    assert found == pytest.approx(wanted, rel=1e-5)


def test_flat_packs_are_resumed_bit_for_bit(trainer, packed_set, tmp_path):
    assert trainer(*words(packed_set, tmp_path / "whole", "--steps=4")).status == 0
    run = words(packed_set, tmp_path / "cut", "--steps=4")
    assert trainer(*run, "--steps-this-run=2").status == 0
    assert trainer(*run, "--resume").status == 0
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert tensors(tmp_path / "cut", 4) == tensors(tmp_path / "whole", 4)


@pytest.mark.parametrize("form", [(), ("--rows",), ("--bins=2",), ("--pack-on-load", "--pack-window=100")])
def test_masks_at_load_are_the_same_whether_blocks_were_masked_or_not(
    trainer, block_set, unmasked_set, tmp_path, form
):
    for name, data in {"masked": block_set, "unmasked": unmasked_set}.items():
        outcome = trainer(*words(data, tmp_path / name, DYNAMIC, "--steps=4", *form))
        assert outcome.status == 0, outcome.err
        assert "masked anew in each epoch" in outcome.err
    assert losses(tmp_path / "unmasked") == losses(tmp_path / "masked")
    assert losses(tmp_path / "masked")[0]["mlm_loss"] > 0


def test_blocks_without_masks_need_masks_at_load(trainer, unmasked_set, tmp_path):
    refuse(trainer(*words(unmasked_set, tmp_path / "run")), 2, "no masks; --masking dynamic draws them")


@pytest.mark.thorough
def test_two_workers_draw_the_masks_that_one_does_and_go_on_to_the_bit(
    trainer, unmasked_set, tmp_path, monkeypatch
):
    one, two, cut = (tmp_path / name for name in ("one", "two", "cut"))
    more = (DYNAMIC, f"--eval-data={unmasked_set}", "--checkpoint-every=5")
    assert trainer(*words(unmasked_set, one, *more, "--accumulation=2")).status == 0
    outcome = start_workers("torchrun", 2, *words(unmasked_set, two, *more))
    assert outcome.status == 0, outcome.err
    for ours, others in zip(losses(two), losses(one), strict=True):
        assert ours == pytest.approx(others, abs=1e-5)
    (ours,), (others,) = evaluations(two), evaluations(one)
    assert ours == pytest.approx(others, abs=1e-5)

    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 0, "update": 8}))
    run = words(unmasked_set, cut, *more)
    assert start_workers("torchrun", 2, *run).status != 0
    assert list(find_checkpoints(str(cut))) == [5]
    monkeypatch.delenv("TRAINER_ACCIDENT")
    assert start_workers("torchrun", 2, *run, "--resume").status == 0
    assert losses(cut) == losses(two)
    assert tensors(cut, 10) == tensors(two, 10)
    assert evaluations(cut) == evaluations(two)
