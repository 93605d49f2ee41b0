"""Base of the tasks of fine-tuning: tokeniser, datasets of features, means over the examples there are."""

from abc import abstractmethod
from argparse import Namespace
from typing import Any, Self

import torch
from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.tokens.load import tokenizer_of
from bertdata.tokens.tokenizer import Tokenizer
from trainer.config.sections.data import DataSection
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.named_tokenizer import named_tokenizer, with_casing
from trainer.data.opening import open_for_training
from trainer.tasks.evaluation import TaskEvaluation
from trainer.tasks.prediction import Trained
from trainer.tasks.task import Outcome, RowLosses, Task


class FineTuning(Task):
    """A task on a dataset of features. objective: the one that its examples must have."""

    is_fine_tuned = True
    objective: str

    def __init__(self, config: Config) -> None:
        self._config, self.keys = config, config.finetuning

    @classmethod
    def configured(cls, config: Config, row_losses: RowLosses | None) -> Self:
        """The task. It has no use for a device's own losses."""
        return cls(config)

    def open(
        self, config: Config, paths: str, model_vocabulary_size: int | None = None, *, held_out: bool = False
    ) -> OpenedDataset:
        """The features in one directory. SettingsError where they are another task's."""
        return open_for_training(
            paths,
            DataSection(objective=self.objective),
            longest=config.model.values()["max_position_embeddings"],
            vocabulary_size=model_vocabulary_size,
        )

    @abstractmethod
    def prediction(self, data: OpenedDataset) -> TaskEvaluation:
        """The predictions of a dataset without answers."""

    @classmethod
    @abstractmethod
    def print_prediction(cls, given: Namespace, opened: Trained) -> None:
        """Print the prediction of the text that the flags of ``predict`` give."""

    def survey(self, data: OpenedDataset) -> Any:
        """Nothing: evaluation asks nothing of the training data."""
        return None


def is_there(batch: Batch) -> Tensor:
    """(examples,) float32: 1 for an example, 0 for a missing one that fills the batch, or a pack."""
    return (batch.next_sentence_labels >= 0).float().reshape(-1)


def target_of(batch: Batch, name: str) -> Tensor:
    """(examples,) int32: a task's own column."""
    return batch.targets[name].reshape(-1)


def outcome_of(weights: Tensor, losses: Tensor, *others: Tensor, outputs: Tensor | None) -> Outcome:
    """The weighted mean of the losses with gradients, and the sums of all these metrics without.

    weights, losses, others: (examples,).
    """
    weight = weights.sum()
    totals = [(values * weights).sum() for values in (losses, *others)]
    sums = [value for total in totals for value in (total.detach(), weight)]
    return Outcome(totals[0] / weight.clamp(min=1e-5), torch.stack(sums).float(), outputs)


def configured_tokenizer(config: Config) -> Tokenizer:
    """The configured tokeniser: of a vocabulary WordPiece as Google's program has it, with its casing."""
    config.require("vocab")
    file = named_tokenizer(str(config.masking.vocab))
    return tokenizer_of(with_casing(file, config.finetuning.lower_case))
