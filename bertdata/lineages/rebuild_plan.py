"""The plan of a rebuild: which commands make a lineage's steps again, where, and from which files."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from bertdata.dataset.mixture.weights import split_paths
from bertdata.errors import ManifestError, SettingsError
from bertdata.io import storage
from bertdata.io.file_check import check_safe_names
from bertdata.io.real_paths import find_local_path
from bertdata.lineages.commands.command import Command, Places
from bertdata.lineages.commands.data_commands import (
    make_binarise_words,
    make_convert_words,
    make_create_words,
    make_extract_words,
    make_pack_words,
    make_segment_words,
    make_vocabulary_words,
)
from bertdata.lineages.commands.run_commands import list_datasets, make_export_command, make_run_commands
from bertdata.lineages.flag_files import FOLDER_ROLES, MODEL_CONFIGURATION, VOCABULARY
from bertdata.lineages.run_state import CHECKPOINTS, FROM_PHASE_1
from bertdata.lineages.sources import NeededFile, SourceFiles, find_source_files, list_needed_files
from bertdata.lineages.step import (
    BINARISE,
    CONVERT,
    CREATE,
    EXPORT,
    EXTRACT,
    FEATURES,
    FINETUNE,
    PACK,
    PRETRAIN,
    SEGMENT,
    TRAIN_VOCAB,
    Lineage,
    LineageFile,
    Step,
)
from bertdata.tokens.files import TOKENIZER_NAME
from bertdata.tokens.training.manifest import make_manifest_path
from schemas import load_schema

_MAKERS = {
    EXTRACT: make_extract_words,
    SEGMENT: make_segment_words,
    TRAIN_VOCAB: make_vocabulary_words,
    CREATE: make_create_words,
    PACK: make_pack_words,
    CONVERT: make_convert_words,
    BINARISE: make_binarise_words,
}
"""The function that makes the command line of each step on data."""

_FOLDERS = {
    EXTRACT: "articles",
    SEGMENT: "parts",
    CREATE: "dataset",
    PACK: "packed",
    CONVERT: "converted",
    BINARISE: "binarised",
    PRETRAIN: "run",
    FINETUNE: "fine-tuned",
    EXPORT: "model",
}
"""The folder of each step in the output directory. A second step of the same name gets the folder NAME-2."""

_NAMELESS_ROLES = (VOCABULARY, MODEL_CONFIGURATION, "abbreviations", "start")
"""Roles of sources whose file names change nothing."""
_RUN_DATA = {"training data": "train_data", "evaluation data": "eval_data"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A symbolic link to a source, under the name that the source had when the step read it."""

    source: str
    path: str

    def __str__(self) -> str:
        """Return the commands that make the link, as a line for a shell."""
        folder = shlex.quote(os.path.dirname(self.path))
        return f"mkdir -p {folder} && {shlex.join(['ln', '-sf', self.source, self.path])}"

    def make(self) -> None:
        """Make the link. One that an earlier rebuild has made is replaced."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if os.path.islink(self.path):
            os.remove(self.path)
        os.symlink(self.source, self.path)


@dataclass(frozen=True, kw_only=True, slots=True)
class RebuildPlan:
    """The commands of a rebuild, in the order in which they must run.

    links: links to sources whose names differ from those that the steps have read.
    places: the paths of sources and rebuilt files.
    output: directory for everything that is made.
    notes: lines for the user about steps that are not made again.
    """

    lineage: Lineage
    links: tuple[Link, ...]
    commands: tuple[Command, ...]
    places: Places
    output: str
    notes: tuple[str, ...] = ()

    def list_lines(self) -> list[str]:
        """Return the commands as lines for a shell."""
        folder = [] if storage.is_remote(self.output) else [shlex.join(["mkdir", "-p", self.output])]
        return [*folder, *map(str, self.links), *map(str, self.commands)]


def plan_rebuild(
    lineage: Lineage, sources: Sequence[str], output: str, trusted: Sequence[str] = ()
) -> RebuildPlan:
    """Return the plan that makes every step of a lineage again.

    sources: the dump, text files, or directories and patterns that contain them.
    output: directory for everything that is made.
    trusted: code of the user that commands may import, each as package.module:NAME.

    Raises ManifestError if the lineage has faults or cannot be followed to its sources, InputError or
    MissingInputError if a source is not the recorded file or missing, and SettingsError if a step has no
    command, or needs code that is not trusted.
    """
    if lineage.faults:
        raise ManifestError(f"{lineage.faults[0]}; only a lineage without faults can be rebuilt")
    steps = lineage.list_steps()
    _check_names(steps)
    _refuse_untrusted_code(steps, trusted)
    files, beside = SourceFiles(sources), _find_kept_files(lineage)
    kept = _find_kept_vocabularies(lineage, files, beside)
    is_tuned = any(step.name == FINETUNE for step in steps)
    read = [step for step in steps if step.record not in kept]
    made = [step for step in read if not (is_tuned and step.name == FEATURES)]
    _refuse_gaps(read)
    needed = list_needed_files(read)
    found = find_source_files(needed, files, beside)
    links = _make_links(needed, found, output)
    linked = {file: link.path for file, link in links.items()}
    folders = _place_folders(read, output)
    together = _make_folder_links(read, found, folders)
    places = Places(_place_outputs(made, output), {**found, **linked}, kept, folders)
    return RebuildPlan(
        lineage=lineage,
        links=(*links.values(), *together),
        commands=tuple(command for step in made for command in _make_commands(step, places)),
        places=places,
        output=output,
        notes=tuple(
            f"{path}: is taken as the vocabulary and not trained again, since the sources lack its texts"
            for path in kept.values()
        ),
    )


def _find_kept_vocabularies(lineage: Lineage, files: SourceFiles, beside: SourceFiles) -> dict[str, str]:
    """Return the path of each vocabulary that cannot be trained again, by the record of its training.

    The sources lack its texts, but they or the artefact have the vocabulary itself.

    files: the files in the sources.
    beside: the files that the artefact keeps.
    """
    found = {}
    for step in lineage.list_steps():
        if step.name != TRAIN_VOCAB or step in lineage.results:
            continue
        texts = [file for one in step.inputs if one.made_by is None for file in one.files]
        is_known = all(one.made_by is not None or one.source for one in step.inputs)
        if is_known and all(files.find(file) is not None for file in texts):
            continue
        path = files.find(step.outputs[0]) or beside.find(step.outputs[0])
        if path is not None:
            found[step.record] = path
    return found


def _make_commands(step: Step, places: Places) -> Iterable[Command]:
    """Return the commands that make a step again."""
    if step.name == FEATURES:
        raise SettingsError(
            f"{step.program}, record {step.record}: a run makes these features of a fine-tuning task; "
            "rebuild the run"
        )
    output = places.get_output(step)
    if step.name in (PRETRAIN, FINETUNE):
        return make_run_commands(step, places, output)
    if step.name == EXPORT:
        return [make_export_command(step, places, output)]
    words = _MAKERS[step.name](step, places, output)
    done = make_manifest_path(output) if step.name == TRAIN_VOCAB else ""
    return [Command(words=tuple(words), step=step, output=output, done=done)]


def _refuse_gaps(steps: Sequence[Step]) -> None:
    """Raise ManifestError for the first input that leads neither to a step nor to a source.

    A training step without files is refused too. Nothing of it could be compared, so it would count as equal.
    """
    for step in steps:
        if step.name in (PRETRAIN, FINETUNE) and not step.outputs:
            raise ManifestError(
                f"{step.program}, record {step.record}: lists no file that it wrote, expected weights"
            )
        for one in step.inputs:
            is_generated = step.settings.get("generated_data") and one.role == "training data"
            if one.made_by is None and not one.source and not is_generated:
                raise ManifestError(
                    f"{step.program}, record {step.record}: {one.role}: {one.remark}; without it nothing "
                    "after it can be rebuilt"
                )


def _check_names(steps: Iterable[Step]) -> None:
    """Raise ManifestError if a record names a file outside of its directory."""
    for step in steps:
        where = f"{step.program}, record {step.record}"
        check_safe_names((file.name for file in step.outputs), where)
        check_safe_names((file.name for one in step.inputs for file in one.files), where)


def _refuse_untrusted_code(steps: Iterable[Step], trusted: Sequence[str]) -> None:
    """Raise SettingsError if a step names code to import that the user has not named.

    A record comes from others, and must not choose which code runs here. Every name with a colon counts as
    code, because the programs import the module before the colon, whatever its spelling.
    """
    for step in steps:
        for name in _list_code_names(step):
            if isinstance(name, str) and ":" in name and name not in trusted:
                raise SettingsError(
                    f"{step.program}, record {step.record}: was made with the code {name}, and no file may "
                    f"choose code to import; if you trust that code, give --trust {name}"
                )


def _list_code_names(step: Step) -> Iterator[Any]:
    """Yield each value in a step's record that its command may take for the name of code."""
    if step.name == EXPORT:
        yield step.settings.get("task")
    if step.name not in (PRETRAIN, FINETUNE):
        objective = step.settings.get("objective")
        yield objective.get("name") if isinstance(objective, dict) else None
        return
    known = load_schema("trainer")["properties"]
    # Flags are made from the settings of the run, of its model, and of every earlier part of the run.
    history = [part.get("settings", {}) for part in step.facts.get("history", ())]
    for settings in (step.settings, step.settings.get("model", {}), *history):
        for key, value in settings.items():
            if key == "objective" or "pattern" in known.get(key, {}):
                yield value


def _find_kept_files(lineage: Lineage) -> SourceFiles:
    """Return the files that lie next to the artefact's records, such as copies of vocabularies."""
    paths = dict.fromkeys(
        storage.join(directory, name)
        for step in lineage.results
        for directory in _list_directories(step.path or lineage.path)
        for name in ("vocab.txt", "tokenizer.json")
    )
    return SourceFiles([path for path in paths if storage.exists(path)])


def _list_directories(path: str) -> list[str]:
    """Return the directory of an artefact and, for a checkpoint, that of its run."""
    directory = path if storage.is_directory(path) else storage.get_parent(path)
    above = storage.get_parent(directory)
    is_checkpoint = storage.get_base_name(above) == CHECKPOINTS
    return [directory, storage.get_parent(above)] if is_checkpoint else [directory]


def _make_links(
    needed: Sequence[NeededFile], found: dict[LineageFile, str], output: str
) -> dict[LineageFile, Link]:
    """Return a link for each source whose name differs from the recorded one.

    Raises SettingsError if a link would be needed in remote storage.
    """
    folders: dict[tuple[str, str], str] = {}
    links: dict[LineageFile, Link] = {}
    for one in needed:
        path, name = found[one.file], one.file.name
        if one.role in FOLDER_ROLES or storage.get_base_name(path) == name:
            continue
        # A tokenizer.json of this name would be read together with the files next to it.
        if one.role in _NAMELESS_ROLES and storage.get_base_name(path) != TOKENIZER_NAME:
            continue
        key = (one.step.record, one.role)
        folder = folders.setdefault(key, storage.join(output, f"sources/{len(folders) + 1}"))
        target, local = storage.join(folder, name), find_local_path(path)
        if local is None or storage.is_remote(output):
            raise SettingsError(f"{path}: was called {name} when it was read; give it that name")
        links[one.file] = Link(source=os.path.abspath(local), path=target)
    return links


def _place_folders(steps: Sequence[Step], output: str) -> dict[tuple[str, str], str]:
    """Return a directory for each input whose files must lie together, by the step's record and the role."""
    keys = [(step.record, one.role) for step in steps for one in step.inputs if one.role in FOLDER_ROLES]
    return {
        key: storage.join(output, f"sources/tokeniser-{number}")
        for number, key in enumerate(dict.fromkeys(keys), 1)
    }


def _make_folder_links(
    steps: Sequence[Step], found: Mapping[LineageFile, str], folders: Mapping[tuple[str, str], str]
) -> list[Link]:
    """Return links to the files of inputs that must lie together, under the names that they had.

    found: the path of each file.
    folders: the directories for the links.

    Raises SettingsError if a link would be needed in remote storage, or to it.
    """
    links = []
    for step in steps:
        for one in step.inputs:
            folder = folders.get((step.record, one.role), "")
            for file in one.files if folder else ():
                path = found[file]
                local = find_local_path(path)
                if local is None or storage.is_remote(folder):
                    raise SettingsError(
                        f"{path}: is linked next to the other files of its tokeniser, so it and the output "
                        "must be on this machine"
                    )
                links.append(Link(source=os.path.abspath(local), path=storage.join(folder, file.name)))
    return links


def _place_outputs(steps: Sequence[Step], output: str) -> dict[str, str]:
    """Return the file or directory that each step is to write, by its record.

    Several datasets of one run keep their paths relative to each other, since the names of shards, which may
    decide masks, are relative to the folder of all datasets. Phase 2 of a run is written to phase 1's
    directory.
    """
    found: dict[str, str] = {}
    for step in steps:
        for role, key in _RUN_DATA.items():
            given = step.settings.get(key) if step.name == PRETRAIN else None
            if isinstance(given, str):
                _place_mixture(step, role, given, output, found)
    used = set(found.values())
    for step in steps:
        if step.record in found or step.name not in (TRAIN_VOCAB, *_FOLDERS):
            continue
        start = next((one.made_by for one in step.inputs if one.role == "start"), None)
        if step.facts.get("started") == FROM_PHASE_1 and start is not None:
            found[step.record] = found[start.record]
            continue
        is_file = step.name == TRAIN_VOCAB
        stem, dot, ending = step.outputs[0].name.partition(".") if is_file else (_FOLDERS[step.name], "", "")
        names = (f"{stem}{f'-{number}' if number > 1 else ''}{dot}{ending}" for number in count(1))
        place = next(path for name in names if (path := storage.join(output, name)) not in used)
        used.add(place)
        found[step.record] = place
    return found


def _place_mixture(step: Step, role: str, given: str, output: str, found: dict[str, str]) -> None:
    """Place the datasets of a run that reads several, with the relative paths that the run has named.

    given: the paths as the run names them.
    found: the place of each step by its record, to which the datasets are added.
    """
    datasets, paths = list_datasets(step, role), split_paths(given)
    if len(datasets) < 2 or len(datasets) != len(paths):
        return
    # "demo/hdf5/phase1" and "demo/corpus/phase1" become data/hdf5/phase1 and data/corpus/phase1
    folders = [storage.get_parent(path) if any(mark in path for mark in "*?[") else path for path in paths]
    split = [[part for part in path.split("/") if part not in ("", ".")] for path in folders]
    shared = len(os.path.commonprefix(split))  # noqa: RUF071 - of lists
    for one, parts in zip(datasets, split, strict=True):
        inside = "/".join(parts[shared:])
        if one.made_by is not None and inside and ".." not in parts:
            found.setdefault(one.made_by.record, storage.join(output, f"data/{inside}"))
