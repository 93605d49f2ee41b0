"""Computes the ids of the added tokens (such as special tokens) in a tokenizer.json.

They must be computed, because Hugging Face's library ``tokenizers`` ignores the ids of added tokens in the
file and numbers these tokens by itself.
"""

from collections.abc import Iterable, Mapping


def number_added_tokens(
    contents: Iterable[str], vocabulary: Mapping[str, int], before: Iterable[int] = ()
) -> list[int]:
    """Return the ids of added tokens that are added together to a model with this vocabulary.

    A token that is also in the model's vocabulary keeps its id from there. All other tokens get consecutive
    ids. The first of these ids is the number of tokens in the vocabulary, or if it is larger, the number
    behind the largest id of a token that was added before. Gaps between the vocabulary's ids are not filled,
    so a new id may even be the id of another token.

    contents: the tokens. All tokens of a tokenizer.json are added together.
    before: ids of tokens that were added before.

    Here the vocabulary has three tokens, so the two tokens that are not in it get the ids 3 and 4:

    >>> number_added_tokens(["<s>", "<mask>", "<x>"], {"a": 0, "b": 1, "<s>": 9})
    [9, 3, 4]

    If ``<s>`` was added before them, they get 10 and 11:

    >>> number_added_tokens(["<mask>", "<x>"], {"a": 0, "b": 1, "<s>": 9}, before=[9])
    [10, 11]
    """
    found: list[int] = []
    new: dict[str, int] = {}
    first = max(len(vocabulary), max(before, default=-1) + 1)
    for content in contents:
        if content in vocabulary:
            found.append(vocabulary[content])
        else:
            found.append(new.setdefault(content, first + len(new)))
    return found
