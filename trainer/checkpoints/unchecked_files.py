"""Messages about data files that a run had not compared with their md5s when it saved a checkpoint."""

from collections.abc import Sequence
from pathlib import Path

from bertdata.dataset.mixture.weights import split_paths
from bertdata.io import storage
from trainer.checkpoints.checkpoint import State

_MOST_NAMED = 5


def describe_files(names: Sequence[str]) -> str:
    """Return the number of data files and the first names, with a verb: "2 data files (a, b) are"."""
    named = ", ".join(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        named += ", ..."
    return f"1 data file ({named}) is" if len(names) == 1 else f"{len(names)} data files ({named}) are"


def list_unchecked_warnings(path: Path, state: State) -> tuple[str, ...]:
    """Return a warning if a checkpoint was saved before all data files were compared, else ().

    The warning names the commands that compare them, for the datasets that are on this machine.

    path: path of the checkpoint, of this trainer.
    state: the checkpoint's state.
    """
    if not state.unchecked_files:
        return ()
    paths = split_paths(str(state.config.get("train_data") or ""))
    there = [one for one in paths if one and not storage.is_remote(one) and storage.exists(one)]
    remedy = f"; bertdata verify-md5 {' '.join(there)} compares them" if there else ""
    return (
        f"{path}: was saved before all data were compared: {describe_files(state.unchecked_files)} "
        f"not compared with the md5s in the manifest{remedy}",
    )
