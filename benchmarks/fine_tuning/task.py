"""The two tasks of the fine-tuning benchmark, with the settings for this trainer and for transformers."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

N_BEST, MAX_ANSWER_TOKENS = 20, 30
"""SQuAD's usual settings of predictions; this project's command uses the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkTask:
    """A task: its name in this project's command, the metric to compare, and the settings.

    All tasks use AdamW with PyTorch's constants and no weight decay, linear warm-up and decay, and gradients
    clipped at norm 1.0. metric: the metric's name, and the factor that turns it into points. bar: number of
    points by which this trainer may be worse than transformers. warmup: share of all steps with a rising
    learning rate. stride: for SQuAD, number of tokens from one span to the next.
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
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskData:
    """The encoder's directory in Hugging Face's format, and the files for training and evaluation."""

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
