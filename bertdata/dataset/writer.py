"""A dataset directory while it is made: what is finished, what may be kept, and the last step.

::

    DIR/part-00000.tfrecord      appears whole
    DIR/unfinished/plan.json     what the directory is for; there until the manifest is
    DIR/unfinished/*.json        one entry for each finished shard
    DIR/unfinished/*.tmp         files that are being written (none in an object store)
    DIR/MD5SUMS DIR/manifest.json   written last, in this order; then unfinished/ goes

A run that finds the directory of an earlier one with the same plan keeps each shard whose entry
fits its input and its bytes, and makes the others. Once the manifest is there it holds the entries, so
that an attempt of a runner's that comes late, or ends late, leaves nothing behind.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from bertdata.dataset.manifest import (
    MANIFEST_NAME,
    MD5SUMS_NAME,
    InputEntry,
    Manifest,
    Plan,
    ShardEntry,
    SkippedEntry,
    dump_json,
    parse_json,
    parse_manifest,
    parse_plan,
)
from bertdata.errors import BertDataError, DatasetError, InputError, ManifestError, MissingInputError
from bertdata.io import storage

Entries = tuple[InputEntry, ShardEntry]

UNFINISHED = "unfinished"
_PLAN_NAME = "plan.json"


class Dataset:
    """A dataset directory of one plan; picklable, cheap to make, shared by all workers."""

    def __init__(self, directory: str, plan: Plan) -> None:
        self.directory = directory
        self.plan = plan

    @property
    def unfinished(self) -> str:
        """Where growing files and entries live."""
        return storage.join(self.directory, UNFINISHED)

    def begin(self) -> None:
        """Claim the directory; DatasetError if it belongs to another plan or to something else."""
        self.refuse_others()
        storage.make_directory(self.unfinished)
        plan = {**self.plan.as_json(), "inputs": list(self.plan.inputs)}
        self._write(storage.join(self.unfinished, _PLAN_NAME), dump_json(plan))

    def refuse_others(self, *, inputs_known: bool = True) -> None:
        """DatasetError as from begin; nothing is changed.

        Without inputs_known the plan's inputs are yet to come, and those found may be any.
        """
        if storage.exists(self.directory) and not storage.is_directory(self.directory):
            raise DatasetError(f"{self.directory}: is a file, expected a directory or nothing")
        manifest = self.found_manifest()
        found = manifest.plan if manifest else self._found_plan()
        if found is None:
            self._refuse_strange_files()
            return
        plan = self.plan if inputs_known else replace(self.plan, inputs=found.inputs)
        if differences := plan.differences(found):
            raise DatasetError(
                f"{self.directory}: was made with other settings: {'; '.join(differences)}; "
                "choose another directory or remove this one"
            )

    def give_up(self) -> None:
        """Free the directory for other settings if not one shard was finished in it.

        A dataset that was finished before, and in which nothing was made anew, is so again.
        """
        with suppress(BertDataError):  # whatever made the run fail is more worth telling
            plan = f"{UNFINISHED}/{_PLAN_NAME}"
            files = storage.list_files(self.directory)
            nothing_made = not [name for name in files if name.startswith(f"{UNFINISHED}/") and name != plan]
            if nothing_made and (files == [plan] or MANIFEST_NAME in files):
                storage.remove_directory(self.unfinished)

    def _refuse_strange_files(self) -> None:
        for name in storage.list_files(self.directory):
            if not name.startswith(f"{UNFINISHED}/"):
                raise DatasetError(
                    f"{self.directory}: is not empty and no dataset of ours (it holds {name}); "
                    "choose another directory"
                )

    def found_manifest(self) -> Manifest | None:
        """The manifest that is there."""
        listed = self._parsed_manifest()
        return listed[0] if listed else None

    def _parsed_manifest(self) -> tuple[Manifest, dict[str, Entries]] | None:
        path = storage.join(self.directory, MANIFEST_NAME)
        try:
            return _parse_manifest(storage.read_bytes(path), path)
        except MissingInputError:
            return None

    def _found_plan(self) -> Plan | None:
        path = storage.join(self.unfinished, _PLAN_NAME)
        try:
            return parse_plan(parse_json(storage.read_bytes(path), path), path)
        except MissingInputError:
            return None
        except ManifestError as error:  # what the shards there were made for is not known any more
            raise ManifestError(f"{error}; remove {self.directory}, then run again") from None

    def finished_entry(self, shard: str, input_md5: str) -> Entries | None:
        """The entries of a shard that an earlier run finished from the same input, if its bytes still fit."""
        entries = self.read_entry(shard)
        return entries if self.why_made(shard, lambda: input_md5, entries) is None else None

    def why_made(self, shard: str, input_md5: Callable[[], str], entries: Entries | None) -> str | None:
        """Why a run would make a shard of those entries anew; None where it would keep it.

        input_md5 is asked only where the answer hangs on it.
        """
        path = storage.join(self.directory, shard)
        if entries is None:
            return "not known to be whole" if storage.exists(path) else "missing"
        if entries[0].md5 != input_md5():
            return "its part has changed"
        try:
            if storage.size(path) != entries[1].bytes:
                return "wrong size"
            return "wrong md5" if file_md5(path) != entries[1].md5 else None
        except MissingInputError:
            return "missing"

    def noted_shards(self) -> list[str]:
        """The shards that entries are there of, whether or not they still fit."""
        names = storage.list_files(self.unfinished)
        return [name[: -len(".json")] for name in names if name.endswith(".json") and name != _PLAN_NAME]

    def read_entry(self, shard: str) -> Entries | None:
        """The entries of a finished shard, as a run noted them or as the manifest of our plan has them."""
        path = self._entry_path(shard)
        try:
            value = parse_json(storage.read_bytes(path), path)
            return InputEntry(**value["input"]), ShardEntry(**value["shard"])
        except (MissingInputError, ManifestError, KeyError, TypeError):
            return self._listed_entry(shard)  # none noted, or one cut short by a crash

    def _listed_entry(self, shard: str) -> Entries | None:
        """The entries of a shard in the manifest of the finished dataset, if it is of our plan."""
        found = self._parsed_manifest()
        if found is None or self.plan.differences(found[0].plan):
            return None
        return found[1].get(shard)

    def record(self, input_entry: InputEntry, shard_entry: ShardEntry) -> None:
        """Note that a shard is finished, made from that input (corpus_entry: from all of them).

        Where the manifest says so already, nothing needs to be noted.
        """
        path = self._entry_path(shard_entry.name)
        entry: dict[str, Any] = {"input": asdict(input_entry), "shard": asdict(shard_entry)}
        self._write(path, dump_json(entry))
        # Looked for afterwards: the last step lists what it removes when the manifest is there, so either
        # it sees this entry, or this sees the manifest.
        if self._listed_entry(shard_entry.name) == (input_entry, shard_entry):
            storage.remove(path, missing_ok=True)

    def _entry_path(self, shard: str) -> str:
        return storage.join(self.unfinished, f"{shard}.json")

    def discard(self, shard: str) -> None:
        """Remove the shard that an earlier run made of an input that is left out now, if it is there."""
        for path in (self._entry_path(shard), storage.join(self.directory, shard)):
            storage.remove(path, missing_ok=True)

    def finish(
        self,
        inputs: Iterable[InputEntry],
        shards: Iterable[ShardEntry],
        skipped: Iterable[SkippedEntry] = (),
    ) -> Manifest:
        """Write MD5SUMS and the manifest, and remove everything that is not the dataset.

        InputError where every input was skipped: a dataset of nothing helps nobody.
        """
        manifest = Manifest(
            plan=self.plan,
            inputs=tuple(sorted(inputs, key=attrgetter("name"))),
            shards=tuple(sorted(shards, key=attrgetter("name"))),
            skipped=tuple(sorted(skipped, key=attrgetter("name"))),
        )
        if not manifest.shards:
            refuse_nothing(manifest.skipped)
        storage.make_directory(self.unfinished)  # a repeated last step finds it gone
        self._write(storage.join(self.directory, MD5SUMS_NAME), manifest.md5sums())
        self._write(storage.join(self.directory, MANIFEST_NAME), manifest.dump())
        storage.remove_directory(self.unfinished)
        return manifest

    def _write(self, path: str, data: bytes) -> None:
        with storage.open_output(path, temporary=self.unfinished) as file:
            file.write(data)


def refuse_nothing(skipped: Sequence[SkippedEntry]) -> None:
    """InputError where every input was skipped."""
    if skipped:
        first = min(skipped, key=attrgetter("name"))
        raise InputError(f"{first.name}: {first.reason}; every input was skipped, nothing is left")


@lru_cache(maxsize=2)
def _parse_manifest(data: bytes, path: str) -> tuple[Manifest, dict[str, Entries]]:
    """The manifest and its entries by shard; kept, as every part of a finished dataset asks for them."""
    manifest = parse_manifest(data, path)
    return manifest, manifest.entries()


def file_md5(path: str) -> str:
    """The md5 of a file's bytes."""
    digest = hashlib.md5(usedforsecurity=False)
    with storage.open_input(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
