"""Model keys that are given go before those of another program's checkpoint."""

import json
from pathlib import Path

import pytest

from tests.support.made_checkpoints import CONFIG, made
from trainer.checkpoints.formats.tensorflow1 import write_tensorflow1

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of TensorFlow 1 with its bert_config.json, of the sample corpus's vocabulary size."""
    place = tmp_path_factory.mktemp("theirs")
    write_tensorflow1(made(2000, hidden_act="gelu_new"), str(place))
    return place


def evaluated(trainer, data: Path, theirs: Path, place: Path, *flags: str) -> tuple[str, str]:
    """The results of a few examples, without the line of the checkpoint, and what was printed."""
    place.mkdir(exist_ok=True)
    done = trainer(
        "evaluate",
        *(f"--eval-data={data}", f"--start-from-ckpt={theirs}", f"--output-dir={place}"),
        *("--eval-examples=8", "--device=cpu", *flags),
    )
    assert done.status == 0, done.err
    return (place / "eval_results.txt").read_text(encoding="utf-8"), done.err


@pytest.mark.parametrize(
    ("key", "value"), [("layer_norm_eps", 0.5), ("hidden_act", "relu"), ("num_attention_heads", 2)]
)
def test_evaluate_obeys_a_key_as_it_would_a_models_file(trainer, training_set, theirs, tmp_path, key, value):
    known, _ = evaluated(trainer, training_set, theirs, tmp_path)
    flag = f"--{key.replace('_', '-')}={value}"
    given, said = evaluated(trainer, training_set, theirs, tmp_path, flag)
    file = tmp_path / "other.json"
    whole = json.loads((theirs / "bert_config.json").read_text(encoding="utf-8")) | {key: value}
    file.write_text(json.dumps(whole), encoding="utf-8")
    by_file, _ = evaluated(trainer, training_set, theirs, tmp_path, f"--model-config={file}")
    assert given == by_file != known
    assert f"warning: {key} is {value}, the checkpoint's " in said


def test_without_a_file_beside_the_weights_the_given_one_has_tensorflows_gelu(
    trainer, training_set, theirs, tmp_path
):
    wanted, _ = evaluated(trainer, training_set, theirs, tmp_path)
    alone, file = tmp_path / "alone", tmp_path / "bert_config.json"
    alone.mkdir()
    for path in theirs.glob("model.ckpt-7*"):
        (alone / path.name).write_bytes(path.read_bytes())
    file.write_bytes((theirs / "bert_config.json").read_bytes())
    found, _ = evaluated(trainer, training_set, alone, tmp_path, f"--model-config={file}")
    assert found == wanted


@pytest.mark.parametrize("command", [["predict", "text"], ["convert", "out"]])
def test_predict_and_convert_refuse_such_a_key_and_take_a_models_file(trainer, theirs, command, tmp_path):
    name, word = command
    refused = trainer(name, theirs, tmp_path / word, "--layer-norm-eps=0.5")
    assert (refused.status, "--layer-norm-eps is not a known flag" in refused.err) == (2, True)
    assert "--model-config" in trainer(name, "--help").out


def test_predict_computes_with_the_given_models_file(trainer, theirs, small_vocabulary_file, tmp_path):
    file = tmp_path / "other.json"
    file.write_text(json.dumps({**CONFIG, "vocab_size": 2000, "layer_norm_eps": 0.5}), encoding="utf-8")
    line = ["predict", theirs, "[MASK]", f"--vocab={small_vocabulary_file}", "--json"]
    known, given = trainer(*line), trainer(*line, f"--model-config={file}")
    assert (known.status, given.status) == (0, 0), known.err + given.err
    assert json.loads(known.out) != json.loads(given.out)
