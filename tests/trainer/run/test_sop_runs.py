"""Runs on ALBERT's examples: the order of segments is learned as the next sentence is, masks at load too."""

from pathlib import Path
from typing import Any

import pytest

from bertdata.cli.main import main as bertdata_main
from tests.support.fine_tuning import evaluations
from tests.support.training_runs import losses, refuse, tensors, words

pytestmark = pytest.mark.usefixtures("one_thread")

FORMS = [
    (),
    *(pytest.param((form,), marks=pytest.mark.thorough) for form in ("--rows", "--bins=2", "--pack-on-load")),
]
DYNAMIC = ("--masking=dynamic", "--whole-word-mask")


def make(corpus: list[Path], vocabulary: Path, place: Path, *flags: str) -> Path:
    given = ["create", *map(str, corpus), f"--output={place}", f"--vocab={vocabulary}", "--workers=1"]
    sizes = ["--objective=sop", "--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=2"]
    assert bertdata_main([*given, *sizes, *flags]) == 0
    return place


@pytest.fixture(scope="module")
def masked_set(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> Path:
    return make(corpus, small_vocabulary_file, tmp_path_factory.mktemp("sop") / "set")


@pytest.fixture(scope="module")
def unmasked_set(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> Path:
    """The same examples without masks."""
    return make(corpus, small_vocabulary_file, tmp_path_factory.mktemp("sop") / "bare", "--no-masks")


@pytest.mark.parametrize("form", FORMS)
def test_it_trains_is_evaluated_and_resumed_to_the_bit(trainer, masked_set, tmp_path, form):
    run = words(masked_set, tmp_path / "a", "--steps=4", f"--eval-data={masked_set}", *form)
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert all(0 < row["mlm_loss"] < 9 and 0 < row["nsp_loss"] < 2 for row in losses(tmp_path / "a"))
    (evaluated,) = evaluations(tmp_path / "a")
    assert 0.3 < evaluated["next_sentence_accuracy"] < 0.7
    cut = words(masked_set, tmp_path / "b", "--steps=4", *form)
    assert trainer(*cut, "--steps-this-run=2").status == 0
    assert trainer(*cut, "--resume").status == 0
    assert tensors(tmp_path / "b", 4) == tensors(tmp_path / "a", 4)


@pytest.mark.parametrize("form", FORMS)
def test_masks_at_load_are_the_same_whether_examples_were_masked_or_not(
    trainer, masked_set, unmasked_set, tmp_path, form
):
    for name, data in {"masked": masked_set, "unmasked": unmasked_set}.items():
        outcome = trainer(*words(data, tmp_path / name, *DYNAMIC, "--steps=4", *form))
        assert outcome.status == 0, outcome.err
        assert "masked anew in each epoch" in outcome.err
    assert losses(tmp_path / "unmasked") == losses(tmp_path / "masked")
    assert losses(tmp_path / "masked")[0]["mlm_loss"] > 0


def test_it_goes_on_from_bert_and_bert_from_it(trainer, masked_set, training_set, pretrained, tmp_path):
    """One task learns both: their labels are one bit of two segments."""
    outcome = trainer(*words(masked_set, tmp_path / "a", f"--start-from-ckpt={pretrained}", "--steps=3"))
    assert outcome.status == 0, outcome.err
    data = (f"--train-data-phase1={masked_set}", f"--train-data-phase2={training_set}", "--warmup=0")
    outcome = trainer(*words(None, tmp_path / "b", *data, "--steps=2"))
    assert outcome.status == 0, outcome.err


def test_shards_without_masks_are_refused_where_masks_are_read(trainer, unmasked_set, tmp_path):
    refuse(trainer(*words(unmasked_set, tmp_path / "run", "--steps=2", "--warmup=0")), 2, "no masks")


def test_generated_data_of_this_objective_are_refused_in_one_line(trainer, tmp_path):
    more = ("--generated-data", "--vocab-size=200", "--objective=sop", "--steps=2", "--warmup=0")
    refuse(trainer(*words(None, tmp_path / "run", *more)), 2, "generated data have no word starts")
