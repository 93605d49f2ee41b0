"""Frequencies of random draws: those of the papers, within bounds that are computed here.

Every bound is one that a right program oversteps in fewer than one of a million corpora. The seed is
fixed, so a test that passes once always passes.
"""

from collections import Counter
from math import sqrt
from pathlib import Path
from statistics import NormalDist

import pytest

from bertdata.config.dialects import find_dialect
from bertdata.examples.bert import reference as specification
from bertdata.examples.bert.batch import BertExample
from bertdata.examples.bert.make import make_bert_examples
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.mask_report import find_mask_kind
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import tokenize_text

FALSE_ALARM = 1e-6
SETTINGS = BertSettings(max_seq_length=128, max_predictions_per_seq=40, dupe_factor=10)
DIALECT = find_dialect(SETTINGS.dialect)


def assert_within_sampling_error(found: float, expected: float, variance: float, tests: int = 1) -> None:
    """``found`` lies near ``expected``, by the normal approximation; ``tests`` share one false alarm."""
    z = NormalDist().inv_cdf(1 - FALSE_ALARM / tests / 2)
    assert abs(found - expected) <= z * sqrt(variance), (found, expected, z * sqrt(variance))


def assert_frequencies(counts: dict[str, int], probabilities: dict[str, float]) -> None:
    """Each count is binomial: of all the trials, with its probability."""
    trials = sum(counts.values())
    assert set(counts) <= set(probabilities)
    for kind, p in probabilities.items():
        variance = trials * p * (1 - p)
        assert_within_sampling_error(counts.get(kind, 0), trials * p, variance, len(probabilities))


@pytest.fixture(scope="module")
def vocabulary(small_vocabulary_file: Path) -> Vocabulary:
    return parse_vocabulary(small_vocabulary_file.read_bytes(), "small", DIALECT)


@pytest.fixture(scope="module")
def documents(corpus: list[Path], vocabulary: Vocabulary) -> Documents:
    return tokenize_text(b"\n\n".join(part.read_bytes() for part in corpus), vocabulary, DIALECT)


@pytest.fixture(scope="module")
def examples(documents: Documents, vocabulary: Vocabulary) -> list[BertExample]:
    source = make_bert_examples(documents, vocabulary, SETTINGS)
    assert source.masked > 20_000, "the corpus is large enough for the bounds to mean something"
    return list(source.batch(0, len(source)).examples())


def test_masked_positions_show_mask_the_original_or_a_random_token_by_80_10_10(examples, vocabulary):
    kinds = Counter(
        find_mask_kind(example.ids[position], label, vocabulary.mask)
        for example in examples
        for position, label in zip(example.positions, example.labels, strict=True)
    )
    # A random token is the original, or [MASK], once in as many draws as there are tokens.
    once = 0.1 / len(vocabulary.replacements)
    expected = {"[MASK]": 0.8 + once, "kept": 0.1 + once, "random": 0.1 - 2 * once}
    assert_frequencies(kinds, expected)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
def test_other_shares_are_met_by_both_engines(shares, engine, documents, vocabulary):
    mask, random, kept = shares
    settings = SETTINGS.with_changes(mask_share=mask, random_share=random, kept_share=kept, dupe_factor=2)
    source = make_bert_examples(documents, vocabulary, settings, engine)
    assert source.masked > 4_000
    kinds = Counter(
        find_mask_kind(example.ids[position], label, vocabulary.mask)
        for example in source.batch(0, len(source)).examples()
        for position, label in zip(example.positions, example.labels, strict=True)
    )
    once = random / len(vocabulary.replacements)
    expected = {"[MASK]": mask + once, "kept": kept + once, "random": random - 2 * once}
    assert_frequencies(kinds, {kind: max(p, 0.0) for kind, p in expected.items()})


def test_random_tokens_are_drawn_from_all_of_the_vocabulary_alike(examples, vocabulary):
    shown = [
        example.ids[position]
        for example in examples
        for position, label in zip(example.positions, example.labels, strict=True)
        if find_mask_kind(example.ids[position], label, vocabulary.mask) == "random"
    ]
    tenths = Counter(str(10 * token // vocabulary.size) for token in shown)
    # The one token that is the label cannot be seen as random; it moves no tenth by a thousandth.
    assert_frequencies(tenths, {str(tenth): 0.1 for tenth in range(10)})
    assert vocabulary.replacements == tuple(range(vocabulary.size))


def test_fifteen_in_a_hundred_positions_are_masked(examples):
    for example in examples:
        share = round(0.15 * len(example.ids))
        assert len(example.positions) == min(SETTINGS.max_predictions_per_seq, max(1, share))
    masked = sum(len(example.positions) for example in examples)
    positions = sum(len(example.ids) for example in examples)
    assert abs(masked - 0.15 * positions) <= len(examples) / 2, (
        "rounding costs an example half a mask at most"
    )


def test_every_place_of_an_example_is_masked_as_often_as_any_other(examples):
    tenths = 10
    found, expected, variance = [0] * tenths, [0.0] * tenths, [0.0] * tenths
    for example in examples:
        fixed = {0, example.first_length - 1, len(example.ids) - 1}
        rank = {place: i for i, place in enumerate(set(range(len(example.ids))) - fixed)}
        count, masks = len(rank), len(example.positions)
        size = Counter(tenths * i // count for i in rank.values())
        for position in example.positions:
            found[tenths * rank[position] // count] += 1
        for tenth in range(tenths):
            # Masks in a tenth of the candidates: drawn without putting back, so hypergeometric.
            share = size[tenth] / count
            expected[tenth] += masks * share
            variance[tenth] += masks * share * (1 - share) * (count - masks) / max(1, count - 1)
    for tenth in range(tenths):
        assert_within_sampling_error(found[tenth], expected[tenth], variance[tenth], tenths)


class CountingStream(RandomStream):
    """Counts the chunks for which a coin decides whether text of another document follows.

    Just those draw where segment A ends, from ``randint(1, sentences - 1)``, the only draw from 1 on;
    a chunk of one sentence draws neither, and is always followed by random text.
    """

    coins = 0

    def randint(self, first: int, last: int) -> int:
        CountingStream.coins += first == 1
        return super().randint(first, last)


def test_half_of_the_coins_let_random_text_follow(documents, vocabulary, monkeypatch):
    monkeypatch.setattr(CountingStream, "coins", 0)
    monkeypatch.setattr(specification, "RandomStream", CountingStream)
    source = make_bert_examples(documents, vocabulary, SETTINGS, engine="python")
    labels = list(source.batch(0, len(source)).next_labels)
    followed, coins = labels.count(0), CountingStream.coins
    assert 500 < followed < coins < len(labels)
    assert_within_sampling_error(followed, coins / 2, coins / 4)
