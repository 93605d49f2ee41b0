"""Other programs' commands run as they are: their checkpoints, files and flags, and models by name."""

import shutil

import pytest

from bertdata.errors import MissingInputError
from tests.support.fine_tuning import mrpc_files
from tests.support.training_runs import refuse
from trainer.__main__ import main
from trainer.checkpoints.formats.hub_cache import find_pretrained
from trainer.checkpoints.reading import choose_checkpoint, read_state

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = ("--max_seq_length=32", "--num_train_epochs=2", "--learning_rate=2e-3")
OURS = ("--", "--device=cpu", "--no-progress-bar")


@pytest.fixture
def mrpc(tmp_path):
    """A directory of MRPC's files, with texts of our own."""
    return mrpc_files(tmp_path / "MRPC")


def test_googles_command_trains_from_its_checkpoint_and_predicts(trainer, pretrained, mrpc, tmp_path):
    base = tmp_path / "base"
    assert main(["convert", str(pretrained), str(base), "--to", "tf1"]) == 0
    index = next(base.glob("*.index"))
    files = (
        f"--vocab_file={pretrained / 'vocab.txt'}",
        f"--bert_config_file={base / 'bert_config.json'}",
        f"--data_dir={mrpc}",
    )
    out = tmp_path / "out"
    given = ("--task_name=MRPC", *files, *SMALL, f"--output_dir={out}")
    start = f"--init_checkpoint={str(index).removesuffix('.index')}"
    program = ("like", "google/run_classifier.py", *given)
    asked = ("--do_train=true", "--do_eval=true", "--train_batch_size=8", "--use_tpu=False", "--tpu_name=x")
    outcome = trainer(*program, start, *asked, *OURS)
    assert outcome.status == 0, outcome.err
    state = read_state(choose_checkpoint(str(out)))
    assert state.step == 6, "two passes over 24 examples, 8 in an update"
    assert state.model["hidden_act"] == "gelu_new", "the form that a checkpoint of this kind knows"
    assert (out / "predictions.tsv").read_text(encoding="utf-8").count("\n") == 1 + 8
    predicted = trainer(*program, f"--init_checkpoint={out}", "--do_predict=true", *OURS)
    assert predicted.status == 0, predicted.err
    assert "do_train is false: nothing is trained" in predicted.err
    assert (out / "predict" / "predictions.tsv").read_text(encoding="utf-8").count("\n") == 1 + 5


def test_habanas_model_names_are_the_downloaded_models(trainer, pretrained, mrpc, tmp_path, monkeypatch):
    cache = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    given = ("--model_name_or_path", "base", "--mode", "eager", "--task_name", "mrpc", "--data_type", "fp32")
    run = ("--data_dir", mrpc, "--batch_size", "8", "--do_eval", f"--output_dir={tmp_path / 'out'}", *SMALL)
    program = ("like", "habana/demo_bert.py", "finetuning", *given, *run, *OURS)
    absent = trainer(*program)
    refuse(
        absent,
        2,
        "bert-base-uncased: no such file or directory, and bert-base-uncased is not among the models in",
        str(cache),
    )
    folder = cache / "models--google-bert--bert-base-uncased"
    shutil.copytree(pretrained, folder / "snapshots" / "0123")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("0123", encoding="utf-8")
    outcome = trainer(*program)
    assert outcome.status == 0, outcome.err
    assert "accepted, without effect on device cpu: mode" in outcome.err
    assert read_state(choose_checkpoint(str(tmp_path / "out" / "mrpc"))).step == 6


def test_a_model_is_found_by_path_then_by_name(tmp_path, monkeypatch):
    environment = {"HF_HOME": str(tmp_path / "home")}
    hub = tmp_path / "home" / "hub"
    (hub / "models--someone--bert" / "snapshots" / "abc").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = str(hub / "models--someone--bert" / "snapshots" / "abc")
    assert find_pretrained("someone/bert", environment) == found
    (tmp_path / "someone" / "bert").mkdir(parents=True)
    assert find_pretrained("someone/bert", environment) == "someone/bert"
    (tmp_path / "bert_model.ckpt.index").touch()
    assert find_pretrained("bert_model.ckpt", environment) == "bert_model.ckpt"
    for path in ("/no/where/else", "./bert", "gs://bucket/bert", "a/b/c"):
        assert find_pretrained(path, environment) == path, "whoever opens it says that it is missing"
    with pytest.raises(
        MissingInputError, match="large: no such file or directory, and bert-large-uncased-whole-word"
    ):
        find_pretrained("large", environment)
