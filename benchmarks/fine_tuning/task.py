"""The two tasks of the fine-tuning benchmark, with the settings that both trainers use."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

N_BEST, MAX_ANSWER_TOKENS = 20, 30
"""Usual settings for SQuAD's predictions, which this project's command has too.

They are the number of best first and last tokens to combine, and the largest number of tokens of an answer.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkTask:
    """A task of the benchmark: its name in this project's command, the metric to compare, and the settings.

    Both trainers use AdamW with PyTorch's constants and no weight decay, a learning rate that rises linearly
    and then falls linearly, and gradients clipped at norm 1.0.

    metric: name of the metric.
    points: factor that turns the metric into points.
    bar: number of points by which this trainer may be worse than transformers.
    length: largest number of tokens of an example.
    rate: highest learning rate.
    warmup: share of all steps in which the learning rate rises.
    stride: for SQuAD, number of tokens from the beginning of one span to the beginning of the next.
    """

    name: str
    metric: str
    points: float
    bar: float
    length: int
    batch_size: int
    epochs: int
    rate: float
    warmup: float = 0.1
    stride: int = 128

    @property
    def is_squad(self) -> bool:
        """True for SQuAD, False for sentence pairs."""
        return self.name == "squad"

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a dict of JSON values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskData:
    """The files of a task.

    weights: directory of the encoder in Hugging Face's format.
    train: file to train on.
    evaluation: file to predict.
    """

    weights: Path
    train: Path
    evaluation: Path


MRPC = BenchmarkTask(
    name="mrpc", metric="acc", points=100.0, bar=1.0, length=128, batch_size=32, epochs=3, rate=5e-5
)
SQUAD = BenchmarkTask(
    name="squad", metric="f1", points=1.0, bar=2.0, length=384, batch_size=8, epochs=4, rate=1e-4
)
TASKS = {task.name: task for task in (MRPC, SQUAD)}
