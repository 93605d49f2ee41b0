"""The documents from which a shard is created.

They are the documents of one part, or of one shard of a global shuffle.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from bertdata._native import Engine
from bertdata.build.shuffle.gather import gather_documents
from bertdata.build.warnings import check_documents, warn_of_dropped_bytes
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.manifest import InputEntry, SkippedEntry
from bertdata.errors import InputError
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.io.file_identity import read_identified
from bertdata.io.file_kind import refuse_other_kinds
from bertdata.records import Documents
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.fit import warn_of_unknown_tokens
from bertdata.tokens.load import tokenizer_of, vocabulary_of


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LoadedDocuments:
    """Tokenised documents, the manifest entry (name, size, md5) of their file, and warnings for the user."""

    entry: InputEntry
    documents: Documents
    warnings: tuple[str, ...] = ()


class DocumentReader(Protocol):
    """Interface for reading the documents of a shard. No file is read before ``load`` is called."""

    @property
    def name(self) -> str:
        """Name of the input in the manifest. It is empty for the whole corpus."""
        ...

    def input_md5(self) -> str:
        """Return the input's md5.

        A shard of an earlier run is kept if it was created from an input with this md5.
        """
        ...

    def load(self, settings: ExampleSettings) -> LoadedDocuments:
        """Return the documents. Raises InputError if the input cannot be read."""
        ...

    def skipped(self, error: InputError) -> SkippedEntry:
        """Return the manifest entry for an input that was left out, with the reason.

        error: raised by ``load``.
        """
        ...


class PartReader:
    """A part: a text file of sentences, which is read from disk only once.

    name: name of the part in the manifest. None means the file's name.
    """

    def __init__(
        self, path: str, tokenizer: TokenizerFile, engine: Engine | None = None, name: str | None = None
    ) -> None:
        self.path = path
        self.name = name or storage.get_base_name(path)
        self._tokenizer = tokenizer
        self._engine = engine
        self._text: bytes | None = None

    def _read(self) -> bytes:
        """Return the file's contents."""
        if self._text is None:
            self._text = read_identified(self.path)
        return self._text

    def input_md5(self) -> str:
        return compute_md5(self._read())

    def load(self, settings: ExampleSettings) -> LoadedDocuments:
        text = self._read()
        refuse_other_kinds(text, self.path)
        documents = tokenizer_of(self._tokenizer, self._engine).encode([text], [self.path])
        check_documents(documents, self.path)
        entry = InputEntry(
            name=self.name,
            bytes=len(text),
            md5=self.input_md5(),
            documents=documents.documents,
            sentences=documents.sentences,
            tokens=documents.tokens,
            unknown_tokens=documents.unknown,
        )
        warnings = warn_of_dropped_bytes(text, self.path, self._tokenizer.dialect)
        warnings += warn_of_unknown_tokens(documents.unknown, documents.tokens, self.path)
        warnings += find_objective(settings.objective).warnings(documents, self.path)
        self._text = None  # free the memory: only the ids are needed from here on
        return LoadedDocuments(entry=entry, documents=documents, warnings=tuple(warnings))

    def skipped(self, error: InputError) -> SkippedEntry:
        bytes_in = len(self._read())
        return SkippedEntry(
            name=self.name, bytes=bytes_in, md5=self.input_md5(), reason=error.reason(self.path)
        )


class CorpusReader:
    """The documents of one shard of a global shuffle.

    corpus: one manifest entry for all inputs together.
    blocks: function that yields the bytes of the shard's sorted documents, block by block in any order. It is
        only called if the shard must be created.
    """

    name = ""

    def __init__(
        self, corpus: InputEntry, tokenizer: TokenizerFile, blocks: Callable[[], Iterable[bytes]]
    ) -> None:
        self._corpus = corpus
        self._tokenizer = tokenizer
        self._blocks = blocks

    def input_md5(self) -> str:
        return self._corpus.md5

    def load(self, settings: ExampleSettings) -> LoadedDocuments:
        vocabulary = vocabulary_of(self._tokenizer)
        documents = gather_documents(
            self._blocks(), wide=vocabulary.wide, has_word_starts=vocabulary.continues_word is None
        )
        return LoadedDocuments(entry=self._corpus, documents=documents)

    def skipped(self, error: InputError) -> SkippedEntry:
        raise error  # bad inputs were already left out when the parts were sorted
