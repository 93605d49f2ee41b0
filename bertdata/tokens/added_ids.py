"""The ids that the tokenizers library gives to added tokens: it counts them itself, whatever a file says."""

from collections.abc import Iterable, Mapping


def library_ids(contents: Iterable[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Return the id of each added token of a model with this vocabulary.

    A token of the model keeps its id. Any other has the next number from the vocabulary's size on, which is
    the number of its tokens: ids that the model leaves free are not counted, nor are its own tokens'.

    >>> library_ids(["<s>", "<mask>", "<x>"], {"a": 0, "b": 1, "<s>": 9})
    [9, 3, 4]
    """
    found: list[int] = []
    new: dict[str, int] = {}
    for content in contents:
        if content in vocabulary:
            found.append(vocabulary[content])
        else:
            found.append(new.setdefault(content, len(vocabulary) + len(new)))
    return found
