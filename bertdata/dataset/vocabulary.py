"""Search for the vocabulary that the shards of a dataset were made with."""

from bertdata.dataset.discover import FoundDataset
from bertdata.dataset.manifest import DatasetPlan, count_unknown_tokens
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.assets import find_cached_vocabulary, find_vocabulary
from bertdata.io.file_check import compute_file_md5
from bertdata.records import Vocabulary
from bertdata.tokens.files import TokenizerFile, name_in_dataset, read_file_record
from bertdata.tokens.fit import warn_of_casing, warn_of_unknown_tokens
from bertdata.tokens.load import find_tokenizer_file, vocabulary_of

_CASING_REMEDIES = (
    "make the shards again with --no-lower-case",
    "make the shards again without --no-lower-case",
)


def load_dataset_vocabulary(path_or_name: str | None, dataset: FoundDataset) -> Vocabulary | None:
    """Load the vocabulary that a dataset was made with. Returns None if it is not available.

    path_or_name: the vocabulary that the user chose. None takes the copy in the dataset, or a downloaded
        vocabulary of a known name if its md5 is the md5 in the manifest.

    Raises UsageError if the user's vocabulary does not have the md5 in the manifest.
    """
    file = load_dataset_tokenizer(path_or_name, dataset)
    return None if file is None else vocabulary_of(file)


def load_dataset_tokenizer(path_or_name: str | None, dataset: FoundDataset) -> TokenizerFile | None:
    """Return the tokeniser file of a dataset, under the same rules as load_dataset_vocabulary.

    Returns None if it is not available.
    """
    plan = dataset.manifest.plan if dataset.manifest else None
    path = find_dataset_vocabulary_path(path_or_name, dataset)
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
    """Return the path of the tokeniser's file in a directory.

    If the directory contains a model with the same vocabulary and no copy of the tokeniser's file, the path
    of the directory is returned.
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


def find_dataset_vocabulary_path(path_or_name: str | None, dataset: FoundDataset) -> str | None:
    """Return the path of the vocabulary file that load_dataset_vocabulary would load, or None.

    If the user chose the file, its md5 is not checked.
    """
    if path_or_name is not None:
        return find_vocabulary(path_or_name)
    return _find_available(dataset, dataset.manifest.plan if dataset.manifest else None)


def check_vocabulary_fit(dataset: FoundDataset) -> list[str]:
    """Return warnings if the vocabulary does not suit the text, in letter case or in the number of unknown
    words.

    The number of unknown tokens comes from the manifest.
    """
    vocabulary = load_dataset_vocabulary(None, dataset) if dataset.manifest else None
    if vocabulary is None or dataset.manifest is None:
        return []
    inputs, tokenizer = dataset.manifest.inputs, dataset.manifest.plan.settings.tokenizer
    tokens = sum(entry.tokens for entry in inputs)
    casing = tokenizer.get("lower_case")
    return [
        *([] if casing is None else warn_of_casing(vocabulary, casing, remedies=_CASING_REMEDIES)),
        *warn_of_unknown_tokens(count_unknown_tokens(inputs), tokens, dataset.path),
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
