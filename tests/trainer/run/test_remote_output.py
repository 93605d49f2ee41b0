"""Runs whose directory is a URL: bit for bit as local ones, whatever happens to machine and store."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
import torch

from bertdata.io import storage
from tests.support.failing_memory import FailingFileSystem, failing_memory
from tests.support.fine_tuning import finetune_words, table
from tests.support.training_runs import losses, refuse, tensors, words
from trainer.__main__ import main
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.remote import remote_run, retries, uploader
from trainer.remote.copies import bring_checkpoint
from trainer.remote.folders import find_working_folder

pytestmark = pytest.mark.usefixtures("one_thread", "cache")

GENERATED = ("--generated-data", "--vocab-size=100", "--max-seq-length=16")
URL = "memory://bucket/run"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The cache of this machine, which is lost when the machine is."""
    place = tmp_path / "cache"
    monkeypatch.setenv("BERTDATA_CACHE", str(place))
    return place


@pytest.fixture(autouse=True)
def empty_memory() -> Iterator[None]:
    """An empty memory:// file system, before and after."""
    files = fsspec.filesystem("memory")
    for _ in range(2):
        files.store.clear()
        files.pseudo_dirs[:] = [""]
        if _ == 0:
            yield


@pytest.fixture(scope="module")
def local(training_set, tmp_path_factory) -> Path:
    """An undisturbed local run of ten updates."""
    place = tmp_path_factory.mktemp("local") / "run"
    run_alone(words(training_set, place, "--checkpoint-every=2"))
    return place


def run_alone(arguments: list[str]) -> None:
    """Run the trainer with one thread, as all runs of this module."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert main(arguments) == 0
    finally:
        torch.set_num_threads(before)


def read(name: str, url: str = URL) -> bytes:
    return storage.read_bytes(f"{url}/{name}")


def numbers(url: str = URL) -> list[int]:
    """The numbers of the checkpoints that are whole in the store."""
    names = storage.list_files(url)
    return [int(name.split("/")[1][5:]) for name in names if name.endswith("/state.json")]


def assert_same_weights(local: Path, number: int, url: str = URL) -> None:
    folder = f"checkpoints/step-{number:08d}"
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert read(f"{folder}/{name}", url) == (local / folder / name).read_bytes()


def test_a_run_at_a_url_has_the_bytes_of_a_local_run(trainer, training_set, local, cache):
    ended = trainer(*words(training_set, URL, "--checkpoint-every=2", "--keep-checkpoints=2"))
    assert ended.status == 0, ended.err
    assert_same_weights(local, 10)
    assert numbers()[-1] == 10
    assert len(numbers()) <= 2
    assert "unfinished/run.lock" not in storage.list_files(URL)
    assert read("training.csv").decode().count("\n") == 11
    assert "checkpoint 10 is in memory://bucket/run" in ended.err
    assert str(cache) not in ended.err


def test_a_run_is_resumed_on_another_machine(trainer, training_set, local, cache):
    run = words(training_set, URL, "--checkpoint-every=2")
    assert trainer(*run, "--steps-this-run=4").status == 0
    shutil.rmtree(cache)
    resumed = trainer(*run, "--resume")
    assert resumed.status == 0, resumed.err
    assert_same_weights(local, 10)
    table = find_working_folder(URL)
    assert losses(table) == losses(local)


# Readers on another machine


@pytest.fixture(scope="module")
def uploaded_files(training_set, tmp_path_factory) -> dict[str, bytes]:
    """The files of a run of ten updates at the URL, by path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTDATA_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("OMP_NUM_THREADS", "1")
        run_alone(words(training_set, URL, "--checkpoint-every=5"))
    files = fsspec.filesystem("memory")
    return {path: files.cat_file(path) for path in files.find("/")}


@pytest.fixture
def uploaded(uploaded_files) -> None:
    """A run of ten updates at the URL. Nothing of it is left on this machine."""
    for path, data in uploaded_files.items():
        fsspec.filesystem("memory").pipe_file(path, data)


def test_evaluation_reads_the_run_and_uploads_its_results(trainer, training_set, local, uploaded):
    for place in (local, URL):
        evaluated = trainer("evaluate", f"--eval-data={training_set}", f"--output-dir={place}")
        assert evaluated.status == 0, evaluated.err
    assert read("eval_results.txt") == (local / "eval_results.txt").read_bytes()
    assert read("training.csv").decode().count("\n") == 11


def test_polling_evaluates_each_checkpoint_of_the_store(trainer, training_set, uploaded):
    polled = trainer(
        "evaluate", f"--eval-data={training_set}", f"--output-dir={URL}", "--poll", "--poll-timeout=0"
    )
    assert polled.status == 0, polled.err
    assert [f"step {number}: evaluated 488" in polled.err for number in (5, 10)] == [True, True]


def test_a_checkpoint_of_the_store_is_evaluated_by_its_number(trainer, training_set, uploaded):
    words = ("evaluate", f"--eval-data={training_set}", f"--output-dir={URL}")
    evaluated = trainer(*words, "--resume-step=5")
    assert "step 5: evaluated" in evaluated.err
    refuse(
        trainer(*words, "--resume-step=7"), 2, f"{URL}/checkpoints: holds no checkpoint 7; there are 5, 10"
    )


def test_evaluation_compares_the_data_with_the_tokeniser_of_the_store(trainer, training_set, uploaded):
    words = ("evaluate", f"--eval-data={training_set}", f"--output-dir={URL}")
    assert "its text is lower-cased" not in trainer(*words).err
    fsspec.filesystem("memory").pipe_file("/bucket/run/tokenizer_config.json", b'{"do_lower_case": false}')
    for more in ((), ("--poll", "--poll-timeout=0")):
        evaluated = trainer(*words, *more)
        assert evaluated.status == 0, evaluated.err
        assert f"warning: {training_set}: its text is lower-cased, that of " in evaluated.err
        assert " keeps its case: its words are not written as the model knows them" in evaluated.err


def test_prediction_and_conversion_read_the_run(trainer, local, uploaded, tmp_path):
    text = "The [MASK] of the city."
    assert trainer("predict", URL, text).out == trainer("predict", local, text).out
    for place, name in ((local, "one"), (URL, "other"), (f"{URL}/checkpoints/step-00000010", "third")):
        converted = trainer("convert", place, tmp_path / name)
        assert converted.status == 0, converted.err
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "other", "third")]
    assert weights[0] == weights[1] == weights[2]
    assert (tmp_path / "other" / "vocab.txt").read_bytes() == (tmp_path / "one" / "vocab.txt").read_bytes()


def test_a_report_shows_the_run(trainer, uploaded, tmp_path):
    page = tmp_path / "page.html"
    made = trainer("report", URL, f"--output={page}")
    assert made.status == 0, made.err
    assert URL in page.read_text(encoding="utf-8")
    made = trainer("report", URL)
    assert made.out == f"wrote {URL}/report.html\n", made.err


@pytest.mark.parametrize("flag", ["--start-from-ckpt", "--resume-from"])
def test_a_run_starts_from_a_run_at_a_url(trainer, training_set, local, uploaded, tmp_path, flag):
    more = ("--steps=12",)
    ended = trainer(*words(training_set, tmp_path / "next", f"{flag}={URL}", *more))
    assert ended.status == 0, ended.err
    expected = trainer(*words(training_set, tmp_path / "same", f"{flag}={local}", *more))
    assert expected.status == 0, expected.err
    assert tensors(tmp_path / "next", 12) == tensors(tmp_path / "same", 12)
    assert read_state(tmp_path / "next/checkpoints/step-00000012").config[flag[2:].replace("-", "_")] == URL


@pytest.mark.thorough
def test_another_programs_model_at_a_url_is_started_from(trainer, training_set, local, tmp_path):
    assert trainer("convert", local, tmp_path / "model").status == 0
    for path in (tmp_path / "model").iterdir():
        storage.upload_copy(str(path), f"memory://bucket/model/{path.name}")
    ended = trainer(*words(training_set, tmp_path / "next", "--start-from-ckpt=memory://bucket/model"))
    assert ended.status == 0, ended.err
    expected = trainer(*words(training_set, tmp_path / "same", f"--start-from-ckpt={tmp_path / 'model'}"))
    assert expected.status == 0, expected.err
    assert tensors(tmp_path / "next", 10) == tensors(tmp_path / "same", 10)


@pytest.mark.thorough
def test_phase_2_continues_phase_1_from_the_store(trainer, training_set, longer_set, cache, tmp_path):
    second = (
        "--phase2",
        "--max-seq-length=96",
        "--max-predictions-per-seq=15",
        "--max-position-embeddings=96",
    )
    shape = "--max-position-embeddings=96"
    for place in (tmp_path / "run", URL):
        assert trainer(*words(training_set, place, shape)).status == 0
        shutil.rmtree(cache, ignore_errors=True)
        stopped = trainer(*words(longer_set, place, *second, "--steps-this-run=4"))
        assert stopped.status == 0, stopped.err
        shutil.rmtree(cache, ignore_errors=True)
        ended = trainer(*words(longer_set, place, *second, "--resume"))
        assert ended.status == 0, ended.err
    assert_same_weights(tmp_path / "run", 20)
    assert numbers() == [10, 14, 20]


# What goes wrong


@pytest.fixture
def failing(monkeypatch) -> Iterator[type[FailingFileSystem]]:
    """A store whose requests fail as the test asks for, and pauses that a test can wait for."""
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(uploader, "REST_SECONDS", 0.01)
    with failing_memory() as kind:
        yield kind


FAILING = "failing://bucket/run"


def test_a_store_that_fails_one_request_in_five_gets_the_run(trainer, training_set, local, failing, cache):
    failing.every = 5
    run = words(training_set, FAILING, "--checkpoint-every=2")
    first = trainer(*run, "--steps-this-run=6")
    assert first.status == 0, first.err
    shutil.rmtree(cache)
    ended = trainer(*run, "--resume")
    assert ended.status == 0, ended.err
    assert failing.failures > 5
    failing.every = 0
    assert_same_weights(local, 10, FAILING)
    assert read("training.csv", FAILING).decode().count("\n") == 11


@pytest.mark.thorough
def test_a_store_that_fails_for_a_while_stops_no_training(trainer, training_set, local, failing, monkeypatch):
    # The upload of the first checkpoint has to fail before the run ends.
    monkeypatch.setattr(uploader, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0)
    failing.only, failing.every, failing.most = "model.safetensors", 1, 3 * retries.ATTEMPTS
    ended = trainer(*words(training_set, FAILING, "--checkpoint-every=2"))
    assert ended.status == 0, ended.err
    assert "connection reset by peer; training goes on" in ended.err
    assert_same_weights(local, 10, FAILING)


def test_what_a_full_store_lacks_is_said_and_is_still_here(trainer, training_set, local, failing, cache):
    failing.only, failing.every = ".safetensors", 1
    failing.error = OSError(28, "No space left on device")
    run = words(training_set, FAILING, "--checkpoint-every=5")
    full = trainer(*run)
    refuse(
        full,
        1,
        f"{FAILING}: not uploaded: checkpoint 10 and checkpoint 5 and logs (",
        "No space left on device",
    )
    assert numbers(FAILING) == []
    failing.every = 0
    # What is only on this machine is neither removed by a new run nor computed again by a resumed one.
    refuse(trainer(*run), 2, f"{FAILING}: is in use: checkpoint 10 of an earlier run is only in {cache}")
    ended = trainer(*run, "--resume")
    assert ended.status == 0, ended.err
    assert "checkpoint 10 was not uploaded, but is still on this machine" in ended.err
    assert "nothing is left to do after update 10" in ended.err
    assert_same_weights(local, 10, FAILING)
    # A run that has been removed from the store is not brought back.
    storage.remove_directory(FAILING)
    fresh = trainer(*run, "--steps-this-run=1")
    assert fresh.status == 0, fresh.err
    assert numbers(FAILING) == [1]


def test_checkpoints_of_a_long_outage_are_resumed_on_this_machine(trainer, training_set, local, failing):
    """The working directory does not have the newest checkpoint of the store any more."""
    run = words(training_set, FAILING, "--checkpoint-every=2", "--keep-local-checkpoints=1")
    assert trainer(*run, "--steps-this-run=2").status == 0
    failing.only, failing.every = ".safetensors", 1
    assert trainer(*run, "--resume", "--steps-this-run=4").status == 1
    failing.every = 0
    ended = trainer(*run, "--resume")
    assert ended.status == 0, ended.err
    assert "checkpoint 6 was not uploaded, but is still on this machine" in ended.err
    assert f"resumed {FAILING}/checkpoints/step-00000006" in ended.err
    assert_same_weights(local, 10, FAILING)
    assert read("training.csv", FAILING).decode().count("\n") == 11


def test_no_bucket_and_no_rights_are_one_line_before_the_model(trainer, training_set, failing):
    refused = trainer(*words(training_set, "s3://"))
    assert refused.status == 2
    failing.every, failing.error = 1, PermissionError("you may not")
    refused = trainer(*words(training_set, FAILING))
    refuse(refused, 1, f"{FAILING}: ", "permission denied (you may not)")
    assert "building the model" not in refused.err
    assert "opening the data" not in refused.err


def test_the_newest_checkpoint_that_is_half_there_is_passed_over(trainer, training_set, local, cache):
    run = words(training_set, URL, "--checkpoint-every=2", "--keep-local-checkpoints=5")
    assert trainer(*run, "--steps-this-run=6").status == 0
    shutil.rmtree(cache)
    storage.remove(f"{URL}/checkpoints/step-00000006/optimizer.safetensors")
    storage.remove(f"{URL}/checkpoints/step-00000004/state.json")
    predicted = trainer("predict", URL, "The [MASK] of the city.")
    assert predicted.status == 0, predicted.err
    assert f"{URL}/checkpoints/step-00000006: is half there: found no optimizer.safetensors" in predicted.err
    resumed = trainer(*run, "--resume")
    assert resumed.status == 0, resumed.err
    assert f"{URL}/checkpoints/step-00000006: is half there" in resumed.err
    assert f"{URL}/checkpoints/step-00000004: is half there: found no state.json" in resumed.err
    assert f"resumed {URL}/checkpoints/step-00000002" in resumed.err
    assert_same_weights(local, 10)


def test_a_used_directory_is_refused_and_overwritten_on_request(trainer, training_set, uploaded):
    run = words(training_set, URL, "--checkpoint-every=5", "--seed=7")
    refused = trainer(*run)
    refuse(refused, 2, f"{URL}: is in use: holds checkpoints; give --resume")
    assert "building the model" not in refused.err
    before = read("checkpoints/step-00000010/model.safetensors")
    ended = trainer(*run, "--overwrite-output-dir", "--steps-this-run=5")
    assert ended.status == 0, ended.err
    assert numbers() == [5]
    assert read("training.1.csv").decode().count("\n") == 11
    assert read("checkpoints/step-00000005/model.safetensors") != before


@pytest.mark.thorough
def test_checkpoints_after_the_resumed_one_are_removed(trainer, training_set, local, cache):
    run = words(training_set, URL, "--checkpoint-every=2", "--keep-local-checkpoints=5")
    assert trainer(*run).status == 0
    assert numbers() == [2, 4, 6, 8, 10]
    shutil.rmtree(cache)
    assert trainer(*run, "--resume-step=4", "--steps-this-run=1").status == 0
    assert numbers() == [2, 4, 5]
    assert trainer(*run, "--resume").status == 0
    assert_same_weights(local, 10)


def test_two_numbers_say_what_is_kept(trainer, training_set):
    run = words(training_set, URL, "--checkpoint-every=2")
    assert trainer(*run, "--keep-checkpoints=3", "--keep-local-checkpoints=1").status == 0
    assert len(numbers()) <= 3
    assert list(find_checkpoints(str(find_working_folder(URL)))) == [10]
    state = read_state(find_working_folder(URL) / "checkpoints" / "step-00000010")
    assert (state.config["output_dir"], state.config["keep_checkpoints"]) == (URL, 3)


# Fine-tuning


@pytest.mark.thorough
def test_a_task_is_learned_resumed_evaluated_and_tried_at_urls(trainer, uploaded, cache, tmp_path):
    """From a run at a URL, into a run at a URL; each command on another machine."""
    train, dev = table(tmp_path / "train.tsv"), table(tmp_path / "dev.tsv", 20)
    files = (f"--train-file={train}", f"--eval-file={dev}")
    given = (*files, "--steps=8", "--eval-every=0", "--checkpoint-every=4")
    base = tmp_path / "base"
    shutil.copytree(bring_checkpoint(URL).rpartition("/checkpoints")[0], base)
    tuned = "memory://bucket/tuned"
    for place, start in ((tmp_path / "tuned", base), (tuned, URL)):
        run = finetune_words("classification", start, place, *given)
        for more in (("--steps-this-run=4",), ("--resume",)):
            ended = trainer(*run, *more)
            assert ended.status == 0, ended.err
            shutil.rmtree(cache, ignore_errors=True)
    assert_same_weights(tmp_path / "tuned", 8, tuned)
    assert not any(name.startswith("features") for name in storage.list_files(tuned))
    plain = table(tmp_path / "plain.tsv", 10, labelled=False)
    for place in (tmp_path / "tuned", tuned):
        evaluated = trainer("evaluate", f"--output-dir={place}", "--do-predict", f"--predict-file={plain}")
        assert evaluated.status == 0, evaluated.err
        shutil.rmtree(cache, ignore_errors=True)
    name = "predict/predictions.tsv"
    assert read(name, tuned) == (tmp_path / "tuned" / name).read_bytes()
    ours = (tmp_path / "tuned" / "eval_results.txt").read_bytes()
    assert read("eval_results.txt", tuned) == ours
    assert b"label_loss = 0." in ours
    text = "The harbour is new ."
    assert trainer("predict", tuned, text).out == trainer("predict", tmp_path / "tuned", text).out


@pytest.mark.thorough
def test_a_checkpoint_is_uploaded_after_a_time(trainer, training_set):
    run = words(
        training_set, URL, "--checkpoint-every=1s", "--steps=100000", "--warmup=0", "--log-every=1000"
    )
    interrupted: list[int] = []

    def stop_after_two() -> None:
        while len(numbers()) < 2:
            time.sleep(0.05)
        interrupted.extend(numbers())
        os.kill(os.getpid(), signal.SIGTERM)

    watcher = threading.Thread(target=stop_after_two)
    watcher.start()
    ended = trainer(*run, "--log-every=1000")
    watcher.join()
    assert ended.status == 0, ended.err
    assert numbers()[-1] > interrupted[-1] > interrupted[0] > 0


def test_what_is_missing_30_seconds_after_sigterm_is_said(trainer, training_set, failing, monkeypatch):
    monkeypatch.setattr(remote_run, "NOTICE_SECONDS", 0.2)
    failing.seconds, failing.only = 0.5, ".safetensors"
    run = words(training_set, FAILING, "--checkpoint-every=100000", "--steps=100000", "--warmup=0")
    table = find_working_folder(FAILING) / "training.csv"

    def stop_when_training() -> None:
        while not table.exists() or table.read_bytes().count(b"\n") < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    watcher = threading.Thread(target=stop_when_training)
    watcher.start()
    ended = trainer(*run, "--log-every=1")
    watcher.join()
    assert ended.status == 0, ended.err
    (number,) = numbers(FAILING)
    assert f"checkpoint {number} and logs: not in {FAILING} yet, " in ended.err
    assert f"checkpoint {number} is in {FAILING}" in ended.err


@pytest.mark.parametrize("given", ["0min", "15m", "1.5h", "often"])
def test_a_wrong_time_between_checkpoints_is_one_line(trainer, given):
    refused = trainer("pretrain", *GENERATED, "--output-dir=none", f"--checkpoint-every={given}")
    refuse(
        refused, 2, f"checkpoint_every is '{given}', expected a number of updates, or a time such as 15min"
    )
