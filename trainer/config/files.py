"""Configuration files: the user's JSON files, and configurations that come with the trainer."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bertdata.config.value_check import read_object
from bertdata.errors import MissingInputError
from bertdata.io.home import expand_values


def find_shipped_configs() -> dict[str, str]:
    """Return the names of the configurations that come with the trainer, and the path of each file."""
    return {path.stem: str(path) for path in sorted(Path(__file__).parent.glob("shipped/*.json"))}


def read_config(path: str) -> dict[str, Any]:
    """Read a configuration file and return its keys.

    path: path of a JSON file, or name of a configuration that comes with the trainer. MissingInputError if
    there is neither. Its message suggests the most similar name.
    """
    shipped = find_shipped_configs()
    try:
        return dict(expand_values(read_object(shipped.get(path, path))))
    except MissingInputError as error:
        nearest = get_close_matches(Path(path).stem, shipped, n=1, cutoff=0.5)
        hint = f"; the nearest configuration of the trainer's own is {nearest[0]}" if nearest else ""
        raise MissingInputError(f"{error}{hint}") from None
