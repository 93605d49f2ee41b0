"""Spans worked out by hand, and their lengths, places and replacements over many blocks."""

from array import array
from collections import Counter
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np
import pytest

from bertdata.config.dialects import DIALECTS
from bertdata.errors import SettingsError
from bertdata.examples.random_stream import NumpyStream
from bertdata.examples.span.batch import SpanExample
from bertdata.examples.span.blocks import cut_text_into_blocks
from bertdata.examples.span.make import make_spans
from bertdata.examples.span.masking import draw_spans, find_boundaries, prepare_span_rules, replace_spans
from bertdata.examples.span.settings import SpanSettings
from bertdata.examples.span.streams import BlockStream, choose_index
from bertdata.records import Documents
from tests.support.strategies import small_vocabulary

VOCABULARY = small_vocabulary(DIALECTS["mlperf"])
WORDS_AND_PIECES = [1, 1, 0, 0, 1, 0, 1, 1, 1, 1]
"""Ten ids: a, bcd, ef, g, h, i, j."""
SHARES = {k: 0.2 * 0.8 ** (k - 1) / (1 - 0.8**10) for k in range(1, 11)}
"""The lengths of SpanBERT's spans, in words."""


class Script:
    """A stream whose draws are written down: lengths and replacements as shares, anchors as they are."""

    def __init__(self, *draws: float) -> None:
        self._draws = list(draws)

    def random(self) -> float:
        return float(self._draws.pop(0))

    def below(self, limit: int) -> int:
        found = self._draws.pop(0)
        assert found == int(found)
        assert found < limit
        return int(found)

    @property
    def is_used_up(self) -> bool:
        return not self._draws


def rules_of(**changes: Any) -> Any:
    return prepare_span_rules(SpanSettings(max_seq_length=64, **changes))


ONE_WORD, TWO_WORDS, TEN_WORDS = 0.1, 0.3, 0.99
TAG = 0.5
"""The draw that decides nothing."""


@pytest.mark.parametrize(
    ("share", "draws", "expected"),
    [
        (0.3, [ONE_WORD, TAG, 2], [(1, 4)]),  # from a piece on: its word from the start
        (0.2, [ONE_WORD, TAG, 3], [(1, 3)]),  # cut where enough ids are masked
        (0.5, [TWO_WORDS, TAG, 1], [(1, 6)]),
        (0.2, [TEN_WORDS, TAG, 9, ONE_WORD, TAG, 9, ONE_WORD, TAG, 0], [(0, 1), (9, 10)]),  # 9 is masked
        (0.3, [ONE_WORD, TAG, 7, TWO_WORDS, TAG, 8], [(7, 10)]),  # spans that touch are one
        (0.4, [ONE_WORD, TAG, 6, TEN_WORDS, TAG, 4], [(4, 8)]),  # over masked ids, which cost nothing
    ],
)
def test_spans_of_written_draws(share, draws, expected):
    stream = Script(*draws)
    assert draw_spans(WORDS_AND_PIECES, rules_of(masked_lm_prob=share), stream) == expected
    assert stream.is_used_up


def test_no_more_ids_are_masked_than_there_is_room_for():
    stream = Script(TEN_WORDS, TAG, 0)
    assert draw_spans([1] * 20, rules_of(masked_lm_prob=1.0, max_predictions_per_seq=3), stream) == [(0, 3)]


MASK, RANDOM, KEPT = 0.79, 0.85, 0.9


def test_the_ids_of_a_span_are_replaced_alike():
    body, pool, spans = list(range(10, 20)), [77, 88, 99], [(1, 3), (4, 6), (8, 10)]
    stream = Script(RANDOM, 2, 0, MASK, KEPT)
    shown = replace_spans(body, spans, rules_of(), 4, pool, stream)
    assert shown == [10, 99, 77, 13, 4, 4, 16, 17, 18, 19]
    assert stream.is_used_up


def test_or_each_id_by_a_draw_of_its_own():
    rules = rules_of(replacement="word_piece")
    stream = Script(KEPT, MASK, RANDOM, 1)
    assert replace_spans([10, 11, 12], [(1, 3)], rules, 4, [77, 88], stream) == [10, 4, 88]
    assert stream.is_used_up


def test_boundaries_are_beside_a_span_or_its_own_ends():
    spans = [(0, 2), (4, 5), (7, 10)]
    assert find_boundaries(spans, 10, are_external=True) == [(3, 5)]
    assert find_boundaries(spans, 11, are_external=True) == [(3, 5), (6, 10)]
    assert find_boundaries(spans, 10, are_external=False) == [(0, 1), (4, 4), (7, 9)]


# Blocks


def documents_of(*sizes: list[int], ids: list[int] | None = None) -> Documents:
    """Documents of sentences of these sizes."""
    flat = [size for document in sizes for size in document]
    return Documents(
        ids=array("H", range(10, 10 + sum(flat)) if ids is None else ids),
        sentence_ends=array("I", accumulate(flat)),
        document_ends=array("I", accumulate(map(len, sizes))),
    )


@pytest.mark.parametrize(
    ("sizes", "ours", "original"),
    [
        ([[3, 3, 3]], [(0, 6), (6, 9)], [(0, 6), (6, 9)]),
        ([[4], [4, 4]], [(0, 4), (4, 12)], [(0, 4), (4, 12)]),  # of one document each
        ([[0, 5], [0], [], [2]], [(0, 5), (5, 7)], [(0, 5), (5, 7)]),
        ([[2, 19, 2]], [(0, 2), (2, 10), (10, 18), (18, 21), (21, 23)], [(0, 2), (21, 23)]),
        ([[2, 2, 9]], [(0, 4), (4, 12), (12, 13)], []),  # a long last sentence takes the open block along
        ([[8, 2, 9]], [(0, 8), (8, 10), (10, 18), (18, 19)], [(0, 8)]),
        ([[9]], [(0, 8), (8, 9)], []),
    ],
)
def test_blocks_are_whole_sentences(sizes, ours, original):
    documents = documents_of(*sizes)
    assert list(cut_text_into_blocks(documents, 8, as_original=False)) == ours
    assert list(cut_text_into_blocks(documents, 8, as_original=True)) == original


# Many blocks


def plain_text(blocks: int, size: int = 126) -> Documents:
    """Documents of one sentence each, of words of one id."""
    plain = [token for token in VOCABULARY.replacements if not VOCABULARY.continues_word[token] and token > 4]
    return documents_of(*[[size]] * blocks, ids=Random(3).choices(plain, k=blocks * size))


def examples_of(documents: Documents, **changes: Any) -> list[SpanExample]:
    settings = SpanSettings(max_seq_length=128, **changes)
    made = make_spans(documents, VOCABULARY, settings, "python")
    return list(made.batch(0, len(made)).examples())


def chi_squared(found: Counter[int], expected: dict[int, float]) -> float:
    total = found.total()
    return sum((found[key] - share * total) ** 2 / (share * total) for key, share in expected.items())


def bound(freedom: int) -> float:
    """Five standard deviations above the mean."""
    return freedom + 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("as_original", [False, True])
def test_lengths_of_spans_are_geometric(as_original):
    lengths, numpy_stream = rules_of().lengths, NumpyStream(9)
    streams = (numpy_stream if as_original else BlockStream(5, number) for number in range(8_000))
    found = Counter(1 + choose_index(lengths, stream) for stream in streams)
    assert chi_squared(found, SHARES) < bound(len(SHARES) - 1)


def test_a_share_of_each_block_is_masked_rounded_up():
    for example in examples_of(plain_text(30, 100), masked_lm_prob=0.15):
        assert len(example.positions) == 15
    for example in examples_of(plain_text(30, 99), masked_lm_prob=0.15):
        assert len(example.positions) == 15
    assert {len(example.positions) for example in examples_of(plain_text(5, 1))} == {1}


def test_every_position_inside_is_about_as_likely_masked():
    """Near the start fewer spans reach a position, so that only those behind ten words are compared."""
    positions = Counter(p for example in examples_of(plain_text(3_000)) for p in example.positions)
    assert positions[0] == positions[127] == 0
    inner = {place: positions[place] for place in range(11, 127)}
    mean = sum(inner.values()) / len(inner)
    assert sum((count - mean) ** 2 / mean for count in inner.values()) < bound(len(inner) - 1)


def test_spans_are_replaced_in_the_shares_asked_for():
    for mask, random, kept in ((0.8, 0.1, 0.1), (0.5, 0.3, 0.2)):
        shares = {"mask_share": mask, "random_share": random, "kept_share": kept}
        found: Counter[str] = Counter()
        for example in examples_of(plain_text(700), **shares):
            labels = dict(zip(example.positions, example.labels, strict=True))
            for position, label in labels.items():
                if position - 1 not in labels:  # a span's first id
                    shown = example.ids[position]
                    kind = "kept" if shown == label else "random"
                    found["mask" if shown == VOCABULARY.mask else kind] += 1
        token = random / len(VOCABULARY.replacements)
        for kind, share in (("mask", mask + token), ("kept", kept + token)):
            deviation = (share * (1 - share) * found.total()) ** 0.5
            assert abs(found[kind] - share * found.total()) < 5 * deviation
        assert found.total() > 3_000


def test_random_ids_are_the_vocabularys_and_the_originals_are_the_texts():
    shares = {"mask_share": 0.0, "random_share": 1.0, "kept_share": 0.0}
    documents = documents_of(*[[100]] * 50, ids=[20, 21] * 2500)
    ours, original = (
        {token for example in examples_of(documents, as_original=flag, **shares) for token in example.ids}
        for flag in (False, True)
    )
    assert original == {20, 21, VOCABULARY.cls, VOCABULARY.sep}
    assert len(ours) > 20


def test_passes_seeds_and_texts_have_spans_of_their_own():
    documents = plain_text(40)
    one = {tuple(example.positions) for example in examples_of(documents)}
    assert one == {tuple(example.positions) for example in examples_of(documents)}
    for other in (examples_of(documents, random_seed=7), examples_of(documents, as_original=True)):
        assert not one & {tuple(example.positions) for example in other}
    three = {tuple(example.positions) for example in examples_of(documents, dupe_factor=3)}
    assert one < three
    assert len(three) == 120


def test_places_tell_words_where_ids_do_not():
    """Words of four ids by place, whatever the ids say."""
    documents = plain_text(200, 120)
    starts = np.tile(np.array([1, 0, 0, 0], np.uint8), 30 * 200)
    told = Documents(
        ids=documents.ids,
        sentence_ends=documents.sentence_ends,
        document_ends=documents.document_ends,
        word_starts=starts,
    )
    for example in examples_of(told):
        runs = [p for p in example.positions if p - 1 not in example.positions]
        assert {(place - 1) % 4 for place in runs} == {0}


# Settings


def test_numpy_is_seeded_with_32_bits():
    assert SpanSettings(random_seed=-1).numpy_seed == (1 << 32) - 1
    assert SpanSettings(random_seed=(7 << 32) + 5).numpy_seed == 5


def test_as_many_masks_as_the_rate_asks_of_a_full_block():
    assert SpanSettings().layout.max_predictions_per_seq == 77  # of 510 ids, rounded up
    assert SpanSettings(max_seq_length=128).layout.max_predictions_per_seq == 19
    assert SpanSettings(max_predictions_per_seq=20).as_json()["max_predictions_per_seq"] == 20


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shortest_span": 4, "longest_span": 3}, "spans of 4 to 3 words, expected 1 or more"),
        ({"shortest_span": 0}, "spans of 0 to 10 words"),
        ({"longest_span": 600}, "at most max_seq_length"),
        ({"geometric_p": 0.0}, "geometric_p is 0, expected above 0, at most 1"),
        ({"replacement": "word"}, "replacement is 'word', expected one of span, word_piece"),
        ({"endpoints": "both"}, "endpoints is 'both', expected one of external, internal"),
        ({"max_predictions_per_seq": 513}, "max_predictions_per_seq is 513, expected 1 to max_seq_length"),
        ({"dupe_factor": 0}, "dupe_factor is 0, expected 1 or more"),
        ({"dupe_factor": 2, "masks": False}, "without masks all passes are alike"),
        ({"kept_share": 0.3}, "their sum is 1.2, expected 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        SpanSettings(**changes)
