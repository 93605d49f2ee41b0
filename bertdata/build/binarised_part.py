"""Input parts that are already token ids: fairseq's ``.bin`` file with its ``.idx``.

Loading such a part requires NumPy.
"""

import hashlib
from typing import Any

from bertdata.build.documents import LoadedDocuments
from bertdata.build.warnings import check_documents
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.manifest import InputEntry, SkippedEntry
from bertdata.errors import InputError, ShardError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.file_identity import FileIdentity, check_all_unchanged, identify_file
from bertdata.records import Documents, Vocabulary
from bertdata.shards.fairseq import load_numpy
from bertdata.tokens.fairseq_dictionary import END, compute_fairseq_ids
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import vocabulary_of

ENDING = ".bin"
_LINES = 1 << 16
"""Number of lines read at a time."""


class BinarisedPart:
    """A part whose lines are already token ids. A line that consists only of the end token ends a document.

    fairseq numbers the tokens differently from the tokeniser. ``tokens.fairseq_dictionary`` defines its
    order.

    name: name of the part in the manifest. None means the file's name.
    """

    def __init__(self, path: str, tokenizer: TokenizerFile, name: str | None = None) -> None:
        self.path = path
        self.name = name or storage.get_base_name(path)
        self._tokenizer = tokenizer
        self._identities: list[FileIdentity] = []  # .idx and .bin, as they were when first read
        self._md5 = ""

    def input_md5(self) -> str:
        """Return the md5 of the ``.idx`` followed by the ``.bin``. The files are hashed only once."""
        if not self._md5:
            identities = self._identify()
            digest = hashlib.md5(usedforsecurity=False)
            for identity in identities:
                compute_file_md5(identity.path, also=digest.update)
            check_all_unchanged(identities)
            self._md5 = digest.hexdigest()
        return self._md5

    def _identify(self) -> list[FileIdentity]:
        """Return the sizes and times of the ``.idx`` and ``.bin`` files, as they were at the first call."""
        if not self._identities:
            self._identities = [
                identify_file(self.path.removesuffix(ENDING) + ".idx"),
                identify_file(self.path),
            ]
        return self._identities

    def load(self, settings: ExampleSettings) -> LoadedDocuments:
        """Return the part's lines as documents.

        Raises InputError if the part is damaged or has ids that the tokeniser lacks. Raises ChangedInputError
        if the ``.idx`` or ``.bin`` file has changed since it was first read.
        """
        vocabulary = vocabulary_of(self._tokenizer)
        identities = self._identify()
        try:
            documents = self._read_documents(vocabulary)
        finally:
            check_all_unchanged(identities)  # even after an error: a file that has changed may look damaged
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
        """Return the manifest entry for a part that was left out, with the reason.

        error: why the part cannot be read.
        """
        size = storage.read_size(self.path)
        return SkippedEntry(name=self.name, bytes=size, md5=self.input_md5(), reason=error.reason(self.path))

    def _read_documents(self, vocabulary: Vocabulary) -> Documents:
        """Read the lines and convert them to documents with the tokeniser's ids."""
        load_numpy()
        import numpy as np

        from bertdata.shards.fairseq.lines import open_lines

        # fairseq_ids maps our id to fairseq's. argsort inverts a permutation: fairseq's id to ours.
        table = np.argsort(np.array(compute_fairseq_ids(vocabulary), np.int64))
        table = table.astype(np.uint32 if vocabulary.wide else np.uint16)
        pieces, first = [table[:0]], 0
        try:
            with storage.open_input(self.path) as file:
                lines = open_lines(file, self.path)
                sizes = np.diff(lines.ends, prepend=0)
                for piece in lines.read_pieces(_LINES):
                    self._check(piece, sizes[first : first + len(piece)], first, vocabulary)
                    kept = np.ones(len(piece.ids), bool)
                    kept[piece.ends - 1] = False
                    pieces.append(table[piece.ids[kept]])
                    first += len(piece)
        except ShardError as error:
            raise InputError(str(error)) from None
        words = np.concatenate(pieces)
        # A line of size 1 is only </s>, a document's end. For example, sizes [4, 3, 1, 5, 1] mean sentences
        # of 3, 2 and 4 ids. Documents end after the second and the third sentence. np.unique drops the empty
        # documents between two such lines, and > 0 those at the beginning.
        is_text = sizes > 1
        sentence_ends = np.cumsum(sizes[is_text] - 1).astype(np.uint32)
        document_ends = np.unique(np.append(np.cumsum(is_text)[~is_text], len(sentence_ends)))
        return Documents(
            ids=words,
            sentence_ends=sentence_ends,
            document_ends=document_ends[document_ends > 0].astype(np.uint32),
            unknown=None if vocabulary.unk is None else int((words == vocabulary.unk).sum()),
            word_starts=_find_word_starts(words, vocabulary),
        )

    def _check(self, lines: Any, sizes: Any, first: int, vocabulary: Vocabulary) -> None:
        """Raise InputError for an id outside the vocabulary, or if a line does not end with the end token.

        first: number of the first of these lines in the file.
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


def _find_word_starts(ids: Any, vocabulary: Vocabulary) -> bytes | None:
    """Return a byte per id that is 1 where a word starts.

    Returns None if the ids themselves show word starts.

    Tokens of byte-level BPE and Unigram models begin with a blank (as ``Ġ`` or ``▁``) at the start of a word.
    If no token of the vocabulary does, every token counts as a word.
    """
    import numpy as np

    if vocabulary.continues_word is not None:
        return None
    begins = np.array([word.startswith(("Ġ", "\u2581")) for word in vocabulary.words], np.uint8)
    if not begins.any():
        begins[:] = 1
    return bytes(begins[ids])
