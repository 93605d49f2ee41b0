"""The labels of a classifier as transformers' config.json tells them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PROBLEMS = ("regression", "single_label_classification", "multi_label_classification")
"""transformers' kinds of problems."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelLabels:
    """Labels of a classifier's outputs.

    names: by the number of the output; empty where the file names none. count: outputs, where the file tells
    them. problem_type: one of PROBLEMS, or None where transformers finds it from the labels.
    """

    names: tuple[str, ...] = ()
    count: int | None = None
    problem_type: str | None = None

    @property
    def are_generic(self) -> bool:
        """True where the names are those that transformers gives outputs without any: LABEL_0 and so on."""
        return self.names == tuple(f"LABEL_{number}" for number in range(len(self.names)))


NO_LABELS = ModelLabels()
"""The labels of a file that tells none."""


def read_labels(values: Mapping[str, Any]) -> tuple[ModelLabels, list[str]]:
    """Return the labels in the keys of a config.json, and warnings about keys that contradict each other.

    As in transformers ``id2label`` goes before ``num_labels`` (older: ``_num_labels``) and ``label2id``.
    """
    warnings = list[str]()
    names = _names(values.get("id2label"), warnings)
    count = values.get("num_labels", values.get("_num_labels"))
    if not isinstance(count, int) or isinstance(count, bool):
        count = None
    if names and count not in (None, len(names)):
        warnings.append(f"num_labels is {count}, but id2label names {len(names)}: the names are taken")
    if names and isinstance(values.get("label2id"), Mapping):
        theirs = {str(name): number for name, number in values["label2id"].items()}
        if any(theirs.get(name, number) != number for number, name in enumerate(names)):
            warnings.append("label2id has other numbers than id2label: those of id2label are taken")
    problem = values.get("problem_type")
    if problem not in (None, *PROBLEMS):
        warnings.append(f"problem_type is {problem!r:.80}, expected one of {', '.join(PROBLEMS)}: not read")
        problem = None
    return ModelLabels(names=names, count=len(names) or count, problem_type=problem), warnings


def _names(id2label: Any, warnings: list[str]) -> tuple[str, ...]:
    """The names by number, or none with a warning where the numbers are not 0, 1 and so on."""
    if not id2label:
        return ()
    try:
        numbered = {int(number): str(name) for number, name in id2label.items()}
    except (AttributeError, TypeError, ValueError):
        numbered = {}
    if sorted(numbered) != list(range(len(id2label))):
        warnings.append("id2label is not read: expected a name for each of the numbers 0, 1 and so on")
        return ()
    return tuple(numbered[number] for number in range(len(numbered)))
