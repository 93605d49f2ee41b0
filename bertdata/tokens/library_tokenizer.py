"""The library's way: a tokenizer.json run by Hugging Face's ``tokenizers``, whatever is in it.

One thread, slices of documents, so that neither cores nor memory are taken that nobody offered. Truncation,
padding and dropout of the file are left out: a document is encoded whole, and the same way every time.
"""

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bertdata.errors import MissingExtraError, VocabularyError, install_extra
from bertdata.io.foreign_text import universal_newlines
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.document_text import (
    DocumentsBuilder,
    DocumentText,
    not_utf8,
    read_documents,
    word_starts,
)
from bertdata.tokens.growth import MOST_GROWTH, GrowthMeter, TooLong
from bertdata.tokens.library_process import end_of_process, needs_trial
from bertdata.tokens.lines import join_inputs
from bertdata.tokens.time_limit import TooSlow, call_within, without_stderr
from bertdata.tokens.tokenizer import TextTokens

SLICE_CHARACTERS = 1 << 19
"""Text encoded at a time; a longer document goes by itself. The library takes some 50 bytes a character."""

SLICE_SECONDS = 60.0
"""The longest that a slice may take a pattern of the file; some 0.5 s are usual."""


class LibraryTokenizer:
    """A tokenizer.json run by the ``tokenizers`` library.

    parsed: the file's JSON. between: the text between two sentences of a document.
    """

    def __init__(self, parsed: dict[str, Any], vocabulary: Vocabulary, between: str) -> None:
        self.vocabulary = vocabulary
        self._parsed = parsed
        self._between = between
        self._patterns = sorted(set(_patterns(parsed)))
        self._check_survival()
        self._meter = GrowthMeter(parsed["normalizer"], self._load_normalizer)
        for token in parsed["added_tokens"]:  # the library normalises them as it loads the file
            self._check_growth(token["content"], f"the added token {token['content'][:40]!r}")
        # Without the post-processor. It takes a blank off a token's place for each one that its text begins
        # with, those too that the pre-tokeniser put there and the text has not: "Ġis" would lose its "i".
        self._library = self._load()
        with without_stderr():
            self._library.post_processor = None
        self._check_ids()
        self._check_added_texts()

    def _load(self) -> Any:
        """Return the library's tokeniser. VocabularyError where it refuses the file.

        The library judges the whole file. What is left out (truncation, padding, dropout) is taken off after
        that.
        """
        loaded = self._load_document(self._parsed)
        loaded.no_truncation()
        loaded.no_padding()
        if self._parsed["model"].get("dropout"):
            loaded.model.dropout = None
        return loaded

    def _load_document(self, parsed: Mapping[str, Any]) -> Any:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingExtraError(
                f"{self.vocabulary.name}: needs the package tokenizers: {install_extra('vocab')}"
            ) from None
        try:
            with without_stderr():
                return Tokenizer.from_str(json.dumps(parsed))
        except BaseException as error:
            raise self._refused(error, "refuses it") from None

    def _load_normalizer(self, step: Mapping[str, Any]) -> Any:
        """Return a function that does one step of the normaliser."""
        model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
        return self._load_document({"model": model, "normalizer": step}).normalizer.normalize_str

    def _check_growth(self, text: str, what: str) -> None:
        try:
            self._meter.check(text)
        except TooLong:
            raise VocabularyError(
                f"{self.vocabulary.name}: its normalizer makes {what} more than {MOST_GROWTH} times as long "
                "as it is; expected replacements that keep a text's length about the same"
            ) from None

    def _check_survival(self) -> None:
        """Raise VocabularyError for a file that would end this process, as a trial in another one tells."""
        if not needs_trial(self._parsed):
            return
        end = end_of_process(json.dumps(self._parsed), self._parsed)
        if end is not None:
            prefix = self._parsed["model"]["continuing_subword_prefix"]
            raise VocabularyError(
                f"{self.vocabulary.name}: the tokenizers library ends its process on this file ({end}), "
                f"whose model has the continuing_subword_prefix {prefix!r}; expected merges whose second "
                "token begins with that, as this library saves them"
            )

    def _refused(self, error: BaseException, what: str) -> BaseException:
        """The error for one of the library. Its panics are no Exception."""
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            return error
        reason = " ".join(str(error).split()) or type(error).__name__
        return VocabularyError(
            f"{self.vocabulary.name}: the tokenizers library {what} ({reason}); expected a tokenizer.json as "
            "this library saves it"
        )

    def _check_ids(self) -> None:
        """VocabularyError where the library gives a token another id than the file: it counts them anew."""
        words = self.vocabulary.words
        for token, number in self._library.get_vocab(with_added_tokens=True).items():
            if number >= len(words) or words[number] != token:
                raise VocabularyError(
                    f"{self.vocabulary.name}: the tokenizers library gives {token!r} the id {number}, the "
                    "file another; load it with this library and save it again"
                )

    def _check_added_texts(self) -> None:
        """Raise VocabularyError where added tokens are one text once they are normalised, or an empty one.

        The library looks for a token with ``normalized`` in the normalised text, by its own normalised text.
        Of two with the same one, it takes now the one and now the other, from load to load. An empty one
        it finds everywhere: on some texts it fails, on others it takes memory until there is none.
        """
        normalizer = self._library.normalizer
        known: dict[str, str] = {}
        for number, token in sorted(self._library.get_added_tokens_decoder().items()):
            if not token.normalized:
                continue
            text = token.content if normalizer is None else normalizer.normalize_str(token.content)
            if not text:
                raise VocabularyError(
                    f"{self.vocabulary.name}: the added token {token.content!r} (id {number}) is empty once "
                    "normalised, which the tokenizers library cannot look for; take it out, or give it "
                    '"normalized": false'
                )
            other = known.setdefault(text, token.content)
            if other != token.content:
                raise VocabularyError(
                    f"{self.vocabulary.name}: the added tokens {other!r} and {token.content!r} (id {number}) "
                    f"are one text once normalised, {text!r}: which of their ids it has changes from load to "
                    'load; take one of them out, or give both "normalized": false'
                )

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """The documents of several texts read as one sequence. See ``tokens.document_text``."""
        texts = [universal_newlines(text) for text in texts]
        found = DocumentsBuilder(self.vocabulary)
        try:
            for documents in _slices(read_documents(join_inputs(texts), self._between)):
                encoded = self._run(self._library, [document.text for document in documents], names)
                self._add(found, documents, encoded)
        except UnicodeDecodeError:
            raise not_utf8(texts, names) from None
        return found.documents()

    def _add(self, found: DocumentsBuilder, documents: list[DocumentText], encoded: Iterable[Any]) -> None:
        needs_starts = self.vocabulary.continues_word is None
        for document, one in zip(documents, encoded, strict=True):
            starts = [start for start, _ in one.offsets]
            found.add(document, one.ids, starts, word_starts(one.word_ids) if needs_starts else None)

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """Return the ids of each text by itself, with the places and word starts that the library tells."""
        found = TextTokens(
            array("I" if self.vocabulary.wide else "H"), array("I"), array("I"), array("I"), bytearray()
        )
        for some in _slices(DocumentText(text, []) for text in texts):
            for one in self._run(self._library, [document.text for document in some], ["a text"]):
                found.ids.extend(one.ids)
                found.ends.append(len(found.ids))
                found.starts.extend(start for start, _ in one.offsets)  # type: ignore[union-attr]
                found.stops.extend(stop for _, stop in one.offsets)  # type: ignore[union-attr]
                found.word_starts.extend(word_starts(one.word_ids))  # type: ignore[union-attr]
        return found

    def _run(self, library: Any, texts: list[str], names: list[str]) -> list[Any]:
        """The library's encodings. VocabularyError where a pattern of the file takes too long."""

        for text in texts:
            self._check_growth(text, f"a document of {', '.join(names)}")

        def work() -> list[Any]:
            found: list[Any] = library.encode_batch(texts, add_special_tokens=False)
            return found

        if not self._patterns:
            return self._encoded(work, names)
        seconds = SLICE_SECONDS * max(1, sum(map(len, texts)) // SLICE_CHARACTERS)
        try:
            with without_stderr():
                return self._encoded(lambda: call_within(seconds, work), names)
        except TooSlow:
            raise VocabularyError(
                f"{self.vocabulary.name}: the pattern {self._named_patterns()} takes more than {seconds:g} s "
                f"on a document of {', '.join(names)}; repair the pattern in the file"
            ) from None

    def _encoded(self, work: Any, names: list[str]) -> list[Any]:
        try:
            found: list[Any] = work()
        except TooSlow:
            raise
        except BaseException as error:
            what = f"cannot encode a document of {', '.join(names)}"
            if self._patterns:
                what += f" with the pattern {self._named_patterns()}"
            raise self._refused(error, what) from None
        return found

    def _named_patterns(self) -> str:
        return " or ".join(map(repr, self._patterns))


def _patterns(parsed: Any) -> Iterator[str]:
    """The regular expressions of the file's steps."""
    for step in (parsed["normalizer"], parsed["pre_tokenizer"]):
        yield from _patterns_of(step)


def _patterns_of(value: Any) -> Iterator[str]:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        if key == "Regex" and isinstance(child, str):
            yield child
        else:
            yield from _patterns_of(child)


def _slices(documents: Iterable[DocumentText]) -> Iterator[list[DocumentText]]:
    """The documents in runs of at most SLICE_CHARACTERS, or of one."""
    found: list[DocumentText] = []
    size = 0
    for document in documents:
        if found and size + len(document.text) > SLICE_CHARACTERS:
            yield found
            found, size = [], 0
        found.append(document)
        size += len(document.text)
    if found:
        yield found
