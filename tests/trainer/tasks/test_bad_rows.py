"""Tables with bad rows: they are left out, counted and told, or the first one ends the command."""

import json

import pytest

from bertdata.errors import InputError
from tests.support.fine_tuning import finetune_words, table
from tests.support.training_runs import refuse
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import choose_checkpoint, read_state
from trainer.config.settings import Config
from trainer.tasks.classification.data import make_configured_task
from trainer.tasks.classification.reading import read_pairs
from trainer.tasks.data_file import DataFile


def read(name, data, **keys):
    task = make_configured_task(Config.of(task="classification", **keys).finetuning)
    return read_pairs(DataFile(name, data if isinstance(data, bytes) else data.encode()), task)


BAD = {
    "t.csv": (
        b'text,label\na,x\nb\xe4,y\nc,y,z\nd\ne,\n"f,\ng",y\nh"i,y\n',
        [("a", "x"), ("f,\ng", "y"), ('h"i', "y")],
        4,
    ),
    "t.tsv": (b"text\tlabel\na\tx\nb\xe4\ty\nc\ty\tz\nd\ne\t\nf\ty\n", [("a", "x"), ("f", "y")], 4),
    "t.jsonl": (
        b'{"text": "a", "label": "x"}\nno\n[1]\n{"text": "b\xe4", "label": "y"}\n{"text": "c"}\n'
        b'{"text": "d", "label": " "}\n{"text": "e", "label": "y"}\n',
        [("a", "x"), ("e", "y")],
        5,
    ),
}
"""For each file its bytes, its good rows, and the number of lines of its bad rows."""


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_left_out_and_counted(name):
    data, rows, bad = BAD[name]
    found = read(name, data, skip_bad_records=True)
    assert [(pair.first, pair.label) for pair in found.pairs] == rows
    assert found.warnings()[-1] == f"{name}: {bad} lines are left out (skip_bad_records)"
    assert len(found.warnings()) == 4, "the first three are told"


@pytest.mark.parametrize("name", BAD)
def test_the_first_bad_row_ends_the_reading_without_the_flag(name):
    with pytest.raises(InputError, match="line [234]"):
        read(name, BAD[name][0])


def test_the_error_about_a_row_names_the_flag_but_not_where_it_would_not_help():
    with pytest.raises(InputError, match="line 3: lacks the column label; .* out: --skip-bad-records$"):
        read("t.tsv", "text\tlabel\na\tx\nb\n")
    with pytest.raises(InputError, match="line 2: lacks the column text; .* --text-column names another$"):
        read("t.tsv", "body\tlabel\na\tx\n")


def test_a_quote_that_nothing_closes_is_told_with_all_lines_that_it_swallows():
    rows = "".join(f"a{number},x\n" for number in range(100))
    bad = "e\n" * 5
    found = read("t.csv", f'text,label\nb,y\n{bad}"c,x\n{rows}', skip_bad_records=True)
    assert len(found.pairs) == 1
    *_, joined, count = found.warnings()
    assert joined.startswith("t.csv: lines 8 to 108: is no CSV: unexpected end of data")
    assert count == "t.csv: 106 lines are left out (skip_bad_records)"


def test_labels_and_scores_that_the_task_lacks_are_bad_rows():
    found = read("t.csv", "text,label\na,x\nb,y\nc,X\n", skip_bad_records=True, labels=["x", "y"])
    assert [pair.label for pair in found.pairs] == ["x", "y"]
    found = read("t.csv", "text,label\na,1\nb,nan\nc,two\nd,-2.5\n", skip_bad_records=True, regression=True)
    assert [pair.label for pair in found.pairs] == ["1", "-2.5"]


def test_a_faulty_heading_is_never_left_out():
    """The second row would be taken for the heading."""
    with pytest.raises(InputError, match="line 1: byte 0xe4 is not UTF-8"):
        read("t.tsv", b"t\xe4xt\tlabel\na\tx\nb\ty\n", skip_bad_records=True)
    found = read("t.tsv", b"t\xe4xt\tx\na\tx\nb\ty\n", skip_bad_records=True, heading=False,
                 text_column="0", label_column="1")  # fmt: skip
    assert [pair.first for pair in found.pairs] == ["a", "b"]


def test_a_table_of_bad_rows_alone_holds_no_examples():
    with pytest.raises(InputError, match="holds no examples; t.csv: line 2: lacks the column label"):
        read("t.csv", "text,label\na\nb\n", skip_bad_records=True)


def test_a_field_of_a_csv_may_be_longer_than_pythons_limit():
    long = "word " * 60_000  # 300,000 characters, where the csv module reads 131,072 by default
    found = read("t.csv", f'text,label\n"{long}",x\nb,y\n')
    assert found.pairs[0].first == long


@pytest.fixture
def finetune(trainer, pretrained, tmp_path):
    def call(*more: object):
        return trainer(*finetune_words("classification", pretrained, tmp_path / "run", *more))

    return call


def test_a_run_leaves_them_out_and_a_resumed_one_and_an_evaluation_too(finetune, trainer, tmp_path):
    train, dev = table(tmp_path / "train.tsv", 16), table(tmp_path / "dev.tsv", 8)
    for path in (train, dev):
        with path.open("a", encoding="utf-8") as file:
            file.write("no label\nThe tower is old .\tunknown\tand more\n")
    given = (f"--train-file={train}", f"--eval-file={dev}", "--steps=2", "--warmup=0")
    refuse(finetune(*given), 1, "train.tsv: line 18: lacks the column label", "--skip-bad-records")
    outcome = finetune(*given, "--skip-bad-records", "--steps-this-run=1")
    assert outcome.status == 0, outcome.err
    for path, examples in ((train, 16), (dev, 8)):
        assert f"warning: {path}: 2 lines are left out (skip_bad_records)" in outcome.err
        assert f"{path}: {examples} features made in" in outcome.err
    assert "train.tsv: labels by number: 0 bad (6), 1 good (10)" in outcome.err
    resumed = finetune(*given, "--skip-bad-records", "--resume")
    assert resumed.status == 0, resumed.err
    assert resumed.err.count("2 lines are left out") == 2, "the manifest of the features remembers them"
    evaluated = trainer("evaluate", f"--output-dir={tmp_path / 'run'}", "--no-progress-bar")
    assert evaluated.status == 0, evaluated.err
    assert "evaluated 8 examples" in evaluated.err


def test_no_row_of_a_file_to_predict_is_left_out(finetune, tmp_path):
    """Predictions are matched with the rows of their file by number."""
    train = table(tmp_path / "train.tsv", 16)
    plain = tmp_path / "plain.tsv"
    plain.write_text("text\tmore\nThe tower is old .\ta\nb\tc\td\n", encoding="utf-8")
    given = (f"--train-file={train}", "--steps=1", "--warmup=0", "--skip-bad-records")
    outcome = finetune(*given, "--do-predict", f"--predict-file={plain}")
    refuse(outcome, 1, "plain.tsv: line 3: has 3 values, expected at most 2")
    assert "--skip-bad-records" not in outcome.err


def test_features_and_scores_leave_out_the_same_rows(trainer, small_vocabulary_file, tmp_path):
    data = table(tmp_path / "dev.tsv", 8)
    with data.open("a", encoding="utf-8") as file:
        file.write("no label\n")
    given = ("features", "--task=classification", data, "--vocab", small_vocabulary_file)
    refuse(trainer(*given, "--output", tmp_path / "f.jsonl"), 1, "line 10: lacks the column label")
    made = trainer(*given, "--output", tmp_path / "f.jsonl", "--skip-bad-records")
    assert made.status == 0
    assert "dev.tsv: 1 line is left out (skip_bad_records)" in made.err
    assert len((tmp_path / "f.jsonl").read_text(encoding="utf-8").splitlines()) == 8
    labels = [line.split("\t")[1] for line in data.read_text(encoding="utf-8").splitlines()[1:9]]
    predictions = tmp_path / "predictions.txt"
    predictions.write_text("\n".join(labels) + "\n", encoding="utf-8")
    scored = trainer("score", "--task=classification", data, predictions, "--skip-bad-records")
    assert scored.status == 0, scored.err
    assert scored.out.startswith("acc 1")
    refuse(
        trainer("features", "--task=squad", data, "--vocab=x", "--output=y", "--skip-bad-records"),
        2,
        "--skip-bad-records: the task squad has no such setting",
    )


def test_cut_texts_are_counted_once_and_told_again(trainer, small_vocabulary_file, tmp_path):
    data = tmp_path / "train.tsv"
    rows = ["text\tother\tlabel", "a\tb\tx", f"{'a ' * 9}\tb\ty", f"{'a ' * 5}\t{'b ' * 20}\tx"]
    data.write_text("\n".join(rows) + "\n", encoding="utf-8")
    given = ("features", "--task=classification", data, "--vocab", small_vocabulary_file, "--dataset")
    cut = "2 of 3 examples were cut to max_seq_length 8; the longest has 28 token ids"  # 5 + 20 + 3
    pair = ("--second-text-column=other", "--max-seq-length=8")
    for done in ("made", "kept"):
        outcome = trainer(*given, tmp_path / "pairs", *pair)
        assert f"{done} 3 examples" in outcome.out
        assert f"warning: {data}: {cut}" in outcome.err
    single = trainer(*given, tmp_path / "single", "--max-seq-length=10")
    assert "1 of 3 examples was cut to max_seq_length 10; the longest has 11 token ids" in single.err
    whole = trainer(*given, tmp_path / "whole", "--max-seq-length=11")
    assert "examples was cut" not in whole.err


def test_a_text_that_is_cut_is_told_by_predict(finetune, trainer, tmp_path):
    train = table(tmp_path / "train.tsv", 16)
    assert finetune(f"--train-file={train}", "--steps=1", "--warmup=0", "--max-seq-length=8").status == 0
    asked = trainer("predict", tmp_path / "run", "a " * 15)
    assert asked.status == 0
    assert "the text has 17 token ids (special tokens included), but only 8 are read" in asked.err
    assert "but only" not in trainer("predict", tmp_path / "run", "The tower is old .").err


@pytest.mark.parametrize(
    "flags", [("--text-column", "--second-text-column"), ("--first-column", "--second-column")]
)
def test_columns_have_the_same_names_in_both_commands(
    finetune, trainer, small_vocabulary_file, tmp_path, flags
):
    data = tmp_path / "train.tsv"
    rows = "".join(f"The tower is old .\tIt is new .\t{number % 2}\n" for number in range(8))
    data.write_text(f"a\tb\tkind\n{rows}", encoding="utf-8")
    columns = (f"{flags[0]}=a", f"{flags[1]}=b", "--label-column=kind")
    made = trainer(
        "features",
        "--task=classification",
        data,
        "--vocab",
        small_vocabulary_file,
        "--output",
        tmp_path / "f",
        *columns,
    )
    assert made.status == 0, made.err
    outcome = finetune(f"--train-file={data}", "--steps=1", "--warmup=0", *columns)
    assert outcome.status == 0, outcome.err
    config = read_state(choose_checkpoint(str(tmp_path / "run"))).config
    assert (config["text_column"], config["second_text_column"], config["label_column"]) == ("a", "b", "kind")


def test_a_run_of_an_earlier_version_is_evaluated_with_its_columns(finetune, trainer, tmp_path):
    """Its checkpoint calls them first_column and second_column."""
    from bertdata.lineages.run_state import compute_state_md5

    data = tmp_path / "train.tsv"
    rows = "".join(f"The tower is old .\t{number % 2}\n" for number in range(8))
    data.write_text(f"body\tlabel\n{rows}", encoding="utf-8")
    given = (f"--train-file={data}", f"--eval-file={data}", "--steps=1", "--warmup=0", "--first-column=body")
    assert finetune(*given).status == 0
    [path] = find_checkpoints(str(tmp_path / "run")).values()
    state = json.loads((path / "state.json").read_text(encoding="utf-8"))
    state.pop("md5")
    state.pop("best")
    config = state["config"]
    for old, new in (("first_column", "text_column"), ("second_column", "second_text_column")):
        config[old] = config.pop(new)
    for name in ("keep_best", "patience", "skip_bad_records"):
        del config[name]
    state["md5"] = compute_state_md5(state)
    (path / "state.json").write_text(json.dumps(state), encoding="utf-8")
    evaluated = trainer("evaluate", f"--output-dir={tmp_path / 'run'}", "--no-progress-bar")
    assert evaluated.status == 0, evaluated.err
    assert "evaluated 8 examples" in evaluated.err
