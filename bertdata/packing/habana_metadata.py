"""The metadata file that Habana's packer writes next to the packed directory, and that Habana's trainer
reads.
"""

import json
from typing import Any

from bertdata.packing.pack_plan import Lengths, PackPlan
from bertdata.packing.patterns import MAX_PATTERN_LENGTHS, list_full_patterns, read_pattern_lengths

TOP = 8


def make_metadata_path(directory: str) -> str:
    """Return the path of the metadata file that belongs to this packed directory."""
    return f"{directory.rstrip('/')}_metadata.json"


def dump_metadata(plan: PackPlan) -> bytes:
    """Return the contents of the metadata file for a packing plan."""
    return (json.dumps(compute_metadata(plan), indent=1) + "\n").encode()


def compute_metadata(plan: PackPlan) -> dict[str, Any]:
    """Return the statistics of a packing plan, with the names that Habana's metadata file uses."""
    positions, padded = plan.rows * plan.max_seq_length, plan.examples * plan.max_seq_length
    return {
        "number_of_sequences_dropped": 0,
        "number_of_strategies_utilized": len(plan.rows_by_lengths),
        "new_number_of_samples": plan.rows,
        "original_number_of_samples": plan.examples,
        "compression_ratio": 1 - plan.rows / plan.examples,
        "expected_speed_up": plan.examples_per_row,
        "theoretical_speed_up": padded / plan.tokens,
        "avg_seq_per_sample": plan.examples_per_row,
        "padding_tokens_packed_dataset": positions - plan.tokens,
        "padding_tokens_original_dataset": padded - plan.tokens,
        "packing_efficiency": plan.efficiency,
        "top_8_strategies": find_top_strategies(plan),
    }


def find_top_strategies(plan: PackPlan) -> list[int]:
    """Return the eight full patterns with the most rows, as indices into Habana's list of patterns.

    A full pattern is a combination of lengths that fills a row. The list has them in lexical order. If a row
    is not full, its padding counts as another example. Among equally used patterns the higher index comes
    first. The result is empty if any row holds more examples than Habana's patterns have.
    """
    if plan.most_in_a_row > MAX_PATTERN_LENGTHS:
        return []
    listed = sorted(map(read_pattern_lengths, list_full_patterns(plan.max_seq_length, MAX_PATTERN_LENGTHS)))
    numbers = {lengths: number for number, lengths in enumerate(listed)}
    used: dict[int, int] = {}
    for lengths, rows in plan.rows_by_lengths:
        number = numbers[_fill_with_padding(lengths, plan.max_seq_length)]
        used[number] = used.get(number, 0) + rows
    return sorted(used, key=lambda number: (-used[number], -number))[:TOP]


def _fill_with_padding(lengths: Lengths, max_seq_length: int) -> Lengths:
    """Return the lengths of a row with its padding added, so that their sum is the row's length.

    The padding becomes one more length. If the row already has as many lengths as a pattern can have, the
    padding is added to the last length.
    """
    padding = max_seq_length - sum(lengths)
    if not padding:
        return lengths
    if len(lengths) < MAX_PATTERN_LENGTHS:
        return tuple(sorted((*lengths, padding)))
    return (*lengths[:-1], lengths[-1] + padding)
