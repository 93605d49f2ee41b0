"""A dataset directory while it is made: shards by the commit protocol of ``bertdata.io.directory_protocol``.

A shard of an earlier run is kept where its note fits its input and its bytes; once the manifest is
there it holds the entries instead. So an attempt of a runner that comes late, or ends late, makes
nothing anew and leaves nothing behind.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, BinaryIO

from bertdata.dataset.check import check_index, check_shard
from bertdata.dataset.companion_files import CARD_NAME, companion_files, dataset_card
from bertdata.dataset.lengths import ShardLengths, check_lengths
from bertdata.dataset.manifest import (
    KIND,
    DatasetPlan,
    InputEntry,
    Manifest,
    ShardEntry,
    SkippedEntry,
    lengths_name,
    parse_manifest,
)
from bertdata.dataset.provenance import COPY_NAMES, NO_PROVENANCE, Provenance
from bertdata.errors import DatasetError, InputError, ManifestError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit, nested_directories
from bertdata.io.entry_json import parse_entry
from bertdata.io.file_check import md5_of
from bertdata.io.file_identity import changed
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.shards.containers import FAIRSEQ
from bertdata.shards.packed.record_index import index_name
from bertdata.tokens.files import name_in_dataset
from bertdata.tokens.tokenizer_json import tokenizer_bytes

Entries = tuple[InputEntry, ShardEntry]

_PHASE = re.compile(r"phase\d+")


class Dataset:
    """A dataset directory of one plan. Picklable, cheap to make, shared by all workers.

    within: the directory that a run of several phases was given, which holds this one and the others.
    """

    def __init__(self, directory: str, plan: DatasetPlan, *, within: str | None = None) -> None:
        self.directory = directory
        self.plan = plan
        self._within = within
        self.commit = Commit(directory, KIND, plan.terms(), _manifest_terms)

    @property
    def unfinished(self) -> str:
        """The directory of growing files and notes."""
        return self.commit.unfinished

    @contextmanager
    def run(self) -> Iterator[None]:
        """The time of a run: the directory is locked and claimed, and given up where the run fails."""
        self.refuse_others()
        with self.commit.run():
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The time in which no other run may write to the directory."""
        self.refuse_others()
        with self.commit.locked():
            yield

    def begin(self) -> None:
        """Claim the directory. DatasetError if it belongs to another plan or to something else."""
        self.refuse_others()
        self.commit.claim()

    def refuse_others(self, *, inputs_known: bool = True) -> None:
        """DatasetError as from begin. Nothing is changed.

        Without inputs_known the plan's inputs are yet to come, and those found may be any.
        """
        self._refuse_above()
        self.commit.refuse_others(unknown=() if inputs_known else ("inputs",))
        self._refuse_below()

    def _refuse_above(self) -> None:
        """DatasetError where the directory that was given is one of ours itself, which would hide this one.

        Commands look below a directory for datasets only where it holds no manifest.
        """
        if self._within is None:
            return
        if storage.exists(self._within) and not storage.is_directory(self._within):
            raise DatasetError(f"{self._within}: is a file, expected a directory or nothing")
        above = _found_terms(self._within)
        if above is not None:
            raise DatasetError(
                f"{self._within}: holds {_description(above)} in the directory itself, which would hide "
                f"{self.plan.title} below it; choose another directory or remove this one"
            )

    def _refuse_below(self) -> None:
        """DatasetError where a new dataset would hide the phases of another below it."""
        if self._within is not None or self.commit.found_terms() is not None:
            return
        for name in filter(_PHASE.fullmatch, nested_directories(storage.list_files(self.directory))):
            below = _found_terms(storage.join(self.directory, name))
            if below is not None:
                raise DatasetError(
                    f"{self.directory}: holds {_description(below)} in {name}, which {self.plan.title} in "
                    "the directory itself would hide; choose another directory or remove this one"
                )

    def give_up(self) -> None:
        """Free the directory for other settings if not one shard was finished in it."""
        self.commit.give_up()

    @contextmanager
    def open_shard(self, name: str) -> Iterator[BinaryIO]:
        """A shard, opened for writing. It appears when the block ends well."""
        with self.commit.open(name) as file:
            yield file

    def write_lengths(self, shard: str, lengths: ShardLengths) -> str:
        """Write the lengths of a shard's examples beside it. Returns their md5."""
        data = lengths.dump()
        self.commit.write(lengths_name(shard), data)
        return md5_of(data)

    def write_index(self, shard: str, index: bytes) -> str:
        """Write the index of a shard's records beside it. Returns its md5."""
        self.commit.write(index_name(shard), index)
        return md5_of(index)

    def found_manifest(self) -> Manifest | None:
        """The manifest that is there."""
        found = self._parsed_manifest()
        return found[0] if found else None

    def _parsed_manifest(self) -> tuple[Manifest, dict[str, Entries]] | None:
        data = self.commit.manifest()
        return None if data is None else _parse_manifest(data, self.commit.path(MANIFEST_NAME))

    def finished_entry(self, shard: str, input_md5: str) -> Entries | None:
        """The entries of a shard that an earlier run finished from the same input, if its bytes still fit."""
        entries = self.read_entry(shard)
        return entries if self.why_made(shard, lambda: input_md5, entries) is None else None

    def why_made(self, shard: str, input_md5: Callable[[], str], entries: Entries | None) -> str | None:
        """The reason to make a shard of those entries anew. None where a run keeps it.

        input_md5 is asked only where the answer hangs on it.
        """
        if entries is None:
            return "not known to be whole" if storage.exists(self.commit.path(shard)) else "missing"
        if entries[0].md5 != input_md5():
            return "its part has changed"
        if misfit := check_shard(self.directory, entries[1]):
            return misfit.status
        misfit = check_lengths(self.directory, entries[1])
        if misfit:
            return f"its lengths: {misfit.status}"
        misfit = check_index(self.directory, entries[1])
        return f"its index: {misfit.status}" if misfit else None

    def noted_shards(self) -> list[str]:
        """The shards that are noted, whether or not they still fit."""
        return [name for name in self.commit.noted() if "/" not in name]  # others are of steps before

    def read_entry(self, shard: str) -> Entries | None:
        """The entries of a finished shard, as a run noted them or as the manifest of our plan has them."""
        note = self.commit.read_note(shard)
        if note is None:
            return self._listed_entry(shard)
        try:
            entries = parse_entry(InputEntry, note.get("input")), parse_entry(ShardEntry, note.get("shard"))
        except ManifestError:  # a note of another version
            return self._listed_entry(shard)
        return entries if self._may_note(shard, entries[1]) else self._listed_entry(shard)

    def _may_note(self, shard: str, entry: ShardEntry) -> bool:
        """True for what a run of this version notes: lengths, and rows where the shard is packed."""
        packed = self.plan.settings.container.get("packing") is not None
        has_index = packed or self.plan.settings.container["format"] == FAIRSEQ
        rows_fit = (entry.rows is not None) == packed and (has_index or entry.index_md5 is None)
        return entry.name == shard and entry.lengths_md5 is not None and rows_fit

    def _listed_entry(self, shard: str) -> Entries | None:
        """The entries of a shard in the manifest of the finished dataset, if it is of our plan."""
        found = self._parsed_manifest()
        if found is None or found[0].plan.terms() != self.plan.terms():
            return None
        return found[1].get(shard)

    def record(self, input_entry: InputEntry, shard_entry: ShardEntry) -> None:
        """Note that a shard is finished, made from that input (corpus_entry: from all of them).

        Where the manifest says so already, nothing needs to be noted.
        """
        self.commit.note(shard_entry.name, {"input": asdict(input_entry), "shard": asdict(shard_entry)})
        # Looked for afterwards: the last step lists what it removes when the manifest is there, so either
        # it sees this note, or this sees the manifest.
        if self._listed_entry(shard_entry.name) == (input_entry, shard_entry):
            self.commit.forget(shard_entry.name)

    def discard(self, shard: str) -> None:
        """Remove the shard that an earlier run made of an input that is left out now, if it is there."""
        self.commit.forget(shard)
        for name in (shard, lengths_name(shard)):
            storage.remove(self.commit.path(name), missing_ok=True)

    def finish(
        self,
        inputs: Iterable[InputEntry],
        shards: Iterable[ShardEntry],
        skipped: Iterable[SkippedEntry] = (),
        *,
        vocabulary: str,
        provenance: Provenance = NO_PROVENANCE,
        warnings: Iterable[str] = (),
    ) -> Manifest:
        """Write the tokeniser's file, copies of cited manifests, MD5SUMS and the manifest. Remove the rest.

        vocabulary: the path of the tokeniser's file.
        InputError where every input was skipped, since a dataset of nothing helps nobody, and where an input
        is not what its cited manifest lists. ChangedInputError for a tokeniser's file that was changed.
        """
        read, left_out = sorted(inputs, key=attrgetter("name")), sorted(skipped, key=attrgetter("name"))
        found = self.found_manifest()
        settings = replace(self.plan.settings, text=provenance.text)
        manifest = Manifest(
            plan=replace(self.plan, settings=settings),
            inputs=tuple(read),
            shards=tuple(sorted(shards, key=attrgetter("name"))),
            skipped=tuple(left_out),
            parts_manifest=provenance.parts_md5,
            warnings=tuple(warnings),
            version_2=found.version_2 if found else None,  # others may cite the manifest that is there
        )
        if not manifest.shards:
            refuse_nothing(manifest.skipped)
        provenance.check_inputs([*read, *left_out])
        cited = provenance.files()
        for name in COPY_NAMES:
            if name not in cited:  # copied by an earlier run, whose parts had a manifest
                storage.remove(self.commit.path(name), missing_ok=True)
        own_name = name_in_dataset(settings.tokenizer)
        tokenizer = tokenizer_bytes(vocabulary)
        if md5_of(tokenizer) != (expected := settings.vocabulary["md5"]):
            raise changed(vocabulary, f"its md5 was {expected} when the run began")
        others = {own_name: tokenizer, **cited}
        others |= companion_files(self.directory, settings, manifest.shards)
        card = dataset_card(self.plan.title, settings)
        if card is not None and not storage.exists(self.commit.path(CARD_NAME)):  # a person's own is kept
            others[CARD_NAME] = card
        self.commit.finish(manifest.dump(), manifest.md5sums(), others)
        return manifest


def _found_terms(directory: str) -> Mapping[str, Any] | None:
    """The terms of a directory of ours, whatever its plan. None where there is none."""
    return Commit(directory, KIND, {}, _manifest_terms).found_terms()


def _description(terms: Mapping[str, Any]) -> str:
    """A directory of ours by its terms, for a person."""
    return f"the dataset {terms['recipe']}" if terms["kind"] == KIND else f"a directory of {terms['kind']}"


def refuse_nothing(skipped: Sequence[SkippedEntry]) -> None:
    """InputError where every input was skipped."""
    if skipped:
        first = min(skipped, key=attrgetter("name"))
        raise InputError(f"{first.name}: {first.reason}; every input was skipped, nothing is left")


@lru_cache(maxsize=2)
def _parse_manifest(data: bytes, path: str) -> tuple[Manifest, dict[str, Entries]]:
    """The manifest and its entries by shard. Kept, as every part of a finished dataset asks for them."""
    manifest = parse_manifest(data, path)
    return manifest, manifest.entries()


def _manifest_terms(data: bytes, path: str) -> dict[str, Any]:
    return _parse_manifest(data, path)[0].plan.terms()
