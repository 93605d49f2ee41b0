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
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from bertdata import storage
from bertdata.errors import BertDataError, DatasetError, ManifestError, MissingInputError
from bertdata.manifest import (
    MANIFEST_NAME,
    MD5SUMS_NAME,
    InputEntry,
    Manifest,
    Plan,
    ShardEntry,
    dump_json,
    parse_json,
    parse_manifest,
    parse_plan,
)

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

    def refuse_others(self, *, inputs_known: bool = True) -> Manifest | None:
        """The manifest of the finished dataset that is there; DatasetError as from begin, nothing changed.

        Without inputs_known the plan's inputs are yet to come, and those found may be any.
        """
        if storage.exists(self.directory) and not storage.is_directory(self.directory):
            raise DatasetError(f"{self.directory}: is a file, expected a directory or nothing")
        finished = self._found_manifest()
        found = finished.plan if finished else self._found_plan()
        if found is None:
            self._refuse_strange_files()
            return None
        plan = self.plan if inputs_known else replace(self.plan, inputs=found.inputs)
        if differences := plan.differences(found):
            raise DatasetError(
                f"{self.directory}: was made with other settings: {'; '.join(differences)}; "
                "choose another directory or remove this one"
            )
        return finished

    def give_up(self) -> None:
        """Free the directory for other settings if not one shard was finished in it."""
        with suppress(BertDataError):  # whatever made the run fail is more worth telling
            if storage.list_files(self.directory) == [f"{UNFINISHED}/{_PLAN_NAME}"]:
                storage.remove_directory(self.unfinished)

    def _refuse_strange_files(self) -> None:
        for name in storage.list_files(self.directory):
            if not name.startswith(f"{UNFINISHED}/"):
                raise DatasetError(
                    f"{self.directory}: is not empty and no dataset of ours (it holds {name}); "
                    "choose another directory"
                )

    def _found_manifest(self) -> Manifest | None:
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

    def finished_entry(self, shard: str, input_md5: str) -> tuple[InputEntry, ShardEntry] | None:
        """The entries of a shard that an earlier run finished from the same input, if its bytes still fit."""
        entries = self._read_entry(shard) or self._listed_entry(shard)
        if entries is None or entries[0].md5 != input_md5:
            return None
        path = storage.join(self.directory, shard)
        try:
            sound = storage.size(path) == entries[1].bytes and file_md5(path) == entries[1].md5
        except MissingInputError:
            return None
        return entries if sound else None

    def _read_entry(self, shard: str) -> tuple[InputEntry, ShardEntry] | None:
        path = self._entry_path(shard)
        try:
            value = parse_json(storage.read_bytes(path), path)
            return InputEntry(**value["input"]), ShardEntry(**value["shard"])
        except (MissingInputError, ManifestError, KeyError, TypeError):
            return None  # not there, or cut short by a crash: the shard is made again

    def _listed_entry(self, shard: str) -> tuple[InputEntry, ShardEntry] | None:
        """The entries of a shard in the manifest of the finished dataset, if it is of our plan."""
        manifest = self._found_manifest()
        if manifest is None or self.plan.differences(manifest.plan):
            return None
        inputs = {entry.name: entry for entry in manifest.inputs}
        return next(((inputs[entry.input], entry) for entry in manifest.shards if entry.name == shard), None)

    def record(self, input_entry: InputEntry, shard_entry: ShardEntry) -> None:
        """Note that a shard is finished; unless the manifest says so already."""
        path = self._entry_path(shard_entry.name)
        entry: dict[str, Any] = {"input": asdict(input_entry), "shard": asdict(shard_entry)}
        self._write(path, dump_json(entry))
        # Looked for afterwards: the last step lists what it removes when the manifest is there, so either
        # it sees this entry, or this sees the manifest.
        if self._listed_entry(shard_entry.name) == (input_entry, shard_entry):
            storage.remove(path, missing_ok=True)

    def _entry_path(self, shard: str) -> str:
        return storage.join(self.unfinished, f"{shard}.json")

    def finish(self, entries: list[tuple[InputEntry, ShardEntry]]) -> Manifest:
        """Write MD5SUMS and the manifest, and remove everything that is not the dataset."""
        inputs = {entry.name: entry for entry, _ in entries}
        manifest = Manifest(
            plan=self.plan,
            inputs=tuple(inputs[name] for name in sorted(inputs)),
            shards=tuple(sorted((shard for _, shard in entries), key=lambda shard: shard.name)),
        )
        storage.make_directory(self.unfinished)  # a repeated last step finds it gone
        self._write(storage.join(self.directory, MD5SUMS_NAME), manifest.md5sums())
        self._write(storage.join(self.directory, MANIFEST_NAME), manifest.dump())
        storage.remove_directory(self.unfinished)
        return manifest

    def _write(self, path: str, data: bytes) -> None:
        with storage.open_output(path, temporary=self.unfinished) as file:
            file.write(data)


@lru_cache(maxsize=2)
def _parse_manifest(data: bytes, path: str) -> Manifest:
    """The manifest; kept, as every part of a finished dataset asks for it."""
    return parse_manifest(data, path)


def file_md5(path: str) -> str:
    """The md5 of a file's bytes."""
    digest = hashlib.md5(usedforsecurity=False)
    with storage.open_input(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
