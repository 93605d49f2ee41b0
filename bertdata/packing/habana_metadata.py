"""The metadata file that Habana's packer writes next to the packed directory and its trainer reads."""

import json
from typing import Any

from bertdata.packing.pack_plan import Lengths, PackPlan
from bertdata.packing.patterns import MAX_PATTERN_LENGTHS, list_full_patterns, read_pattern_lengths

TOP = 8


def make_metadata_path(directory: str) -> str:
    """Return the path of the metadata file for this directory."""
    return f"{directory.rstrip('/')}_metadata.json"


def dump_metadata(plan: PackPlan) -> bytes:
    """Return the metadata file's bytes."""
    return (json.dumps(compute_metadata(plan), indent=1) + "\n").encode()


def compute_metadata(plan: PackPlan) -> dict[str, Any]:
    """Return the statistics of a packed dataset under the names of Habana's file."""
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
    """Return the eight most used patterns as indices into Habana's list of full patterns, in lexical order.

    In a row that is not full, the padding counts as another example, so that every row follows a full
    pattern. Among equally used patterns the higher index comes first. The list is empty if any row holds more
    examples than Habana's patterns do.
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
    """Return the row's lengths with its padding counted as a length too, so that they fill the row.

    The padding becomes one more length. If a row cannot have more lengths, the padding is added to its last
    length.
    """
    padding = max_seq_length - sum(lengths)
    if not padding:
        return lengths
    if len(lengths) < MAX_PATTERN_LENGTHS:
        return tuple(sorted((*lengths, padding)))
    return (*lengths[:-1], lengths[-1] + padding)
