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
"""Number of lines that are read from the file at a time."""


class BinarisedPart:
    """A text part (input file of a dataset) whose lines are already token ids.

    A line that consists only of the end token ends a document. The file uses fairseq's numbering of the
    tokens, which ``tokens.fairseq_dictionary`` defines. It differs from the tokeniser's numbering.

    name: name of the part in the manifest. None means the file's name.
    """

    def __init__(self, path: str, tokenizer: TokenizerFile, name: str | None = None) -> None:
        self.path = path
        self.name = name or storage.get_base_name(path)
        self._tokenizer = tokenizer
        # identities (size, times) of the .idx and .bin files at the first read
        self._identities: list[FileIdentity] = []
        self._md5 = ""

    def input_md5(self) -> str:
        """Return the md5 of the ``.idx`` file's bytes followed by the ``.bin`` file's bytes.

        The files are read only at the first call. The md5 is kept for later calls.
        """
        if not self._md5:
            identities = self._identify()
            digest = hashlib.md5(usedforsecurity=False)
            for identity in identities:
                compute_file_md5(identity.path, also=digest.update)
            check_all_unchanged(identities)
            self._md5 = digest.hexdigest()
        return self._md5

    def _identify(self) -> list[FileIdentity]:
        """Return the size and modification time of the ``.idx`` and the ``.bin`` file at the first call.

        They later show whether a file was changed while it was read.
        """
        if not self._identities:
            self._identities = [
                identify_file(self.path.removesuffix(ENDING) + ".idx"),
                identify_file(self.path),
            ]
        return self._identities

    def load(self, settings: ExampleSettings) -> LoadedDocuments:
        """Read the part's lines and return them as tokenised documents.

        Raises InputError if the part is damaged or contains ids that the tokeniser does not have. Raises
        ChangedInputError if the ``.idx`` or ``.bin`` file has changed since it was first read.
        """
        vocabulary = vocabulary_of(self._tokenizer)
        identities = self._identify()
        try:
            documents = self._read_documents(vocabulary)
        finally:
            # also checked after an error, because a file that changed while it was read may look damaged
            check_all_unchanged(identities)
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

    def make_skipped_entry(self, error: InputError) -> SkippedEntry:
        """Return the manifest entry that records why this part was left out of the dataset.

        error: the error that reading the part raised.
        """
        size = storage.read_size(self.path)
        return SkippedEntry(name=self.name, bytes=size, md5=self.input_md5(), reason=error.reason(self.path))

    def _read_documents(self, vocabulary: Vocabulary) -> Documents:
        """Read the lines and convert them to documents with the tokeniser's ids."""
        load_numpy()
        import numpy as np

        from bertdata.shards.fairseq.lines import open_lines

        # compute_fairseq_ids converts the tokeniser's ids to fairseq's ids. argsort inverts this permutation,
        # so table converts fairseq's ids to the tokeniser's ids.
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
        """Raise InputError if an id is outside the vocabulary, or if a line does not end with the end token.

        lines: ids of consecutive lines.
        sizes: number of ids in each line.
        first: number of the first line in the file, for the error message.
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
    """Return one byte for each id, which is 1 if a word starts at the id and 0 otherwise.

    Returns None if word starts need not be stored, because the tokens themselves show them (as ``##`` does in
    WordPiece).

    Tokens of byte-level BPE and Unigram models show the start of a word by a leading blank, written as ``Ġ``
    or ``▁``. If no token of the vocabulary begins with a blank, every token counts as a word.
    """
    import numpy as np

    if vocabulary.continues_word is not None:
        return None
    begins = np.array([word.startswith(("Ġ", "\u2581")) for word in vocabulary.words], np.uint8)
    if not begins.any():
        begins[:] = 1
    return bytes(begins[ids])
