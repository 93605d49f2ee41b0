"""Runs in Hugging Face form: evaluated, asked for words, and trained on."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.support.training_runs import assert_torch_is_missing, losses, refuse, run_without_torch, words
from trainer.checkpoints.checkpoint import find_checkpoints

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run(training_set, tmp_path_factory) -> Path:
    """A run of four updates, with two checkpoints."""
    from trainer.__main__ import main

    place = tmp_path_factory.mktemp("evaluated") / "run"
    assert main(words(training_set, place, "--steps=4", "--checkpoint-every=2", "--no-logs")) == 0
    return place


def warned(outcome) -> list[str]:
    """The warnings, without those about [UNK]."""
    lines = [line for line in outcome.err.splitlines() if "trainer: warning: " in line]
    return [line for line in lines if "[UNK]" not in line]


def test_a_cased_model_on_lower_cased_text_warns(trainer, run, training_set, tmp_path):
    """Of another program's model its vocabulary tells, where nothing else does."""
    form = tmp_path / "bert"
    assert trainer("convert", run, form).status == 0
    given = (f"--eval-data={training_set}", f"--output-dir={tmp_path / 'out'}", f"--start-from-ckpt={form}")
    assert warned(trainer("evaluate", *given)) == []
    (form / "tokenizer_config.json").unlink()
    assert warned(trainer("evaluate", *given)) == []
    tokens = (form / "vocab.txt").read_text(encoding="utf-8").splitlines()
    cased = [token.title() if token.isalpha() and len(token) > 3 else token for token in tokens]
    (form / "vocab.txt").write_text("\n".join(cased) + "\n", encoding="utf-8")
    casing, vocabulary = warned(trainer("evaluate", *given))
    assert f"{training_set}: its text is lower-cased, that of {form} keeps its case" in casing
    assert casing.endswith("make the shards with --no-lower-case")
    assert "another vocabulary" in vocabulary


def results(run: Path) -> dict[str, float]:
    lines = (run / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


def test_other_peoples_weights_are_evaluated_too(trainer, run, training_set, tmp_path):
    assert trainer("convert", run, tmp_path / "hf").status == 0
    arguments = ["evaluate", f"--eval-data={training_set}", f"--train-data={training_set}"]
    assert trainer(*arguments, f"--output-dir={run}").status == 0
    ours = results(run)
    outcome = trainer(*arguments, f"--output-dir={tmp_path}", f"--start-from-ckpt={tmp_path / 'hf'}")
    assert outcome.status == 0, outcome.err
    assert "the most frequent masked word of the training set is " in outcome.err
    theirs = results(tmp_path)
    assert theirs | {"global_step": 4.0} == pytest.approx(ours)


def test_a_model_goes_to_hugging_face_form_and_back(trainer, run, training_set, tmp_path):
    assert trainer("convert", run, tmp_path / "there").status == 0
    outcome = trainer("convert", tmp_path / "there", tmp_path / "back")
    assert outcome.status == 0, outcome.err
    weights, wanted = (
        load_file(path / "model.safetensors") for path in (tmp_path / "back", find_checkpoints(str(run))[4])
    )
    assert all(torch.equal(weights[name], wanted[name]) for name in wanted)
    refuse(trainer("convert", run, tmp_path / "there"), 2, "is in use")
    (tmp_path / "empty").mkdir()
    refuse(trainer("convert", tmp_path / "empty", tmp_path / "new"), 2, "holds neither state.json")
    for start in ("there", "back"):
        given = words(training_set, tmp_path / f"run-{start}", f"--start-from-ckpt={tmp_path / start}")
        assert trainer(*given, "--steps=1", "--warmup=0").status == 0
    assert losses(tmp_path / "run-there") == losses(tmp_path / "run-back")


def test_convert_explains_itself(trainer):
    outcome = trainer("convert", "--help")
    assert outcome.status == 0
    assert outcome.out.startswith("Example:\n  python -m trainer convert ")


def test_without_torch_there_is_one_line_with_the_remedy():
    assert_torch_is_missing(run_without_torch("convert", "x", "y"))
