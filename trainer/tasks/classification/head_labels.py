"""The labels that the rows of a classification's head stand for."""

from collections.abc import Sequence
from dataclasses import dataclass

REGRESSION, MULTI_LABEL = "regression", "multi_label_classification"
SINGLE_LABEL = "single_label_classification"
PROBLEMS = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)
"""The values of transformers' problem_type."""

MOST_SHOWN = 20
"""Labels that a line shows; of more it says their number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadLabels:
    """The labels of a classification's head.

    path: of the checkpoint, for messages. rows: outputs of the head. names: the label of each row; None: the
    checkpoint says none, or only LABEL_0, LABEL_1 and so on. problem: transformers' problem_type; None where
    the checkpoint does not say it.
    """

    path: str
    rows: int
    names: tuple[str, ...] | None = None
    problem: str | None = None

    @property
    def is_score(self) -> bool:
        """True for a head whose one output is a score."""
        return self.problem == REGRESSION and self.rows == 1

    @property
    def described(self) -> str:
        """The labels in words: ``for 2 labels (good, bad)``, ``for a score``."""
        if self.is_score:
            return "for a score"
        what = "for 1 label or a score" if self.rows == 1 else f"for {self.rows} labels"
        return f"{what} ({listed(self.names)})" if self.names else what


def usual_names(rows: int) -> tuple[str, ...]:
    """Return the names that transformers gives to labels without names."""
    return tuple(f"LABEL_{row}" for row in range(rows))


def listed(labels: Sequence[str]) -> str:
    """Return the labels in words, the first of many."""
    more = [f"{len(labels) - MOST_SHOWN} more"] if len(labels) > MOST_SHOWN else []
    return ", ".join([*map(shown, labels[:MOST_SHOWN]), *more])


def shown(label: str) -> str:
    """Return the label, in quotes where it could be misread: empty, with blanks at its ends or commas."""
    return label if label == label.strip() and label and "," not in label else repr(label)
