"""The protocol for writing an output directory: plan, claim, write pieces, resume, release.

::

    DIR/part-00000.tfrecord        a piece: a finished output file
    DIR/unfinished/plan.json       the settings that DIR is made with; exists from the claim to the release
    DIR/unfinished/NAME.json       note that a piece is finished, sealed with an md5
    DIR/unfinished/run.lock        held by the run (not in an object store)
    DIR/unfinished/*.tmp           files being written (not in an object store)
    DIR/unfinished/*.scratch       intermediate files for a later step of the run
    DIR/MD5SUMS DIR/manifest.json  written last, in this order; then unfinished/ is removed

Every file is written under a temporary name in ``unfinished/`` and then renamed, so that a file either has
its full contents or does not exist. What a crash leaves depends on when it happens:

- While a piece is written: a ``*.tmp`` file, which the next run deletes.
- After a piece and before its note: the piece. The next run does not trust it and writes the same bytes
  again.
- After the note: the piece and its note. The next run checks the piece against the note and keeps it.
- After the manifest: a finished directory. The next run only removes ``unfinished/``.

A power cut may also empty files that were written shortly before, because a file system may record a name
long before the contents. The plan is forced to disk before the first piece, and all other files before the
manifest. So a power cut before the manifest costs at most pieces that do not fit their notes, and a directory
with a manifest is whole.

A run that finds an unfinished directory with the same plan keeps the noted pieces that still fit and creates
the rest. A directory with a different plan is refused.

Every action may be repeated, because Beam and Dask may run a task twice. Both attempts write the same bytes.
A slow attempt may even end after the directory is finished. The code that runs the task then removes the note
that this attempt wrote.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from bertdata.errors import BertDataError, DatasetError, ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.io.directory_lock import LOCK_NAME, lock_directory, remove_stale_lock
from bertdata.io.manifest_file import (
    MANIFEST_NAME,
    MD5SUMS_NAME,
    parse_json,
    seal_json,
    unseal_json,
)

UNFINISHED = "unfinished"
PLAN_NAME = "plan.json"

PlanSettings = Mapping[str, Any]
"""The plan of an output directory: the settings that determine its bytes, as JSON values by name.

Error messages show the names. A run may continue a directory only if its settings are equal to the
directory's settings.
"""

ONE_RUN_ENDING = ".run.tmp"
"""Ending of temporary files in ``unfinished/`` that are of no use to a later run, which deletes them."""

_KEPT = (".json", ".scratch")


class Commit:
    """An output directory, together with its plan: the settings that determine its contents.

    The object has no open files, so it can be pickled and sent to all workers.

    kind: what the directory holds, as in its manifest (dataset, text, articles).
    terms: the plan, that is, the settings as JSON values by name.
    manifest_terms: function that returns the plan of a finished directory. Its arguments are the bytes and
        the path of the directory's manifest.
    may_grow: names of settings that are lists and may get longer before an unfinished run is resumed. The
        caller then decides which finished pieces it can keep.
    renamed: for the name of a setting, a dict from each value that earlier versions wrote to the value that
        this version writes. With it, plans of earlier versions are still recognised.
    """

    def __init__(
        self,
        directory: str,
        kind: str,
        terms: PlanSettings,
        manifest_terms: Callable[[bytes, str], PlanSettings],
        *,
        may_grow: tuple[str, ...] = (),
        renamed: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.directory = directory
        self.terms = dict(terms)
        self._kind = kind
        self._manifest_terms = manifest_terms
        self._may_grow = may_grow
        self._renamed = dict(renamed or {})

    @property
    def unfinished(self) -> str:
        """Path of the sub-directory for temporary files and notes."""
        return storage.join(self.directory, UNFINISHED)

    def path(self, name: str) -> str:
        """Return the full path of a piece (an output file of the directory)."""
        return storage.join(self.directory, name)

    def scratch_name(self, name: str) -> str:
        """Return the name, relative to the directory, of an intermediate file.

        ``release`` removes such files.
        """
        return f"{UNFINISHED}/{_quote_name(name)}.scratch"

    @contextmanager
    def run(self) -> Iterator[None]:
        """Lock and claim the directory during the block.

        If the block fails before any piece (output file) was finished, the claim is removed, so that a run
        with other settings may use the directory. Raises DatasetError if the directory belongs to a different
        plan, or if another run is writing there.
        """
        with self.locked():
            self.claim()
            try:
                yield
            except BaseException:
                self.give_up()
                raise

    @contextmanager
    def locked(self, *, unknown: tuple[str, ...] = ()) -> Iterator[None]:
        """Lock the directory during the block, without writing a plan into it.

        Raises DatasetError if the directory belongs to a different plan, or if another run is writing there.

        unknown: names of settings whose values the caller does not know yet. They may have any value in the
            directory's plan.
        """
        # Check before the lock file is created, so that a wrong directory stays untouched. claim checks
        # again under the lock, because another run may have started in between.
        self.refuse_others(unknown=unknown)
        try:
            with lock_directory(self.unfinished):
                yield
        except BaseException:
            self._remove_if_empty()
            raise

    def claim(self) -> None:
        """Write the plan (the settings) into the directory, after checking that no run with another plan has
        used it.

        Temporary files that a stopped run left there are deleted. Raises DatasetError if the directory
        belongs to a different plan, or has no plan and holds other files.
        """
        self.refuse_others()
        storage.make_directory(self.unfinished)
        self.delete_temporary_files()
        # A damaged plan would make the directory useless, so the plan is on disk before the first piece.
        self._write(self._plan_path, seal_json({"kind": self._kind, **self.terms}), flushes=True)
        storage.flush_directories(self.unfinished)

    def refuse_others(self, *, unknown: tuple[str, ...] = ()) -> None:
        """Raise DatasetError if the directory belongs to a different plan, or has no plan and holds other
        files.

        Nothing is changed.

        unknown: names of settings whose values the caller does not know yet. They may have any value in the
            directory's plan.
        """
        if storage.exists(self.directory) and not storage.is_directory(self.directory):
            raise DatasetError(f"{self.directory}: is a file, expected a directory or nothing")
        if storage.is_link(self.unfinished):
            raise DatasetError(f"{self.unfinished}: is a link, expected a directory of ours; remove it")
        found = self.read_plan_settings()
        if found is None and (strange := self._find_foreign_file()) is not None:
            # The directory has a file but no plan. Another run may have written its plan between the two
            # calls above, and the file may be the first piece of that run. So look for a plan once more
            # before refusing the directory.
            found = self.read_plan_settings()
            if found is None:
                raise DatasetError(
                    f"{self.directory}: is not empty and no {self._kind} of ours (it holds {strange}); "
                    "choose another directory"
                )
        if found is None:
            return
        # Compare all settings, except those that the caller does not know yet and lists that have only gained
        # items.
        ours = {"kind": self._kind, **self.terms}
        grown = [name for name in self._may_grow if self._has_grown(name, found)]
        open_names = (*unknown, *grown)
        known = {name: ours[name] for name in ours if name not in open_names}
        theirs = {name: found[name] for name in found if name not in open_names}
        different = describe_plan_differences(known, theirs)
        if different:
            raise DatasetError(
                f"{self.directory}: was made with other settings: {'; '.join(different)}; "
                "choose another directory or remove this one"
            )

    def _has_grown(self, name: str, found: PlanSettings) -> bool:
        """Return True if a setting is a list that contains every item of the unfinished run's list."""
        theirs = found.get(name, [])
        held = isinstance(theirs, list) and all(item in self.terms[name] for item in theirs)
        return held and self.manifest() is None

    def read_plan_settings(self) -> dict[str, Any] | None:
        """Return the settings that the directory's contents were made with, or None if the directory has
        none.

        They are read from the manifest of a finished directory, or from the plan of an unfinished run. Values
        that earlier versions wrote are translated to current ones.
        """
        found = self._read_terms()
        for name, names in self._renamed.items():
            if found is not None and isinstance(value := found.get(name), str):
                found[name] = names.get(value, value)
        return found

    def _read_terms(self) -> dict[str, Any] | None:
        """Return the directory's settings as they were written, which may be by an earlier version."""
        if (manifest := self.manifest()) is not None:
            where = self.path(MANIFEST_NAME)
            kind = parse_json(manifest, where).get("kind", self._kind)
            terms = self._manifest_terms(manifest, where) if kind == self._kind else {}
            return {"kind": kind, **terms}
        try:
            return unseal_json(storage.read_bytes(self._plan_path), self._plan_path)
        except MissingInputError:
            return None
        except ManifestError as error:  # a damaged plan: nothing says which settings made the pieces
            raise ManifestError(f"{error}; remove {self.directory}, then run again") from None

    def manifest(self) -> bytes | None:
        """Return the bytes of the directory's manifest, or None if it has no manifest."""
        try:
            return storage.read_bytes(self.path(MANIFEST_NAME))
        except MissingInputError:
            return None

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a piece for writing. The file appears when the block ends without an error."""
        with self.open_path(self.path(name)) as file:
            yield file

    @contextmanager
    def open_path(self, path: str, *, flushes: bool = False) -> Iterator[BinaryIO]:
        """Open a file of the directory for writing. The file appears when the block ends without an error.

        path: the file's full path.
        flushes: force the file to disk before it appears. Pieces are not flushed one by one, because a run
            with thousands of them would wait for the disk too long. ``finish`` flushes all. A power cut
            before that may damage a piece, which its note then reveals.
        """
        # unfinished/ is gone if another attempt at this task has already finished the directory
        storage.make_directory(self.unfinished)
        with storage.open_output(path, temporary=self.unfinished, flushes=flushes) as file:
            yield file

    def write(self, name: str, data: bytes) -> None:
        """Write a piece (an output file) whose whole content is in memory."""
        storage.make_directory(storage.get_parent(self.path(name)))
        self._write(self.path(name), data)

    def note(self, name: str, value: dict[str, Any]) -> None:
        """Record in a note that a piece (an output file) is finished.

        value: JSON object to store in the note. A resuming run reads it back.
        """
        self._write(self._note_path(name), seal_json(value))

    def read_note(self, name: str) -> dict[str, Any] | None:
        """Return the value in the note of a piece (an output file).

        Returns None if the note is missing or damaged.
        """
        path = self._note_path(name)
        try:
            return unseal_json(storage.read_bytes(path), path)
        except (MissingInputError, ManifestError):
            return None

    def list_noted_pieces(self) -> list[str]:
        """Return the names of the pieces (output files) that have a note.

        The pieces themselves may have been damaged or removed since.
        """
        names = storage.list_files(self.unfinished)
        from urllib.parse import unquote  # imported here because it is slow to import

        return [unquote(n[: -len(".json")]) for n in names if n.endswith(".json") and n != PLAN_NAME]

    def delete_note(self, name: str) -> None:
        """Delete a piece's note."""
        storage.remove(self._note_path(name), missing_ok=True)

    def finish(
        self,
        manifest: bytes,
        md5sums: bytes,
        others: Mapping[str, bytes] | None = None,
        *,
        release: bool = True,
    ) -> None:
        """Finish the directory: write the remaining small files, MD5SUMS and the manifest, and remove
        ``unfinished/``.

        manifest: bytes of the manifest, which is written last.
        md5sums: bytes of the MD5SUMS file, which is written just before the manifest.
        others: further files to write before MD5SUMS, as a dict of contents by file name.
        release: False keeps ``unfinished/``, for a caller that removes it later.
        """
        for name, data in {**(others or {}), MD5SUMS_NAME: md5sums}.items():
            self.write(name, data)
        # The manifest must be the last file, on disk too. Its existence means that the directory is finished,
        # so after a power cut all other files must be as whole as it is.
        self._flush_files()
        self._write(self.path(MANIFEST_NAME), manifest, flushes=True)
        if release:
            self.release()

    def _flush_files(self) -> None:
        """Force all files of the directory to disk, and their names. Most have been there for long."""
        if storage.is_remote(self.directory):
            return
        names = storage.list_files(self.directory)
        paths = [self.path(name) for name in names if not name.startswith(f"{UNFINISHED}/")]
        for path in paths:
            with suppress(MissingInputError):  # another attempt's temporary file
                storage.flush_file(path)
        for folder in {storage.get_parent(path) for path in paths}:
            storage.flush_directory(folder)
        storage.flush_directory(self.directory)

    def release(self) -> None:
        """Remove ``unfinished/``. A lock that a running process holds stays."""
        storage.remove_directory(self.unfinished, only=_is_protocol_file)
        remove_stale_lock(self.unfinished)

    def release_finished(self, small: Mapping[str, bytes]) -> None:
        """Release a finished directory that a later run keeps.

        Remove the ``unfinished/`` of a run that ended before it could remove it, and write small files again
        that were lost since.

        small: contents of the files that ``finish`` has written beside the manifest, by name. A file that is
            missing or has another size is written again. The pieces are compared by the caller.
        """
        lost = {name: data for name, data in small.items() if not self._has_size(name, len(data))}
        if lost or storage.exists(self.unfinished):
            with self.locked():
                for name, data in lost.items():
                    storage.make_directory(storage.get_parent(self.path(name)))
                    self._write(self.path(name), data, flushes=True)
                self.release()

    def _has_size(self, name: str, size: int) -> bool:
        """Return True if the directory has a file with this name and size."""
        path = self.path(name)
        return storage.exists(path) and storage.read_size(path) == size

    def give_up(self) -> None:
        """Let runs with other settings use the directory, unless it has a finished output file or a scratch
        file.

        The plan is removed together with ``unfinished/``. A directory that an earlier run had finished is
        still a finished directory afterwards.
        """
        with suppress(BertDataError):  # the error that made the run fail is more important
            self.delete_temporary_files()
            empty = {f"{UNFINISHED}/{name}" for name in (PLAN_NAME, LOCK_NAME)}
            files = storage.list_files(self.directory)
            # A note or scratch file is worth keeping for a later run, and needs the plan next to it.
            if [name for name in files if name.startswith(f"{UNFINISHED}/") and name not in empty]:
                return
            if MANIFEST_NAME in files or not _find_foreign_names(files):
                self.release()
            self._remove_if_empty()

    def delete_temporary_files(self) -> None:
        """Delete the temporary files (``*.tmp``) that a stopped process left half-written."""
        for name in storage.list_files(self.unfinished):
            if _is_leftover(name):
                storage.remove(storage.join(self.unfinished, name), missing_ok=True)

    def _find_foreign_file(self) -> str | None:
        """Return the name of a file that this tool did not write, or None if there is no such file.

        Called for directories that have no plan.
        """
        names = storage.list_files(self.directory)
        strange = _find_foreign_names(names)
        for name in names:
            if name.startswith(f"{UNFINISHED}/") and not _may_precede_plan(
                name.removeprefix(f"{UNFINISHED}/")
            ):
                strange.append(name)
        return next(iter(strange), None)

    def _remove_if_empty(self) -> None:
        """Remove a local directory if it is empty."""
        if not storage.is_remote(self.directory):
            with suppress(OSError):
                os.rmdir(self.directory.removeprefix("file://"))

    @property
    def _plan_path(self) -> str:
        return storage.join(self.unfinished, PLAN_NAME)

    def _note_path(self, name: str) -> str:
        return storage.join(self.unfinished, f"{_quote_name(name)}.json")

    def _write(self, path: str, data: bytes, *, flushes: bool = False) -> None:
        """Write a file of the directory whose whole content is in memory."""
        with self.open_path(path, flushes=flushes) as file:
            file.write(data)


def describe_plan_differences(ours: PlanSettings, theirs: PlanSettings) -> list[str]:
    """Return a phrase for each setting in which two plans differ, for the error message."""
    found = []
    if ours.get("kind") != theirs.get("kind"):
        # Different kinds of output have different settings. Only the settings that both have are worth
        # comparing.
        theirs = {name: theirs[name] for name in theirs if name in ours}
    for name in {**ours, **theirs}:
        value, other = ours.get(name), theirs.get(name)
        if value == other:
            continue
        if isinstance(value, list) and isinstance(other, list):
            changed = sorted(set(map(str, value)) ^ set(map(str, other)))
            found.append(f"other {name} ({', '.join(changed[:3])}{' ...' if changed[3:] else ''})")
        elif isinstance(value, Mapping) or isinstance(other, Mapping):
            found.append(f"other {name}")  # a table, such as the md5s of Punkt's files, is too long to show
        else:
            found.append(f"{name} {other!r}, now {value!r}")
    return found


def find_nested_directories(names: list[str]) -> list[str]:
    """Return the sub-directories that this tool wrote, finished or not, recognised by manifest or plan file.

    names: names of all files below the directory.
    """
    marks = (f"/{MANIFEST_NAME}", f"/{UNFINISHED}/{PLAN_NAME}")
    return sorted({name.removesuffix(mark) for name in names for mark in marks if name.endswith(mark)})


def _quote_name(name: str) -> str:
    """Return the name with special characters and ``/`` percent-escaped, so that it is one file name."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "_.-~") else _escape_character(char)
        for char in name
    )


def _escape_character(char: str) -> str:
    """Return the character's UTF-8 bytes as ``%XX`` escapes."""
    return "".join(f"%{byte:02X}" for byte in char.encode())


def _find_foreign_names(names: list[str]) -> list[str]:
    """Return the names of the files in a directory that this program did not write.

    Files in ``unfinished/`` are not returned, nor files in sub-directories that this program wrote.
    """
    inner = tuple(f"{name}/" for name in [UNFINISHED, *find_nested_directories(names)])
    return [name for name in names if not name.startswith(inner)]


def _is_leftover(name: str) -> bool:
    """Return True if the file is of no use to a later run: half-written, or named with ``ONE_RUN_ENDING``."""
    return ("/" not in name and name.endswith(ONE_RUN_ENDING)) or storage.is_growing_name(name)


def _may_precede_plan(name: str) -> bool:
    """Return True for a name in ``unfinished/`` that this tool may write before it writes the plan."""
    return name == LOCK_NAME or _is_leftover(name)


def _is_protocol_file(name: str) -> bool:
    """Return True for a name in ``unfinished/`` that this tool writes."""
    return _is_leftover(name) or ("/" not in name and name.endswith(_KEPT))
