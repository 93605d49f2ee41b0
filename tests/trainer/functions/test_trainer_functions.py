"""The functions of ``import trainer``: the results are those of the commands, and errors are exceptions."""

import csv
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import trainer as face
from bertdata.errors import BertDataError, DatasetError, MissingInputError, SettingsError, UsageError
from tests.support.paths import ROOT
from tests.support.training_runs import losses, refuse, tensors, words
from trainer.__main__ import main
from trainer.functions.keys import make_words
from trainer.functions.progress import TrainingProgress
from trainer.logs.recorded_run import read_runs

KEYS = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "batch_size": 4,
    "steps": 10,
    "warmup": 2,
    "log_every": 5,
    "device": "cpu",
}
TEXT = "The [MASK] of the old city is [MASK] ."

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run(training_set, tmp_path_factory) -> Path:
    """The directory of a run that ``trainer.pretrain`` has made."""
    place = tmp_path_factory.mktemp("functions") / "run"
    face.pretrain(**KEYS, train_data=training_set, output_dir=place, eval_data=training_set, progress=False)
    return place


def read_evaluation(place: Path) -> dict[str, float]:
    """Return the only row of a run's evaluation.csv."""
    with (place / "evaluation.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    return {name: json.loads(value) for name, value in row.items()}


def test_importing_the_package_imports_nothing_else_of_it():
    code = "import sys, trainer; print([n for n in sys.modules if n[:4] in ('bert', 'trai', 'torc', 'nump')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "['trainer']"


@pytest.mark.parametrize("name", face.__all__)
def test_each_function_is_that_of_its_module(name):
    # The public function only changes the words of errors.
    assert getattr(face, name).__wrapped__ is getattr(import_module(f"trainer.functions.{name}"), name)


def test_a_name_that_is_not_offered_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'trainer' has no attribute 'train'"):
        face.train  # noqa: B018


def test_pretrain_makes_the_weights_of_the_command(run, training_set, tmp_path):
    command = words(
        training_set, tmp_path / "run", f"--eval-data={training_set}", "--log-every=5", "--device=cpu"
    )
    assert main(command) == 0
    assert tensors(run, 10) == tensors(tmp_path / "run", 10)
    assert losses(run) == losses(tmp_path / "run")


def test_the_result_is_what_the_run_has_logged(training_set, tmp_path, capsys):
    place, seen = tmp_path / "run", []
    found = face.pretrain(
        **KEYS, train_data=training_set, eval_data=training_set, output_dir=place, progress=seen.append
    )
    assert capsys.readouterr() == ("", "")  # a function that is called replaces the printed lines
    assert (found.output_dir, found.is_finished, found.step) == (str(place), True, 10)
    assert found.checkpoint == str(place / "checkpoints" / "step-00000010")
    logged = losses(place)
    assert [(row["step"], row["learning_rate"]) for row in found.rows] == [
        (row["step"], row["lr"]) for row in logged
    ]
    assert [row["mlm_loss"] for row in found.rows] == [row["mlm_loss"] for row in logged]
    (evaluation,) = found.evaluations
    counts = {"step": evaluation.step, "trained": evaluation.trained, "examples": evaluation.examples}
    assert {**counts, **evaluation.metrics} == read_evaluation(place)
    assert [(now.step, now.steps) for now in seen] == [(5, 10), (10, 10), (10, 10)]
    assert seen[-1].evaluation == evaluation
    assert all(isinstance(now, TrainingProgress) for now in seen)


def test_without_a_function_the_lines_of_the_command_are_printed(training_set, tmp_path, capsys):
    keys = {**KEYS, "steps": 5, "warmup": 0}
    face.pretrain(**keys, train_data=training_set, output_dir=tmp_path / "run")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "trainer: opening the data\n" in printed.err
    assert "\nstep 5/5  loss " in printed.err


def test_a_stopped_run_says_so_and_goes_on(training_set, tmp_path):
    import signal

    def stop(now: TrainingProgress) -> None:
        signal.raise_signal(signal.SIGINT)

    keys = {**KEYS, "train_data": training_set, "output_dir": tmp_path / "run"}
    stopped = face.pretrain(**keys, progress=stop)
    assert not stopped.is_finished
    assert 5 <= stopped.step < 10
    finished = face.pretrain(**keys, resume=True, progress=False)
    assert (finished.is_finished, finished.step) == (True, 10)


def test_a_thread_that_may_not_handle_signals_trains_too(training_set, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    keys = {**KEYS, "steps": 5, "warmup": 0, "train_data": training_set, "output_dir": tmp_path / "run"}
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(face.pretrain, **keys, progress=False).result().is_finished


def test_warnings_are_in_the_result(training_set, tmp_path):
    keys = {**KEYS, "train_data": training_set, "output_dir": tmp_path / "run", "progress": False}
    face.pretrain(**{**keys, "steps": 5, "warmup": 0})
    found = face.pretrain(**{**keys, "steps": 6, "warmup": 0}, resume=True)
    assert "steps: 5 in the checkpoint, 6 in this run" in found.warnings


def test_evaluate_returns_what_the_run_has_measured(run, training_set):
    found = face.evaluate(output_dir=run, eval_data=training_set, device="cpu", progress=False)
    measured = read_evaluation(run)
    assert [found.step, found.trained, found.examples] == [
        measured.pop(name) for name in ("step", "trained", "examples")
    ]
    assert found.metrics == pytest.approx(measured)
    assert str(found).startswith("step 10: evaluated ")


def test_predict_returns_the_words_that_the_command_prints(run, trainer):
    found = face.predict(run, TEXT, num=3)
    assert [len(guesses) for guesses in found.words] == [3, 3]
    assert [[list(guess) for guess in guesses] for guesses in found.words] == json.loads(
        trainer("predict", run, TEXT, "--num=3", "--json").out
    )
    assert f"{found}\n" == trainer("predict", run, TEXT, "--num=3").out


def test_convert_writes_a_model_that_transformers_loads(run, tmp_path):
    found = face.convert(run, tmp_path / "model")
    assert found.directory == str(tmp_path / "model")
    assert str(found).startswith(f"{tmp_path / 'model'}: update 10 in Hugging Face form")
    with pytest.raises(DatasetError, match="is in use; give overwrite=True to replace an earlier conversion"):
        face.convert(run, tmp_path / "model")
    face.convert(run, tmp_path / "model", overwrite=True)
    transformers = pytest.importorskip("transformers")
    assert transformers.BertForPreTraining.from_pretrained(found.directory).config.hidden_size == 32


def test_write_report_writes_the_page_into_the_run(run):
    assert face.write_report(run) == str(run / "report.html")
    assert "<html" in (run / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"stepz": 3}, "stepz is not a known key; the nearest known is steps"),
        ({"learning_rate": 3}, "learning_rate is not a key of this trainer; use base_learning_rate"),
        ({"steps": "many"}, "steps is 'many', expected the type integer"),
        ({"dist": True, "world_size": 2}, "dist: a Python program trains with one worker"),
        ({"train_data": object()}, "train_data is of type object, expected a text"),
        ({"steps": 5}, "train_data is missing"),
        ({"steps": 5, "train_data": "no/data"}, "output_dir is missing: give output_dir="),
    ],
)
def test_wrong_keys_are_errors_of_the_library(keys, said):
    with pytest.raises(SettingsError) as caught:
        face.pretrain(**keys, progress=False)
    assert said in str(caught.value)
    assert "--" not in str(caught.value).replace("and --dist", "")


def test_wrong_arguments_of_the_other_functions_are_errors_of_the_library(tmp_path):
    with pytest.raises(UsageError, match="no text given"):
        face.predict(tmp_path)
    with pytest.raises(UsageError, match="a text is of type list, expected a str"):
        face.predict(tmp_path, ["The [MASK]."])
    with pytest.raises(MissingInputError, match="holds no checkpoint"):
        face.predict(tmp_path, "The [MASK].")
    with pytest.raises(SettingsError, match="to is 'keras', expected one of bertdata, tf1"):
        face.convert(tmp_path, tmp_path / "model", to="keras")
    with pytest.raises(SettingsError, match="task is missing"):
        face.finetune(output_dir=tmp_path, progress=False)


def test_errors_of_every_function_name_its_arguments(run, training_set, tmp_path):
    calls = {
        "overwrite_output_dir=True, or another output_dir=": lambda: face.pretrain(
            **KEYS, train_data=training_set, output_dir=run, progress=False
        ),
        'give task="squad"': lambda: face.finetune(output_dir=tmp_path, progress=False),
        "context: the task words has no such setting": lambda: face.predict(run, TEXT, context="x"),
    }
    for said, call in calls.items():
        with pytest.raises(BertDataError) as caught:
            call()
        assert said in str(caught.value)
        assert "--" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "  ", "\u3000\n", "\u0000"])
def test_a_text_without_a_word_is_refused(run, trainer, text):
    with pytest.raises(UsageError, match="the text is empty: it holds no word that .* could read"):
        face.predict(run, text)
    refuse(trainer("predict", run, text), 2, "the text is empty: it holds no word")


def test_the_run_records_the_call_that_started_it(run):
    starts = read_runs([str(run)])[0].log.starts
    [call] = [start["call"] for start in starts]
    assert call.startswith("trainer.pretrain(\n    num_hidden_layers=2,\n    hidden_size=32,\n")
    assert call.endswith(f'    eval_data="{eval_data_of(call)}",\n)')
    compile(call, "call", "eval")
    page = Path(face.write_report(run)).read_text(encoding="utf-8")
    assert "Python call that started run" in page
    assert "    num_hidden_layers=2," in page


def eval_data_of(call: str) -> str:
    """The value of the key eval_data in a call."""
    return call.partition('eval_data="')[2].partition('"')[0]


def test_keys_are_words_of_the_command_line():
    import numpy as np

    keys = {
        "config": Path("tiny"),
        "train_data": ["a", Path("b")],
        "steps": (5, 7),
        "batch_size": np.int64(4),
        "base_learning_rate": 1e-3,
        "no_logs": True,
        "labels": ["good, bad", "other"],
        "train_file": "train.tsv",
        "seed": None,
    }
    assert make_words(keys) == [
        "--config=tiny",
        "--train-data=a",
        "--train-data=b",
        *("--steps", "5", "7"),
        "--batch-size=4",
        "--base-learning-rate=0.001",
        "--no-logs=true",
        '--labels=["good, bad", "other"]',
        "--task-train-file=train.tsv",
    ]
