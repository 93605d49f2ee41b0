"""Repeating a recorded run with this trainer, on batches in the recorded order."""

import math
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from torch import Tensor

from benchmarks.trajectories.recorded import RecordedRun
from benchmarks.trajectories.settings import make_config
from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.classification.batch import LabelledBatch
from bertdata.examples.mlm.batch import MlmBatch
from bertdata.examples.squad.batch import SquadBatch
from bertdata.records import ShardLayout
from trainer.checkpoints.checkpoint import make_initial_state
from trainer.checkpoints.source import open_checkpoint
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.config.schedules.form import Schedule
from trainer.config.settings import Config
from trainer.data.batches import Batch, make_flat_batch
from trainer.data.budgets import Budgets, ExampleSizes
from trainer.data.examples import CompactExamples, gather_examples
from trainer.data.loader import Update
from trainer.data.order import Position
from trainer.data.padded_rows import pad_rows
from trainer.run.configured_shape import override_stored_settings
from trainer.run.runtime import make_model, open_runtime
from trainer.run.start_point import find_continued_shape, load_start_from
from trainer.run.training_state import Training

_FIRST_WEIGHTS = {"bert": "bert", "modernbert": "mb32", "roberta": "rob32"}
_HEADS = {"classification": "head_cls", "squad": "head_qa"}
_LENGTHS = {"pretraining": 64, "classification": 64, "squad": 96}
_SLOTS = 10
_PACKED_ROW = 192


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of this trainer and of the original program: for each update, the mean over its micro-batches.

    late: number of updates for which the original program used the learning rate of the following update.
        Some programs read their step counter after they have increased it.
    """

    ours: Sequence[float]
    theirs: Sequence[float]
    late: int

    def find_largest_difference(self, updates: int) -> float:
        """Return the largest difference between the two programs' losses in the first ``updates`` updates."""
        pairs = zip(self.ours[:updates], self.theirs[:updates], strict=True)
        return max(abs(ours - theirs) for ours, theirs in pairs)


def train_again(run: RecordedRun, root: Path, updates: int | None = None) -> Losses:
    """Repeat a recorded run with this trainer, and return both programs' losses.

    root: directory with the first weights.
    updates: number of updates to make. None: all.
    """
    made = run.updates if updates is None else min(updates, run.updates)
    with tempfile.TemporaryDirectory() as place:
        start = write_first_weights(run, root, Path(place, "start"))
        layout = make_layout(run)
        config = make_config(run, start, Path(place, "run"))
        # ModernBERT has rotary positions. So a packed row, which contains several sequences, may be longer
        # than the longest sequence.
        if run.is_packed:
            config = config.changed(max_position_embeddings=layout.max_seq_length)
        data = OpenedDataset(name=run.name, layout=layout, shards=(), vocabulary_size=4000)
        runtime = open_runtime(config)
        if not config.is_finetuning:
            runtime = runtime.changed(config, data)
            shape = find_continued_shape(runtime, data)
        else:
            shape = _read_tuned_shape(config, start)
        training = Training(runtime, make_model(runtime, shape), make_initial_state(config, shape, "", ""))
        load_start_from("weights", str(start), training, config.update.examples(1))
        training.schedule, late = _match_recorded_order(training.schedule, run)
        ours = _make_updates(training, run, layout, made)
    return Losses(ours, run.update_losses[:made], late)


def _match_recorded_order(schedule: Schedule, run: RecordedRun) -> tuple[Schedule, int]:
    """Change the schedule so that it gives the recorded learning rates.

    Also return how many updates have the learning rate of the following update.

    Some TensorFlow programs do not fix whether the step counter is read before or after it is increased. So
    the recorded learning rate of an update is the schedule's rate either for this update or for the next
    update. For each update, the recorded rate shows which.
    """
    if run.rates is None:
        return schedule, 0
    rates = run.rates[run.in_update - 1 :: run.in_update]
    late = {
        number
        for number, rate in enumerate(rates[: run.updates])
        if _is_same_rate(rate, schedule(number + 1)) and not _is_same_rate(rate, schedule(number))
    }
    return lambda step: schedule(step + 1 if step in late else step), len(late)


def _is_same_rate(rate: float, other: float) -> bool:
    """Return True if two learning rates are equal except for rounding."""
    return math.isclose(rate, other, rel_tol=1e-5, abs_tol=1e-12)


def _read_tuned_shape(config: Config, start: Path) -> ModelConfig:
    """Return the shape of the model with the first weights, with the changes that the configuration makes."""
    stored = open_checkpoint(str(start), with_moments=False).expect_config()
    return read_model_config(override_stored_settings(config, stored.as_json()))


def write_first_weights(run: RecordedRun, root: Path, directory: Path) -> Path:
    """Write the run's first weights, with the head of its task, as a model directory. Return its path."""
    name, head = _FIRST_WEIGHTS[run.kind], _HEADS.get(run.task)
    weights = safetensors.numpy.load_file(root / "init" / f"{name}.safetensors")
    if head is not None:
        weights |= safetensors.numpy.load_file(root / "init" / f"{head}.safetensors")
    directory.mkdir()
    safetensors.numpy.save_file(weights, directory / "model.safetensors")
    shutil.copy(root / "init" / f"{name}.json", directory / "config.json")
    return directory


def make_layout(run: RecordedRun) -> ShardLayout:
    """Return the layout of the run's rows: one example per row, or several for ModernBERT's packed rows."""
    if run.is_packed:
        most = max(map(len, run.micro_batches))
        sizes: dict[str, Any] = {"max_seq_length": _PACKED_ROW, "max_predictions_per_seq": _PACKED_ROW}
        return ShardLayout(objective="mlm", packing="modernbert", sequences_per_row=most, **sizes)
    slots = _SLOTS if run.task == "pretraining" else 0
    objective = run.task if run.task != "pretraining" else "bert" if run.kind == "bert" else "mlm"
    return ShardLayout(max_seq_length=_LENGTHS[run.task], max_predictions_per_seq=slots, objective=objective)


class MicroBatchMaker:
    """Maker of micro-batches from the numbers of a run's examples."""

    def __init__(self, run: RecordedRun, layout: ShardLayout, *, padded: bool) -> None:
        """Keep the run's examples.

        padded: True to make padded rows. False to make flat batches, whose sequences follow each other
            without padding.
        """
        self._padded = padded
        self._layout, self._is_packed = layout, run.is_packed
        self._examples = CompactExamples([_make_columns(run, layout.objective)], layout)
        rows = 1 if self._is_packed else max(map(len, run.micro_batches))
        sizes = ExampleSizes.of(np.full(8, layout.max_seq_length), np.zeros(8))
        self._budgets = Budgets([], sizes, layout, rows)

    def batch(self, numbers: Sequence[int]) -> Batch:
        """Return the micro-batch of the examples with these numbers."""
        count = len(numbers)
        row_ends = np.array([count]) if self._is_packed else np.arange(count) + 1
        piece = self._examples, np.array(numbers), np.arange(count)
        gathered = gather_examples([piece], self._layout, row_ends)
        return pad_rows(gathered, count) if self._padded else make_flat_batch(gathered, self._budgets)


def _make_columns(run: RecordedRun, objective: str) -> Any:
    """Convert the run's examples to this project's batch of examples."""
    given = run.columns
    found = {"ids": given["ids"], "ends": given["ends"].astype(np.uint32)}
    masks = {
        "positions": given["mask_positions"].astype(np.uint16),
        "labels": given["mask_labels"],
        "mask_ends": given["mask_ends"].astype(np.uint32),
    }
    if objective == "mlm":
        return MlmBatch(**found, **masks)
    found["first_lengths"] = given["first_segment"].astype(np.uint32)
    if objective == "bert":
        return BertBatch(**found, **masks, next_labels=given["next_sentence_labels"])
    if objective == "classification":
        return LabelledBatch(**found, label_ids=given["label_ids"].astype(np.uint32))
    answers = {name: given[name].astype(np.uint32) for name in ("answer_starts", "answer_ends")}
    return SquadBatch(**found, **answers, impossible=np.zeros(len(given["ends"]), np.uint8))


def _make_updates(training: Training, run: RecordedRun, layout: ShardLayout, updates: int) -> list[float]:
    """Make the first updates of the run. Return for each update the mean loss of its micro-batches."""
    feeder = MicroBatchMaker(run, layout, padded=training.runtime.has_rows)
    position, found = Position(0, 0), list[Tensor]()
    for number in range(updates):
        first = number * run.in_update
        batches = [feeder.batch(one) for one in run.micro_batches[first : first + run.in_update]]
        (sums,) = training.update([Update(batches, position)])
        training.advance(position, sum(map(len, batches)))
        found.append(sums[0] / sums[1])
    return [float(loss) for loss in torch.stack(found)]
