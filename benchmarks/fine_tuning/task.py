"""The two tasks of the benchmark, with the settings that both programs get."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

N_BEST, MAX_ANSWER_TOKENS = 20, 30
"""SQuAD's usual settings of predictions; those of our command too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkTask:
    """A task: its name in our command, the metric to compare, the settings.

    AdamW with PyTorch's constants and without decay, linear warm-up and decay, gradients clipped at 1.0.
    metric: its name and the factor to points. bar: points below the peer that are accepted. warmup: a share
    of all steps. stride: of SQuAD, the tokens from span to span.
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
        return self.name == "squad"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskData:
    """The encoder's directory in Hugging Face's form, and the files to train on and to evaluate."""

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
