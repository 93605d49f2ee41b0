"""Learns byte-level BPE from text with Hugging Face's library ``tokenizers``.

Text is split into words by GPT-2's pattern.
"""

import re
from collections.abc import Iterable
from typing import Any

from bertdata.errors import SettingsError
from bertdata.tokens.training.library import import_tokenizers
from bertdata.tokens.training.special_tokens import SpecialTokens
from bertdata.tokens.training.texts import OnRead, VocabularyText
from bertdata.tokens.training.word_counts import OnCounted, count_words, repeat_words

LONGEST_WORD = 1000
"""Longest word in characters. Longer words are skipped: they are rarely prose, and the time of ``tokenizers``
grows with the square of their length.
"""

_BEFORE_BLANK = re.compile(r"(?<=\S)(?= )")
"""Positions where GPT-2's pattern always splits, because a blank belongs to the word after it."""


def train_bpe(
    text: VocabularyText,
    *,
    size: int,
    lower_case: bool,
    special: SpecialTokens,
    on_read: OnRead,
    on_counted: OnCounted,
) -> Any:
    """Learn a byte-level BPE and return it as a ``tokenizers.Tokenizer``.

    The result is the same in every process: among equally frequent pairs, ``tokenizers`` merges the pair with
    the lowest ids first. on_read: called with the number of bytes read since the last call. on_counted:
    called with the counted words.
    """
    tokenizers = import_tokenizers()
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(byte_level.alphabet())
    least = len(alphabet) + special.number
    if size < least:
        raise SettingsError(
            f"size is {size}, expected at least {least}: {len(alphabet)} bytes and {special.number} special "
            "tokens"
        )
    normalizer = tokenizers.normalizers.Lowercase() if lower_case else None

    def split(unit: str) -> Iterable[str]:
        unit = normalizer.normalize_str(unit) if normalizer else unit
        return (unit[start:stop] for _, (start, stop) in byte_level.pre_tokenize_str(unit))

    words = count_words(
        text.slices(on_read), _BEFORE_BLANK.split, split, limit=LONGEST_WORD, special=special.all
    )
    if not words.counts:
        raise text.no_words()
    on_counted(words)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size - len(special.last),
        special_tokens=list(special.first),
        min_frequency=2,
        show_progress=False,
        initial_alphabet=alphabet,
    )

    # ``tokenizers`` cannot be given counts, so it gets a text in which every word is repeated as often as it
    # occurs, between blanks. A word must not contain white space then, so it is spelled in GPT-2's alphabet
    # for bytes, where a blank is "Ġ".
    def spell(word: str) -> str:
        return str(byte_level.pre_tokenize_str(word)[0][0])

    tokenizer.train_from_iterator(repeat_words(words.counts, spell), trainer)
    # Trained on spelled words, split at white space. Texts are split by the byte-level pre-tokeniser.
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return tokenizer
