"""The output layer that predicts masked words, in files of other programs.

The layer's weight may be tied, that is, the same tensor as the word embeddings, or separate. Files of
transformers may have the weight under two names (WORDS and DECODER), and the bias under two names too
(WORD_BIAS and DECODER_BIAS). If a file has different values under the two names, releases of
transformers disagree about which to use. This trainer takes the value under the decoder's name, as
transformers 5 does, which stores trained values under that name.
"""

from dataclasses import replace

import torch

from bertdata.errors import DataError
from trainer.checkpoints.any_checkpoint import (
    DECODER,
    DECODER_BIAS,
    HEADS,
    WORD_BIAS,
    WORDS,
    Checkpoint,
    StoredTensor,
)

_TRANSFORM = "cls.predictions.transform."


def resolve_output_layer(checkpoint: Checkpoint, *, is_tied: bool = False) -> Checkpoint:
    """Find out whether the output layer is tied to the word embeddings. Return the checkpoint with a single
    weight and a single bias for this layer.

    The tensor DECODER is the weight of the output layer. If it equals the word embeddings and the
    configuration does not call the two separate, it is removed. If the two differ, both are kept, with a
    warning if the configuration calls them tied. If they are tied and the file has only one of them, this
    tensor is used for both.

    is_tied: True if the program always ties the two. A file in which they differ is then a DataError.
    """
    weights, warnings = dict(checkpoint.weights), list[str]()
    # Each line: tie_word_embeddings / word embeddings and decoder in the file -> what is done
    # true / only the decoder            -> it is the word embeddings
    # true / both, equal                 -> drop the decoder
    # true / both, different             -> keep both, untied, with a warning
    # false / no decoder, but a head     -> error
    _keep_single_bias(weights, checkpoint.path, warnings)
    config = checkpoint.config
    ties = config is None or config.tie_word_embeddings
    if ties and WORDS not in weights and DECODER in weights:
        weights = {WORDS if name == DECODER else name: tensor for name, tensor in weights.items()}
    elif ties and DECODER in weights:
        if _is_equal(weights[WORDS], weights[DECODER]):
            del weights[DECODER]
        elif is_tied or config is None:
            raise DataError(
                f"{checkpoint.path}: {DECODER} has other values than {WORDS}; expected the same, as the "
                "program's output layer has no weights of its own"
            )
        else:
            config = replace(config, tie_word_embeddings=False)
            warnings.append(
                f"{checkpoint.path}: {DECODER} has other values than the word embeddings, though "
                "tie_word_embeddings is not false: it is taken as the output layer, as transformers 5 does; "
                "transformers 4 takes the embeddings"
            )
    elif not ties and DECODER not in weights and _has_word_head(weights):
        raise DataError(
            f"{checkpoint.path}: tie_word_embeddings is false, but the file lacks the decoder's weights; "
            "expected them, or tie_word_embeddings true in config.json"
        )
    warnings = [*checkpoint.warnings, *warnings]
    return replace(checkpoint, weights=weights, config=config, warnings=tuple(warnings))


def _keep_single_bias(weights: dict[str, StoredTensor], path: str, warnings: list[str]) -> None:
    """Leave a single bias in ``weights``, under the name WORD_BIAS. The file may have it under one or two
    names.
    """
    decoders = weights.get(DECODER_BIAS)
    if decoders is None:
        return
    there = weights.get(WORD_BIAS)
    if there is None:
        renamed = {WORD_BIAS if name == DECODER_BIAS else name: item for name, item in weights.items()}
        weights.clear()
        weights.update(renamed)
        return
    del weights[DECODER_BIAS]
    if not _is_equal(there, decoders):
        weights[WORD_BIAS] = decoders
        warnings.append(
            f"{path}: {DECODER_BIAS} has other values than {WORD_BIAS}: it is taken, as transformers 5 does; "
            "transformers 4 takes the other one for a BERT"
        )


def _has_word_head(weights: dict[str, StoredTensor]) -> bool:
    """Return whether the weights have a masked-word head.

    Its dense layer alone does not show this, because ModernBERT's other heads have the same dense layer.
    """
    is_other = any(name.startswith(HEADS[1:]) for name in weights)
    return WORD_BIAS in weights or (not is_other and any(name.startswith(_TRANSFORM) for name in weights))


def _is_equal(one: StoredTensor, other: StoredTensor) -> bool:
    """Return whether two tensors have equal shapes and values."""
    return one.shape == other.shape and torch.equal(one.read(), other.read())
