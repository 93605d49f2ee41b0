"""fairseq's dictionary as a vocabulary shows it: its fixed ids, and the ids that begin a word."""

from collections.abc import Callable

from bertdata.errors import SettingsError
from bertdata.examples.fairseq.masks import SPECIAL_IDS
from bertdata.records import Vocabulary

_FIXED = {"cls": 0, "pad": 1, "sep": 2, "unk": 3}
_FILLER = "madeupword"
_BYTE_BLANK, _SENTENCEPIECE_BLANK = "\u0120", "\u2581"


def check_dictionary(vocabulary: Vocabulary, masking: str) -> None:
    """SettingsError unless the special tokens have the ids that fairseq's dictionary gives them."""
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


def word_begins(vocabulary: Vocabulary) -> bytes:
    """By id, 1 where a word begins: at the four special ids, at ``madeupword...``, where the tokeniser says.

    GPT-2: where the piece begins with a blank. BERT: where it does not begin with ##. SentencePiece: where it
    begins with U+2581. SettingsError for a tokeniser that tells no words.
    """
    begins = _rule_of(vocabulary)
    return bytes(
        token < SPECIAL_IDS or word.startswith(_FILLER) or begins(word)
        for token, word in enumerate(vocabulary.words)
    )


def _rule_of(vocabulary: Vocabulary) -> Callable[[str], bool]:
    words = vocabulary.words
    if vocabulary.kind == "wordpiece":
        return lambda word: not word.startswith("##")
    for blank in (_BYTE_BLANK, _SENTENCEPIECE_BLANK):
        if any(word.startswith(blank) for word in words):
            return lambda word: word.startswith(blank)
    raise SettingsError(
        f"{vocabulary.name}: its pieces do not tell where words begin; leave whole_word_mask out"
    )
