"""Features of questions: ``[CLS] question [SEP] span [SEP]``, one for each span of the context.

With a WordPiece vocabulary equal to those of Google's and NVIDIA's run_squad.py in every field; with any
other tokeniser by the places of its tokens (``places``), cls and sep by their roles, and between question and
span as many sep as the tokeniser has there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings, check
from bertdata.errors import SettingsError
from bertdata.examples.squad.batch import SquadBatch, SquadExample
from bertdata.records import Vocabulary
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.tasks.data_file import DataFile
from trainer.tasks.feature_set import SourceExamples, padded_columns
from trainer.tasks.squad.places import Places, answer_by_places, tokens_by_places
from trainer.tasks.squad.reading import Answer, Context, Question, read_squad


@dataclass(frozen=True, kw_only=True, slots=True)
class SquadSettings(ExampleSettings):
    """Everything, besides file and vocabulary, that decides the features of a SQuAD file.

    The dialects google and nvidia are those of the two programs; the others tokenise as google.
    """

    objective: str = setting("squad", "objective of the examples")
    dialect: str = setting("google", "whose habits to follow: google or nvidia", ("google", "nvidia"))
    max_seq_length: int = setting(384, "ids in a feature, special tokens included")
    doc_stride: int = setting(128, "tokens from the start of one span of a context to the next")
    doc_overlap: int | None = setting(None, "tokens that two spans have in common; in place of doc_stride")
    max_query_length: int = setting(64, "most tokens of a question; the rest is cut off; 0: none is cut")
    training: bool = setting(False, "read answers and learn their positions")
    first_answer: bool = setting(False, "learn the first of several answers; a question without has none")
    version_2_with_negative: bool = setting(False, "questions may have no answer (SQuAD 2.0)")

    def __post_init__(self) -> None:
        super(SquadSettings, self).__post_init__()
        check(self.doc_stride >= 1, f"doc_stride is {self.doc_stride}, expected 1 or more")
        check(self.max_query_length >= 0, f"max_query_length is {self.max_query_length}, expected 0 or more")
        overlap = self.doc_overlap
        check(overlap is None or overlap >= 0, f"doc_overlap is {overlap}, expected 0 or more")
        self.check_room(separators=1)

    def check_room(self, separators: int) -> None:
        """SettingsError where the longest question leaves no room. separators: between it and the span."""
        longest = self.max_seq_length - separators - 3  # cls, the last sep and a token of the context
        check(
            self.max_query_length <= longest,
            f"max_query_length is {self.max_query_length}, expected at most max_seq_length - "
            f"{separators + 3} ({longest}), so that a token of the context fits in",
        )

    def stride(self, question: str, tokens: int, longest: int) -> int:
        """Return the way from one span to the next of a question's context. longest: tokens of a span.

        SettingsError where the question leaves the context no room, or less than two spans have in common.
        """
        overlap = self.doc_overlap or 0
        if longest <= overlap:
            most = f"{longest} tokens of the context" if longest > 0 else "no token of the context"
            needs = f"more than doc_overlap, {overlap}" if overlap else "1 or more"
            raise SettingsError(
                f"question {question}: its {tokens} tokens leave room for {most} in max_seq_length "
                f"{self.max_seq_length}, expected {needs}; a max_query_length above 0 cuts questions"
            )
        return self.doc_stride if self.doc_overlap is None else longest - overlap

    def as_json(self) -> dict[str, Any]:
        """The settings by name, later ones only where they count, so that a manifest keeps its bytes."""
        found = super(SquadSettings, self).as_json()
        if self.doc_overlap is None:
            del found["doc_overlap"]
        if not self.first_answer:
            del found["first_answer"]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ContextSpan:
    """Tokens ``first`` to ``first + length`` of a context.

    is_max_context: for each of them True where no other span gives it more context.
    """

    first: int
    length: int
    is_max_context: npt.NDArray[np.bool_]


def make_spans(tokens: int, longest: int, stride: int) -> list[ContextSpan]:
    """The spans of a context of so many tokens, in order, or none where it has no tokens.

    A token's context in a span is the smaller of the tokens to its left and to its right, plus 0.01 x the
    span's length; the first span counts among equals.
    """
    bounds = span_bounds(tokens, longest, stride)
    if not bounds:
        return []
    firsts, lengths = (np.array(column)[:, None] for column in zip(*bounds, strict=True))
    places = np.arange(tokens)
    context = np.minimum(places - firsts, firsts + lengths - 1 - places)
    scores = np.where(context >= 0, context + 0.01 * lengths, -1.0)
    best: Any = scores.argmax(axis=0)  # the first among equals
    return [
        ContextSpan(first, length, best[first : first + length] == number)
        for number, (first, length) in enumerate(bounds)
    ]


def span_bounds(tokens: int, longest: int, stride: int) -> list[tuple[int, int]]:
    """First token and length of each span. They begin ``stride`` apart until the end is covered."""
    bounds: list[tuple[int, int]] = []
    first = 0
    while first < tokens:
        length = min(tokens - first, longest)
        bounds.append((first, length))
        if first + length == tokens:
            break
        first += min(length, stride)
    return bounds


FIRST_UNIQUE_ID = 1_000_000_000
SHUFFLE_SEED = 12345
"""Google's program shuffles the training questions with this seed before it makes features of them."""

Ids = list[int]


@dataclass(frozen=True, slots=True, eq=False)
class ContextTokens:
    """A context's token ids. words: the word of each. places: theirs, None of WordPiece."""

    ids: Ids
    words: npt.NDArray[Any]
    places: Places | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One span of a question's context with the question.

    example: the question's number in the list that features were made of; number: the span's. query: the
    question's ids. separators: between it and the span. start, end: the answer's positions in ``ids``, 0 and
    0 where the span does not hold it whole; None when predicting.
    """

    unique_id: int
    example: int
    number: int
    question: Question
    query: Ids
    separators: int
    context: ContextTokens
    span: ContextSpan
    start: int | None
    end: int | None

    @property
    def document(self) -> int:
        """The position of the span's first token, which is also the length of the first segment."""
        return 1 + len(self.query) + self.separators

    def ids(self, vocabulary: Vocabulary) -> Ids:
        """The ids without padding."""
        first, stop = self.span.first, self.span.first + self.span.length
        cls, sep = vocabulary.role("cls"), vocabulary.role("sep")
        between = [sep] * self.separators
        return [cls, *self.query, *between, *self.context.ids[first:stop], sep]

    def word(self, position: int) -> int:
        """The context's word that the token at a position of the span comes from."""
        return int(self.context.words[self.span.first + position - self.document])


def shuffled(questions: Sequence[Question]) -> list[Question]:
    """The questions in the order in which Google's program makes training features."""
    found = list(questions)
    Random(SHUFFLE_SEED).shuffle(found)
    return found


def make_features(
    questions: Sequence[Question], tokenizer: Tokenizer, settings: SquadSettings
) -> list[Feature]:
    """The features of all questions, in order. A context without tokens has none."""
    between = tokenizer.vocabulary.pair_separators
    settings.check_room(between)
    contexts = _tokenize_contexts(questions, tokenizer)
    queries = tokenizer.encode_each([one.text for one in questions]).lists()
    answers = tokenizer.encode_each([one.answer.text if one.answer else "" for one in questions]).lists()
    spans_of = cache(make_spans)
    features: list[Feature] = []
    for example, (question, query, answer) in enumerate(zip(questions, queries, answers, strict=True)):
        tokens, query = contexts[question.context], query[: settings.max_query_length or None]
        longest = settings.max_seq_length - len(query) - 2 - between
        stride = settings.stride(question.id, len(query), longest)
        spans = spans_of(len(tokens.ids), longest, stride)
        place = _answer_tokens(question.answer, question.context, answer, tokens) if question.answer else None
        for number, span in enumerate(spans):
            found: tuple[int | None, int | None] = None, None
            if settings.training:
                found = _positions(place, span, 1 + len(query) + between)
            unique_id = FIRST_UNIQUE_ID + len(features)
            made = Feature(unique_id, example, number, question, query, between, tokens, span, *found)
            features.append(made)
    return features


def _tokenize_contexts(questions: Sequence[Question], tokenizer: Tokenizer) -> dict[Context, ContextTokens]:
    """The tokens of each context, tokenised once. Contexts are told apart by identity."""
    contexts = dict.fromkeys(question.context for question in questions)
    if not isinstance(tokenizer, WordPieceTokenizer):
        by_places = tokens_by_places(list(contexts), tokenizer)
        return {context: ContextTokens(*one) for context, one in zip(contexts, by_places, strict=True)}
    found = tokenizer.encode_each([word for context in contexts for word in context.words])
    ids, ends = list(found.ids), np.concatenate(([0], np.asarray(found.ends, np.int64)))
    tokens: dict[Context, ContextTokens] = {}
    first = 0
    for context in contexts:
        bounds = ends[first : first + len(context.words) + 1]
        first += len(context.words)
        words = np.repeat(np.arange(len(context.words)), np.diff(bounds))
        tokens[context] = ContextTokens(ids[bounds[0] : bounds[-1]], words)
    return tokens


def _answer_tokens(
    answer: Answer, context: Context, ids: Ids, tokens: ContextTokens
) -> tuple[int, int] | None:
    """First and last token of the answer in the context, tightened. None where no token is in it.

    By their places where these are known. Tightened: the first run of tokens within the answer's words that
    equals the answer tokenised by itself; "Japan" is found in "Japanese" only where that is a run of pieces.
    Without one, all tokens of the words.
    """
    if tokens.places is not None:
        return answer_by_places(answer, context, tokens.places)
    first, stop = np.searchsorted(tokens.words, (answer.first_word, answer.last_word + 1)).tolist()
    for start in range(first, stop + 1 - len(ids)) if ids else ():
        if tokens.ids[start : start + len(ids)] == ids:
            return start, start + len(ids) - 1
    return first, stop - 1


def _positions(place: tuple[int, int] | None, span: ContextSpan, document: int) -> tuple[int, int]:
    """The answer's positions in a feature, or 0 and 0 where its span does not hold all of it."""
    if place is None or place[0] < span.first or place[1] > span.first + span.length - 1:
        return 0, 0
    return place[0] - span.first + document, place[1] - span.first + document


def feature_values(feature: Feature, vocabulary: Vocabulary, length: int) -> dict[str, Any]:
    """The feature's fields under the names of run_squad.py, padded to ``length`` ids.

    token_to_orig_map, token_is_max_context: pairs of a position and its word, or 0 or 1.
    """
    ids, span, document = feature.ids(vocabulary), feature.span, feature.document
    words = feature.context.words[span.first : span.first + span.length].tolist()
    return {
        "unique_id": feature.unique_id,
        "example_index": feature.example,
        "doc_span_index": feature.number,
        "tokens": [vocabulary.words[token] for token in ids],
        "token_to_orig_map": [[document + place, word] for place, word in enumerate(words)],
        "token_is_max_context": [
            [document + place, int(best)] for place, best in enumerate(span.is_max_context.tolist())
        ],
        **padded_columns(ids, document, length, vocabulary.padding_id),
        "start_position": feature.start,
        "end_position": feature.end,
        "is_impossible": feature.question.is_impossible,
    }


def squad_examples(
    source: DataFile, tokenizer: Tokenizer, settings: SquadSettings, *, shuffle: bool = False
) -> SourceExamples:
    """The examples of the file's features, in order: example i has the unique id 1000000000 + i.

    What predictions need beside (the words of the context, the features' spans) is made again from the file
    by ``read_squad`` and ``make_features``, which takes a second for 10,000 questions. shuffle: the
    questions in the order of ``shuffled``.
    """
    found = read_squad(
        source,
        training=settings.training,
        negatives=settings.version_2_with_negative,
        first_answer=settings.first_answer,
    )
    questions = shuffled(found.questions) if shuffle else found.questions
    features, vocabulary = make_features(questions, tokenizer, settings), tokenizer.vocabulary
    examples = [
        SquadExample(
            ids=one.ids(vocabulary),
            first_length=one.document,
            answer_start=one.start or 0,
            answer_end=one.end or 0,
            impossible=int(one.question.is_impossible),
        )
        for one in features
    ]
    return SourceExamples(
        examples=examples,
        batch_type=SquadBatch,
        documents=found.contexts,
        sentences=len(questions),
        warnings=found.warnings(),
        values=(feature_values(one, vocabulary, settings.max_seq_length) for one in features),
        count=f"{len(features)} features of {len(questions)} questions",
    )
