"""The commands features and score: what they print and write, and how they refuse."""

import hashlib
import json

import pytest

from trainer.__main__ import main


@pytest.fixture
def vocabulary(kit):
    return str(kit / "vocab" / "bert-base-uncased.txt")


def test_features_of_squad_are_the_originals_file(kit, vocabulary, tmp_path, capsys):
    output = tmp_path / "features.jsonl"
    words = ["features", "--task", "squad", str(kit / "squad/edge_train_v1.json"), "--vocab", vocabulary]
    sizes = ["--max-seq-length=96", "--doc-stride=32", "--max-query-length=24"]
    for dialect in ("google", "nvidia"):
        oracle = json.loads((kit / "squad" / f"edge__{dialect}.json").read_text())
        oracle = oracle["edge_train_v1__s96__d32__q24__training"]
        flags = [*sizes, "--training", f"--dialect={dialect}", f"--output={output}"]
        assert main([*words, *flags]) == 0
        assert hashlib.md5(output.read_bytes()).hexdigest() == oracle["md5"]
        printed = capsys.readouterr()
        assert printed.out == f"{output}: {oracle['features']} features of 26 questions\n"
        assert printed.err.count("its answer is not in the words of its context; left out") == 3


def test_features_without_lower_case_are_the_originals(kit, vocabulary, tmp_path, capsys):
    output = tmp_path / "features.jsonl"
    oracle = json.loads((kit / "squad/edge__google.json").read_text())
    source = str(kit / "squad/edge_predict.json")
    words = ["features", "--task=squad", source, "--vocab", vocabulary, "--no-lower-case"]
    assert main([*words, "--output", str(output)]) == 0
    expected = oracle["edge_predict__s384__d128__q64__no-lower-case"]["md5"]
    assert hashlib.md5(output.read_bytes()).hexdigest() == expected
    assert "no token has a capital letter, but the text keeps its case" in capsys.readouterr().err


def test_shuffled_features_are_those_that_google_trains_on(kit, vocabulary, tmp_path):
    output = tmp_path / "features.jsonl"
    oracle = json.loads((kit / "squad/features__google__xquad.en__s384__d128__q64.json").read_text())
    words = ["features", "--task=squad", str(kit / "squad/xquad.en.json"), "--vocab", vocabulary]
    assert main([*words, "--training", "--shuffled", f"--output={output}"]) == 0
    assert hashlib.md5(output.read_bytes()).hexdigest() == oracle["training_shuffled"]["md5"]


@pytest.mark.parametrize(("flags", "part"), [([], "dev"), (["--no-labels"], "test")])
def test_features_of_mrpc_are_the_originals_file(kit, vocabulary, tmp_path, flags, part):
    output = tmp_path / "features.jsonl"
    oracle = json.loads((kit / "mrpc/features__google__mrpc__s128.json").read_text())
    source = str(kit / "mrpc/msr_paraphrase_test.txt")
    words = ["features", "--task", "MRPC", source, "--vocab", vocabulary, "--output", str(output), *flags]
    assert main(words) == 0
    assert hashlib.md5(output.read_bytes()).hexdigest() == oracle[part]["md5"]


def test_features_of_a_table_of_ones_own(small_vocabulary_file, tmp_path, capsys):
    table, output = tmp_path / "t.csv", tmp_path / "features.jsonl"
    table.write_text("kind,words\nb,some text\na,another text\n", encoding="utf-8")
    words = ["features", "--task=classification", str(table), f"--vocab={small_vocabulary_file}"]
    flags = ["--text-column=words", "--label-column=kind", "--max-seq-length=16", f"--output={output}"]
    assert main([*words, *flags]) == 0
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["label_id"] for line in lines] == [1, 0]
    assert all(len(line["input_ids"]) == 16 and not any(line["segment_ids"]) for line in lines)
    assert capsys.readouterr().out == f"{output}: 2 features\n"
    assert main([*words, *flags, "--labels=b,a"]) == 0
    assert [json.loads(line)["label_id"] for line in output.read_text().splitlines()] == [0, 1]


def test_the_score_of_published_answers(kit, capsys):
    words = [
        "score",
        "--task",
        "squad",
        str(kit / "squad/xquad.en.json"),
        str(kit / "squad/predictions.en.json"),
    ]
    assert main(words) == 0
    assert capsys.readouterr().out == "exact_match 74.87394957983193\nf1 86.32474793700983\n"
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "exact_match": 74.87394957983193,
        "f1": 86.32474793700983,
    }
    assert main([*words, "--version-2-with-negative"]) == 0
    printed = capsys.readouterr()
    assert "HasAns_exact 74.87394957983193\n" in printed.out
    assert "always no answer scores exact 0.00, f1 0.00" in printed.err  # each of these has an answer


def test_the_score_of_labels(tmp_path, capsys):
    data, predictions = tmp_path / "dev.tsv", tmp_path / "test_results.tsv"
    data.write_text("sentence\tlabel\na\t1\nb\t0\nc\t1\nd\t0\n", encoding="utf-8")
    predictions.write_text("0.1\t0.9\n0.9\t0.1\n0.6\t0.4\n1\t0\n", encoding="utf-8")
    assert main(["score", "--task=sst-2", str(data), str(predictions), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"acc": 0.75}
    assert (
        printed.err
        == 'trainer: beside it: always "0", the most frequent label of the file, scores acc 0.5000\n'
    )


def squad_file(tmp_path, *questions):
    path = tmp_path / "dev.json"
    qas = [
        {"id": name, "question": "q", "answers": [{"text": one, "answer_start": 0} for one in golds]}
        for name, golds in questions
    ]
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": "c", "qas": qas}]}]}))
    return str(path)


def test_unanswered_and_unknown_questions_are_warned_of(tmp_path, capsys):
    data, predictions = squad_file(tmp_path, ("a", ["x"]), ("b", ["y"])), tmp_path / "p.json"
    predictions.write_text('{"a": "X", "z": "X"}')
    assert main(["score", "--task=squad", data, str(predictions)]) == 0
    printed = capsys.readouterr()
    assert printed.out == "exact_match 50.0\nf1 50.0\n"
    assert "p.json: has no answer to 1 questions, as b" in printed.err
    assert f"p.json: answers 1 questions that {data} has not, as z" in printed.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "p.json: is no JSON object, expected an answer by each question's id"),
        ("{", "p.json: is not JSON: "),
        ('{"a": 1}', "p.json: question a: the answer is 1, expected a text"),
        ('{"q": "x"}', "p.json: answers no question of "),
        ("{}", "p.json: answers no question of "),
    ],
)
def test_bad_predictions_are_refused_in_one_line(tmp_path, capsys, text, message):
    predictions = tmp_path / "p.json"
    predictions.write_text(text)
    assert main(["score", "--task=squad", squad_file(tmp_path, ("a", ["x"])), str(predictions)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_best_thresholds_are_scored_by_the_command(tmp_path, capsys):
    data = squad_file(tmp_path, ("a", ["red"]), ("b", []))
    predictions, odds = tmp_path / "p.json", tmp_path / "null_odds.json"
    predictions.write_text('{"a": "red", "b": "x"}')
    odds.write_text('{"a": -4.5, "b": 3}')
    words = ["score", "--task=squad", data, str(predictions)]
    assert main([*words, f"--na-prob-file={odds}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["exact"], found["best_exact"], found["best_exact_thresh"]) == (100.0, 100.0, -4.5)
    assert main([*words, f"--na-prob-file={odds}", "--na-prob-thresh=3"]) == 0
    assert "exact 50.0\n" in capsys.readouterr().out
    assert main([*words, "--na-prob-thresh=3"]) == 2
    assert "--na-prob-thresh goes with --na-prob-file" in capsys.readouterr().err
    for text, message in (
        ('{"a": 1}', "null_odds.json: has no number for 1 predicted questions, as b"),
        ('{"a": 1, "b": "x"}', "null_odds.json: question b: holds 'x', expected a number"),
        ("[]", "null_odds.json: is no JSON object, expected a number by each question's id"),
    ):
        odds.write_text(text)
        assert main([*words, f"--na-prob-file={odds}"]) == 1
        assert message in capsys.readouterr().err
    assert main(["score", "--task=mrpc", data, str(predictions), f"--na-prob-file={odds}"]) == 2


def test_a_file_without_answers_cannot_be_scored(tmp_path, capsys):
    predictions = tmp_path / "p.json"
    predictions.write_text('{"a": "x"}')
    assert main(["score", "--task=squad", squad_file(tmp_path, ("a", [])), str(predictions)]) == 1
    assert "dev.json: gives no question an answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (["--task=squat"], 2, "task 'squat': no such task; known are squad, mrpc, "),
        (["--task=squad", "--labels=a,b"], 2, "--labels: the task squad has no such setting"),
        (["--task=mrpc", "--doc-stride=9"], 2, "--doc-stride: the task mrpc has no such setting"),
        (
            ["--task=squad", "--max-seq-length=66", "--max-query-length=64"],
            2,
            "max_query_length is 64, expected at most max_seq_length - 4",
        ),
        (["--task=squad", "--vocab=nowhere.txt"], 2, "nowhere.txt: no such file or directory, nor a named"),
        (["--task=squad"], 1, "d.json: lacks 'data'"),
        (["--task=rte"], 1, "d.json: line 1: lacks the column sentence1; it has version"),
    ],
)
def test_wrong_usage_and_bad_input_are_told_apart(
    small_vocabulary_file, tmp_path, capsys, flags, status, message
):
    data, output = tmp_path / "d.json", tmp_path / "out.jsonl"
    data.write_text('{"version": "1.1"}')
    words = ["features", str(data), f"--vocab={small_vocabulary_file}", f"--output={output}"]
    assert main([*words, *flags]) == status
    assert message in capsys.readouterr().err
    assert not output.exists()


def test_a_vocabulary_without_sep_is_refused(tmp_path, capsys):
    vocabulary, data = tmp_path / "v.txt", tmp_path / "d.json"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[MASK]\na\n")
    data.write_text("{}")
    words = ["features", "--task=squad", str(data), f"--vocab={vocabulary}", f"--output={tmp_path / 'o'}"]
    assert main(words) == 1
    assert "v.txt: lacks [SEP]" in capsys.readouterr().err
