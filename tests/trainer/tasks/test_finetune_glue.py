"""Each of GLUE's tasks is learned from files with the published headings, and has its own metrics."""

import csv
import json

import pytest

from tests.support.fine_tuning import KINDS, PLACES, finetune_words, mrpc_files, squad_file
from tests.support.training_runs import words
from trainer.tasks.classification.presets import TASKS

pytestmark = pytest.mark.usefixtures("one_thread")

PARSES = "sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse"
MNLI = f"index promptID pairID genre {PARSES} sentence1 sentence2"
STS_B = "index genre filename year old_index source1 source2 sentence1 sentence2"
ENTAILS = ("entailment", "not_entailment")
RELATIONS = ("contradiction", "entailment", "neutral")

HEADINGS = {
    "cola": (None, None, "index sentence"),
    "sst-2": ("sentence label", "sentence label", "index sentence"),
    "mrpc": ("Quality #1_ID #2_ID #1_String #2_String",) * 2 + ("index #1_ID #2_ID #1_String #2_String",),
    "sts-b": (f"{STS_B} score", f"{STS_B} score", STS_B),
    "qqp": ("id qid1 qid2 question1 question2 is_duplicate",) * 2 + ("id question1 question2",),
    "mnli": (f"{MNLI} label1 gold_label", f"{MNLI} label1 label2 label3 label4 label5 gold_label", MNLI),
    "mnli-mm": (f"{MNLI} label1 gold_label", f"{MNLI} label1 label2 label3 label4 label5 gold_label", MNLI),
    "qnli": ("index question sentence label",) * 2 + ("index question sentence",),
    "rte": ("index sentence1 sentence2 label",) * 2 + ("index sentence1 sentence2",),
    "wnli": ("index sentence1 sentence2 label",) * 2 + ("index sentence1 sentence2",),
}
"""Of the files to train on, to evaluate on and to predict; _ stands for a blank."""

LABELS = {"qnli": ENTAILS, "rte": ENTAILS, "mnli": RELATIONS, "mnli-mm": RELATIONS}
METRICS = {
    **dict.fromkeys(("mrpc", "qqp"), ("acc", "f1", "acc_and_f1")),
    "cola": ("mcc",),
    "sts-b": ("pearson", "spearmanr", "corr"),
}
TEXTS = {"sentence", "sentence1", "sentence2", "question", "question1", "question2", "#1_String", "#2_String"}


def rows(task, heading, count):
    """A heading and rows under it; a column that is none of the task's holds something else."""
    if heading is None:
        kinds = [(number % 2, PLACES[number % 6]) for number in range(count)]
        return [("source", str(kind), "*", f"The {place} is old .") for kind, place in kinds]
    names = heading.split()
    labels = LABELS.get(task, ("0", "1"))
    found = [tuple(name.replace("_", " ") if "#" in name else name for name in names)]
    for number in range(count):
        label = f"{number % 6}.{number}00" if task == "sts-b" else labels[number % len(labels)]
        last = names[-1] if task != "mrpc" else names[0]
        own = {last: label} if last in ("label", "gold_label", "score", "is_duplicate", "Quality") else {}
        texts = dict.fromkeys(TEXTS, f"The {KINDS[number % 2]} {PLACES[number % 6]} .")
        found.append(tuple({**texts, **own}.get(name, "else") for name in names))
    return found


@pytest.mark.parametrize("task", sorted(HEADINGS))
@pytest.mark.thorough_after_first
def test_a_task_is_learned_evaluated_and_predicted_from_its_files(task, trainer, pretrained, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name, heading, count in zip(TASKS[task].files, HEADINGS[task], (12, 6, 5), strict=True):
        text = "".join("\t".join(row) + "\n" for row in rows(task, heading, count))
        (data / name).write_text(text, encoding="utf-8")
    given = (f"--data-dir={data}", "--steps=2", "--eval-every=0", "--do-predict")
    outcome = trainer(*finetune_words(task, pretrained, tmp_path / "run", *given))
    assert outcome.status == 0, outcome.err
    with (tmp_path / "run" / "evaluation.csv").open(encoding="utf-8") as file:
        (found,) = csv.DictReader(file)
    metrics = METRICS.get(task, ("acc",))
    assert (
        tuple(name for name in found if name in {"acc", "f1", "acc_and_f1", "mcc", *METRICS["sts-b"]})
        == metrics
    )
    for folder, count in (("", 6), ("predict", 5)):
        lines = (tmp_path / "run" / folder / "predictions.tsv").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 1 + count
        if task != "sts-b":
            assert {line.split("\t")[1] for line in lines[1:]} <= set(LABELS.get(task, ("0", "1")))
    dev, predicted = data / TASKS[task].files[1], tmp_path / "run" / "predictions.tsv"
    scored = trainer("score", f"--task={task}", dev, predicted, "--json")
    assert scored.status == 0, scored.err
    told = json.loads(scored.out)
    assert tuple(told) == metrics
    if task != "sts-b":  # its scores are written with three digits, and two updates leave them nearly equal
        assert told == pytest.approx({name: float(found[name]) for name in metrics}, abs=1e-6)


def test_every_task_of_glue_is_here():
    assert set(HEADINGS) == set(TASKS) - {"classification"}


def test_a_model_of_one_segment_type_learns_pairs(trainer, block_set, tmp_path):
    """Both texts have the one type, as in RoBERTa."""
    start, run = tmp_path / "start", tmp_path / "run"
    model = ("--model-type=roberta", "--type-vocab-size=1", "--steps=1", "--warmup=0")
    assert trainer(*words(block_set, start, *model)).status == 0
    files = f"--data-dir={mrpc_files(tmp_path / 'mrpc')}"
    outcome = trainer(*finetune_words("mrpc", start, run, files, "--steps=4", "--do-predict"))
    assert outcome.status == 0, outcome.err
    assert len((run / "predict" / "predictions.tsv").read_text(encoding="utf-8").splitlines()) == 6
    outcome = trainer("predict", run, "The harbour is old .", "It is new .")
    assert outcome.status == 0, outcome.err
    data = squad_file(tmp_path / "squad.json", 6)
    more = (f"--train-file={data}", f"--eval-file={data}", "--steps=2")
    assert trainer(*finetune_words("squad", start, tmp_path / "answers", *more)).status == 0
