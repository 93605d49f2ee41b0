"""Runs on masked blocks, which have no next sentence: trained, resumed, evaluated, refused."""

import csv
import json
from pathlib import Path

import pytest

from bertdata.examples.groups import count_masks
from tests.support.training_runs import refuse, tensors, words
from trainer.__main__ import main
from trainer.checkpoints.safetensors_files import read_safetensors
from trainer.config.flags import make_config, make_configs
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.opening import open_configured

STEPS = 6


@pytest.fixture(scope="module")
def whole(block_set, tmp_path_factory) -> Path:
    """A run of six updates, evaluated at its end."""
    place = tmp_path_factory.mktemp("blocks") / "run"
    assert main(words(block_set, place, f"--steps={STEPS}", f"--eval-data={block_set}")) == 0
    return place


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_model_has_no_pooler_and_no_next_sentence_head(whole):
    names = read_safetensors(str(whole / "checkpoints" / f"step-{STEPS:08d}" / "model.safetensors"))
    assert not [name for name in names if "pooler" in name or "seq_relationship" in name]
    assert "cls.predictions.transform.dense.weight" in names


def test_tables_have_the_columns_of_masked_words_alone(whole):
    training = rows(whole / "training.csv")
    assert len(training) == STEPS
    assert not [name for name in training[0] if name.startswith("nsp")]
    assert all(0 < float(row["mlm_loss"]) < 9 for row in training)
    (evaluation,) = rows(whole / "evaluation.csv")
    assert float(evaluation["loss"]) == float(evaluation["masked_lm_loss"]) > 0
    assert not [name for name in evaluation if "next_sentence" in name]


@pytest.mark.parametrize("form", [(), ("--rows",), ("--bins=2",), ("--pack-on-load",)])
@pytest.mark.thorough_after_first
def test_resumed_is_the_same_as_never_stopped(trainer, block_set, tmp_path, form):
    run = words(block_set, tmp_path / "a", f"--steps={STEPS}", *form)
    assert trainer(*run).status == 0
    cut = words(block_set, tmp_path / "b", f"--steps={STEPS}", *form)
    assert trainer(*cut, "--steps-this-run=3").status == 0
    assert trainer(*cut, "--resume").status == 0
    assert tensors(tmp_path / "b", STEPS) == tensors(tmp_path / "a", STEPS)


def test_rows_and_flat_batches_have_the_same_losses(trainer, whole, block_set, tmp_path):
    """Without dropout, which draws for padding too."""
    still = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0", "--steps=2", "--warmup=0")
    for name, form in {"flat": [], "rows": ["--rows"]}.items():
        assert trainer(*words(block_set, tmp_path / name, *still, *form)).status == 0
    flat, padded = (
        [float(row["mlm_loss"]) for row in rows(tmp_path / name / "training.csv")]
        for name in ("flat", "rows")
    )
    assert flat == pytest.approx(padded, rel=1e-5)


def test_a_run_is_evaluated_on_its_own_and_words_are_guessed(trainer, whole, block_set, tmp_path):
    outcome = trainer("evaluate", f"--eval-data={block_set}", f"--output-dir={whole}", "--device=cpu")
    assert outcome.status == 0
    (expected,) = rows(whole / "evaluation.csv")
    assert f"masked_lm_accuracy {float(expected['masked_lm_accuracy']):.5f}" in outcome.err
    guesses = json.loads(trainer("predict", whole, "a [MASK] of stone", "--json").out)
    assert [len(one) for one in guesses] == [5]


def test_data_with_next_sentences_are_refused_for_such_a_model(trainer, whole, training_set):
    outcome = trainer("evaluate", f"--eval-data={training_set}", f"--output-dir={whole}", "--device=cpu")
    refuse(outcome, 1, "has no next-sentence head, since it was trained on masked words alone")


def test_a_model_with_both_heads_goes_on_with_masked_words_alone(trainer, pretrained, block_set, tmp_path):
    run = words(block_set, tmp_path / "run", f"--start-from-ckpt={pretrained}", "--steps=2", "--warmup=0")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    names = read_safetensors(str(tmp_path / "run" / "checkpoints" / "step-00000002" / "model.safetensors"))
    assert not [name for name in names if "seq_relationship" in name]


def test_phases_that_learn_different_tasks_are_refused(trainer, training_set, block_set, tmp_path):
    data = [f"--train-data-phase1={training_set}", f"--train-data-phase2={block_set}"]
    outcome = trainer(*words(None, tmp_path / "run", *data, "--steps=2", "--warmup=0"))
    refuse(outcome, 2, "one run learns one task", "set by pretraining", "set by masked_words")


def test_other_evaluation_data_than_the_training_datas_are_refused(
    trainer, training_set, block_set, tmp_path
):
    outcome = trainer(*words(block_set, tmp_path / "run", f"--eval-data={training_set}"))
    refuse(outcome, 2, "has the objective bert, learned by the task pretraining; here it is masked_words")


def test_generated_data_have_the_objective_that_is_asked_for(trainer, tmp_path):
    more = ("--generated-data", "--vocab-size=200", "--steps=2", "--warmup=0")
    assert trainer(*words(None, tmp_path / "run", *more, "--objective=mlm")).status == 0
    assert "nsp_loss" not in rows(tmp_path / "run" / "training.csv")[0]
    outcome = trainer(*words(None, tmp_path / "other", *more, "--objective=squad"))
    refuse(outcome, 2, "has the objective squad: that is learned by python -m trainer finetune")


@pytest.fixture(scope="module")
def bare_set(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """The blocks without masks."""
    from bertdata.cli.main import main as bertdata

    place = tmp_path_factory.mktemp("bare") / "set"
    given = ["create", *map(str, corpus), f"--output={place}", f"--vocab={small_vocabulary_file}"]
    more = ["--objective=mlm", "--no-masks", "--max-seq-length=64", "--max-predictions-per-seq=30"]
    assert bertdata([*given, *more, "--workers=1"]) == 0
    return place


@pytest.mark.parametrize("form", [(), ("--rows",), ("--pack-on-load",)])
def test_masks_at_load_are_resumed_to_the_bit(trainer, bare_set, tmp_path, form):
    more = (f"--steps={STEPS}", "--masking=dynamic", "--masked-lm-prob=0.3", *form)
    assert trainer(*words(bare_set, tmp_path / "a", *more)).status == 0
    cut = words(bare_set, tmp_path / "b", *more)
    assert trainer(*cut, "--steps-this-run=3").status == 0
    assert trainer(*cut, "--resume").status == 0
    assert tensors(tmp_path / "b", STEPS) == tensors(tmp_path / "a", STEPS)


def test_blocks_without_masks_need_masks_at_load(trainer, bare_set, tmp_path):
    outcome = trainer(*words(bare_set, tmp_path / "run"))
    refuse(outcome, 2, "its examples have no masks; --masking dynamic draws them")


@pytest.mark.parametrize(("given", "expected"), [((), 0.3), (("--eval-masked-lm-prob=0.15",), 0.15)])
def test_evaluation_data_are_masked_at_their_own_rate(bare_set, given, expected):
    more = ("--masking=dynamic", "--masked-lm-prob=0.3", f"--train-data={bare_set}", *given)
    config = make_config(more)
    data = open_configured(config, str(bare_set), held_out=True)
    batches = [batch for shard in data.shards for batch in data.batches(shard)]
    masked = sum(count_masks(batch) for batch in batches) / sum(len(batch.ids) for batch in batches)
    assert masked == pytest.approx(expected, abs=0.02)
    training = open_configured(config, str(bare_set))
    batches = [batch for shard in training.shards for batch in training.batches(shard)]
    masked = sum(count_masks(batch) for batch in batches) / sum(len(batch.ids) for batch in batches)
    assert masked == pytest.approx(0.3, abs=0.02)


def test_a_model_of_one_segment_type_refuses_pairs_of_segments(trainer, training_set, block_set, tmp_path):
    said = ("type_vocab_size is 1, but the examples of", "have two segments")
    refuse(trainer(*words(training_set, tmp_path / "run", "--type-vocab-size=1")), 2, *said)
    run = (tmp_path / "blocks", "--steps=1", "--warmup=0", "--type-vocab-size=1")
    assert trainer(*words(block_set, *run)).status == 0
    refuse(trainer("evaluate", f"--eval-data={training_set}", f"--output-dir={run[0]}"), 2, *said)


def test_budgets_count_the_masks_of_blocks(block_set):
    data = open_configured(make_config([f"--train-data={block_set}"]), str(block_set))
    small, *_, whole = make_form(Rows(data), batch_size=8).budgets.budgets
    assert whole.masks == 8 * data.layout.max_predictions_per_seq
    assert small.masks < whole.masks
    assert small.tokens < whole.tokens


def test_each_phase_has_its_own_rate_and_shares(bare_set):
    mask = (bare_set / "vocab.txt").read_text(encoding="utf-8").split("\n").index("[MASK]")
    given = [f"--train-data={bare_set}", "--masking=dynamic", "--masked-lm-prob", "0.3", "0.15"]
    only_masks = ["--mask-share", "0.8", "1", "--random-share", "0.1", "0", "--kept-share", "0.1", "0"]
    rates, replaced = [], []
    for config in make_configs([*given, *only_masks]):
        data = open_configured(config, str(bare_set))
        batches = [batch for shard in data.shards for batch in data.batches(shard)]
        masked = sum(count_masks(batch) for batch in batches)
        rates.append(masked / sum(len(batch.ids) for batch in batches))
        replaced.append(sum(int((batch.ids == mask).sum()) for batch in batches) / masked)
    assert rates == [pytest.approx(0.3, abs=0.02), pytest.approx(0.15, abs=0.02)]
    assert replaced[0] == pytest.approx(0.8, abs=0.05)
    assert replaced[1] == 1
