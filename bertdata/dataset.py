"""A dataset directory while it is made: what is finished, what may be kept, and the last step.

::

    DIR/part-00000.tfrecord      appears whole, by renaming
    DIR/unfinished/plan.json     what the directory is for; there until the manifest is
    DIR/unfinished/*.json        one entry for each finished shard
    DIR/unfinished/*.tmp         files that are being written
    DIR/MD5SUMS DIR/manifest.json   written last, in this order; then unfinished/ goes

A run that finds the directory of an earlier one with the same plan keeps each shard whose entry
fits its input and its bytes, and makes the others.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from bertdata import storage
from bertdata.errors import BertDataError, DatasetError, InputError, ManifestError, MissingInputError
from bertdata.manifest import (
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
        finished = self.refuse_others()
        storage.make_directory(self.unfinished)
        plan = {**self.plan.as_json(), "inputs": list(self.plan.inputs)}
        self._write(storage.join(self.unfinished, _PLAN_NAME), dump_json(plan))
        if finished is not None:
            for entries in finished.entries().values():
                self.record(*entries)

    def refuse_others(self, *, inputs_known: bool = True) -> Manifest | None:
        """The manifest of the finished dataset that is there; DatasetError as from begin, nothing changed.

        Without inputs_known the plan's inputs are yet to come, and those found may be any.
        """
        if storage.exists(self.directory) and not storage.is_directory(self.directory):
            raise DatasetError(f"{self.directory}: is a file, expected a directory or nothing")
        finished = self.found_manifest()
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
        """Free the directory for other settings if not one shard was finished in it.

        A dataset that was finished before, and in which nothing was made anew, is so again.
        """
        with suppress(BertDataError):  # whatever made the run fail is more worth telling
            begun = [name for name in storage.list_files(self.unfinished) if name != _PLAN_NAME]
            if not begun:
                useless = storage.list_files(self.directory) == [f"{UNFINISHED}/{_PLAN_NAME}"]
            else:
                finished = self.found_manifest()
                known = {f"{shard.name}.json": shard for shard in finished.shards} if finished else {}
                useless = all(self._is_entry_of(known.get(name)) for name in begun)
            if useless:
                storage.remove_directory(self.unfinished)

    def _is_entry_of(self, shard: ShardEntry | None) -> bool:
        """Whether the shard's entry says what a finished manifest says of it."""
        entries = self.read_entry(shard.name) if shard else None
        return entries is not None and entries[1] == shard

    def _refuse_strange_files(self) -> None:
        for name in storage.list_files(self.directory):
            if not name.startswith(f"{UNFINISHED}/"):
                raise DatasetError(
                    f"{self.directory}: is not empty and no dataset of ours (it holds {name}); "
                    "choose another directory"
                )

    def found_manifest(self) -> Manifest | None:
        """The manifest that is there."""
        path = storage.join(self.directory, MANIFEST_NAME)
        return parse_manifest(storage.read_bytes(path), path) if storage.exists(path) else None

    def _found_plan(self) -> Plan | None:
        path = storage.join(self.unfinished, _PLAN_NAME)
        if not storage.exists(path):
            return None
        try:
            return parse_plan(parse_json(storage.read_bytes(path), path), path)
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
        """The entries that a run noted of a finished shard."""
        path = self._entry_path(shard)
        if not storage.exists(path):
            return None
        try:
            value = parse_json(storage.read_bytes(path), path)
            return InputEntry(**value["input"]), ShardEntry(**value["shard"])
        except (ManifestError, KeyError, TypeError):
            return None  # cut short by a crash: the shard is made again

    def record(self, input_entry: InputEntry, shard_entry: ShardEntry) -> None:
        """Note that a shard is finished."""
        entry: dict[str, Any] = {"input": asdict(input_entry), "shard": asdict(shard_entry)}
        self._write(self._entry_path(shard_entry.name), dump_json(entry))

    def _entry_path(self, shard: str) -> str:
        return storage.join(self.unfinished, f"{shard}.json")

    def discard(self, shard: str) -> None:
        """Remove the shard that an earlier run made of an input that is left out now, if it is there."""
        for path in (self._entry_path(shard), storage.join(self.directory, shard)):
            storage.remove(path, missing_ok=True)

    def finish(self, entries: list[Entries], skipped: Sequence[SkippedEntry] = ()) -> Manifest:
        """Write MD5SUMS and the manifest, and remove everything that is not the dataset.

        InputError where every input was skipped: a dataset of nothing helps nobody.
        """
        skipped = tuple(sorted(skipped, key=lambda entry: entry.name))
        if skipped and not entries:
            first = skipped[0]
            raise InputError(f"{first.name}: {first.reason}; every input was skipped, nothing is left")
        inputs = {entry.name: entry for entry, _ in entries}
        manifest = Manifest(
            plan=self.plan,
            inputs=tuple(inputs[name] for name in sorted(inputs)),
            shards=tuple(sorted((shard for _, shard in entries), key=lambda shard: shard.name)),
            skipped=skipped,
        )
        storage.make_directory(self.unfinished)  # a repeated last step finds it gone
        self._write(storage.join(self.directory, MD5SUMS_NAME), manifest.md5sums())
        self._write(storage.join(self.directory, MANIFEST_NAME), manifest.dump())
        storage.remove_directory(self.unfinished)
        return manifest

    def _write(self, path: str, data: bytes) -> None:
        with storage.open_output(path, temporary=self.unfinished) as file:
            file.write(data)


def file_md5(path: str) -> str:
    """The md5 of a file's bytes."""
    digest = hashlib.md5(usedforsecurity=False)
    with storage.open_input(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
