"""The files of the task SQuAD, with their usual names and functions that check, convert and score them."""

import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from bertdata.errors import InputError, UsageError
from bertdata.records import Vocabulary
from trainer.config.sections.finetuning import FinetuningSection
from trainer.tasks.data_file import DataFile, parse_json, read_file
from trainer.tasks.names import FileNames
from trainer.tasks.squad.features import (
    USUAL_QUERY_LENGTH,
    SquadSettings,
    choose_query_length,
    compute_longest_query,
    make_squad_examples,
)
from trainer.tasks.squad.metrics import (
    score_answers,
    score_answers_or_none,
    score_no_answers,
)
from trainer.tasks.squad.reading import Question, read_squad
from trainer.tasks.task_data import TABLE_FLAGS, CheckedFiles, FineTuningData, Scores, SettingsAndMaker


class SquadData(FineTuningData):
    """Files in SQuAD's JSON format, version 1.1 or 2.0."""

    settings = SquadSettings
    feature_flags = (
        "training",
        "version_2_with_negative",
        "doc_stride",
        "doc_overlap",
        "max_query_length",
        "first_answer",
    )
    refused = (*TABLE_FLAGS, "no_labels")

    def choose_feature_defaults(
        self, given: Mapping[str, Any], vocabulary: Vocabulary
    ) -> tuple[dict[str, Any], list[str]]:
        """Return max_query_length if it is not given and its usual value does not fit in max_seq_length."""
        length = given["max_seq_length"]
        if length is None or given["max_query_length"] is not None:
            return {}, []
        fitting = choose_query_length(length, vocabulary.pair_separators)
        # Where not even one token fits, the check of max_seq_length says so.
        has_room = compute_longest_query(length, vocabulary.pair_separators) >= 1
        if fitting == USUAL_QUERY_LENGTH or not has_room:
            return {}, []
        line = (
            f"max_query_length is {fitting} instead of {USUAL_QUERY_LENGTH}, the most that max_seq_length "
            f"{length} has room for"
        )
        return {"max_query_length": fitting}, [line]

    def list_usual_names(self, given: FinetuningSection) -> list[FileNames]:
        version = "v2.0" if given.version_2_with_negative else "v1.1"
        return [(f"train-{version}.json", f"dev-{version}.json", f"dev-{version}.json")]

    def check_files(self, given: FinetuningSection, files: CheckedFiles) -> dict[str, Any]:
        """Raise InputError if a question in the evaluation file has no answer.

        In version 2.0 questions may have no answer, so nothing is raised.
        """
        evaluation = files.evaluation
        if evaluation is None or given.version_2_with_negative:
            return {}
        if without := [one.id for one in read_squad(read_file(evaluation)).questions if not one.golds]:
            raise InputError(
                f"{evaluation}: question {without[0]}: has no answers, expected 1 or more to evaluate on; "
                "--version-2-with-negative scores questions without any, --no-do-eval leaves evaluation out"
            )
        return {}

    def prepare_configured_features(
        self,
        given: FinetuningSection,
        length: int,
        vocabulary: Vocabulary,
        *,
        training: bool,
        labelled: bool,
    ) -> SettingsAndMaker:
        return make_squad_settings(given, length, vocabulary, training=training), make_squad_examples

    def prepare_requested_features(
        self, given: Namespace, source: DataFile, settings: SquadSettings
    ) -> SettingsAndMaker:
        return settings, partial(make_squad_examples, shuffle=given.shuffled)

    def score(self, given: Namespace) -> Scores:
        """Return the metrics of a file of predictions.

        The metrics are those of SQuAD 2.0 if a flag asks for them or a question has no answer. Otherwise they
        are those of version 1.1.
        """
        if given.na_prob_thresh is not None and given.na_prob_file is None:
            raise UsageError("--na-prob-thresh goes with --na-prob-file")
        path, predictions = given.data, given.predictions
        questions, texts = read_squad(read_file(path)).questions, _read_texts(predictions)
        if not any(question.golds for question in questions):
            raise InputError(f"{path}: gives no question an answer, so nothing can be compared with it")
        without = [one.id for one in questions if one.id not in texts]
        warnings = []
        if without:
            warnings.append(f"{predictions}: has no answer to {len(without)} questions, as {without[0]}")
        unknown = sorted(texts.keys() - {one.id for one in questions})
        if unknown:
            warnings.append(
                f"{predictions}: answers {len(unknown)} questions that {path} has not, as {unknown[0]}"
            )
        if len(unknown) == len(texts):
            raise InputError(f"{predictions}: answers no question of {path}")
        numbers = None
        if given.na_prob_file is not None:
            numbers = _read_numbers(given.na_prob_file, [one.id for one in questions if one.id in texts])
        elif not given.version_2_with_negative and all(question.golds for question in questions):
            return Scores(score_answers(questions, texts), warnings)
        threshold = 1.0 if given.na_prob_thresh is None else given.na_prob_thresh
        metrics = score_answers_or_none(questions, texts, numbers, threshold)
        return Scores(metrics, warnings, _describe_guess(questions))


def make_squad_settings(
    given: FinetuningSection, length: int, vocabulary: Vocabulary, *, training: bool
) -> SquadSettings:
    """Return the settings of features from the configuration.

    length: number of token ids in a feature.
    vocabulary: the tokeniser's vocabulary.
    training: whether the features are for training.
    """
    query_length = given.max_query_length
    if query_length is None:
        query_length = choose_query_length(length, vocabulary.pair_separators)
    return SquadSettings(
        max_seq_length=length,
        lower_case=given.lower_case is not False,
        doc_stride=given.doc_stride,
        doc_overlap=given.doc_overlap,
        max_query_length=query_length,
        training=training,
        first_answer=given.first_answer,
        version_2_with_negative=given.version_2_with_negative,
    )


def _describe_guess(questions: Sequence[Question]) -> str:
    """Return text about the scores of a baseline that answers no question, with the metrics of SQuAD 2.0."""
    found = score_no_answers(questions)
    return f"always no answer scores exact {found['exact']:.2f}, f1 {found['f1']:.2f}"


def _read_numbers(path: str, questions: Sequence[str]) -> dict[str, float]:
    """Return the number that a file has for each question id. Raise InputError if it lacks a question."""
    value = _read_object(path, "a number by each question's id")
    for name, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise InputError(f"{path}: question {name}: holds {number!r:.60}, expected a number")
    missing = [one for one in questions if one not in value]
    if missing:
        raise InputError(f"{path}: has no number for {len(missing)} predicted questions, as {missing[0]}")
    return value


def _read_texts(path: str) -> dict[str, str]:
    """Return the predicted answers in a file, by question id."""
    value = _read_object(path, "an answer by each question's id")
    for name, text in value.items():
        if not isinstance(text, str):
            raise InputError(f"{path}: question {name}: the answer is {text!r:.60}, expected a text")
    return value


def _read_object(path: str, expected: str) -> dict[str, Any]:
    """Return the JSON object in a file.

    expected: what the object should contain, for the error message.
    """
    value: Any = parse_json(read_file(path).text(f"JSON in UTF-8 with {expected}"), path, expected)
    if not isinstance(value, dict):
        raise InputError(f"{path}: is no JSON object, expected {expected}")
    return value
