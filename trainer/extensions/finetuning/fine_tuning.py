"""Base of the tasks of fine-tuning: tokeniser, datasets of features, means over the examples there are."""

from typing import Self

import torch
from torch import Tensor

from bertdata.config.dialects import find_dialect
from bertdata.dataset.reader import OpenedDataset
from bertdata.io.assets import find_vocabulary
from bertdata.tokens.load import load_vocabulary
from bertdata.tokens.vocabulary import WordPieceVocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.opening import open_for_training
from trainer.model.task import RowLosses, Task


class FineTuning(Task):
    """A task on a dataset of features. objective: the one that its examples must have."""

    is_fine_tuned = True
    objective: str

    def __init__(self, config: Config) -> None:
        self._config = config

    @classmethod
    def configured(cls, config: Config, row_losses: RowLosses | None) -> Self:
        """The task. It has no use for a device's own losses."""
        return cls(config)

    def open(
        self,
        config: Config,
        paths: str | None,
        model_vocabulary_size: int | None = None,
        *,
        held_out: bool = False,
    ) -> OpenedDataset:
        """The features in one directory. SettingsError where they are another task's."""
        assert paths is not None, "features are made before they are opened"
        return open_for_training(
            paths,
            objective=self.objective,
            max_position_embeddings=config.model.values()["max_position_embeddings"],
            vocabulary_size=model_vocabulary_size,
        )

    def survey(self, data: OpenedDataset) -> None:
        """Nothing: evaluation asks nothing of the training data."""


def is_there(batch: Batch) -> Tensor:
    """(examples,) float32: 1 for an example, 0 for a missing one that fills the batch, or a pack."""
    return batch.there().float().reshape(-1)


def target_of(batch: Batch, name: str) -> Tensor:
    """(examples,) int32: a task's own column."""
    return batch.targets[name].reshape(-1)


def mean_of(values: Tensor, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The weighted mean with gradients, then the sums of weighted values and of weights without."""
    total, weight = (values * weights).sum(), weights.sum()
    return total / weight.clamp(min=1e-5), [total.detach(), weight]


def sums_of(*pairs: list[Tensor]) -> Tensor:
    """Outcome.sums of some (sum, weight)."""
    return torch.stack([value for pair in pairs for value in pair]).float()


_DIALECT = "google"


def configured_tokenizer(config: Config) -> WordPieceTokenizer:
    """WordPiece as Google's program has it, with the configured vocabulary and casing."""
    config.require("vocab")
    vocabulary = load_vocabulary(find_vocabulary(str(config.masking.vocab)), _DIALECT)
    assert isinstance(vocabulary, WordPieceVocabulary)
    return WordPieceTokenizer(
        vocabulary, find_dialect(_DIALECT), lower_case=config.finetuning.lower_case is not False
    )
