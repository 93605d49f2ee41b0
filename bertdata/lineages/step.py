"""The data model of a lineage: steps, the files that they read and wrote, and how the steps are connected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertdata.io.file_check import compute_md5
from bertdata.io.manifest_file import format_md5sum_line
from bertdata.lineages.documents import RecordDocuments

EXTRACT = "extract"
SEGMENT = "segment"
TRAIN_VOCAB = "train-vocab"
CREATE = "create"
PACK = "pack"
CONVERT = "convert"
BINARISE = "binarise"
FEATURES = "features"
PRETRAIN = "pretrain"
FINETUNE = "finetune"
EXPORT = "export"
STEP_NAMES = {
    EXTRACT: "bertdata extract",
    SEGMENT: "bertdata segment",
    TRAIN_VOCAB: "bertdata train-vocab",
    CREATE: "bertdata create",
    PACK: "bertdata pack",
    CONVERT: "bertdata convert",
    BINARISE: "bertdata convert",
    FEATURES: "python -m trainer features",
    PRETRAIN: "python -m trainer pretrain",
    FINETUNE: "python -m trainer finetune",
    EXPORT: "python -m trainer convert",
}
"""The program that makes a step, by the step's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageFile:
    """A file that a step has read or written, as the step's record lists it.

    md5: md5 of the file, or None if the record does not contain it.
    bytes: size of the file, or None if the record does not contain it.
    """

    name: str
    md5: str | None = None
    bytes: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the file as a JSON object, without values that are not known."""
        known = {"bytes": self.bytes, "md5": self.md5}
        return {"name": self.name} | {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """Files that a step has read for one purpose, and the step that wrote them.

    role: what the step used the files for, such as "dump", "articles", "parts", "vocabulary", "training data"
        or "start".
    files: the files. Empty if no record lists them.
    record: md5 of the record (a manifest or a state) that the step cites for these files. None if it cites
        none.
    made_by: the step that wrote the files. None if the tree ends here.
    source: True if the files are where the lineage begins: the dump, or files of the user. A rebuild looks
        for them in the sources that it is given.
    remark: why the files are not followed further, or what must be known about them. Empty if there is
        nothing to say.
    is_fault: True if the remark is a fault, such as a damaged copy of a manifest.
    """

    role: str
    files: tuple[LineageFile, ...] = ()
    record: str | None = None
    made_by: "Step | None" = None
    source: bool = False
    remark: str = ""
    is_fault: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Step of a lineage: a command that read inputs and wrote outputs, as its record describes it.

    name: name of the step, one of STEP_NAMES.
    path: path or URL of what the step wrote. Empty if only a copy of its record is at hand.
    record: md5 of the step's record: its manifest, the state of a checkpoint, or the file of an exported
        model.
    settings: every setting that decides the outputs, as the record stores it.
    versions: version of each program and table that decides the outputs, by its name.
    outputs: the files that the step wrote.
    facts: further facts for the reader, such as the number of updates, by name.
    faults: what is wrong with this step, such as a file that no longer has the recorded md5.
    """

    name: str
    path: str = ""
    record: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    outputs: tuple[LineageFile, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The program that makes this step, such as "bertdata create"."""
        return STEP_NAMES[self.name]

    @property
    def all_faults(self) -> list[str]:
        """The faults of the step and of its inputs. Faults of earlier steps are not among them."""
        return [*self.faults, *(one.remark for one in self.inputs if one.is_fault)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    """The lineage of an artefact.

    path: the artefact, as the user named it.
    results: the last steps. There are several if the path is a directory with several datasets.
    documents: the records of the steps.
    """

    path: str
    results: tuple[Step, ...]
    documents: RecordDocuments = field(default_factory=RecordDocuments, compare=False, repr=False)

    def list_steps(self) -> list[Step]:
        """Return every step once, each after the steps that made its inputs."""
        found: dict[tuple[str, str], Step] = {}
        for step in self.results:
            _collect(step, found)
        return list(found.values())

    @property
    def faults(self) -> list[str]:
        """The faults of all steps, such as damaged copies of manifests."""
        return list(dict.fromkeys(fault for step in self.list_steps() for fault in step.all_faults))

    def as_json(self) -> dict[str, Any]:
        """Return the lineage as a JSON object.

        Each step is listed once, and an input names the step that made it by the md5 of its record.
        """
        return {
            "path": self.path,
            "sound": not self.faults,
            "results": [step.record for step in self.results],
            "steps": [_make_step_json(step) for step in self.list_steps()],
        }


def _collect(step: Step, found: dict[tuple[str, str], Step]) -> None:
    """Add a step to the steps that were found, after the steps that made its inputs."""
    key = (step.name, step.record)
    if key in found:
        return
    for one in step.inputs:
        if one.made_by is not None:
            _collect(one.made_by, found)
    found[key] = step


def _make_step_json(step: Step) -> dict[str, Any]:
    """Return a step as a JSON object, without the steps that made its inputs."""
    return {
        "step": step.name,
        "program": step.program,
        "path": step.path,
        "record": step.record,
        "settings": dict(step.settings),
        "versions": dict(step.versions),
        "facts": dict(step.facts),
        "inputs": [_make_input_json(one) for one in step.inputs],
        "outputs": [file.as_json() for file in step.outputs],
        "faults": list(step.faults),
    }


def _make_input_json(given: Input) -> dict[str, Any]:
    """Return an input as a JSON object. ``made_by`` is the md5 of the record of the step that made it."""
    return {
        "role": given.role,
        "files": [file.as_json() for file in given.files],
        "record": given.record,
        "made_by": None if given.made_by is None else given.made_by.record,
        "source": given.source,
        "remark": given.remark,
        "is_fault": given.is_fault,
    }


def compute_files_md5(files: Sequence[LineageFile]) -> str:
    """Return one md5 for several files: the md5 of the list that md5sum prints for them, sorted by name."""
    lines = sorted((file.name, file.md5 or "-") for file in files)
    return compute_md5("".join(format_md5sum_line(md5, name) for name, md5 in lines).encode())
