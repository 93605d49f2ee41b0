"""The manifest of a dataset directory: contents, inputs and settings.

Deterministic: no clock, no host, no path. Declared in ``schemas/manifest.json``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.config.manifest_versions import (
    DATASET_VERSION,
    as_version_2,
    parse_dataset_json,
    settings_digest,
)
from bertdata.errors import ManifestError
from bertdata.io.file_check import FileEntry, check_safe_names, md5_of
from bertdata.io.manifest_file import Listed, dump_json, md5sum_line, md5sums
from bertdata.shards.packed.record_index import index_name

KIND = "dataset"
LENGTHS_ENDING = ".u16"
UNICODE_VERSION = "11.0.0"


@dataclass(frozen=True, kw_only=True, slots=True)
class InputEntry:
    """One input part: its bytes, and what the tokeniser found in it.

    unknown_tokens: tokens that are [UNK]; None where the tokeniser has none, or an older version did not
    count them.
    """

    name: str
    bytes: int
    md5: str
    documents: int
    sentences: int
    tokens: int
    unknown_tokens: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The entry as a manifest holds it: without a count that nobody made."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardEntry:
    """One shard. Tokens are real (not padded) positions, content_md5 that of its canonical TFRecord form.

    lengths_md5: md5 of its lengths' file; None in manifests of versions that wrote none. rows: of a packed
    shard the number of rows that hold the examples; None where each row is one example. index_md5: md5 of
    the index of its records, which some layouts of packed rows have; else None. lost_tokens: tokens of its
    text that no example holds; where several shards have one text, the first counts them all and the others
    have 0. None where nobody counted them.
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
        """The entry as a manifest holds it: without a file that was not written."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedEntry:
    """One input that was left out because it cannot be read. reason: its error's, without path or remedy."""

    name: str
    bytes: int
    md5: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetPlan:
    """All that a dataset's bytes depend on, but the contents of its inputs.

    recipe: the one whose settings were taken where no others were given; None where none was, as for an
    objective that no recipe is for. packed_from: md5 of the manifest of the dataset whose examples are packed
    here; None: not packed, or it has none.
    """

    recipe: str | None
    phase: int | None
    settings: DatasetSettings
    inputs: tuple[str, ...]
    packed_from: str | None = None

    @property
    def objective(self) -> str | None:
        """The objective of the examples. None in a manifest that does not say."""
        return self.settings.objective_name

    @property
    def title(self) -> str:
        """Recipe and phase in words, or the objective where there is no recipe."""
        name = self.recipe or self._without_recipe
        return name if self.phase is None else f"{name} phase {self.phase}"

    @property
    def _without_recipe(self) -> str:
        unverified = "unverified" if "unverified" in self.settings.objective else None
        return unverified or self.objective or "no recipe"

    def terms(self) -> dict[str, Any]:
        """The plan as the commit protocol compares it with another: flat, in words for a person.

        Those of version 2 of the manifest, so that its directories are taken up.
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
    """A finished dataset. The plan's inputs are those in it and those skipped, its settings have a text.

    parts_manifest: md5 of the manifest that bertdata segment wrote beside the inputs; None for inputs without
    one. warnings: of what its maker left out of the inputs, without their names. version_2: recipe and
    settings as they stand in a manifest of version 2, where this is one; None: it is of our version.
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
        """Variant of the sentence splitter of the inputs, md5s of its tables. None where nobody knows."""
        found: dict[str, Any] | None = self.plan.settings.text["punkt"]
        return found

    def as_json(self) -> dict[str, Any]:
        """The manifest in the version of the format in which it was read."""
        value = self._head() | self._contents()
        return value if self.version_2 is None else as_version_2(value, **self.version_2)

    def _head(self) -> dict[str, Any]:
        plan, settings = self.plan, self.plan.settings.as_json()
        cited = {} if plan.packed_from is None else {"dataset_manifest": plan.packed_from}
        return {
            "format_version": DATASET_VERSION,
            "kind": KIND,
            "recipe": plan.recipe,
            "phase": plan.phase,
            "settings": settings,
            "settings_digest": settings_digest(settings),
            "unicode_version": UNICODE_VERSION,
            **cited,
            "parts_manifest": self.parts_manifest,
        }

    def _contents(self) -> dict[str, Any]:
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
        """Tokens of the inputs that no example holds. None unless every shard says how many."""
        counts = [shard.lost_tokens for shard in self.shards]
        known = [count for count in counts if count is not None]
        return sum(known) if counts and len(known) == len(counts) else None

    def entries(self) -> dict[str, tuple[InputEntry, ShardEntry]]:
        """The entries of each shard and of what it is made of, by the shard's name.

        What a shard of all inputs together is made of is corpus_entry; a shard of a dataset that does not
        say where it comes from, a converted one, is left out.
        """
        inputs = {entry.name: entry for entry in self.inputs}
        if self.plan.settings.is_of_all_inputs:
            inputs[""] = corpus_entry(self.inputs, self.skipped)
        return {shard.name: (inputs[shard.input], shard) for shard in self.shards if shard.input in inputs}

    @property
    def listed(self) -> tuple[Listed, ...]:
        """The files of MD5SUMS, but the manifest: the shards, then their lengths, then their indexes."""
        beside = (lengths_entry, index_entry)
        found = (entry for entry_of in beside for shard in self.shards if (entry := entry_of(shard)))
        return (*self.shards, *found)

    def dump(self) -> bytes:
        return dump_json(self.as_json())

    def md5sums(self) -> bytes:
        """Lines as md5sum prints and checks them."""
        return md5sums(self.listed, self.dump())


def lengths_name(shard: str) -> str:
    """The name of the file with the lengths of a shard's examples. See ``bertdata.dataset.lengths``."""
    return f"lengths/{shard}{LENGTHS_ENDING}"


def lengths_entry(shard: ShardEntry) -> FileEntry | None:
    """The entry of the shard's lengths. None where it has none."""
    if shard.lengths_md5 is None:
        return None
    return FileEntry(name=lengths_name(shard.name), bytes=2 * shard.examples, md5=shard.lengths_md5)


class _Unsized(NamedTuple):
    """A file whose size the manifest does not hold."""

    name: str
    md5: str


def index_entry(shard: ShardEntry) -> Listed | None:
    """Name and md5 of the index of the shard's records. None where it has none."""
    return None if shard.index_md5 is None else _Unsized(index_name(shard.name), shard.index_md5)


def corpus_entry(inputs: Iterable[InputEntry], skipped: Iterable[SkippedEntry]) -> InputEntry:
    """All inputs as one, nameless: sums of those read, corpus_md5 of all."""
    read = tuple(inputs)
    counts: dict[str, Any] = {
        name: sum(getattr(entry, name) for entry in read)
        for name in ("bytes", "documents", "sentences", "tokens")
    }
    counts["unknown_tokens"] = unknown_tokens(read)
    md5s = {entry.name: entry.md5 for entry in read} | {entry.name: entry.md5 for entry in skipped}
    return InputEntry(name="", md5=corpus_md5(md5s), **counts)


def unknown_tokens(inputs: Iterable[InputEntry]) -> int | None:
    """The [UNK] tokens of all inputs together. None unless every entry says how many."""
    counts = [entry.unknown_tokens for entry in inputs]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def corpus_md5(md5s: Mapping[str, str]) -> str:
    """The md5 of the inputs' lines as md5sum prints them, sorted by name."""
    lines = "".join(md5sum_line(md5s[name], name) for name in sorted(md5s))
    return md5_of(lines.encode())


def summary(directory: str, manifest: dict[str, Any]) -> str:
    """One line on a finished dataset, from its manifest's JSON."""
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
    return line + left_out(len(manifest.get("skipped", ())))


def left_out(inputs: int) -> str:
    """The end of a summary for so many skipped inputs. Empty for none."""
    return f", {inputs} bad {'input' if inputs == 1 else 'inputs'} left out" if inputs else ""


def parse_manifest(data: bytes, where: str) -> Manifest:
    """The manifest in ``data``, checked against its schema. ManifestError says what does not fit."""
    value, version_2 = parse_dataset_json(data, where)
    inputs = tuple(_entry(InputEntry, item) for item in value["inputs"])
    shards = tuple(_entry(ShardEntry, item) for item in value["shards"])
    skipped = tuple(_entry(SkippedEntry, item) for item in value.get("skipped", ()))
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
        plan=_plan(value, given),
        inputs=inputs,
        shards=shards,
        skipped=skipped,
        parts_manifest=value["parts_manifest"],
        warnings=tuple(value.get("warnings", ())),
        version_2=version_2 and {name: version_2[name] for name in ("recipe", "settings")},
    )


def _plan(value: dict[str, Any], inputs: tuple[str, ...]) -> DatasetPlan:
    return DatasetPlan(
        recipe=value["recipe"],
        phase=value["phase"],
        settings=DatasetSettings(**value["settings"]),
        inputs=inputs,
        packed_from=value.get("dataset_manifest"),
    )


def _entry(kind: type[Any], item: dict[str, Any]) -> Any:
    return kind(**{column.name: item[column.name] for column in fields(kind) if column.name in item})
