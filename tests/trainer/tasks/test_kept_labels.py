"""The labels that a head has learned: another program's heads are read by their names, ours keep theirs."""

import json

import pytest
import transformers
from safetensors.torch import load_file

from tests.support.classifiers import PAIRS, make_classifier, pairs_file, pipeline_answers
from tests.support.fine_tuning import evaluations, finetune_words
from tests.support.training_runs import refuse, tensors

pytestmark = pytest.mark.usefixtures("one_thread")

NLI = ("entailment", "neutral", "contradiction")
SMALL = ("--max-seq-length=24", "--device=cpu")
STILL = ("--steps=1", "--base-learning-rate=1e-12", "--warmup=0", "--eval-every=0", *SMALL)
"""A training that changes nothing to speak of."""


@pytest.fixture(scope="module")
def entailing(tmp_path_factory):
    """A model whose labels are in another order than MNLI's here, and MNLI's files as it labels them."""
    place = tmp_path_factory.mktemp("entailing")
    start = make_classifier(place / "model", NLI)
    gold = [answer["label"] for answer in pipeline_answers(start)]
    assert set(gold) == set(NLI), "a model that always says the same shows nothing"
    for name in ("train", "dev_matched"):
        pairs_file(place / "data" / f"{name}.tsv", gold)
    return place


def test_evaluation_numbers_the_labels_as_the_head_does(trainer, entailing, tmp_path):
    given = (f"--eval-file={entailing / 'data' / 'dev_matched.tsv'}", f"--output-dir={tmp_path}", *SMALL)
    outcome = trainer("evaluate", "--task=mnli", f"--start-from-ckpt={entailing / 'model'}", *given)
    assert outcome.status == 0, outcome.err
    assert "labels are in the order of the head of" in outcome.err
    assert "acc 1.0000" in outcome.out + outcome.err


@pytest.mark.parametrize("program", ["finetune", "like"])
def test_a_head_goes_on_with_the_labels_that_its_rows_have_learned(trainer, entailing, tmp_path, program):
    start, data = entailing / "model", entailing / "data"
    words = finetune_words("mnli", start, tmp_path / "run", f"--data-dir={data}", *STILL)
    if program == "like":
        line = f"--model_name_or_path {start} --task_name mnli --do_train --do_eval --max_steps 1"
        line += f" --learning_rate 1e-12 --max_seq_length 24 --output_dir {tmp_path / 'run'}"
        words = [
            "like",
            "huggingface/run_glue.py",
            *line.split(),
            "--",
            f"--data-dir={data}",
            "--eval-every=1",
        ]
    outcome = trainer(*words)
    assert outcome.status == 0, outcome.err
    assert evaluations(tmp_path / "run")[-1]["acc"] == 1.0
    assert "labels by number: 0 entailment (" in outcome.err


def test_prediction_names_the_class_as_the_pipeline_does(trainer, entailing):
    for pair, answer in zip(PAIRS[:6], pipeline_answers(entailing / "model")[:6], strict=True):
        for more in ((), ("--task=mnli",)):
            told = json.loads(trainer("predict", entailing / "model", *pair, "--json", *more).out)
            assert told["label"] == answer["label"]
            assert told["probability"] == pytest.approx(answer["score"], rel=1e-4)


def test_heads_without_names_scores_and_several_labels_are_read_as_the_pipeline_reads_them(trainer, tmp_path):
    heads = {
        "plain": {"rows": 2},
        "score": {"rows": 1, "problem": "regression"},
        "one": {"rows": 1},
        "several": {"names": ("x", "y", "z"), "problem": "multi_label_classification"},
    }
    for name, keys in heads.items():
        start = make_classifier(tmp_path / name, **keys)
        (expected,) = pipeline_answers(start, PAIRS[:1])
        told = json.loads(trainer("predict", start, *PAIRS[0], "--json").out)
        if name == "score":
            assert told == {"score": pytest.approx(expected["score"], rel=1e-4)}
        else:
            assert told["label"] == expected["label"]
            assert told["probability"] == pytest.approx(expected["score"], rel=1e-4)


def test_a_classifier_of_tokens_is_none_of_texts(trainer, tmp_path):
    """Its head has the same names, but nothing in front of it: it is left out."""
    start = make_classifier(tmp_path / "model", ("O", "B"))
    config = transformers.AutoConfig.from_pretrained(start)
    transformers.BertForTokenClassification(config).save_pretrained(start)
    outcome = trainer("predict", start, "the harbour is old")
    assert outcome.status == 1
    assert "its classifier is that of a BertForTokenClassification" in outcome.err
    assert "is an encoder without a masked-word head, which guesses no words" in outcome.err


def test_glues_labels_are_known_by_the_names_of_the_data_set_too(trainer, tmp_path):
    """Of SST-2 the head may name 0 NEGATIVE; case does not matter, as in run_glue.py."""
    start = make_classifier(tmp_path / "model", ("POSITIVE", "NEGATIVE"))
    answers = pipeline_answers(start, [(first, None) for first, _ in PAIRS])
    gold = ["1" if answer["label"] == "POSITIVE" else "0" for answer in answers]
    lines = ["sentence\tlabel", *(f"{pair[0]}\t{label}" for pair, label in zip(PAIRS, gold, strict=True))]
    (tmp_path / "dev.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    given = (
        "--task=sst-2",
        f"--eval-file={tmp_path / 'dev.tsv'}",
        f"--output-dir={tmp_path / 'out'}",
        *SMALL,
    )
    outcome = trainer("evaluate", f"--start-from-ckpt={start}", *given)
    assert outcome.status == 0, outcome.err
    assert "acc 1.0000" in outcome.out + outcome.err


def own_table(path, labels):
    """A table of one's own with the first texts of PAIRS."""
    rows = [f"{pair[0]},{label}" for pair, label in zip(PAIRS, labels, strict=False)]
    path.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return path


TABLES = {
    "numbers": (tuple(map(str, range(12))), tuple(map(str, range(12)))),
    "languages": (("de", "en", "zh", "ar"), ("ar", "de", "en", "zh")),
}


@pytest.mark.parametrize("name", TABLES)
def test_an_export_has_the_names_of_its_labels(trainer, pretrained, tmp_path, name):
    found, names = TABLES[name]
    data = own_table(tmp_path / "train.csv", found * (24 // len(found)))
    given = (f"--train-file={data}", "--no-do-eval", "--steps=2", *SMALL)
    outcome = trainer(*finetune_words("classification", pretrained, tmp_path / "run", *given))
    assert outcome.status == 0, outcome.err
    count = 24 // len(found)
    told = ", ".join(f"{number} {label} ({count})" for number, label in enumerate(names))
    assert f"{data}: labels by number: {told}\n" in outcome.err
    outcome = trainer("convert", tmp_path / "run", tmp_path / "form")
    assert outcome.status == 0, outcome.err
    config = json.loads((tmp_path / "form" / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {str(number): label for number, label in enumerate(names)}
    assert config["label2id"] == {label: number for number, label in enumerate(names)}
    assert config["problem_type"] == "single_label_classification"
    assert transformers.AutoConfig.from_pretrained(tmp_path / "form").num_labels == len(names)
    pipeline = transformers.pipeline("text-classification", model=str(tmp_path / "form"), device="cpu")
    # There and back: the same names in a run of ours, and in its export.
    assert trainer("convert", tmp_path / "form", tmp_path / "back").status == 0
    assert trainer("convert", tmp_path / "back", tmp_path / "again", "--to=huggingface").status == 0
    again = json.loads((tmp_path / "again" / "config.json").read_text(encoding="utf-8"))
    assert again["id2label"] == config["id2label"]
    text = PAIRS[3][0]
    (expected,) = pipeline(text)
    vocab = f"--vocab={pretrained / 'vocab.txt'}"
    for source, more in ((tmp_path / "run", ()), (tmp_path / "form", ()), (tmp_path / "back", (vocab,))):
        answer = json.loads(trainer("predict", source, text, "--json", *more).out)
        assert answer["label"] == expected["label"]
        assert answer["probability"] == pytest.approx(expected["score"], rel=1e-4)


def test_the_export_of_a_score_is_one(trainer, pretrained, tmp_path):
    data = own_table(tmp_path / "train.csv", [f"{number / 8}" for number in range(24)])
    given = (f"--train-file={data}", "--regression", "--no-do-eval", "--steps=2", *SMALL)
    outcome = trainer(*finetune_words("classification", pretrained, tmp_path / "run", *given))
    assert outcome.status == 0, outcome.err
    assert f"{data}: 24 scores from 0 to 2.875, mean 1.438\n" in outcome.err
    assert trainer("convert", tmp_path / "run", tmp_path / "form").status == 0
    config = transformers.AutoConfig.from_pretrained(tmp_path / "form")
    assert (config.problem_type, config.num_labels) == ("regression", 1)
    pipeline = transformers.pipeline("text-classification", model=str(tmp_path / "form"), device="cpu")
    (expected,) = pipeline(PAIRS[0][0])
    for source in ("run", "form"):
        told = json.loads(trainer("predict", tmp_path / source, PAIRS[0][0], "--json").out)
        assert told == {"score": pytest.approx(expected["score"], rel=1e-4)}


def test_an_export_is_evaluated_by_its_own_labels_without_a_word_about_them(trainer, labelled, tmp_path):
    assert trainer("convert", labelled / "run", tmp_path / "form").status == 0
    given = (f"--eval-file={labelled / 'dev.tsv'}", f"--output-dir={tmp_path / 'out'}")
    outcome = trainer("evaluate", f"--start-from-ckpt={tmp_path / 'form'}", *given)
    assert outcome.status == 0, outcome.err
    lines = (tmp_path / "out" / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    found = {name: float(value) for name, value in (line.split(" = ") for line in lines)}
    assert found["acc"] == pytest.approx(evaluations(labelled / "run")[-1]["acc"])


def test_a_run_keeps_the_order_of_its_labels_when_it_is_resumed(trainer, pretrained, tmp_path):
    """Though its files alone would give another one."""
    data = own_table(tmp_path / "train.csv", ["b", "a"] * 12)
    words = finetune_words(
        "classification", pretrained, tmp_path / "run", f"--train-file={data}", "--no-do-eval", "--steps=4"
    )
    assert trainer(*words, "--labels=b,a").status == 0
    whole = tensors(tmp_path / "run", 4)
    words[words.index(f"--output-dir={tmp_path / 'run'}")] = f"--output-dir={tmp_path / 'other'}"
    assert trainer(*words, "--labels=b,a", "--steps-this-run=2").status == 0
    outcome = trainer(*words, "--resume")
    assert outcome.status == 0, outcome.err
    assert "labels by number: 0 b (12), 1 a (12)" in outcome.err
    assert tensors(tmp_path / "other", 4) == whole


def head_rows(run, number):
    """The rows of the head in a checkpoint."""
    return len(
        load_file(run / "checkpoints" / f"step-{number:08d}" / "model.safetensors")["classifier.weight"]
    )


def test_a_head_of_another_size_is_drawn_anew_under_new_head_alone(trainer, entailing, tmp_path):
    start, data = entailing / "model", own_table(tmp_path / "train.csv", ["good", "bad"] * 12)
    more = (f"--train-file={data}", "--no-do-eval", *STILL)
    words = finetune_words("classification", start, tmp_path / "run", *more)
    said = "has a head for 3 labels (entailment, neutral, contradiction)", "2 labels (bad, good); --new-head "
    refuse(trainer(*words), 1, *said)
    outcome = trainer(*words, "--new-head")
    assert outcome.status == 0, outcome.err
    (line,) = [line for line in outcome.err.splitlines() if "new_head" in line]
    assert line == f"trainer: new_head: one of 2 rows is drawn; that of {start} with 3 is left out"
    assert head_rows(tmp_path / "run", 1) == 2
    found = trainer("predict", tmp_path / "run", "the harbour is old")
    assert found.out.split()[0] in ("good", "bad"), found.err


def test_some_labels_of_a_head_are_learned_with_all_of_them(trainer, entailing, tmp_path):
    data = own_table(tmp_path / "train.csv", ["neutral", "entailment"] * 12)
    more = (f"--train-file={data}", "--no-do-eval", *STILL)
    words = finetune_words("classification", entailing / "model", tmp_path / "run", *more)
    refuse(trainer(*words), 1, "or --labels entailment,neutral,contradiction keeps its head")
    outcome = trainer(*words, "--labels=entailment,neutral,contradiction")
    assert "labels by number: 0 entailment (12), 1 neutral (12), 2 contradiction (0)" in outcome.err


def test_labels_of_other_names_are_taken_in_their_order_with_a_warning(trainer, entailing, tmp_path):
    data = own_table(tmp_path / "train.csv", ["a", "b", "c"] * 8)
    more = (f"--train-file={data}", "--no-do-eval", *STILL)
    outcome = trainer(*finetune_words("classification", entailing / "model", tmp_path / "run", *more))
    assert outcome.status == 0, outcome.err
    assert "its rows are taken in their order for the labels a, b, c; --new-head draws another" in outcome.err


@pytest.mark.parametrize("allowed", [True, False])
def test_run_glues_ignore_mismatched_sizes_draws_a_head_of_another_size(
    trainer, entailing, tmp_path, allowed
):
    data = own_table(tmp_path / "train.csv", ["good", "bad"] * 12)
    line = (
        f"--model_name_or_path {entailing / 'model'} --train_file {data} --validation_file {data} --do_train"
    )
    line += f" --max_steps 1 --max_seq_length 24 --output_dir {tmp_path / 'run'}"
    words = ["like", "huggingface/run_glue.py", *line.split()]
    if not allowed:
        return refuse(trainer(*words), 1, "has a head for 3 labels", "--new-head")
    outcome = trainer(*words, "--ignore_mismatched_sizes")
    assert outcome.status == 0, outcome.err
    assert head_rows(tmp_path / "run", 1) == 2


def test_run_glues_ignore_mismatched_sizes_keeps_a_head_that_fits(trainer, entailing, tmp_path):
    gold = [answer["label"] for answer in pipeline_answers(entailing / "model")]
    data = pairs_file(tmp_path / "own.csv", gold, "sentence1\tsentence2\tlabel")
    data.write_text(data.read_text(encoding="utf-8").replace("\t", ","), encoding="utf-8")
    line = (
        f"--model_name_or_path {entailing / 'model'} --train_file {data} --validation_file {data} --do_train"
    )
    line += (
        f" --do_eval --max_steps 1 --learning_rate 1e-12 --max_seq_length 24 --output_dir {tmp_path / 'run'}"
    )
    words = ["like", "huggingface/run_glue.py", *line.split(), "--ignore_mismatched_sizes"]
    outcome = trainer(*words, "--", "--eval-every=1")
    assert outcome.status == 0, outcome.err
    assert evaluations(tmp_path / "run")[-1]["acc"] == 1.0


def test_only_training_draws_a_head(trainer, entailing, tmp_path):
    given = (f"--eval-file={entailing / 'data' / 'dev_matched.tsv'}", f"--output-dir={tmp_path}", *SMALL)
    words = ("evaluate", "--task=mnli", f"--start-from-ckpt={entailing / 'model'}", *given, "--new-head")
    refuse(trainer(*words), 2, "new_head: only training draws a head")


def test_the_report_of_a_run_names_its_labels(trainer, labelled, tmp_path):
    outcome = trainer("report", labelled / "run", f"--output={tmp_path / 'page.html'}")
    assert outcome.status == 0, outcome.err
    assert "0 bad, 1 good" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_features_tell_the_labels_that_were_found(trainer, labelled, tmp_path, pretrained):
    data = labelled / "dev.tsv"
    given = ("--task=classification", data, f"--vocab={pretrained / 'vocab.txt'}")
    outcome = trainer("features", *given, f"--output={tmp_path / 'features.jsonl'}")
    labels = [line.split("\t")[1] for line in data.read_text(encoding="utf-8").splitlines()[1:]]
    counts = f"0 bad ({labels.count('bad')}), 1 good ({labels.count('good')})"
    assert outcome.err == f"trainer: {data}: labels by number: {counts}\n"
