"""The text that a vocabulary is trained on: lines and documents of files, as parts or as records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bertdata.errors import InputError
from bertdata.io.file_identity import read_identified
from bertdata.io.file_kind import refuse_other_kinds, utf8_remedy
from bertdata.text.record_bodies import read_bodies
from bertdata.text.record_plan import RecordPlan


class TrainingText(Protocol):
    """The text of some files."""

    def lines(self) -> Iterator[str]:
        """The lines. InputError for what cannot be read."""
        ...

    def documents(self) -> Iterator[str]:
        """Each document as ``create`` encodes it for a tokenizer.json: sentences with blanks between."""
        ...

    def no_words(self) -> InputError:
        """The error where there is nothing to learn."""
        ...


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Files of text as parts are: blank lines between documents."""

    paths: Sequence[str]

    def lines(self) -> Iterator[str]:
        for path in self.paths:
            yield from _read_text(path).split("\n")

    def documents(self) -> Iterator[str]:
        for path in self.paths:
            sentences: list[str] = []
            for line in [*_read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
                if line.strip():
                    sentences.append(line)
                elif sentences:
                    yield " ".join(sentences)
                    sentences = []

    def no_words(self) -> InputError:
        return _no_words(self.paths)


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """Files of records: their texts, each of which is a document."""

    plan: RecordPlan

    def lines(self) -> Iterator[str]:
        for document in read_bodies(self.plan):
            yield from document.decode().split("\n")

    def documents(self) -> Iterator[str]:
        for document in read_bodies(self.plan):
            yield " ".join(document.decode().removesuffix("\n").split("\n"))

    def no_words(self) -> InputError:
        return _no_words(self.plan.files)


def _no_words(paths: Sequence[str]) -> InputError:
    return InputError(f"{', '.join(paths)}: no words to learn from")


def _read_text(path: str) -> str:
    data = read_identified(path)
    refuse_other_kinds(data, path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError.not_utf8(path, data, error.start, utf8_remedy(data, path)) from None
