"""Count the text that no example holds, and warn if it is a large share of the inputs.

A pair of segments holds at most max_seq_length ids, and BERT's program drops all further ids. If lines are
longer than an example, most of the text may be lost in every pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertdata.dataset.manifest import ShardEntry
from bertdata.records import MadeExamples

_MOST_LOST = 1 / 3
"""Share of lost tokens above which a warning is printed.

For comparison, BERT's program loses 31 % of the tokens of an encyclopedia in a single pass with 64 ids per
example, and 10 % with 128 ids. ELECTRA's program loses 14 % with 128 ids. With several passes over the text
hardly anything is lost.
"""


def count_lost(examples: MadeExamples) -> int | None:
    """Return how many ids of the text no example holds.

    Returns None for a user's objective that does not count them.
    """
    lost: int | None = getattr(examples, "lost", None)
    return lost


def add_lost_tokens(shards: Sequence[ShardEntry], lost: int | None) -> tuple[ShardEntry, ...]:
    """Return the shards' manifest entries with the number of tokens that were lost from their common text.

    shards: all shards made from one text.
    lost: tokens of this text that no example holds. The first entry gets the whole number and the others get
        0, so that the sum over all shards is the number of lost tokens.
    """
    if lost is None:
        return tuple(shards)
    first, *others = shards
    return replace(first, lost_tokens=lost), *(replace(shard, lost_tokens=0) for shard in others)


def check_lost_text(directory: str, manifest: Mapping[str, Any]) -> list[str]:
    """Return a warning if a large share of a dataset's text is in no example.

    manifest: its JSON.
    """
    lost, tokens = manifest["totals"].get("lost_tokens"), sum(entry["tokens"] for entry in manifest["inputs"])
    remedy = "raise --max-seq-length, or choose the objective mlm, which cuts nothing off"
    settings = manifest["settings"]
    if isinstance(
        settings["objective"], dict
    ):  # false for version 2 of the manifest, which has a flat object of settings
        settings = settings["objective"]
    return make_lost_warnings(directory, lost, tokens, settings["max_seq_length"], remedy)


def make_lost_warnings(
    name: str, lost: int | None, tokens: int, max_seq_length: int, remedy: str
) -> list[str]:
    """Return a warning if a large share of the text is in no example.

    name: name of the text or dataset.
    remedy: advice for text that already has one sentence per line.
    """
    if not lost or lost <= _MOST_LOST * tokens:
        return []
    return [
        f"{name}: {lost / tokens:.1%} of the text ({lost} of {tokens} tokens) is in no example: what a line "
        f"has beyond max_seq_length {max_seq_length} is cut off; make sentences of the lines (bertdata "
        f"segment), {remedy}"
    ]
