"""``convert`` from program to program, and runs that start from any of their checkpoints."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.support.checkpoint_outputs import filled, largest_differences, with_snappy_blocks
from tests.support.made_checkpoints import made
from tests.support.training_runs import MODEL, refuse, words
from trainer.__main__ import main
from trainer.checkpoints.any_checkpoint import StoredTensor
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.formats.kinds import WRITERS, read_checkpoint
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.source import open_checkpoint

WAY = ("tf1", "tf2", "nvidia", "huggingface", "bertdata")
STILL = ("--base-learning-rate=1e-30", "--optimiser=lamb-mlperf", "--steps=1", "--warmup=0")


@pytest.fixture(scope="module")
def run(training_set, tmp_path_factory) -> Path:
    """A finished run of three updates with LAMB."""
    place = tmp_path_factory.mktemp("trained") / "run"
    assert (
        main(words(training_set, place, "--steps=3", "--warmup=0", "--optimiser=lamb-mlperf", "--no-logs"))
        == 0
    )
    return place


@pytest.mark.parametrize("act", ["gelu", "gelu_new"])
def test_the_whole_way_round_keeps_every_bit(trainer, run, tmp_path, act):
    source = tmp_path / "start"
    shutil.copytree(find_checkpoints(str(run))[3], source)
    if act != "gelu":
        assert trainer("convert", source, tmp_path / "there").status == 0
        config = json.loads((tmp_path / "there" / "config.json").read_text())
        (tmp_path / "there" / "config.json").write_text(json.dumps({**config, "hidden_act": act}))
        shutil.rmtree(source)
        assert trainer("convert", tmp_path / "there", source).status == 0
    place = source
    for kind in WAY:
        outcome = trainer("convert", place, tmp_path / kind, "--to", kind)
        assert outcome.status == 0, outcome.err
        assert outcome.err == ""
        place = tmp_path / kind
    first, last = (load_file(path / "model.safetensors") for path in (source, place))
    assert first.keys() == last.keys()
    assert all(torch.equal(first[name], last[name]) for name in first)
    assert read_state(place).model == read_state(source).model


@pytest.mark.parametrize("kind", ["tf1", "tf2", "nvidia"])
def test_moments_and_the_number_of_updates_survive(trainer, run, tmp_path, kind):
    out = trainer("convert", run, tmp_path / kind, "--to", kind).out
    assert "update 3 with moments in" in out
    back = trainer("convert", tmp_path / kind, tmp_path / "back")
    assert "weights and moments of update 3 to start from" in back.out
    newest = find_checkpoints(str(run))[3]
    for name in ("model.safetensors", "optimizer.safetensors"):
        found, wanted = (load_file(path / name) for path in (tmp_path / "back", newest))
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[key], wanted[key]) for key in wanted), name
    state = read_state(tmp_path / "back")
    assert (state.step, state.applied) == (3, 3)
    if kind != "tf2":  # whose slots do not say whose they are
        assert state.optimiser == {"tf1": "lamb-mlperf", "nvidia": "lamb-nvidia"}[kind]


@pytest.mark.parametrize("name", ["tf1_google", "tf1_mlperf_lamb", "pytorch_nvidia", "snappy"])
def test_programs_checkpoints_go_to_hugging_face_form(trainer, kit, tmp_path, name):
    """transformers itself computes the program's outputs from what was written."""
    import transformers

    source = with_snappy_blocks(kit, tmp_path / "copy") if name == "snappy" else kit / "checkpoints" / name
    outcome = trainer("convert", source, tmp_path / "bert", "--to=huggingface")
    assert (outcome.status, outcome.err) == (0, "")
    model = transformers.BertForPreTraining.from_pretrained(tmp_path / "bert").eval()
    read = read_checkpoint(str(source)).weights
    found = model.state_dict()
    assert all(torch.equal(found[key], read[key].read()) for key in read)
    assert model.config.hidden_act == "gelu_new"


def test_a_kind_and_a_description_may_be_given(trainer, kit, tmp_path):
    place = kit / "checkpoints"
    config = f"--model-config={place / 'tf1_google' / 'bert_config.json'}"
    flags = ("--from=tf2", config, "--to=bertdata")
    outcome = trainer("convert", place / "tf2_pretrainer_2.5.0", tmp_path / "start", *flags)
    assert "without 2 tensors of the heads, which keep random values" in outcome.out
    model, _ = filled(open_checkpoint(str(tmp_path / "start")))
    google = place / "tf1_google"
    found = largest_differences(model, google, place / "tf2_pretrainer_2.5.0" / "outputs.npz")
    assert max(found.values()) < 1e-5
    assert trainer("convert", place / "pytorch_nvidia", tmp_path / "h", "--from=habana").status == 0
    assert read_state(tmp_path / "h").model["hidden_act"] == "gelu"


def test_the_vocabulary_goes_along(trainer, run, tmp_path, small_vocabulary_file):
    for kind in WAY[:3]:
        assert trainer("convert", run, tmp_path / kind, "--to", kind).status == 0
        assert (tmp_path / kind / "vocab.txt").read_bytes() == small_vocabulary_file.read_bytes()
    assert trainer("convert", tmp_path / "tf1", tmp_path / "bert", "--to=huggingface").status == 0
    assert (tmp_path / "bert" / "vocab.txt").read_bytes() == small_vocabulary_file.read_bytes()
    guessed = trainer("predict", tmp_path / "tf1", "the [MASK] of the city", "--json").out
    assert guessed == trainer("predict", run, "the [MASK] of the city", "--json").out


def test_a_models_head_for_answers_is_kept(trainer, tmp_path):
    heads = {"qa_outputs.weight": torch.randn(2, 32), "qa_outputs.bias": torch.randn(2)}
    source = made()
    encoder = {name: tensor for name, tensor in source.weights.items() if name.startswith("bert.")}
    weights = {**encoder, **{name: StoredTensor.of(tensor) for name, tensor in heads.items()}}
    WRITERS["nvidia"](replace(source, weights=weights, moments={}), str(tmp_path / "squad"))
    outcome = trainer("convert", tmp_path / "squad", tmp_path / "own")
    assert outcome.out.strip().endswith("weights to start from (--start-from-ckpt)")
    found = load_file(tmp_path / "own" / "model.safetensors")
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], heads[name]) for name in heads)
    assert trainer("convert", tmp_path / "own", tmp_path / "bert").status == 0
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    assert config["architectures"] == ["BertForQuestionAnswering"]


# Starting


def test_any_programs_checkpoint_is_evaluated(trainer, run, training_set, tmp_path):
    assert trainer("convert", run, tmp_path / "start", "--to=tf1").status == 0
    results = []
    for number, source in enumerate((run, tmp_path / "start")):
        place = tmp_path / str(number)
        flags = (f"--eval-data={training_set}", f"--output-dir={place}", "--eval-examples=8")
        outcome = trainer("evaluate", *flags, f"--start-from-ckpt={source}")
        assert outcome.status == 0, outcome.err
        lines = (place / "eval_results.txt").read_text().splitlines()
        results.append([line for line in lines if "step" not in line])
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", ["tf1", "tf2", "nvidia", "huggingface"])
def test_a_run_starts_from_any_programs_checkpoint(trainer, run, training_set, tmp_path, kind):
    assert trainer("convert", run, tmp_path / "start", "--to", kind).status == 0
    began = words(training_set, tmp_path / "run", f"--start-from-ckpt={tmp_path / 'start'}")
    assert trainer(*began, *STILL).status == 0
    found, wanted = (
        load_file(path / "model.safetensors")
        for path in (find_checkpoints(str(tmp_path / "run"))[1], find_checkpoints(str(run))[3])
    )
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_the_models_shape_is_the_checkpoints_unless_given(trainer, run, training_set, tmp_path):
    """After a restart too, when the first checkpoint is gone; the form of GELU is the program's."""
    assert trainer("convert", run, tmp_path / "start", "--to=tf1").status == 0
    config = tmp_path / "start" / "bert_config.json"
    values = json.loads(config.read_text())
    assert values.pop("trained_hidden_act") == "gelu"
    config.write_text(json.dumps(values))  # as Google's own file, where gelu is the tanh form
    began = words(training_set, tmp_path / "run", f"--start-from-ckpt={tmp_path / 'start'}", *STILL)
    began = [word for word in began if word not in MODEL]
    assert trainer(*began, "--steps=2", "--steps-this-run=1").status == 0
    shutil.rmtree(tmp_path / "start")
    outcome = trainer(*began, "--steps=2", "--resume")
    assert outcome.status == 0, outcome.err
    made = find_checkpoints(str(tmp_path / "run"))
    original = read_state(find_checkpoints(str(run))[3]).model
    for number in (1, 2):
        assert read_state(made[number]).model == {**original, "hidden_act": "gelu_new"}


def test_another_activation_than_the_checkpoints_is_warned_of(trainer, run, training_set, tmp_path):
    assert trainer("convert", run, tmp_path / "start", "--to=tf1").status == 0
    began = words(training_set, tmp_path / "run", f"--start-from-ckpt={tmp_path / 'start'}", *STILL)
    outcome = trainer(*began, "--hidden-act=gelu_new")
    assert outcome.status == 0
    assert (
        "warning: hidden_act is gelu_new, the checkpoint's gelu; its weights know the latter" in outcome.err
    )


def test_moments_are_taken_where_they_are_asked_for(trainer, run, training_set, tmp_path):
    """With a rate of 0 and one update, the moments are the old ones, moved by one gradient."""
    assert trainer("convert", run, tmp_path / "start", "--to=tf1").status == 0
    old = load_file(find_checkpoints(str(run))[3] / "optimizer.safetensors")
    seen = {}
    for name, flags in {"without": [], "with": ["--start-moments"]}.items():
        began = words(training_set, tmp_path / name, f"--start-from-ckpt={tmp_path / 'start'}")
        outcome = trainer(*began, *STILL, *flags)
        assert outcome.status == 0, outcome.err
        place = find_checkpoints(str(tmp_path / name))[1]
        seen[name] = load_file(place / "optimizer.safetensors")
        assert read_state(place).applied == (4 if flags else 1)
    for key, moment in old.items():
        beta = 0.9 if key.startswith("exp_avg/") else 0.999
        torch.testing.assert_close(
            seen["with"][key], seen["without"][key] + beta * moment, rtol=1e-4, atol=1e-7
        )


def test_moments_that_are_not_there_are_said_to_be_missing(trainer, run, training_set, tmp_path):
    assert trainer("convert", run, tmp_path / "start").status == 0
    began = words(
        training_set, tmp_path / "run", f"--start-from-ckpt={tmp_path / 'start'}", "--start-moments"
    )
    refuse(trainer(*began, *STILL), 1, "holds no moments of an optimiser; leave out start_moments")
    alone = words(training_set, tmp_path / "other", "--start-moments")
    refuse(trainer(*alone, *STILL), 2, "start_moments is given, but no start_from_ckpt")


# Refused


def test_damaged_and_foreign_files_are_one_line(trainer, kit, tmp_path):
    google = tmp_path / "tf1"
    shutil.copytree(kit / "checkpoints" / "tf1_google", google)
    data = google / "model.ckpt-3.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-1000])
    refuse(trainer("convert", google, tmp_path / "a"), 1, f"{data}: ", "truncated")
    (google / "model.ckpt-3.index").write_bytes(b"words")
    refuse(trainer("convert", google, tmp_path / "a"), 1, "model.ckpt-3.index: no TensorFlow index")
    torch.save({"model": {"a": 1}}, tmp_path / "list.pt")
    refuse(trainer("convert", tmp_path / "list.pt", tmp_path / "a"), 1, "expected tensors by name")
    (tmp_path / "noise.pt").write_bytes(bytes(range(256)) * 9)
    refuse(trainer("convert", tmp_path / "noise.pt", tmp_path / "a"), 1, "not weights that can be read")
    squad = tmp_path / "no-config"
    squad.mkdir()
    shutil.copy(kit / "checkpoints" / "pytorch_nvidia" / "ckpt_0.pt", squad)
    refuse(trainer("convert", squad, tmp_path / "a"), 1, "name one with --model-config")
    assert not (tmp_path / "a").exists()


def test_another_depth_than_the_configurations_is_refused(trainer, kit, training_set, tmp_path):
    source = kit / "checkpoints" / "tf1_google"
    began = words(training_set, tmp_path / "run", f"--start-from-ckpt={source}")
    refuse(trainer(*began, *STILL), 1, "expected a BERT of the configuration's depth")
