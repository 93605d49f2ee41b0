"""Questions from a SQuAD file, version 1.1 or 2.0. The file is nested like the official files, or flat.

A nested file is ``{"data": [{"paragraphs": [{"context": ..., "qas": [entry, ...]}, ...]}, ...]}``. A flat
file, which run_qa.py reads, is ``{"data": [entry, ...]}``, or has one entry per line. An entry of a flat file
contains its context, and its answers as two lists (texts and offsets).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from bertdata.errors import InputError
from bertdata.io.json_text import parse_json_text
from trainer.tasks.data_file import DataFile, parse_json

_WORD = re.compile("[^ \t\r\n\u202f]+")


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """A text that is split into words at blank, tab, CR, LF and U+202F (narrow no-break space),
    and at nothing else.

    starts: offset of each word's first character in the text.
    """

    text: str
    words: list[str]
    starts: list[int]

    def word_at(self, place: int) -> int:
        """Return the index of the word that contains a character.

        Between words it is the index of the word before.

        Before the first word it is -1.
        place: offset of the character.
        """
        return bisect_right(self.starts, place) - 1


def split_context(text: str) -> Context:
    """Split a text into words in the same way as run_squad.py."""
    found = list(_WORD.finditer(text))
    return Context(text, [match[0] for match in found], [match.start() for match in found])


SHOWN_WARNINGS = 3
"""Number of skipped answers for which there is a warning each. Further skipped answers are only counted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer from the data, with its text, its offset in the context, and its first and last word."""

    text: str
    start: int
    first_word: int
    last_word: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Question:
    """A question with its context.

    answer: the answer to learn. None when predicting, and for a question that is marked as impossible.
    golds: texts of all correct answers in the file, for the metrics.
    """

    id: str
    text: str
    context: Context
    answer: Answer | None = None
    is_impossible: bool = False
    golds: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Questions:
    """The questions of a file, in order.

    skipped: ids of questions that were left out because their answer is not in their context.
    contexts: number of contexts in the file.
    """

    name: str
    questions: list[Question]
    skipped: list[str]
    contexts: int

    def warnings(self) -> list[str]:
        """Return warnings about the questions that were left out: one each for the first
        few, then their number.
        """
        shown = [
            f"{self.name}: question {name}: its answer is not in the words of its context; left out"
            for name in self.skipped[:SHOWN_WARNINGS]
        ]
        if len(self.skipped) > SHOWN_WARNINGS:
            shown.append(f"{self.name}: {len(self.skipped)} questions are left out for that reason")
        return shown


def read_squad(
    file: DataFile, *, training: bool = False, negatives: bool = False, first_answer: bool = False
) -> Questions:
    """Read the questions of a SQuAD file.

    training: whether each question must have exactly one answer. If the answer's text is not in the words at
        its offset, the question is left out and listed as skipped.
    negatives: whether questions may be marked as impossible, as in version 2.0. If not, and when predicting,
        the mark is ignored.
    first_answer: whether to learn the first of several answers in training. A question without answers is
        then impossible, as in run_qa.py.
    Raises InputError that names the file, the question, what was found, and what was expected.
    """
    name, questions = file.path, list[Question]()
    skipped: list[str] = []
    contexts: set[Context] = set()
    seen: set[str] = set()
    split = cache(split_context)
    for place, context, entry in _read_entries(file):
        flat = context is None
        # In a flat file, an entry's place names its line. In a nested file, an entry is named by its number
        # until its id is known.
        identity: str = _get_member(entry, "id", str, place if flat else f"{name}: question {len(seen)}")
        where = f"{place}: question {identity}"
        if identity in seen:
            raise InputError(f"{where}: occurs twice, expected an id of its own")
        seen.add(identity)
        text = _get_member(entry, "question", str, where)
        context = context or split(_get_member(entry, "context", str, where))
        contexts.add(context)
        answers = _read_answers(entry, where, flat=flat)
        # Flat files need not have is_impossible. An empty list of answers marks an impossible question there.
        marked = flat and not answers
        if "is_impossible" in entry:
            marked = _get_member(entry, "is_impossible", bool, where)
        impossible = training and negatives and marked
        if training and first_answer:
            impossible = impossible or not answers
        answer = None
        if training and not impossible:
            learned = answers[:1] if first_answer else answers
            answer = _find_answer(learned, context, where, marked=marked)
            if answer is None:
                skipped.append(identity)
                continue
        question = Question(
            id=identity,
            text=text,
            context=context,
            answer=answer,
            is_impossible=impossible,
            golds=tuple(gold for gold, _ in answers),
        )
        questions.append(question)
    if not questions and not skipped:
        raise InputError(f"{name}: holds no questions")
    return Questions(name=name, questions=questions, skipped=skipped, contexts=len(contexts))


def _read_answers(entry: Any, where: str, *, flat: bool) -> list[tuple[str, int]]:
    """Return the text and the offset of each answer. In files to predict there may be none.

    where: place of the entry, for the error message.
    flat: whether the file is flat.
    """
    if "answers" not in entry:
        return []
    found = _get_member(entry, "answers", dict if flat else list, where)
    if flat:
        where = f"{where}: answers"
        texts, starts = (
            _get_member(found, "text", list, where),
            _get_member(found, "answer_start", list, where),
        )
        if len(texts) != len(starts):
            raise InputError(
                f"{where}: 'text' has {len(texts)} values and 'answer_start' {len(starts)}, expected equally "
                "many"
            )
        pairs = zip(texts, starts, strict=True)
        found = [{"text": text, "answer_start": start} for text, start in pairs]
    return [
        (_get_member(one, "text", str, where), _get_member(one, "answer_start", int, where)) for one in found
    ]


def _find_answer(
    answers: list[tuple[str, int]], context: Context, where: str, *, marked: bool
) -> Answer | None:
    """Return the only answer, with its first and last word.

    None if its text is not in the words at its offset.

    Differences in blanks are ignored.
    marked: whether the question is marked as impossible, for a hint in the error message.
    Raises InputError if there is not exactly one answer.
    """
    if len(answers) != 1:
        hint = "; --version-2-with-negative reads impossible questions" if marked else ""
        if len(answers) > 1:
            hint = "; --first-answer takes the first one"
        raise InputError(f"{where}: has {len(answers)} answers, expected exactly 1 for training{hint}")
    ((text, start),) = answers
    stop = start + len(text)
    if not text or start < 0 or stop > len(context.text):
        return None
    first, last = context.word_at(start), context.word_at(stop - 1)
    if " ".join(text.split()) not in " ".join(context.words[first : last + 1]):
        return None
    return Answer(text, start, first, last)


_FORMS = "SQuAD's form: nested, flat, or one question a line"

Entry = tuple[str, Context | None, Any]
"""A question's place in the file (for messages), its paragraph's context (None in a flat file), and its JSON.
"""


def _read_entries(file: DataFile) -> Iterator[Entry]:
    """Yield the entries of a SQuAD file. The first entry decides whether the file is nested or flat.

    The values in an entry are not checked yet.
    Raises InputError that names the file or line, what was found, and what was expected.
    """
    name, text = file.path, file.text("SQuAD's JSON in UTF-8")
    if not text.strip():
        raise InputError(f"{name}: is not JSON: it is empty; expected {_FORMS}")
    # Try to parse the first line as JSON. If it is an object without the key "data", the file has one entry
    # per line. If the file is a single line, this line may also be a complete file, nested or flat.
    line, _, others = text.strip().partition("\n")
    first = None
    with suppress(ValueError):
        first = parse_json_text(line)
    if isinstance(first, dict) and "data" not in first and (others or _is_flat(first)):
        return _read_lines(text, name)
    value = parse_json(text, name, _FORMS) if others or first is None else first
    entries = _get_member(value, "data", list, name)
    if entries and _is_flat(entries[0]):
        return ((f"{name}: data {number}", None, entry) for number, entry in enumerate(entries))
    return _read_nested(entries, name)


def _is_flat(value: Any) -> bool:
    """Return True if the value is an entry of a flat file, which contains its context."""
    return (
        isinstance(value, dict) and "paragraphs" not in value and bool({"context", "question"} & set(value))
    )


def _read_lines(text: str, name: str) -> Iterator[Entry]:
    """Yield the entries of a flat file that has one entry per line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{name}: line {number}"
            yield where, None, parse_json(line, where, "one question a line")


def _read_nested(articles: list[Any], name: str) -> Iterator[Entry]:
    """Yield the entries of all paragraphs of a nested file.

    Messages name only the file and the id of the question.
    """
    for number, article in enumerate(articles):
        where = f"{name}: data {number}"
        for place, paragraph in enumerate(_get_member(article, "paragraphs", list, where)):
            at = f"{where}: paragraph {place}"
            context = split_context(_get_member(paragraph, "context", str, at))
            for entry in _get_member(paragraph, "qas", list, at):
                yield name, context, entry


_KINDS = {list: "a list", str: "a text", int: "an integer", bool: "true or false", dict: "a JSON object"}


def _get_member(value: Any, key: str, kind: type[Any], where: str) -> Any:
    """Return the value of a key in a JSON object. Raise InputError if it is missing or has another type.

    kind: type that the value must have.
    where: place of the object, for the error message.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where}: is no JSON object, expected one with {key!r} (SQuAD's form)")
    if key not in value:
        raise InputError(f"{where}: lacks {key!r}, expected {_KINDS[kind]} (SQuAD's form)")
    found = value[key]
    if type(found) is not kind:
        raise InputError(f"{where}: {key!r} is {found!r:.60}, expected {_KINDS[kind]}")
    return found
