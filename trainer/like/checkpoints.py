"""Checkpoints of earlier runs, which some programs continue without being asked."""

from bertdata.io import storage


def last_checkpoint(output_dir: str) -> int:
    """The number of the last checkpoint in a run's directory, over both phases; 0 where there is none."""
    if not storage.is_directory(storage.join(output_dir, "checkpoints")):
        return 0
    from trainer.run.checkpoint import find_checkpoints  # imports torch

    return max(find_checkpoints(output_dir), default=0)
