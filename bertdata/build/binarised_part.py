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
from bertdata.records import Documents, Vocabulary
from bertdata.shards.fairseq import load_numpy
from bertdata.tokens.fairseq_dictionary import END, fairseq_ids
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import vocabulary_of

ENDING = ".bin"


class BinarisedPart:
    """A part of ids. A line that is the end token alone ends a document.

    The tokeniser's ids may be in another order than fairseq's, which follow from its roles
    (``bertdata.tokens.fairseq_dictionary``).
    """

    def __init__(self, path: str, tokenizer: TokenizerFile, name: str | None = None) -> None:
        self.path = path
        self.name = name or storage.base_name(path)
        self._tokenizer = tokenizer

    def input_md5(self) -> str:
        """The md5 of the ``.idx`` and the ``.bin`` one after the other."""
        digest = hashlib.md5(usedforsecurity=False)
        for path in (self.path.removesuffix(ENDING) + ".idx", self.path):
            digest.update(storage.read_bytes(path))
        return digest.hexdigest()

    def load(self, settings: ExampleSettings) -> LoadedDocuments:
        """The documents. InputError for a damaged part, or ids that the tokeniser does not have."""
        vocabulary = vocabulary_of(self._tokenizer)
        documents = self._documents(vocabulary)
        check_documents(documents, self.path)
        entry = InputEntry(
            name=self.name,
            bytes=storage.size(self.path),
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

        from bertdata.shards.fairseq.lines import read_lines

        try:
            with storage.open_input(self.path) as file:
                lines = read_lines(file, self.path)
        except ShardError as error:
            raise InputError(str(error)) from None
        table = np.argsort(np.array(fairseq_ids(vocabulary), np.int64))
        ids, ends = lines.ids, lines.ends
        if (len(ids) and int(ids.max()) >= len(table)) or (len(ids) and int(ids.min()) < 0):
            raise InputError(
                f"{self.path}: has the id {int(ids.max())}, expected less than {len(table)}, as many as "
                f"{vocabulary.name} has"
            )
        sizes = np.diff(ends, prepend=0)
        last = np.maximum(ends - 1, 0)
        ended = (sizes > 0) & (ids[last] == END)
        if not ended.all():
            line = int(np.argmax(~ended))
            raise InputError(f"{self.path}: line {line} does not end with the id {END} of </s>")
        kept = np.ones(len(ids), bool)
        kept[last] = False
        words = table[ids[kept]].astype(np.uint32 if vocabulary.wide else np.uint16)
        is_text = sizes > 1
        sentence_ends = np.cumsum(sizes[is_text] - 1).astype(np.uint32)
        before = np.cumsum(is_text)
        document_ends = np.unique(np.append(before[~is_text], len(sentence_ends)))
        unknown = None if vocabulary.unk is None else int((words == vocabulary.unk).sum())
        return Documents(
            ids=words,
            sentence_ends=sentence_ends,
            document_ends=document_ends[document_ends > 0].astype(np.uint32),
            unknown=unknown,
            word_starts=_word_starts(words, vocabulary),
        )


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
