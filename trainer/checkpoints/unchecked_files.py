"""Messages about data files that a run used, but did not compare with their md5s before it was stopped."""

from collections.abc import Sequence
from pathlib import Path

from trainer.checkpoints.checkpoint import State

_MOST_NAMED = 5


def describe_files(names: Sequence[str]) -> str:
    """Return the number of data files and the first names, with a verb: "2 data files (a, b) are"."""
    named = ", ".join(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        named += ", ..."
    return f"1 data file ({named}) is" if len(names) == 1 else f"{len(names)} data files ({named}) are"


def list_unchecked_warnings(path: Path, state: State) -> tuple[str, ...]:
    """Return a warning if a checkpoint's run was stopped before all data files were compared, else ().

    path: path of the checkpoint, of this trainer.
    state: the checkpoint's state.
    """
    if not state.unchecked_files:
        return ()
    return (
        f"{path}: its run was stopped before all data were compared: {describe_files(state.unchecked_files)} "
        f"not compared with the md5s in the manifest; bertdata verify-md5 {state.config.get('train_data')} "
        "does it",
    )
