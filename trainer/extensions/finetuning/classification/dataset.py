"""Features of a classification as a dataset of the toolkit."""

from collections.abc import Sequence

from bertdata.examples.classification.batch import (
    LabelledBatch,
    LabelledExample,
    ScoredBatch,
    ScoredExample,
    split_score,
)
from bertdata.records import Example
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.extensions.finetuning.classification.features import PairFeature, make_features
from trainer.extensions.finetuning.classification.presets import ClassificationTask
from trainer.extensions.finetuning.classification.reading import label_ids, parse_pairs
from trainer.extensions.finetuning.classification.settings import ClassificationSettings
from trainer.extensions.finetuning.feature_set import (
    FeatureSet,
    FeatureSource,
    MadeExamples,
    make_feature_set,
)


def settings_of(
    task: ClassificationTask,
    *,
    labelled: bool,
    dialect: str,
    lower_case: bool,
    max_seq_length: int,
    format: str,
) -> ClassificationSettings:
    """The settings of the task's features; its labels must be known (``with_labels``)."""
    columns = task.columns if labelled or task.test is None else task.test
    return ClassificationSettings(
        objective="regression" if task.regression else "classification",
        dialect=dialect,
        lower_case=lower_case,
        max_seq_length=max_seq_length,
        format=format,
        task=task.name,
        first_column=columns.first,
        second_column=columns.second or "",
        label_column=columns.label if labelled else "",
        labels=task.labels or (),
    )


def make_pair_set(
    directory: str,
    source: FeatureSource,
    tokenizer: WordPieceTokenizer,
    task: ClassificationTask,
    settings: ClassificationSettings,
) -> FeatureSet:
    """The dataset of the table's features, in its order; settings: as settings_of gives them."""

    def make(source: FeatureSource) -> MadeExamples:
        found = parse_pairs(source.data, source.path, task, labelled=bool(settings.label_column))
        labels = label_ids(found.pairs, task)
        features = make_features(found.pairs, labels, tokenizer, settings.max_seq_length)
        return MadeExamples(
            examples=_scored(features) if task.regression else _labelled(features),
            batch_type=ScoredBatch if task.regression else LabelledBatch,
            documents=len(features),
            sentences=len(features) * (2 if settings.second_column else 1),
            warnings=found.warnings(),
        )

    return make_feature_set(directory, source, tokenizer.vocabulary, settings, make)


def _labelled(features: Sequence[PairFeature]) -> list[Example]:
    return [
        LabelledExample(ids=one.ids, first_length=one.first_length, label=int(one.label)) for one in features
    ]


def _scored(features: Sequence[PairFeature]) -> list[Example]:
    halves = [split_score(one.label) for one in features]
    return [
        ScoredExample(ids=one.ids, first_length=one.first_length, score_high=high, score_low=low)
        for one, (high, low) in zip(features, halves, strict=True)
    ]
