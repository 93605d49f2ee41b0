"""Unigram pieces learned from text by sentencepiece, its original program (Kudo 2018).

The tokenizers library has a trainer of its own, which adds up probabilities in the order of a hash table that
is new in every process: its scores differ from run to run.
"""

import io
from collections.abc import Iterable, Iterator

from bertdata.errors import InputError, SettingsError
from bertdata.tokens.training.library import import_sentencepiece

Piece = tuple[str, float]
"""A piece and the logarithm of its probability."""

SPACE = "▁"
"""The mark of a blank at the beginning of a word, U+2581."""

_LONGEST_WORD = 1 << 30
"""Bytes; the most that sentencepiece allows. Longer ones would be left out."""


def train_pieces(words: dict[str, int], *, size: int, special: Iterable[str]) -> list[Piece]:
    """At most ``size`` pieces, the most probable first. words: how often each occurs, without blanks.

    Every character of the words is a piece. special: tokens that no piece may be equal to.
    """
    sentencepiece = import_sentencepiece()
    characters = {SPACE}.union(*words)
    if size < len(characters):
        raise SettingsError(
            f"size leaves {size} tokens beside the special ones, but the text has {len(characters)} single "
            "characters"
        )
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_rows(words),
            model_writer=model,
            input_format="tsv",
            max_sentence_length=_LONGEST_WORD,
            vocab_size=size + 1,  # with sentencepiece's own unknown token
            hard_vocab_limit=False,
            character_coverage=1.0,
            normalization_rule_name="identity",
            bos_id=-1,
            eos_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise InputError(
            f"sentencepiece learns nothing from this text: {' '.join(str(error).split())}"
        ) from None
    learned = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = ((learned.id_to_piece(i), learned.get_score(i)) for i in range(1, learned.get_piece_size()))
    taken = set(special)
    return [piece for piece in pieces if piece[0] not in taken]


def _rows(words: dict[str, int]) -> Iterator[str]:
    """Each word with its count, in an order that depends on nothing else."""
    for word in sorted(words):
        yield f"{word}\t{words[word]}"
