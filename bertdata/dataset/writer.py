"""Write a dataset directory. Files are committed as ``bertdata.io.directory_protocol`` describes.

A finished shard gets a note: a small file with the entries of the shard and of its input. A later run keeps
the shard if its note matches the input and the file on disk. Once the manifest exists it replaces the notes.
A worker that starts late or repeats finished work therefore writes no shard again and leaves no unneeded
files.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, BinaryIO

from bertdata.dataset.check import check_index, check_shard
from bertdata.dataset.companion_files import CARD_NAME, make_companion_files, make_dataset_card
from bertdata.dataset.lengths import ShardLengths, check_lengths
from bertdata.dataset.manifest import (
    DATASET_KIND,
    DatasetPlan,
    InputEntry,
    Manifest,
    ShardEntry,
    SkippedEntry,
    make_lengths_name,
    parse_manifest,
)
from bertdata.dataset.provenance import COPY_NAMES, NO_PROVENANCE, Provenance
from bertdata.errors import DatasetError, InputError, ManifestError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit, find_nested_directories
from bertdata.io.entry_json import parse_entry
from bertdata.io.file_check import compute_md5
from bertdata.io.file_identity import make_changed_error
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.shards.containers import FAIRSEQ
from bertdata.shards.packed.record_index import index_name
from bertdata.tokens.files import name_in_dataset
from bertdata.tokens.tokenizer_json import read_tokenizer_bytes

Entries = tuple[InputEntry, ShardEntry]

_PHASE = re.compile(r"phase\d+")


class Dataset:
    """A dataset directory that is being written, with its plan. Picklable, so that all workers share it.

    within: the parent directory, if a run writes several phases into sub-directories. Otherwise None.
    """

    def __init__(self, directory: str, plan: DatasetPlan, *, within: str | None = None) -> None:
        self.directory = directory
        self.plan = plan
        self._within = within
        self.commit = Commit(directory, DATASET_KIND, plan.terms(), _read_manifest_terms)

    @property
    def unfinished(self) -> str:
        """The sub-directory that holds notes and files that are still being written."""
        return self.commit.unfinished

    @contextmanager
    def run(self) -> Iterator[None]:
        """Lock the directory and claim it while a run writes to it.

        To claim it is to store the dataset's plan in it.

        If the run fails before any shard is finished, the claim is released.
        """
        self.refuse_others()
        with self.commit.run():
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory against other runs, without storing a plan in it."""
        self.refuse_others()
        with self.commit.locked():
            yield

    def begin(self) -> None:
        """Claim the directory by storing the plan in it.

        Raises DatasetError if it holds a dataset with another plan, or other files.
        """
        self.refuse_others()
        self.commit.claim()

    def refuse_others(self, *, inputs_known: bool = True) -> None:
        """Raise the DatasetError that begin would raise, without changing anything.

        inputs_known: False if the plan's inputs are not known yet. Any inputs are then accepted.
        """
        self._refuse_above()
        self.commit.refuse_others(unknown=() if inputs_known else ("inputs",))
        self._refuse_below()

    def _refuse_above(self) -> None:
        """Raise DatasetError if the directory above this phase is itself a bertdata directory.

        Commands search the sub-directories of a directory only if it holds no manifest, so this phase would
        never be found.
        """
        if self._within is None:
            return
        if storage.exists(self._within) and not storage.is_directory(self._within):
            raise DatasetError(f"{self._within}: is a file, expected a directory or nothing")
        above = _read_terms(self._within)
        if above is not None:
            raise DatasetError(
                f"{self._within}: holds {_describe_terms(above)} in the directory itself, which would hide "
                f"{self.plan.title} below it; choose another directory or remove this one"
            )

    def _refuse_below(self) -> None:
        """Raise DatasetError if a new dataset would hide phases of another dataset in its sub-directories."""
        if self._within is not None or self.commit.found_terms() is not None:
            return
        for name in filter(_PHASE.fullmatch, find_nested_directories(storage.list_files(self.directory))):
            below = _read_terms(storage.join(self.directory, name))
            if below is not None:
                raise DatasetError(
                    f"{self.directory}: holds {_describe_terms(below)} in {name}, which {self.plan.title} in "
                    "the directory itself would hide; choose another directory or remove this one"
                )

    def give_up(self) -> None:
        """Release the claim on the directory if no shard was finished, so that other settings can use it."""
        self.commit.give_up()

    @contextmanager
    def open_shard(self, name: str) -> Iterator[BinaryIO]:
        """Open a shard for writing.

        The file appears under its name only when the block ends without an error.
        """
        with self.commit.open(name) as file:
            yield file

    def write_lengths(self, shard: str, lengths: ShardLengths) -> str:
        """Write the file with the lengths of a shard's examples. Return its md5."""
        data = lengths.dump()
        self.commit.write(make_lengths_name(shard), data)
        return compute_md5(data)

    def write_index(self, shard: str, index: bytes) -> str:
        """Write the index file of a shard's records. Return its md5."""
        self.commit.write(index_name(shard), index)
        return compute_md5(index)

    def read_manifest(self) -> Manifest | None:
        """Return the manifest that the directory already holds, or None."""
        found = self._parse_current_manifest()
        return found[0] if found else None

    def _parse_current_manifest(self) -> tuple[Manifest, dict[str, Entries]] | None:
        data = self.commit.manifest()
        return None if data is None else _parse_manifest(data, self.commit.path(MANIFEST_NAME))

    def find_finished_entry(self, shard: str, input_md5: str) -> Entries | None:
        """Return the entries of a shard that an earlier run finished from the same input.

        Returns None if there is no such shard, or if the file on disk no longer matches.
        """
        entries = self.read_entry(shard)
        return entries if self.find_reason_to_remake(shard, lambda: input_md5, entries) is None else None

    def find_reason_to_remake(
        self, shard: str, input_md5: Callable[[], str], entries: Entries | None
    ) -> str | None:
        """Return why a shard has to be made again, or None if it can be kept.

        input_md5: called only if the entries do not already decide, because it reads the whole input.
        """
        # The entries say what an earlier run wrote. Compare with them the input, the shard's file, its
        # lengths file and its index.
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

    def list_noted_shards(self) -> list[str]:
        """Return the names of the shards that have a note. They may no longer match their notes."""
        # Notes with a slash in their name belong to earlier steps of the pipeline.
        return [name for name in self.commit.noted() if "/" not in name]

    def read_entry(self, shard: str) -> Entries | None:
        """Return a finished shard's entries from its note, or from the manifest if that has the same plan."""
        note = self.commit.read_note(shard)
        if note is None:
            return self._read_listed_entry(shard)
        try:
            entries = parse_entry(InputEntry, note.get("input")), parse_entry(ShardEntry, note.get("shard"))
        except ManifestError:  # another version of bertdata wrote the note in another format
            return self._read_listed_entry(shard)
        return entries if self._is_complete_note(shard, entries[1]) else self._read_listed_entry(shard)

    def _is_complete_note(self, shard: str, entry: ShardEntry) -> bool:
        """Return False if an older version of bertdata wrote the note, without lengths or the number of
        packed rows.
        """
        packed = self.plan.settings.container.get("packing") is not None
        has_index = packed or self.plan.settings.container["format"] == FAIRSEQ
        rows_fit = (entry.rows is not None) == packed and (has_index or entry.index_md5 is None)
        return entry.name == shard and entry.lengths_md5 is not None and rows_fit

    def _read_listed_entry(self, shard: str) -> Entries | None:
        """Return the shard's entries from the manifest.

        Returns None if there is no manifest with the same plan.
        """
        found = self._parse_current_manifest()
        if found is None or found[0].plan.terms() != self.plan.terms():
            return None
        return found[1].get(shard)

    def record(self, input_entry: InputEntry, shard_entry: ShardEntry) -> None:
        """Write the note that says that a shard is finished.

        input_entry: entry of the input that the shard was made from, or of all inputs (make_corpus_entry).
        The note is removed again if the manifest already lists the shard.
        """
        self.commit.note(shard_entry.name, {"input": asdict(input_entry), "shard": asdict(shard_entry)})
        # Write the note first and look at the manifest second. ``finish`` does the opposite: it writes the
        # manifest and then removes the notes it sees. So a late worker's note is either seen and removed by
        # ``finish``, or this method sees the manifest and removes the note itself. With the other order, both
        # could miss each other and a stray note would remain.
        if self._read_listed_entry(shard_entry.name) == (input_entry, shard_entry):
            self.commit.forget(shard_entry.name)

    def discard(self, shard: str) -> None:
        """Remove the shard, if any, that an earlier run made from an input that is now left out."""
        self.commit.forget(shard)
        for name in (shard, make_lengths_name(shard)):
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
        """Write the small companion files, MD5SUMS and the manifest. Then remove notes and leftovers.

        vocabulary: path of the tokeniser's file, which is copied into the dataset.
        provenance: upstream manifests, which are copied to ``sources/``.

        Raises InputError if every input was skipped, or if an input differs from the parts' manifest that
        lists it. Raises ChangedInputError if the tokeniser's file changed during the run.
        """
        read, left_out = sorted(inputs, key=attrgetter("name")), sorted(skipped, key=attrgetter("name"))
        found = self.read_manifest()
        settings = replace(self.plan.settings, text=provenance.text)
        # If the directory already has a manifest, other datasets may cite its md5, so its bytes must not
        # change: a manifest of version 2 is written as version 2 again.
        manifest = Manifest(
            plan=replace(self.plan, settings=settings),
            inputs=tuple(read),
            shards=tuple(sorted(shards, key=attrgetter("name"))),
            skipped=tuple(left_out),
            parts_manifest=provenance.parts_md5,
            warnings=tuple(warnings),
            version_2=found.version_2 if found else None,
        )
        # Check the inputs before anything in the directory changes.
        if not manifest.shards:
            refuse_only_skipped(manifest.skipped)
        provenance.check_inputs([*read, *left_out])
        cited = provenance.files()
        for name in COPY_NAMES:
            if name not in cited:  # an earlier run, whose parts had a manifest, left it
                storage.remove(self.commit.path(name), missing_ok=True)
        own_name = name_in_dataset(settings.tokenizer)
        tokenizer = read_tokenizer_bytes(vocabulary)
        if compute_md5(tokenizer) != (expected := settings.vocabulary["md5"]):
            raise make_changed_error(vocabulary, f"its md5 was {expected} when the run began")
        others = {own_name: tokenizer, **cited}
        others |= make_companion_files(self.directory, settings, manifest.shards)
        # An existing README.md is kept, since the user may have edited it.
        card = make_dataset_card(self.plan.title, settings)
        if card is not None and not storage.exists(self.commit.path(CARD_NAME)):
            others[CARD_NAME] = card
        # The manifest is written last. A directory with a manifest is therefore always complete, and a crash
        # before that leaves a directory that the same command can finish.
        self.commit.finish(manifest.dump(), manifest.md5sums(), others)
        return manifest


def _read_terms(directory: str) -> Mapping[str, Any] | None:
    """Return the plan of the directory at this path as a flat dictionary, or None if bertdata did not write
    it.
    """
    return Commit(directory, DATASET_KIND, {}, _read_manifest_terms).found_terms()


def _describe_terms(terms: Mapping[str, Any]) -> str:
    """Describe the contents of a directory that bertdata wrote, in a few words for error messages.

    terms: the directory's plan as a flat dictionary.
    """
    return (
        f"the dataset {terms['recipe']}"
        if terms["kind"] == DATASET_KIND
        else f"a directory of {terms['kind']}"
    )


def refuse_only_skipped(skipped: Sequence[SkippedEntry]) -> None:
    """Raise InputError if inputs were skipped. Callers use this if no shard is left to write."""
    if skipped:
        first = min(skipped, key=attrgetter("name"))
        raise InputError(f"{first.name}: {first.reason}; every input was skipped, nothing is left")


@lru_cache(maxsize=2)
def _parse_manifest(data: bytes, path: str) -> tuple[Manifest, dict[str, Entries]]:
    """Parse a manifest. Return it with its entries by shard name.

    The last results are cached, because every shard of a finished dataset asks for them.
    """
    manifest = parse_manifest(data, path)
    return manifest, manifest.entries()


def _read_manifest_terms(data: bytes, path: str) -> dict[str, Any]:
    return _parse_manifest(data, path)[0].plan.terms()
