"""Finds the words of Chinese text with the package jieba, for whole-word masks.

WordPiece makes a token of each ideograph. As in BERT-wwm (Cui et al. 2019) and transformers'
``run_chinese_ref.py``, an ideograph that continues a word is masked together with it, like a ``##`` piece.
Words that contain any other character are left as WordPiece splits them.
"""

import logging
from typing import Any

from bertdata.errors import MissingExtraError, install_extra
from bertdata.unicode.characters import is_ideograph

VERSION = "0.42.1"
"""The required release of jieba. Other releases have other dictionaries and find other words."""


class ChineseWords:
    """jieba with its dictionary, which takes about a second to load. Threads may share an instance.

    MissingExtraError if jieba is not installed, or if another release is installed.
    """

    def __init__(self) -> None:
        self._jieba = _load_jieba()

    def word_starts(self, text: str) -> bytes:
        """Return a byte for each character: 0 for an ideograph that continues a word, else 1.

        A token starts a word if the tokeniser says so and the byte of its first character is 1.

        >>> list(ChineseWords().word_starts("我们在北京 abc"))
        [1, 0, 1, 1, 0, 1, 1, 1, 1]
        """
        starts = bytearray()
        # jieba also joins letters and digits to words. WordPiece splits such text by other rules, so every
        # character of it counts as the start of a word here.
        for word in self._jieba.cut(text):
            is_one = all(map(is_ideograph, word))
            starts += b"\1" + bytes(len(word) - 1) if is_one else b"\1" * len(word)
        return bytes(starts)


def _load_jieba() -> Any:
    """Import jieba and load its dictionary."""
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
    # This is words.initialize() without its cache in the shared directory of temporary files. Any user could
    # have written that cache.
    words.FREQ, words.total = words.gen_pfdict(words.get_dict_file())
    words.initialized = True
    return words
