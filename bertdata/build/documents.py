"""The documents that the examples of a shard are created from.

They are the documents of one part (input file), or the documents that a global shuffle assigned to the shard.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from bertdata._native import Engine
from bertdata.build.shuffle.gather import gather_documents
from bertdata.build.warnings import check_documents, list_dropped_byte_warnings
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
    """The tokenised documents of a shard.

    entry: manifest entry of the file that the documents come from, with its name, size and md5.
    warnings: lines for the user.
    """

    entry: InputEntry
    documents: Documents
    warnings: tuple[str, ...] = ()


class DocumentReader(Protocol):
    """Interface of objects that read the documents of one shard.

    No file is read before one of the methods is called.
    """

    @property
    def name(self) -> str:
        """Name of the input in the manifest. It is empty if the documents come from all inputs."""
        ...

    def input_md5(self) -> str:
        """Return the input's md5.

        A shard that an earlier run wrote is kept if it was created from an input with the same md5.
        """
        ...

    def load(self, settings: ExampleSettings) -> LoadedDocuments:
        """Return the documents. Raises InputError if the input cannot be read."""
        ...

    def make_skipped_entry(self, error: InputError) -> SkippedEntry:
        """Return the manifest entry that records why this input was left out of the dataset.

        error: the error that ``load`` raised.
        """
        ...


class PartReader:
    """Reader of a part, which is a text file of sentences. The file is read from disk only once.

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
        warnings = list_dropped_byte_warnings(text, self.path, self._tokenizer.dialect)
        warnings += warn_of_unknown_tokens(documents.unknown, documents.tokens, self.path)
        warnings += find_objective(settings.objective).warnings(documents, self.path)
        self._text = None  # frees memory, since only the token ids are needed from here on
        return LoadedDocuments(entry=entry, documents=documents, warnings=tuple(warnings))

    def make_skipped_entry(self, error: InputError) -> SkippedEntry:
        bytes_in = len(self._read())
        return SkippedEntry(
            name=self.name, bytes=bytes_in, md5=self.input_md5(), reason=error.reason(self.path)
        )


class CorpusReader:
    """Reader of the documents that a global shuffle assigned to one shard.

    corpus: one manifest entry that stands for all inputs together.
    blocks: function that yields the bytes of the shard's sorted documents as blocks, in any order. It is
        called only if the shard must be created.
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

    def make_skipped_entry(self, error: InputError) -> SkippedEntry:
        raise error  # inputs that cannot be read were left out earlier, when the parts were sorted
