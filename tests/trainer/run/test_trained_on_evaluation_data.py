"""Data to evaluate on that were trained on are told, whatever the path is called, in one warning."""

import shutil
from pathlib import Path

import pytest

from tests.support.fine_tuning import finetune_words, table
from tests.support.training_runs import words

pytestmark = pytest.mark.usefixtures("one_thread")

SHORT = (
    "--steps=1",
    "--warmup=0",
    "--no-logs",
    "--eval-examples=4",
    "--hidden-size=16",
    "--intermediate-size=16",
)


def told(err: str) -> list[str]:
    return [line for line in err.splitlines() if "learned by heart" in line]


@pytest.fixture
def shards(training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset in the working directory, called data."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(training_set, "data")
    return Path("data")


def renamed(folder: Path) -> str:
    """A copy of which each name is another and no manifest lists the files."""
    for number, path in enumerate(sorted(Path("data").glob("*.tfrecord"))):
        (folder / f"x{number}.tfrecord").write_bytes(path.read_bytes())
    return str(folder)


def other_spelling(kind: str) -> str:
    if kind == "copy":
        shutil.copytree("data", "copied")
        return "copied"
    if kind == "link":
        Path("link").symlink_to("data")
        return "link"
    return {"same": "data", "dot": "./data", "parent": "../" + Path.cwd().name + "/data"}[kind]


@pytest.mark.parametrize("kind", ["same", "dot", "parent", "link", "copy"])
def test_pretrain_warns_of_the_training_data_by_any_name(kind: str, shards: Path, trainer) -> None:
    outcome = trainer(*words(shards, Path("run"), f"--eval-data={other_spelling(kind)}", *SHORT))
    assert outcome.status == 0, outcome.err
    [line] = told(outcome.err)
    files = len(list(shards.glob("*.tfrecord")))
    assert line.startswith("trainer: warning: ")
    assert f"{files} of its {files} files are training data (data) too" in line


def test_some_of_the_files_are_enough(shards: Path, trainer) -> None:
    shutil.copytree("data", "half")
    first, *_ = sorted(Path("half").glob("*.tfrecord"))
    outcome = trainer(*words(shards, Path("run"), f"--eval-data={first}", *SHORT))
    [line] = told(outcome.err)
    assert "1 of its 1 files are training data" in line


def test_files_that_no_manifest_lists_are_compared_by_their_bytes(shards: Path, trainer) -> None:
    Path("plain").mkdir()
    given = (f"--eval-data={renamed(Path('plain'))}", "--unverified", "--vocab-size=2000")
    [line] = told(trainer(*words(shards, Path("run"), *given, *SHORT)).err)
    assert "files are training data" in line


@pytest.mark.parametrize("kind", ["dot", "copy"])
def test_evaluate_warns_of_what_the_checkpoint_was_trained_on(kind: str, shards: Path, trainer) -> None:
    assert trainer(*words(shards, Path("run"), *SHORT)).status == 0
    path = other_spelling(kind)
    if kind == "copy":
        Path("data").rename("elsewhere")  # the checkpoint's digest tells
    outcome = trainer("evaluate", f"--eval-data={path}", "--output-dir=run", "--eval-examples=4", *SHORT[-2:])
    assert outcome.status == 0, outcome.err
    [line] = told(outcome.err)
    assert "training data (data) too" in line


def test_other_data_are_no_reason_to_warn(shards: Path, trainer, bertdata, corpus) -> None:
    other = ("--vocab", shards / "vocab.txt", "--max-seq-length=64", "--max-predictions-per-seq=10")
    made = bertdata("create", corpus[0], "--output", "held", *other, "--dupe-factor=1", "--random-seed=7")
    assert made.status == 0, made.err
    trained = trainer(*words(shards, Path("run"), "--eval-data=held", *SHORT[:2], *SHORT[3:]))
    evaluated = trainer("evaluate", "--eval-data=held", "--output-dir=run")
    assert (trained.status, evaluated.status) == (0, 0), trained.err + evaluated.err
    assert told(trained.err + evaluated.err) == []
    assert trainer("report", "run").status == 0
    assert "evaluation files in training: 0 of 1<" in Path("run/report.html").read_text()


@pytest.mark.parametrize("copies", [False, True])
def test_finetune_and_evaluate_warn_of_the_file_that_is_trained_on(
    copies: bool, trainer, pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(Path("a.tsv"), 8)
    evaluated = "./a.tsv"
    if copies:
        evaluated = shutil.copy("a.tsv", "b.tsv")
    given = ("--train-file=a.tsv", f"--eval-file={evaluated}", "--steps=1", "--warmup=0")
    outcome = trainer(*finetune_words("classification", pretrained, Path("run"), *given))
    assert outcome.status == 0, outcome.err
    [line] = told(outcome.err)
    assert f"{evaluated}: it is the training data (a.tsv) too" in line
    again = trainer("evaluate", "--start-from-ckpt=run", "--output-dir=out", f"--eval-file={evaluated}")
    assert again.status == 0, again.err
    assert len(told(again.err)) == 1


def test_the_page_of_a_run_says_how_much_is_shared(shards: Path, trainer) -> None:
    assert trainer(*words(shards, Path("run"), "--eval-data=./data", *SHORT[:2], *SHORT[3:])).status == 0
    assert trainer("report", "run").status == 0
    files = len(list(shards.glob("*.tfrecord")))
    assert f"evaluation files in training: {files} of {files}<" in Path("run/report.html").read_text()
