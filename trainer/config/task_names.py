"""Names that the commands of tasks have for keys of the configuration."""

from collections.abc import Sequence

_NAMES = {
    "data-dir": "task-dir",
    "train-file": "task-train-file",
    "eval-file": "task-eval-file",
    "predict-file": "task-predict-file",
}


def task_flags(arguments: Sequence[str]) -> list[str]:
    """The arguments under the names of the configuration's keys."""
    found = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("--"):
            plain = name[2:].replace("_", "-")
            name = f"--{_NAMES.get(plain, plain)}"
        found.append(f"{name}{equals}{value}")
    return found
