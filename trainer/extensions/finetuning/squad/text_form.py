"""Features as text for audits: one JSON object a line, keys sorted, no blanks, ASCII."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from bertdata.records import Vocabulary
from trainer.extensions.finetuning.squad.features import Feature


def feature_lines(features: Iterable[Feature], vocabulary: Vocabulary, length: int) -> Iterator[str]:
    """A line for each feature, padded to ``length`` ids, its line end included."""
    for feature in features:
        value = feature_values(feature, vocabulary, length)
        yield json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"


def feature_values(feature: Feature, vocabulary: Vocabulary, length: int) -> dict[str, Any]:
    """The feature's fields under the names of run_squad.py.

    token_to_orig_map, token_is_max_context: pairs of a position and its word, or 0 or 1.
    """
    ids, padding = feature.ids(vocabulary), [0] * (length - feature.length)
    span, document = feature.span, feature.document
    words = feature.context.words[span.first : span.first + span.length].tolist()
    second = feature.length - document
    return {
        "unique_id": feature.unique_id,
        "example_index": feature.example,
        "doc_span_index": feature.number,
        "tokens": [vocabulary.words[token] for token in ids],
        "token_to_orig_map": [[document + place, word] for place, word in enumerate(words)],
        "token_is_max_context": [
            [document + place, int(best)] for place, best in enumerate(span.is_max_context.tolist())
        ],
        "input_ids": ids + padding,
        "input_mask": [1] * len(ids) + padding,
        "segment_ids": [0] * document + [1] * second + padding,
        "start_position": feature.start,
        "end_position": feature.end,
        "is_impossible": feature.is_impossible,
    }
