"""Output directory of ``segment``, for runs on this machine and for the Beam pipeline.

Files appear only when they are complete, and the manifest is written last. ``bertdata.io.directory_protocol``
describes how.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

from bertdata.errors import InputError, ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.file_check import FileEntry, HashingSink, check_file, compute_md5
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME, format_md5sums
from bertdata.io.outputs import refuse_input_as_output
from bertdata.io.real_paths import resolve_path
from bertdata.sources.kinds import is_articles_kind
from bertdata.text.manifest import (
    ARTICLES_COPY,
    TEXT_KIND,
    TextInput,
    TextManifest,
    make_text_plan,
    parse_text_manifest,
)
from bertdata.text.punkt.variants import ALIASES
from bertdata.text.settings import SegmentCounts
from bertdata.text.withheld_leaks import InOrder, count_withheld_in_training, map_in_threads
from bertdata.wiki.articles.manifest import parse_articles_manifest

EXTRACTED = "extracted"
"""Sub-directory of the text directory into which the Beam pipeline writes the extracted articles."""


class DirectorySettings(Protocol):
    """The settings of a recipe that are needed to write a text directory.

    punkt: version of the sentence splitter Punkt. It is ignored for languages without Punkt tables.
    """

    @property
    def punkt(self) -> str: ...

    def tables(self) -> dict[str, str]:
        """Return the md5 of each file of Punkt's tables for the language, by file name.

        The dict is empty if Punkt is not used for the language.
        """
        ...

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a manifest stores them."""
        ...


class DirectoryPlan(Protocol):
    """Plan of a run of ``segment``: its inputs and outputs, known before the run starts.

    inputs: names of the input files, as the manifest lists them.
    kinds: kind of each input file, such as "articles" or "text".
    articles: content of the manifest of the extracted articles, or None if there is none.
    """

    @property
    def settings(self) -> DirectorySettings: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def kinds(self) -> list[str]: ...
    @property
    def articles(self) -> bytes | None: ...


PlanKind = TypeVar("PlanKind", bound=DirectoryPlan)


class TextDirectory(Generic[PlanKind]):
    """Output directory of a run: MLPerf's parts, parts made from records, or NVIDIA's shards.

    The object can be pickled, so that every worker can write into the directory.
    """

    def __init__(self, directory: str, plan: PlanKind) -> None:
        self.plan = plan
        tables = plan.settings.tables()
        self._punkt = {"variant": plan.settings.punkt, "tables": tables} if tables else None
        self._cited = None if plan.articles is None else compute_md5(plan.articles)
        terms = make_text_plan(plan.settings.as_json(), self._punkt, self._cited, plan.inputs, plan.kinds)
        self.commit = Commit(directory, TEXT_KIND, terms, _read_manifest_terms, renamed={"punkt": ALIASES})

    @contextmanager
    def open(self, name: str) -> Iterator[HashingSink]:
        """Open an output file for writing. It appears under its name when the block ends without an error."""
        with self.commit.open(name) as file:
            yield HashingSink(file.write)

    def finished(self) -> TextManifest | None:
        """Return the manifest of a finished directory whose files have the listed sizes.

        Returns None if the directory is not finished, or if a file is missing or has another size.
        """
        self.commit.refuse_others()
        data = self.commit.manifest()
        if data is None:
            return None
        manifest = parse_text_manifest(data, self.commit.path(MANIFEST_NAME))
        by_path = {self.commit.path(entry.name): entry for entry in manifest.files}

        def is_there(path: str) -> bool:
            return check_file(path, by_path[path].bytes, by_path[path].md5, size_only=True) is None

        return manifest if all(storage.map_paths(list(by_path), is_there)) else None

    def keep_finished(self, manifest: TextManifest) -> None:
        """Keep a finished directory. Write MD5SUMS and the copy of the articles' manifest again if they are
        lost.

        manifest: the directory's manifest, from ``finished``.
        """
        sums = format_md5sums(manifest.files, self.commit.manifest())
        self.commit.release_finished({MD5SUMS_NAME: sums, **self._make_copies()})

    def _make_copies(self) -> dict[str, bytes]:
        """Return the copies of earlier manifests that the directory keeps, by file name."""
        return {} if self.plan.articles is None else {ARTICLES_COPY: self.plan.articles}

    def finish(
        self,
        inputs: Sequence[TextInput],
        files: Iterable[FileEntry],
        *,
        release: bool = True,
        in_order: InOrder = map_in_threads,
        unprotected: int | None = None,
    ) -> TextManifest:
        """Write the manifest, MD5SUMS and the copy of the articles' manifest, and remove ``unfinished/``.

        Raises InputError for an input that differs from the articles' manifest.

        inputs: manifest entries of the input files, in the order of the plan.
        files: manifest entries of the output files.
        release: False keeps ``unfinished/``, because a second attempt at a Beam task may still write there.
        in_order: function that calls another function for each file, perhaps in parallel, and returns the
            results in the files' order. It is used to count withheld texts that also occur in the training
            text.
        unprotected: number of texts of evaluation sets that are too short to be searched for in the training
            text. None: they were not counted.
        """
        plan = self.plan
        if plan.articles is not None:
            _check_article_digests([one for one in inputs if is_articles_kind(one.kind)], plan.articles)
        made = tuple(sorted(files, key=attrgetter("name")))
        manifest = TextManifest(
            settings=plan.settings.as_json(),
            punkt=self._punkt,
            articles_manifest=self._cited,
            inputs=tuple(inputs),
            files=made,
            withheld_in_training=count_withheld_in_training(self.commit.directory, made, in_order),
            unprotected=unprotected,
        )
        # Remove files that earlier runs left here and that this run did not make. The old manifest lists
        # them, or they have a note. If they stayed, a reader that lists the directory would read them too.
        old = self.commit.manifest()
        listed = parse_text_manifest(old, MANIFEST_NAME).files if old is not None else ()
        stale = {*self.commit.list_noted_pieces(), *(entry.name for entry in listed)}
        for name in stale - {entry.name for entry in manifest.files}:  # left by a run over different inputs
            storage.remove(self.commit.path(name), missing_ok=True)
        if plan.articles is None:  # left by an earlier run whose articles had a manifest
            storage.remove(self.commit.path(ARTICLES_COPY), missing_ok=True)
        self.commit.finish(manifest.dump(), manifest.md5sums(), self._make_copies(), release=release)
        return manifest


def _check_article_digests(inputs: Sequence[TextInput], articles: bytes) -> None:
    """Raise InputError if an input file has another size or md5 than the articles' manifest lists."""
    listed = {entry.name: entry for entry in parse_articles_manifest(articles, ARTICLES_COPY).files}
    for item in inputs:
        entry = listed[item.name]
        if (entry.bytes, entry.md5) != (item.bytes, item.md5):
            raise InputError(
                f"{item.name}: found {item.bytes} bytes, md5 {item.md5}, expected {entry.bytes} bytes, md5 "
                f"{entry.md5} by the articles' {MANIFEST_NAME}; extract the articles again, or remove that "
                f"{MANIFEST_NAME} if they were changed on purpose"
            )


def _read_manifest_terms(data: bytes, where: str) -> dict[str, Any]:
    """Return the plan in a text directory's manifest, that is, the settings that determine its contents."""
    return parse_text_manifest(data, where).terms()


def read_input_md5s(directory: str) -> dict[str, str]:
    """Return the md5 of each input of a finished directory, by name.

    The result is empty if the directory is not finished.
    """
    path = storage.join(directory, MANIFEST_NAME)
    try:
        manifest = parse_text_manifest(storage.read_bytes(path), path)
    except (MissingInputError, ManifestError):
        return {}
    return {entry.name: entry.md5 for entry in manifest.inputs}


def count_warnings(directory: str, counts: SegmentCounts) -> list[str]:
    """Return the warnings about a finished directory's evaluation texts.

    They are about evaluation texts that occur in the training text, and about evaluation texts that are too
    short to be searched for in the training text.

    counts: counts of the run that made the directory.
    """
    found = []
    if counts.withheld_in_training:
        found.append(
            f"{directory}: withheld texts in training: {counts.withheld_in_training}: the input has them "
            "twice, and the recipe withholds by place; to withhold by text, give --dedup exact "
            "--eval-share 1% in the place of the recipe's settings"
        )
    if counts.unprotected:
        found.append(
            f"{directory}: {counts.unprotected} texts of the sets to exclude have fewer words than an "
            "n-gram, so no document was left out for them; look for fewer words: --exclude-ngram N"
        )
    return found


def refuse_text_inputs(output: str, inputs: Iterable[str | None]) -> None:
    """Raise SettingsError if the output directory is an input, contains an input or lies inside an input.

    Only ``OUTPUT/extracted`` is allowed as an input, if it holds finished articles. This sub-directory has a
    manifest of its own, and ``segment`` never writes into it.
    """
    articles = storage.join(output, EXTRACTED)
    paths = [path for path in inputs if path]
    if any(_is_below(path, articles) for path in paths) and storage.exists(
        storage.join(articles, MANIFEST_NAME)
    ):
        paths = [path for path in paths if not _is_below(path, articles)]
    refuse_input_as_output(output, paths)


def _is_below(path: str, directory: str) -> bool:
    """Return True if the path lies inside the directory."""
    return f"{resolve_path(path)}/".startswith(f"{resolve_path(directory)}/")
