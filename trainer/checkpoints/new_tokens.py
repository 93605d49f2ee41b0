"""Embeddings for tokens that a model does not know, made from the embeddings of the known tokens into which
the model's tokeniser splits each new token.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from torch import Tensor
from torch.nn import functional as F

from bertdata.records import Vocabulary
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.readable import make_words_readable
from trainer.checkpoints.any_checkpoint import VOCABULARY, Checkpoint, Stored, StoredTensor
from trainer.config.model import ModelConfig

_CONTINUES = "##"

Pieces = Mapping[int, list[int]]
"""Ids of the pieces of each new token, by its id. The pieces are the known tokens into which the model's
tokeniser splits its text.

An empty list means that the new token gets the mean of all tokens' embeddings.
"""


def add_new_tokens(
    checkpoint: Checkpoint,
    own: TokenizerFile,
    data: Vocabulary,
    shape: ModelConfig,
    log: Callable[[str], None],
) -> Checkpoint:
    """Return the checkpoint with an embedding for each token that only the data's vocabulary has.

    Each new row, of the word embeddings and of the word logits' bias, is the mean of the rows of the token's
    pieces in the model's own tokeniser. A token without known pieces gets the mean of all rows. New rows of
    moments are zeros.
    """
    known, config = vocabulary_of(own), checkpoint.config
    if config is None or shape.vocab_size < config.vocab_size:
        return checkpoint
    pieces = find_pieces(own, data)
    if not pieces and shape.vocab_size == config.vocab_size:
        return checkpoint
    if pieces:
        first, last = (data.words[number] for number in (min(pieces), max(pieces)))
        without = sum(not some for some in pieces.values())
        rule = "each row is the mean of its pieces' rows"
        rule += f", of {without} without known pieces the mean of all" if without else ""
        log(f"{len(pieces)} new tokens, {first!r} to {last!r}: {rule}")
    rows = config.vocab_size

    def add_rows(key: str, tensor: StoredTensor) -> StoredTensor:
        is_moment, name = "/" in key, key.rpartition("/")[2]
        if name not in VOCABULARY:
            return tensor
        made = {} if is_moment else pieces
        return tensor.changed(
            (shape.vocab_size, *tensor.shape[1:]),
            lambda table: grow_table(table[:rows], made, known.size, shape.vocab_size),
        )

    def add_rows_to_all(tensors: Stored) -> dict[str, StoredTensor]:
        return {key: add_rows(key, tensor) for key, tensor in tensors.items()}

    weights, moments = add_rows_to_all(checkpoint.weights), add_rows_to_all(checkpoint.moments)
    return replace(checkpoint, weights=weights, moments=moments)


def find_pieces(own: TokenizerFile, data: Vocabulary) -> Pieces:
    """Split each token that the model does not know into tokens that it knows.

    A token counts as unknown if its id is not in the model's vocabulary, or is another token there. The
    result has, for the id of each unknown token, the ids of the known tokens.
    """
    known = vocabulary_of(own)
    texts = [
        word.removeprefix(_CONTINUES) if known.kind == "wordpiece" else word
        for word in make_words_readable(data)
    ]
    new = [
        number
        for number, word in enumerate(data.words)
        if number >= known.size or word != known.words[number]
    ]
    cut = tokenizer_of(own).encode_each([texts[number] for number in new])
    return {
        number: [] if known.unk in ids else list(ids) for number, ids in zip(new, cut.lists(), strict=True)
    }


def grow_table(table: Tensor, pieces: Pieces, known: int, rows: int) -> Tensor:
    """Return the table with a row for each new token: the mean of the rows of the new token's pieces.

    A new token without pieces gets the mean of the rows of all tokens that the model knows.
    pieces: for the id of each new token, the ids of known tokens that it consists of.
    known: number of tokens that the model knows. Later rows without a new token keep their values, or are
    zeros if the table did not have them.
    rows: number of rows of the result.
    """
    wider = (0, 0) * (table.dim() - 1)
    found = F.pad(table.float(), (*wider, 0, max(0, rows - len(table))))
    everything = table[:known].double().mean(0)
    for number, some in pieces.items():
        found[number] = table[some].double().mean(0) if some else everything
    return found
