"""Micro-batch sizes computed from the batch sizes that other programs' command lines give, with errors worded
like the errors of these programs.
"""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError


def compute_micro_batch_size(update: int, count: int, *, divides: bool = True) -> int:
    """Return the number of examples in a micro-batch.

    update: number of examples in an update.
    count: number of micro-batches in an update.
    divides: True for a program that refuses a size that is not a whole number, False for one that rounds
    down.
    Raises UsageError, worded as in NVIDIA's program, if ``divides`` is set and the size is not a whole
    number.
    """
    if count < 1:
        raise UsageError(f"Invalid gradient_accumulation_steps parameter: {count}, should be >= 1")
    if divides and update % count:
        raise UsageError(
            f"Invalid gradient_accumulation_steps parameter: {count}, batch size {update} should be divisible"
        )
    return update // count


def compute_core_batch_size(flags: ParsedCommandLine, name: str, count: int) -> int:
    """Return the number of examples per core, if a total batch is divided among ``count`` cores.

    name: flag that has the size of the total batch.
    """
    total: int = flags[name]
    if total < 1 or count < 1 or total % count:
        kind = name.partition("_")[0]
        raise UsageError(f"{kind} batch size {total} must be divisible by number of replicas {count}")
    return total // count
