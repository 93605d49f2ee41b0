"""Plan of a run that makes parts from records: which files it reads, and how."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bertdata.io import storage
from bertdata.io.file_identity import FileIdentity, identify_file
from bertdata.io.patterns import expand_patterns
from bertdata.sources.find import choose_text_field, find_files_without_language, find_sources
from bertdata.sources.kinds import SOURCE_KINDS, is_articles_kind
from bertdata.text.escaped_articles import mark_escaped_articles
from bertdata.text.input_kinds import describe_kinds
from bertdata.text.numbered_piece import NumberedPiece
from bertdata.text.part_settings import PartSettings
from bertdata.text.reading import refuse_compressed_copies
from bertdata.text.text_plan import make_relative_names
from bertdata.text.training_text import choose_training_text, refuse_file_lists, refuse_held_out


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordPlan:
    """Plan of a run over records: the files that it reads.

    files: paths of the input files.
    inputs: names of the input files in the manifest.
    kinds: kind of each input file, a key of ``sources.kinds.SOURCE_KINDS``.
    identities: size and time of each input file when it was listed, to detect later changes.
    empty: number of input files without content.
    articles: always None. The field exists because ``TextPlan`` holds the manifest of articles here.
    notes: messages about files that were left out.
    """

    settings: PartSettings
    files: Sequence[str]
    inputs: list[str]
    kinds: list[str]
    identities: Sequence[FileIdentity]
    empty: int = 0
    articles: bytes | None = None
    notes: tuple[str, ...] = ()

    def lines(self, directory: str) -> list[str]:
        """Return lines that tell the user what the run would read and write."""
        given = ", ".join(f"{name} {value}" for name, value in self.settings.as_json().items())
        return [
            f"{directory}: text: {given}, input kinds {describe_kinds(self.kinds)}",
            *(f"  read  {path} ({storage.read_size(path)} bytes)" for path in self.files),
            f"{directory}: parts of at most {self.settings.part_size} MiB of text; their number is known "
            "when all records are read",
        ]


def plan_records(sources: Sequence[str], kind: str | None, settings: PartSettings) -> RecordPlan:
    """Return the plan for the files that the sources name.

    Raises InputError if a file's kind is unknown or no field holds text. Raises SettingsError in these cases:

    - The user must choose the text field, or has chosen a field that does not exist.
    - The user's answer to ``--escaped-articles`` is missing or wrong.
    - A file holds text that is held out of training.
    - A file and its compressed copy are both inputs.

    kind: kind of all files. None: the kind of each file is recognised from its bytes.
    """
    text = choose_training_text(expand_patterns(sources))
    found = find_sources(text.paths, kind, as_is=settings.records.as_is, encoding=settings.records.encoding)
    refuse_file_lists(found.files)
    refuse_held_out(found.files)
    named = zip(found.files, found.kinds, strict=True)
    refuse_compressed_copies(path for path, one in named if is_articles_kind(one))
    kinds = mark_escaped_articles(found.files, found.kinds, settings.escaped_articles)
    settings = replace(settings, records=choose_text_field(settings.records, found.files, kinds))
    return RecordPlan(
        settings=settings,
        files=found.files,
        inputs=make_relative_names(found.files),
        kinds=kinds,
        empty=found.empty,
        notes=(*text.notes, *found.notes, *_list_language_notes(settings, found.files, kinds)),
        identities=storage.map_paths(found.files, identify_file),
    )


def _list_language_notes(settings: PartSettings, files: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """Return a message for each file whose records seem to lack the language field, so that they are taken to
    be of the language ``--language``. A misspelt name of the field would otherwise go unnoticed.
    """
    if settings.records.language_field is None or settings.language is None:
        return []
    return [
        f"{path}: its first records have no field {settings.records.language_field!r}; they are taken to be "
        f"of --language {settings.language}"
        for path in find_files_without_language(settings.records, files, kinds)
    ]


def plan_pieces(plan: RecordPlan) -> Iterator[NumberedPiece]:
    """Divide all files into pieces (groups of consecutive records) and yield the pieces in order."""
    for file, (path, kind) in enumerate(zip(plan.files, plan.kinds, strict=True)):
        pieces = SOURCE_KINDS[kind].pieces(path, plan.settings.records)
        for number, piece in enumerate(pieces):
            yield NumberedPiece(file, number, path, piece)
