"""Count of the text that is in no example, and a warning if it is a large share of the inputs.

A pair of segments holds at most max_seq_length ids. BERT's program drops the ids that do not fit. If lines
are longer than an example, most of the text may be lost in every pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertdata.dataset.manifest import ShardEntry
from bertdata.records import MadeExamples

_MOST_LOST = 1 / 3
"""Share of lost tokens above which there is a warning. It is well above the losses of the original programs.

In a single pass over an encyclopedia, BERT's program loses 31 % of the tokens with 64 ids per example, and 10
% with 128 ids. ELECTRA's program loses 14 % with 128 ids. In several passes hardly anything is lost.
"""


def count_lost(examples: MadeExamples) -> int | None:
    """Return how many token ids of the text are in no example.

    Returns None for a user's own objective that does not count them.
    """
    lost: int | None = getattr(examples, "lost", None)
    return lost


def add_lost_tokens(shards: Sequence[ShardEntry], lost: int | None) -> tuple[ShardEntry, ...]:
    """Return the manifest entries of shards with the number of tokens that are in none of their examples.

    shards: entries of all shards that were made from one text.
    lost: number of tokens of this text that are in no example. The first entry gets this number and the other
        entries get 0, so that the sum is right.
    """
    if lost is None:
        return tuple(shards)
    first, *others = shards
    return replace(first, lost_tokens=lost), *(replace(shard, lost_tokens=0) for shard in others)


def check_lost_text(directory: str, manifest: Mapping[str, Any]) -> list[str]:
    """Return a warning if a large share of a dataset's text is in no example.

    manifest: JSON of the dataset's manifest.
    """
    lost, tokens = manifest["totals"].get("lost_tokens"), sum(entry["tokens"] for entry in manifest["inputs"])
    remedy = "raise --max-seq-length, or choose the objective mlm, which cuts nothing off"
    settings = manifest["settings"]
    if isinstance(
        settings["objective"], dict
    ):  # false for a manifest of version 2, whose settings are not divided into records
        settings = settings["objective"]
    return make_lost_warnings(directory, lost, tokens, settings["max_seq_length"], remedy)


def make_lost_warnings(
    name: str, lost: int | None, tokens: int, max_seq_length: int, remedy: str
) -> list[str]:
    """Return a warning if a large share of the text is in no example. Otherwise return an empty list.

    name: name of the text or dataset.
    lost: number of tokens that are in no example. None if they were not counted.
    tokens: number of tokens of the text.
    remedy: advice for text that already has one sentence per line.
    """
    if not lost or lost <= _MOST_LOST * tokens:
        return []
    return [
        f"{name}: {lost / tokens:.1%} of the text ({lost} of {tokens} tokens) is in no example: what a line "
        f"has beyond max_seq_length {max_seq_length} is cut off; make sentences of the lines (bertdata "
        f"segment), {remedy}"
    ]
