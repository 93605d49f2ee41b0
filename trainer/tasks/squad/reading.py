"""Questions of a file in SQuAD's JSON, versions 1.1 and 2.0."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from trainer.tasks.labelled_text import decode_text
from trainer.tasks.squad.context import Context, split_context

SHOWN_WARNINGS = 3
"""Answers that cannot be found are warned of one by one up to this many; then they are only counted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the data: its text, and the words of the context that hold it, first and last."""

    text: str
    first_word: int
    last_word: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Question:
    """A question with its context.

    answer: to learn from; None when predicting, and where there is none (is_impossible). golds: the texts of
    all answers that the file gives, for the metrics.
    """

    id: str
    text: str
    context: Context
    answer: Answer | None = None
    is_impossible: bool = False
    golds: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Questions:
    """The questions of a file in its order; skipped: ids of those whose answer is not in their context."""

    name: str
    questions: list[Question]
    skipped: list[str] = field(default_factory=list)
    contexts: int = 0

    def warnings(self) -> list[str]:
        """Warnings about questions that are left out, the first few one by one."""
        shown = [
            f"{self.name}: question {name}: its answer is not in the words of its context; left out"
            for name in self.skipped[:SHOWN_WARNINGS]
        ]
        if len(self.skipped) > SHOWN_WARNINGS:
            shown.append(f"{self.name}: {len(self.skipped)} questions are left out for that reason")
        return shown


def read_squad(path: str, *, training: bool = False, negatives: bool = False) -> Questions:
    """The questions of the file at the path; see parse_squad."""
    return parse_squad(storage.read_bytes(path), path, training=training, negatives=negatives)


def parse_squad(data: bytes, name: str, *, training: bool, negatives: bool) -> Questions:
    """The questions of SQuAD's JSON.

    training: each question needs exactly one answer; it is left out, and noted as skipped, where the answer's
    text is not found in the words that its place points to. negatives (version 2.0): a question may be
    marked as impossible; when predicting, and without negatives, the mark is not looked at. InputError names
    file, question, what was found and what was expected.
    """
    questions: list[Question] = []
    skipped: list[str] = []
    seen: set[str] = set()
    contexts = 0
    for text, entries in _paragraphs(_parse_json(data, name), name):
        context = split_context(text)
        contexts += 1
        for entry in entries:
            where = f"{name}: question {_id(entry, name, seen)}"
            found = _question(entry, context, where, training, negatives)
            if found is None:
                skipped.append(entry["id"])
            else:
                questions.append(found)
    if not seen:
        raise InputError(f"{name}: holds no questions")
    return Questions(name=name, questions=questions, skipped=skipped, contexts=contexts)


def _parse_json(data: bytes, name: str) -> Any:
    text = decode_text(data, name, "SQuAD's JSON in UTF-8")
    try:
        return parse_json_text(text)
    except ValueError as error:
        raise InputError(f"{name}: is not JSON: {error}; expected SQuAD's form") from None


def _paragraphs(value: Any, name: str) -> Iterator[tuple[str, list[Any]]]:
    """Each context with its questions' entries."""
    articles = _member(value, "data", list, name)
    for number, article in enumerate(articles):
        paragraphs = _member(article, "paragraphs", list, f"{name}: data {number}")
        for place, paragraph in enumerate(paragraphs):
            where = f"{name}: data {number}: paragraph {place}"
            yield _member(paragraph, "context", str, where), _member(paragraph, "qas", list, where)


_KINDS = {list: "a list", str: "a text", int: "an integer", bool: "true or false"}


def _member(value: Any, key: str, kind: type[Any], where: str) -> Any:
    """The member of a JSON object; InputError where it is missing or of another type."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: is no JSON object, expected one with {key!r} (SQuAD's form)")
    if key not in value:
        raise InputError(f"{where}: lacks {key!r}, expected {_KINDS[kind]} (SQuAD's form)")
    if type(value[key]) is not kind:
        raise InputError(f"{where}: {key!r} is {value[key]!r:.60}, expected {_KINDS[kind]}")
    return value[key]


def _id(entry: Any, name: str, seen: set[str]) -> str:
    found: str = _member(entry, "id", str, f"{name}: question {len(seen)}")
    if found in seen:
        raise InputError(f"{name}: question {found}: occurs twice, expected an id of its own")
    seen.add(found)
    return found


def _question(entry: Any, context: Context, where: str, training: bool, negatives: bool) -> Question | None:
    """The question; None where its answer is not in the context."""
    text = _member(entry, "question", str, where)
    marked = "is_impossible" in entry and _member(entry, "is_impossible", bool, where)
    answers = _answers(entry, where)
    golds = tuple(answer for answer, _ in answers)
    impossible = training and negatives and marked
    answer = None
    if training and not impossible:
        if len(answers) != 1:
            hint = "; --version-2-with-negative reads impossible questions" if marked else ""
            raise InputError(f"{where}: has {len(answers)} answers, expected exactly 1 for training{hint}")
        answer = _locate(*answers[0], context)
        if answer is None:
            return None
    return Question(
        id=entry["id"], text=text, context=context, answer=answer, is_impossible=impossible, golds=golds
    )


def _answers(entry: Any, where: str) -> list[tuple[str, int]]:
    """Text and place of each answer; a file to predict on may have none."""
    if "answers" not in entry:
        return []
    found = _member(entry, "answers", list, where)
    return [(_member(one, "text", str, where), _member(one, "answer_start", int, where)) for one in found]


def _locate(text: str, start: int, context: Context) -> Answer | None:
    """The answer's words by its place; None where they do not hold its text, white space joined."""
    stop = start + len(text)
    if not text or start < 0 or stop > context.length:
        return None
    first, last = context.word_at(start), context.word_at(stop - 1)
    if " ".join(text.split()) not in " ".join(context.words[first : last + 1]):
        return None
    return Answer(text, first, last)
