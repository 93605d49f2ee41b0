"""The card of an exported model: its README.md, made from the model's lineage and the run's evaluations."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertdata.dataset.companion_files import CARD_NAME
from bertdata.errors import BertDataError
from bertdata.io import storage
from bertdata.lineages.read import read_lineage
from bertdata.lineages.shown_settings import list_changed_keys
from bertdata.lineages.step import FINETUNE, PRETRAIN, Lineage, Step
from bertdata.trust.cards import EvaluationMeasure, LastEvaluation, ModelFacts, make_model_card
from trainer.checkpoints.any_checkpoint import HEADS, OURS, Checkpoint
from trainer.checkpoints.formats.hub_cache import find_hub_name
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.records import find_run_directory
from trainer.checkpoints.source import find_trainer_checkpoint
from trainer.logs.charts import name_baseline_column
from trainer.logs.recorded_run import Row, read_run

_PIPELINES = dict(zip(HEADS, ("fill-mask", "question-answering", "text-classification"), strict=True))
"""The hub's names for what a model with each head does. A model without a head extracts features."""

_PLACES = (
    *("train_data", "eval_data", "vocab", "model_config", "start_from_ckpt", "plan"),
    *("task_dir", "task_train_file", "task_eval_file", "task_predict_file"),
)
"""Settings that a card leaves out: paths on the machine that trained. The card names those files by their
digests.
"""

_UNKNOWN_EVALUATION = "The evaluations of the run were not at hand when the model was exported."

_COUNTS = ("step", "trained", "examples")
"""Columns of evaluation.csv that are no results."""


def write_model_card(directory: str, target: str, checkpoint: Checkpoint) -> None:
    """Write README.md into the directory of an exported model. An existing README.md is kept.

    directory: the model's directory, whose other files are written already.
    target: path under which the user will find the directory. Its last part is the model's name.
    checkpoint: the checkpoint that was exported.
    """
    path = storage.join(directory, CARD_NAME)
    if storage.exists(path):
        return
    # An export with --overwrite is written to a new directory, which takes the place of the old one.
    written = storage.join(target, CARD_NAME)
    if storage.exists(written):
        with storage.open_output(path) as file:
            file.write(storage.read_bytes(written))
        return
    lineage = read_lineage(directory)
    facts = ModelFacts(
        name=storage.get_base_name(target),
        pipeline=_find_pipeline(checkpoint),
        settings=_select_settings(lineage),
        base_model=_find_base_model(lineage),
        **_find_evaluation(lineage, checkpoint),
    )
    with storage.open_output(path) as file:
        file.write(make_model_card(lineage, facts).encode())


def _find_pipeline(checkpoint: Checkpoint) -> str:
    """Return the hub's name for what the model does."""
    heads = [head for head in reversed(HEADS) if any(name.startswith(head) for name in checkpoint.weights)]
    return _PIPELINES[heads[0]] if heads else "feature-extraction"


def _find_last_training(lineage: Lineage) -> Step | None:
    """Return the last step that trained the model, or None if it is not known."""
    steps = [step for step in lineage.list_steps() if step.name in (PRETRAIN, FINETUNE)]
    return steps[-1] if steps else None


def _find_base_model(lineage: Lineage) -> str:
    """Return the name on the hub of the model that the first training started from, or ""."""
    steps = [step for step in lineage.list_steps() if step.name in (PRETRAIN, FINETUNE)]
    start = steps[0].settings.get("start_from_ckpt") if steps else None
    return find_hub_name(start) if isinstance(start, str) else ""


def _select_settings(lineage: Lineage) -> dict[str, Any]:
    """Return the settings of the last training that differ from the defaults. config.json has the model's.

    Settings that only decide what is logged or kept, and where, are left out.
    """
    step = _find_last_training(lineage)
    if step is None:
        return {}
    return {name: value for name, value in list_changed_keys(step.settings).items() if name not in _PLACES}


def _find_evaluation(lineage: Lineage, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the run's last evaluation up to the checkpoint, or why there is none: fields of ModelFacts."""
    own = find_trainer_checkpoint(checkpoint.path) if checkpoint.kind == OURS else None
    if own is None:
        return {"without_evaluation": _UNKNOWN_EVALUATION}
    state = read_state(own)
    try:
        phases = read_run(str(find_run_directory(Path(own)))).phases
    except BertDataError:  # a checkpoint without the tables of its run, or damaged tables
        return {"without_evaluation": _UNKNOWN_EVALUATION}
    rows = phases[min(state.phase, len(phases)) - 1].evaluations if phases else ()
    found = [row for row in rows if row["step"] <= state.logged_step]
    if not found:
        return {"without_evaluation": "The run made no evaluation."}
    measures = list(_select_measures(found[-1]))
    return {"evaluation": LastEvaluation(_name_evaluation_data(lineage), int(found[-1]["step"]), measures)}


def _select_measures(row: Row) -> list[EvaluationMeasure]:
    """Return the results in a row of evaluation.csv, each with the result of guessing after it if known."""
    guesses = {name_baseline_column(name) for name in row}
    names = [name for name in row if name not in _COUNTS and name not in guesses]
    found = []
    for name in names:
        found.append((name, name.replace("_", " ")))
        found.append((name_baseline_column(name), f"{name.replace('_', ' ')} of guessing"))
    return [
        EvaluationMeasure(name, words, row[name])
        for name, words in dict(found).items()
        if math.isfinite(row.get(name, math.nan))
    ]


def _name_evaluation_data(lineage: Lineage) -> str:
    """Return a name for the evaluation data: the md5s of their manifests, or the last part of their path."""
    step = _find_last_training(lineage)
    given: Mapping[str, Any] = {} if step is None else step.settings
    data = [one.record for one in step.inputs if one.role == "evaluation data"] if step is not None else []
    if records := [record for record in data if record is not None]:
        return f"evaluation data, manifest {', '.join(records)}"
    path = given.get("eval_data") or given.get("task_eval_file") or given.get("task_dir")
    return storage.get_base_name(path) if isinstance(path, str) else "evaluation data"
