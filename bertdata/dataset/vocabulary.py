"""Find the vocabulary that a dataset's shards were made with."""

from bertdata.dataset.discover import FoundDataset
from bertdata.dataset.manifest import DatasetPlan, unknown_tokens
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.assets import find_cached_vocabulary, find_vocabulary
from bertdata.io.file_check import compute_file_md5
from bertdata.records import Vocabulary
from bertdata.tokens.files import TokenizerFile, name_in_dataset, read_file_record
from bertdata.tokens.fit import casing_warnings, unknown_warnings
from bertdata.tokens.load import find_tokenizer_file, vocabulary_of

_CASING_REMEDIES = (
    "make the shards again with --no-lower-case",
    "make the shards again without --no-lower-case",
)


def known_vocabulary(path_or_name: str | None, dataset: FoundDataset) -> Vocabulary | None:
    """Return the vocabulary of a dataset, or None if it is not available.

    path_or_name: the user's choice. Without it, the dataset's copy or a cached named vocabulary is taken if
    its md5 matches the manifest. UsageError if the user's vocabulary has another md5.
    """
    file = known_tokenizer(path_or_name, dataset)
    return None if file is None else vocabulary_of(file)


def known_tokenizer(path_or_name: str | None, dataset: FoundDataset) -> TokenizerFile | None:
    """Return the tokeniser's file for known_vocabulary, read as the manifest's tokenizer record says."""
    plan = dataset.manifest.plan if dataset.manifest else None
    path = known_vocabulary_path(path_or_name, dataset)
    if path is None:
        return None
    if plan and storage.is_directory(path):
        path = _find_in_directory(path, plan)
    file = read_file_record(plan.settings.tokenizer, path) if plan else find_tokenizer_file(path)
    found = vocabulary_of(file).md5
    if plan and found != (md5 := plan.settings.vocabulary["md5"]):
        raise UsageError(f"{path}: md5 {found}, the shard was made with {md5}")
    return file


def _find_in_directory(directory: str, plan: DatasetPlan) -> str:
    """Return the tokeniser's file in a directory.

    If the directory holds a model with the same vocabulary instead of a copy of the file, return the
    directory.
    """
    inside = storage.join(directory, name_in_dataset(plan.settings.tokenizer))
    if "file" not in plan.settings.tokenizer:
        return inside
    if storage.exists(inside) and compute_file_md5(inside) == plan.settings.vocabulary["md5"]:
        return inside
    return (
        directory
        if vocabulary_of(find_tokenizer_file(directory)).md5 == plan.settings.vocabulary["md5"]
        else inside
    )


def known_vocabulary_path(path_or_name: str | None, dataset: FoundDataset) -> str | None:
    """Return the path of the file for known_vocabulary. The md5 of the user's choice is not checked."""
    if path_or_name is not None:
        return find_vocabulary(path_or_name)
    return _find_available(dataset, dataset.manifest.plan if dataset.manifest else None)


def fit_warnings(dataset: FoundDataset) -> list[str]:
    """Return warnings if the vocabulary does not suit the casing, or knows too little of the text.

    The counts of unknown tokens come from the manifest.
    """
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


def _find_available(dataset: FoundDataset, plan: DatasetPlan | None) -> str | None:
    if plan is None:
        return None
    md5 = plan.settings.vocabulary["md5"]
    for directory in {storage.get_parent(shard.path) for shard in dataset.shards}:
        copy = storage.join(directory, name_in_dataset(plan.settings.tokenizer))
        if storage.exists(copy) and compute_file_md5(copy) == md5:
            return copy
    return find_cached_vocabulary(md5)
