"""The manifest of a dataset directory, which lists its shards, inputs and settings.

It contains no time, host name or path, so the same dataset always gets the same manifest.
``schemas/manifest.json`` defines its format.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.config.manifest_versions import (
    DATASET_VERSION,
    compute_settings_digest,
    convert_to_version_2,
    parse_dataset_json,
)
from bertdata.errors import ManifestError
from bertdata.io.file_check import FileEntry, check_safe_names, compute_md5
from bertdata.io.manifest_file import ListedFile, dump_json, format_md5sum_line, format_md5sums
from bertdata.shards.packed.record_index import index_name

DATASET_KIND = "dataset"
LENGTHS_ENDING = ".u16"
UNICODE_VERSION = "11.0.0"


@dataclass(frozen=True, kw_only=True, slots=True)
class InputEntry:
    """Manifest entry of a text file that the dataset was made from, with its size, md5 and counts.

    unknown_tokens: number of [UNK] tokens. None if the tokeniser has no such token, or if the version of
        bertdata that wrote the manifest did not count them.
    """

    name: str
    bytes: int
    md5: str
    documents: int
    sentences: int
    tokens: int
    unknown_tokens: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the entry as the manifest stores it, without counts that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardEntry:
    """Manifest entry of a shard, with its name, size, md5 and counts.

    input: name of the input that the shard was made from. Empty for a shard with examples of all inputs.
    content_md5: md5 of the shard's examples in a canonical TFRecord form. It is the same for all file
        formats.
    tokens: number of tokens in all examples, without padding.
    lengths_md5: md5 of the lengths file. None if the version of bertdata that wrote the manifest made no such
        file.
    rows: number of packed rows. None if each row is a single example.
    index_md5: md5 of the file that lists where the shard's records begin. None for layouts without such a
        file.
    lost_tokens: number of tokens of the shard's text that are in no example. If several shards come from one
        text, the first has the number for all of them and the others have 0. None if they were not counted.
    """

    name: str
    input: str
    bytes: int
    md5: str
    content_md5: str
    examples: int
    tokens: int
    masked_tokens: int
    lengths_md5: str | None = None
    rows: int | None = None
    index_md5: str | None = None
    lost_tokens: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the entry as the manifest stores it, without fields that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedEntry:
    """Manifest entry of an input that was left out because it cannot be read.

    reason: the error message without the path and without advice for the user.
    """

    name: str
    bytes: int
    md5: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetPlan:
    """The plan of a dataset: everything that decides its bytes, except the contents of its inputs.

    recipe: name of the recipe (the settings of a published data set) that was used, or None.
    packed_from: for a packed dataset, the md5 of the original dataset's manifest. None if this dataset is not
        packed, or if the original dataset had no manifest.
    """

    recipe: str | None
    phase: int | None
    settings: DatasetSettings
    inputs: tuple[str, ...]
    packed_from: str | None = None

    @property
    def objective(self) -> str | None:
        """Name of the examples' objective. It is None if the manifest does not record it."""
        return self.settings.objective_name

    @property
    def title(self) -> str:
        """Recipe and phase in words. It is the objective if no recipe was used."""
        name = self.recipe or self._without_recipe
        return name if self.phase is None else f"{name} phase {self.phase}"

    @property
    def _without_recipe(self) -> str:
        unverified = "unverified" if "unverified" in self.settings.objective else None
        return unverified or self.objective or "no recipe"

    def make_comparable_plan(self) -> dict[str, Any]:
        """Return the plan as a dictionary without nesting, for comparison with the plan of an unfinished
        directory.

        The keys are those of version 2 of the manifest. A run can therefore continue a directory that an
        older version of bertdata began.
        """
        shards = self.settings.num_shards
        return {
            **self.settings.by_name,
            "vocabulary": self.settings.vocabulary["md5"],
            "recipe": self.title,
            "shuffle": "none" if shards is None else f"global, {shards} shards",
            "inputs": list(self.inputs),
            **({} if self.packed_from is None else {"dataset_manifest": self.packed_from}),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The manifest of a finished dataset.

    The inputs in its plan include those that were left out. Its settings include the record ``text``, which
    names the sentence splitter.

    parts_manifest: md5 of the manifest that bertdata segment wrote beside the inputs. None if there was none.
    warnings: lines that say what was left out of the inputs, without the inputs' names.
    version_2: for a manifest that was read in version 2, its recipe and settings as that version stores them.
        None for the current version.
    """

    plan: DatasetPlan
    inputs: tuple[InputEntry, ...]
    shards: tuple[ShardEntry, ...]
    skipped: tuple[SkippedEntry, ...] = ()
    parts_manifest: str | None = None
    warnings: tuple[str, ...] = ()
    version_2: dict[str, Any] | None = None

    @property
    def punkt(self) -> dict[str, Any] | None:
        """Variant of the sentence splitter and the md5s of its tables. It is None if they are unknown."""
        found: dict[str, Any] | None = self.plan.settings.text["punkt"]
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the manifest, in the version in which the manifest was read."""
        value = self._make_head() | self._make_contents()
        return value if self.version_2 is None else convert_to_version_2(value, **self.version_2)

    def _make_head(self) -> dict[str, Any]:
        """Return the first part of the JSON: version, recipe, settings and md5s of earlier manifests."""
        plan, settings = self.plan, self.plan.settings.as_json()
        cited = {} if plan.packed_from is None else {"dataset_manifest": plan.packed_from}
        return {
            "format_version": DATASET_VERSION,
            "kind": DATASET_KIND,
            "recipe": plan.recipe,
            "phase": plan.phase,
            "settings": settings,
            "settings_digest": compute_settings_digest(settings),
            "unicode_version": UNICODE_VERSION,
            **cited,
            "parts_manifest": self.parts_manifest,
        }

    def _make_contents(self) -> dict[str, Any]:
        """Return the second part of the JSON: inputs, shards and totals."""
        skipped = {"skipped": [asdict(entry) for entry in self.skipped]} if self.skipped else {}
        warnings = {"warnings": list(self.warnings)} if self.warnings else {}
        lost = {} if self.lost_tokens is None else {"lost_tokens": self.lost_tokens}
        return {
            "inputs": [entry.as_json() for entry in self.inputs],
            **skipped,
            **warnings,
            "shards": [entry.as_json() for entry in self.shards],
            "totals": {
                name: sum(getattr(shard, name) for shard in self.shards)
                for name in ("bytes", "examples", "tokens", "masked_tokens")
            }
            | lost,
        }

    @property
    def lost_tokens(self) -> int | None:
        """Number of tokens of the inputs that are in no example.

        It is None unless all shards have this number.
        """
        counts = [shard.lost_tokens for shard in self.shards]
        known = [count for count in counts if count is not None]
        return sum(known) if counts and len(known) == len(counts) else None

    def entries(self) -> dict[str, tuple[InputEntry, ShardEntry]]:
        """Return, for the name of each shard, the entry of its input and the entry of the shard.

        A shard with examples of all inputs gets an entry that sums up all inputs (make_corpus_entry). Shards
        of converted datasets whose inputs are unknown are left out.
        """
        inputs = {entry.name: entry for entry in self.inputs}
        if self.plan.settings.is_of_all_inputs:
            inputs[""] = make_corpus_entry(self.inputs, self.skipped)
        return {shard.name: (inputs[shard.input], shard) for shard in self.shards if shard.input in inputs}

    @property
    def listed(self) -> tuple[ListedFile, ...]:
        """The files that MD5SUMS lists, except the manifest.

        They are all shards, then all lengths files, then all index files.
        """
        beside = (make_lengths_entry, make_index_entry)
        found = (entry for entry_of in beside for shard in self.shards if (entry := entry_of(shard)))
        return (*self.shards, *found)

    def dump(self) -> bytes:
        return dump_json(self.as_json())

    def md5sums(self) -> bytes:
        """Return the contents of the file MD5SUMS, in the format of the program md5sum."""
        return format_md5sums(self.listed, self.dump())


def make_lengths_name(shard: str) -> str:
    """Return the name of a shard's lengths file, which holds the number of tokens of each example."""
    return f"lengths/{shard}{LENGTHS_ENDING}"


def make_lengths_entry(shard: ShardEntry) -> FileEntry | None:
    """Return the manifest entry of the shard's lengths file, or None if the shard has no lengths file."""
    if shard.lengths_md5 is None:
        return None
    return FileEntry(name=make_lengths_name(shard.name), bytes=2 * shard.examples, md5=shard.lengths_md5)


class _UnsizedFile(NamedTuple):
    """Name and md5 of a file whose size the manifest does not store."""

    name: str
    md5: str


def make_index_entry(shard: ShardEntry) -> ListedFile | None:
    """Return the name and md5 of the shard's index file, or None if the shard has no index file."""
    return None if shard.index_md5 is None else _UnsizedFile(index_name(shard.name), shard.index_md5)


def make_corpus_entry(inputs: Iterable[InputEntry], skipped: Iterable[SkippedEntry]) -> InputEntry:
    """Return a single entry without a name that sums up all inputs of a dataset.

    Shards with examples of all inputs refer to this entry. Its counts are sums over the inputs that were
    read. Its md5 also depends on the inputs that were left out.
    """
    read = tuple(inputs)
    counts: dict[str, Any] = {
        name: sum(getattr(entry, name) for entry in read)
        for name in ("bytes", "documents", "sentences", "tokens")
    }
    counts["unknown_tokens"] = count_unknown_tokens(read)
    md5s = {entry.name: entry.md5 for entry in read} | {entry.name: entry.md5 for entry in skipped}
    return InputEntry(name="", md5=compute_corpus_md5(md5s), **counts)


def count_unknown_tokens(inputs: Iterable[InputEntry]) -> int | None:
    """Return the number of [UNK] tokens in all inputs. Returns None unless all entries have this number."""
    counts = [entry.unknown_tokens for entry in inputs]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def compute_corpus_md5(md5s: Mapping[str, str]) -> str:
    """Return one md5 for several inputs: the md5 of a list of their md5s and names, as md5sum prints it.

    The list is sorted by name.
    """
    lines = "".join(format_md5sum_line(md5s[name], name) for name in sorted(md5s))
    return compute_md5(lines.encode())


def format_summary(directory: str, manifest: dict[str, Any]) -> str:
    """Return a one-line summary of a finished dataset from its manifest's JSON."""
    totals = manifest["totals"]
    line = (
        f"{directory}: {len(manifest['shards'])} shards, {totals['examples']} examples, "
        f"{totals['tokens']} tokens, {totals['masked_tokens']} masked, {totals['bytes']} bytes"
    )
    lost, of_inputs = totals.get("lost_tokens"), sum(entry["tokens"] for entry in manifest["inputs"])
    if lost:
        share = lost / of_inputs
        line += (
            f", {share:.1%} of the text in no example"
            if share >= 0.001
            else ", under 0.1% of the text in no example"
        )
    return line + format_skipped_note(len(manifest.get("skipped", ())))


def format_skipped_note(inputs: int) -> str:
    """Return the end of a summary line that says how many inputs were left out.

    The text is empty if no input was left out.
    """
    return f", {inputs} bad {'input' if inputs == 1 else 'inputs'} left out" if inputs else ""


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Parse a dataset's manifest and check it against its schema.

    where: path of the manifest, for error messages.

    Raises ManifestError, which says what does not fit.
    """
    value, version_2 = parse_dataset_json(data, where)
    inputs = tuple(_parse_entry(InputEntry, item) for item in value["inputs"])
    shards = tuple(_parse_entry(ShardEntry, item) for item in value["shards"])
    skipped = tuple(_parse_entry(SkippedEntry, item) for item in value.get("skipped", ()))
    check_safe_names((shard.name for shard in shards), where)
    names = {entry.name for entry in inputs}
    for shard in shards:
        if shard.input and shard.input not in names:
            raise ManifestError(
                f"{where}: shard {shard.name} is made from {shard.input!r}, which is no input of it"
            )
    given = tuple(entry.name for entry in inputs)
    if skipped:
        given = tuple(sorted((*given, *(entry.name for entry in skipped))))
    return Manifest(
        plan=_parse_plan(value, given),
        inputs=inputs,
        shards=shards,
        skipped=skipped,
        parts_manifest=value["parts_manifest"],
        warnings=tuple(value.get("warnings", ())),
        version_2=version_2 and {name: version_2[name] for name in ("recipe", "settings")},
    )


def _parse_plan(value: dict[str, Any], inputs: tuple[str, ...]) -> DatasetPlan:
    return DatasetPlan(
        recipe=value["recipe"],
        phase=value["phase"],
        settings=DatasetSettings(**value["settings"]),
        inputs=inputs,
        packed_from=value.get("dataset_manifest"),
    )


def _parse_entry(kind: type[Any], item: dict[str, Any]) -> Any:
    return kind(**{column.name: item[column.name] for column in fields(kind) if column.name in item})
