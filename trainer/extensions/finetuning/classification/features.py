"""Features of texts and pairs: ``[CLS] first [SEP]`` or ``[CLS] first [SEP] second [SEP]``."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bertdata.records import Vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.extensions.finetuning.classification.reading import TextPair

Ids = list[int]


@dataclass(frozen=True, slots=True, eq=False)
class PairFeature:
    """An example's ids without padding; the first ``first_length`` are segment 0. label: number or score."""

    ids: Ids
    first_length: int
    label: int | float


def make_features(
    pairs: Sequence[TextPair],
    labels: Sequence[int | float],
    tokenizer: WordPieceTokenizer,
    max_seq_length: int,
) -> list[PairFeature]:
    """The features of all examples, in order; labels: as of label_ids."""
    firsts = tokenizer.encode_each([pair.first for pair in pairs]).lists()
    seconds = tokenizer.encode_each([pair.second or "" for pair in pairs]).lists()
    vocabulary = tokenizer.vocabulary
    features = []
    for pair, first, second, label in zip(pairs, firsts, seconds, labels, strict=True):
        if pair.second is None:
            ids = [vocabulary.cls, *first[: max_seq_length - 2], vocabulary.sep]
            features.append(PairFeature(ids, len(ids), label))
            continue
        first, second = shorten_pair(first, second, max_seq_length - 3)
        ids = [vocabulary.cls, *first, vocabulary.sep, *second, vocabulary.sep]
        features.append(PairFeature(ids, len(first) + 2, label))
    return features


def shorten_pair(first: Ids, second: Ids, limit: int) -> tuple[Ids, Ids]:
    """Both shortened at their ends to ``limit`` ids together, one id at a time from the longer.

    The second one loses an id where they are equally long.
    """
    first_length, second_length = len(first), len(second)
    while first_length + second_length > limit:
        if first_length > second_length:
            first_length -= 1
        else:
            second_length -= 1
    return first[:first_length], second[:second_length]


def feature_lines(features: Iterable[PairFeature], vocabulary: Vocabulary, length: int) -> Iterator[str]:
    """A JSON object a line for each feature, padded to ``length`` ids: keys sorted, no blanks."""
    for feature in features:
        padding = [0] * (length - len(feature.ids))
        second = len(feature.ids) - feature.first_length
        value = {
            "input_ids": feature.ids + padding,
            "input_mask": [1] * len(feature.ids) + padding,
            "segment_ids": [0] * feature.first_length + [1] * second + padding,
            "label_id": feature.label,
        }
        yield json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"
