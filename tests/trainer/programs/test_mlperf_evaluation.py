"""MLPerf's training and its evaluation through the door: a tiny run on the processor."""

import json
import shutil
import threading
import time
from pathlib import Path

import pytest

from tests.support.training_runs import refuse
from trainer.__main__ import main
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.run import evaluate

PROGRAM = "mlperf/run_pretraining.py"
SIZES = ("--max_seq_length=64", "--max_predictions_per_seq=10")
OURS = ("--", "--device=cpu", "--no-logs")
METRICS = {"masked_lm_accuracy", "masked_lm_loss", "next_sentence_accuracy", "next_sentence_loss"}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def files(training_set, tmp_path_factory) -> tuple[str, ...]:
    """The flags of the model's file and of the data, whose files have no manifest beside them."""
    place = tmp_path_factory.mktemp("mlperf")
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    (place / "bert_config.json").write_text(json.dumps({"vocab_size": 2000, "hidden_act": "gelu", **shape}))
    for shard in training_set.glob("*.tfrecord"):
        shutil.copy(shard, place)
    return (f"--bert_config_file={place / 'bert_config.json'}", f"--input_file={place}/*.tfrecord", *SIZES)


@pytest.fixture(scope="module")
def run(files, tmp_path_factory) -> Path:
    """A run of eight micro-steps: four updates, with a checkpoint of each second one."""
    place = tmp_path_factory.mktemp("trained") / "run"
    steps = (
        "--num_train_steps=8",
        "--num_warmup_steps=2",
        "--save_checkpoints_steps=4",
        "--steps_per_update=2",
    )
    flags = (
        *files,
        *steps,
        "--do_train",
        "--optimizer=lamb",
        "--train_batch_size=4",
        f"--output_dir={place}",
    )
    assert main(["like", PROGRAM, *flags, "--num_gpus=1", *OURS]) == 0
    assert main(["convert", str(place), str(place.parent / "start"), "--to=tf1"]) == 0
    return place


@pytest.fixture
def evaluated(trainer, files, run):
    """The steps that are evaluated, in order, of an output directory."""

    def evaluate_steps(place: Path, *flags: str) -> list[str]:
        start = f"--init_checkpoint={run.parent / 'start' / 'model.ckpt-8'}"
        common = (*files, "--do_eval", "--nodo_train", "--max_eval_steps=2", "--num_gpus=1", start)
        outcome = trainer("like", PROGRAM, *common, f"--output_dir={place}", *flags, *OURS)
        assert outcome.status == 0, outcome.err
        return [
            line.partition(":")[0] for line in outcome.err.splitlines() if "evaluated 16 examples" in line
        ]

    return evaluate_steps


def results(place: Path) -> dict[str, float]:
    lines = (place / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


def test_a_run_that_counts_otherwise_is_not_gone_on_with(trainer, files, run):
    flags = (*files, "--do_train", "--optimizer=lamb", "--train_batch_size=4", "--num_warmup_steps=2")
    other = ("--num_train_steps=16", "--steps_per_update=4", f"--output_dir={run}", "--num_gpus=1")
    refuse(trainer("like", PROGRAM, *flags, *other, *OURS), 2, "counts 2 steps for an update", "this run 4")


def test_an_evaluation_ends_with_the_last_whole_update_of_a_training(evaluated, run):
    assert evaluated(run, "--num_train_steps=9") == ["step 8"]  # the ninth step made no update


def test_a_training_and_its_evaluation_append_to_bert_log(trainer, files, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    steps = ("--num_train_steps=4", "--num_warmup_steps=2", "--steps_per_update=2", "--train_batch_size=4")
    lines = (*files, *steps, "--optimizer=lamb", "--num_gpus=1", "--output_dir=out", "--max_eval_steps=2")
    for what in (("--do_train",), ("--do_eval", "--nodo_train")):
        done = trainer("like", PROGRAM, *lines, *what, "--", "--device=cpu")
        assert done.status == 0, done.err
    text = Path("bert.log").read_text(encoding="utf-8")
    events = [json.loads(line.removeprefix(":::MLLOG ")) for line in text.splitlines()]
    values = {event["key"]: event["value"] for event in events}
    wanted = {
        "submission_org": "reference_implementation",
        "global_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "opt_learning_rate_training_steps": 4,
        "opt_learning_rate_warmup_steps": 2,
        "train_samples": 16,
        "eval_samples": 10000,
    }
    assert {name: values[name] for name in wanted} == wanted
    steps_of = {event["key"]: event["metadata"].get("step_num") for event in events}
    assert (steps_of["checkpoint_stop"], steps_of["eval_stop"], steps_of["eval_accuracy"]) == (4, 4, 4)
    assert [event["key"] for event in events].count("init_start") == 1


def test_a_training_is_that_of_its_micro_steps(run):
    assert list(find_checkpoints(str(run))) == [4, 8]
    state = read_state(find_checkpoints(str(run))[8])
    keys = ("optimiser", "accumulation", "batch_size", "warmup", "steps")
    assert [state.config[key] for key in keys] == ["lamb-mlperf", 2, 4, 1, 4]
    assert state.model["hidden_act"] == "gelu_new"


def test_the_newest_checkpoint_goes_before_the_start(evaluated, run):
    assert evaluated(run, "--num_train_steps=8") == ["step 8"]
    found = results(run)
    assert found["global_step"] == 8
    assert found.keys() >= METRICS


def test_the_start_is_evaluated_as_step_0_while_there_is_no_checkpoint(evaluated, tmp_path):
    assert evaluated(tmp_path, "--num_train_steps=0") == ["step 0"]


def test_newer_checkpoints_are_waited_for_until_the_last_step(evaluated, run, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate, "_PAUSE_SECONDS", 0.05)

    def appear() -> None:
        while not (tmp_path / "eval_results.txt").exists():
            time.sleep(0.05)
        shutil.copytree(run / "checkpoints", tmp_path / ".coming")
        (tmp_path / ".coming").rename(tmp_path / "checkpoints")

    thread = threading.Thread(target=appear)
    thread.start()
    assert evaluated(tmp_path, "--num_train_steps=8") == ["step 0", "step 8"]  # always the newest
    thread.join()


@pytest.mark.parametrize(("named", "wanted"), [("model.ckpt-4", "step 4"), ("model.ckpt-0", "step 0")])
def test_the_checkpoint_that_the_state_file_names_is_evaluated_once(evaluated, run, tmp_path, named, wanted):
    shutil.copytree(run / "checkpoints", tmp_path / "checkpoints")
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{named}"\n')
    assert evaluated(tmp_path, "--num_train_steps=2") == [wanted]


def test_tensorflows_own_checkpoints_in_the_output_directory_are_evaluated(evaluated, run, tmp_path):
    shutil.copytree(run.parent / "start", tmp_path / "theirs")
    assert evaluated(tmp_path / "theirs", "--num_train_steps=8") == ["step 8"]
    assert results(tmp_path / "theirs")["masked_lm_loss"] == pytest.approx(results(run)["masked_lm_loss"])


def test_a_checkpoint_that_is_named_and_not_there_is_one_line(trainer, files, run, tmp_path):
    shutil.copytree(run / "checkpoints", tmp_path / "checkpoints")
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"\n')
    flags = (*files, "--do_eval", "--num_gpus=1", f"--output_dir={tmp_path}")
    refuse(trainer("like", PROGRAM, *flags, *OURS), 2, "holds no checkpoint 3; there are 4, 8")


def test_a_device_that_is_not_there_is_named_with_the_way_around_it(trainer, files, tmp_path):
    flags = (*files, "--do_eval", "--use_tpu", "--eval_batch_size=8", f"--output_dir={tmp_path}")
    refuse(trainer("like", PROGRAM, *flags), 2, "xla, which is not there", "append -- --device cpu")
