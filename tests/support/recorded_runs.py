"""Directories of made-up runs, for tests of the report page."""

import csv
import json
from pathlib import Path

from tests.support.report_records import COLUMNS, Clock, evaluation, make_reporter, record
from trainer.__main__ import main
from trainer.config.settings import Config

LABELS = ["bad", "good", "so, so"]
RIGHT = ["good", "good", "bad", "so, so", "bad"]
PREDICTED = ["good", "bad", "bad", "good", "bad"]


def make_run(
    folder: Path,
    steps: range = range(1, 9),
    *,
    evaluated: tuple[int, ...] = (4, 8),
    status: str = "success",
    phase: int = 1,
    resume_step: int | None = None,
    **config: object,
) -> Path:
    """Write the directory of a run with its log and a checkpoint's state.

    Every update takes half a second.
    """
    clock = Clock()
    given = Config.of(output_dir=str(folder), steps=steps[-1], log_every=1, no_progress_bar=True, **config)
    reporter = make_reporter(given, COLUMNS, rank=0, resume_step=resume_step, clock=clock)
    reporter.describe(start_point="resumed" if resume_step else "new", workers=2, device="cpu: made up")
    reporter.begin()
    for step in steps:
        clock.now += 0.5
        reporter.update(record(step, loss=8 / step))
        if step in evaluated:
            reporter.evaluation(*evaluation(step))
    reporter.close(status)
    state = folder / "checkpoints" / f"step-{phase:04d}{steps[-1]:04d}"
    state.mkdir(parents=True, exist_ok=True)
    model = {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, "vocab_size": 4000}
    told = {"phase": phase, "task": "pretraining", "model": model, "config": given.as_json()}
    (state / "state.json").write_text(json.dumps(told | {"versions": ["bertdata 0"]}), encoding="utf-8")
    return folder


def make_classified_run(place: Path, vocabulary: Path) -> Path:
    """Write the directory of a run that was evaluated on five texts, two of which it got wrong.

    place: directory for the table of the texts, their features and the run.
    vocabulary: vocabulary file of the features.
    """
    place.mkdir(exist_ok=True)
    with (place / "dev.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerows([("text", "label"), *((f"text {number}", one) for number, one in enumerate(RIGHT))])
    data = str(place / "features")
    command = ["features", "--task", "classification", str(place / "dev.csv"), "--dataset", data]
    assert main([*command, "--vocab", str(vocabulary)]) == 0
    folder = make_run(place / "run", train_data=data, eval_data=data, task="classification", labels=LABELS)
    scores = "step,trained,examples,label_loss,label_accuracy\n8,40,5,0.5,0.6\n"
    (folder / "evaluation.csv").write_text(scores, encoding="utf-8")
    lines = ["index\tprediction", *(f"{number}\t{one}" for number, one in enumerate(PREDICTED))]
    (folder / "predictions.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
