"""Section of the report that shows examples as readable text, with masks marked and segments separated."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bertdata.examples.groups import (
    MASKS,
    PAIR_LABEL,
    SEGMENT,
    WORD_STARTS,
    find_column,
    find_mask_columns,
    has_group,
)
from bertdata.examples.mask_report import find_mask_kind
from bertdata.examples.objectives import find_objective
from bertdata.records import IDS, Vocabulary
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import MarkedWord, PageContent, Passage, PassagesBlock
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sample import KeptExample
from bertdata.reports.sampled_tokens import find_special_ids
from bertdata.reports.sections.comparison import place_side_by_side
from bertdata.tokens.readable import make_words_readable

_PAGE, _MOST_WORDS = 20, 40_000
_KINDS = {"[MASK]": "masked", "changed": "masked", "random": "random", "kept": "kept"}
_LEGEND = {
    "masked": "[MASK] (without a vocabulary: any changed token), and the original",
    "random": "a random token, and the original",
    "kept": "masked, but left as it was",
    "special": "a special token",
}
_KNOWN_GROUPS = (IDS, SEGMENT, MASKS, PAIR_LABEL, WORD_STARTS)


def make_passages_section(datasets: Sequence[DatasetNumbers]) -> ReportSection:
    """Return the section, with 20 examples per page."""
    most_words = _MOST_WORDS // len(datasets)
    return ReportSection(
        "Examples",
        place_side_by_side(datasets, lambda numbers: [_make_block(numbers, most_words)]),
        "The first examples of evenly spaced shards. Search and pages cover only the examples shown here.",
    )


def _make_block(numbers: DatasetNumbers, most_words: int) -> PageContent:
    """Return the block that shows the examples of a dataset.

    most_words: approximate limit for the number of tokens. At least one page of examples is shown.
    """
    reading = WordReader(numbers.vocabulary)
    made: list[Passage] = []
    for kept in numbers.sample.kept:
        most_words -= len(kept.example.ids)
        if most_words < 0 and len(made) >= _PAGE:
            break
        made.append(reading.make_passage(kept))
    kinds = {word.kind for passage in made for _, words in passage.parts for word in words}
    legend = tuple((kind, meaning) for kind, meaning in _LEGEND.items() if kind in kinds)
    return PassagesBlock(f"Examples of {numbers.name}", legend, tuple(made), _PAGE)


class WordReader:
    """Converter from token ids to readable words."""

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self._words = make_words_readable(vocabulary) if vocabulary else []
        self._mask_id = vocabulary.mask if vocabulary else None
        self._special = find_special_ids(vocabulary) if vocabulary else set()
        self._continues = vocabulary.continues_word if vocabulary else None
        self._has_blanks = vocabulary is not None and vocabulary.kind in ("bpe", "unigram")

    def make_passage(self, kept: KeptExample) -> Passage:
        """Return an example as readable text with marked words.

        The first line that ``bertdata show`` prints is added.
        """
        example, kind = kept.example, kept.batch_type
        objective = find_objective(kept.layout.objective)
        masks: dict[int, int] = {}
        if has_group(kind, MASKS):
            columns = find_mask_columns(kind)
            places, originals = (
                getattr(example, columns.places.one),
                getattr(example, columns.originals.one),
            )
            masks = dict(zip(places, originals, strict=True))
        words = [self._make_word(place, token, masks.get(place)) for place, token in enumerate(example.ids)]
        described = objective.describe(example, self._words, self._mask_id, kept.layout)
        summary = described.partition("\n")[0].removesuffix(", 0 masks")
        facts = (summary, *_describe_other_columns(kept))
        return Passage(kept.title, tuple(_divide_segments(kept, words)), facts)

    def _make_word(self, place: int, token: int, original: int | None) -> MarkedWord:
        """Return the word at a position of the example.

        place: the position.
        token: the token id at the position.
        original: the token id before masking. None if the position is not masked.
        """
        text, joined = self._find_text(token)
        if original is not None:
            told = find_mask_kind(token, original, self._mask_id)
            # The original token decides whether the position continues the word before it, since a random
            # piece in the place of a whole word belongs to no word.
            original_text, continues = self._find_text(original)
            note = "" if told == "kept" else original_text
            return MarkedWord(text, _KINDS[told], note, continues and place > 0)
        if token in self._special:
            return MarkedWord(text, "special")
        return MarkedWord(text, joined=joined and place > 0)

    def _find_text(self, token: int) -> tuple[str, bool]:
        """Return the text of a token, and True if the token continues the word before it.

        The characters that mark word pieces and blanks are removed from the text.
        """
        if token >= len(self._words):
            return f"<{token}>", False
        word = self._words[token]
        if self._has_blanks and token not in self._special:
            return word.strip() or word, not word.startswith(" ")
        if self._continues is not None and self._continues[token]:
            return word.removeprefix("##"), True
        return word, False


def _divide_segments(
    kept: KeptExample, words: list[MarkedWord]
) -> Iterator[tuple[str, tuple[MarkedWord, ...]]]:
    """Yield the title and the words of the segments A and B. An example without segments is a single part."""
    first = len(words)
    if has_group(kept.batch_type, SEGMENT):
        first = getattr(kept.example, find_column(kept.batch_type, SEGMENT).one)
    if first < len(words):
        yield "A", _merge_words(words[:first])
        # A segment may begin inside a word. Its first piece must not be joined to the letter B.
        yield "B", _merge_words([replace(words[first], joined=False), *words[first + 1 :]])
    else:
        yield "", _merge_words(words)


def _merge_words(words: list[MarkedWord]) -> tuple[MarkedWord, ...]:
    """Join neighbouring words that have no mark, which makes the page much smaller. Return the new words."""
    found: list[MarkedWord] = []
    for word in words:
        if found and not word.kind and not found[-1].kind:
            blank = "" if word.joined else " "
            found[-1] = MarkedWord(f"{found[-1].text}{blank}{word.text}", joined=found[-1].joined)
        else:
            found.append(word)
    return tuple(found)


def _describe_other_columns(kept: KeptExample) -> Iterator[str]:
    """Yield a line for each column of the example that only its objective has."""
    ends = kept.batch_type.ragged()
    for column in kept.batch_type.columns():
        if column.group not in _KNOWN_GROUPS and column.name not in ends:
            value: Any = getattr(kept.example, column.one)
            told = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{column.one.replace('_', ' ')}: {told or 'none'}"
