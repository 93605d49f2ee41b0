"""The rows of the vocabulary: padded to a multiple of 8 in this model, as they were in other programs."""

from torch.nn import functional as F

from trainer.checkpoint.stored import VOCABULARY, Stored, StoredTensor
from trainer.config.model import ModelConfig


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
