"""A checkpoint of any program under this model's names. Each tensor is read when it is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor
from torch.nn import functional as F

from bertdata.errors import DataError
from trainer.config.model import ModelConfig
from trainer.errors import CheckpointError
from trainer.tasks.classification.head_labels import HeadLabels, listed

OURS = "bertdata"
"""The kind of this trainer's own checkpoints."""

WORDS = "bert.embeddings.word_embeddings.weight"
WORD_BIAS = "cls.predictions.bias"
DECODER = "cls.predictions.decoder.weight"
"""The weights of the word logits in a model that does not tie them to the word embeddings."""
DECODER_BIAS = "cls.predictions.decoder.bias"
"""Another name of WORD_BIAS in other programs."""
VOCABULARY = (WORDS, WORD_BIAS, DECODER)
"""The tensors with a row for each token of the vocabulary."""

CLASSIFIER = "classifier.weight"
"""The weight of a classification's head, with a row for each label."""

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

    def checked(self, where: str) -> "StoredTensor":
        """The tensor, for which DataError is raised when it is read unless it holds finite numbers of floats.

        where: file and name of the tensor.
        """

        def load() -> Tensor:
            values = self.load()
            if not values.is_floating_point():
                kind = str(values.dtype).removeprefix("torch.")
                raise DataError(
                    f"{where} is of the type {kind}, expected floating-point numbers: a quantised model is "
                    "not read"
                )
            if not bool(values.isfinite().all() if values.dtype.itemsize > 1 else True):
                raise DataError(f"{where} holds values that are no finite numbers (NaN or infinity)")
            return values

        return StoredTensor(self.shape, load)

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
    "": not said. architecture: transformers' class of the model; None: found from its heads. longest:
    ids of the longest sequence that the model was trained on; None: not known. token_ids: the ids of special
    tokens under the names that transformers' config.json has for this kind of model. label_names, problem:
    what the files say of a classification's head, as of HeadLabels. warnings: about what the files hold and
    is not read, a line each, for whoever opens the checkpoint to show once.
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
    longest: int | None = None
    token_ids: Mapping[str, int] = field(default_factory=dict)
    label_names: tuple[str, ...] | None = None
    problem: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def head_labels(self) -> HeadLabels | None:
        """The labels of the classification's head, or None where it has none.

        DataError where the files name more or fewer labels than the head has rows.
        """
        if (weight := self.weights.get(CLASSIFIER)) is None:
            return None
        rows, names = (weight.shape or (1,))[0], self.label_names
        if names is not None and len(names) != rows:
            found = f"names {len(names)} labels ({listed(names)}), and its head has {rows} rows"
            raise DataError(f"{self.path}: {found}; expected a label for each row (id2label of config.json)")
        return HeadLabels(path=self.path, rows=rows, names=names, problem=self.problem)

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
