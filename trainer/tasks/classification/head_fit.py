"""Functions that fit a checkpoint's classification head to a task.

They find the order of the head's labels, and the meaning of the head's output.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.errors import DataError
from trainer.tasks.classification.head_labels import (
    MULTI_LABEL,
    REGRESSION,
    HeadLabels,
    list_labels,
    make_default_label_names,
)
from trainer.tasks.classification.presets import ClassificationTask

NONE, SIGMOID, SOFTMAX = "none", "sigmoid", "softmax"
"""Names of the functions that turn a head's output into a score or into probabilities."""


def find_head_order(names: Sequence[str], task: ClassificationTask) -> tuple[str, ...] | None:
    """Return the task's labels in the order of the head's rows, or None if the head has other labels.

    Upper and lower case count as equal, as in transformers' run_glue.py, unless two labels differ only in
    case. The label names in Hugging Face's datasets match GLUE's labels too. For example, negative and
    positive match 0 and 1 of SST-2.
    names: label names of the head's rows.
    """
    labels = task.labels or ()
    others = [task.other_names.get(label, label) for label in labels]
    # Make four attempts: with the task's labels, then with Hugging Face's names for them, each first
    # unchanged, then in lower case. An attempt succeeds if each of the head's names is one of these labels,
    # and no two are the same.
    for spelling in (labels, others):
        for changed in (str, str.lower):
            by_name = {changed(name): label for name, label in zip(spelling, labels, strict=True)}
            found = [by_name.get(changed(name)) for name in names]
            if len(by_name) == len(labels) and set(found) == set(labels):
                return tuple(label for label in found if label is not None)
    return None


def adopt_head_labels(
    task: ClassificationTask, head: HeadLabels, *, trains: bool, resumes: bool = False
) -> tuple[ClassificationTask, list[str]]:
    """Return the task with its labels in the order of the head's rows, and lines for the log.

    If the head's labels have other names, they are matched by their order, as in
    transformers, with a warning.
    trains: whether the head will be trained. If True, the DataError can recommend a new head.
    resumes: whether the run is resumed, so that its labels cannot change.
    Raises DataError for a head with a different number of rows.
    """
    wanted = "a score" if task.regression else f"{len(task.labels or ())} labels"
    # 1. The numbers of rows and labels must be equal, and a head that gives a score cannot learn labels.
    fits = head.rows == 1 if task.regression else head.rows == len(task.labels or ())
    if not fits or (head.is_score and not task.regression):
        names = f" ({list_labels(task.labels)})" if task.labels else ""
        raise DataError(
            f"{head.path}: has a head {head.description}, the task {task.name} is about {wanted}{names}"
            f"{_advise_on_head_size(task, head, trains=trains, resumes=resumes)}"
        )
    lines = []
    if head.problem == MULTI_LABEL:
        lines.append(
            f"warning: {head.path}: problem_type is {MULTI_LABEL}: its head is taken for one label a text"
        )
    if task.regression or head.names is None:
        return task, lines
    # 2. Match the names of the head's labels with the task's labels.
    ordered = find_head_order(head.names, task)
    if ordered is None:
        hint = "; --new-head draws another" if trains and not resumes else ""
        lines.append(
            f"warning: {head.path}: has a head {head.description}; its rows are taken in their order for the "
            f"labels {list_labels(task.labels or ())}{hint}"
        )
        return task, lines
    if ordered != task.labels:
        lines.append(f"labels are in the order of the head of {head.path}: {list_labels(ordered)}")
    return task.with_labels(ordered), lines


def _advise_on_head_size(task: ClassificationTask, head: HeadLabels, *, trains: bool, resumes: bool) -> str:
    """Return what the user can do about a head whose number of rows is not the number of labels.

    The text is the end of an error message.
    trains: whether the head will be trained.
    resumes: whether the run is resumed.
    """
    if resumes:
        return "; a run keeps its labels: begin another one, in another --output-dir"
    if not trains:
        return "; expected a head of the same labels"
    keeps = ""
    if head.names and not task.is_known and set(task.labels or ()) < set(head.names):
        keeps = f", or --labels {','.join(head.names)} keeps its head"
    return f"; --new-head draws a head for the task{keeps}"


class HeadReading(NamedTuple):
    """Rules for reading a head's output.

    It has the label of each row, and the name of the function that turns the output into probabilities.
    """

    names: tuple[str, ...]
    function: str


def find_head_reading(task: ClassificationTask, head: HeadLabels, *, given: bool) -> HeadReading:
    """Return how to read the output of a checkpoint's head.

    Where the task does not determine it, transformers' pipeline is followed. The head's labels replace the
    labels of a GLUE task, because the head may have them in a different order.
    given: whether the user has set the task's labels.
    Raises DataError for a head with a different number of rows.
    """
    if task.regression:
        adopt_head_labels(task, head, trains=False)
        return HeadReading(make_default_label_names(head.rows), NONE)
    if task.labels is not None:
        task, _ = adopt_head_labels(task, head, trains=False)
    names = task.labels if given or head.names is None else head.names
    if head.problem == REGRESSION:
        raise DataError(f"{head.path}: has a head of {head.rows} scores, which no task here has")
    is_sigmoid = head.problem == MULTI_LABEL or head.rows == 1
    return HeadReading(names or make_default_label_names(head.rows), SIGMOID if is_sigmoid else SOFTMAX)
