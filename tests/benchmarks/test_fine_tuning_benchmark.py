"""The benchmark of fine-tuning, without training: its split, the peer's answers, its commands, kept runs."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import measure
from benchmarks.fine_tuning import runs
from benchmarks.fine_tuning.article_split import split_articles, write_split
from benchmarks.fine_tuning.peer_answers import PeerSpan, find_answer_texts, find_best_answer
from benchmarks.fine_tuning.task import MRPC, TASKS, TaskData
from trainer.config.settings import Config
from trainer.config.task_config import make_task_config

CONTEXT = "The mill burned twice. A clock stands there now."
DATA = TaskData(weights=Path("encoder"), train=Path("train.tsv"), evaluation=Path("dev.tsv"))


def article(title, questions):
    return {"title": title, "paragraphs": [{"context": CONTEXT, "qas": questions}]}


def question(name):
    answers = [{"text": "mill", "answer_start": 4}]
    return {"id": name, "question": "What burned?", "answers": answers}


def of_sizes(*sizes):
    return [
        article(f"{number}", [question(f"{number}-{q}") for q in range(size)])
        for number, size in enumerate(sizes)
    ]


def test_articles_stay_whole_and_an_article_too_large_goes_to_the_other_part():
    first, second = split_articles(of_sizes(3, 4, 5, 2, 1), 9)
    assert [one["title"] for one in first] == ["0", "1", "3"]
    assert [one["title"] for one in second] == ["2", "4"]


def test_the_kits_questions_are_cut_at_900(kit, tmp_path):
    parts = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in write_split(kit / "squad/xquad.en.json", 900, tmp_path)
    ]
    counts = [sum(len(p["qas"]) for one in part["data"] for p in one["paragraphs"]) for part in parts]
    titles = [{one["title"] for one in part["data"]} for part in parts]
    assert counts == [900, 290]
    assert titles[0].isdisjoint(titles[1])


OFFSETS = [None, None, (0, 3), (4, 8), (9, 15), (16, 21), None]
"""Of ``[CLS] what [SEP]``-like tokens, four words of the context, and an end."""


def logits(**values):
    found = np.full(len(OFFSETS) + 1, -9.0)
    for place, value in values.items():
        found[int(place[1:])] = value
    return found


def test_the_best_answer_lies_in_the_context_and_ends_after_its_start():
    # 1 is no token of the context, 7 is behind the feature's end, 5 to 3 runs backwards.
    assert find_best_answer(OFFSETS, logits(_1=9, _5=8, _3=5), logits(_3=7, _7=9, _4=4)) == (12.0, (4, 8))


def test_an_answer_has_at_most_thirty_tokens():
    offsets = [(3 * number, 3 * number + 2) for number in range(40)]
    starts, ends = np.full(40, -9.0), np.full(40, -9.0)
    starts[0], ends[30], ends[29] = 5.0, 9.0, 1.0
    assert find_best_answer(offsets, starts, ends) == (6.0, (0, 89))


def test_each_question_has_the_best_answer_of_its_features_or_none(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"data": of_sizes(2)}), encoding="utf-8")
    spans = [PeerSpan(question=0, offsets=OFFSETS)] * 2 + [PeerSpan(question=1, offsets=[None] * 7)]
    starts = np.stack([logits(_3=5), logits(_4=6), logits(_3=9)])
    ends = np.stack([logits(_3=5), logits(_5=6), logits(_3=9)])
    assert find_answer_texts(path, spans, starts, ends) == {"0-0": CONTEXT[9:21], "0-1": ""}


def configured(task) -> Config:
    words = runs.make_command(runs.OURS, task, DATA, 7, Path("run"))
    assert words[1:4] == ["-m", "trainer", "finetune"]
    return make_task_config(words[4:])


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_our_command_asks_for_the_tasks_settings(task):
    config = configured(task)
    assert (config.finetuning.task, config.data.max_seq_length) == (task.name, task.length)
    assert (config.update.batch_size, config.schedule.num_train_epochs) == (task.batch_size, task.epochs)
    assert (config.finetuning.doc_stride, config.finetuning.n_best_size) == (
        task.stride,
        20,
    )
    assert (
        config.optimiser.weight_decay,
        config.update.clipping_point,
        config.update.max_grad_norm,
    ) == (
        0,
        "per_update",
        1,
    )
    assert (config.data.seed, config.finetuning.task_eval_file) == (7, "dev.tsv")


def test_both_programs_have_the_same_learning_rates():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = configured(MRPC).changed(steps=40)
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=MRPC.rate)
    peer = transformers.get_linear_schedule_with_warmup(optimiser, 4, 40)
    ours = config.make_schedule(1)
    for step in range(40):
        assert ours(step) == pytest.approx(peer.get_last_lr()[0], abs=1.1e-7)
        optimiser.step()
        peer.step()
    assert ours(4) == MRPC.rate


def write_predictions(*words):
    output_dir = Path(words[words.index("--output-dir") + 1])
    output_dir.mkdir(parents=True)
    (output_dir / "predictions.tsv").write_text("1\n1\n0\n0\n", encoding="utf-8")
    return measure.Cost(3.0, 2.0, 100.0)


def test_a_finished_run_is_kept_and_one_of_other_settings_made_anew(monkeypatch, tmp_path):
    heading = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    table = tmp_path / "dev.tsv"
    table.write_text(heading + "".join(f"{label}\t1\t2\ta\tb\n" for label in (1, 0, 0, 0)), encoding="utf-8")
    data, asked = replace(DATA, evaluation=table), []
    monkeypatch.setattr(
        measure, "measure_command", lambda *words: asked.append(words) or write_predictions(*words)
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for program in runs.PROGRAMS:
        result = runs.find_or_make_run(program, MRPC, data, 1, tmp_path)
        assert asdict(result) == {"points": 75.0, "cpu": 3.0, "wall": 2.0}
        assert runs.find_or_make_run(program, MRPC, data, 1, tmp_path) == result
    assert len(asked) == 2
    runs.find_or_make_run(runs.PEER, replace(MRPC, rate=1e-4), data, 1, tmp_path)
    assert len(asked) == 3
