"""The class Checkpoint, for checkpoints of any program. Its tensors have this trainer's names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor
from torch.nn import functional as F

from bertdata.errors import DataError
from trainer.config.model import ModelConfig
from trainer.errors import CheckpointError
from trainer.tasks.classification.head_labels import HeadLabels, list_labels

OURS = "bertdata"
"""Name of this trainer's checkpoint format."""

WORDS = "bert.embeddings.word_embeddings.weight"
WORD_BIAS = "cls.predictions.bias"
DECODER = "cls.predictions.decoder.weight"
"""Weights of the word logits, in a model that does not tie them to the word embeddings."""
DECODER_BIAS = "cls.predictions.decoder.bias"
"""Second name of the bias of the word logits. Other programs may store it under this name; here it is
WORD_BIAS.
"""
VOCABULARY = (WORDS, WORD_BIAS, DECODER)
"""Names of the tensors that have a row for each token of the vocabulary."""

CLASSIFIER = "classifier.weight"
"""Name of the weight of a classification head, which has a row for each label."""

HEADS = ("cls.", "qa_outputs.", "classifier.")
"""Prefixes of the heads' tensors: pre-training, SQuAD, classification."""

OPTIONAL = (*HEADS, "bert.pooler.", "boundary.")
"""Prefixes of the tensors of heads and the pooler. A checkpoint may lack such tensors, or have them although
the model has none.
"""

ADAMS_BETAS = (0.9, 0.999)
"""Usual decay rates of Adam's moments."""

MOST_UPDATES = 1 << 53
"""Largest number of updates that is accepted from a file. A file with a larger number must be damaged."""

MEAN, SQUARE = "exp_avg", "exp_avg_sq"
"""Prefixes of the optimiser's moments: running means of gradients, and of squared gradients. A moment's name
is its prefix and the weight's name, such as exp_avg/bert.pooler.dense.bias.
"""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a checkpoint that is not read yet: its shape, and a function that reads it as contiguous
    fp32.
    """

    shape: tuple[int, ...]
    load: Callable[[], Tensor]

    @classmethod
    def of(cls, tensor: Tensor) -> "StoredTensor":
        """Return a StoredTensor for a tensor that is already in memory."""
        return cls(tuple(tensor.shape), lambda: tensor)

    def read(self) -> Tensor:
        """Read the tensor as contiguous fp32."""
        return self.load().float().contiguous()

    def check_on_read(self, where: str) -> "StoredTensor":
        """Return a StoredTensor that raises DataError on reading if any value is not a finite float.

        where: file and name of the tensor, for the error.
        """

        def load_checked() -> Tensor:
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

        return StoredTensor(self.shape, load_checked)

    def changed(self, shape: tuple[int, ...], change: Callable[[Tensor], Tensor]) -> "StoredTensor":
        """Return a StoredTensor that applies ``change`` to the tensor when it is read.

        shape: the shape after the change.
        """
        return StoredTensor(shape, lambda: change(self.load()))

    def transpose(self) -> "StoredTensor":
        """Return the matrix with rows and columns exchanged."""
        return self.changed(self.shape[::-1], lambda tensor: tensor.t())


Stored = Mapping[str, StoredTensor]


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A checkpoint of any program: its weights, its optimiser's moments, and what its files say about the
    model.

    config: the model, or None if no file describes it.
    moments: the optimiser's running means. Their names are like exp_avg/bert.pooler.dense.bias.
    updates: number of updates done, or None if unknown.
    steps_of_update: number of steps in an update, as the run counts them. MLPerf counts each micro-batch as a
    step.
    optimiser: name of the optimiser that the moments belong to.
    betas: the optimiser's two decay rates.
    task: task that the run has learned, or "" if unknown.
    architecture: name of the model's class in transformers. None: it follows from the heads of the model.
    longest: token ids in the longest sequence that the model was trained on, or None if unknown.
    token_ids: ids of special tokens, named as in transformers' config.json for this architecture.
    label_names: the labels of a classification head, or None if the files do not name them.
    problem: the head's problem_type in transformers, or None if the files do not name it.
    choice: a line that says why this checkpoint of a run is taken, or "" for the newest one.
    warnings: warnings about ignored content of the files, or about data that the run did not compare with
    their md5s. The code that opens the checkpoint prints them once.
    """

    kind: str
    path: str
    config: ModelConfig | None
    weights: Stored
    moments: Stored = field(default_factory=dict)
    updates: int | None = None
    steps_of_update: int = 1
    optimiser: str | None = None
    betas: tuple[float, float] = ADAMS_BETAS
    task: str = ""
    architecture: str | None = None
    longest: int | None = None
    token_ids: Mapping[str, int] = field(default_factory=dict)
    label_names: tuple[str, ...] | None = None
    problem: str | None = None
    choice: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def head_labels(self) -> HeadLabels | None:
        """Labels of the classification head, or None for a model without such a head.

        DataError if the files name more or fewer labels than the head has rows.
        """
        if (weight := self.weights.get(CLASSIFIER)) is None:
            return None
        rows, names = (weight.shape or (1,))[0], self.label_names
        if names is not None and len(names) != rows:
            raise DataError(
                f"{self.path}: names {len(names)} labels ({list_labels(names)}), and its head has {rows} "
                "rows; expected a label for each row (id2label of config.json)"
            )
        return HeadLabels(path=self.path, rows=rows, names=names, problem=self.problem)

    def expect_config(self) -> ModelConfig:
        """Return the model configuration.

        CheckpointError if no file describes the model. The message says how to name such a file.
        """
        if self.config is None:
            raise CheckpointError(f"{self.path}: no bert_config.json beside it; name one with --model-config")
        return self.config


def pad_vocabulary(tensors: Stored, config: ModelConfig) -> dict[str, StoredTensor]:
    """Return the tensors with rows of zeros that pad the vocabulary to a multiple of 8."""
    return _resize_vocabulary(tensors, config.vocab_size, config.padded_vocab_size)


def unpad_vocabulary(tensors: Stored, config: ModelConfig) -> dict[str, StoredTensor]:
    """Return the tensors without the rows that pad the vocabulary."""
    return _resize_vocabulary(tensors, config.padded_vocab_size, config.vocab_size)


def _resize_vocabulary(tensors: Stored, found: int, wanted: int) -> dict[str, StoredTensor]:
    """Change the number of rows from ``found`` to ``wanted`` in each tensor that has a row for each token.

    Tensors with any other number of rows are not changed.
    """

    def resize(name: str, tensor: StoredTensor) -> StoredTensor:
        is_table = name.rpartition("/")[2] in VOCABULARY
        if not is_table or found == wanted or tensor.shape[:1] != (found,):
            return tensor
        columns = tensor.shape[1:]
        padding = (*(0, 0) * len(columns), 0, wanted - found)  # a negative number of added rows removes rows
        return tensor.changed((wanted, *columns), lambda whole: F.pad(whole, padding))

    return {name: resize(name, tensor) for name, tensor in tensors.items()}
