"""The message after a second Ctrl-C, which says whether a checkpoint is saved to continue from."""

from collections.abc import Iterator
from contextlib import contextmanager

from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.run.path_check import find_run_files

BEGINS_AGAIN = "nothing is saved yet; run the same command with --resume, which begins again"


@contextmanager
def name_saved_checkpoint(output_dir: str) -> Iterator[None]:
    """Give a KeyboardInterrupt in the block a message that says from where the run can continue."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {describe_saved(output_dir)}") from None


def describe_saved(output_dir: str) -> str:
    """Return text that says what an interrupted run has saved, and how to continue.

    output_dir: output directory of the run, on this machine.
    """
    checkpoints = find_checkpoints(output_dir)
    if checkpoints:
        return f"--resume continues from checkpoint {max(checkpoints)}"
    # Without --resume, a directory with a run's files is refused, because it is in use.
    return BEGINS_AGAIN if find_run_files(output_dir) else "nothing is saved yet; run the same command again"
