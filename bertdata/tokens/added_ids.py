"""Ids of added tokens. The tokenizers library computes these ids itself and ignores the ids in the file."""

from collections.abc import Iterable, Mapping


def number_added_tokens(contents: Iterable[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Return the id of each added token of a model with this vocabulary.

    A token that the model has keeps its id. Other tokens are numbered from the number of tokens in the model
    on.
    Free ids of the model are not used, so the new number can even be the id of another token.

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
