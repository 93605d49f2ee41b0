"""Base class of the fine-tuning tasks, and functions for the weights, targets and metrics of a batch."""

from abc import abstractmethod
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.tokens.load import tokenizer_of
from bertdata.tokens.tokenizer import Tokenizer
from trainer.config.sections.data import DataSection
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.named_tokenizer import change_casing, find_named_tokenizer
from trainer.data.opening import open_for_training
from trainer.tasks.evaluation import TaskEvaluation
from trainer.tasks.prediction import Prediction, Trained
from trainer.tasks.task import Outcome, RowLosses, Task

if TYPE_CHECKING:
    from typing_extensions import Self


class FineTuning(Task):
    """Base class of tasks that learn from a dataset of features.

    objective: objective that the dataset must have.
    """

    is_fine_tuned = True
    objective: str

    def __init__(self, config: Config) -> None:
        self._config, self.keys = config, config.finetuning

    @classmethod
    def configured(cls, config: Config, row_losses: RowLosses | None) -> "Self":
        """Return the task.

        A device's own function for the masked-word loss (row_losses) is not used in fine-tuning.
        """
        return cls(config)

    def open(
        self, config: Config, paths: str, model_vocabulary_size: int | None = None, *, held_out: bool = False
    ) -> OpenedDataset:
        """Open the dataset of features in a directory.

        Raise SettingsError if the features belong to another task.
        """
        return open_for_training(
            paths,
            DataSection(objective=self.objective),
            longest=config.model.values()["max_position_embeddings"],
            vocabulary_size=model_vocabulary_size,
        )

    @abstractmethod
    def prediction(self, data: OpenedDataset) -> TaskEvaluation:
        """Return an evaluation that only makes predictions, for a dataset without answers."""

    @classmethod
    @abstractmethod
    def predict(cls, given: Namespace, opened: Trained) -> Prediction:
        """Return the prediction for the text that the flags of the command ``predict`` contain."""

    def survey(self, data: OpenedDataset) -> Any:
        """Return None, because the evaluation needs no counts from the training data."""
        return None


def make_example_weights(batch: Batch) -> Tensor:
    """Return the weights of a batch's examples, with shape (examples,) and type float32.

    The weight is 1 for a real example, and 0 for padding that fills up the batch or a packed row.
    """
    return (batch.next_sentence_labels >= 0).float().reshape(-1)


def get_target(batch: Batch, name: str) -> Tensor:
    """Return the values that the task has added to each example as a column, such as the label.

    The shape is (examples,) and the type int32.
    name: name of the column.
    """
    return batch.targets[name].reshape(-1)


def make_outcome(weights: Tensor, losses: Tensor, *others: Tensor, outputs: Tensor | None) -> Outcome:
    """Return the outcome of a batch: the weighted mean of the losses, and the sums and
    weights of all metrics.

    The mean has gradients, the sums have none.
    weights: weight of each example, with shape (examples,).
    losses: loss of each example, with shape (examples,).
    others: values of further metrics, each with shape (examples,).
    outputs: the model's output if the evaluation needs it, otherwise None.
    """
    weight = weights.sum()
    totals = [(values * weights).sum() for values in (losses, *others)]
    sums = [value for total in totals for value in (total.detach(), weight)]
    return Outcome(totals[0] / weight.clamp(min=1e-5), torch.stack(sums).float(), outputs)


def load_configured_tokenizer(config: Config) -> Tokenizer:
    """Return the configured tokeniser.

    A vocab.txt is read as a WordPiece vocabulary. Texts are split into words as in Google's program, with the
    configured casing.
    """
    config.require("vocab")
    file = find_named_tokenizer(str(config.masking.vocab))
    return tokenizer_of(change_casing(file, config.finetuning.lower_case))
