"""Warnings about a trained vocabulary: text that was not learned from, and special tokens that do not
work.
"""

from bertdata.config.dialects import find_dialect
from bertdata.tokens.basic import split_words
from bertdata.tokens.training.special_tokens import Kind, SpecialTokens
from bertdata.tokens.training.word_counts import WordCounts

_SHOWN_CHARACTERS = 20


def find_text_warnings(words: WordCounts, kind: Kind, name: str) -> list[str]:
    """Return warnings about the text that a vocabulary was learned from.

    words: counts of the words in the text.
    kind: kind of the vocabulary.
    name: name of the vocabulary file.
    """
    found = []
    if words.left_out:
        effect = "such a word becomes [UNK]" if kind == "wordpiece" else "such a word is hardly text"
        number = "1 word" if words.left_out == 1 else f"{words.left_out} words"
        found.append(
            f"{name}: does not learn from {number} of more than {words.limit} characters, as {effect}; the "
            f"longest has {len(words.longest)} and begins {words.longest[:_SHOWN_CHARACTERS]!r}"
        )
    if words.divisor > 1:
        found.append(
            f"{name}: learns from a sample of the text, one word in {words.divisor}, as sentencepiece would "
            f"hold every word in memory: {words.words} words, {len(words.counts)} of them distinct"
        )
    if words.special:
        tokens = ", ".join(f"{token} ({times})" for token, times in words.special.items())
        found.append(
            f"{name}: the text holds special tokens, written out (how often): {tokens}; there the tokeniser "
            "gives the special token's id, not a word's; --special takes others that the text does not hold"
        )
    return found


def warn_of_unused_special_tokens(special: SpecialTokens, lower_case: bool, name: str) -> list[str]:
    """Return a warning for each special token that this vocabulary file can never give for a text.

    BERT's tokeniser splits the spelling of such a token into several words, so the token is never found. A
    token with a role (such as [CLS]) does not matter, because the command ``create`` inserts it.

    name: name of the vocabulary file.
    """
    dialect = find_dialect("google")
    found = []
    for token in special.all:
        words = split_words(token, dialect, lower_case)
        if token not in special.roles.values() and words != [token]:
            found.append(
                f"{name}: no text gives the special token {token}: with a vocabulary of lines it is split "
                f"into {' '.join(words) or 'nothing'}; a tokenizer.json finds it whole (--output NAME.json)"
            )
    return found
