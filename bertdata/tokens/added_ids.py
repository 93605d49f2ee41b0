"""Computes the ids of the added tokens (such as special tokens) in a tokenizer.json.

They must be computed, because Hugging Face's library ``tokenizers`` ignores the ids of added tokens in the
file and numbers these tokens by itself.
"""

from collections.abc import Iterable, Mapping


def number_added_tokens(contents: Iterable[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Return the id of each added token in ``contents``, for a model with this vocabulary.

    A token that is also in the model's vocabulary keeps its id from there. All other tokens get consecutive
    ids, and the first of these ids is the number of tokens in the vocabulary. Gaps between the vocabulary's
    ids are not filled, so a new id may even be the id of another token.

    Here the vocabulary has three tokens, so the two tokens that are not in it get the ids 3 and 4:

    >>> number_added_tokens(["<s>", "<mask>", "<x>"], {"a": 0, "b": 1, "<s>": 9})
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
