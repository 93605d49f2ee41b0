"""MLPerf's two converters of checkpoints: what they print, what they write, and that it is read again."""

import json

import pytest
import torch
from safetensors.torch import load_file

from tests.support.made_checkpoints import made
from tests.support.published_commands import assert_equal, commands, understood
from tests.support.training_runs import refuse
from trainer.checkpoints.formats.kinds import WRITERS, read_checkpoint
from trainer.checkpoints.formats.tensor_bundle.bundle import Bundle

GRADACC = "mlperf/checkpoint_add_gradacc.py"
TO_TF2 = "mlperf/tf2_encoder_checkpoint_converter.py"
PUBLISHED = {
    GRADACC: list(commands("mlperf checkpoint_add_gradacc.py")),
    TO_TF2: list(commands("model garden tf2_encoder_checkpoint_converter.py")),
}


@pytest.mark.parametrize(
    ("program", "command"), [(name, one) for name, ones in PUBLISHED.items() for one in ones]
)
def test_a_published_conversion_has_all_values_of_the_original(program, command):
    assert_equal(understood(program, command["argv"][1:])["convert"], command["expects"]["convert"])


@pytest.fixture
def source(tmp_path):
    """A checkpoint of TensorFlow 1 with LAMB's moments."""
    return WRITERS["tf1"](made(hidden_act="gelu_new"), str(tmp_path / "tf1"))


def add(trainer, source, target):
    outcome = trainer("like", GRADACC, f"--old={source}", f"--new={target}")
    assert outcome.status == 0, outcome.err
    return Bundle(str(target))


def test_every_variable_gets_a_zero_accumulator_of_its_own_kind(trainer, source, tmp_path):
    before, after = Bundle(source), add(trainer, source, tmp_path / "new" / "model.ckpt-7")
    ending = "/GradientAccumulator"
    assert after.entries.keys() == {*before.entries, *(name + ending for name in before.entries)}
    for name in before.entries:
        variable, accumulator = after.read(name), after.read(name + ending)
        assert torch.equal(variable, before.read(name))
        assert (accumulator.dtype, accumulator.shape) == (variable.dtype, variable.shape)
        assert not accumulator.any()
    assert 'model_checkpoint_path: "model.ckpt-7"' in (tmp_path / "new" / "checkpoint").read_text()


def test_the_names_are_those_of_the_programs_own_file(trainer, kit, tmp_path):
    after = add(trainer, kit / "checkpoints/tf1_mlperf_lamb/model.ckpt-3", tmp_path / "model.ckpt-3")
    listed = (kit / "checkpoints/names/tf1_mlperf_with_gradient_accumulators.json").read_text("utf-8")
    assert {name: list(entry.shape) for name, entry in after.entries.items()} == dict(json.loads(listed))


def test_a_checkpoint_with_accumulators_is_read_as_before(trainer, source, tmp_path):
    add(trainer, source, tmp_path / "new" / "model.ckpt-7")
    found, wanted = read_checkpoint(str(tmp_path / "new" / "model.ckpt-7")), read_checkpoint(source)
    for there, before in ((found.weights, wanted.weights), (found.moments, wanted.moments)):
        assert there.keys() == before.keys()
        assert all(torch.equal(there[name].read(), before[name].read()) for name in before)


def test_nothing_is_overwritten_and_what_is_no_checkpoint_is_said(trainer, source, tmp_path):
    refuse(trainer("like", GRADACC, f"--old={source}", f"--new={source}"), 2, "is there already")
    refuse(trainer("like", GRADACC, f"--old={tmp_path / 'gone'}", "--new=x"), 2, "found no .index file")
    refuse(trainer("like", GRADACC, "--old=x"), 2, "Flag --new must have a value other than None.")


def test_the_checkpoint_of_tensorflow_2_has_no_moments_and_the_same_weights(trainer, source, tmp_path):
    config = tmp_path / "tf1" / "bert_config.json"
    outcome = trainer(
        *("like", TO_TF2, f"--bert_config_file={config}", f"--checkpoint_to_convert={source}"),
        f"--converted_checkpoint_path={tmp_path / 'tf2' / 'model.ckpt-7'}",
    )
    assert outcome.status == 0, outcome.err
    assert sorted(path.name for path in (tmp_path / "tf2").iterdir()) == [
        "model.ckpt-7.data-00000-of-00001",
        "model.ckpt-7.index",
    ]
    prefix = str(tmp_path / "tf2" / "model.ckpt-7")
    found, wanted = read_checkpoint(prefix, None, str(config)), read_checkpoint(source)
    assert found.config == wanted.config
    assert (found.kind, found.moments) == ("tf2", {})
    assert found.weights.keys() == wanted.weights.keys()
    assert all(
        torch.equal(found.weights[name].read(), wanted.weights[name].read()) for name in wanted.weights
    )


def test_a_checkpoint_of_tensorflow_2_is_not_overwritten(trainer, source, tmp_path):
    config = tmp_path / "tf1" / "bert_config.json"
    line = ("like", TO_TF2, f"--bert_config_file={config}", f"--checkpoint_to_convert={source}")
    refuse(trainer(*line, f"--converted_checkpoint_path={source}"), 2, "is there already")


@pytest.mark.parametrize("kind", ["tf1", "tf2", "nvidia", "bertdata"])
def test_moments_can_be_left_out_of_any_conversion(trainer, source, tmp_path, kind):
    place = tmp_path / "new" / kind
    outcome = trainer("convert", source, place, "--to", kind, "--without-moments")
    assert outcome.status == 0, outcome.err
    assert not any(words in outcome.out for words in ("with moments", "moments of"))
    if kind == "bertdata":
        assert [path.name for path in place.glob("*.safetensors")] == ["model.safetensors"]
        assert load_file(place / "model.safetensors")
    else:
        assert not read_checkpoint(str(place)).moments
