"""The interface between the training loop and a learning task: its model, loss, metrics and evaluation."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DataError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatAttention
from trainer.data.opening import open_configured
from trainer.model.bert import attend_with_pytorch
from trainer.model.headed import HeadedBert

if TYPE_CHECKING:
    from typing_extensions import Self

    from trainer.tasks.evaluation import TaskEvaluation

RowLosses = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Function from logits of shape (rows, classes) and a label per row to two values per row.

They are the loss, and 1.0 if the label has the largest logit, otherwise 0.0.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """A task's columns in the tables of a run, and the metrics that are watched.

    training: for each column of training.csv, the metric whose mean it contains.
    evaluation: names of the results of an evaluation, in the order of the columns of evaluation.csv.
    shown: metric that the progress bar shows next to the loss.
    target: result that --target-accuracy and MLPerf's eval_accuracy refer to.
    whole: largest possible value of that result. --target-accuracy is a fraction of it.
    """

    training: Mapping[str, str]
    evaluation: tuple[str, ...]
    shown: str
    target: str
    whole: float = 1.0


class Outcome(NamedTuple):
    """A task's result for one micro-batch, on the model's device.

    loss: fp32 scalar with gradients.
    sums: sum and weight of each metric, in order, without gradients. The shape is (2 x metrics,) and the type
        fp32. Over many batches, a metric is its total sum divided by its total weight.
    outputs: the model's output in evaluation, if the task needs it. None in training.
    """

    loss: Tensor
    sums: Tensor
    outputs: Tensor | None = None


class TaskModel(Protocol):
    """Interface of a model that computes a task's output: a ``HeadedBert``, or the last
    stage of a split model.

    training: whether dropout is applied.
    """

    training: bool

    def __call__(self, batch: Batch, /) -> Any:
        """Return the output of the model's heads for a batch on the model's device."""
        ...


class Task(ABC):
    """A learning task: data, model, loss, metrics, evaluation, report columns and export."""

    name: str
    is_fine_tuned = False
    """True if the task starts from a pre-trained model, with ``python -m trainer finetune``."""

    metrics: tuple[str, ...]
    columns: Columns
    model_class: type[HeadedBert] = HeadedBert
    """Class of the task's models. Plans for split models use it to count the weights of the heads.

    The default, HeadedBert, means that the head is too small to count.
    """
    architecture: str | None = None
    """Name of the models' class in transformers.

    None means that the name is derived from the names of the heads.
    """
    head: str | None = None
    """Beginning of the names of the head's weights, if an evaluation is meaningless without a trained head.

    Otherwise None.
    """

    @classmethod
    @abstractmethod
    def configured(cls, config: Config, row_losses: RowLosses | None) -> "Self":
        """Return the task with the settings that the configuration has for it.

        row_losses: the device's function for the masked-word loss, or None for the usual function.
        """

    def open(
        self, config: Config, paths: str, model_vocabulary_size: int | None = None, *, held_out: bool = False
    ) -> OpenedDataset:
        """Open the datasets at these paths, and check that they fit the configuration.

        model_vocabulary_size: number of tokens that the model has embeddings for. None if
            there is no model yet.
        held_out: whether to take the test files of a directory that has training and test files.
        """
        return open_configured(config, paths, model_vocabulary_size, held_out=held_out, task=self.name)

    @classmethod
    def generated(cls, config: Config) -> OpenedDataset:
        """Return randomly generated examples for the configured objective.

        Raises SettingsError if the task cannot generate examples.
        """
        from trainer.data.generated import make_configured_data

        return make_configured_data(config)

    @classmethod
    def exported(cls, weights: Mapping[str, Any], form: str) -> Mapping[str, Any]:
        """Return the model's weights with the names that another program's format has.

        form: name of the format, as in ``trainer convert``.
        """
        return weights

    def new_model(self, shape: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> HeadedBert:
        """Return the model with random weights, in host memory or on torch's default device.

        attention: attention function of the device on which the model will be placed.
        """
        return self.model_class(shape, attention=attention)

    def check_head(self, missing: Sequence[str], path: str) -> None:
        """Raise DataError if a checkpoint lacks the weights of the task's head.

        missing: names of weights that the checkpoint lacks.
        path: path of the checkpoint, for the message.
        """
        if self.head is not None and any(name.startswith(self.head) for name in missing):
            raise DataError(f"{path}: has no head for the task {self.name}; fine-tune it first")

    @abstractmethod
    def outcome(self, model: TaskModel, batch: Batch) -> Outcome:
        """Return the loss and the metric sums of a batch. The batch is on the model's device."""

    @abstractmethod
    def survey(self, data: OpenedDataset) -> Any:
        """Return what an evaluation needs to know about a dataset, such as counts of labels, as JSON values.

        The result is passed to ``evaluation`` as the argument ``survey``. This method is
        called on one worker only.
        """

    @abstractmethod
    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "TaskEvaluation":
        """Return the evaluation on a dataset.

        survey: result of ``survey`` for the training set. If there is no training set, the
            result for this dataset.
        training: the training set, or None if there is none.
        """
