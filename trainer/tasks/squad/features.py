"""Features of questions: ``[CLS] question [SEP] span [SEP]``, with one feature for each span of the context.

With a WordPiece vocabulary, they equal the features of Google's and NVIDIA's run_squad.py in every field.
With any other tokeniser, answers are located by character offsets (``places``). Its own cls and sep tokens
are used, with as many sep tokens between question and span as it puts between two texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings, require
from bertdata.errors import SettingsError
from bertdata.examples.squad.batch import SquadBatch, SquadExample
from bertdata.records import Vocabulary
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.tasks.data_file import DataFile
from trainer.tasks.feature_set import SourceExamples, pad_columns
from trainer.tasks.squad.places import Places, find_answer_by_places, locate_tokens
from trainer.tasks.squad.reading import Answer, Context, Question, read_squad

USUAL_QUERY_LENGTH = 64
"""Most tokens of a question if max_query_length is not given and max_seq_length has room for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SquadSettings(ExampleSettings):
    """Everything that determines the features of a SQuAD file, except the file and the vocabulary.

    dialect: program whose features are made. "google" and "nvidia" follow these programs. Other dialects
        tokenise as google.
    """

    objective: str = setting("squad", "objective of the examples")
    dialect: str = setting("google", "program to follow: google or nvidia", ("google", "nvidia"))
    max_seq_length: int = setting(384, "most token ids in a feature, special tokens included")
    doc_stride: int = setting(128, "tokens from the start of one span of a context to the next")
    doc_overlap: int | None = setting(None, "tokens that two spans have in common; in place of doc_stride")
    max_query_length: int = setting(
        USUAL_QUERY_LENGTH, "most tokens of a question; the rest is cut off; 0: none is cut"
    )
    training: bool = setting(False, "read answers and learn their positions")
    first_answer: bool = setting(False, "learn the first of several answers; a question without has none")
    version_2_with_negative: bool = setting(False, "questions may have no answer (SQuAD 2.0)")

    def __post_init__(self) -> None:
        super(SquadSettings, self).__post_init__()
        require(self.doc_stride >= 1, f"doc_stride is {self.doc_stride}, expected 1 or more")
        require(
            self.max_query_length >= 0, f"max_query_length is {self.max_query_length}, expected 0 or more"
        )
        overlap = self.doc_overlap
        require(overlap is None or overlap >= 0, f"doc_overlap is {overlap}, expected 0 or more")
        self.check_room(separators=1)

    def check_room(self, separators: int) -> None:
        """Raise SettingsError if a question of the largest allowed length leaves no room for the context.

        separators: number of sep tokens between question and span.
        """
        longest = compute_longest_query(self.max_seq_length, separators)
        require(
            self.max_query_length <= longest,
            f"max_query_length is {self.max_query_length}, expected at most max_seq_length - "
            f"{separators + 3} ({longest}), so that a token of the context fits in",
        )

    def compute_stride(self, question: str, tokens: int, longest: int) -> int:
        """Return the distance in tokens between the starts of two consecutive spans.

        question: id of the question, for the error message.
        tokens: number of the question's tokens.
        longest: largest number of context tokens in a span.
        Raises SettingsError if the question leaves no room for the context, or less room than doc_overlap.
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
        """Return the settings by name.

        Settings that were added in later versions are left out if they have their default, so that older
        manifests stay equal.
        """
        found = super(SquadSettings, self).as_json()
        if self.doc_overlap is None:
            del found["doc_overlap"]
        if not self.first_answer:
            del found["first_answer"]
        return found


def compute_longest_query(max_seq_length: int, separators: int) -> int:
    """Return the number of question tokens that leave room for cls, the sep tokens, and one context token.

    separators: number of sep tokens between question and span.
    """
    return max_seq_length - separators - 3


def choose_query_length(max_seq_length: int, separators: int) -> int:
    """Return the default of max_query_length: 64 tokens, or the largest number that fits.

    The result is at least 1, because a max_query_length of 0 means no limit.
    separators: number of sep tokens between question and span.
    """
    return max(1, min(USUAL_QUERY_LENGTH, compute_longest_query(max_seq_length, separators)))


@dataclass(frozen=True, slots=True, eq=False)
class ContextSpan:
    """A span of a context: the tokens ``first`` to ``first + length - 1``.

    is_max_context: for each token of the span, whether no other span gives it more context.
    """

    first: int
    length: int
    is_max_context: npt.NDArray[np.bool_]


def make_spans(tokens: int, longest: int, stride: int) -> list[ContextSpan]:
    """Return the spans of a context, in order.

    Spans overlap, so a token may be in several spans. The context that a span gives to a token is the number
    of the span's tokens to the left or to the right, whichever is smaller, plus 0.01 times the span's length.
    If two spans give equal context, the first counts as giving more.
    tokens: number of tokens in the context.
    longest: largest number of tokens in a span.
    stride: distance in tokens between the starts of two spans.
    """
    bounds = compute_span_bounds(tokens, longest, stride)
    if not bounds:
        return []
    # The arrays have a row per span and a column per token. context[s, t] is negative if span s does not
    # contain token t.
    firsts, lengths = (np.array(column)[:, None] for column in zip(*bounds, strict=True))
    places = np.arange(tokens)
    context = np.minimum(places - firsts, firsts + lengths - 1 - places)
    scores = np.where(context >= 0, context + 0.01 * lengths, -1.0)
    best: Any = scores.argmax(axis=0)  # the first of equal values
    return [
        ContextSpan(first, length, best[first : first + length] == number)
        for number, (first, length) in enumerate(bounds)
    ]


def compute_span_bounds(tokens: int, longest: int, stride: int) -> list[tuple[int, int]]:
    """Return the first token and the length of each span of a context.

    The starts of spans are ``stride`` tokens apart. The last span is the first one that reaches the end
    of the context. For example, a context of 10 tokens with longest 6 and stride 3 has the spans (0,
    6), (3, 6) and (6, 4).
    """
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
"""Seed with which Google's program shuffles the training questions before it makes features."""

Ids = list[int]


@dataclass(frozen=True, slots=True, eq=False)
class ContextTokens:
    """The token ids of a context.

    words: for each token, the index of its word.
    places: character offsets of the tokens. None with a WordPiece vocabulary, which does not need them.
    """

    ids: Ids
    words: npt.NDArray[Any]
    places: Places | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SquadFeature:
    """A question together with one span of its context.

    example: index of the question in the list of questions.
    number: index of the span in the context.
    query: token ids of the question.
    separators: number of sep tokens after the question.
    start: position of the answer's first token in ``ids``. 0 if the span does not contain the whole answer.
        None when predicting.
    end: position of the answer's last token in ``ids``. 0 or None as ``start``.
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
        """Position of the span's first token in ``ids``. This is also the length of the first segment."""
        return 1 + len(self.query) + self.separators

    def ids(self, vocabulary: Vocabulary) -> Ids:
        """Return the token ids of the feature without padding."""
        first, stop = self.span.first, self.span.first + self.span.length
        cls, sep = vocabulary.role("cls"), vocabulary.role("sep")
        between = [sep] * self.separators
        return [cls, *self.query, *between, *self.context.ids[first:stop], sep]

    def word(self, position: int) -> int:
        """Return the index of the context's word to which the token at this position belongs."""
        return int(self.context.words[self.span.first + position - self.document])


def shuffle_questions(questions: Sequence[Question]) -> list[Question]:
    """Return the questions in the order in which Google's program makes training features from them."""
    found = list(questions)
    Random(SHUFFLE_SEED).shuffle(found)
    return found


def make_features(
    questions: Sequence[Question], tokenizer: Tokenizer, settings: SquadSettings
) -> list[SquadFeature]:
    """Return the features of all questions, in order. Questions on a context without tokens have none."""
    between = tokenizer.vocabulary.pair_separators
    settings.check_room(between)
    contexts = _tokenize_contexts(questions, tokenizer)
    queries = tokenizer.encode_each([one.text for one in questions]).lists()
    answers = tokenizer.encode_each([one.answer.text if one.answer else "" for one in questions]).lists()
    spans_of = cache(make_spans)
    features: list[SquadFeature] = []
    for example, (question, query, answer) in enumerate(zip(questions, queries, answers, strict=True)):
        # A max_query_length of 0 means no limit, because `query[:None]` is the whole question.
        tokens, query = contexts[question.context], query[: settings.max_query_length or None]
        longest = settings.max_seq_length - len(query) - 2 - between
        stride = settings.compute_stride(question.id, len(query), longest)
        spans = spans_of(len(tokens.ids), longest, stride)
        place = (
            _find_answer_tokens(question.answer, question.context, answer, tokens)
            if question.answer
            else None
        )
        for number, span in enumerate(spans):
            found: tuple[int | None, int | None] = None, None
            if settings.training:
                found = _find_answer_positions(place, span, 1 + len(query) + between)
            unique_id = FIRST_UNIQUE_ID + len(features)
            made = SquadFeature(unique_id, example, number, question, query, between, tokens, span, *found)
            features.append(made)
    return features


def _tokenize_contexts(questions: Sequence[Question], tokenizer: Tokenizer) -> dict[Context, ContextTokens]:
    """Tokenise each context once, also if several questions have it.

    Questions about the same context have the same object, so contexts are compared by identity.
    """
    contexts = dict.fromkeys(question.context for question in questions)
    if not isinstance(tokenizer, WordPieceTokenizer):
        by_places = locate_tokens(list(contexts), tokenizer)
        return {context: ContextTokens(*one) for context, one in zip(contexts, by_places, strict=True)}
    # Tokenise the words of all contexts in one call, then divide the result at the ends of the words.
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


def _find_answer_tokens(
    answer: Answer, context: Context, ids: Ids, tokens: ContextTokens
) -> tuple[int, int] | None:
    """Return the first and the last token of an answer in its context, or None if no token belongs to it.

    If there are character offsets, they determine the tokens. With WordPiece, the tokens of the answer's
    words are searched for the tokens of the answer. For example, the answer "Japan" in the word "Japanese" is
    found only if "japan" is one or more whole tokens of this word. If the search fails, all tokens of the
    words are taken.
    """
    if tokens.places is not None:
        return find_answer_by_places(answer, context, tokens.places)
    first, stop = np.searchsorted(tokens.words, (answer.first_word, answer.last_word + 1)).tolist()
    for start in range(first, stop + 1 - len(ids)) if ids else ():
        if tokens.ids[start : start + len(ids)] == ids:
            return start, start + len(ids) - 1
    return first, stop - 1


def _find_answer_positions(
    place: tuple[int, int] | None, span: ContextSpan, document: int
) -> tuple[int, int]:
    """Return the positions of an answer in a feature, or (0, 0) if the span does not
    contain the whole answer.

    place: first and last token of the answer in the context. None if there is no answer.
    document: position of the span's first token in the feature.
    """
    if place is None or place[0] < span.first or place[1] > span.first + span.length - 1:
        return 0, 0
    return place[0] - span.first + document, place[1] - span.first + document


def pad_feature(feature: SquadFeature, vocabulary: Vocabulary, length: int) -> dict[str, Any]:
    """Return the feature's fields, padded to ``length`` ids. They have the names of run_squad.py.

    token_to_orig_map is a list of pairs [position, word index]. token_is_max_context is a list of pairs
    [position, 0 or 1].
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
        **pad_columns(ids, document, length, vocabulary.padding_id),
        "start_position": feature.start,
        "end_position": feature.end,
        "is_impossible": feature.question.is_impossible,
    }


def make_squad_examples(
    source: DataFile, tokenizer: Tokenizer, settings: SquadSettings, *, shuffle: bool = False
) -> SourceExamples:
    """Make the examples of a file's features, in order. Example i has the unique id 1000000000 + i.

    Predictions also need the words of the contexts and the spans of the features, which are not
    stored. ``read_squad`` and ``make_features`` make them again from the file, which takes a second
    for 10,000 questions.
    shuffle: whether to use the order of ``shuffle_questions``.
    """
    found = read_squad(
        source,
        training=settings.training,
        negatives=settings.version_2_with_negative,
        first_answer=settings.first_answer,
    )
    questions = shuffle_questions(found.questions) if shuffle else found.questions
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
        values=(pad_feature(one, vocabulary, settings.max_seq_length) for one in features),
        count=f"{len(features)} features of {len(questions)} questions",
    )
