"""Split a text into words that can be compared: without case, accents and punctuation.

The C++ kernel in _native/text/folded_words.h does the same. The words are the words of BERT's uncased
tokeniser without punctuation. Control characters are dropped, white space separates words, and each CJK
ideograph is a word. Letters are lower-cased and lose their accents (Unicode 11.0).
"""

from collections.abc import Iterator

from bertdata.unicode import characters


def fold_words(text: str) -> list[str]:
    """Return the words of a text in order, lower-cased and without accents.

    >>> fold_words("Naïve, he said:\\tIT'S 3.5\u4e2d\u6587!")
    ['naive', 'he', 'said', 'it', 's', '3', '5', '\u4e2d', '\u6587']
    """
    spaced = "".join(map(_clean_character, text))
    return [word for token in spaced.split() for word in _split_token(token)]


def _clean_character(character: str) -> str:
    """Return a character in the form in which words are split.

    A control character becomes an empty text. An ideograph gets a space on both sides. Any other character
    stays as it is.
    """
    if character in "\0\ufffd" or characters.is_control(character):
        return ""
    return f" {character} " if characters.is_ideograph(character) else character


def _split_token(token: str) -> Iterator[str]:
    """Yield the words of a token, that is, of text between white space."""
    word = ""
    for character in characters.decompose(characters.lower(token)):
        if characters.is_punctuation(character):
            if word:
                yield word
            word = ""
        elif not characters.is_mark(character):
            word += character
    if word:
        yield word
