"""Names of tasks and of their files."""

from bertdata.errors import SettingsError
from trainer.plugins import FINE_TUNED

FileNames = tuple[str, str, str]
"""Names of the files to train, to evaluate and to predict."""


def find_name(name: str) -> str:
    """The task of fine-tuning of that name, in any case, hyphens or underscores or none (STS-B, sts_b, stsb).

    SettingsError for another name.
    """
    plain = {task.replace("-", ""): task for task in FINE_TUNED}
    found = plain.get(name.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise SettingsError(f"task {name!r}: no such task; known are {', '.join(FINE_TUNED)}")
    return found
