"""A text is answered by the task that its run has learned: a label, a score, an answer or none."""

import csv
import gzip
import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers

from tests.support.fine_tuning import PLACES, finetune_words, table
from tests.support.training_runs import refuse
from trainer.__main__ import main

pytestmark = pytest.mark.usefixtures("one_thread")

PAIRS = [(f"The {place} is old .", f"They closed the {place} .") for place in PLACES]


@pytest.fixture(scope="module")
def paired(pretrained, tmp_path_factory):
    """A run of MRPC on its original files, which are the same here, and has predicted the second."""
    place = tmp_path_factory.mktemp("paired")
    rows = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
    rows += [f"{number % 2}\t1\t2\t{first}\t{second}" for number, (first, second) in enumerate(PAIRS)]
    data = place / "data"
    data.mkdir()
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"):
        (data / name).write_text("\n".join(rows), encoding="utf-8")
    given = (f"--data-dir={data}", "--steps=3", "--eval-every=0", "--max-seq-length=12")
    assert main(finetune_words("mrpc", pretrained, place / "run", *given)) == 0
    return place


def written(run):
    """The predictions that the run has written of its file to evaluate on."""
    with (run / "predictions.tsv").open(encoding="utf-8") as file:
        return [row["prediction"] for row in csv.DictReader(file, delimiter="\t")]


def test_the_label_of_a_text_is_the_one_that_evaluation_writes(trainer, labelled):
    texts = (labelled / "dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    expected = written(labelled / "run")
    assert len(set(expected)) == 2, "a run that always says the same shows nothing"
    chosen = [expected.index("bad"), expected.index("good")]
    for number in chosen:
        text = texts[number].split("\t")[0]
        outcome = trainer("predict", labelled / "run", text)
        assert outcome.status == 0, outcome.err
        label, share = outcome.out.rstrip("\n").split(" ")
        told = json.loads(trainer("predict", labelled / "run", text, "--json").out)
        assert label == told["label"] == expected[number]
        assert share == f"{told['probability']:.1%}"
        assert list(told["probabilities"]) == ["bad", "good"]
        assert told["probability"] == max(told["probabilities"].values()) > 0.5
        assert sum(told["probabilities"].values()) == pytest.approx(1)


def test_the_probability_of_a_pair_is_that_of_transformers(trainer, paired, tmp_path):
    """Of texts that are too long too: the run's own length counts."""
    assert main(["convert", str(paired / "run"), str(tmp_path / "form")]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "form")
    model = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "form").eval()
    expected = written(paired / "run")
    for number, pair in enumerate(PAIRS[:2]):
        batch = tokenizer(*pair, truncation="longest_first", max_length=12, return_tensors="pt")
        assert batch["input_ids"].shape == (1, 12)
        with torch.no_grad():
            shares = model(**batch).logits[0].softmax(0).tolist()
        for source, more in ((paired / "run", ()), (tmp_path / "form", ("--task=mrpc",))):
            told = json.loads(trainer("predict", source, *pair, "--json", *more).out)
            assert told["label"] == expected[number]
            if not more:
                assert list(told["probabilities"].values()) == pytest.approx(shares, rel=1e-4)


def test_a_score_has_three_digits(trainer, pretrained, tmp_path):
    data = table(tmp_path / "t.tsv", 6, score=True)
    given = ("--train-file", data, "--eval-file", data, "--steps=2", "--eval-every=0", "--regression")
    assert trainer(*finetune_words("classification", pretrained, tmp_path / "run", *given)).status == 0
    text = data.read_text(encoding="utf-8").splitlines()[1].split("\t")[0]
    assert trainer("predict", tmp_path / "run", text).out == f"{written(tmp_path / 'run')[0]}\n"
    told = json.loads(trainer("predict", tmp_path / "run", text, "--json").out)
    assert list(told) == ["score"]
    assert f"{told['score']:.3f}" == written(tmp_path / "run")[0]


def test_a_run_that_has_moved_is_tried_with_its_own_vocabulary_and_casing(trainer, labelled, tmp_path):
    text, moved = "The LIBRARY is new .", tmp_path / "moved"
    expected = trainer("predict", labelled / "run", text, "--json").out
    hidden = labelled / "hidden"
    shutil.copytree(labelled / "run", moved)
    (labelled / "run").rename(hidden)
    try:
        outcome = trainer("predict", moved, text, "--json")
        assert (outcome.status, outcome.out) == (0, expected)
        shutil.rmtree(moved / "features")
        outcome = trainer("predict", moved, text, "--json")
        assert (outcome.status, outcome.out) == (0, expected)
        (moved / "vocab.txt").unlink()
        refuse(trainer("predict", moved, text), 2, "its vocabulary is not at hand; give --vocab")
    finally:
        hidden.rename(labelled / "run")


def test_an_answer_is_that_of_evaluation_by_the_runs_own_settings(trainer, answering, tmp_path):
    """Version 2.0: no answer is an empty line, with a word about it."""
    asked = json.loads((answering / "train.json").read_text(encoding="utf-8"))["data"][0]["paragraphs"]
    expected = json.loads((answering / "run" / "nbest_predictions.json").read_text(encoding="utf-8"))
    chosen = json.loads((answering / "run" / "predictions.json").read_text(encoding="utf-8"))
    diary = tmp_path / "diary.txt"
    for paragraph in asked[:3]:
        (question,) = paragraph["qas"]
        diary.write_text(paragraph["context"], encoding="utf-8")
        given = ("predict", answering / "run", question["question"], "--context", diary)
        plain, told = trainer(*given), json.loads(trainer(*given, "--json").out)
        answer = chosen[question["id"]]
        assert plain.out == f"{answer}\n"
        assert told["answer"] == answer
        shares = [one["probability"] for one in expected[question["id"]] if one["text"] == answer]
        assert told["probability"] == pytest.approx(shares[0], rel=1e-4)
        assert (f"{diary}: holds no answer to the question" in plain.err) == (answer == "")


def test_a_context_may_be_the_text_itself(trainer, answering, tmp_path, monkeypatch):
    """One word that names no file is a misspelt name; a file goes before a text of its name."""
    monkeypatch.chdir(tmp_path)
    text = "Anna went to the harbour . Later Peter saw the library ."
    Path("diary.txt").write_text(text, encoding="utf-8")
    given = ("predict", answering / "run", "Where was Anna ?", "--json", "--context")
    expected = trainer(*given, "diary.txt")
    outcome = trainer(*given, text)
    assert (outcome.status, outcome.out) == (0, expected.out)
    assert expected.err == ""
    assert outcome.err == "trainer: --context names no file: it is taken as the text itself\n"
    refuse(trainer(*given, "dairy.txt"), 2, "dairy.txt: no such file")
    Path("my diary").write_text(text, encoding="utf-8")
    assert trainer(*given, "my diary").err == ""


def test_an_export_knows_task_and_labels(trainer, labelled, tmp_path):
    assert main(["convert", str(labelled / "run"), str(tmp_path / "form")]) == 0
    text = "The harbour is new ."
    expected = trainer("predict", labelled / "run", text).out
    given = ("predict", tmp_path / "form", text)
    for more in ((), ("--task=classification",), ("--labels=bad,good",), ("--labels=good,bad",)):
        assert trainer(*given, *more).out == expected
    refuse(trainer(*given, "--labels=a,b,c"), 1, "has a head for 2 labels (bad, good)", "3 labels (a, b, c)")


def test_help_and_a_context_that_is_no_text_are_told(trainer, answering, tmp_path):
    outcome = trainer("predict", "--help")
    assert outcome.status == 0
    assert "RUN TEXT [TEXT ...]" in outcome.out
    packed = tmp_path / "diary.txt.gz"
    packed.write_bytes(gzip.compress(b"Anna went to the bridge ."))
    refused = trainer("predict", answering / "run", "Where ?", f"--context={packed}")
    refuse(refused, 1, "diary.txt.gz: looks like gzip data, expected a text in UTF-8; unpack it")


def test_what_the_task_does_not_take_is_refused(trainer, labelled, paired, answering, pretrained, tmp_path):
    diary = tmp_path / "diary.txt"
    diary.write_text("Anna went to the bridge .", encoding="utf-8")

    def refused(run, *given):
        refuse(trainer("predict", run, *given[:-2]), *given[-2:])

    refused(paired / "run", "One .", 2, "the task mrpc is about pairs of texts: give a second one")
    refused(paired / "run", "One .", "Two .", "Three .", 2, "the task mrpc takes two texts, found 3")
    refused(labelled / "run", "One .", "Two .", 2, "takes one text, found 2; put each into quotes")
    refused(labelled / "run", "One .", "--num=3", 2, "--num: the task classification has no such setting")
    refused(labelled / "run", "One .", f"--context={diary}", 2, "--context: the task classification has no")
    refused(
        answering / "run",
        "Where ?",
        2,
        "the task squad answers from a text: give it, or its file, by --context",
    )
    refused(
        answering / "run", "Where", "?", f"--context={diary}", 2, "the task squad takes one text, found 2"
    )
    refused(pretrained, "[MASK]", "Two .", 2, "the task words takes one text, found 2")
    refused(pretrained, "[MASK]", f"--context={diary}", 2, "--context: the task words has no such setting")
    refused(
        pretrained, "One .", "Two .", "--task=mrpc", 1, "has no head for labels; fine-tune it with --task"
    )
    refused(pretrained, "One .", "--task=squat", 2, "task 'squat': no such task; known are squad, mrpc")
