"""Features of a file as text for audits, or as a dataset: what ``python -m trainer features`` does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bertdata.io import storage
from bertdata.io.assets import find_vocabulary, name_warnings
from bertdata.tokens.fit import casing_warnings
from bertdata.tokens.load import load_tokenizer
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.extensions.finetuning.classification import features as pair_features
from trainer.extensions.finetuning.classification.dataset import make_pair_set, settings_of
from trainer.extensions.finetuning.classification.presets import ClassificationTask
from trainer.extensions.finetuning.classification.reading import (
    Pairs,
    label_ids,
    parse_pairs,
    read_pairs,
    with_labels,
)
from trainer.extensions.finetuning.feature_set import FeatureSet, read_source
from trainer.extensions.finetuning.squad import features as squad_features
from trainer.extensions.finetuning.squad.dataset import make_squad_set
from trainer.extensions.finetuning.squad.reading import read_squad
from trainer.extensions.finetuning.squad.settings import SquadSettings
from trainer.extensions.finetuning.squad.text_form import feature_lines


@dataclass(frozen=True, slots=True)
class Written:
    """Features that were written: a line about them, and warnings."""

    line: str
    warnings: list[str]


def write_squad_features(
    path: str, output: str, *, vocabulary: str, settings: SquadSettings, shuffled: bool = False
) -> Written:
    """Write the features of a SQuAD file, one JSON object a line; vocabulary: a file or a name.

    shuffled: in the order in which Google's program makes training features, not that of the file.
    """
    tokenizer, warnings = open_tokenizer(vocabulary, settings.dialect, settings.lower_case)
    found = read_squad(path, training=settings.training, negatives=settings.version_2_with_negative)
    questions = squad_features.shuffled(found.questions) if shuffled else found.questions
    features = squad_features.make_features(questions, tokenizer, settings)
    _write(output, feature_lines(features, tokenizer.vocabulary, settings.max_seq_length))
    return Written(
        f"{output}: {len(features)} features of {len(questions)} questions", [*warnings, *found.warnings()]
    )


def write_pair_features(
    path: str,
    output: str,
    task: ClassificationTask,
    *,
    vocabulary: str,
    dialect: str,
    lower_case: bool,
    max_seq_length: int,
    labelled: bool,
) -> Written:
    """Write the features of a table of texts or pairs, one JSON object a line.

    Labels that the task does not name are those of the table, sorted.
    """
    tokenizer, warnings = open_tokenizer(vocabulary, dialect, lower_case)
    found = read_pairs(path, task, labelled=labelled)
    task = _labelled(task, found, labelled)
    labels = label_ids(found.pairs, task)
    features = pair_features.make_features(found.pairs, labels, tokenizer, max_seq_length)
    _write(output, pair_features.feature_lines(features, tokenizer.vocabulary, max_seq_length))
    return Written(f"{output}: {len(features)} features", [*warnings, *found.warnings()])


def make_squad_dataset(path: str, output: str, *, vocabulary: str, settings: SquadSettings) -> Written:
    """Make the dataset of a SQuAD file's features in the directory, or keep the one that is there."""
    tokenizer, warnings = open_tokenizer(vocabulary, settings.dialect, settings.lower_case)
    return _described(make_squad_set(output, read_source(path), tokenizer, settings), warnings)


def make_pair_dataset(
    path: str,
    output: str,
    task: ClassificationTask,
    *,
    vocabulary: str,
    dialect: str,
    lower_case: bool,
    max_seq_length: int,
    labelled: bool,
    format: str,
) -> Written:
    """The same of a table of texts or pairs; labels as of write_pair_features."""
    tokenizer, warnings = open_tokenizer(vocabulary, dialect, lower_case)
    source = read_source(path)
    task = _labelled(task, parse_pairs(source.data, path, task, labelled=labelled), labelled)
    settings = settings_of(
        task,
        labelled=labelled,
        dialect=dialect,
        lower_case=lower_case,
        max_seq_length=max_seq_length,
        format=format,
    )
    return _described(make_pair_set(output, source, tokenizer, task, settings), warnings)


def _labelled(task: ClassificationTask, found: Pairs, labelled: bool) -> ClassificationTask:
    """The task with labels: its own or the table's; none where they are not read."""
    return with_labels(task, found) if labelled else replace(task, labels=task.labels or ())


def _described(found: FeatureSet, warnings: list[str]) -> Written:
    (shard,) = found.manifest.shards
    line = f"{found.directory}: {'kept' if found.kept else 'made'} {shard.examples} examples"
    return Written(line, [*warnings, *found.warnings])


def open_tokenizer(vocabulary: str, dialect: str, lower_case: bool) -> tuple[WordPieceTokenizer, list[str]]:
    """The tokeniser of a vocabulary, a file or a name, and warnings where it does not fit the casing."""
    path = find_vocabulary(vocabulary)
    tokenizer = load_tokenizer(path, dialect, lower_case)
    assert isinstance(tokenizer, WordPieceTokenizer), type(tokenizer)
    words = tokenizer.vocabulary
    return tokenizer, [*name_warnings(path, words.md5), *casing_warnings(words, lower_case)]


def _write(output: str, lines: Iterable[str]) -> None:
    with storage.open_output(output) as file:
        for block in _blocks(lines):
            file.write(block)


def _blocks(lines: Iterable[str], size: int = 1 << 20) -> Iterator[bytes]:
    """The lines in ASCII, about ``size`` bytes at a time."""
    held: list[str] = []
    length = 0
    for line in lines:
        held.append(line)
        length += len(line)
        if length >= size:
            yield "".join(held).encode("ascii")
            held, length = [], 0
    yield "".join(held).encode("ascii")
