"""GPUs are counted without torch; a model's file may lie in a bucket."""

import json

import pytest

from bertdata.io import storage
from tests.support.training_runs import refuse
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.config.settings import Config
from trainer.programs.machine import count_gpus, replace_missing_model_files


@pytest.mark.parametrize(("visible", "found"), [(None, 2), ("", 0), ("1", 1), ("0, 1", 2), ("0,1,2", 2)])
def test_gpus_are_those_of_the_driver_that_are_visible(tmp_path, monkeypatch, visible, found):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert count_gpus(tmp_path) == found


SHAPE = {"vocab_size": 99, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture
def in_a_bucket():
    path = "memory://shapes/bert_config.json"
    with storage.open_output(path) as file:
        file.write(json.dumps(SHAPE).encode())
    return path


def test_a_run_reads_a_models_file_in_a_bucket_and_printing_asks_nobody(in_a_bucket):
    (keys,), missing = replace_missing_model_files([{"model_config": in_a_bucket}], asks_elsewhere=True)
    assert (keys, missing) == ({"model_config": in_a_bucket}, {})
    assert Config.of(**keys).model_settings == SHAPE
    (keys,), missing = replace_missing_model_files([{"model_config": in_a_bucket}])
    assert keys["hidden_size"] == 1024
    assert "BERT-Large, is shown" in missing[in_a_bucket]


@pytest.mark.usefixtures("one_thread")
def test_mlperfs_command_trains_the_shape_in_a_bucket(trainer, training_set, in_a_bucket, tmp_path):
    flags = [f"--bert_config_file={in_a_bucket}", f"--input_file={training_set}/*.tfrecord", "--do_train"]
    flags += ["--max_seq_length=64", "--max_predictions_per_seq=10", "--train_batch_size=2", "--num_gpus=1"]
    flags += ["--num_train_steps=2", "--num_warmup_steps=1", f"--output_dir={tmp_path / 'run'}"]
    ours = ["--", "--device=cpu", "--no-logs", "--vocab-size=2000"]
    done = trainer("like", "mlperf/run_pretraining.py", *flags, *ours)
    assert done.status == 0, done.err
    state = read_state(find_checkpoints(str(tmp_path / "run"))[2])
    assert (state.model["hidden_size"], state.model["num_hidden_layers"]) == (16, 1)
    flags[0] = "--bert_config_file=memory://shapes/gone.json"
    refuse(trainer("like", "mlperf/run_pretraining.py", *flags, *ours), 2, "gone.json: no such file")
