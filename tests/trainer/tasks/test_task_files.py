"""The files of a task: by flags, or in a directory under the names of a distribution."""

from pathlib import Path

import pytest

from bertdata.errors import MissingInputError, SettingsError
from trainer.config.task_config import make_task_config
from trainer.tasks.task_files import TaskFiles, find_files

GLUE = ("train.tsv", "dev.tsv", "test.tsv")
ORIGINAL = ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt")


def find(folder: Path, *flags: str, task: str = "mrpc") -> TaskFiles:
    return find_files(make_task_config([f"--task={task}", f"--data-dir={folder}", *flags]))


def fill(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("", encoding="utf-8")
    return folder


def base_names(found: TaskFiles) -> tuple[str | None, ...]:
    paths = (found.train, found.evaluation, found.prediction)
    return tuple(path and Path(path).name for path in paths)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (GLUE, GLUE),
        (ORIGINAL, (*ORIGINAL, ORIGINAL[1])),
        ((*GLUE, *ORIGINAL), GLUE),
        (("train.tsv", *ORIGINAL), ("train.tsv", None, None)),
        # GLUE's dev.tsv is a part of the original's file to train on.
        (("dev.tsv", *ORIGINAL), (*ORIGINAL, ORIGINAL[1])),
        (ORIGINAL[:1], (ORIGINAL[0], None, None)),
    ],
)
def test_the_files_of_mrpc_are_of_one_distribution(tmp_path, there, expected):
    assert base_names(find(fill(tmp_path / "mrpc", *there))) == expected


def test_a_file_that_is_named_goes_before_the_usual_one(tmp_path):
    folder = fill(tmp_path / "mrpc", *ORIGINAL, "mine.tsv")
    assert base_names(find(folder, "--eval-file=mine.tsv")) == (ORIGINAL[0], "mine.tsv", ORIGINAL[1])


def test_a_file_to_evaluate_on_is_enough_where_nothing_is_trained(tmp_path):
    folder = fill(tmp_path / "mrpc", ORIGINAL[1])
    assert base_names(find(folder, "--no-do-train")) == (None, ORIGINAL[1], ORIGINAL[1])


@pytest.mark.parametrize(
    ("task", "flags", "said"),
    [
        ("mrpc", (), "holds no train.tsv and no msr_paraphrase_train.txt; give --train-file"),
        ("rte", (), "holds no train.tsv; give --train-file"),
        ("squad", (), "holds no train-v1.1.json; give --train-file"),
        ("squad", ("--version-2-with-negative",), "holds no train-v2.0.json; give --train-file"),
        ("mrpc", ("--no-do-train",), "holds no dev.tsv and no msr_paraphrase_test.txt; give --eval-file"),
        (
            "mrpc",
            ("--no-do-train", "--do-predict"),
            "holds no test.tsv and no msr_paraphrase_test.txt; give --predict-file",
        ),
    ],
)
def test_the_error_names_all_names_that_were_looked_for(tmp_path, task, flags, said):
    folder = fill(tmp_path / "data", "readme.txt")
    with pytest.raises(MissingInputError) as refused:
        find(folder, *flags, task=task)
    assert str(refused.value) == f"{folder}: {said}"
    with pytest.raises(MissingInputError, match="absent: no such directory"):
        find(tmp_path / "absent", *flags, task=task)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "no file to train on; give --data-dir or --train-file"),
        (("--train-file={here}", "--do-predict"), "no file to predict; give --predict-file"),
        (("--no-do-train",), "nothing to evaluate or to predict: give --eval-file, or --predict-file"),
    ],
)
def test_a_file_is_asked_for_where_there_is_no_directory(flags, said):
    with pytest.raises(SettingsError, match=said):
        find_files(make_task_config(["--task=mrpc", *(flag.format(here=__file__) for flag in flags)]))


def test_a_named_file_that_is_not_there_is_told_before_anything_is_made(tmp_path):
    folder = fill(tmp_path / "mrpc", *ORIGINAL)
    with pytest.raises(MissingInputError, match="absent.tsv: no such file or directory"):
        find(folder, "--eval-file=absent.tsv")
    assert base_names(find(folder, "--eval-file=absent.tsv", "--no-do-eval"))[1] is None


@pytest.mark.parametrize("text", ["bad,good", '["bad", "good"]'])
def test_labels_are_given_with_commas_or_as_json(text):
    config = make_task_config(["--task=classification", f"--labels={text}"])
    assert config.finetuning.labels == ["bad", "good"]
