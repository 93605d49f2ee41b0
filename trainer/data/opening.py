"""Opening of datasets for training, with checks of their sizes against configuration and model."""

from collections.abc import Sequence
from dataclasses import replace

from bertdata.config.settings import require
from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.mask_presence import find_unmasked_directories
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.reader import OpenedDataset, Split
from bertdata.dataset.vocabulary import check_vocabulary_fit
from bertdata.examples.groups import MASKS, has_group
from bertdata.examples.objectives import find_objective, find_plain_objective_name
from bertdata.io import storage
from trainer.config.model import check_length
from trainer.config.sections.data import DataSection
from trainer.config.settings import Config
from trainer.data.cache.shard_cache import ShardCache
from trainer.data.dynamic_masks import MaskingAtLoad, mask_once
from trainer.plugins import find

# largest number of embeddings without a token: a model may round its vocabulary size up to a multiple of 128
PADDING_TOKENS = 127


def open_configured(
    config: Config,
    paths: str,
    model_vocabulary_size: int | None = None,
    *,
    held_out: bool = False,
    task: str | None = None,
) -> OpenedDataset:
    """Open the dataset at the paths and check that it fits the configuration.

    If the examples have no masks, masks are drawn that are the same in each epoch. ``prepare_for_training``
    removes them again if masks are drawn while loading. The length of examples is checked here if the
    configuration says how many positions the model has. Otherwise it is checked when the model is known.

    paths: one or several datasets, separated by commas.
    model_vocabulary_size: size of the model's vocabulary if the configuration does not have it, or None.
    held_out: if a directory has training files and test files, True opens the test files.
    task: name of the task that learns the data. None: any pre-training task.
    """
    model, is_dynamic = config.model_settings, config.masking_at_load is not None
    data = open_for_training(
        paths,
        replace(config.data, max_predictions_per_seq=None) if is_dynamic else config.data,
        longest=model.get("max_position_embeddings"),
        vocabulary_size=model.get("vocab_size", model_vocabulary_size),
        split="test" if held_out else "training",
        task=task,
    )
    data = add_cache(config.data, data)
    name = data.layout.objective
    may_have_masks = has_group(find_objective(name).batch_type, MASKS)
    no_words = f"{data.name}: the examples of the objective {name} have no masked words to draw"
    require(may_have_masks or not is_dynamic, no_words)
    unmasked = find_unmasked_directories(data)
    if not unmasked:
        return data
    require(is_dynamic, f"{unmasked[0]}: its examples have no masks; --masking dynamic draws them")
    return mask_once(config, data, paths, held_out)


def add_cache(keys: DataSection, data: OpenedDataset) -> OpenedDataset:
    """Return the dataset with a cache of its remote files, if one is configured and there are such files.

    keys: the configuration's keys about data.
    """
    is_local = not any(storage.is_remote(shard.path) for shard in data.shards)
    if keys.cache_dir is None or is_local:
        return data
    limit = None if keys.cache_size is None else round(keys.cache_size * 1e9)
    cache = ShardCache(keys.cache_dir.removeprefix("file://"), limit, data.shards)
    return replace(data, copies=cache)


def prepare_for_training(config: Config, data: OpenedDataset) -> OpenedDataset:
    """Prepare opened data for the loader: if the loader draws masks itself, remove the masks. Return the
    data.
    """
    masking = config.masking_at_load
    if masking is None:
        return data
    kind: MaskingAtLoad = find("masking", masking)
    return kind.source(config, data)


def describe_phase(config: Config, data: OpenedDataset, held_out: OpenedDataset | None = None) -> str:
    """Return a line for the log about a phase of training: which data it uses, and how many examples they
    have.
    """
    layout = data.layout
    has_limit = layout.max_predictions_per_seq > 0 and not config.masking_at_load
    masked = f", {layout.max_predictions_per_seq} masked" * has_limit
    sizes = f"{layout.max_seq_length} ids{masked}"
    line = f"phase {config.phase}: trains on {data.name}: {data.examples} examples of {sizes}"
    if (rows := sum(shard.rows or 0 for shard in data.shards)) and layout.packing is not None:
        line += f" in {rows} packed rows (layout {layout.packing})"
    if config.masking_at_load:
        line += ", masked anew in each epoch"
    line += describe_left_out(data, "test")
    if held_out is None:
        return line
    ids, left_out = held_out.layout.max_seq_length, describe_left_out(held_out, "training")
    of_ids = f" of {ids} ids" * (ids != layout.max_seq_length)
    return f"{line}; evaluates on {held_out.name}: {held_out.examples} examples{of_ids}{left_out}"


def describe_left_out(data: OpenedDataset, kind: str) -> str:
    """Return a text about the training or test files that were not opened, or "" if all files were.

    kind: the kind of files that were opened, "training" or "test".
    """
    if not data.left_out:
        return ""
    return f", without {data.left_out} file{'s' if data.left_out > 1 else ''} of {kind} text"


def find_training_paths(config: Config) -> str | None:
    """Return the paths of the training data, or None for generated examples."""
    return None if config.data.generated_data else config.data.train_data


def find_data_warnings(config: Config, paths: str | None) -> list[str]:
    """Return warnings about datasets whose vocabulary does not fit their text or their casing.

    Datasets without a manifest cannot be checked.
    """
    return [warning for dataset in find_verified(config, paths) for warning in check_vocabulary_fit(dataset)]


def find_verified(config: Config, paths: str | None) -> list[FoundDataset]:
    """Return the datasets at the paths whose files are to be verified. [] if the configuration says
    unverified.
    """
    if paths is None or config.data.unverified:
        return []
    return [dataset for path in split_paths(paths) for dataset in find_datasets(path)]


def open_for_training(
    paths: str | Sequence[str],
    keys: DataSection,
    *,
    longest: int | None = None,
    vocabulary_size: int | None = None,
    task: str | None = None,
    split: Split | None = None,
) -> OpenedDataset:
    """Open the dataset at the paths, and check that it fits the configured sizes and the model.

    SettingsError if a configured size is not the dataset's. Test data may have shorter sequences.

    paths, split: arguments of ``open_weighted``, which also raises the errors about the data.
    keys: the configuration's keys about data.
    longest: number of positions of the model, or None if it is not known yet.
    vocabulary_size: size of the model's vocabulary, which replaces the dataset's. None keeps the dataset's.
    task: name of the task that must be able to learn the examples, or None.
    """
    data = open_weighted(paths, unverified=keys.unverified, split=split)
    layout, tokens, size = data.layout, data.vocabulary_size, vocabulary_size
    ids, masks, own = layout.max_seq_length, layout.max_predictions_per_seq, find_objective(layout.objective)
    has, made, asked = f"has the objective {layout.objective}", "was made with", "the configuration says"
    length, most = keys.max_seq_length, keys.max_predictions_per_seq
    reached = max(ids, length or 0) if split == "test" else ids
    accepted = (None, layout.objective, find_plain_objective_name(layout.objective))
    require(keys.objective in accepted, f"{data.name}: {has}, the trainer needs {keys.objective}")
    for given, found, problem in (
        (task, own.task, f"{has}, learned by the task {own.task}; here it is {task}"),
        (length, reached, f"{made} max_seq_length {ids}, {asked} {length}"),
        (most, masks, f"{made} max_predictions_per_seq {masks}, {asked} {most}"),
    ):
        require(given in (None, found), f"{data.name}: {problem}")
    check_data_length(data, longest)
    if tokens and size is not None:
        problem = f"{made} a vocabulary of {tokens} tokens, the model has vocab_size {size}"
        require(tokens <= size <= tokens + PADDING_TOKENS, f"{data.name}: {problem}")
    return data if size is None else replace(data, vocabulary_size=size)


def check_data_length(data: OpenedDataset, longest: int | None) -> None:
    """Raise SettingsError if the dataset has sequences with more tokens than the model has positions.

    longest: number of positions of the model, or None if it is not known yet.
    """
    remedy = f"make them with --max-seq-length {longest} or less, or train a model with more positions"
    check_length(data.layout.max_seq_length, longest, data.name, remedy)
