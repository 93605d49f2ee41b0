"""A part whose text is ids already: a ``.bin`` of fairseq's with its ``.idx``, read with a tokeniser's ids.

Needs NumPy when a part is loaded.
"""

import hashlib
from typing import Any

from bertdata.build.documents import LoadedDocuments
from bertdata.build.warnings import check_documents
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.manifest import InputEntry, SkippedEntry
from bertdata.errors import InputError, ShardError
from bertdata.io import storage
from bertdata.io.file_check import file_md5
from bertdata.io.file_identity import FileIdentity, check_all, identify
from bertdata.records import Documents, Vocabulary
from bertdata.shards.fairseq import load_numpy
from bertdata.tokens.fairseq_dictionary import END, fairseq_ids
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import vocabulary_of

ENDING = ".bin"
_LINES = 1 << 16
"""Lines read at a time."""


class BinarisedPart:
    """A part of ids. A line that is the end token alone ends a document.

    The tokeniser's ids may be in another order than fairseq's, which follow from its roles
    (``bertdata.tokens.fairseq_dictionary``).
    """

    def __init__(self, path: str, tokenizer: TokenizerFile, name: str | None = None) -> None:
        self.path = path
        self.name = name or storage.base_name(path)
        self._tokenizer = tokenizer
        self._identities: list[FileIdentity] = []  # of both files, from the first time that they are read
        self._md5 = ""

    def input_md5(self) -> str:
        """The md5 of the ``.idx`` and the ``.bin``, read one after the other, once."""
        if not self._md5:
            identities = self._identified()
            digest = hashlib.md5(usedforsecurity=False)
            for identity in identities:
                file_md5(identity.path, also=digest.update)
            check_all(identities)
            self._md5 = digest.hexdigest()
        return self._md5

    def _identified(self) -> list[FileIdentity]:
        if not self._identities:
            self._identities = [identify(self.path.removesuffix(ENDING) + ".idx"), identify(self.path)]
        return self._identities

    def load(self, settings: ExampleSettings) -> LoadedDocuments:
        """The documents. InputError for a damaged part, or ids that the tokeniser does not have.

        ChangedInputError where one of its files was changed since it was read first.
        """
        vocabulary = vocabulary_of(self._tokenizer)
        identities = self._identified()
        try:
            documents = self._documents(vocabulary)
        finally:
            check_all(identities)  # a file that was changed meanwhile may look damaged
        check_documents(documents, self.path)
        entry = InputEntry(
            name=self.name,
            bytes=identities[1].state.bytes,
            md5=self.input_md5(),
            documents=documents.documents,
            sentences=documents.sentences,
            tokens=documents.tokens,
            unknown_tokens=documents.unknown,
        )
        return LoadedDocuments(entry=entry, documents=documents)

    def skipped(self, error: InputError) -> SkippedEntry:
        """The entry of this part, left out."""
        size = storage.size(self.path)
        return SkippedEntry(name=self.name, bytes=size, md5=self.input_md5(), reason=error.reason(self.path))

    def _documents(self, vocabulary: Vocabulary) -> Documents:
        load_numpy()
        import numpy as np

        from bertdata.shards.fairseq.lines import open_lines

        table = np.argsort(np.array(fairseq_ids(vocabulary), np.int64))
        table = table.astype(np.uint32 if vocabulary.wide else np.uint16)
        pieces, first = [table[:0]], 0
        try:
            with storage.open_input(self.path) as file:
                lines = open_lines(file, self.path)
                sizes = np.diff(lines.ends, prepend=0)
                for piece in lines.pieces(_LINES):
                    self._check(piece, sizes[first : first + len(piece)], first, vocabulary)
                    kept = np.ones(len(piece.ids), bool)
                    kept[piece.ends - 1] = False
                    pieces.append(table[piece.ids[kept]])
                    first += len(piece)
        except ShardError as error:
            raise InputError(str(error)) from None
        words = np.concatenate(pieces)
        is_text = sizes > 1
        sentence_ends = np.cumsum(sizes[is_text] - 1).astype(np.uint32)
        document_ends = np.unique(np.append(np.cumsum(is_text)[~is_text], len(sentence_ends)))
        return Documents(
            ids=words,
            sentence_ends=sentence_ends,
            document_ends=document_ends[document_ends > 0].astype(np.uint32),
            unknown=None if vocabulary.unk is None else int((words == vocabulary.unk).sum()),
            word_starts=_word_starts(words, vocabulary),
        )

    def _check(self, lines: Any, sizes: Any, first: int, vocabulary: Vocabulary) -> None:
        """InputError for ids that the vocabulary does not have, and for a line without its end token.

        first: the number of the first of these lines.
        """
        wrong = (lines.ids < 0) | (lines.ids >= vocabulary.size)
        if wrong.any():
            raise InputError(
                f"{self.path}: has the id {lines.ids[wrong.argmax()]}, expected 0 to {vocabulary.size - 1}, "
                f"those of {vocabulary.name}"
            )
        ended = sizes > 0
        ended[ended] = lines.ids[lines.ends[ended] - 1] == END
        if not ended.all():
            line = first + int((~ended).argmax())
            raise InputError(f"{self.path}: line {line} does not end with the id {END} of </s>")


def _word_starts(ids: Any, vocabulary: Vocabulary) -> bytes | None:
    """For each id 1 where its token begins with a blank, as tokens of BPE and Unigram do.

    All are 1 where no token has a blank. None where the vocabulary tells word starts.
    """
    import numpy as np

    if vocabulary.continues_word is not None:
        return None
    begins = np.array([word.startswith(("Ġ", "\u2581")) for word in vocabulary.words], np.uint8)
    if not begins.any():
        begins[:] = 1
    return bytes(begins[ids])
