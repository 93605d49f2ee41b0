"""Checks that a vocabulary is laid out like fairseq's dictionary, and finds the ids that begin a word."""

from collections.abc import Callable

from bertdata.errors import SettingsError
from bertdata.examples.fairseq.masks import SPECIAL_IDS
from bertdata.records import Vocabulary

_FIXED = {"cls": 0, "pad": 1, "sep": 2, "unk": 3}
_FILLER = "madeupword"
_BYTE_BLANK, _SENTENCEPIECE_BLANK = "\u0120", "\u2581"


def check_dictionary(vocabulary: Vocabulary, masking: str) -> None:
    """Raise SettingsError unless the special tokens have the ids of fairseq's dictionary.

    The ids of <s>, <pad>, </s> and <unk> must be 0 to 3, and the id of <mask> the last one.

    masking: name of the way to draw masks that needs these ids, for the message.
    """
    wanted = _FIXED | {"mask": vocabulary.size - 1}
    found = {role: getattr(vocabulary, role) for role in wanted}
    if found["pad"] is None and vocabulary.words[1:2] == ["<pad>"]:
        found["pad"] = 1
    if found != wanted:
        listed = ", ".join(f"{role} {token}" for role, token in found.items())
        expected = ", ".join(f"{role} {token}" for role, token in wanted.items())
        raise SettingsError(
            f"{vocabulary.name}: masking {masking} needs fairseq's dictionary, with {expected}; "
            f"found {listed}; make the data with a tokeniser in RoBERTa's layout, or take masking dynamic"
        )


def find_word_begins(vocabulary: Vocabulary) -> bytes:
    """Return one byte per id: 1 if the token begins a word, else 0.

    The four special ids and ``madeupword...`` always begin a word. For other tokens it depends on the
    tokeniser. A token begins a word if it starts with a blank (GPT-2), does not start with ## (BERT), or
    starts with U+2581 (SentencePiece). Raises SettingsError if the tokens do not show where words begin.
    """
    begins = _find_word_rule(vocabulary)
    return bytes(
        token < SPECIAL_IDS or word.startswith(_FILLER) or begins(word)
        for token, word in enumerate(vocabulary.words)
    )


def _find_word_rule(vocabulary: Vocabulary) -> Callable[[str], bool]:
    """Return a function that decides for a token whether it begins a word."""
    words = vocabulary.words
    if vocabulary.kind == "wordpiece":
        return lambda word: not word.startswith("##")
    for blank in (_BYTE_BLANK, _SENTENCEPIECE_BLANK):
        if any(word.startswith(blank) for word in words):
            return lambda word: word.startswith(blank)
    raise SettingsError(
        f"{vocabulary.name}: its pieces do not tell where words begin; leave whole_word_mask out"
    )
