"""The files of a classification task, with their usual names and functions that check,
convert and score them.
"""

from argparse import Namespace
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.io.terminal import say_error
from bertdata.records import Vocabulary
from trainer.config.sections.finetuning import FinetuningSection
from trainer.tasks.classification.features import fill_in_settings, make_pair_examples
from trainer.tasks.classification.head_fit import adopt_head_labels
from trainer.tasks.classification.metrics import (
    GuessBaseline,
    describe_dataset_labels,
    describe_labels,
    read_predictions,
    score_labels,
)
from trainer.tasks.classification.presets import (
    TASKS,
    ClassificationSettings,
    ClassificationTask,
    TableColumns,
)
from trainer.tasks.classification.reading import (
    convert_labels,
    find_labels,
    read_pairs,
)
from trainer.tasks.data_file import DataFile, read_file
from trainer.tasks.names import FileNames, find_task_name
from trainer.tasks.task_data import CheckedFiles, FineTuningData, Scores, SettingsAndMaker


class TableData(FineTuningData):
    """Tables of texts, or pairs of texts, with labels or scores.

    The labels are checked while a table is read.
    """

    settings = ClassificationSettings
    counts_training_labels = True
    refused = (
        *("doc_stride", "doc_overlap", "max_query_length", "first_answer", "shuffled"),
        "version_2_with_negative",
        *("na_prob_file", "na_prob_thresh"),
    )

    def list_usual_names(self, given: FinetuningSection) -> list[FileNames]:
        task = TASKS[given.task]
        return [task.files, *task.other_files]

    def check_files(self, given: FinetuningSection, files: CheckedFiles) -> dict[str, Any]:
        """Find the labels, and return them as configuration keys.

        If the checkpoint's head has learned the same labels, they get the order of the head's rows.
        """
        # 1. Find the labels. The configured labels come first, then the task's, then (only to evaluate) the
        # head's. If there are none, they are the labels of the training file in sorted order.
        task, head, keys = make_configured_task(given), files.head, dict[str, Any]()
        if task.labels is None and not task.regression:
            if not files.trains and head is not None and head.is_score:
                task, keys = make_regression_task(task), {"regression": True}
            elif not files.trains and head is not None and head.names is not None:
                task = task.with_labels(head.names)
            elif files.train is not None:
                task = find_labels(task, read_pairs(read_file(files.train), task))
            else:
                raise SettingsError(
                    f"task {task.name}: its labels are not known without a training file; give --labels"
                )
        # 2. With --ignore-mismatched-sizes, drop a head that has a different number of rows, unless the run
        # is resumed.
        may_draw = given.ignore_mismatched_sizes and files.trains and not files.resumes
        if head is not None and may_draw and head.rows != (len(task.labels or ()) or 1):
            head, keys["new_head"] = None, True
        # 3. Put the labels into the order of the head's rows. Otherwise training data with labels [bad, good]
        # and a head that was trained on [good, bad] would exchange the two labels without an error.
        if head is not None:
            task, lines = adopt_head_labels(task, head, trains=files.trains, resumes=files.resumes)
            for line in lines:
                files.tell(line)
        return keys | {"labels": None if task.labels is None else list(task.labels)}

    def tell(self, given: FinetuningSection, data: OpenedDataset) -> list[str]:
        """Return lines for the log about a dataset of features: its labels with id, name and count, or the
        range of its scores.
        """
        return [describe_dataset_labels(make_configured_task(given), data)]

    def prepare_configured_features(
        self,
        given: FinetuningSection,
        length: int,
        vocabulary: Vocabulary,
        *,
        training: bool,
        labelled: bool,
    ) -> SettingsAndMaker:
        task = make_configured_task(given)
        if not labelled:
            # Predictions are matched with the rows of their file by number, so no row may be left out.
            task = replace(task, skips_bad=False)
        sizes = ClassificationSettings(lower_case=given.lower_case is not False, max_seq_length=length)
        return fill_in_settings(task, sizes, labelled=labelled), partial(make_pair_examples, task)

    def prepare_requested_features(
        self, given: Namespace, source: DataFile, settings: ClassificationSettings
    ) -> SettingsAndMaker:
        """Return the settings of the features that flags describe, and the function that
        makes these features.

        If --labels is not given, the labels are those in the table, sorted.
        settings: settings that follow from the flags alone.
        """
        task, labelled = _make_task_from_flags(given), not given.no_labels
        if labelled:
            found = read_pairs(source, task)
            task = find_labels(task, found)
            say_error(f"trainer: {source.path}: {describe_labels(task, convert_labels(found.pairs, task))}")
        else:
            task = replace(task, labels=task.labels or ())
        return fill_in_settings(task, settings, labelled=labelled), partial(make_pair_examples, task)

    def score(self, given: Namespace) -> Scores:
        task = _make_task_from_flags(given)
        found = read_pairs(read_file(given.data), task)
        task = find_labels(task, found)
        gold = convert_labels(found.pairs, task)
        predicted = read_predictions(read_file(given.predictions), task, len(gold))
        guess = GuessBaseline.from_labels(task, gold)
        guessed = ", ".join(
            f"{name} {value:.4f}" for name, value in guess.compute_scores(np.asarray(gold)).items()
        )
        metrics = score_labels(task.metrics, predicted, gold)
        what = "the mean score" if task.regression else "the most frequent label"
        return Scores(metrics, found.warnings(), f"always {guess.name}, {what} of the file, scores {guessed}")


def make_configured_task(given: FinetuningSection) -> ClassificationTask:
    """Return the configured task, with the configured columns and labels in place of its own."""
    task = TASKS[given.task]
    columns = TableColumns(
        first=given.text_column or task.columns.first,
        second=given.second_text_column or task.columns.second,
        label=given.label_column or task.columns.label,
    )
    test = None if columns != task.columns else task.test
    task = replace(task, columns=columns, test=test, quoting=given.quoting, skips_bad=given.skip_bad_records)
    if given.heading is not None:
        task = replace(task, heading=given.heading, test=None)
    if given.regression:
        return make_regression_task(task)
    return task if given.labels is None else replace(task, labels=tuple(given.labels), regression=False)


def make_regression_task(task: ClassificationTask) -> ClassificationTask:
    """Return a copy of the task that learns a score instead of a label."""
    return replace(task, labels=None, regression=True, metrics="correlation")


def _make_task_from_flags(given: Namespace) -> ClassificationTask:
    """Return the task that the flags of the commands ``features`` and ``score`` describe."""
    keys = FinetuningSection(
        task=find_task_name(given.task),
        text_column=given.text_column,
        second_text_column=given.second_text_column,
        label_column=given.label_column,
        labels=given.labels and given.labels.split(","),
        regression=given.scores,
        quoting=given.quoting,
        heading=given.heading,
        skip_bad_records=given.skip_bad_records,
    )
    return make_configured_task(keys)
