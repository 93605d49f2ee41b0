"""What a person is told of a vocabulary that is made: text it does not learn from, tokens that do not work."""

from bertdata.config.dialects import find_dialect
from bertdata.tokens.basic import split_words
from bertdata.tokens.training.special_tokens import Kind, SpecialTokens
from bertdata.tokens.training.word_counts import WordCounts

_SHOWN_CHARACTERS = 20


def warnings_of(words: WordCounts, kind: Kind, name: str) -> list[str]:
    """Return warnings on the text of a vocabulary. name: of its file."""
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
            f"{name}: learns from a sample of the text, one word in {words.divisor}, as sentencepiece would hold "
            f"every word in memory: {words.words} words, {len(words.counts)} of them distinct"
        )
    found += [
        f"{name}: the text holds the special token {token} (number of times: {times}), which becomes the special "
        "token there, not a word; choose one by --special that the text does not hold"
        for token, times in words.special.items()
    ]
    return found


def unused_special_tokens(special: SpecialTokens, lower_case: bool, name: str) -> list[str]:
    """Return a warning for each special token of a vocabulary of lines that no text gives.

    The roles' own tokens are put in by ``create``.
    """
    dialect = find_dialect("google")
    found = []
    for token in special.all:
        words = split_words(token, dialect, lower_case)
        if token not in special.roles.values() and words != [token]:
            found.append(
                f"{name}: no text gives the special token {token}: with a vocabulary of lines it is split into "
                f"{' '.join(words) or 'nothing'}; a tokenizer.json finds it whole (--output NAME.json)"
            )
    return found
