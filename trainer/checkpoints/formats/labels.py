"""Keys of transformers' config.json about the meaning of a classification head.

``id2label`` has the label of each row. ``label2id`` is its inverse, which transformers ignores if the first
exists. ``problem_type`` says how the outputs are used.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertdata.errors import SettingsError
from trainer.tasks.classification.head_labels import PROBLEMS, HeadLabels, make_default_label_names


class LabelKeys(NamedTuple):
    """The labels of a classification head, in the order of its rows, and its problem_type in transformers.

    The labels are None if the file names no labels, or only transformers' defaults LABEL_0, LABEL_1 and so
    on.
    """

    names: tuple[str, ...] | None = None
    problem: str | None = None


def read_label_keys(values: Mapping[str, Any], where: str) -> LabelKeys:
    """Return the labels in a parsed config.json.

    SettingsError for values that transformers cannot read either.

    where: the file, for the error.
    """
    problem, table = values.get("problem_type"), values.get("id2label")
    if problem not in (None, *PROBLEMS):
        raise SettingsError(
            f"{where}: problem_type is {problem!r}, expected one of {', '.join(PROBLEMS)}, or null"
        )
    if table is None:
        return LabelKeys(None, problem)
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where}: id2label is {table!r:.60}, expected an object of rows and labels")
    by_row = {str(row): str(name) for row, name in table.items()}
    rows = [str(row) for row in range(len(table))]
    if by_row.keys() != set(rows):
        shown = ", ".join(sorted(by_row)[:5])
        raise SettingsError(
            f"{where}: id2label has the rows {shown}, expected 0 to {len(rows) - 1}, one for each label"
        )
    names = tuple(by_row[row] for row in rows)
    return LabelKeys(None if names == make_default_label_names(len(names)) else names, problem)


def make_label_keys(head: HeadLabels) -> dict[str, Any]:
    """Return the keys for config.json that describe a classification head's labels."""
    names = head.names or make_default_label_names(head.rows)
    keys = {
        "id2label": dict(enumerate(names)),
        "label2id": {name: row for row, name in enumerate(names)},
    }
    return keys if head.problem is None else {**keys, "problem_type": head.problem}
