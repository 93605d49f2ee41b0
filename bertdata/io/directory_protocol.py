"""The protocol by which every directory is made: plan, claim, write, resume, release.

::

    DIR/part-00000.tfrecord        a piece, as any file that is made for good; appears whole
    DIR/unfinished/plan.json       the plan that DIR is being made for; from the claim to the release
    DIR/unfinished/NAME.json       note of a finished piece, sealed with an md5
    DIR/unfinished/run.lock        held by the run (none in an object store)
    DIR/unfinished/*.tmp           files that are being written (none in an object store)
    DIR/unfinished/*.scratch       files for a later step of the run
    DIR/MD5SUMS DIR/manifest.json  written last, in this order; then unfinished/ goes

A run that finds the directory of an earlier one with the same plan keeps what is noted and fits, and
makes the rest. A plan of other settings is refused. Everything may be done twice, by two attempts of a
runner: pieces appear whole with the same bytes, and a note that comes after the manifest is taken back.
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
    seal,
    unseal,
)

UNFINISHED = "unfinished"
PLAN_NAME = "plan.json"

Terms = Mapping[str, Any]
"""A plan: JSON values by name, in the words of an error message. Equal terms make equal bytes."""

FOR_ONE_RUN = ".run.tmp"
"""Ending of files in ``unfinished/`` that are of no use to a later run: it sweeps them."""

_KEPT = (".json", ".scratch")


class Commit:
    """A directory that is made for one plan. Picklable, cheap to make, shared by all workers.

    kind: of the manifest (dataset, text, articles). manifest_terms: the terms in a finished
    directory's manifest of that kind, from its bytes and its path. may_grow: terms, lists, to which a run
    may add that takes up an unfinished one; it sees for itself which pieces still fit. renamed: for a
    term, the values that earlier versions named otherwise, by their old names.
    """

    def __init__(
        self,
        directory: str,
        kind: str,
        terms: Terms,
        manifest_terms: Callable[[bytes, str], Terms],
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
        """The directory of growing files and notes."""
        return storage.join(self.directory, UNFINISHED)

    def path(self, name: str) -> str:
        """The path of a piece."""
        return storage.join(self.directory, name)

    def scratch_name(self, name: str) -> str:
        """The name, in the directory, of a file for later steps of the run. Gone after the release."""
        return f"{UNFINISHED}/{_quoted(name)}.scratch"

    @contextmanager
    def run(self) -> Iterator[None]:
        """The time of a run: the directory is locked and claimed, and given up where the run fails.

        DatasetError if the directory is another's, or if another run is writing there.
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
        """The time in which no other run may write to the directory. Errors as from run.

        unknown: as in refuse_others.
        """
        self.refuse_others(
            unknown=unknown
        )  # before anything is changed; claim asks again when nobody else writes there
        try:
            with lock_directory(self.unfinished):
                yield
        except BaseException:
            self._remove_if_empty()
            raise

    def claim(self) -> None:
        """Take the directory, or take up an earlier run of the same plan. DatasetError if it is another's."""
        self.refuse_others()
        storage.make_directory(self.unfinished)
        self.sweep()
        self._write(self._plan_path, seal({"kind": self._kind, **self.terms}))

    def refuse_others(self, *, unknown: tuple[str, ...] = ()) -> None:
        """DatasetError for a directory of another plan, or of something else. Nothing is changed.

        unknown: names of terms that are yet to come, and may be any.
        """
        if storage.exists(self.directory) and not storage.is_directory(self.directory):
            raise DatasetError(f"{self.directory}: is a file, expected a directory or nothing")
        if storage.is_link(self.unfinished):
            raise DatasetError(f"{self.unfinished}: is a link, expected a directory of ours; remove it")
        found = self.found_terms()
        if found is None and (strange := self._strange_file()) is not None:
            found = self.found_terms()  # another run may have begun in between
            if found is None:
                raise DatasetError(
                    f"{self.directory}: is not empty and no {self._kind} of ours (it holds {strange}); "
                    "choose another directory"
                )
        if found is None:
            return
        ours = {"kind": self._kind, **self.terms}
        grown = [name for name in self._may_grow if self._has_grown(name, found)]
        open_names = (*unknown, *grown)
        known = {name: ours[name] for name in ours if name not in open_names}
        theirs = {name: found[name] for name in found if name not in open_names}
        different = differences(known, theirs)
        if different:
            raise DatasetError(
                f"{self.directory}: was made with other settings: {'; '.join(different)}; "
                "choose another directory or remove this one"
            )

    def _has_grown(self, name: str, found: Terms) -> bool:
        """True where this run's list holds that of an unfinished run."""
        theirs = found.get(name, [])
        held = isinstance(theirs, list) and all(item in self.terms[name] for item in theirs)
        return held and self.manifest() is None

    def found_terms(self) -> dict[str, Any] | None:
        """The terms of the finished directory that is there, else of the run that was begun in it.

        Values have their names of today.
        """
        found = self._recorded_terms()
        for name, names in self._renamed.items():
            if found is not None and isinstance(value := found.get(name), str):
                found[name] = names.get(value, value)
        return found

    def _recorded_terms(self) -> dict[str, Any] | None:
        if (manifest := self.manifest()) is not None:
            where = self.path(MANIFEST_NAME)
            kind = parse_json(manifest, where).get("kind", self._kind)
            terms = self._manifest_terms(manifest, where) if kind == self._kind else {}
            return {"kind": kind, **terms}
        try:
            return unseal(storage.read_bytes(self._plan_path), self._plan_path)
        except MissingInputError:
            return None
        except ManifestError as error:  # what the pieces there were made for is not known any more
            raise ManifestError(f"{error}; remove {self.directory}, then run again") from None

    def manifest(self) -> bytes | None:
        """The manifest that is there."""
        try:
            return storage.read_bytes(self.path(MANIFEST_NAME))
        except MissingInputError:
            return None

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """A piece, opened for writing. It appears when the block ends well."""
        with self.open_path(self.path(name)) as file:
            yield file

    @contextmanager
    def open_path(self, path: str) -> Iterator[BinaryIO]:
        """A file of the directory by its path, opened for writing. It appears when the block ends well."""
        storage.make_directory(self.unfinished)  # an attempt later than the release needs it again
        with storage.open_output(path, temporary=self.unfinished) as file:
            yield file

    def write(self, name: str, data: bytes) -> None:
        """Write a small piece."""
        storage.make_directory(storage.parent(self.path(name)))
        self._write(self.path(name), data)

    def note(self, name: str, value: dict[str, Any]) -> None:
        """Note that a piece is finished."""
        self._write(self._note_path(name), seal(value))

    def read_note(self, name: str) -> dict[str, Any] | None:
        """The note of a piece. None where there is none, or none that is whole."""
        path = self._note_path(name)
        try:
            return unseal(storage.read_bytes(path), path)
        except (MissingInputError, ManifestError):
            return None

    def noted(self) -> list[str]:
        """The pieces that are noted, whether or not they still fit."""
        names = storage.list_files(self.unfinished)
        from urllib.parse import unquote  # slow to import

        return [unquote(n[: -len(".json")]) for n in names if n.endswith(".json") and n != PLAN_NAME]

    def forget(self, name: str) -> None:
        """Remove a note."""
        storage.remove(self._note_path(name), missing_ok=True)

    def finish(
        self,
        manifest: bytes,
        md5sums: bytes,
        others: Mapping[str, bytes] | None = None,
        *,
        release: bool = True,
    ) -> None:
        """Write the other small files, MD5SUMS and the manifest, and release the directory."""
        for name, data in {**(others or {}), MD5SUMS_NAME: md5sums, MANIFEST_NAME: manifest}.items():
            self.write(name, data)
        if release:
            self.release()

    def release(self) -> None:
        """Remove ``unfinished/``. A lock that is held goes with its run."""
        storage.remove_directory(self.unfinished, only=_is_ours)
        remove_stale_lock(self.unfinished)

    def release_finished(self) -> None:
        """Remove the rest that a finished run left if it ended before it could."""
        if storage.exists(self.unfinished):
            with self.locked():
                self.release()

    def give_up(self) -> None:
        """Free the directory for other plans if not one piece was finished in it.

        A directory that was finished before, and in which nothing was made anew, is so again.
        """
        with suppress(BertDataError):  # whatever made the run fail is more worth telling
            self.sweep()
            empty = {f"{UNFINISHED}/{name}" for name in (PLAN_NAME, LOCK_NAME)}
            files = storage.list_files(self.directory)
            if [name for name in files if name.startswith(f"{UNFINISHED}/") and name not in empty]:
                return
            if MANIFEST_NAME in files or not _strange(files):
                self.release()
            self._remove_if_empty()

    def sweep(self) -> None:
        """Remove files that were being written when a process was stopped."""
        for name in storage.list_files(self.unfinished):
            if _is_swept(name):
                storage.remove(storage.join(self.unfinished, name), missing_ok=True)

    def _strange_file(self) -> str | None:
        """A file that belongs to no directory of ours, where there is no plan."""
        names = storage.list_files(self.directory)
        strange = _strange(names)
        for name in names:
            if name.startswith(f"{UNFINISHED}/") and not _is_unlisted(name.removeprefix(f"{UNFINISHED}/")):
                strange.append(name)
        return next(iter(strange), None)

    def _remove_if_empty(self) -> None:
        if not storage.is_remote(self.directory):
            with suppress(OSError):
                os.rmdir(self.directory.removeprefix("file://"))

    @property
    def _plan_path(self) -> str:
        return storage.join(self.unfinished, PLAN_NAME)

    def _note_path(self, name: str) -> str:
        return storage.join(self.unfinished, f"{_quoted(name)}.json")

    def _write(self, path: str, data: bytes) -> None:
        with self.open_path(path) as file:
            file.write(data)


def differences(ours: Terms, theirs: Terms) -> list[str]:
    """Differences between the terms of two plans, in words."""
    found = []
    if ours.get("kind") != theirs.get("kind"):
        theirs = {name: theirs[name] for name in theirs if name in ours}  # another kind's have other names
    for name in {**ours, **theirs}:
        value, other = ours.get(name), theirs.get(name)
        if value == other:
            continue
        if isinstance(value, list) and isinstance(other, list):
            changed = sorted(set(map(str, value)) ^ set(map(str, other)))
            found.append(f"other {name} ({', '.join(changed[:3])}{' ...' if changed[3:] else ''})")
        else:
            found.append(f"{name} {other!r}, now {value!r}")
    return found


def nested_directories(names: list[str]) -> list[str]:
    """Directories of ours within a directory, by the names of its files: finished ones and begun ones."""
    marks = (f"/{MANIFEST_NAME}", f"/{UNFINISHED}/{PLAN_NAME}")
    return sorted({name.removesuffix(mark) for name in names for mark in marks if name.endswith(mark)})


def _quoted(name: str) -> str:
    """The name as that of one file, whatever characters it holds: as in a URL, ``/`` escaped too."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "_.-~") else _escaped(char) for char in name
    )


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


def _strange(names: list[str]) -> list[str]:
    """Files that belong to no directory of ours."""
    inner = tuple(f"{name}/" for name in [UNFINISHED, *nested_directories(names)])
    return [name for name in names if not name.startswith(inner)]


def _is_swept(name: str) -> bool:
    """True for a file that is being written, or is for one run."""
    return ("/" not in name and name.endswith(FOR_ONE_RUN)) or storage.is_growing_name(name)


def _is_unlisted(name: str) -> bool:
    """True for a file of ``unfinished/`` that may be there before the plan."""
    return name == LOCK_NAME or _is_swept(name)


def _is_ours(name: str) -> bool:
    return _is_swept(name) or ("/" not in name and name.endswith(_KEPT))
