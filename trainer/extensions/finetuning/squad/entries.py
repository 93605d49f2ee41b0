"""Entries of a SQuAD file, a question each: of the official nested form, or flat as run_qa.py reads them.

Nested: ``{"data": [{"paragraphs": [{"context": ..., "qas": [entry, ...]}, ...]}, ...]}``. Flat: ``{"data":
[entry, ...]}``, or one entry a line; each has its context, and its answers as two lists.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bertdata.errors import InputError
from bertdata.io.json_text import parse_json_text
from trainer.extensions.finetuning.labelled_text import decode_text

_WORD = re.compile("[^ \t\r\n\u202f]+")


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """A context split at blank, tab, CR, LF and U+202F (narrow no-break space), at nothing else.

    starts: the place of each word's first character in the text.
    """

    words: list[str]
    starts: list[int]
    length: int

    def word_at(self, place: int) -> int:
        """The word that holds the character, or the last one before it, or -1 before the first word."""
        return bisect_right(self.starts, place) - 1

    def text(self, first: int, last: int) -> str:
        """The words from first to last with one blank between them."""
        return " ".join(self.words[first : last + 1])


def split_context(text: str) -> Context:
    """The words of a text, as run_squad.py splits it."""
    found = list(_WORD.finditer(text))
    return Context([match[0] for match in found], [match.start() for match in found], len(text))


_FORMS = "expected SQuAD's form: nested, flat, or one question a line"


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionEntry:
    """A question as its file has it.

    where: file and question, for errors. answers: text and place of each. is_impossible: marked as
    such; in the flat form, without a mark, where it has no answers.
    """

    where: str
    id: str
    question: str
    context: Context
    answers: list[tuple[str, int]]
    is_impossible: bool


def read_entries(data: bytes, name: str) -> Iterator[QuestionEntry]:
    """The entries of SQuAD's JSON. The first one decides which form the file has.

    InputError names file, line or question, what was found and what was expected.
    """
    text = decode_text(data, name, "SQuAD's JSON in UTF-8")
    reader = _Reader(name)
    if not text.strip():
        raise InputError(f"{name}: is not JSON: it is empty; {_FORMS}")
    try:
        value = parse_json_text(text)
    except ValueError as error:
        if not _has_entry_lines(text):
            raise InputError(f"{name}: is not JSON: {error}; {_FORMS}") from None
        return reader.lines(text)
    if _is_flat(value):  # one line only
        return reader.lines(text)
    entries = _member(value, "data", list, name)
    return reader.flat(entries) if entries and _is_flat(entries[0]) else reader.nested(entries)


def _has_entry_lines(text: str) -> bool:
    """True where the first line that is not empty is a JSON object by itself, and no whole file."""
    try:
        value = parse_json_text(text.lstrip().partition("\n")[0])
    except ValueError:
        return False
    return isinstance(value, dict) and "data" not in value


def _is_flat(value: Any) -> bool:
    """True for an entry that has its own context, at least by its members."""
    return (
        isinstance(value, dict) and "paragraphs" not in value and bool({"context", "question"} & set(value))
    )


class _Reader:
    """The entries of one file, whose ids must differ."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ids: set[str] = set()
        self._contexts: dict[str, Context] = {}

    def lines(self, text: str) -> Iterator[QuestionEntry]:
        """The entries of a file with one on each line."""
        for number, line in enumerate(text.split("\n"), 1):
            where = f"{self._name}: line {number}"
            if not line.strip():
                continue
            try:
                value = parse_json_text(line)
            except ValueError as error:
                raise InputError(f"{where}: is not JSON: {error}; expected one question a line") from None
            yield self._flat_entry(value, where)

    def flat(self, entries: list[Any]) -> Iterator[QuestionEntry]:
        for number, entry in enumerate(entries):
            yield self._flat_entry(entry, f"{self._name}: data {number}")

    def nested(self, articles: list[Any]) -> Iterator[QuestionEntry]:
        for number, article in enumerate(articles):
            where = f"{self._name}: data {number}"
            for place, paragraph in enumerate(_member(article, "paragraphs", list, where)):
                yield from self._paragraph(paragraph, f"{where}: paragraph {place}")

    def _paragraph(self, paragraph: Any, where: str) -> Iterator[QuestionEntry]:
        context = split_context(_member(paragraph, "context", str, where))
        for entry in _member(paragraph, "qas", list, where):
            identity = _member(entry, "id", str, f"{self._name}: question {len(self._ids)}")
            at = self._note_id(identity, self._name)
            question = _member(entry, "question", str, at)
            yield QuestionEntry(
                where=at,
                id=identity,
                question=question,
                context=context,
                answers=_nested_answers(entry, at),
                is_impossible=_mark(entry, at, otherwise=False),
            )

    def _flat_entry(self, entry: Any, where: str) -> QuestionEntry:
        identity = _member(entry, "id", str, where)
        at = self._note_id(identity, where)
        question, context = _member(entry, "question", str, at), _member(entry, "context", str, at)
        if context not in self._contexts:
            self._contexts[context] = split_context(context)
        answers = _flat_answers(entry, at)
        return QuestionEntry(
            where=at,
            id=identity,
            question=question,
            context=self._contexts[context],
            answers=answers,
            is_impossible=_mark(entry, at, otherwise=not answers),
        )

    def _note_id(self, identity: str, where: str) -> str:
        """The place with the question's id added. InputError for an id that another question has."""
        at = f"{where}: question {identity}"
        if identity in self._ids:
            raise InputError(f"{at}: occurs twice, expected an id of its own")
        self._ids.add(identity)
        return at


_KINDS = {list: "a list", str: "a text", int: "an integer", bool: "true or false", dict: "a JSON object"}


def _member(value: Any, key: str, kind: type[Any], where: str) -> Any:
    """The member of a JSON object. InputError where it is missing or of another type."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: is no JSON object, expected one with {key!r} (SQuAD's form)")
    if key not in value:
        raise InputError(f"{where}: lacks {key!r}, expected {_KINDS[kind]} (SQuAD's form)")
    return _checked(value[key], key, kind, where)


def _checked(value: Any, key: str, kind: type[Any], where: str) -> Any:
    if type(value) is not kind:
        raise InputError(f"{where}: {key!r} is {value!r:.60}, expected {_KINDS[kind]}")
    return value


def _mark(entry: Any, where: str, *, otherwise: bool) -> bool:
    """True for a question that is marked as impossible. otherwise: for one without a mark."""
    if "is_impossible" not in entry:
        return otherwise
    marked: bool = _member(entry, "is_impossible", bool, where)
    return marked


def _nested_answers(entry: Any, where: str) -> list[tuple[str, int]]:
    """Text and place of each answer. A file to predict on may have none."""
    if "answers" not in entry:
        return []
    found = _member(entry, "answers", list, where)
    return [(_member(one, "text", str, where), _member(one, "answer_start", int, where)) for one in found]


def _flat_answers(entry: Any, where: str) -> list[tuple[str, int]]:
    """The same of an object with a list of texts and a list of places."""
    if "answers" not in entry:
        return []
    found, at = _member(entry, "answers", dict, where), f"{where}: answers"
    texts, starts = _member(found, "text", list, at), _member(found, "answer_start", list, at)
    if len(texts) != len(starts):
        lengths = f"'text' has {len(texts)} values and 'answer_start' {len(starts)}"
        raise InputError(f"{at}: {lengths}, expected equally many")
    return [
        (_checked(text, "text", str, at), _checked(start, "answer_start", int, at))
        for text, start in zip(texts, starts, strict=True)
    ]
