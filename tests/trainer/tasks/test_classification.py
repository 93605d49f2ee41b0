"""Tables of texts with labels: reading, features against the originals', metrics, files of predictions."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import InputError, SettingsError
from bertdata.shards.example_proto import encode_example
from bertdata.shards.framing import frame_payload
from bertdata.tokens.load import load_tokenizer
from trainer.tasks.classification.features import (
    fill_in_settings,
    make_features,
    pad_feature,
    shorten_pair,
)
from trainer.tasks.classification.metrics import (
    format_predictions,
    read_predictions,
    score_labels,
)
from trainer.tasks.classification.presets import (
    TASKS,
    ClassificationSettings,
    TableColumns,
)
from trainer.tasks.classification.reading import (
    convert_labels,
    find_labels,
    read_pairs,
)
from trainer.tasks.classification.table import read_rows
from trainer.tasks.data_file import DataFile, read_file
from trainer.tasks.feature_set import format_json_line
from trainer.tasks.names import find_task_name

MRPC = TASKS["mrpc"]
OWN = TASKS["classification"]


def mrpc_features(kit, part, dialect):
    file = "train" if part == "train" else "test"
    found = read_pairs(
        read_file(str(kit / "mrpc" / f"msr_paraphrase_{file}.txt")), MRPC, labelled=part != "test"
    )
    tokenizer = load_tokenizer(str(kit / "vocab" / "bert-base-uncased.txt"), dialect, True)
    labels = convert_labels(found.pairs, MRPC)
    return make_features(found.pairs, labels, tokenizer, 128)


@pytest.mark.parametrize("part", ["train", "dev", "test"])
@pytest.mark.parametrize("dialect", ["google", "nvidia"])
@pytest.mark.thorough_after_first
def test_mrpcs_features_are_the_originals(kit, part, dialect):
    oracles = json.loads((kit / "mrpc" / f"features__{dialect}__mrpc__s128.json").read_text())
    oracle = oracles.get(part)
    if oracle is None:
        assert (dialect, part) == ("nvidia", "test")  # the same file as dev
        return
    features = mrpc_features(kit, part, dialect)
    lines = [format_json_line(pad_feature(one, 128)) for one in features]
    assert len(lines) == oracle["examples"]
    assert hashlib.md5("".join(lines).encode()).hexdigest() == oracle["md5"]
    assert sum(one.label for one in features) == oracle["label_sum"]
    for line, expected in zip(lines, oracle.get("first_5", ()), strict=False):
        assert json.loads(line) == expected
    if record := oracle.get("tf_record"):
        data = b"".join(map(_record, map(json.loads, lines)))
        assert (len(data), hashlib.md5(data).hexdigest()) == (record["bytes"], record["content_md5"])


def _record(value):
    """Google's TFRecord of one feature in canonical form."""
    fields = {name: value[name] for name in ("input_ids", "input_mask", "segment_ids")}
    return frame_payload(encode_example({**fields, "label_ids": [value["label_id"]], "is_real_example": [1]}))


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 50))
def test_a_pair_is_shortened_at_its_longer_text_one_id_at_a_time(first, second, limit):
    a, b = list(range(first)), list(range(second))
    while len(a) + len(b) > limit:
        (a if len(a) > len(b) else b).pop()
    assert shorten_pair(list(range(first)), list(range(second)), limit) == (a, b)


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


PAIR = replace(OWN, columns=TableColumns(first="a", second="b", label="kind"))
ROWS = [("first text", "it's \"quoted", "yes"), ("x", "y", "no"), ("p", "q", "maybe")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "t.tsv",
            "\ufeffid\ta\tb\tkind\r\n1\tfirst text\tit's \"quoted\tyes\r\n\r\n2\tx\ty\tno\n3\tp\tq\tmaybe",
        ),
        ("t.csv", 'a,b,kind\nfirst text,"it\'s ""quoted",yes\nx,y,no\np,q,maybe\n'),
        (
            "t.jsonl",
            "".join(json.dumps(dict(zip(("a", "b", "kind"), row, strict=True))) + "\n" for row in ROWS),
        ),
    ],
)
def test_the_three_kinds_of_tables_hold_the_same(tmp_path, name, text):
    found = read_pairs(read_file(write(tmp_path, name, text)), PAIR)
    assert [(one.first, one.second, one.label) for one in found.pairs] == ROWS
    task = find_labels(PAIR, found)
    assert task.labels == ("maybe", "no", "yes")
    assert convert_labels(found.pairs, task) == [2, 1, 0]


def test_columns_may_be_numbers_and_labels_may_be_missing(tmp_path):
    path = write(tmp_path, "t.tsv", "yes\tone\nno\ttwo\n")
    task = replace(OWN, columns=TableColumns(first="1", label="0"), heading=False)
    assert [(one.first, one.second, one.label) for one in read_pairs(read_file(path), task).pairs] == [
        ("one", None, "yes"),
        ("two", None, "no"),
    ]
    unlabelled = read_pairs(read_file(path), task, labelled=False)
    assert [one.label for one in unlabelled.pairs] == [None, None]
    assert convert_labels(unlabelled.pairs, replace(task, labels=("no", "yes"))) == [0, 0]


def test_numbers_in_json_are_labels_and_scores(tmp_path):
    path = write(tmp_path, "t.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": -0.25}\n')
    assert convert_labels(read_pairs(read_file(path), OWN).pairs, replace(OWN, regression=True)) == [
        1.0,
        -0.25,
    ]


GLUE = {
    "cola": ("gj04\t1\t\tA text.\n", ("A text.", None, 1)),
    "sst-2": ("sentence\tlabel\na text \t0\n", ("a text ", None, 0)),
    "sts-b": ("index\tsentence1\tsentence2\tscore\n0\ta\tb\t4.200\n", ("a", "b", 4.2)),
    "qqp": ("id\tquestion1\tquestion2\tis_duplicate\n7\ta?\tb?\t1\n", ("a?", "b?", 1)),
    "mnli": ("index\tsentence1\tsentence2\tlabel1\tgold_label\n0\ta\tb\tx\tneutral\n", ("a", "b", 2)),
    "mnli-mm": ("sentence1\tsentence2\tgold_label\na\tb\tentailment\n", ("a", "b", 1)),
    "qnli": ("index\tquestion\tsentence\tlabel\n0\ta\tb\tnot_entailment\n", ("a", "b", 1)),
    "rte": ("index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n", ("a", "b", 0)),
    "wnli": ("index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n", ("a", "b", 1)),
    "mrpc": ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\ta\tb\n", ("a", "b", 1)),
}


@pytest.mark.parametrize("name", sorted(GLUE))
def test_each_of_glues_tables_is_read_by_its_columns(tmp_path, name):
    text, expected = GLUE[name]
    task = TASKS[find_task_name(name.upper().replace("-", "_"))]
    (pair,) = read_pairs(read_file(write(tmp_path, "dev.tsv", text)), task).pairs
    assert (pair.first, pair.second, convert_labels([pair], task)[0]) == expected


def test_every_preset_is_tested_here():
    assert set(GLUE) | {"classification"} == set(TASKS)


def test_colas_test_file_has_other_columns(tmp_path):
    path = write(tmp_path, "test.tsv", "index\tsentence\n0\tA text.\n")
    (pair,) = read_pairs(read_file(path), TASKS["cola"], labelled=False).pairs
    assert (pair.first, pair.label) == ("A text.", None)


def test_qqps_short_rows_are_left_out_with_a_warning(tmp_path):
    task = TASKS["qqp"]
    text = "id\tquestion1\tquestion2\tis_duplicate\n7\ta\tb\t1\n8\tc\n9\td\n"
    found = read_pairs(read_file(write(tmp_path, "train.tsv", text)), task)
    assert len(found.pairs) == 1
    (warning,) = found.warnings()
    assert "train.tsv: line 3: lacks columns, and so do 1 other rows; they are left out" in warning


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.tsv", b"text\tlabel\n\xe9\t1\n", "line 2: byte 0xe9 at offset 11 is not UTF-8"),
        ("t.tsv", b"BZh91AY&SY\0\0", "t.tsv: looks like bzip2 data, expected a table in UTF-8; unpack it"),
        (
            "t.tsv",
            "sentence\tlabel\na\t1\n",
            "line 2: lacks the column text; it has sentence, label; --text-column names another",
        ),
        ("t.tsv", b"ELF\0\xd0", "t.tsv: is no text: byte 0x00 at offset 3, expected a table in UTF-8"),
        ("t.tsv", "text\tlabel\na\t1\nb\n", "t.tsv: line 3: lacks the column label; it has text"),
        ("t.csv", "text,label\na,1,c\n", "t.csv: line 2: has 3 values, expected at most 2"),
        ("t.tsv", "text\ttext\n", "t.tsv: line 1: names the column 'text' twice"),
        ("t.tsv", "text\tlabel\n", "t.tsv: holds no examples"),
        ("t.tsv", "", "t.tsv: holds no examples"),
        ("t.csv", 'text,label\n"a,1\n', "t.csv: line 2: is no CSV: "),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"text"\n', "t.jsonl: line 2: is not JSON: "),
        ("t.jsonl", "[1]\n", "t.jsonl: line 1: is '.1.', expected a JSON object"),
        ("t.jsonl", '{"text": "a"}\n', "t.jsonl: line 1: lacks the column label; it has text"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path, name, text, message):
    with pytest.raises(InputError, match=message) as refused:
        read_pairs(read_file(write(tmp_path, name, text)), OWN)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["t.tsv", "t.csv", "t.jsonl"])
def test_a_mark_before_latin1_shifts_neither_offset_nor_advice(tmp_path, name):
    """The offset counts from the file's start, and the advice keeps umlauts and drops the mark."""
    text = '{"text": "Bäume", "label": "1"}\n' if name == "t.jsonl" else "text,label\nBäume,1\n"
    data = b"\xef\xbb\xbf" + text.encode("latin-1")
    path = write(tmp_path, name, data)
    with pytest.raises(InputError) as refused:
        read_pairs(read_file(path), OWN)
    assert f"byte 0xe4 at offset {data.index(0xE4)} is not UTF-8" in str(refused.value)
    assert "tail -c +4 " in str(refused.value)
    assert "iconv -f WINDOWS-1252 -t UTF-8" in str(refused.value)


def test_nan_beside_a_text_is_no_fault_of_it(tmp_path):
    path = write(
        tmp_path, "t.jsonl", '{"text": "a", "label": "x", "score": NaN}\n{"text": "b", "label": NaN}\n'
    )
    rows = [row for _, row in read_rows(read_file(path))]
    assert rows == [{"text": "a", "label": "x"}, {"text": "b"}]


def test_a_number_of_any_length_is_its_own_text(tmp_path):
    text = f'{{"text": "a", "label": {"7" * 400}, "list": [1e999]}}\n'
    [(_, row)] = read_rows(read_file(write(tmp_path, "t.jsonl", text)))
    assert row == {"text": "a", "label": "7" * 400, "list": '["1e999"]'}


def test_features_of_another_quoting_are_others(tmp_path):
    """A set that was made with quotes as text is not taken for one of CSV."""
    task, sizes = replace(OWN, labels=("0", "1")), ClassificationSettings()
    usual, chosen = (
        fill_in_settings(replace(task, quoting=one), sizes, labelled=True) for one in (None, "csv")
    )
    assert "quoting" not in usual.as_json()
    assert chosen.as_json() == {**usual.as_json(), "quoting": "csv"}


def test_a_tsv_may_have_more_values_than_its_heading_has_columns(tmp_path):
    """GLUE's own readers take such rows, of GLUE's files."""
    path = write(tmp_path, "t.tsv", "sentence\tlabel\na\t1\tc\n")
    (pair,) = read_pairs(read_file(path), TASKS["sst-2"]).pairs
    assert (pair.first, pair.label) == ("a", "1")


@pytest.mark.parametrize("name", ["t.tsv", "t.csv"])
@pytest.mark.parametrize("heading", [True, False])
def test_a_row_of_ones_own_table_is_no_longer_than_its_first(tmp_path, name, heading):
    """A tab within a text makes an odd class, which CSV had always refused."""
    mark = "\t" if name == "t.tsv" else ","
    lines = [*([f"text{mark}label"] if heading else []), f"one{mark}a", f"two{mark}b", f"th{mark}ree{mark}a"]
    task = replace(OWN, columns=TableColumns(first="0", label="1"), heading=heading)
    number = len(lines)
    with pytest.raises(InputError, match=f"line {number}: has 3 values, expected at most 2, as the"):
        read_pairs(read_file(write(tmp_path, name, "\n".join(lines))), task)


def test_whole_numbers_are_labels_in_their_order(tmp_path):
    rows = "".join(f"a,{label}\n" for label in (11, 2, 10, 1, 0, -1, 11))
    found = read_pairs(read_file(write(tmp_path, "t.csv", f"text,label\n{rows}")), OWN)
    assert find_labels(OWN, found).labels == ("-1", "0", "1", "2", "10", "11")


@pytest.mark.parametrize("label", ["", "  "])
def test_an_empty_label_is_a_class_only_where_it_is_stated(tmp_path, label):
    found = read_pairs(read_file(write(tmp_path, "t.csv", f"text,label\na,x\nb,{label}\nc,y\n")), OWN)
    with pytest.raises(InputError, match="line 3: has an empty label"):
        find_labels(OWN, found)
    stated = replace(OWN, labels=(label, "x", "y"))
    assert convert_labels(found.pairs, find_labels(stated, found)) == [1, 0, 2]


def test_fractions_are_scores_or_stated_labels(tmp_path):
    rows = "".join(f"a,{number / 40}\n" for number in range(200))
    found = read_pairs(read_file(write(tmp_path, "t.csv", f"text,label\n{rows}")), OWN)
    with pytest.raises(InputError, match="200 numbers with fractions .* give --regression where they are"):
        find_labels(OWN, found)
    assert convert_labels(found.pairs, replace(OWN, regression=True))[:3] == [0.0, 0.025, 0.05]
    whole = read_pairs(read_file(write(tmp_path, "w.csv", "text,label\na,1\nb,2\n")), OWN)
    assert find_labels(OWN, whole).labels == ("1", "2")


def test_a_first_row_that_may_be_an_example_is_not_lost_without_a_word(tmp_path):
    numbered = replace(OWN, columns=TableColumns(first="0", label="1"))
    path = write(tmp_path, "t.tsv", "one\ta\ntwo\tb\nthree\ta\n")
    with pytest.raises(InputError, match="line 1: is read as the heading, but 'a' in column 1 is a label of"):
        read_pairs(read_file(path), numbered)
    scores = write(tmp_path, "s.tsv", "one\t0.5\ntwo\t1.5\n")
    with pytest.raises(InputError, match=r"'0.5' in column 1 is a score; give --no-heading"):
        read_pairs(read_file(scores), replace(numbered, regression=True))
    assert len(read_pairs(read_file(path), replace(numbered, heading=False)).pairs) == 3
    said = read_pairs(read_file(path), replace(numbered, heading=True))
    assert (len(said.pairs), said.warnings()) == (2, [])
    # Nobody can tell what this one's first row is: it is said.
    plain = read_pairs(read_file(path), numbered, labelled=False)
    (warning,) = plain.warnings()
    assert (
        warning == f"{path}: line 1 is taken for the heading: 'one', 'a'; --no-heading where it is an example"
    )
    named = read_pairs(read_file(write(tmp_path, "n.tsv", "text\tlabel\none\ta\n")), OWN)
    assert named.warnings() == []


def test_features_of_a_table_without_heading_are_others():
    sizes = ClassificationSettings(max_seq_length=16)
    task = replace(OWN, labels=("a", "b"))
    usual, stated, without = (
        fill_in_settings(replace(task, heading=one), sizes, labelled=True) for one in (None, True, False)
    )
    assert usual.as_json() == stated.as_json()
    assert without.as_json() == {**usual.as_json(), "heading": "no"}


@given(st.binary(max_size=60), st.sampled_from(["t.tsv", "t.csv", "t.jsonl"]), st.booleans())
def test_any_bytes_are_a_table_or_refused_in_one_line(data, name, labelled):
    message = ""
    try:
        assert read_pairs(DataFile(name, data), PAIR, labelled=labelled).pairs
    except InputError as error:
        message = str(error)
    assert not message or message.startswith(name)


def test_unknown_labels_and_scores_are_refused_with_their_line(tmp_path):
    path = write(tmp_path, "t.tsv", "text\tlabel\na\t1\nb\tperhaps\n")
    pairs = read_pairs(read_file(path), OWN).pairs
    with pytest.raises(InputError, match="line 3: has the label 'perhaps', expected one of 0, 1"):
        convert_labels(pairs, replace(OWN, labels=("0", "1")))
    with pytest.raises(InputError, match="line 3: has the score 'perhaps', expected a number"):
        convert_labels(pairs, replace(OWN, regression=True))
    path = write(tmp_path, "one.tsv", "text\tlabel\na\t1\nb\t1\n")
    with pytest.raises(InputError, match="one.tsv: has the labels '1', expected two or more"):
        find_labels(OWN, read_pairs(read_file(path), OWN))


def test_an_unknown_task_is_refused():
    with pytest.raises(SettingsError, match="task 'colla': no such task; known are squad, mrpc, cola"):
        find_task_name("colla")


def test_rows_know_their_columns_by_name_and_number():
    rows = list(read_rows(DataFile("t.tsv", b"a\tb\n1\t2\n")))
    assert rows == [("t.tsv: line 2", {"0": "1", "1": "2", "a": "1", "b": "2"})]


# Metrics


def test_accuracy_and_f1_of_a_table_worked_out_by_hand():
    predicted, gold = [1, 1, 1, 0, 0], [1, 0, 1, 1, 0]  # 2 right of 3 found and of 3 wanted
    assert score_labels("accuracy", predicted, gold) == {"acc": 3 / 5}
    found = score_labels("accuracy_and_f1", predicted, gold)
    assert found == pytest.approx({"acc": 3 / 5, "f1": 2 / 3, "acc_and_f1": (3 / 5 + 2 / 3) / 2})
    assert score_labels("accuracy_and_f1", [0, 0], [0, 0])["f1"] == 0.0


def test_matthews_correlation_is_its_formula():
    predicted, gold = [1, 1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0, 0]
    tp, tn, fp, fn = 2, 3, 1, 1
    expected = (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5
    assert score_labels("matthews", predicted, gold)["mcc"] == pytest.approx(expected)
    assert score_labels("matthews", [1, 1], [0, 1]) == {"mcc": 0.0}


def test_correlations_of_scores_worked_out_by_hand():
    found = score_labels("correlation", [1.0, 2.0, 3.0, 10.0], [2.0, 1.0, 3.0, 4.0])
    assert found["spearmanr"] == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert found["pearson"] == pytest.approx(np.corrcoef([1, 2, 3, 10], [2, 1, 3, 4])[0, 1])
    assert found["corr"] == (found["pearson"] + found["spearmanr"]) / 2
    # Equal scores share the mean of their ranks: 1.5, 1.5, 3 against 1, 2, 3.
    ties = score_labels("correlation", [5.0, 5.0, 9.0], [1.0, 2.0, 3.0])
    assert ties["spearmanr"] == pytest.approx(np.corrcoef([1.5, 1.5, 3], [1, 2, 3])[0, 1])
    assert score_labels("correlation", [1.0, 1.0], [1.0, 2.0]) == {
        "pearson": 0.0,
        "spearmanr": 0.0,
        "corr": 0.0,
    }


# Files of predictions


@pytest.mark.parametrize(
    "text",
    ["index\tprediction\n0\t1\n1\t0\n2\t1\n", "1\n0\n1\n", "0.2\t0.8\n9e-1\t0.1\n0.4\t0.6\n"],
)
def test_three_forms_of_predictions_are_read(text):
    assert read_predictions(DataFile("p.tsv", text.encode()), MRPC, 3) == [1, 0, 1]


def test_written_predictions_are_read_back():
    assert read_predictions(DataFile("p", format_predictions([1, 0], MRPC).encode()), MRPC, 2) == [1, 0]
    scores = TASKS["sts-b"]
    assert format_predictions([1.5], scores) == "index\tprediction\n0\t1.500\n"
    assert read_predictions(DataFile("p", b"index\tprediction\n0\t1.500\n"), scores, 1) == [1.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n", "p: holds 1 predictions, expected 2"),
        ("1\n2\n", "p: line 2: predicts '2', expected one of 0, 1"),
        ("1\n1\t0\t1\n", "p: line 2: has 3 predictions, expected 1"),
        ("0.1\tx\n1\n", "p: line 1: holds 'x', expected a number"),
        ("index\tprediction\n1\t0\n0\t1\n", "p: line 2: has the index '1', expected 0"),
    ],
)
def test_bad_predictions_are_refused_with_their_line(text, message):
    with pytest.raises(InputError, match=message):
        read_predictions(DataFile("p", text.encode()), MRPC, 2)
