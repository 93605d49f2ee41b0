"""Features of questions: ``[CLS] question [SEP] span [SEP]``, one for each span of the context.

Equal to those of Google's and NVIDIA's run_squad.py in every field.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from bertdata.records import Vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.extensions.finetuning.squad.context import Context
from trainer.extensions.finetuning.squad.reading import Answer, Question
from trainer.extensions.finetuning.squad.settings import SquadSettings
from trainer.extensions.finetuning.squad.spans import ContextSpan, make_spans

FIRST_UNIQUE_ID = 1_000_000_000
SHUFFLE_SEED = 12345
"""Google's program shuffles the training questions with this seed before it makes features of them."""

Ids = list[int]


@dataclass(frozen=True, slots=True, eq=False)
class ContextTokens:
    """A context's token ids; words: the word that each comes from; starts: the first token of each word."""

    ids: Ids
    words: npt.NDArray[Any]
    starts: npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One span of a question's context with the question.

    example: the question's number in the list that features were made of; number: the span's. query: the
    question's ids. start, end: the answer's positions in ``ids``, 0 and 0 where the span does not hold it
    whole; None when predicting.
    """

    unique_id: int
    example: int
    number: int
    query: Ids
    context: ContextTokens
    span: ContextSpan
    start: int | None
    end: int | None
    is_impossible: bool

    @property
    def document(self) -> int:
        """The position of the span's first token; also the length of the first segment."""
        return len(self.query) + 2

    @property
    def length(self) -> int:
        """Ids without padding."""
        return self.document + self.span.length + 1

    def ids(self, vocabulary: Vocabulary) -> Ids:
        """The ids without padding."""
        first, stop = self.span.first, self.span.first + self.span.length
        return [vocabulary.cls, *self.query, vocabulary.sep, *self.context.ids[first:stop], vocabulary.sep]

    def word(self, position: int) -> int:
        """The context's word that the token at a position of the span comes from."""
        return int(self.context.words[self.span.first + position - self.document])


def shuffled(questions: Sequence[Question]) -> list[Question]:
    """The questions in the order in which Google's program makes training features."""
    found = list(questions)
    Random(SHUFFLE_SEED).shuffle(found)
    return found


def make_features(
    questions: Sequence[Question], tokenizer: WordPieceTokenizer, settings: SquadSettings
) -> list[Feature]:
    """The features of all questions, in order; a context without tokens has none."""
    contexts = _tokenize_contexts(questions, tokenizer)
    queries = tokenizer.encode_each([one.text for one in questions]).lists()
    answers = tokenizer.encode_each([one.answer.text if one.answer else "" for one in questions]).lists()
    spans: dict[tuple[int, int], list[ContextSpan]] = {}
    features: list[Feature] = []
    for example, (question, query, answer) in enumerate(zip(questions, queries, answers, strict=True)):
        tokens, query = contexts[id(question.context)], query[: settings.max_query_length]
        longest = settings.max_seq_length - len(query) - 3
        key = id(question.context), longest
        if key not in spans:
            spans[key] = make_spans(len(tokens.ids), longest, settings.doc_stride)
        place = _answer_tokens(question.answer, answer, tokens) if question.answer else None
        for number, span in enumerate(spans[key]):
            start, end = _positions(place, span, len(query) + 2) if settings.training else (None, None)
            unique_id = FIRST_UNIQUE_ID + len(features)
            features.append(
                Feature(unique_id, example, number, query, tokens, span, start, end, question.is_impossible)
            )
    return features


def _tokenize_contexts(
    questions: Sequence[Question], tokenizer: WordPieceTokenizer
) -> dict[int, ContextTokens]:
    """The tokens of each context, tokenised once, by the context's identity."""
    contexts: dict[int, Context] = {id(question.context): question.context for question in questions}
    found = tokenizer.encode_each([word for context in contexts.values() for word in context.words])
    ids, ends = list(found.ids), np.concatenate(([0], np.asarray(found.ends, np.int64)))
    tokens: dict[int, ContextTokens] = {}
    first = 0
    for key, context in contexts.items():
        bounds = ends[first : first + len(context.words) + 1]
        first += len(context.words)
        words = np.repeat(np.arange(len(context.words)), np.diff(bounds))
        tokens[key] = ContextTokens(ids[bounds[0] : bounds[-1]], words, bounds[:-1] - bounds[0])
    return tokens


def _answer_tokens(answer: Answer, ids: Ids, tokens: ContextTokens) -> tuple[int, int]:
    """First and last token of the answer in the context, tightened.

    Tightened: the first run of tokens within the answer's words that equals the answer tokenised by itself;
    "Japan" is found in "Japanese" only where that is a run of pieces. Without one, all tokens of the words.
    """
    first = int(tokens.starts[answer.first_word])
    next_word = answer.last_word + 1
    last = int(tokens.starts[next_word]) - 1 if next_word < len(tokens.starts) else len(tokens.ids) - 1
    for start in range(first, last + 2 - len(ids)) if ids else ():
        if tokens.ids[start : start + len(ids)] == ids:
            return start, start + len(ids) - 1
    return first, last


def _positions(place: tuple[int, int] | None, span: ContextSpan, document: int) -> tuple[int, int]:
    """The answer's positions in a feature; 0 and 0 where its span does not hold all of it."""
    if place is None or place[0] < span.first or place[1] > span.first + span.length - 1:
        return 0, 0
    return place[0] - span.first + document, place[1] - span.first + document
