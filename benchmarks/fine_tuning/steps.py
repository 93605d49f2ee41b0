"""Time of a single fine-tuning step of this trainer and of transformers' Trainer, on the same examples."""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import transformers

from benchmarks.fine_tuning.peer import make_model, make_trainer
from benchmarks.fine_tuning.task import BenchmarkTask, TaskData
from bertdata.dataset.reader import OpenedDataset, open_dataset
from trainer.checkpoints.checkpoint import make_initial_state
from trainer.checkpoints.source import open_checkpoint
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader, Update
from trainer.data.order import Position
from trainer.data.padded_rows import RowForm
from trainer.data.row_batches import RowBatch
from trainer.run import runtime
from trainer.run.start_point import load_start_from
from trainer.run.training_state import Training
from trainer.tasks.task_files import make_features

STEPS = 20
WARM = 2
"""Number of steps at the beginning whose times are not counted, because they include setting up."""

Step = Callable[[Batch], object]


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall seconds and CPU seconds of each step that was timed."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, since: tuple[float, float]) -> None:
        """Add the times of a step that ends now.

        since: readings of the two clocks when the step began.
        """
        wall, cpu = read_clocks()
        self.wall.append(wall - since[0])
        self.cpu.append(cpu - since[1])

    def medians(self) -> tuple[float, float]:
        """Return the median of the wall seconds and the median of the CPU seconds."""
        return statistics.median(self.wall[WARM:]), statistics.median(self.cpu[WARM:])


def read_clocks() -> tuple[float, float]:
    """Return the wall clock and the CPU clock of this process, in seconds."""
    return time.perf_counter(), time.process_time()


class AlternatingSteps(transformers.TrainerCallback):
    """Callback of transformers' Trainer that times a step of each trainer in turn.

    Before each step of transformers' Trainer it makes a step of this trainer.
    """

    def __init__(self, step: Step, batches: Sequence[Batch]) -> None:
        self.ours, self.peer = Seconds(), Seconds()
        self._step, self._batches = step, iter(batches)
        self._since = read_clocks()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Make and time a step of this trainer, then note when the step of transformers' Trainer begins."""
        since = read_clocks()
        self._step(next(self._batches))
        self.ours.add(since)
        self._since = read_clocks()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Add the time of the step of transformers' Trainer that has ended."""
        self.peer.add(self._since)


def make_our_step(config: Config, data: TaskData) -> Step:
    """Return a function that makes an update with this trainer.

    The first one starts from the encoder's weights.
    """
    begun = runtime.open_runtime(config)
    shape = open_checkpoint(str(data.weights), with_moments=False).expect_config()
    fresh = make_initial_state(config, shape, "", "")
    training = Training(begun, runtime.make_model(begun, shape), fresh)
    load_start_from("weights", str(data.weights), training, config.update.examples(1))
    return lambda batch: training.update([Update([batch], Position(0, 0))])


def make_config(task: BenchmarkTask, data: TaskData, place: str) -> Config:
    """Return this trainer's configuration for the task.

    place: directory for the run's files.
    """
    return Config.of(
        task=task.name,
        max_seq_length=task.length,
        batch_size=task.batch_size,
        optimiser="adamw",
        weight_decay=0.0,
        lr_schedule="polynomial_decay",
        base_learning_rate=task.rate,
        vocab=str(data.weights / "vocab.txt"),
        output_dir=place,
    )


def make_peer_features(batches: Sequence[RowBatch]) -> list[dict[str, Any]]:
    """Convert this trainer's batches to features for transformers' Trainer. Their padding is removed."""
    features = []
    for batch in batches:
        for row, length in enumerate(batch.attention_mask.sum(1).tolist()):
            names = ("input_ids", "token_type_ids", "attention_mask")
            feature: dict[str, Any] = {name: getattr(batch, name)[row, :length].tolist() for name in names}
            feature |= {
                LABELS[name]: int(values[row]) for name, values in batch.targets.items() if name in LABELS
            }
            features.append(feature)
    return features


LABELS = {"label_ids": "labels", "answer_starts": "start_positions", "answer_ends": "end_positions"}
"""The name that transformers has for each of this trainer's labels."""


def load_batches(dataset: OpenedDataset, task: BenchmarkTask, *, rows: bool) -> list[Any]:
    """Return the first batches that this trainer would train on.

    rows: True for padded rows. False for flat batches, whose sequences follow each other without padding. The
        examples are the same.
    """
    size = task.batch_size
    form = RowForm() if rows else make_form(Rows(dataset), batch_size=size)
    loader = Loader(Rows(dataset), form=form, batch_size=size)
    found = [update.batches[0] for update in islice(loader, STEPS + WARM)]
    loader.close()
    return found


def compare_steps(task: BenchmarkTask, data: TaskData) -> None:
    """Print the median times of a step of this trainer and of transformers' Trainer.

    transformers' Trainer is measured twice: with all batches padded to the greatest length, and with each
    padded to its longest example.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(data.weights)
    with tempfile.TemporaryDirectory() as place:
        config = make_config(task, data, place)
        made = make_features(config, str(data.train), training=True, labelled=True, tell=lambda line: None)
        dataset = open_dataset(made.directory)
        batches, features = (
            load_batches(dataset, task, rows=False),
            make_peer_features(load_batches(dataset, task, rows=True)),
        )
        for padded in (True, False):
            turns = AlternatingSteps(make_our_step(config, data), batches)
            trainer = make_trainer(
                *(task, make_model(task, data.weights, 1), tokenizer, features, Path(place)),
                padded=padded,
                shuffled=False,
                callbacks=[turns],
            )
            trainer.args.num_train_epochs = 1
            trainer.train()
            print_medians(task, turns, "to the longest length" if padded else "to the longest of a batch")


def print_medians(task: BenchmarkTask, turns: AlternatingSteps, padding: str) -> None:
    """Print the median times of one comparison of the two trainers.

    turns: the callback that has timed the steps.
    padding: description of how transformers' batches were padded.
    """
    (wall, cpu), (peer_wall, peer_cpu) = turns.ours.medians(), turns.peer.medians()
    print(f"{task.name}, a step of {task.batch_size} examples at {task.length}, medians of {STEPS}: "
          f"ours {wall:.3f} s, {cpu:.3f} CPU s; transformers, padded {padding}: {peer_wall:.3f} s, "
          f"{peer_cpu:.3f} CPU s; ours is {peer_wall / wall:.2f} times as fast "
          f"({peer_cpu / cpu:.2f} by CPU time)",
          flush=True)  # fmt: skip
