"""The seam between the training loop and what is learned: a task's model, loss, metrics and evaluation."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DataError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatAttention
from trainer.data.opening import open_configured
from trainer.model.bert import attend_anywhere
from trainer.model.headed import HeadedBert

if TYPE_CHECKING:
    from trainer.tasks.evaluation import TaskEvaluation

RowLosses = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""From (rows, classes) logits and the label of each row: its loss, and 1.0 where it is guessed right."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """The columns of a task in a run's tables, and the metrics that a person watches.

    training: for each column of training.csv the metric whose mean it holds.
    evaluation: the keys of an evaluation's results, in the order of evaluation.csv.
    shown: the metric beside the loss in the progress bar.
    target: the key of the results that --target-accuracy and MLPerf's eval_accuracy refer to. whole: its
    largest value, which --target-accuracy is a share of.
    """

    training: Mapping[str, str]
    evaluation: tuple[str, ...]
    shown: str
    target: str
    whole: float = 1.0


class Outcome(NamedTuple):
    """A task's result on one micro-batch, on the model's device.

    loss: fp32 scalar with gradients. sums: (2 x metrics,) fp32 without gradients: of each metric of the
    task, in order, its sum and its weight. A metric over many batches is a quotient of the totals.
    outputs: in evaluation, of a task that wants it, the model's output; None in training.
    """

    loss: Tensor
    sums: Tensor
    outputs: Tensor | None = None


class TaskModel(Protocol):
    """What computes a task's output: a ``HeadedBert`` of the task, or the last stage of one that is split.

    training: dropout is drawn.
    """

    training: bool

    def __call__(self, batch: Batch, /) -> Any:
        """Return the output of the model's heads on a batch on its device."""
        ...


class Task(ABC):
    """A learning task: data, model, loss, metrics, evaluation, the columns of its reports, export."""

    name: str
    is_fine_tuned = False
    """True for a task that starts from a pre-trained model, by ``python -m trainer finetune``."""

    metrics: tuple[str, ...]
    columns: Columns
    model_class: type[HeadedBert] = HeadedBert
    """The class of its models, by which a plan counts the heads. HeadedBert: a small one, not counted."""
    architecture: str | None = None
    """The class of its models in transformers' form. None: found from the names of the heads."""
    head: str | None = None
    """The beginning of its head's names, where nothing can be measured without trained weights for it."""

    @classmethod
    @abstractmethod
    def configured(cls, config: Config, row_losses: RowLosses | None) -> Self:
        """The task with the configured settings. row_losses: the device's own losses, where it has some."""

    def open(
        self, config: Config, paths: str, model_vocabulary_size: int | None = None, *, held_out: bool = False
    ) -> OpenedDataset:
        """The dataset at the paths, fit for the configuration.

        held_out: of a directory of training and test files the latter, to evaluate on; else the former.
        """
        return open_configured(config, paths, model_vocabulary_size, held_out=held_out, task=self.name)

    @classmethod
    def generated(cls, config: Config) -> OpenedDataset:
        """Random examples of the configured objective. SettingsError for groups that only others have."""
        from trainer.data.generated import configured_data

        return configured_data(config)

    @classmethod
    def exported(cls, weights: Mapping[str, Any], form: str) -> Mapping[str, Any]:
        """Its model's weights by the names that they are written under in a form of ``convert``."""
        return weights

    def new_model(self, shape: ModelConfig, attention: FlatAttention = attend_anywhere) -> HeadedBert:
        """Return the model with random weights, in host memory or on the default device.

        attention: that of the device which it will be placed on.
        """
        return self.model_class(shape, attention=attention)

    def check_head(self, missing: Sequence[str], path: str) -> None:
        """DataError where the weights at the path lack the task's own head. missing: the names they lack."""
        if self.head is not None and any(name.startswith(self.head) for name in missing):
            raise DataError(f"{path}: has no head for the task {self.name}; fine-tune it first")

    @abstractmethod
    def outcome(self, model: TaskModel, batch: Batch) -> Outcome:
        """The loss and the metrics' sums of the model on a batch on its device.

        model: gives its output on a batch, in training with dropout.
        """

    @abstractmethod
    def survey(self, data: OpenedDataset) -> Any:
        """JSON about the dataset, for ``evaluation``. Called on one worker only."""

    @abstractmethod
    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "TaskEvaluation":
        """The evaluation on a dataset. survey: of the training set if there is one, else of this dataset."""
