"""A checkpoint of any program under this model's names. Each tensor is read when it is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor
from torch.nn import functional as F

from trainer.config.model import ModelConfig
from trainer.errors import CheckpointError

WORDS = "bert.embeddings.word_embeddings.weight"
WORD_BIAS = "cls.predictions.bias"
VOCABULARY = (WORDS, WORD_BIAS)
"""The tensors with a row for each token of the vocabulary."""

HEADS = ("cls.", "qa_outputs.", "classifier.")
"""Beginnings of the names of heads: of pre-training, of SQuAD, of a classification."""

OPTIONAL = (*HEADS, "bert.pooler.", "boundary.")
"""Beginnings of the names that a checkpoint may lack, or hold for nothing: heads and the pooler."""

MOST_UPDATES = 1 << 53
"""The largest number of updates that a file may tell; a larger one is damage."""

MEAN, SQUARE = "exp_avg", "exp_avg_sq"
"""The moments, which are named KIND/NAME."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor's shape, and a function that reads it. ``read`` returns fp32, contiguous."""

    shape: tuple[int, ...]
    load: Callable[[], Tensor]

    @classmethod
    def of(cls, tensor: Tensor) -> "StoredTensor":
        """A tensor that is in memory."""
        return cls(tuple(tensor.shape), lambda: tensor)

    def read(self) -> Tensor:
        return self.load().float().contiguous()

    def changed(self, shape: tuple[int, ...], change: Callable[[Tensor], Tensor]) -> "StoredTensor":
        """The tensor after a change that gives it this shape."""
        return StoredTensor(shape, lambda: change(self.load()))

    def transposed(self) -> "StoredTensor":
        """A matrix with rows and columns exchanged."""
        return self.changed(self.shape[::-1], lambda tensor: tensor.t())


Stored = Mapping[str, StoredTensor]


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """Weights by name, moments as KIND/NAME, and what the files say of the model and of the run.

    config: None where no file gives it. updates: those that were made; None where it is not said.
    steps_of_update: steps that the run's numbers count for each, as MLPerf's micro-steps.
    optimiser: the preset whose moments these are; betas: its two. task: the one that the run has learned;
    "": not said. architecture: transformers' class of the model; None: found from its heads. token_ids: the
    ids of special tokens under the names that transformers' config.json has for this kind of model.
    """

    kind: str
    path: str
    config: ModelConfig | None
    weights: Stored
    moments: Stored = field(default_factory=dict)
    updates: int | None = None
    steps_of_update: int = 1
    optimiser: str | None = None
    betas: tuple[float, float] = (0.9, 0.999)
    task: str = ""
    architecture: str | None = None
    token_ids: Mapping[str, int] = field(default_factory=dict)

    def expect_config(self) -> ModelConfig:
        """The configuration. CheckpointError with the remedy where no file gives it."""
        if self.config is None:
            raise CheckpointError(f"{self.path}: no bert_config.json beside it; name one with --model-config")
        return self.config


def padded(tensors: Stored, config: ModelConfig) -> dict[str, StoredTensor]:
    """Weights or moments with rows of zeros for the vocabulary's padding."""
    return _resized(tensors, config.vocab_size, config.padded_vocab_size)


def unpadded(tensors: Stored, config: ModelConfig) -> dict[str, StoredTensor]:
    """Weights or moments without the vocabulary's padding."""
    return _resized(tensors, config.padded_vocab_size, config.vocab_size)


def _resized(tensors: Stored, found: int, wanted: int) -> dict[str, StoredTensor]:
    """The tensors, with rows added or removed at the end of those that have ``found`` rows of vocabulary."""

    def resize(name: str, tensor: StoredTensor) -> StoredTensor:
        is_table = name.rpartition("/")[2] in VOCABULARY
        if not is_table or found == wanted or tensor.shape[:1] != (found,):
            return tensor
        columns = tensor.shape[1:]
        padding = (*(0, 0) * len(columns), 0, wanted - found)  # negative: rows are taken away
        return tensor.changed((wanted, *columns), lambda whole: F.pad(whole, padding))

    return {name: resize(name, tensor) for name, tensor in tensors.items()}
