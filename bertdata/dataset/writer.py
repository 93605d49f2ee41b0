"""Writing of a dataset directory, whose files are completed as ``bertdata.io.directory_protocol`` describes.

A finished shard gets a note, which is a small file with the manifest entries of the shard and its input. A
later run keeps the shard if the note matches the input and the shard's file. When the manifest exists, it
replaces the notes. A worker that starts late or repeats finished work therefore does not write a shard again
and leaves no files behind.
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
from bertdata.dataset.provenance import COPY_NAMES, NO_PROVENANCE, Provenance, add_vocabulary_manifest
from bertdata.errors import DatasetError, InputError, ManifestError
from bertdata.io import storage
from bertdata.io.changed_inputs import make_changed_warnings
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
    """A dataset directory that is being written. It can be pickled, so that all workers have it.

    plan: everything that decides the bytes of the dataset, except the contents of its inputs.
    within: the directory above it, if a run writes several phases into sub-directories. Otherwise None.
    """

    def __init__(self, directory: str, plan: DatasetPlan, *, within: str | None = None) -> None:
        self.directory = directory
        self.plan = plan
        self._within = within
        self.commit = Commit(directory, DATASET_KIND, plan.make_comparable_plan(), _read_manifest_plan)

    @property
    def unfinished(self) -> str:
        """The sub-directory for notes and for files that are not complete yet."""
        return self.commit.unfinished

    @contextmanager
    def run(self) -> Iterator[None]:
        """Return a context manager for the time in which a run writes to the directory.

        It locks the directory and claims it by storing the dataset's plan in it. If the run fails before a
        shard is finished, the plan is removed again.
        """
        self.refuse_others()
        with self.commit.run():
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Return a context manager that locks the directory against other runs. It stores no plan there."""
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
        """Raise DatasetError if ``begin`` would raise it. Nothing is changed.

        inputs_known: False if the inputs in the plan are not known yet. A directory with any inputs is then
            accepted.
        """
        self._refuse_above()
        self.commit.refuse_others(unknown=() if inputs_known else ("inputs",))
        self._refuse_below()

    def _refuse_above(self) -> None:
        """Raise DatasetError if the directory above this phase was itself written by bertdata.

        If that directory has a manifest, commands do not look into its sub-directories, so they would not
        find this phase.
        """
        if self._within is None:
            return
        if storage.exists(self._within) and not storage.is_directory(self._within):
            raise DatasetError(f"{self._within}: is a file, expected a directory or nothing")
        above = _read_plan(self._within)
        if above is not None:
            raise DatasetError(
                f"{self._within}: holds {_describe_plan(above)} in the directory itself, which would hide "
                f"{self.plan.title} below it; choose another directory or remove this one"
            )

    def _refuse_below(self) -> None:
        """Raise DatasetError if the directory's sub-directories are phases of another dataset.

        Commands would no longer find these phases, because they do not look into the sub-directories of a
        dataset.
        """
        if self._within is not None or self.commit.read_plan_settings() is not None:
            return
        for name in filter(_PHASE.fullmatch, find_nested_directories(storage.list_files(self.directory))):
            below = _read_plan(storage.join(self.directory, name))
            if below is not None:
                raise DatasetError(
                    f"{self.directory}: holds {_describe_plan(below)} in {name}, which {self.plan.title} in "
                    "the directory itself would hide; choose another directory or remove this one"
                )

    def give_up(self) -> None:
        """Remove the plan from the directory if no shard was finished, so that a run with other settings can
        use it.
        """
        self.commit.give_up()

    @contextmanager
    def open_shard(self, name: str) -> Iterator[BinaryIO]:
        """Return a context manager that opens a shard for writing.

        The file gets its name only if the block ends without an error.
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

    def list_changed_inputs(self, inputs: Iterable[InputEntry]) -> list[str]:
        """Return a warning if inputs have changed since the dataset was finished by an earlier run.

        It is called before ``finish``, which replaces the earlier manifest.
        """
        earlier = self.read_manifest()
        if earlier is None:
            return []
        before = {entry.name: entry.md5 for entry in earlier.inputs}
        return make_changed_warnings(self.directory, before, {entry.name: entry.md5 for entry in inputs})

    def _parse_current_manifest(self) -> tuple[Manifest, dict[str, Entries]] | None:
        data = self.commit.manifest()
        return None if data is None else _parse_manifest(data, self.commit.path(MANIFEST_NAME))

    def find_finished_entry(self, shard: str, input_md5: str) -> Entries | None:
        """Return the manifest entries of a shard that an earlier run finished from the same input.

        Returns None if there is no such shard, or if the file no longer matches its entry.
        """
        entries = self.read_entry(shard)
        return entries if self.find_reason_to_remake(shard, lambda: input_md5, entries) is None else None

    def find_reason_to_remake(
        self, shard: str, input_md5: Callable[[], str], entries: Entries | None
    ) -> str | None:
        """Return the reason why a shard must be written again, or None if it can be kept.

        input_md5: function that returns the md5 of the input. It reads the whole input, so it is called only
            if needed.
        entries: manifest entries of the input and of the shard from an earlier run. None if there are none.
        """
        # Compare the entries that an earlier run wrote with the input, the shard's file, its lengths file and
        # its index.
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
        """Return the names of the shards that have a note.

        A shard may have changed after its note was written.
        """
        # Notes with a slash in their name belong to earlier steps of the pipeline.
        return [name for name in self.commit.list_noted_pieces() if "/" not in name]

    def read_entry(self, shard: str) -> Entries | None:
        """Return the manifest entries of a finished shard and its input, from the shard's note.

        If there is no note, they come from the manifest, provided that it has the same plan.
        """
        note = self.commit.read_note(shard)
        if note is None:
            return self._read_listed_entry(shard)
        try:
            entries = parse_entry(InputEntry, note.get("input")), parse_entry(ShardEntry, note.get("shard"))
        except ManifestError:  # another version of bertdata wrote the note in another format
            return self._read_listed_entry(shard)
        return entries if self._is_complete_note(shard, entries[1]) else self._read_listed_entry(shard)

    def _is_complete_note(self, shard: str, entry: ShardEntry) -> bool:
        """Return False if an older version of bertdata wrote the note, so that it lacks values that are
        needed now.

        These are the md5 of the lengths file and the number of packed rows.
        """
        packed = self.plan.settings.container.get("packing") is not None
        has_index = packed or self.plan.settings.container["format"] == FAIRSEQ
        rows_fit = (entry.rows is not None) == packed and (has_index or entry.index_md5 is None)
        return entry.name == shard and entry.lengths_md5 is not None and rows_fit

    def _read_listed_entry(self, shard: str) -> Entries | None:
        """Return the entries of a shard and its input from the manifest in the directory.

        Returns None if there is no manifest that has the same plan and lists the shard.
        """
        found = self._parse_current_manifest()
        if found is None or found[0].plan.make_comparable_plan() != self.plan.make_comparable_plan():
            return None
        return found[1].get(shard)

    def record(self, input_entry: InputEntry, shard_entry: ShardEntry) -> None:
        """Write the note that says that a shard is finished.

        If the manifest already lists the shard, the note is removed again.

        input_entry: manifest entry of the input that the shard was made from. For a shard with examples of
            all inputs, it is the entry that sums them up (make_corpus_entry).
        shard_entry: manifest entry of the shard.
        """
        self.commit.note(shard_entry.name, {"input": asdict(input_entry), "shard": asdict(shard_entry)})
        # The note is written before the manifest is read. ``finish`` does the opposite: it writes the
        # manifest and then removes the notes that it finds. Either ``finish`` finds the note of a late
        # worker, or this method finds the manifest and removes the note itself. With the other order, each
        # could miss what the other wrote, and a note would remain.
        if self._read_listed_entry(shard_entry.name) == (input_entry, shard_entry):
            self.commit.delete_note(shard_entry.name)

    def discard(self, shard: str) -> None:
        """Remove a shard that an earlier run made from an input that is now left out, if there is one."""
        self.commit.delete_note(shard)
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
        """Write the small files that belong to a dataset, MD5SUMS and the manifest.

        Then remove notes and unneeded files.

        vocabulary: path of the tokeniser's file, which is copied into the dataset.
        provenance: manifests of the data that the inputs were made from, which are copied to ``sources/``.

        Raises InputError if all inputs were left out, or if an input is not the file that the parts' manifest
        lists. Raises ChangedInputError if the tokeniser's file changed during the run.
        """
        read, left_out = sorted(inputs, key=attrgetter("name")), sorted(skipped, key=attrgetter("name"))
        found = self.read_manifest()
        settings = replace(self.plan.settings, text=provenance.text)
        # Other datasets may record the md5 of a manifest that the directory already has, so its bytes must
        # not change. A manifest of version 2 is therefore written as version 2 again.
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
            raise_if_inputs_skipped(manifest.skipped)
        provenance.check_inputs([*read, *left_out])
        expected = settings.vocabulary["md5"]
        cited = add_vocabulary_manifest(provenance, vocabulary, expected).files()
        for name in COPY_NAMES:
            if name not in cited:  # an earlier run left this copy, because its inputs had a manifest
                storage.remove(self.commit.path(name), missing_ok=True)
        own_name = name_in_dataset(settings.tokenizer)
        tokenizer = read_tokenizer_bytes(vocabulary)
        if compute_md5(tokenizer) != expected:
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


def _read_plan(directory: str) -> Mapping[str, Any] | None:
    """Return the plan of a directory as a flat dictionary, or None if bertdata did not write it."""
    return Commit(directory, DATASET_KIND, {}, _read_manifest_plan).read_plan_settings()


def _describe_plan(terms: Mapping[str, Any]) -> str:
    """Describe in a few words what is in a directory that bertdata wrote, for error messages.

    terms: the plan of the directory, as a dictionary without nesting.
    """
    return (
        f"the dataset {terms['recipe']}"
        if terms["kind"] == DATASET_KIND
        else f"a directory of {terms['kind']}"
    )


def raise_if_inputs_skipped(skipped: Sequence[SkippedEntry]) -> None:
    """Raise InputError if inputs were left out. This function is called if there is no shard to write."""
    if skipped:
        first = min(skipped, key=attrgetter("name"))
        raise InputError(f"{first.name}: {first.reason}; every input was skipped, nothing is left")


@lru_cache(maxsize=2)
def _parse_manifest(data: bytes, path: str) -> tuple[Manifest, dict[str, Entries]]:
    """Parse a manifest. Return it, and its entries by the name of the shard.

    The last results are cached, because they are needed for every shard of a finished dataset.
    """
    manifest = parse_manifest(data, path)
    return manifest, manifest.entries()


def _read_manifest_plan(data: bytes, path: str) -> dict[str, Any]:
    return _parse_manifest(data, path)[0].plan.make_comparable_plan()
