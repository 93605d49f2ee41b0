"""Shorter flags for a task's files, which the commands finetune and evaluate accept."""

from collections.abc import Sequence

_KEY_OF = {
    "data-dir": "task-dir",
    "train-file": "task-train-file",
    "eval-file": "task-eval-file",
    "predict-file": "task-predict-file",
}
_NAME_OF = {key.replace("-", "_"): name.replace("-", "_") for name, key in _KEY_OF.items()}


def expand_task_flags(arguments: Sequence[str]) -> list[str]:
    """Replace the shorter flags on a command line by the flags of the keys. Return the changed words.

    ``--data-dir mrpc`` becomes ``--task-dir mrpc``.
    """
    found = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("--"):
            plain = name[2:].replace("_", "-")
            name = f"--{_KEY_OF.get(plain, plain)}"
        found.append(f"{name}{equals}{value}")
    return found


def find_name_in_command(key: str, command: str) -> str:
    """Return the name of a key in the help of a command. It may be shorter for finetune and evaluate."""
    return _NAME_OF.get(key, key) if command in ("finetune", "evaluate") else key
