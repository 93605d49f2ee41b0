"""Names of tasks and of their files."""

from bertdata.errors import SettingsError
from trainer.plugins import FINE_TUNED

FileNames = tuple[str, str, str]
"""Names of the files for training, evaluation and prediction."""


def find_task_name(name: str) -> str:
    """Return the fine-tuning task with this name, ignoring case and punctuation (STS-B, sts_b, stsb).

    SettingsError for an unknown name.
    """
    plain = {task.replace("-", ""): task for task in FINE_TUNED}
    found = plain.get(name.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise SettingsError(f"task {name!r}: no such task; known are {', '.join(FINE_TUNED)}")
    return found
