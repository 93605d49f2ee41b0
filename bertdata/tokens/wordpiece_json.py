"""Runs a tokenizer.json that has a WordPiece model with the C++ kernel for WordPiece.

The ids are the same as those of the tokenizers library. That library encodes a document as one text, but the
C++ kernel reads it line by line. If white space separates two sentences, both give the same ids, because no
word continues on the next line. The ids are also the same if the first line ends with a character that ends a
word, or if the next line begins with such a character. The kernel leaves out every document for which the ids
might differ, and ``tokenizers`` encodes these documents. They have a line that does not end in this way, an
added token, or a character that the Unicode tables of ``tokenizers`` treat differently.
"""

from array import array
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from bertdata._native import kernels
from bertdata.errors import VocabularyError
from bertdata.io.foreign_text import replace_line_ends
from bertdata.records import Buffer, Documents, Vocabulary
from bertdata.tokens.added_ids import number_added_tokens
from bertdata.tokens.library_form import find_unusual_part
from bertdata.tokens.library_tokenizer import LibraryTokenizer
from bertdata.tokens.lines import join_inputs
from bertdata.tokens.tokenizer import TextTokens
from bertdata.unicode.tables import load_bert_normalizer_differences

_MOST_CHARACTERS = (1 << 32) - 1


def find_obstacle(parsed: Mapping[str, Any], vocabulary: Vocabulary, between: str) -> str | None:
    """Return the reason why the kernel cannot run this WordPiece tokenizer.json, or None if it can.

    parsed: the parsed file.
    vocabulary: vocabulary of the file.
    between: text that is put between two sentences of a document before encoding.
    """
    if (odd := find_unusual_part(parsed)) is not None:
        return odd
    model, normalizer, splitter = parsed["model"], parsed["normalizer"] or {}, parsed["pre_tokenizer"] or {}
    widest = max(model["vocab"].values(), default=0)
    added = [token["content"] for token in parsed["added_tokens"]]
    ids = [token["id"] for token in parsed["added_tokens"]]
    reasons = {
        "its normalizer is not BertNormalizer": normalizer.get("type") != "BertNormalizer",
        "its normalizer does not clean the text": not normalizer.get("clean_text"),
        "its pre_tokenizer is not BertPreTokenizer": splitter.get("type") != "BertPreTokenizer",
        "its pieces do not begin with ##": vocabulary.continues_word is None,
        "its model has no unknown token": _find_unknown_id(model) is None,
        "another token has the role unk": _find_unknown_id(model) != vocabulary.unk,
        "an added token is looked for in normalised text": any(
            token.get("normalized", True) for token in parsed["added_tokens"]
        ),
        "an added token is empty or holds white space": any(token.split() != [token] for token in added),
        "an added token has an id of more bits than the model's": vocabulary.wide != (widest > 0xFFFF),
        "an added token has another id than the library gives it": ids
        != number_added_tokens(added, model["vocab"]),
        "two of its tokens have one id": len({*model["vocab"].values()}) < len(model["vocab"]),
        f"its sentences are joined by {between!r}": between not in ("", " "),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _find_unknown_id(model: Mapping[str, Any]) -> int | None:
    """Return the id of the model's unknown token, or None if the model has none."""
    found: int | None = model["vocab"].get(model.get("unk_token"))
    return found


class WordPieceJsonTokenizer:
    """Tokeniser that runs a WordPiece tokenizer.json with the C++ kernel.

    The ids of frequent words are cached from one text to the next.

    parsed: the parsed file, for which ``find_obstacle`` must have returned None.
    vocabulary: vocabulary of the file.
    between: text that is put between two sentences of a document before encoding.
    """

    def __init__(self, parsed: dict[str, Any], vocabulary: Vocabulary, between: str) -> None:
        self.vocabulary = vocabulary
        self._parsed, self._between = parsed, between
        try:
            self._kernel = self._make_kernel(parsed["model"], parsed["normalizer"])
        except (TypeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise VocabularyError(
                f"{vocabulary.name}: the WordPiece kernel refuses it ({reason}); expected a tokenizer.json "
                "as the tokenizers library saves it"
            ) from None

    def _make_kernel(self, model: Mapping[str, Any], normalizer: Mapping[str, Any]) -> Any:
        """Make the C++ kernel with the settings of the file."""
        lower_case, strips_accents = normalizer.get("lowercase"), normalizer.get("strip_accents")
        return kernels.Tokenizer(
            tokens=list(model["vocab"]),
            ids=list(model["vocab"].values()),
            unknown=_find_unknown_id(model),
            lower_case=lower_case,
            strips_accents=lower_case if strips_accents is None else strips_accents,
            final_sigma=False,
            splits_ideographs=normalizer.get("handle_chinese_chars"),
            drops_unassigned=False,
            keeps_special_tokens=False,
            joins_lines=not self._between,
            max_word_chars=min(model.get("max_input_chars_per_word", 100), _MOST_CHARACTERS),
            left_out_points=load_bert_normalizer_differences(),
            left_out_strings=[token["content"] for token in self._parsed["added_tokens"]],
        )

    @cached_property
    def _library(self) -> LibraryTokenizer:
        """Tokeniser that uses ``tokenizers``, for documents that the kernel leaves out."""
        return LibraryTokenizer(self._parsed, self.vocabulary, self._between)

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """Encode several texts as if they were one file.

        Each line is a sentence, and a blank line ends a document.

        names: names of the texts, for error messages.
        """
        data = join_inputs([replace_line_ends(text) for text in texts])
        try:
            ids, sentence_ends, document_ends, unknown, left_out = self._kernel.tokenize(data)
        except kernels.InvalidUtf8:
            # This raises the error that names the file and the line.
            return self._library.encode(texts, names)
        found = Documents(ids=ids, sentence_ends=sentence_ends, document_ends=document_ends, unknown=unknown)
        return self._insert_left_out(found, data, left_out, names) if len(left_out) else found

    def _insert_left_out(
        self, found: Documents, data: bytes, left_out: Buffer, names: list[str]
    ) -> Documents:
        """Encode the documents that the kernel left out with ``tokenizers``, and insert them in order.

        found: the documents that the kernel has encoded.
        data: text of all documents.
        left_out: three numbers for each document that was left out: its start and stop in ``data``, and the
            number of documents in ``found`` that come before it.
        names: names of the texts, for error messages.
        """
        joined = _JoinedDocuments(self.vocabulary)
        done = 0
        # left_out is a flat list of the three numbers for each document. Add the kernel's documents up to
        # this document, and then the document itself, which ``tokenizers`` encodes.
        for start, stop, before in zip(*(iter(left_out),) * 3, strict=True):
            joined.add(found, done, before)
            done = before
            library = self._library.encode([data[start:stop]], names)
            joined.add(library, 0, library.documents)
        joined.add(found, done, found.documents)
        return joined.build()

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """Encode each text separately with ``tokenizers``, because the kernel does not give positions."""
        return self._library.encode_each(texts)


class _JoinedDocuments:
    """Object that builds a Documents object from the documents of several tokenisers."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._unknown = vocabulary.role("unk")
        self._ids = array("I" if vocabulary.wide else "H")
        self._sentence_ends, self._document_ends = array("I"), array("I")

    def add(self, found: Documents, first: int, last: int) -> None:
        """Append the documents ``first`` to ``last - 1`` of ``found``."""
        sentences = slice(_get_end(found.document_ends, first), _get_end(found.document_ends, last))
        ids = slice(
            _get_end(found.sentence_ends, sentences.start), _get_end(found.sentence_ends, sentences.stop)
        )
        # The end offsets in ``found`` must be shifted, because other sentences and ids are already here, and
        # because the documents before ``first`` are not added.
        more_sentences = len(self._sentence_ends) - sentences.start
        more_ids = len(self._ids) - ids.start
        self._document_ends.extend(end + more_sentences for end in found.document_ends[first:last])
        self._sentence_ends.extend(end + more_ids for end in found.sentence_ends[sentences])
        self._ids.frombytes(memoryview(found.ids)[ids].cast("B"))

    def build(self) -> Documents:
        """Return everything added so far as one Documents object."""
        return Documents(
            ids=self._ids,
            sentence_ends=self._sentence_ends,
            document_ends=self._document_ends,
            unknown=self._ids.count(self._unknown),
        )


def _get_end(ends: Buffer, number: int) -> int:
    """Return the end offset of the item before item ``number``. It is 0 if ``number`` is 0."""
    return int(ends[number - 1]) if number else 0
