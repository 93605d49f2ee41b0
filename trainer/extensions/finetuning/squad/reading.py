"""Questions of a file in SQuAD's JSON, versions 1.1 and 2.0."""

from dataclasses import dataclass, field

from bertdata.errors import InputError
from bertdata.io import storage
from trainer.extensions.finetuning.squad.entries import Context, QuestionEntry, read_entries

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
    """The questions of a file in its order. skipped: ids of those whose answer is not in their context."""

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
    """The questions of the file at the path, as from parse_squad."""
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
    contexts: set[Context] = set()
    for entry in read_entries(data, name):
        contexts.add(entry.context)
        found = _question(entry, training, negatives)
        if found is None:
            skipped.append(entry.id)
        else:
            questions.append(found)
    if not questions and not skipped:
        raise InputError(f"{name}: holds no questions")
    return Questions(name=name, questions=questions, skipped=skipped, contexts=len(contexts))


def check_scorable(found: Questions) -> None:
    """InputError for the first question without an answer, which version 1.1 has no score for."""
    for question in found.questions:
        if not question.golds:
            raise InputError(
                f"{found.name}: question {question.id}: has no answers, expected 1 or more to evaluate on; "
                "--version-2-with-negative scores questions without any, --no-do-eval leaves evaluation out"
            )


def _question(entry: QuestionEntry, training: bool, negatives: bool) -> Question | None:
    """The question, or None where its answer is not in the context."""
    answers = entry.answers
    impossible = training and negatives and entry.is_impossible
    answer = None
    if training and not impossible:
        if len(answers) != 1:
            hint = "; --version-2-with-negative reads impossible questions" if entry.is_impossible else ""
            raise InputError(
                f"{entry.where}: has {len(answers)} answers, expected exactly 1 for training{hint}"
            )
        answer = _locate(*answers[0], entry.context)
        if answer is None:
            return None
    return Question(
        id=entry.id,
        text=entry.question,
        context=entry.context,
        answer=answer,
        is_impossible=impossible,
        golds=tuple(text for text, _ in answers),
    )


def _locate(text: str, start: int, context: Context) -> Answer | None:
    """The answer's words by its place, or None where these lack its text (blanks ignored)."""
    stop = start + len(text)
    if not text or start < 0 or stop > context.length:
        return None
    first, last = context.word_at(start), context.word_at(stop - 1)
    if " ".join(text.split()) not in " ".join(context.words[first : last + 1]):
        return None
    return Answer(text, first, last)
