"""The length that a model was trained on: kept, exported, imported, and warned of where it is exceeded."""

import json
import shutil
from pathlib import Path

import pytest

import bertdata as face
from tests.support.fine_tuning import finetune_words
from tests.support.training_runs import Trainer, refuse, words
from trainer.__main__ import main
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state

LONG = "the old [MASK] of the city " + "and the river " * 30
"""More ids than the 64 of the training set."""


def table_of(path: Path, count: int) -> Path:
    """Write a table of texts of so many words with two labels, and return its path."""
    rows = [f"{'city ' * count}{number}\t{'ab'[number % 2]}" for number in range(8)]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(training_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on 64 ids of a model with 512 positions, and its export beside it."""
    place = tmp_path_factory.mktemp("trained")
    assert main(words(training_set, place / "run", "--steps=2", "--warmup=1", "--no-logs")) == 0
    assert main(["convert", str(place / "run"), str(place / "form")]) == 0
    return place / "run"


def newest_length(run: Path) -> int | None:
    """The length in the state of the run's newest checkpoint."""
    found = find_checkpoints(str(run))
    return read_state(found[max(found)]).longest


def warned(err: str, known: int) -> bool:
    """Whether one line warns of sequences longer than those that the model was trained on."""
    lines = [line for line in err.splitlines() if "was trained on at most" in line]
    assert len(lines) <= 1, lines
    return bool(lines) and f"at most {known}:" in lines[0]


def test_an_export_tells_it_and_an_import_knows_it_again(run: Path, trainer: Trainer, tmp_path: Path) -> None:
    assert newest_length(run) == 64
    form = run.parent / "form"
    assert json.loads((form / "tokenizer_config.json").read_text())["model_max_length"] == 64
    assert json.loads((form / "config.json").read_text())["max_position_embeddings"] == 512
    assert trainer("convert", form, tmp_path / "own").status == 0
    assert read_state(tmp_path / "own").longest == 64
    assert trainer("convert", form, tmp_path / "again", "--to=huggingface").status == 0
    again = json.loads((tmp_path / "again" / "tokenizer_config.json").read_text())
    assert again["model_max_length"] == 64


def test_predict_warns_beyond_it(run: Path, trainer: Trainer) -> None:
    for source in (run, run.parent / "form"):
        assert warned(trainer("predict", source, LONG).err, 64)
        assert trainer("predict", source, "the old [MASK] of the city").err == ""


def test_evaluate_warns_beyond_it(run: Path, trainer: Trainer, longer_set: Path, training_set: Path) -> None:
    given = ("evaluate", f"--start-from-ckpt={run}", f"--output-dir={run.parent / 'evaluated'}")
    assert warned(trainer(*given, f"--eval-data={longer_set}").err, 64)
    assert not warned(trainer(*given, f"--eval-data={training_set}").err, 64)


def test_pre_training_warns_where_evaluation_is_longer(
    trainer: Trainer, longer_set: Path, training_set: Path, tmp_path: Path
) -> None:
    given = words(training_set, tmp_path / "run", f"--eval-data={longer_set}", "--steps=1", "--warmup=0")
    assert warned(trainer(*given, "--no-logs").err, 64)


def test_a_second_phase_trains_on_the_longer_of_both(
    run: Path, trainer: Trainer, longer_set: Path, training_set: Path, tmp_path: Path
) -> None:
    """Weights, phase 2 and a resumed run: 96 ids after 64, and 64 ids after 96."""
    short = ("--steps=1", "--warmup=0", "--no-logs")
    start = f"--start-from-ckpt={run.parent / 'form'}"
    assert trainer(*words(longer_set, tmp_path / "long", start, *short)).status == 0
    assert newest_length(tmp_path / "long") == 96
    start = f"--start-from-ckpt={tmp_path / 'long'}"
    assert trainer(*words(training_set, tmp_path / "short", start, *short)).status == 0
    assert newest_length(tmp_path / "short") == 96
    shutil.copytree(run, tmp_path / "phases")
    assert trainer(*words(longer_set, tmp_path / "phases", "--phase2", *short)).status == 0
    assert newest_length(tmp_path / "phases") == 96
    more = ("--resume", "--steps=2", "--warmup=0", "--no-logs")
    assert trainer(*words(training_set, tmp_path / "short", *more)).status == 0
    assert newest_length(tmp_path / "short") == 96


def test_another_programs_model_of_unknown_length_stays_unknown(
    run: Path, trainer: Trainer, training_set: Path, tmp_path: Path
) -> None:
    """transformers writes 10**30 where it knows no length; the model may know all its positions."""
    form = shutil.copytree(run.parent / "form", tmp_path / "form")
    config = json.loads((form / "tokenizer_config.json").read_text()) | {"model_max_length": 10**30}
    (form / "tokenizer_config.json").write_text(json.dumps(config))
    assert not warned(trainer("predict", form, LONG).err, 64)
    given = words(training_set, tmp_path / "run", f"--start-from-ckpt={form}", "--steps=1", "--warmup=0")
    assert trainer(*given, "--no-logs").status == 0
    assert newest_length(tmp_path / "run") is None
    assert trainer("convert", tmp_path / "run", tmp_path / "out").status == 0
    exported = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert exported["model_max_length"] == 512


def test_fine_tuning_counts_what_its_features_hold(run: Path, trainer: Trainer, tmp_path: Path) -> None:
    """Features are padded to 128 ids by default; what is not there is not trained on."""
    for name, count, longest in (("short", 5, 64), ("long", 200, 128)):
        table = table_of(tmp_path / f"{name}.tsv", count)
        given = finetune_words("classification", run, tmp_path / name, f"--train-file={table}")
        outcome = trainer(*given, "--max-seq-length=128", "--steps=1", "--warmup=0")
        assert outcome.status == 0, outcome.err
        assert warned(outcome.err, 64) == (name == "long")
        assert newest_length(tmp_path / name) == longest


@pytest.mark.parametrize("given", ["given", "of the checkpoint"])
@pytest.mark.parametrize("role", ["train", "eval"])
def test_data_longer_than_the_model_is_refused_and_leaves_nothing(
    given: str, role: str, trainer: Trainer, training_set: Path, longer_set: Path, tmp_path: Path
) -> None:
    start = "--max-position-embeddings=80"
    if given == "of the checkpoint":
        short = ("--steps=1", "--warmup=0", "--no-logs", start)
        assert trainer(*words(training_set, tmp_path / "start", *short)).status == 0
        start = f"--start-from-ckpt={tmp_path / 'start'}"
    data = longer_set if role == "train" else training_set
    evaluation = [f"--eval-data={longer_set}"] if role == "eval" else []
    outcome = trainer(*words(data, tmp_path / "some" / "where", start, *evaluation))
    refuse(outcome, 2, "sequences of 96 ids", "max_position_embeddings 80", "--max-seq-length 80 or less")
    assert not (tmp_path / "some").exists()


def test_an_evaluation_of_longer_data_is_refused_and_leaves_nothing(
    trainer: Trainer, training_set: Path, longer_set: Path, tmp_path: Path
) -> None:
    short = ("--steps=1", "--warmup=0", "--no-logs", "--max-position-embeddings=80")
    assert trainer(*words(training_set, tmp_path / "start", *short)).status == 0
    given = ("evaluate", f"--start-from-ckpt={tmp_path / 'start'}", f"--output-dir={tmp_path / 'some' / 'e'}")
    outcome = trainer(*given, f"--eval-data={longer_set}")
    refuse(outcome, 2, "sequences of 96 ids", "max_position_embeddings 80")
    assert not (tmp_path / "some").exists()


def test_a_model_of_more_positions_than_usual_is_evaluated_on_its_own_length(
    trainer: Trainer, corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    """600 ids in a model of 600 positions, where nobody says the number again."""
    sizes = {"max_seq_length": 600, "max_predictions_per_seq": 90, "dupe_factor": 1}
    face.create(corpus[:1], tmp_path / "set", vocab=small_vocabulary_file, workers=1, **sizes)
    short = ("--steps=1", "--warmup=0", "--no-logs", "--batch-size=2")
    given = words(tmp_path / "set", tmp_path / "run", *short)
    assert trainer(*given, "--max-position-embeddings=600").status == 0
    outcome = trainer(
        "evaluate",
        f"--start-from-ckpt={tmp_path / 'run'}",
        f"--eval-data={tmp_path / 'set'}",
        f"--output-dir={tmp_path / 'evaluated'}",
    )
    assert outcome.status == 0, outcome.err


def test_a_refused_fine_tuning_leaves_no_features(run: Path, trainer: Trainer, tmp_path: Path) -> None:
    table = table_of(tmp_path / "table.tsv", 5)
    given = finetune_words("classification", run, tmp_path / "some" / "where", f"--train-file={table}")
    refuse(trainer(*given, "--hidden-size=48"), 1, "has shape [32], expected [48]")
    assert not (tmp_path / "some").exists()
