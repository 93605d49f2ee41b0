"""Sizes of micro-batches computed from the programs' batch sizes, with errors in the programs' words."""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError


def compute_micro_batch_size(update: int, count: int, *, divides: bool = True) -> int:
    """Return the number of examples in a micro-batch.

    UsageError, in the words of NVIDIA's program, if it is not a whole number.
    update: examples in an update. count: micro-batches in an update.
    divides: False for a program that rounds down instead.
    """
    if count < 1:
        raise UsageError(f"Invalid gradient_accumulation_steps parameter: {count}, should be >= 1")
    if divides and update % count:
        raise UsageError(
            f"Invalid gradient_accumulation_steps parameter: {count}, batch size {update} should be divisible"
        )
    return update // count


def compute_core_batch_size(flags: ParsedCommandLine, name: str, count: int) -> int:
    """Return the examples per core if a total batch is divided among ``count`` cores.

    name: flag with the total batch size.
    """
    total: int = flags[name]
    if total < 1 or count < 1 or total % count:
        kind = name.partition("_")[0]
        raise UsageError(f"{kind} batch size {total} must be divisible by number of replicas {count}")
    return total // count
