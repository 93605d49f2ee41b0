"""Text that no example holds: counted with the shards, and told with its share of the inputs.

A pair of segments holds at most max_seq_length ids, and BERT's program cuts off what is beyond. Where a line
is longer than an example, that may be most of the text, pass after pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertdata.dataset.manifest import ShardEntry
from bertdata.records import MadeExamples

_MOST_LOST = 1 / 3
"""Share above which a warning is due. Of an encyclopedia's sentences, made to examples in one pass, BERT's
program loses 31 % with 64 ids and 10 % with 128, ELECTRA's 14 % with 128; with more passes, hardly any."""


def count_lost(examples: MadeExamples) -> int | None:
    """Return how many ids of the text no example holds. None for a user's objective that does not count."""
    lost: int | None = getattr(examples, "lost", None)
    return lost


def with_lost(shards: Sequence[ShardEntry], lost: int | None) -> tuple[ShardEntry, ...]:
    """Return the entries of the shards of one text with its lost tokens, all of them in the first entry."""
    if lost is None:
        return tuple(shards)
    first, *others = shards
    return replace(first, lost_tokens=lost), *(replace(shard, lost_tokens=0) for shard in others)


def lost_warnings(directory: str, manifest: Mapping[str, Any]) -> list[str]:
    """Return a warning where a large share of a dataset's text is in no example. manifest: as JSON."""
    lost, tokens = manifest["totals"].get("lost_tokens"), sum(entry["tokens"] for entry in manifest["inputs"])
    remedy = "raise --max-seq-length, or choose the objective mlm, which cuts nothing off"
    settings = manifest["settings"]
    if isinstance(
        settings["objective"], dict
    ):  # a manifest of format version 2 has all settings side by side
        settings = settings["objective"]
    return warn_of_lost(directory, lost, tokens, settings["max_seq_length"], remedy)


def warn_of_lost(name: str, lost: int | None, tokens: int, max_seq_length: int, remedy: str) -> list[str]:
    """Return a warning where a large share of the text is in no example.

    name: of the text or the dataset. remedy: what to do where the text's lines are sentences already.
    """
    if not lost or lost <= _MOST_LOST * tokens:
        return []
    return [
        f"{name}: {lost / tokens:.1%} of the text ({lost} of {tokens} tokens) is in no example: what a line "
        f"has beyond max_seq_length {max_seq_length} is cut off; make sentences of the lines (bertdata "
        f"segment), {remedy}"
    ]
