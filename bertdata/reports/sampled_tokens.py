"""Counts of tokens and words in examples, as they were before masking."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from bertdata.examples.groups import MASKS, get_masks, get_word_starts, has_group
from bertdata.records import ROLES, ExampleBatch, Vocabulary

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

_MOST_CHARACTERS, _MOST_PIECES = 30, 12


class SampledTokens:
    """Counts of tokens by id, and of words by their length in tokens and in characters.

    Special tokens do not count as words. Without a vocabulary, only tokens are counted. If the end of an
    example cuts a word, the part in the example is counted. The last length in each count of words stands for
    all greater lengths too.
    """

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self.ids: Counter[int] = Counter()
        self.words_by_tokens: Counter[int] = Counter()
        self.words_by_characters: Counter[int] = Counter()
        self._vocabulary = vocabulary
        self._tables: tuple[Any, Any, Any] | None = None

    def add(self, batch: ExampleBatch) -> None:
        """Count the examples of a batch whose columns are arrays."""
        import numpy as np

        ids = restore_original_ids(batch)
        counts = np.bincount(ids)
        [found] = np.nonzero(counts)
        self.ids.update(dict(zip(found.tolist(), counts[found].tolist(), strict=True)))
        if self._vocabulary is not None and len(ids):
            self._add_words(batch, ids)

    def _add_words(self, batch: ExampleBatch, ids: "Array") -> None:
        """Count the words of a batch.

        ids: token ids of the batch before masking.
        """
        import numpy as np

        is_special, continues, characters = self._tables = self._tables or _make_token_tables(
            self._vocabulary
        )
        ids = np.minimum(ids, len(is_special) - 1)  # a wrong vocabulary may have fewer ids than the examples
        special = is_special[ids]
        if (starts := get_word_starts(batch)) is not None:
            begins = np.asarray(starts).astype(bool) | special
        elif continues is not None:
            begins = ~continues[ids]
        else:
            return
        # Number the words by counting their first tokens. For example, begins [1, 0, 1, 1, 0] gives words [0,
        # 0, 1, 2, 2].
        begins[0] = True
        words = np.cumsum(begins) - 1
        is_word = ~special[begins]
        pieces = np.bincount(words)[is_word]
        letters = np.bincount(words, weights=characters[ids])[is_word].astype(int)
        for counter, values, most in (
            (self.words_by_tokens, pieces, _MOST_PIECES),
            (self.words_by_characters, letters, _MOST_CHARACTERS),
        ):
            counts = np.bincount(np.minimum(values, most), minlength=most + 1).tolist()
            counter.update({value: count for value, count in enumerate(counts) if count})


def restore_original_ids(batch: ExampleBatch) -> "Array":
    """Return the token ids of a batch as they were before masking."""
    import numpy as np

    from bertdata.examples.columns import compute_lengths

    ids = np.array(batch.ids)
    if has_group(type(batch), MASKS):
        masks = get_masks(batch)
        # The position of a mask is counted from the start of its example, so the start is added to it.
        starts = np.asarray(batch.ends).astype(np.int64) - compute_lengths(batch.ends)
        places = np.repeat(starts, compute_lengths(masks.ends)) + np.asarray(masks.places)
        ids[places] = masks.originals
    return ids


def find_special_ids(vocabulary: Vocabulary) -> set[int]:
    """Return the ids of the special tokens, except the unknown token, which stands for a word."""
    found = (getattr(vocabulary, name) for name in ROLES if name != "unk")
    return {one for one in found if one is not None}


def _make_token_tables(vocabulary: Any) -> tuple[Any, Any, Any]:
    """Return three arrays, which are indexed by token id.

    The first says whether a token is special. The second says whether it continues a word. It is None if the
    vocabulary does not show this. The third has the number of characters of the token.
    """
    import numpy as np

    special = np.zeros(vocabulary.size, bool)
    special[list(find_special_ids(vocabulary))] = True
    continues, sizes = None, list(map(len, vocabulary.words))
    if vocabulary.continues_word is not None:
        continues = np.frombuffer(vocabulary.continues_word, np.uint8).astype(bool)
        marks = (2 if word.startswith("##") else 0 for word in vocabulary.words)
        sizes = [size - mark for size, mark in zip(sizes, marks, strict=True)]
    return special, continues, np.array(sizes)
