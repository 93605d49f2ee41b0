"""Tokeniser that runs any tokenizer.json with Hugging Face's ``tokenizers`` library.

It uses a single thread and encodes documents in slices (groups of limited size), so that it takes no more
cores or memory than the caller planned for. Truncation, padding and dropout in the file are ignored, because
a document is encoded whole and without randomness.
"""

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bertdata.errors import MissingExtraError, VocabularyError, install_extra
from bertdata.io.foreign_text import replace_line_ends
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.document_text import (
    DocumentsBuilder,
    DocumentText,
    compute_word_starts,
    make_utf8_error,
    read_documents,
)
from bertdata.tokens.growth import MOST_GROWTH, GrowthMeter, TooMuchGrowth
from bertdata.tokens.library_process import needs_trial, try_in_separate_process
from bertdata.tokens.lines import join_inputs
from bertdata.tokens.time_limit import TimeLimitExceeded, call_with_time_limit, without_stderr
from bertdata.tokens.tokenizer import TextTokens

SLICE_CHARACTERS = 1 << 19
"""Largest number of characters that are encoded at a time. A longer document is encoded alone.

``tokenizers`` takes about 50 bytes of memory for each character.
"""

SLICE_SECONDS = 60.0
"""Time limit in seconds for encoding SLICE_CHARACTERS characters, if the file has a regular expression.

This usually takes about 0.5 s.
"""


class LibraryTokenizer:
    """Tokeniser that runs a tokenizer.json with the ``tokenizers`` library.

    parsed: the parsed file.
    vocabulary: vocabulary of the file.
    between: text that is put between two sentences of a document before encoding.

    Raises VocabularyError if ``tokenizers`` refuses the file, or if it would give different ids each time it
    loads the file.
    """

    def __init__(self, parsed: dict[str, Any], vocabulary: Vocabulary, between: str) -> None:
        self.vocabulary = vocabulary
        self._parsed = parsed
        self._between = between
        self._patterns = sorted(set(_find_patterns(parsed)))
        # The process check and the growth check come first. Without them, loading the file with
        # ``tokenizers`` could abort this process or exhaust its memory.
        self._check_survival()
        self._meter = GrowthMeter(parsed["normalizer"], self._load_normalizer)
        for token in parsed["added_tokens"]:  # Loading the file normalises the added tokens.
            self._check_growth(token["content"], f"the added token {token['content'][:40]!r}")
        # Remove the post-processor, because it makes the positions of tokens wrong. It moves the start of a
        # token by one for each blank at the token's beginning, even for a blank that the pre-tokeniser has
        # inserted and that the text does not contain. For example, "Ġis" would seem to start at the "s".
        self._library = self._load()
        with without_stderr():
            self._library.post_processor = None
        self._check_ids()
        self._check_added_texts()

    def _load(self) -> Any:
        """Load the file with ``tokenizers``, and switch off truncation, padding and dropout.

        They are switched off only after loading, so that ``tokenizers`` checks the whole file. Raises
        VocabularyError if ``tokenizers`` refuses the file.
        """
        loaded = self._load_document(self._parsed)
        loaded.no_truncation()
        loaded.no_padding()
        if self._parsed["model"].get("dropout"):
            loaded.model.dropout = None
        return loaded

    def _load_document(self, parsed: Mapping[str, Any]) -> Any:
        """Load a tokenizer.json, or a smaller one that is made of a part of it, with ``tokenizers``."""
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
            raise self._make_refusal(error, "refuses it") from None

    def _load_normalizer(self, step: Mapping[str, Any]) -> Any:
        """Load a single step of the file's normaliser, and return it as a function from text to text."""
        model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
        return self._load_document({"model": model, "normalizer": step}).normalizer.normalize_str

    def _check_growth(self, text: str, what: str) -> None:
        """Raise VocabularyError if the normaliser would make the text too long to be encoded.

        what: description of the text for the error message.
        """
        try:
            self._meter.check(text)
        except TooMuchGrowth:
            raise VocabularyError(
                f"{self.vocabulary.name}: its normalizer makes {what} more than {MOST_GROWTH} times as long "
                "as it is; expected replacements that keep a text's length about the same"
            ) from None

    def _check_survival(self) -> None:
        """Raise VocabularyError if this file makes ``tokenizers`` abort its process.

        The file is loaded in a separate process to find this out.
        """
        if not needs_trial(self._parsed):
            return
        end = try_in_separate_process(json.dumps(self._parsed), self._parsed)
        if end is not None:
            prefix = self._parsed["model"]["continuing_subword_prefix"]
            raise VocabularyError(
                f"{self.vocabulary.name}: the tokenizers library ends its process on this file ({end}), "
                f"whose model has the continuing_subword_prefix {prefix!r}; expected merges whose second "
                "token begins with that, as this library saves them"
            )

    def _make_refusal(self, error: BaseException, what: str) -> BaseException:
        """Convert an error raised by ``tokenizers`` to a VocabularyError.

        A panic (fatal error of the Rust code) in ``tokenizers`` is not an Exception, so it is recognised by
        the name of its class. Other errors that are not Exceptions, such as KeyboardInterrupt, are returned
        unchanged.

        what: what the library did, for the error message.
        """
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            return error
        reason = " ".join(str(error).split()) or type(error).__name__
        return VocabularyError(
            f"{self.vocabulary.name}: the tokenizers library {what} ({reason}); expected a tokenizer.json as "
            "this library saves it"
        )

    def _check_ids(self) -> None:
        """Raise VocabularyError if ``tokenizers`` gives a token an id that differs from the id in the
        file.
        """
        words = self.vocabulary.words
        for token, number in self._library.get_vocab(with_added_tokens=True).items():
            if number >= len(words) or words[number] != token:
                raise VocabularyError(
                    f"{self.vocabulary.name}: the tokenizers library gives {token!r} the id {number}, the "
                    "file another; load it with this library and save it again"
                )

    def _check_added_texts(self) -> None:
        """Raise VocabularyError if two added tokens are equal after normalisation, or if an added token is
        empty.

        ``tokenizers`` searches for a token with the flag ``normalized`` by its normalised text. If two tokens
        have the same text, ``tokenizers`` may find either of them, and which one it finds changes each time
        the file is loaded. If the text of a token is empty, ``tokenizers`` finds it everywhere. It then fails
        on some texts and runs out of memory on others.
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
        """Encode several texts as if they were one file.

        Each line is a sentence, and a blank line ends a document.

        names: names of the texts, for error messages.
        """
        texts = [replace_line_ends(text) for text in texts]
        found = DocumentsBuilder(self.vocabulary)
        try:
            for documents in _group_documents(read_documents(join_inputs(texts), self._between)):
                encoded = self._encode_texts(self._library, [document.text for document in documents], names)
                self._add_documents(found, documents, encoded)
        except UnicodeDecodeError:
            raise make_utf8_error(texts, names) from None
        return found.build()

    def _add_documents(
        self, found: DocumentsBuilder, documents: list[DocumentText], encoded: Iterable[Any]
    ) -> None:
        """Add several documents to ``found``.

        documents: texts of the documents.
        encoded: encoding of each document, as ``tokenizers`` returned it.
        """
        needs_starts = self.vocabulary.continues_word is None
        for document, one in zip(documents, encoded, strict=True):
            starts = [start for start, _ in one.offsets]
            found.add(document, one.ids, starts, compute_word_starts(one.word_ids) if needs_starts else None)

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """Encode each text separately. Positions and word starts are those that ``tokenizers`` reports."""
        found = TextTokens(
            array("I" if self.vocabulary.wide else "H"), array("I"), array("I"), array("I"), bytearray()
        )
        for some in _group_documents(DocumentText(text, []) for text in texts):
            for one in self._encode_texts(self._library, [document.text for document in some], ["a text"]):
                found.ids.extend(one.ids)
                found.ends.append(len(found.ids))
                found.starts.extend(start for start, _ in one.offsets)  # type: ignore[union-attr]
                found.stops.extend(stop for _, stop in one.offsets)  # type: ignore[union-attr]
                found.word_starts.extend(compute_word_starts(one.word_ids))  # type: ignore[union-attr]
        return found

    def _encode_texts(self, library: Any, texts: list[str], names: list[str]) -> list[Any]:
        """Encode several texts, and return the encodings that ``tokenizers`` makes.

        names: names of the inputs, for error messages.

        Raises VocabularyError if a regular expression in the file takes too long.
        """

        # Check before ``tokenizers`` normalises a text, because normalisation can make a short text huge.
        for text in texts:
            self._check_growth(text, f"a document of {', '.join(names)}")

        def encode_texts() -> list[Any]:
            """Encode the texts with ``tokenizers``."""
            found: list[Any] = library.encode_batch(texts, add_special_tokens=False)
            return found

        # A regular expression can take exponential time. If the file has one, the call therefore gets a time
        # limit, which is higher for a longer text.
        if not self._patterns:
            return self._call_library(encode_texts, names)
        seconds = SLICE_SECONDS * max(1, sum(map(len, texts)) // SLICE_CHARACTERS)
        try:
            with without_stderr():
                return self._call_library(lambda: call_with_time_limit(seconds, encode_texts), names)
        except TimeLimitExceeded:
            raise VocabularyError(
                f"{self.vocabulary.name}: the pattern {self._describe_patterns()} takes more than "
                f"{seconds:g} s on a document of {', '.join(names)}; repair the pattern in the file"
            ) from None

    def _call_library(self, work: Any, names: list[str]) -> list[Any]:
        """Call a function that uses ``tokenizers``. An error of ``tokenizers`` becomes a VocabularyError.

        work: the function, which has no arguments.
        names: names of the inputs, for error messages.
        """
        try:
            found: list[Any] = work()
        except TimeLimitExceeded:
            raise
        except BaseException as error:
            what = f"cannot encode a document of {', '.join(names)}"
            if self._patterns:
                what += f" with the pattern {self._describe_patterns()}"
            raise self._make_refusal(error, what) from None
        return found

    def _describe_patterns(self) -> str:
        """Return the regular expressions in the file, joined for an error message."""
        return " or ".join(map(repr, self._patterns))


def _find_patterns(parsed: Any) -> Iterator[str]:
    """Yield the regular expressions in the file's normaliser and pre-tokeniser."""
    for step in (parsed["normalizer"], parsed["pre_tokenizer"]):
        yield from _find_patterns_in(step)


def _find_patterns_in(value: Any) -> Iterator[str]:
    """Yield the regular expressions in a part of a tokenizer.json.

    They are the values of its keys "Regex", at any depth.
    """
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        if key == "Regex" and isinstance(child, str):
            yield child
        else:
            yield from _find_patterns_in(child)


def _group_documents(documents: Iterable[DocumentText]) -> Iterator[list[DocumentText]]:
    """Put consecutive documents into groups of at most SLICE_CHARACTERS characters, and yield the groups.

    A longer document is a group by itself.
    """
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
