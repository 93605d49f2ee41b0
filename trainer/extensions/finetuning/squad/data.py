"""Files of SQuAD: their names, their features and their scores."""

from argparse import Namespace
from functools import partial

from bertdata.errors import InputError, UsageError
from trainer.config.finetuning import FinetuningSection
from trainer.config.settings import Config
from trainer.extensions.finetuning.feature_set import FeatureSource, MakeExamples
from trainer.extensions.finetuning.squad.features import SquadSettings, squad_examples
from trainer.extensions.finetuning.squad.reading import read_squad
from trainer.extensions.finetuning.squad.score import score_squad
from trainer.extensions.finetuning.task_data import FileNames, Scores, TaskData
from trainer.extensions.finetuning.task_flags import TABLE_FLAGS

Made = tuple[SquadSettings, MakeExamples[SquadSettings]]


class SquadData(TaskData[SquadSettings]):
    """SQuAD's JSON, of version 1.1 or 2.0."""

    settings = SquadSettings
    feature_flags = ("training", "version_2_with_negative", "doc_stride", "max_query_length")
    refused = (*TABLE_FLAGS, "no_labels")

    def usual_names(self, given: FinetuningSection) -> list[FileNames]:
        version = "v2.0" if given.version_2_with_negative else "v1.1"
        return [(f"train-{version}.json", f"dev-{version}.json", f"dev-{version}.json")]

    def check_evaluation(self, given: FinetuningSection, path: str) -> None:
        """By the rules of SQuAD 1.1 each question needs an answer; those of 2.0 take questions without."""
        questions = [] if given.version_2_with_negative else read_squad(path).questions
        for question in questions:
            if not question.golds:
                raise InputError(
                    f"{path}: question {question.id}: has no answers, expected 1 or more to evaluate on; "
                    "--version-2-with-negative scores questions without any, --no-do-eval leaves evaluation "
                    "out"
                )

    def configured(self, config: Config, length: int, *, training: bool, labelled: bool) -> Made:
        return squad_settings(config, length, training=training), squad_examples

    def asked_for(self, given: Namespace, source: FeatureSource, settings: SquadSettings) -> Made:
        return settings, partial(squad_examples, shuffle=given.shuffled)

    def score(self, given: Namespace) -> Scores:
        if given.na_prob_thresh is not None and given.na_prob_file is None:
            raise UsageError("--na-prob-thresh goes with --na-prob-file")
        return score_squad(
            given.data,
            given.predictions,
            negatives=given.version_2_with_negative,
            no_answer=given.na_prob_file,
            threshold=1.0 if given.na_prob_thresh is None else given.na_prob_thresh,
        )


def squad_settings(config: Config, length: int, *, training: bool) -> SquadSettings:
    """The settings of the features, of so many ids, that the configuration asks for."""
    given = config.finetuning
    return SquadSettings(
        max_seq_length=length,
        lower_case=given.lower_case is not False,
        doc_stride=given.doc_stride,
        max_query_length=given.max_query_length,
        training=training,
        version_2_with_negative=given.version_2_with_negative,
    )
