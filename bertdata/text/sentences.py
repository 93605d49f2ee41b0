"""Split paragraphs into sentences with Punkt, by the C++ kernel or by its Python specification."""

from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import InputError
from bertdata.text.punkt.boundaries import split_sentences
from bertdata.text.punkt.tables import PunktTables
from bertdata.text.punkt.variants import Variant


class SentenceSplitter:
    """Sentence splitter that uses Punkt's tables of a language. Several threads may share it."""

    def __init__(self, tables: PunktTables, variant: Variant, *, engine: Engine | None = None) -> None:
        self._tables = tables
        self._variant = variant
        self._kernel = self._make_kernel() if use_native(engine or default_engine()) else None

    def _make_kernel(self) -> Any:
        """Return the C++ kernel with the tables of the language."""
        return kernels.Punkt(
            abbreviations=list(self._tables.abbreviations),
            collocations=list(self._tables.collocations),
            sentence_starters=list(self._tables.sentence_starters),
            contexts=list(self._tables.contexts.items()),
            variant=self._variant,
        )

    def split(self, paragraph: str) -> list[str]:
        """Return the sentences of a paragraph, as ``punkt.boundaries.split_sentences`` does."""
        if self._kernel is None:
            return split_sentences(paragraph, self._tables, self._variant)
        sentences: list[str] = self._kernel.split(paragraph)
        return sentences

    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        r"""Split UTF-8 lines into sentences, one per line. An empty line stays an empty line.

        Only ``\n`` ends a line, and the last line need not have it. A line of only white space has no
        sentence and disappears. White space around sentences is removed. Raises InputError for a byte that is
        not UTF-8. The message names its line.

        name: name of the text, for errors.
        keeps_indent: keep white space before the first sentence of a line, as NVIDIA's program does. MLPerf's
            does not.
        """
        if self._kernel is None:
            return self._segment_in_python(data, name, keeps_indent)
        try:
            segmented: bytes = self._kernel.segment_lines(data, keeps_indent)
        except kernels.InvalidUtf8 as error:
            raise InputError.not_utf8(name, data, error.args[0]) from None
        return segmented

    def _segment_in_python(self, data: bytes, name: str, keeps_indent: bool) -> bytes:
        """Split lines into sentences without the C++ kernel."""
        try:
            lines = data.decode().removesuffix("\n").split("\n") if data else []
        except UnicodeDecodeError as error:
            raise InputError.not_utf8(name, data, error.start) from None
        sentences: list[str] = []
        for line in lines:
            found = split_sentences(line, self._tables, self._variant) if line else [""]
            sentences += found if keeps_indent else [sentence.strip() for sentence in found]
        return "".join(f"{sentence}\n" for sentence in sentences).encode()
