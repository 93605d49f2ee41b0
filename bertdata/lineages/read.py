"""Reading the lineage of any artefact, such as a dataset, a run or an exported model."""

from collections.abc import Sequence
from dataclasses import replace

from bertdata.dataset.discover import find_manifest_directories
from bertdata.errors import ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.io.listing import list_inputs
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.lineages.any_step import StepMaker
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.exported_model import LINEAGE_NAME, read_export_record
from bertdata.lineages.run_state import CHECKPOINTS, STATE_NAME, parse_run_state
from bertdata.lineages.step import Lineage, Step
from bertdata.tokens.training.manifest import make_manifest_path

_MOST_FOLDERS = 3
"""Largest number of folders between a file and the directory whose record lists it, plus 1."""

_EXPECTED = (
    f"expected a directory with a {MANIFEST_NAME} (dataset, parts or articles), a run or a checkpoint, a "
    f"model with a {LINEAGE_NAME}, a file in such a directory, or a vocabulary with its manifest"
)


def read_lineage(path: str) -> Lineage:
    """Return the lineage of an artefact: every step that led to it, as far as their records are at hand.

    path: path or URL of the artefact. It may be a directory that a step wrote, a directory that contains
        such directories (for example the two phases of a recipe), or a file in a directory that a step wrote.
        A run means its best checkpoint if it looks for it (keep_best), otherwise its newest checkpoint.

    Raises MissingInputError if there is nothing at the path, and ManifestError if there is no record of how
    it was made, or if the record is damaged.
    """
    given = path.rstrip("/") or path
    if not storage.exists(given):
        raise MissingInputError(f"{path}: no such file or directory")
    documents = RecordDocuments()
    maker = StepMaker(documents)
    is_directory = storage.is_directory(given)
    results = _read_directory(given, maker) if is_directory else [_read_file(given, maker)]
    lineage = Lineage(path=path, results=tuple(results), documents=documents)
    # Nothing cites the manifest of a vocabulary, so a damaged copy of it would otherwise be passed over.
    cited = {one.record for step in lineage.list_steps() for one in step.inputs if one.record is not None}
    damaged = documents.list_damaged_copies(cited)
    if damaged:
        first = replace(results[0], faults=(*results[0].faults, *damaged))
        lineage = replace(lineage, results=(first, *results[1:]))
    return lineage


def _read_directory(directory: str, maker: StepMaker) -> list[Step]:
    """Return the last steps of a directory: one, or one for each directory in it that has a manifest."""
    if read_export_record(directory) is not None:
        return [_read_record(storage.join(directory, LINEAGE_NAME), directory, maker)]
    if storage.exists(storage.join(directory, MANIFEST_NAME)):
        return [_read_record(storage.join(directory, MANIFEST_NAME), directory, maker)]
    if storage.exists(storage.join(directory, STATE_NAME)):
        return [_read_checkpoint(directory, maker)]
    names = list_inputs(directory, hidden=True).names
    if any(name.startswith(f"{CHECKPOINTS}/") for name in names):
        chosen = storage.join(directory, _choose_checkpoint(directory, names))
        return [_read_checkpoint(chosen, maker)]
    inner = find_manifest_directories(names)
    if not inner:
        raise ManifestError(f"{directory}: has no record of how it was made; {_EXPECTED}")
    found = [storage.join(directory, name) for name in inner]
    return [_read_record(storage.join(one, MANIFEST_NAME), one, maker) for one in found]


def _read_record(path: str, directory: str, maker: StepMaker) -> Step:
    """Return the step of a record that lies in the directory that the step wrote."""
    maker.documents.add_directory(directory)
    return maker.make(storage.read_bytes(path), path, directory)


def _read_checkpoint(directory: str, maker: StepMaker) -> Step:
    """Return the step that wrote a checkpoint. The records of its data are in the directory of its run."""
    path = storage.join(directory, STATE_NAME)
    parent = storage.get_parent(directory)
    run = storage.get_parent(parent) if storage.get_base_name(parent) == CHECKPOINTS else ""
    maker.documents.add_directory(directory)
    if run:
        maker.documents.add_directory(run)
    return maker.make(storage.read_bytes(path), path, directory, run)


def _choose_checkpoint(run: str, names: Sequence[str]) -> str:
    """Return the path of a checkpoint within a run's directory.

    It is the checkpoint of the best evaluation if the newest one names it, otherwise the newest.
    names: names of all files below the run's directory.
    """
    found = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        ending = folder.rpartition("/step-")[2]
        if file == STATE_NAME and folder.startswith(f"{CHECKPOINTS}/step-") and ending.isdecimal():
            found[int(ending)] = folder
    if not found:
        raise MissingInputError(f"{storage.join(run, CHECKPOINTS)}: holds no whole checkpoint")
    newest = found[max(found)]
    path = storage.join(storage.join(run, newest), STATE_NAME)
    best = parse_run_state(storage.read_bytes(path), path).get("best") or {}
    return found.get(best.get("number", -1), newest)


def _read_file(path: str, maker: StepMaker) -> Step:
    """Return the step that wrote a file. Of a shard or part, only this file is listed among the outputs."""
    beside = make_manifest_path(path)
    if storage.exists(beside):
        return maker.make(storage.read_bytes(beside), beside, path)
    if path.endswith(".manifest.json"):
        return maker.make(storage.read_bytes(path), path, path.removesuffix(".manifest.json"))
    directory = _find_directory_of(path)
    [step] = _read_directory(directory, maker)
    inside = path if directory == "." else path[len(directory.rstrip("/")) + 1 :]
    if inside in (MANIFEST_NAME, LINEAGE_NAME, STATE_NAME):
        return step
    return _narrow_to_file(step, inside, path)


def _find_directory_of(path: str) -> str:
    """Return the directory with a record to which a file belongs.

    Articles are in folders such as AA below it, and lengths files in the folder ``lengths``.

    Raises ManifestError if there is no such directory.
    """
    directory = path
    for _ in range(_MOST_FOLDERS):
        directory = storage.get_parent(directory)
        if any(storage.exists(storage.join(directory, name)) for name in (MANIFEST_NAME, STATE_NAME)):
            return directory
        if read_export_record(directory) is not None:  # not the lineage.json of another program
            return directory
    raise ManifestError(f"{path}: has no record of how it was made; {_EXPECTED}")


def _narrow_to_file(step: Step, name: str, path: str) -> Step:
    """Return the step with one of its files as the only output.

    Raises ManifestError if the step has not written the file.
    """
    chosen = tuple(file for file in step.outputs if file.name == name)
    if not chosen:
        raise ManifestError(f"{path}: is not listed by the record of the directory {step.path}")
    return replace(step, path=path, outputs=chosen)
