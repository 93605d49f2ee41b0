"""The vocabulary that shards were made with, as far as it is given or at hand."""

from bertdata.dataset.discover import FoundDataset
from bertdata.dataset.manifest import DatasetPlan, unknown_tokens
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.assets import cached_vocabulary, find_vocabulary
from bertdata.io.file_check import file_md5
from bertdata.records import Vocabulary
from bertdata.tokens.files import TokenizerFile, file_of_record, name_in_dataset
from bertdata.tokens.fit import casing_warnings, unknown_warnings
from bertdata.tokens.load import file_at, vocabulary_of

_CASING_REMEDIES = (
    "make the shards again with --no-lower-case",
    "make the shards again without --no-lower-case",
)


def known_vocabulary(path_or_name: str | None, dataset: FoundDataset) -> Vocabulary | None:
    """The given vocabulary, else the dataset's own copy, else a named one in the cache, else None.

    The latter two only with the manifest's md5. UsageError if the given one has another.
    """
    file = known_tokenizer(path_or_name, dataset)
    return None if file is None else vocabulary_of(file)


def known_tokenizer(path_or_name: str | None, dataset: FoundDataset) -> TokenizerFile | None:
    """The tokeniser's file of known_vocabulary, read as the manifest says. UsageError as there."""
    plan = dataset.manifest.plan if dataset.manifest else None
    path = known_vocabulary_path(path_or_name, dataset)
    if path is None:
        return None
    if plan and storage.is_directory(path):
        path = _in_directory(path, plan)
    file = file_of_record(plan.settings.tokenizer, path) if plan else file_at(path)
    found = vocabulary_of(file).md5
    if plan and found != (md5 := plan.settings.vocabulary["md5"]):
        raise UsageError(f"{path}: md5 {found}, the shard was made with {md5}")
    return file


def _in_directory(directory: str, plan: DatasetPlan) -> str:
    """The tokeniser's file in a directory, or a model's directory itself where that says the data's."""
    inside = storage.join(directory, name_in_dataset(plan.settings.tokenizer))
    if "file" not in plan.settings.tokenizer:
        return inside
    if storage.exists(inside) and file_md5(inside) == plan.settings.vocabulary["md5"]:
        return inside
    return directory if vocabulary_of(file_at(directory)).md5 == plan.settings.vocabulary["md5"] else inside


def known_vocabulary_path(path_or_name: str | None, dataset: FoundDataset) -> str | None:
    """The file of known_vocabulary, found in the same places. That a given one fits is not checked."""
    if path_or_name is not None:
        return find_vocabulary(path_or_name)
    return _at_hand(dataset, dataset.manifest.plan if dataset.manifest else None)


def fit_warnings(dataset: FoundDataset) -> list[str]:
    """Warnings where the vocabulary does not suit the casing or the text, as the manifest counts it."""
    vocabulary = known_vocabulary(None, dataset) if dataset.manifest else None
    if vocabulary is None or dataset.manifest is None:
        return []
    inputs, tokenizer = dataset.manifest.inputs, dataset.manifest.plan.settings.tokenizer
    tokens = sum(entry.tokens for entry in inputs)
    casing = tokenizer.get("lower_case")
    return [
        *([] if casing is None else casing_warnings(vocabulary, casing, remedies=_CASING_REMEDIES)),
        *unknown_warnings(unknown_tokens(inputs), tokens, dataset.path),
    ]


def _at_hand(dataset: FoundDataset, plan: DatasetPlan | None) -> str | None:
    if plan is None:
        return None
    md5 = plan.settings.vocabulary["md5"]
    for directory in {storage.parent(shard.path) for shard in dataset.shards}:
        copy = storage.join(directory, name_in_dataset(plan.settings.tokenizer))
        if storage.exists(copy) and file_md5(copy) == md5:
            return copy
    return cached_vocabulary(md5)
