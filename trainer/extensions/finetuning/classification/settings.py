"""Settings that decide the features of a classification."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationSettings(ExampleSettings):
    """Everything, besides file and vocabulary, that decides the features of a table.

    labels: in the order of their ids, empty for scores.
    """

    objective: str = setting("classification", "objective of the examples")
    dialect: str = setting("google", "whose habits to follow: google or nvidia", ("google", "nvidia"))
    max_seq_length: int = setting(128, "ids in a feature, special tokens included")
    task: str = setting("classification", "the task, by name")
    first_column: str = setting("text", "the column of the first text")
    second_column: str = setting("", "the column of the second text; empty: there is none")
    label_column: str = setting("label", "the column of the label; empty: labels are not read")
    labels: tuple[str, ...] = setting((), "the labels in the order of their ids; empty for scores")
