"""Features of texts and pairs of texts: ``[CLS] first [SEP]`` or ``[CLS] first [SEP] second [SEP]``.

The texts of a pair are separated by as many separator tokens as the tokeniser puts there. Features are
written as text, for checks by eye, or as a dataset.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bertdata.examples.classification.batch import (
    LabelledBatch,
    LabelledExample,
    ScoredBatch,
    ScoredExample,
    split_score,
)
from bertdata.records import Example
from bertdata.tokens.tokenizer import Tokenizer
from trainer.tasks.classification.presets import TASKS, ClassificationSettings, ClassificationTask
from trainer.tasks.classification.reading import TextPair, convert_labels, read_pairs
from trainer.tasks.data_file import DataFile
from trainer.tasks.feature_set import SourceExamples, pad_columns

Ids = list[int]


@dataclass(frozen=True, slots=True, eq=False)
class PairFeature:
    """The token ids of an example without padding. The first ``first_length`` ids are in segment 0.

    label: id of the label, or the score.
    whole_length: number of ids that the example has without a limit. It is larger than the number of ``ids``
    if the texts were cut.
    """

    ids: Ids
    first_length: int
    label: int | float
    whole_length: int


def make_features(
    pairs: Sequence[TextPair],
    labels: Sequence[int | float],
    tokenizer: Tokenizer,
    max_seq_length: int,
) -> list[PairFeature]:
    """Return the features of all examples, in the order of the examples.

    labels: label ids or scores of the examples, as ``convert_labels`` returns them.
    """
    firsts = tokenizer.encode_each([pair.first for pair in pairs]).lists()
    seconds = tokenizer.encode_each([pair.second or "" for pair in pairs]).lists()
    cls, sep = tokenizer.vocabulary.role("cls"), tokenizer.vocabulary.role("sep")
    between = [sep] * tokenizer.vocabulary.pair_separators
    features = []
    for pair, first, second, label in zip(pairs, firsts, seconds, labels, strict=True):
        if pair.second is None:
            ids = [cls, *first[: max_seq_length - 2], sep]
            features.append(PairFeature(ids, len(ids), label, len(first) + 2))
            continue
        whole_length = len(first) + len(second) + 2 + len(between)
        first, second = shorten_pair(first, second, max_seq_length - 2 - len(between))
        ids = [cls, *first, *between, *second, sep]
        features.append(PairFeature(ids, 1 + len(first) + len(between), label, whole_length))
    return features


def find_cut_warnings(features: Sequence[PairFeature], max_seq_length: int) -> list[str]:
    """Return a warning with the number of examples whose texts were cut, or [] if none was.

    max_seq_length: largest number of ids in a feature.
    """
    lengths = [feature.whole_length for feature in features if feature.whole_length > max_seq_length]
    if not lengths:
        return []
    number = f"{len(lengths):,} of {len(features):,} examples {'was' if len(lengths) == 1 else 'were'} cut"
    return [
        f"{number} to max_seq_length {max_seq_length}; the longest has {max(lengths):,} token ids (special "
        "tokens included)"
    ]


def shorten_pair(first: Ids, second: Ids, limit: int) -> tuple[Ids, Ids]:
    """Shorten both texts at their ends, until they have at most ``limit`` ids together.

    One id at a time is removed from the longer text. If both are equally long, it is removed from the second.
    """
    first_length, second_length = len(first), len(second)
    while first_length + second_length > limit:
        if first_length > second_length:
            first_length -= 1
        else:
            second_length -= 1
    return first[:first_length], second[:second_length]


def pad_feature(feature: PairFeature, length: int, padding_id: int = 0) -> dict[str, Any]:
    """Return the feature's fields, padded to ``length`` ids. They have the names of the original programs."""
    columns = pad_columns(feature.ids, feature.first_length, length, padding_id)
    return {**columns, "label_id": feature.label}


def fill_in_settings(
    task: ClassificationTask, given: ClassificationSettings, *, labelled: bool
) -> ClassificationSettings:
    """Return the settings with the columns, labels and format of the task's tables.

    The task's labels must be known. ``find_labels`` finds them.
    given: settings in which these fields are still empty.
    labelled: whether labels are read from the table.
    """
    columns = task.columns if labelled or task.test is None else task.test
    return replace(
        given,
        objective="regression" if task.regression else "classification",
        task=task.name,
        first_column=columns.first,
        second_column=columns.second or "",
        label_column=columns.label if labelled else "",
        labels=task.labels or (),
        quoting=task.quoting or "",
        skip_bad_records=task.skips_bad,
        heading=_format_heading_choice(task),
    )


def _format_heading_choice(task: ClassificationTask) -> str:
    """Return "yes" or "no" if the user has said whether tables have a heading, otherwise ""."""
    usual = TASKS[task.name].heading
    if (task.heading is not False) == (usual is not False):
        return ""
    return "yes" if task.heading else "no"


def make_pair_examples(
    task: ClassificationTask,
    source: DataFile,
    tokenizer: Tokenizer,
    settings: ClassificationSettings,
) -> SourceExamples:
    """Make the examples of a table's features, in the order of the table's rows.

    settings: complete settings, as ``fill_in_settings`` returns them.
    """
    found = read_pairs(source, task, labelled=bool(settings.label_column))
    features = make_features(
        found.pairs, convert_labels(found.pairs, task), tokenizer, settings.max_seq_length
    )
    cut = find_cut_warnings(features, settings.max_seq_length)
    padding_id = tokenizer.vocabulary.padding_id
    return SourceExamples(
        examples=[_make_example(one, scored=task.regression) for one in features],
        batch_type=ScoredBatch if task.regression else LabelledBatch,
        documents=len(features),
        sentences=len(features) * (2 if settings.second_column else 1),
        warnings=[*found.warnings(), *(f"{source.path}: {line}" for line in cut)],
        values=(pad_feature(one, settings.max_seq_length, padding_id) for one in features),
        count=f"{len(features)} features",
    )


def _make_example(feature: PairFeature, *, scored: bool) -> Example:
    """Convert a feature to an example that can be written to a dataset.

    scored: whether the feature's label is a score.
    """
    ids, first_length = feature.ids, feature.first_length
    if not scored:
        return LabelledExample(ids=ids, first_length=first_length, label=int(feature.label))
    high, low = split_score(feature.label)
    return ScoredExample(ids=ids, first_length=first_length, score_high=high, score_low=low)
