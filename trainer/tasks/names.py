"""Names of fine-tuning tasks and of their files."""

from bertdata.errors import SettingsError
from trainer.plugins import FINE_TUNED

FileNames = tuple[str, str, str]
"""Names of the files for training, evaluation and prediction."""


def find_task_name(name: str) -> str:
    """Return the fine-tuning task with this name. Upper case and punctuation are ignored: STS-B, sts_b, stsb.

    Raises SettingsError for an unknown name.
    """
    plain = {task.replace("-", ""): task for task in FINE_TUNED}
    found = plain.get(name.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise SettingsError(f"task {name!r}: no such task; known are {', '.join(FINE_TUNED)}")
    return found
