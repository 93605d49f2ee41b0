"""The output of ``--dry-run``: a list of the shards that a run would write or keep.

Nothing is written to the output directory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from bertdata.build.shard_task import ShardTask, Target, TaskPlan
from bertdata.config.dialects import find_dialect
from bertdata.dataset.manifest import InputEntry, compute_corpus_md5
from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.file_kind import check_beginning
from bertdata.io.terminal import NOTHING_WRITTEN, say


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardPreview:
    """Forecast of what a run would do with one shard.

    why: reason for writing the shard or for leaving it out. None means that the shard would be kept.
    text_bytes: size of the input text. It is 0 if the text does not exist yet. In a global shuffle, each
        shard counts with an equal share of all text.
    left_out: True if the shard would be left out, because its input cannot be read.
    """

    name: str
    source: str
    why: str | None
    text_bytes: float = 0
    left_out: bool = False

    def __str__(self) -> str:
        """Return the line that is printed for the shard."""
        told = f"  {'skip' if self.left_out else 'keep' if self.why is None else 'make'}  {self.name}"
        return f"{told}  from {self.source}" + (f"  {self.why}" if self.why else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """Forecast of what a run would do with each shard of one dataset directory."""

    target: Target
    shards: tuple[ShardPreview, ...]

    @property
    def directory(self) -> str:
        """Output directory of the dataset."""
        return self.target.dataset.directory

    @property
    def kept(self) -> int:
        """Number of shards that an earlier run has finished and that would be kept."""
        return sum(shard.why is None for shard in self.shards)

    @property
    def bytes_to_write(self) -> float:
        """Total size in bytes of the input text of all shards that would be written."""
        return sum(shard.text_bytes for shard in self.shards if shard.why is not None and not shard.left_out)

    def lines(self) -> list[str]:
        """Return the lines to print: the settings, the number of shards, then one line for each shard."""
        skipped = sum(shard.left_out for shard in self.shards)
        made = len(self.shards) - self.kept - skipped
        return [
            f"{self.directory}: {describe_settings(self.target)}",
            f"{self.directory}: {made} of {len(self.shards)} {self.target.settings.format} shards to make, "
            f"{self.kept} to keep" + (f", {skipped} to leave out" if skipped else ""),
            *map(str, self.shards),
        ]


def describe_settings(target: Target) -> str:
    """Return a line for the user with the dataset's recipe, its settings and its vocabulary."""
    plan = target.dataset.plan
    values = {**target.settings.as_json(), **plan.settings.by_name}
    settings = ", ".join(f"{name} {value}" for name, value in values.items() if name in plan.settings.by_name)
    vocabulary = plan.settings.vocabulary
    return f"{plan.title}: {settings}; vocabulary of {vocabulary['tokens']} tokens, md5 {vocabulary['md5']}"


def preview_shards(run: TaskPlan, parts: Sequence[str]) -> list[Preview]:
    """Return, for each dataset of the run, what would happen to each of its shards.

    parts: paths of the input files.
    """
    md5_of = cache(compute_file_md5)
    bad = _find_bad_parts(run, parts)
    found = []
    tasks = plan_tasks(run, parts)
    sizes = {part: storage.read_size(part) for part in parts if storage.exists(part)}
    for target in run.targets:
        target.dataset.refuse_others()
        shards: list[ShardPreview] = []
        for task in tasks:
            shards += _preview_task(task, target, bad, sizes, md5_of)
        found.append(Preview(target=target, shards=tuple(shards)))
    return found


def _preview_task(
    task: ShardTask,
    target: Target,
    bad: Mapping[str, str],
    sizes: Mapping[str, int],
    md5_of: Callable[[str], str],
) -> list[ShardPreview]:
    """Return what a task would do with its shards in one dataset.

    bad: reasons for leaving out parts, by path.
    sizes: sizes of the parts in bytes, by path.
    md5_of: function that returns the md5 of a part.
    """
    names, sources = task.shards(target), task.inputs
    reasons: list[str | None] = ["its part is yet to be made"] * len(names)
    if all(map(storage.exists, sources)):
        input_md5 = partial(_hash_input, task, md5_of)
        dataset = target.dataset
        reasons = [dataset.find_reason_to_remake(name, input_md5, dataset.read_entry(name)) for name in names]
    # A task writes all its files together. If one of them must be written, the others must be written too.
    if any(reasons):
        others = "the run's other files" if target.settings.files_of_run else "its part's other bins"
        reasons = [why or f"{others} are made anew" for why in reasons]
    left_out = task.number is None and sources[0] in bad
    if left_out:
        reasons = [bad[sources[0]]] * len(names)
    source = _describe_source(sources[0]) if task.number is None else f"{len(sources)} parts"
    shared_by = (target.dataset.plan.settings.num_shards or 1) * len(names)
    text_bytes = sum(sizes.get(part, 0) for part in sources) / shared_by
    return [
        ShardPreview(name=name, source=source, why=why, text_bytes=text_bytes, left_out=left_out)
        for name, why in zip(names, reasons, strict=True)
    ]


def _find_bad_parts(run: TaskPlan, parts: Sequence[str]) -> dict[str, str]:
    """Return the parts that the run would leave out, with the reasons.

    Only the beginning of each part is read.

    Raises InputError if there is such a part and the run does not allow parts to be left out.
    """
    dialect = run.tokenizer.dialect
    drops_bad_utf8 = dialect is not None and find_dialect(dialect).drops_bad_utf8

    def find_problem(part: str) -> InputError | None:
        try:
            if storage.exists(part):
                check_beginning(part, drops_bad_utf8=drops_bad_utf8)
        except InputError as error:
            return error
        return None

    found = {
        part: error
        for part, error in zip(parts, storage.map_paths(parts, find_problem), strict=True)
        if error
    }
    if found and not run.skip_bad:
        raise next(iter(found.values()))
    return {part: error.reason(part) for part, error in found.items()}


def plan_tasks(run: TaskPlan, parts: Sequence[str]) -> list[ShardTask]:
    """Return all tasks of a run. They are only meant to be inspected, not to be run.

    The tasks of a global shuffle do not contain their documents.
    """
    shards = run.targets[0].dataset.plan.settings.num_shards
    unknown = InputEntry(name="", bytes=0, md5="", documents=0, sentences=0, tokens=0)
    if run.targets[0].settings.files_of_run:
        return [run.make_run_task(unknown, parts)]
    if shards is None:
        return [run.make_part_task(part) for part in parts]
    return [run.make_shuffled_task(number, shards, unknown, inputs=parts) for number in range(shards)]


def _hash_input(task: ShardTask, md5_of: Callable[[str], str]) -> str:
    """Return the md5 that the manifest will record for the task's input."""
    if task.number is None:
        return md5_of(task.inputs[0])
    return compute_corpus_md5({task.plan.make_reader(part).name: md5_of(part) for part in task.inputs})


def _describe_source(part: str) -> str:
    """Return a text with the path of a part, and its size if the file exists."""
    return f"{part} ({storage.read_size(part)} bytes)" if storage.exists(part) else part


def show_previews(previews: Sequence[Preview], estimate: Sequence[str]) -> None:
    """Print what a run would do.

    estimate: lines about the size of the output and the time that the run would take.
    """
    for found in previews:
        say(*found.lines())
    say(*estimate, NOTHING_WRITTEN)
