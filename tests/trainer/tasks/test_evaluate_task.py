"""A fine-tuned run is evaluated by its own task, and predicts files without answers."""

import json
import shutil

import pytest

from tests.support.commands import contents
from tests.support.fine_tuning import evaluations, finetune_words, squad_file, table
from tests.support.training_runs import refuse, tensors

pytestmark = pytest.mark.usefixtures("one_thread")


def results(folder):
    lines = (folder / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    return {name: float(value) for name, value in (line.split(" = ") for line in lines)}


@pytest.mark.parametrize("task", ["labelled", "answering"])
def test_a_run_is_evaluated_by_its_own_task_without_a_word_about_it(trainer, request, task, tmp_path):
    run = request.getfixturevalue(task) / "run"
    before = contents(run)
    outcome = trainer("evaluate", f"--start-from-ckpt={run}", f"--output-dir={tmp_path / 'out'}")
    assert outcome.status == 0, outcome.err
    assert contents(run) == before, "the run itself is only read"
    (last,) = evaluations(run)
    found = results(tmp_path / "out")
    # The baselines too: they follow from the labels of the training set, in a run and here.
    names = [name for name in last if name in found]
    assert len(names) >= 3
    assert {name: found[name] for name in names} == pytest.approx({name: last[name] for name in names})
    predictions = [name for name in before if "predictions" in str(name) or "null_odds" in str(name)]
    assert len(predictions) == {"labelled": 1, "answering": 3}[task]
    written = contents(tmp_path / "out")
    assert {name: written[name] for name in predictions} == {name: before[name] for name in predictions}


def test_the_baseline_of_a_run_in_a_bucket_follows_from_its_training_file(
    trainer, pretrained, tmp_path, monkeypatch
):
    """Its features stay on the machine that trained it. The training file has 21 of 24 bad labels."""
    rows = [f"The harbour is old .\t{'good' if number < 3 else 'bad'}" for number in range(24)]
    train, dev, run = tmp_path / "train.tsv", table(tmp_path / "dev.tsv", 20), "memory://baselines/run"
    train.write_text("\n".join(["text\tlabel", *rows, ""]), encoding="utf-8")
    files = (f"--train-file={train}", f"--eval-file={dev}", "--steps=2", "--eval-every=0")
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "trained"))
    assert trainer(*finetune_words("classification", pretrained, run, *files)).status == 0
    shutil.rmtree(tmp_path / "trained")

    def evaluate(name: str, *more: str) -> str:
        """Evaluate on another machine, and return what is said."""
        monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / name))
        outcome = trainer("evaluate", f"--output-dir={run}", "--no-progress-bar", *more)
        assert outcome.status == 0, outcome.err
        return outcome.err

    told = evaluate("same")
    assert f"{train}: making its features again, for the baseline of the training set" in told
    assert 'in the training set "bad" is the label of 87.5%' in told
    train.write_text("\n".join(["text\tlabel", *rows[1:], ""]), encoding="utf-8")
    for name in ("changed", "gone"):
        told = evaluate(name)
        assert "making its features again" not in told
        assert "; in the evaluation set " in told
        train.unlink(missing_ok=True)


def test_another_file_is_evaluated_and_one_without_labels_predicted(trainer, labelled, tmp_path):
    run, other = labelled / "run", table(tmp_path / "other.tsv", 7)
    plain = table(tmp_path / "plain.tsv", 5, labelled=False)
    given = (f"--start-from-ckpt={run}", f"--output-dir={tmp_path / 'out'}", f"--eval-file={other}")
    outcome = trainer("evaluate", *given, "--do-predict", f"--predict-file={plain}")
    assert outcome.status == 0, outcome.err
    assert f"evaluating on 7 examples of {tmp_path}/out/features/classification-" in outcome.err
    lines = (tmp_path / "out" / "predict" / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == ["index", "0", "1", "2", "3", "4"]
    whole = (tmp_path / "out" / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert len(whole) == 8
    assert lines[:6] == whole[:6], "the same texts"


def test_a_file_without_answers_is_predicted_in_the_runs_own_directory(trainer, answering, tmp_path):
    data = json.loads(squad_file(tmp_path / "plain.json", 3).read_text(encoding="utf-8"))
    for paragraph in data["data"][0]["paragraphs"]:
        del paragraph["qas"][0]["answers"]
    (tmp_path / "plain.json").write_text(json.dumps(data), encoding="utf-8")
    run = answering / "run"
    given = ("--no-do-eval", "--do-predict", f"--predict-file={tmp_path / 'plain.json'}")
    outcome = trainer("evaluate", f"--output-dir={run}", *given)
    assert outcome.status == 0, outcome.err
    whole = json.loads((run / "predictions.json").read_text(encoding="utf-8"))
    found = json.loads((run / "predict" / "predictions.json").read_text(encoding="utf-8"))
    assert found == {name: whole[name] for name in ("question-0", "question-1", "question-2")}
    best = json.loads((run / "predict" / "nbest_predictions.json").read_text(encoding="utf-8"))
    assert 1 <= max(map(len, best.values())) <= 6, "the run's own n_best_size, and no answer"
    assert "evaluating" not in outcome.err


def test_a_run_goes_on_and_is_evaluated_without_the_model_that_it_began_with(trainer, pretrained, tmp_path):
    start, data = tmp_path / "start", table(tmp_path / "train.tsv")
    shutil.copytree(pretrained, start)
    given = (f"--train-file={data}", f"--eval-file={data}", "--steps=6", "--eval-every=0")
    run = tmp_path / "run"
    words = finetune_words("classification", start, run, *given)
    assert trainer(*words).status == 0
    whole = tensors(run, 6)
    shutil.rmtree(run)
    assert trainer(*words, "--steps-this-run=4").status == 0
    shutil.rmtree(start)
    outcome = trainer(*words, "--resume")
    assert outcome.status == 0, outcome.err
    assert tensors(run, 6) == whole
    last = evaluations(run)[-1]
    assert trainer("evaluate", f"--output-dir={run}").status == 0
    assert results(run)["acc"] == pytest.approx(last["acc"])
    refuse(trainer(*words[:-1], f"--output-dir={tmp_path / 'new'}"), 2, "no such file")


def test_each_checkpoint_that_is_there_is_evaluated_in_turn(trainer, labelled, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(labelled / "run", run)
    outcome = trainer("evaluate", f"--output-dir={run}", "--poll", "--poll-timeout=0")
    assert outcome.status == 0, outcome.err
    assert "step 72: evaluated 20 examples" in outcome.err


def test_what_the_task_needs_is_asked_for(trainer, labelled, pretrained, training_set, tmp_path):
    run, out = labelled / "run", f"--output-dir={tmp_path / 'out'}"
    nothing = trainer("evaluate", f"--output-dir={run}", "--no-do-eval")
    refuse(nothing, 2, "nothing to evaluate or to predict: give --eval-file, or --predict-file")
    other = tmp_path / "other.tsv"
    other.write_text("text\tlabel\nOne .\tneither\n", encoding="utf-8")
    given = (f"--start-from-ckpt={run}", out, f"--eval-file={other}")
    refuse(trainer("evaluate", *given), 1, "other.tsv: line 2: has the label 'neither', expected one of bad")
    data = squad_file(tmp_path / "dev.json")
    headless = ("--task=squad", f"--start-from-ckpt={pretrained}", out, f"--eval-file={data}")
    refuse(trainer("evaluate", *headless), 1, f"{pretrained}: has no head for the task squad")
