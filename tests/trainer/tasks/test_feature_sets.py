"""Features as datasets: made once, verified, read by the toolkit's commands as any other dataset."""

import json
from functools import partial

import pytest

from bertdata.cli.main import main as bertdata
from bertdata.dataset.reader import open_dataset
from bertdata.dataset.writer import Dataset
from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.classification.batch import ScoredExample, split_score
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.tokens.load import load_tokenizer, load_vocabulary
from trainer.__main__ import main
from trainer.tasks.classification.features import fill_in_settings, make_pair_examples
from trainer.tasks.classification.presets import TASKS, ClassificationSettings
from trainer.tasks.data_file import read_file
from trainer.tasks.feature_set import make_feature_set, make_feature_set_name
from trainer.tasks.squad.features import SquadSettings, make_features, make_squad_examples
from trainer.tasks.squad.reading import read_squad

CONTEXT = "The keeper lit the lamp. " * 9 + "A ship passed the lighthouse in the evening."


@pytest.fixture
def squad_file(tmp_path):
    questions = [
        {"id": "a", "question": "Who lit it?", "answers": [{"text": "The keeper", "answer_start": 0}]},
        {"id": "b", "question": "When?", "answers": [{"text": "evening", "answer_start": 261}]},
        {"id": "c", "question": "Why?", "answers": [{"text": "why not", "answer_start": 0}]},
    ]
    path = tmp_path / "train.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": questions}]}]}))
    return path


def make_squad_set(directory, source, tokenizer, settings):
    return make_feature_set(directory, source, tokenizer, settings, make_squad_examples)


def make_pair_set(directory, source, tokenizer, task, settings):
    return make_feature_set(directory, source, tokenizer, settings, partial(make_pair_examples, task))


SIZES = {"max_seq_length": 32, "doc_stride": 12, "max_query_length": 8, "training": True}


@pytest.fixture
def tokenizer(small_vocabulary_file):
    return load_tokenizer(str(small_vocabulary_file), "google", True)


@pytest.mark.parametrize("format", ["tfrecord", "hdf5", "parquet"])
def test_a_squad_dataset_holds_the_features(squad_file, tokenizer, tmp_path, format):
    settings = SquadSettings(format=format, **SIZES)
    found = make_squad_set(str(tmp_path / "set"), read_file(str(squad_file)), tokenizer, settings)
    assert (found.kept, len(found.warnings)) == (False, 1)
    features = make_features(
        read_squad(read_file(str(squad_file)), training=True).questions, tokenizer, settings
    )
    opened = open_dataset(str(tmp_path / "set"))
    assert opened.layout.objective == "squad"
    examples = [one for shard in opened.shards for batch in opened.batches(shard) for one in batch.examples()]
    assert [(one.ids, one.first_length, one.answer_start, one.answer_end) for one in examples] == [
        (one.ids(tokenizer.vocabulary), one.document, one.start, one.end) for one in features
    ]
    assert any(one.start for one in features)
    assert any(not one.start for one in features)
    (entry,) = found.manifest.inputs
    assert (entry.documents, entry.sentences) == (1, 2)
    assert entry.tokens == sum(len(one.ids) for one in examples)


def test_a_dataset_is_made_once_and_mended_where_it_was_damaged(squad_file, tokenizer, tmp_path):
    directory, source = tmp_path / "set", read_file(str(squad_file))
    settings = SquadSettings(**SIZES)
    first = make_squad_set(str(directory), source, tokenizer, settings)

    def refuse(*_):
        raise AssertionError("made again")

    again = make_feature_set(str(directory), source, tokenizer, settings, refuse)
    assert again.kept
    assert again.manifest == first.manifest
    (warning,) = first.warnings
    assert again.warnings == [warning]
    assert warning.startswith(f"{squad_file}: question c: its answer is not in the words of its context")
    listed = json.loads((directory / "manifest.json").read_text())["warnings"]
    assert listed == ["question c: its answer is not in the words of its context; left out"]
    assert not (directory / "unfinished").exists()
    shard = directory / "features.tfrecord"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert bertdata(["verify-md5", str(directory)]) == 1
    assert make_squad_set(str(directory), source, tokenizer, settings).kept is False
    assert shard.read_bytes() == whole
    assert bertdata(["verify-md5", "--content", str(directory)]) == 0


def test_a_finished_dataset_is_only_read(squad_file, tokenizer, tmp_path, monkeypatch):
    directory, settings = str(tmp_path / "set"), SquadSettings(**SIZES)
    make_squad_set(directory, read_file(str(squad_file)), tokenizer, settings)

    def refuse(*arguments, **named):
        raise AssertionError("written")

    for name in ("open_output", "make_directory", "remove"):
        monkeypatch.setattr(storage, name, refuse)
    assert make_squad_set(directory, read_file(str(squad_file)), tokenizer, settings).kept


def test_an_unfinished_dataset_is_finished(squad_file, tokenizer, tmp_path, monkeypatch):
    directory, settings = tmp_path / "set", SquadSettings(**SIZES)
    source = read_file(str(squad_file))

    def stop(*arguments, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Dataset, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            make_squad_set(str(directory), source, tokenizer, settings)
    assert (directory / "unfinished" / "plan.json").exists()
    written = (directory / "features.tfrecord").stat().st_mtime_ns
    found = make_squad_set(str(directory), source, tokenizer, settings)
    assert found.kept is False
    assert (directory / "features.tfrecord").stat().st_mtime_ns == written, "the noted shard is kept"
    assert not (directory / "unfinished").exists()
    assert bertdata(["verify-md5", str(directory)]) == 0


def test_another_file_or_other_settings_are_another_dataset(squad_file, tokenizer, tmp_path):
    directory, settings = str(tmp_path / "set"), SquadSettings(**SIZES)
    source = read_file(str(squad_file))
    made = make_squad_set(directory, source, tokenizer, settings)
    with pytest.raises(DatasetError, match="was made with other settings: doc_stride 12, now 13"):
        make_squad_set(directory, source, tokenizer, settings.with_changes(doc_stride=13))
    name = make_feature_set_name(source, tokenizer.vocabulary, settings)
    assert name.startswith("squad-")
    assert name != make_feature_set_name(source, tokenizer.vocabulary, settings.with_changes(doc_stride=13))
    squad_file.write_text(squad_file.read_text().replace("Who lit", "Who then lit"))
    changed = read_file(str(squad_file))
    assert name != make_feature_set_name(changed, tokenizer.vocabulary, settings)
    remade = make_squad_set(directory, changed, tokenizer, settings)
    assert remade.kept is False
    assert remade.manifest.inputs[0].md5 != made.manifest.inputs[0].md5


@pytest.mark.parametrize("task", ["mrpc", "sts-b"])
@pytest.mark.parametrize("format", ["tfrecord", "hdf5", "parquet"])
def test_labels_and_scores_come_back(tokenizer, tmp_path, task, format):
    preset = TASKS[task]
    table = tmp_path / "train.tsv"
    if task == "mrpc":
        table.write_text("Q\ta\tb\tc\td\n1\t\t\tone text\tanother text\n0\t\t\tx\ty\n")
        expected = [1, 0]
    else:
        table.write_text("sentence1\tsentence2\tscore\none text\tanother\t4.2\nx\ty\t-0.1\n")
        expected = [pytest.approx(4.2, rel=1e-7), pytest.approx(-0.1, rel=1e-7)]
    sizes = {"dialect": "google", "lower_case": True, "max_seq_length": 16}
    settings = fill_in_settings(preset, ClassificationSettings(format=format, **sizes), labelled=True)
    directory = str(tmp_path / "set")
    found = make_pair_set(directory, read_file(str(table)), tokenizer, preset, settings)
    opened = open_dataset(directory)
    examples = [one for shard in opened.shards for batch in opened.batches(shard) for one in batch.examples()]
    assert [getattr(one, "score", getattr(one, "label", None)) for one in examples] == expected
    assert make_pair_set(directory, read_file(str(table)), tokenizer, preset, settings).kept
    assert found.manifest.plan.settings.objective["labels"] == list(preset.labels or ())
    assert found.manifest.plan.settings.tokenizer["dialect"] == "google"
    assert found.manifest.as_json()["recipe"] is None
    assert list(found.manifest.as_json()["settings"]) == ["text", "tokenizer", "objective", "container"]
    assert "warnings" not in found.manifest.as_json()


@pytest.mark.parametrize("score", [0.0, -0.0, 1.5, -3.25e-20, 3.0e38, 5.0])
def test_a_score_is_two_halves_of_its_bits(score):
    high, low = split_score(score)
    found = ScoredExample(ids=[], first_length=0, score_high=high, score_low=low).score
    assert found == pytest.approx(score, rel=1e-7)
    assert str(found)[0] == str(score)[0], "the sign of zero too"


def test_the_toolkits_commands_read_a_dataset_of_features(
    squad_file, small_vocabulary_file, tmp_path, capsys
):
    directory = str(tmp_path / "set")
    words = ["features", "--task=squad", str(squad_file), f"--vocab={small_vocabulary_file}", "--training"]
    flags = ["--max-seq-length=32", "--doc-stride=12", "--max-query-length=8", f"--dataset={directory}"]
    assert main([*words, *flags]) == 0
    assert capsys.readouterr().out.startswith(f"{directory}: made ")
    assert main([*words, *flags]) == 0
    assert capsys.readouterr().out.startswith(f"{directory}: kept ")
    shard = f"{directory}/features.tfrecord"
    assert bertdata(["show", shard]) == 0
    shown = capsys.readouterr().out
    assert "\n  A  [CLS] who " in shown
    assert "\n  answer " in shown
    assert bertdata(["stats", directory, "--json"]) == 0
    (stats,) = json.loads(capsys.readouterr().out)["datasets"]
    assert stats["objective"] == "squad"
    assert stats["answers"]["impossible"] == 0
    assert stats["answers"]["with_answer"] >= 2
    for ending in ("parquet", "hdf5"):
        assert bertdata(["convert", shard, str(tmp_path / f"a.{ending}")]) == 0
        capsys.readouterr()
        assert bertdata(["md5", "--content", shard, str(tmp_path / f"a.{ending}")]) == 0
        first, second = capsys.readouterr().out.splitlines()
        assert first.split()[0] == second.split()[0]


def test_a_table_becomes_a_dataset_by_the_command(small_vocabulary_file, tmp_path, capsys):
    table, directory = tmp_path / "t.jsonl", str(tmp_path / "set")
    table.write_text('{"text": "some text", "label": "b"}\n{"text": "more", "label": "a"}\n')
    words = ["features", "--task=classification", str(table), f"--vocab={small_vocabulary_file}"]
    assert main([*words, f"--dataset={directory}", "--format=parquet", "--max-seq-length=16"]) == 0
    assert capsys.readouterr().out == f"{directory}: made 2 examples\n"
    assert bertdata(["show", f"{directory}/features.parquet", "--num", "2"]) == 0
    assert "label 1" in capsys.readouterr().out
    assert bertdata(["stats", directory, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["datasets"][0]["labels"] == {"0": 1, "1": 1}


@pytest.mark.parametrize("name", ["squad", "classification", "regression"])
def test_no_text_alone_gives_such_examples(corpus, small_vocabulary_file, tmp_path, capsys, name):
    words = ["create", str(corpus[0]), f"--output={tmp_path / 'x'}", f"--vocab={small_vocabulary_file}"]
    assert bertdata([*words, f"--objective={name}"]) == 2
    assert f"objective {name}: its examples are not made of documents" in capsys.readouterr().err
    objective = find_objective(name)
    with pytest.raises(SettingsError, match="python -m trainer features"):
        objective.make(None, load_vocabulary(str(small_vocabulary_file), "google"), None)
