"""Find the files of articles and plain text that a run reads."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.errors import SettingsError
from bertdata.io.input_files import InputFiles, refuse_repeated
from bertdata.io.patterns import expand_patterns
from bertdata.sources.kinds import is_articles_kind
from bertdata.text.input_kinds import CHOSEN_KINDS, KINDS, TEXT
from bertdata.text.reading import TWICE, refuse_compressed_copies
from bertdata.text.training_text import choose_training_text, refuse_file_lists, refuse_held_out


@dataclass(frozen=True, kw_only=True, slots=True)
class TextInputs:
    """Files that a run reads.

    kinds: kind of each file, a key of ``input_kinds.KINDS``.
    notes: messages about files that were left out.
    """

    files: list[str]
    kinds: list[str]
    notes: tuple[str, ...] = ()


def find_inputs(sources: Sequence[str], kind: str, books: Sequence[str] = ()) -> TextInputs:
    """Find the files to read: first the books (plain text), then the sources.

    NVIDIA's bertPrep.py also reads BookCorpus before Wikipedia. Raises SettingsError for an unknown kind, for
    a file that is named twice, and for text that is held out of training.

    sources: paths, directories and patterns.
    kind: kind of all files that ``sources`` names.
    books: paths, directories and patterns of books.
    """
    if kind not in CHOSEN_KINDS:
        raise SettingsError(f"input_kind is {kind!r}, expected one of {', '.join(CHOSEN_KINDS)}")
    first = KINDS[TEXT].find(books) if books else InputFiles(files=[])
    text = choose_training_text(expand_patterns(sources))
    found = KINDS[kind].find(text.paths)
    files = [*first.files, *found.files]
    refuse_repeated(files, TWICE)
    refuse_file_lists(files)
    refuse_held_out(files)
    if is_articles_kind(kind):
        refuse_compressed_copies(files)
    kinds = [TEXT] * len(first.files) + [kind] * len(found.files)
    return TextInputs(files=files, kinds=kinds, notes=(*first.notes, *text.notes, *found.notes))
