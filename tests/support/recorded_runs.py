"""Directories of made-up runs, for tests of the report page."""

import json
from pathlib import Path

from tests.support.report_records import COLUMNS, Clock, evaluation, make_reporter, record
from trainer.config.settings import Config


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
