"""Learns a byte-level BPE from text with Hugging Face's library ``tokenizers``.

The words of the text are the pre-tokens into which GPT-2's pattern splits it.
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
"""Longest word in characters that a BPE is learned from. Longer words are skipped.

They are rarely prose, and the time that ``tokenizers`` takes grows with the square of their length.
"""

_BEFORE_BLANK = re.compile(r"(?<=\S)(?= )")
"""Positions before a blank that follows another character.

GPT-2's pattern always splits there, because a blank belongs to the word after it.
"""


def train_bpe(
    text: VocabularyText,
    *,
    size: int,
    lower_case: bool,
    special: SpecialTokens,
    on_read: OnRead,
    on_counted: OnCounted,
) -> Any:
    """Learn a byte-level BPE, and return it as a ``tokenizers.Tokenizer``.

    The result is the same in every process: among equally frequent pairs, ``tokenizers`` merges the pair with
    the lowest ids first.

    text: text to learn from.
    size: largest number of tokens, including the special tokens.
    lower_case: convert the text to lower case.
    special: the special tokens.
    on_read: called with the number of bytes read since the last call.
    on_counted: called once with the counts of all words.
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

    def split_unit(unit: str) -> Iterable[str]:
        """Split a piece of text into pre-tokens, in lower case if the settings say so."""
        unit = normalizer.normalize_str(unit) if normalizer else unit
        return (unit[start:stop] for _, (start, stop) in byte_level.pre_tokenize_str(unit))

    words = count_words(
        text.read_slices(on_read), _BEFORE_BLANK.split, split_unit, limit=LONGEST_WORD, special=special.all
    )
    if not words.counts:
        raise text.make_no_words_error()
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

    # ``tokenizers`` does not accept counts of words. It therefore gets a text in which each word is repeated
    # as often as it occurs, with blanks between the words. A word itself must not contain white space in this
    # text, so it is spelled in GPT-2's alphabet for bytes, in which a blank is "Ġ".
    def spell(word: str) -> str:
        """Spell a word in GPT-2's alphabet for bytes."""
        return str(byte_level.pre_tokenize_str(word)[0][0])

    tokenizer.train_from_iterator(repeat_words(words.counts, spell), trainer)
    # The training splits the spelled words at white space. The finished tokeniser splits normal text, so it
    # gets the byte-level pre-tokeniser instead.
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return tokenizer
