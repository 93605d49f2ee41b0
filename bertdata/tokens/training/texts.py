"""The text that a vocabulary is trained on: files, their lines, their documents."""

from collections.abc import Iterable, Iterator

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_kind import refuse_other_kinds, utf8_remedy


def read_lines(paths: Iterable[str]) -> Iterator[str]:
    """The lines of all files. InputError for a file that is not UTF-8 text."""
    for path in paths:
        yield from _read_text(path).split("\n")


def read_documents(paths: Iterable[str]) -> Iterator[str]:
    """Each document as ``create`` encodes it for a tokenizer.json: its sentences, a blank between them."""
    for path in paths:
        sentences: list[str] = []
        for line in [*_read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
            if line.strip():
                sentences.append(line)
            elif sentences:
                yield " ".join(sentences)
                sentences = []


def no_words(paths: Iterable[str]) -> InputError:
    """The error for text in which there is nothing to learn."""
    return InputError(f"{', '.join(paths)}: no words to learn from")


def _read_text(path: str) -> str:
    data = storage.read_bytes(path)
    refuse_other_kinds(data, path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError.not_utf8(path, data, error.start, utf8_remedy(data, path)) from None
