"""Words of Chinese text by the package jieba, for masks of whole words: a WordPiece there is one ideograph.

As in BERT-wwm (Cui et al. 2019) and transformers' ``run_chinese_ref.py``: an ideograph that continues a word
of ideographs is masked with it, as a ``##`` piece is. Nothing else changes: a word that holds another
character counts as its characters do.
"""

import logging
from typing import Any

from bertdata.errors import MissingExtraError, install_extra
from bertdata.unicode.characters import is_ideograph

VERSION = "0.42.1"
"""The release of jieba: another dictionary makes other words."""


class ChineseWords:
    """jieba's dictionary, loaded in about a second. May be shared between threads.

    MissingExtraError where jieba is not installed, or another release of it.
    """

    def __init__(self) -> None:
        self._jieba = _load_jieba()

    def word_starts(self, text: str) -> bytes:
        """A byte for each character: 0 for an ideograph that continues a word, else 1.

        A token starts a word where its tokeniser says so and the byte of its first character is 1.

        >>> list(ChineseWords().word_starts("我们在北京 abc"))  # doctest: +SKIP
        [1, 0, 1, 1, 0, 1, 1, 1, 1]
        """
        starts = bytearray()
        for word in self._jieba.cut(text):
            is_one = all(map(is_ideograph, word))
            starts += b"\1" + bytes(len(word) - 1) if is_one else b"\1" * len(word)
        return bytes(starts)


def _load_jieba() -> Any:
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
    # As words.initialize() does, but for the dictionary's copy in the shared directory of temporary files,
    # which anybody may have written.
    words.FREQ, words.total = words.gen_pfdict(words.get_dict_file())
    words.initialized = True
    return words
