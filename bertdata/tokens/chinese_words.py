"""Finds the words of Chinese text with the package jieba, for whole-word masking.

WordPiece makes a token of each ideograph. As in BERT-wwm (Cui et al. 2019) and transformers'
``run_chinese_ref.py``, all ideographs of a word are masked together, like a word and its ``##`` pieces. A
word that contains any other character is left as WordPiece splits it.
"""

import logging
from typing import Any

from bertdata.errors import MissingExtraError, install_extra
from bertdata.unicode.characters import is_ideograph

VERSION = "0.42.1"
"""The required release of jieba. Other releases have other dictionaries and may find other words."""


class ChineseWords:
    """Segmenter for Chinese text: the package jieba with its dictionary.

    Loading the dictionary takes about a second. Several threads may share an instance.
    Raises MissingExtraError if jieba is not installed, or if another release is installed.
    """

    def __init__(self) -> None:
        self._jieba = _load_jieba()

    def find_word_starts(self, text: str) -> bytes:
        """Return one byte for each character of the text: 0 for an ideograph that continues a word, otherwise
        1.

        Characters other than ideographs always get 1. Whether a word starts there is left to the tokeniser.
        In this example, jieba finds the words 我们, 在 and 北京:

        >>> list(ChineseWords().find_word_starts("我们在北京 abc"))
        [1, 0, 1, 1, 0, 1, 1, 1, 1]
        """
        starts = bytearray()
        # jieba also joins letters and digits to words. WordPiece splits them by other rules, so each of these
        # characters counts as the start of a word here.
        for word in self._jieba.cut(text):
            is_one = all(map(is_ideograph, word))
            starts += b"\1" + bytes(len(word) - 1) if is_one else b"\1" * len(word)
        return bytes(starts)


def _load_jieba() -> Any:
    """Import the package jieba, and load its dictionary without a shared cache."""
    try:
        import jieba
    except ImportError as error:
        raise MissingExtraError(
            f"words of Chinese need the package jieba ({error}): {install_extra('chinese')}"
        ) from None
    if jieba.__version__ != VERSION:
        raise MissingExtraError(
            f"jieba {jieba.__version__} is installed, expected {VERSION}: {install_extra('chinese')}"
        )
    jieba.setLogLevel(logging.WARNING)
    words = jieba.Tokenizer()
    # This does the same as words.initialize(), except for the cache. jieba would read a cache in the shared
    # directory of temporary files, which any user could have written.
    words.FREQ, words.total = words.gen_pfdict(words.get_dict_file())
    words.initialized = True
    return words
