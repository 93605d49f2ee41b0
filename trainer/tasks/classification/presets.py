"""The known classification tasks by name, with their columns, labels and metrics, and the
settings of features.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings
from trainer.tasks.names import FileNames


@dataclass(frozen=True, kw_only=True, slots=True)
class TableColumns:
    """The columns of a table that a task reads, by name or by number from 0.

    second: column of the second text. None for single texts.
    """

    first: str
    second: str | None = None
    label: str = "label"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationTask:
    """A task that classifies texts or pairs of texts.

    labels: labels in the order of their ids. None means the sorted labels of the training file.
    other_names: for each label its name in Hugging Face's dataset of the task, if that is different.
    regression: whether the task learns a score instead of a label.
    metrics: name of the metrics in ``metrics.METRICS``.
    heading: whether a table begins with the names of its columns. None if this is not known. A heading is
        then assumed, with a warning if the columns are given by numbers only.
    test: columns of files without labels, if they differ from the other files. Such files have a heading.
    quoting: meaning of double quotes. None means that the file's extension decides.
    skips_short: whether rows with too few columns are left out. The task QQP has such rows.
    skips_bad: whether rows that are no examples are left out and counted, instead of refusing the table.
    files: usual names of the training, development and test tables.
    other_files: their names in other published distributions of the task's data.
    is_known: False for a user's own table, whose rows may not be longer than the heading.
    """

    name: str
    columns: TableColumns
    labels: tuple[str, ...] | None = None
    other_names: Mapping[str, str] = field(default_factory=dict)
    regression: bool = False
    metrics: str = "accuracy"
    heading: bool | None = True
    test: TableColumns | None = None
    skips_short: bool = False
    skips_bad: bool = False
    quoting: str | None = None
    files: FileNames = ("train.tsv", "dev.tsv", "test.tsv")
    other_files: tuple[FileNames, ...] = ()
    is_known: bool = True

    def with_labels(self, labels: tuple[str, ...]) -> "ClassificationTask":
        """Return a copy of the task with these labels."""
        return replace(self, labels=labels)


_BINARY = ("0", "1")
_SENTENCES = TableColumns(first="sentence1", second="sentence2")
_ENTAILMENT = ("entailment", "not_entailment")
_MNLI = ClassificationTask(
    name="mnli",
    columns=TableColumns(first="sentence1", second="sentence2", label="gold_label"),
    labels=("contradiction", "entailment", "neutral"),
    files=("train.tsv", "dev_matched.tsv", "test_matched.tsv"),
)

TASKS = {
    task.name: task
    for task in (
        ClassificationTask(
            name="mrpc",
            columns=TableColumns(first="3", second="4", label="0"),
            labels=_BINARY,
            other_names={"0": "not_equivalent", "1": "equivalent"},
            metrics="accuracy_and_f1",
            other_files=(("msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "msr_paraphrase_test.txt"),),
        ),
        ClassificationTask(
            name="cola",
            columns=TableColumns(first="3", label="1"),
            labels=_BINARY,
            other_names={"0": "unacceptable", "1": "acceptable"},
            metrics="matthews",
            heading=False,
            test=TableColumns(first="sentence"),
        ),
        ClassificationTask(
            name="sst-2",
            columns=TableColumns(first="sentence"),
            labels=_BINARY,
            other_names={"0": "negative", "1": "positive"},
        ),
        ClassificationTask(
            name="sts-b",
            columns=TableColumns(first="sentence1", second="sentence2", label="score"),
            regression=True,
            metrics="correlation",
        ),
        ClassificationTask(
            name="qqp",
            columns=TableColumns(first="question1", second="question2", label="is_duplicate"),
            labels=_BINARY,
            other_names={"0": "not_duplicate", "1": "duplicate"},
            metrics="accuracy_and_f1",
            skips_short=True,
        ),
        _MNLI,
        replace(_MNLI, name="mnli-mm", files=("train.tsv", "dev_mismatched.tsv", "test_mismatched.tsv")),
        ClassificationTask(
            name="qnli", columns=TableColumns(first="question", second="sentence"), labels=_ENTAILMENT
        ),
        ClassificationTask(name="rte", columns=_SENTENCES, labels=_ENTAILMENT),
        ClassificationTask(
            name="wnli",
            columns=_SENTENCES,
            labels=_BINARY,
            other_names={"0": "not_entailment", "1": "entailment"},
        ),
        ClassificationTask(
            name="classification", columns=TableColumns(first="text"), heading=None, is_known=False
        ),
    )
}
"""GLUE's tasks by name, and the task ``classification`` for a user's own table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationSettings(ExampleSettings):
    """Everything that determines the features of a table, except the file and the vocabulary.

    labels: labels in the order of their ids. Empty for scores.
    """

    objective: str = setting("classification", "objective of the examples")
    dialect: str = setting("google", "whose habits to follow: google or nvidia", ("google", "nvidia"))
    max_seq_length: int = setting(128, "ids in a feature, special tokens included")
    task: str = setting("classification", "the task, by name")
    first_column: str = setting("text", "the column of the first text")
    second_column: str = setting("", "the column of the second text; empty: there is none")
    label_column: str = setting("label", "the column of the label; empty: labels are not read")
    labels: tuple[str, ...] = setting((), "the labels in the order of their ids; empty for scores")
    quoting: str = setting("", "csv or none, how double quotes are read; empty: as the file's kind has it")
    heading: str = setting("", "yes or no, the table has a heading; empty: as the task has it")
    skip_bad_records: bool = setting(False, "rows that are no examples are left out")

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name.

        The settings ``quoting``, ``heading`` and ``skip_bad_records`` are left out if the user has not set
        them.
        """
        found = ExampleSettings.as_json(self)
        for name in ("quoting", "heading", "skip_bad_records"):
            if not found[name]:
                del found[name]
        return found
