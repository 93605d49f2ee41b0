"""Fine-tuning by the command: tasks are learned, evaluated, predicted, resumed; wrong input is one line."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from bertdata.errors import StorageError
from tests.support.fine_tuning import SHORT, evaluations, finetune_words, squad_file, table
from tests.support.training_runs import refuse, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints


@pytest.fixture
def finetune(trainer, pretrained, tmp_path):
    """The command from a pre-trained model into ``run``."""

    def call(task: str, *more: object):
        return trainer(*finetune_words(task, pretrained, tmp_path / "run", *more))

    return call


def test_answers_are_learned_and_written_as_the_original_does(
    finetune, trainer, pretrained, tmp_path, one_thread
):
    data = squad_file(tmp_path / "train.json")
    given = ("--train-file", data, "--eval-file", data, "--num-train-epochs=30", "--eval-every=0")
    assert finetune("squad", *given).status == 0
    (found,) = evaluations(tmp_path / "run")
    assert found["exact_match"] > 90
    assert found["f1"] >= found["exact_match"]
    predictions = json.loads((tmp_path / "run" / "predictions.json").read_text(encoding="utf-8"))
    asked = json.loads(data.read_text(encoding="utf-8"))["data"][0]["paragraphs"]
    gold = {one["qas"][0]["id"]: one["qas"][0]["answers"][0]["text"] for one in asked}
    assert list(predictions) == list(gold)
    right = sum(predictions[name] == gold[name] for name in gold)
    assert 100 * right / len(gold) == pytest.approx(found["exact_match"])
    diary = tmp_path / "diary.txt"
    diary.write_text("Anna went to the bridge . Later Peter saw the tower .", encoding="utf-8")
    asked = ("predict", tmp_path / "run", "Where was Anna ?", "--context", diary)
    assert trainer(*asked).out == "bridge\n"
    told = json.loads(trainer(*asked, "--json").out)
    assert told["answer"] == "bridge"
    assert 0.2 < told["probability"] <= 1
    refuse(trainer("predict", "--task=words", tmp_path / "run", "[MASK]"), 1, "without a masked-word head")
    refuse(
        trainer("predict", "--task=squad", pretrained, "Where ?", "--context", diary),
        1,
        "no head for answers",
    )
    refuse(trainer("predict", tmp_path / "run", "Where ?"), 2, "the task squad answers from a text")
    best = json.loads((tmp_path / "run" / "nbest_predictions.json").read_text(encoding="utf-8"))
    assert all(best[name][0]["text"] == predictions[name] for name in gold)
    assert all(sum(one["probability"] for one in best[name]) == pytest.approx(1) for name in gold)


def test_labels_of_the_file_are_learned_and_predicted_for_another(finetune, trainer, tmp_path, one_thread):
    train, plain = table(tmp_path / "train.tsv"), table(tmp_path / "plain.tsv", 10, labelled=False)
    given = ("--train-file", train, "--eval-file", train, "--num-train-epochs=12")
    outcome = finetune("classification", *given, "--do-predict", "--predict-file", plain)
    assert outcome.status == 0, outcome.err
    found = evaluations(tmp_path / "run")
    assert len(found) == 12  # after each epoch
    assert found[-1]["acc"] == found[-1]["label_accuracy"] > 0.95
    written = (tmp_path / "run" / "predict" / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    wanted = [line.split("\t")[1] for line in train.read_text(encoding="utf-8").splitlines()[1:11]]
    assert written[0] == "index\tprediction"
    assert [line.split("\t")[1] for line in written[1:]] == wanted
    assert trainer("finetune", "--task=classification", "--no-do-train", f"--output-dir={tmp_path / 'run'}",
                   "--eval-file", train, "--labels", '["bad", "good"]', *SHORT).status == 0  # fmt: skip


def test_scores_are_learned(finetune, tmp_path, one_thread):
    data = table(tmp_path / "train.tsv", score=True)
    given = (
        "--train-file",
        data,
        "--eval-file",
        data,
        "--num-train-epochs=12",
        "--regression",
        "--eval-every=0",
    )
    assert finetune("classification", *given).status == 0
    (found,) = evaluations(tmp_path / "run")
    assert found["pearson"] > 0.95
    assert found["score_loss"] < 0.1


def test_a_stopped_run_resumes_to_the_same_bits_and_keeps_its_features(finetune, tmp_path, one_thread):
    data = table(tmp_path / "train.tsv")
    given = ("--train-file", data, "--eval-file", data, "--num-train-epochs=2", "--eval-every=0")
    assert finetune("classification", *given).status == 0
    whole = tensors(tmp_path / "run", 12)
    shutil.rmtree(tmp_path / "run")
    assert finetune("classification", *given, "--steps-this-run=5").status == 0
    resumed = finetune("classification", *given, "--resume")
    assert resumed.status == 0
    assert resumed.err.count("features kept in") == 2
    assert tensors(tmp_path / "run", 12) == whole


def test_a_target_is_a_share_of_the_best_metric(finetune, tmp_path, one_thread):
    data = squad_file(tmp_path / "train.json")
    given = ("--train-file", data, "--eval-file", data, "--steps=3", "--eval-every=1")
    outcome = finetune("squad", *given, "--target-accuracy=0.99")
    assert outcome.status == 0
    assert "the target accuracy" not in outcome.err, "an F1 of 1 per cent is not 0.99"
    assert len(evaluations(tmp_path / "run")) == 3


def test_rows_give_the_losses_of_flat_batches(finetune, tmp_path, one_thread):
    data = squad_file(tmp_path / "train.json")
    given = ("--train-file", data, "--steps=4", "--log-every=1", "--hidden-dropout-prob=0")
    given += ("--attention-probs-dropout-prob=0",)
    found = []
    for more in ((), ("--rows",)):
        assert finetune("squad", *given, *more).status == 0
        with (tmp_path / "run" / "training.csv").open(encoding="utf-8") as file:
            found.append([float(row["answer_loss"]) for row in csv.DictReader(file)])
        shutil.rmtree(tmp_path / "run")
    assert len(found[0]) == 4
    assert found[0] == pytest.approx(found[1], rel=2e-4)


def test_wrong_input_is_one_line(finetune, trainer, tmp_path):
    data = table(tmp_path / "train.tsv")
    refuse(finetune("squad", "--train-file", data, "--steps=1"), 1, "train.tsv: is not JSON")
    refuse(finetune("classification", "--steps=1"), 2, "no file to train on; give --data-dir or --train-file")
    (tmp_path / "mrpc").mkdir()
    table(tmp_path / "mrpc" / "train.tsv")
    refuse(finetune("mrpc", "--data-dir", tmp_path / "mrpc"), 1, "train.tsv", "lacks the column 3")
    other = tmp_path / "other.tsv"
    other.write_text("text\tlabel\nOne .\tneither\n", encoding="utf-8")
    given = ("--train-file", data, "--eval-file", other, "--steps=1")
    refuse(finetune("classification", *given), 1, "has the label 'neither', expected one of bad, good")
    refuse(
        finetune("classification", "--train-file", data, "--first-column=body"), 1, "lacks the column body"
    )
    refuse(finetune("nothing", "--train-file", data), 2, "task is 'nothing', expected one of")
    absent = trainer("finetune", "--task=squad", f"--output-dir={tmp_path / 'run'}", "--train-file", data)
    refuse(absent, 2, "start_from_ckpt is missing: fine-tuning starts from a pre-trained model")
    refuse(
        trainer("pretrain", "--task=squad", f"--output-dir={tmp_path / 'run'}"),
        2,
        "task is squad",
        "finetune",
    )


def test_a_warm_up_that_the_updates_of_the_epochs_do_not_end_is_refused(finetune, tmp_path):
    given = ("--train-file", table(tmp_path / "t.tsv", 24), "--batch-size=24", "--num-train-epochs=3")
    outcome = finetune("classification", *given, "--warmup=3")
    refuse(outcome, 2, "warmup is 3 updates, expected fewer than steps (3)")


STILL = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0", "--log-every=1", "--eval-every=0")


def training(run: Path) -> list[dict[str, str]]:
    with (run / "training.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("task", ["squad", "classification"])
@pytest.mark.parametrize("rows", [False, True], ids=["flat", "rows"])
def test_packed_at_load_an_update_of_the_whole_file_has_the_same_loss(
    finetune, tmp_path, one_thread, task, rows
):
    data = squad_file(tmp_path / "t.json") if task == "squad" else table(tmp_path / "t.tsv", 24)
    given = ("--train-file", data, "--eval-file", data, *STILL, "--max-seq-length=96", f"--rows={rows}")
    assert finetune(task, *given, "--steps=1", "--batch-size=24", "--warmup=0").status == 0
    (expected,), (single,) = training(tmp_path / "run"), evaluations(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    packing = ("--pack-on-load", "--packed-accumulation=rows", "--sequences-per-row=3", "--batch-size=8")
    outcome = finetune(task, *given, *packing, "--num-train-epochs=1", "--warmup=0")
    assert outcome.status == 0, outcome.err
    assert "8 packed rows x 3.000 (on average) = 24 examples out of 24" in outcome.err
    (found,), (packed,) = training(tmp_path / "run"), evaluations(tmp_path / "run")
    name = "answer_loss" if task == "squad" else "label_loss"
    assert float(found[name]) == pytest.approx(float(expected[name]), rel=1e-5)
    assert packed == pytest.approx(single, rel=1e-4), "the changed weights too, on unpacked examples"


def test_a_run_on_packed_rows_resumes_to_the_same_bits(finetune, tmp_path, one_thread):
    data = squad_file(tmp_path / "t.json")
    given = ("--train-file", data, "--num-train-epochs=4", "--max-seq-length=64", "--rows", "--pack-on-load")
    assert finetune("squad", *given).status == 0
    (last,) = find_checkpoints(str(tmp_path / "run"))
    whole = tensors(tmp_path / "run", last)
    shutil.rmtree(tmp_path / "run")
    assert finetune("squad", *given, "--steps-this-run=5").status == 0
    assert finetune("squad", *given, "--resume").status == 0
    assert tensors(tmp_path / "run", last) == whole


def test_rows_from_length_bins_are_narrower_and_learned_from(finetune, tmp_path, one_thread):
    data = table(tmp_path / "t.tsv", 24)
    given = ("--train-file", data, "--steps=2", "--max-seq-length=64", "--rows", "--bins=2", "--batch-size=4")
    outcome = finetune("classification", *given)
    assert outcome.status == 0, outcome.err
    assert "micro-batches: rows padded to the longest of a micro-batch" in outcome.err


HEAD = "text\tlabel\n"


@pytest.mark.parametrize(
    ("task", "name", "text", "more", "status", "said"),
    [
        ("squad", "t.json", "[1, 2]", (), 1, "t.json: is no JSON object, expected one with 'data'"),
        ("squad", "t.json", '{"data": [{"paragraphs": [{}]}]}', (), 1, "paragraph 0: lacks 'context'"),
        ("squad", "t.json", '{"data": []}', (), 1, "t.json: holds no questions"),
        ("squad", "t.json", "", (), 1, "t.json: is not JSON"),
        ("squad", "t.tsv", f"{HEAD}a\tb\n", (), 1, "t.tsv: is not JSON"),
        ("classification", "t.tsv", "", (), 1, "t.tsv: holds no examples"),
        ("classification", "t.tsv", HEAD, (), 1, "t.tsv: holds no examples"),
        ("classification", "t.tsv", f"{HEAD}a\n", (), 1, "t.tsv: line 2: lacks the column label; it has"),
        ("classification", "t.tsv", "text\ttext\n", (), 1, "line 1: names the column 'text' twice"),
        ("classification", "t.tsv", f"{HEAD}a\tb\n", (), 1, "t.tsv: has the labels 'b', expected two"),
        ("classification", "t.csv", "text,label\na,1,2\n", (), 1, "t.csv: line 2: has 3 values, expected at"),
        ("classification", "t.csv", "text,label\na,1\nb\n", (), 1, "t.csv: line 3: lacks the column label"),
        (
            "classification", "t.tsv", f"{HEAD}a\t1\nb\tmuch\n", ("--regression",), 1,
            "t.tsv: line 3: has the score 'much', expected a number",
        ),
        ("sts-b", "t.tsv", "sentence1\tsentence2\tscore\na\tb\tnan\n", (), 1, "has the score 'nan'"),
        (
            "classification", "t.tsv", f"{HEAD}a\t1\nb\t2\n", ("--max-seq-length=4000",), 2,
            "sequences of 4000 ids, the model has max_position_embeddings 512; give --max-seq-length 512 or",
        ),
        (
            "squad", "t.json", "", ("--max-seq-length=19",), 2,
            "max_query_length is 16, expected at most max_seq_length - 4",
        ),
    ],
)  # fmt: skip
def test_each_bad_file_is_one_line(finetune, tmp_path, task, name, text, more, status, said):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    refuse(finetune(task, "--train-file", path, "--steps=1", *more), status, said)
    assert not (tmp_path / "run" / "checkpoints").exists()


def without_answers(path: Path) -> Path:
    """The file with a question whose list of answers is empty."""
    value = json.loads(path.read_text(encoding="utf-8"))
    value["data"][0]["paragraphs"][2]["qas"][0]["answers"] = []
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_question_without_answers_to_evaluate_on_is_refused_before_anything_is_written(
    finetune, trainer, answering, tmp_path
):
    data, bad = squad_file(tmp_path / "train.json", 6), without_answers(squad_file(tmp_path / "dev.json", 6))
    given = ("--train-file", data, "--eval-file", bad, "--steps=1")
    refuse(finetune("squad", *given), 1, f"{bad}: question question-2: has no answers, expected 1 or more")
    assert not (tmp_path / "run" / "features").exists()
    evaluated = ("--eval-file", bad, "--no-version-2-with-negative", f"--output-dir={tmp_path / 'out'}")
    outcome = trainer("evaluate", f"--start-from-ckpt={answering / 'run'}", *evaluated)
    refuse(outcome, 1, f"{bad}: question question-2: has no answers")
    assert not (tmp_path / "out" / "features").exists()


def test_a_resumed_run_makes_up_an_evaluation_that_failed(finetune, tmp_path, one_thread, monkeypatch):
    data = squad_file(tmp_path / "train.json", 6)
    given = ("--train-file", data, "--eval-file", data, "--steps=2", "--eval-every=0", "--do-predict")
    given += (f"--predict-file={data}", "--max-seq-length=24")
    assert finetune("squad", *given).status == 0
    whole = {path: (tmp_path / "run" / path).read_bytes() for path in MADE}
    (row,) = evaluations(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr("trainer.tasks.squad.task.predict_answers", fail)
        refuse(finetune("squad", *given), 1, "no room")
    assert not any((tmp_path / "run" / path).exists() for path in MADE)
    assert finetune("squad", *given, "--resume").status == 0
    assert {path: (tmp_path / "run" / path).read_bytes() for path in MADE} == whole
    assert evaluations(tmp_path / "run") == [row]
    again = finetune("squad", *given, "--resume")
    assert again.status == 0
    assert "evaluated" not in again.err, "once is enough"
    assert evaluations(tmp_path / "run") == [row]


MADE = ("predictions.json", "nbest_predictions.json", "eval_results.txt", "predict/predictions.json")


def fail(*_: object) -> None:
    raise StorageError("no room")


def test_a_checkpoint_without_the_encoder_is_refused(finetune, pretrained, tmp_path):
    weights = load_file(pretrained / "model.safetensors")
    heads = {name: tensor for name, tensor in weights.items() if name.startswith("cls.")}
    assert heads
    shutil.copytree(pretrained, tmp_path / "heads")
    save_file(heads, tmp_path / "heads" / "model.safetensors")
    data = table(tmp_path / "train.tsv")
    outcome = finetune(
        "classification", "--train-file", data, "--steps=1", f"--start-from-ckpt={tmp_path / 'heads'}"
    )
    refuse(outcome, 1, "heads: lacks bert.embeddings.", "expected a BERT of the configuration's depth")
    (tmp_path / "heads" / "model.safetensors").unlink()
    gone = finetune(
        "classification", "--train-file", data, "--steps=1", f"--start-from-ckpt={tmp_path / 'heads'}"
    )
    refuse(gone, 2, "model.safetensors", "no such file")


def test_an_answer_outside_of_its_context_is_warned_of_by_the_run_that_keeps_the_features_too(
    finetune, tmp_path, one_thread
):
    data = squad_file(tmp_path / "train.json")
    text = data.read_text(encoding="utf-8")
    data.write_text(text.replace('"answer_start": 17', '"answer_start": 3', 1), encoding="utf-8")
    assert data.read_text(encoding="utf-8") != text
    given = ("--train-file", data, "--steps=2")
    warning = f"trainer: warning: {data}: question question-0: its answer is not in the words of its context"
    first = finetune("squad", *given, "--steps-this-run=1")
    again = finetune("squad", *given, "--resume")
    assert (first.status, again.status) == (0, 0)
    assert "features made in" in first.err
    assert "features kept in" in again.err
    for outcome in (first, again):
        assert outcome.err.count(warning) == 1
        assert f"{data}: 23 features" in outcome.err


def test_a_vocabulary_of_another_model_is_refused(finetune, tmp_path):
    data, other = table(tmp_path / "train.tsv"), tmp_path / "vocab.txt"
    other.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nold\nnew\n", encoding="utf-8")
    given = ("--train-file", data, "--steps=1", f"--vocab={other}")
    refuse(finetune("classification", *given), 1, "has 7 tokens, the model has vocab_size")


def test_the_usual_length_follows_a_model_with_fewer_positions(trainer, training_set, tmp_path, one_thread):
    start = tmp_path / "start"
    short = ("--steps=1", "--warmup=0", "--max-position-embeddings=64")
    assert trainer(*words(training_set, start, *short)).status == 0
    given = ["finetune", "--task=classification", f"--start-from-ckpt={start}", "--steps=1", "--warmup=0"]
    given += [
        f"--train-file={table(tmp_path / 'train.tsv')}",
        "--batch-size=8",
        f"--output-dir={tmp_path / 'run'}",
    ]
    outcome = trainer(*given)
    assert outcome.status == 0, outcome.err
    [manifest] = (tmp_path / "run" / "features").glob("*/manifest.json")
    assert json.loads(manifest.read_text(encoding="utf-8"))["settings"]["objective"]["max_seq_length"] == 64
    outcome = trainer(*given, "--overwrite-output-dir", "--max-seq-length=65")
    refuse(outcome, 2, "sequences of 65 ids, the model has max_position_embeddings 64", "64 or less")
