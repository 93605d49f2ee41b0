"""The labels that the rows of a classification head stand for."""

from collections.abc import Sequence
from dataclasses import dataclass

REGRESSION, MULTI_LABEL = "regression", "multi_label_classification"
SINGLE_LABEL = "single_label_classification"
PROBLEMS = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)
"""Values that problem_type can have in transformers' config.json."""

_MOST_SHOWN = 20
"""Largest number of labels that are listed in a message. Of further labels only the number is shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadLabels:
    """The labels of a checkpoint's classification head.

    path: path of the checkpoint, for messages.
    rows: number of the head's outputs.
    names: label of each row. None if unknown, or if the names are only LABEL_0, LABEL_1 and so on.
    problem: transformers' problem_type. None if the checkpoint does not have it.
    """

    path: str
    rows: int
    names: tuple[str, ...] | None = None
    problem: str | None = None

    @property
    def is_score(self) -> bool:
        """True if the head has a single output, which is a score."""
        return self.problem == REGRESSION and self.rows == 1

    @property
    def description(self) -> str:
        """Text about the labels, such as ``for 2 labels (good, bad)`` or ``for a score``."""
        if self.is_score:
            return "for a score"
        what = "for 1 label or a score" if self.rows == 1 else f"for {self.rows} labels"
        return f"{what} ({list_labels(self.names)})" if self.names else what


def make_default_label_names(rows: int) -> tuple[str, ...]:
    """Return the names that transformers gives to labels without names: LABEL_0, LABEL_1 and so on."""
    return tuple(f"LABEL_{row}" for row in range(rows))


def list_labels(labels: Sequence[str]) -> str:
    """Return the labels as text. If there are more than 20, the others are only counted."""
    return join_first([quote_label(label) for label in labels])


def join_first(texts: Sequence[str]) -> str:
    """Return the texts with commas between them. If there are more than 20, the others are only counted."""
    more = [f"{len(texts) - _MOST_SHOWN} more"] if len(texts) > _MOST_SHOWN else []
    return ", ".join([*texts[:_MOST_SHOWN], *more])


def quote_label(label: str) -> str:
    """Return the label.

    It is quoted if it could be misread, because it is empty, or has commas or blanks at its ends.
    """
    return label if label == label.strip() and label and "," not in label else repr(label)
