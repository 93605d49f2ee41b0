"""Search for shards: datasets with a manifest, and files of other programs, which have no manifest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bertdata.dataset.check import check_shard_sizes
from bertdata.dataset.manifest import DATASET_KIND, Manifest, ShardEntry, parse_manifest
from bertdata.errors import DatasetError, ManifestError, MissingInputError, SettingsError, ShardError
from bertdata.examples.objectives import find_plain_objective_name
from bertdata.io import storage
from bertdata.io.directory_protocol import PLAN_NAME, UNFINISHED
from bertdata.io.file_check import Misfit
from bertdata.io.input_files import refuse_repeated
from bertdata.io.listing import HIDDEN, describe_left_out, is_hidden, list_inputs
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME, format_md5sums, parse_json
from bertdata.io.patterns import expand_patterns
from bertdata.records import DEFAULT_OBJECTIVE
from bertdata.shards.containers import FORMATS, is_shard_name
from bertdata.shards.mds.listing import list_mds_shards
from bertdata.shards.mds.names import INDEX_NAME
from bertdata.sources.saved_datasets import NOT_LISTED, select_data_files
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundShard:
    """A file of examples.

    A manifest entry belongs to it if a manifest lists the file. The object can be pickled and sent to
    workers.
    """

    path: str
    name: str
    bytes: int
    entry: ShardEntry | None = None
    objective: str | None = None  # from the manifest, or from the caller if there is no manifest
    padding_id: int | None = None  # None if no manifest records it


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundDataset:
    """Shards that form a dataset.

    manifest: the manifest. None for files of another program, which have no manifest.
    notes: lines for the user that say why files below the path were left out, one for each reason.
    """

    path: str
    manifest: Manifest | None
    shards: tuple[FoundShard, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Title of the dataset: the recipe and the phase in words, as the manifest names them."""
        return self.manifest.plan.title if self.manifest else "no manifest"


def find_datasets(
    path: str, *, exact: bool = False, damaged: bool = False, objective: str | None = None
) -> list[FoundDataset]:
    """Find the datasets that a path means.

    It may be a directory, a manifest, a shard or a glob pattern of shards.

    A directory with a manifest is one dataset. A directory whose sub-directories have manifests is several
    datasets. Any other directory contains shards of another program, which find_shards selects. If the path
    names single shards, they belong to the manifest in their directory, provided that it lists all of them.
    No examples are decoded.

    exact: True raises ManifestError for a manifest that was edited, and ShardError for shards of the wrong
        size.
    damaged: True leaves out missing shards. False raises an error for them.
    objective: name of the examples' objective from the user, or None.

    Raises MissingInputError, DatasetError, ManifestError or ShardError if something is missing.
    """
    if not storage.is_directory(path):
        if path.endswith(".json"):
            return _read_listed(path, exact, damaged)
        files = expand_patterns([path])
        where = storage.join(storage.get_parent(files[0]), MANIFEST_NAME)
        listed = _read_listed(where, exact, damaged, files) if storage.exists(where) else []
        return [replace(one, path=path) for one in listed] or [_find_unlisted(path, objective)]
    if storage.exists(storage.join(path, MANIFEST_NAME)):
        return _read_listed(storage.join(path, MANIFEST_NAME), exact, damaged)
    listing = list_inputs(path, hidden=True)
    names = listing.names
    refuse_unfinished(path, names)
    inner = [storage.join(path, f"{name}/{MANIFEST_NAME}") for name in find_manifest_directories(names)]
    found = [
        _read_listed(where, exact, damaged)
        for where in inner
        if _read_kind(storage.read_bytes(where), where) == DATASET_KIND
    ]
    datasets = [one for listed in found for one in listed]
    if not datasets:
        return [_find_unlisted(path, objective)]
    notes = tuple(describe_left_out(path, listing.left_out))
    return [replace(datasets[0], notes=notes), *datasets[1:]]


def find_shard(path: str, objective: str | None = None) -> tuple[FoundDataset, FoundShard]:
    """Find the only shard at a path. Return the dataset that it belongs to, and the shard.

    objective: name of the examples' objective from the user, or None.

    Raises SettingsError if the manifest records another objective.
    """
    if storage.is_directory(path):
        return _find_mds(path, objective)
    [dataset] = find_datasets(path, objective=objective)
    if len(dataset.shards) != 1:
        raise MissingInputError(f"{path}: names {len(dataset.shards)} files, expected one")
    [shard] = dataset.shards
    if dataset.manifest is not None:
        check_objective(path, shard.objective or DEFAULT_OBJECTIVE, objective)
    return dataset, shard


def _find_mds(path: str, objective: str | None) -> tuple[FoundDataset, FoundShard]:
    """Find a directory of MDS shards. Return it as a dataset, and its index file as the shard.

    Raises MissingInputError for any other directory.
    """
    index = storage.join(path, INDEX_NAME)
    if not storage.exists(index):
        raise MissingInputError(f"{path}: is a directory, expected a file, or a directory of MDS shards")
    [dataset] = find_datasets(path, objective=objective)
    if dataset.manifest is not None:
        check_objective(path, dataset.manifest.plan.objective or DEFAULT_OBJECTIVE, objective)
        objective = dataset.manifest.plan.objective
    shard = FoundShard(path=index, name=INDEX_NAME, bytes=storage.read_size(index), objective=objective)
    return dataset, shard


def check_objective(path: str, found: str, objective: str | None) -> None:
    """Raise SettingsError if the user named another objective than the manifest records.

    If ``create`` was asked for ``mlm``, it may have stored word starts too and recorded the objective
    ``mlm_word_starts``. The user may still name it ``mlm``.

    found: the objective in the manifest.
    objective: the objective that the user named, or None.
    """
    if objective not in (None, found, find_plain_objective_name(found)):
        raise SettingsError(
            f"{path}: its manifest has the objective {found}, but {objective} was given; give {found}, "
            "or none"
        )


def find_shards(path: str) -> list[FoundShard]:
    """Find the shards of any program: the files that a path or pattern names, or the shards below a
    directory.

    In a directory, files whose name has the ending of a file format, such as .tfrecord, are shards. If there
    are none, all files without an ending are shards, because BERT's original programs give shards no ending.
    In a directory that ``datasets`` saved, the data files that ``state.json`` lists are shards. Manifests are
    not used.

    Raises DatasetError if there are no shards.
    """
    return list(_find_shards(path)[0])


def _find_shards(path: str) -> tuple[tuple[FoundShard, ...], tuple[str, ...]]:
    """Return the shards as ``find_shards`` does, and a line for each reason why files were left out."""
    notes: list[str] = []
    if storage.is_directory(path):
        listing = list_inputs(path, hidden=True)
        names = list_mds_shards(path, listing.names)
        left_out = dict(listing.left_out)
        if not names:
            names, others = _choose_shards(path, listing.names)
            left_out |= others
        files = [storage.join(path, name) for name in names]
        notes = describe_left_out(path, left_out)
    else:
        files = expand_patterns([path])
        names = list(map(storage.get_base_name, files))
        refuse_repeated(files, "its examples would be read")
    sizes = storage.map_paths(files, storage.read_size)
    found = zip(files, names, sizes, strict=True)
    shards = tuple(FoundShard(path=file, name=name, bytes=size) for file, name, size in found)
    return shards, tuple(notes)


def refuse_unfinished(path: str, names: Sequence[str]) -> None:
    """Raise ManifestError if a directory below the path is not finished, so that it has a plan but no
    manifest.

    A training run that writes below the path also has a directory ``unfinished/``, but there is no plan in
    it.

    names: names of all files below the path.
    """
    for name in names:
        directory, mark, _ = f"/{name}".partition(f"/{UNFINISHED}/{PLAN_NAME}")
        if mark and f"{directory}/{MANIFEST_NAME}"[1:] not in names:
            raise ManifestError(
                f"{path}{directory}: is unfinished: no {MANIFEST_NAME} yet; "
                "run the command that made it again"
            )


def find_manifest_directories(names: Sequence[str]) -> list[str]:
    """Return the directories that contain a manifest.

    names: names of all files below a directory.
    """
    return sorted(storage.get_parent(name) for name in names if storage.get_base_name(name) == MANIFEST_NAME)


def _find_unlisted(path: str, objective: str | None) -> FoundDataset:
    """Find the shards at a path that have no manifest, and return them as a dataset."""
    found, notes = _find_shards(path)
    shards = tuple(replace(shard, objective=objective) for shard in found)
    return FoundDataset(path=path, manifest=None, shards=shards, notes=notes)


def _read_listed(where: str, exact: bool, damaged: bool, chosen: Sequence[str] = ()) -> list[FoundDataset]:
    """Read the dataset that a manifest describes.

    where: path of the manifest.
    exact: True raises ManifestError for a manifest that was edited, and ShardError for shards of the wrong
        size.
    damaged: True leaves out missing shards. False raises an error for them.
    chosen: paths of the shards that the user named. The dataset then has only these shards. If the manifest
        does not list all of them, the result is empty.
    """
    data = storage.read_bytes(where)
    if (kind := _read_kind(data, where)) != DATASET_KIND:
        if chosen:
            return []
        raise DatasetError(
            f"{where}: is the manifest of a directory of {kind}, expected one of a {DATASET_KIND}"
        )
    manifest = parse_manifest(data, where)
    directory = storage.get_parent(where)
    if exact and not (manifest.dump() == data and _matches_md5sums(manifest, directory)):
        raise ManifestError(f"{where}: was edited: it is not what its own entries, or {MD5SUMS_NAME}, say")
    entries = {storage.join(directory, entry.name): entry for entry in manifest.shards}
    if not entries.keys() >= set(chosen):
        return []
    files = list(chosen or entries)
    misfits = zip(files, check_shard_sizes(directory, [entries[file] for file in files]), strict=True)
    wrong = [(file, misfit) for file, misfit in misfits if misfit and (exact or misfit.status == "missing")]
    if damaged:
        missing = {file for file, misfit in wrong if misfit.status == "missing"}
        files = [file for file in files if file not in missing]
    elif wrong:
        more = f" (and {len(wrong) - 1} more files at fault)" if wrong[1:] else ""
        raise ShardError(_format_misfit(*wrong[0], entries[wrong[0][0]]) + more)
    shards = [
        FoundShard(
            path=file,
            name=entries[file].name,
            bytes=entries[file].bytes,
            entry=entries[file],
            objective=manifest.plan.objective,
            padding_id=manifest.plan.settings.container.get("padding_id", 0),
        )
        for file in files
    ]
    return [FoundDataset(path=directory, manifest=manifest, shards=tuple(shards))]


def _matches_md5sums(manifest: Manifest, directory: str) -> bool:
    """Return False if the file MD5SUMS contradicts the manifest.

    Returns True if there is no such file.
    """
    try:
        found = storage.read_bytes(storage.join(directory, MD5SUMS_NAME))
    except MissingInputError:
        return True
    # Early versions wrote no line for the manifest.
    is_early = manifest.version_2 is not None
    return found == manifest.md5sums() or (is_early and found == format_md5sums(manifest.listed))


def _read_kind(manifest: bytes, where: str) -> str:
    """Return the type of directory that a manifest describes."""
    return str(parse_json(manifest, where).get("kind", DATASET_KIND))


def _format_misfit(path: str, misfit: Misfit, entry: ShardEntry) -> str:
    """Return the error message for a shard that differs from its manifest entry."""
    if misfit.status == "missing":
        listed = f"{MANIFEST_NAME} lists it with {entry.bytes} bytes and {entry.examples} examples"
        return f"{path}: is missing, {listed}"
    return f"{path}: found {misfit.found}, expected {misfit.expected}"


def _find_binarised(path: str, names: list[str]) -> list[str]:
    """Return the .bin files of a directory that fairseq wrote.

    If some of them are named train*, return only those.

    Raises DatasetError if there are none.
    """
    found = [name for name in names if name.endswith(".bin") and f"{name.removesuffix('.bin')}.idx" in names]
    if not found:
        raise DatasetError(f"{path}: holds no .bin with its .idx beside it, as fairseq-preprocess makes them")
    return [name for name in found if name.startswith("train")] or found


def _choose_shards(path: str, names: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Choose which files of a directory are shards.

    Returns the names of the shards. Also returns, by the reason, the names of files that were left out
    although they might look like shards.
    """
    saved, dropped = select_data_files(path, names)
    candidates = [name for name in saved if not is_hidden(storage.get_base_name(name))]
    named = [name for name in candidates if is_shard_name(name)]
    if DICTIONARY_NAME in names and not named:
        return _find_binarised(path, names), {}
    plain = [name for name in candidates if "." not in storage.get_base_name(name)]
    found = named or [name for name in plain if storage.get_base_name(name) != MD5SUMS_NAME]
    if not found:
        raise DatasetError(
            f"{path}: holds no dataset: neither {MANIFEST_NAME}, here or below, nor any file that is named "
            f"as a shard: .{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}"
        )
    hidden = [name for name in saved if is_shard_name(name) and name not in candidates]
    reasons = {HIDDEN: hidden, NOT_LISTED: dropped}
    return found, {reason: left_out for reason, left_out in reasons.items() if left_out}
