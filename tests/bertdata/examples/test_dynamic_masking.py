"""Masks drawn at load: the published generator, golden masks, kernel beside twin, rates and shares."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata._native import kernels
from bertdata.config.dialects import DIALECTS
from bertdata.errors import DatasetError, SettingsError
from bertdata.examples import columns
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.examples.dynamic_masking.counter_stream import CounterStream, compute_philox, derive_shard_key
from bertdata.examples.dynamic_masking.masker import Draws, make_masker, remove_masks
from bertdata.examples.masking.prepared_settings import find_role_ids, prepare_masking_rules
from bertdata.examples.masking.settings import SPECIAL_ROLES, MaskingSettings
from golden.cases import case_names, load_case, make
from golden.dynamic_masks import EXPECTED, SETTINGS, masked_text
from tests.support.strategies import small_vocabulary, tries

VOCABULARY = small_vocabulary(DIALECTS["mlperf"])
SPECIAL = find_role_ids(VOCABULARY, SPECIAL_ROLES)
ENGINES = ("native", "python")
WORD = 1 << 32

# Published with Random123: the lines `philox4x32 10` of its known answers.
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (WORD - 1, WORD - 1, WORD - 1, WORD - 1),
        (WORD - 1, WORD - 1),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@st.composite
def settings_of(draw: st.DrawFn) -> MaskingSettings:
    mask, random = draw(st.sampled_from([(0.8, 0.1), (1.0, 0.0), (0.0, 1.0), (0.5, 0.25), (0.0, 0.0)]))
    return MaskingSettings(
        max_predictions_per_seq=draw(st.integers(1, 90)),
        mask_share=mask,
        random_share=random,
        kept_share=1 - mask - random if mask != 0.8 else 0.1,
        whole_word_mask=draw(st.booleans()),
        mask_counts=draw(st.sampled_from(["fixed", "drawn"])),
    )


rates = st.one_of(st.floats(1e-9, 1), st.sampled_from([0.15, 0.5, 1.0]))
sequences = st.lists(st.integers(0, VOCABULARY.size - 1), max_size=200)


def draws_of(count: int, rate: float = 0.15, *, key: int = 7, first: int = 0) -> Draws:
    return Draws(
        keys=np.full(count, key, np.uint64),
        numbers=np.arange(first, first + count, dtype=np.uint64),
        rates=np.full(count, rate),
    )


def masked(
    rows: list[list[int]], settings: MaskingSettings, draws: Draws, engine: Any
) -> list[tuple[Any, ...]]:
    """(ids, positions, labels) of each row."""
    lengths = np.array([len(row) for row in rows], np.int32)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    ids = np.array([token for row in rows for token in row], np.int32)
    made = make_masker(VOCABULARY, settings, engine).mask(ids, starts, lengths, draws)
    return [
        (ids[start : start + length].tolist(), positions[:count].tolist(), labels[:count].tolist())
        for start, length, positions, labels, count in zip(
            starts, lengths, made.positions, made.labels, made.counts, strict=True
        )
    ]


# The stream


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_the_generator_gives_the_published_answers(counter, key, expected):
    assert compute_philox(counter, key) == expected


@pytest.mark.parametrize("stream", [CounterStream, kernels.CounterStream])
def test_a_stream_is_the_generator_with_a_block_and_an_example_for_its_counter(stream):
    key, example = 0xA4093822299F31D0, 0x243F6A8885A308D3
    draws = stream(key, example)
    halves = (key & (WORD - 1), key >> 32)
    expected = [
        word
        for block in range(20)
        for word in compute_philox((block, 0, example & (WORD - 1), example >> 32), halves)
    ]
    assert [draws.word() for _ in expected] == expected


@pytest.mark.parametrize("stream", [CounterStream, kernels.CounterStream])
def test_the_first_example_of_the_key_0_has_the_published_outputs(stream):
    draws = stream(0, 0)
    assert tuple(draws.word() for _ in range(4)) == KNOWN_ANSWERS[0][2]


@tries(4)
@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.lists(st.one_of(st.none(), st.integers(1, WORD - 1), st.integers(1, 70)), max_size=150),
)
def test_every_draw_of_the_kernel_equals_the_twins(key, example, limits):
    native, python = kernels.CounterStream(key, example), CounterStream(key, example)
    for limit in limits:
        if limit is None:
            assert native.word() == python.word()
        else:
            assert native.below(limit) == python.below(limit) < limit


def test_a_key_depends_on_seed_epoch_and_shard():
    keys = {
        derive_shard_key(seed, epoch, shard) for seed in (0, 1) for epoch in (0, 1) for shard in ("a", "b")
    }
    assert len(keys) == 8
    assert derive_shard_key(42, 0, "part-00000") == 18204451068021013948  # by b2sum -l 64


# Golden masks, and the kernel beside its twin


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SETTINGS)
def test_masks_are_the_golden_ones(name, engine):
    assert masked_text(name, engine) == (EXPECTED / f"{name}.txt").read_text(encoding="utf-8")


@tries(4)
@given(
    st.lists(sequences, max_size=6), settings_of(), rates, st.integers(0, 2**64 - 1), st.integers(0, 2**63)
)
def test_masks_of_the_kernel_are_the_twins(rows, settings, rate, key, first):
    draws = draws_of(len(rows), rate, key=key, first=first)
    assert masked(rows, settings, draws, "native") == masked(rows, settings, draws, "python")


# What holds for all masks


@given(rows=st.lists(sequences, min_size=1, max_size=3), settings=settings_of(), rate=rates)
def test_special_tokens_are_never_masked_and_labels_give_back_the_text(rows, settings, rate):
    for row, (ids, positions, labels) in zip(
        rows, masked(rows, settings, draws_of(len(rows), rate), "native"), strict=True
    ):
        assert positions == sorted(set(positions))
        assert len(positions) <= settings.max_predictions_per_seq
        assert not {row[position] for position in positions} & SPECIAL
        for position, label in zip(positions, labels, strict=True):
            ids[position] = label
        assert ids == row


def test_special_tokens_are_all_that_the_vocabulary_has():
    named = {VOCABULARY.words[token] for token in SPECIAL}
    assert named == {"[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]"}


@given(rows=st.lists(sequences, min_size=1, max_size=3), rate=rates, most=st.integers(1, 90))
def test_fixed_counts_are_the_share_of_all_ids(rows, rate, most):
    settings = MaskingSettings(max_predictions_per_seq=most)
    made = masked(rows, settings, draws_of(len(rows), rate), "native")
    for row, (_, positions, _) in zip(rows, made, strict=True):
        candidates = sum(token not in SPECIAL for token in row)
        assert len(positions) == min(most, max(1, round(len(row) * rate)), candidates)


@given(rows=st.lists(sequences, min_size=1, max_size=3), settings=settings_of(), rate=rates)
def test_whole_words_are_masked_whole(rows, settings, rate):
    settings = replace(settings, whole_word_mask=True)
    for row, (_, positions, _) in zip(
        rows, masked(rows, settings, draws_of(len(rows), rate), "native"), strict=True
    ):
        for place in range(1, len(row)):
            if VOCABULARY.continues_word[row[place]] and row[place - 1] not in SPECIAL:
                assert (place in positions) == (place - 1 in positions)


@pytest.mark.parametrize("engine", ENGINES)
def test_masks_do_not_depend_on_the_batch(engine):
    settings = MaskingSettings(max_predictions_per_seq=20)
    rows = [[1 + (5 * row + i) % 30 for i in range(20 + row)] for row in range(12)]
    draws = draws_of(12, 0.3)
    whole = masked(rows, settings, draws, engine)
    order = [7, 3, 11, 0, 5, 1, 2, 4, 6, 8, 9, 10]
    mixed = Draws(keys=draws.keys, numbers=draws.numbers[order], rates=draws.rates)
    again = masked([rows[number] for number in order], settings, mixed, engine)
    assert [again[order.index(number)] for number in range(12)] == whole
    other_epoch = masked(rows, settings, draws_of(12, 0.3, key=8), engine)
    assert sum(a == b for a, b in zip(whole, other_epoch, strict=True)) == 0


# Rates and shares: chi-squared values of fixed seeds, so that a test always gives the same answer


def chi_squared(observed: Any, expected: Any) -> float:
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    return float(((observed - expected) ** 2 / expected).sum())


def bound(freedom: int) -> float:
    """Passed with a probability of about 1e-4: Wilson and Hilferty's approximation at 3.72 deviations."""
    return freedom * (1 - 2 / (9 * freedom) + 3.72 * (2 / (9 * freedom)) ** 0.5) ** 3


PLAIN = [token for token in range(VOCABULARY.size) if token not in SPECIAL]


def many(settings: MaskingSettings, rate: float, count: int = 4000, length: int = 64) -> tuple[Any, Any]:
    """Text of plain tokens, and its masks: (original ids, ids, is masked), each (count, length)."""
    original = np.array(PLAIN)[np.arange(count * length).reshape(count, length) * 7 % len(PLAIN)].astype(
        np.int32
    )
    ids = original.reshape(-1).copy()
    lengths = np.full(count, length, np.int32)
    starts = np.arange(count, dtype=np.int64) * length
    made = make_masker(VOCABULARY, settings, "native").mask(
        ids, starts, lengths, draws_of(count, rate, key=99)
    )
    is_masked = np.zeros((count, length), bool)
    used = np.arange(made.positions.shape[1]) < made.counts[:, np.newaxis]
    is_masked[np.nonzero(used)[0], made.positions[used]] = True
    return original, (ids.reshape(count, length), is_masked)


@pytest.mark.parametrize("counts", ["fixed", "drawn"])
@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_every_position_is_masked_as_often(counts, rate):
    settings = MaskingSettings(max_predictions_per_seq=64, mask_counts=counts)
    _, (_, is_masked) = many(settings, rate)
    found = is_masked.sum(axis=0)
    expected = round(64 * rate) / 64 if counts == "fixed" else rate
    spread = chi_squared(found, [4000 * expected] * 64) / (1 - expected)
    assert spread < bound(64 if counts == "drawn" else 63)


def test_drawn_counts_are_binomial():
    _, (_, is_masked) = many(MaskingSettings(max_predictions_per_seq=64, mask_counts="drawn"), 0.15)
    counts = is_masked.sum(axis=1)
    shares = np.array([_binomial(64, k, 0.15) for k in range(65)])
    inner = range(4, 18)
    observed = [*(np.sum(counts == k) for k in inner), np.sum(counts < 4), np.sum(counts > 17)]
    expected = [*shares[4:18], shares[:4].sum(), shares[18:].sum()]
    assert chi_squared(observed, 4000 * np.array(expected)) < bound(len(observed) - 1)


def _binomial(n: int, k: int, p: float) -> float:
    from math import comb

    return comb(n, k) * p**k * (1 - p) ** (n - k)


@pytest.mark.parametrize("shares", [(0.8, 0.1, 0.1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.3, 0.2)])
def test_what_stands_at_a_mask_has_the_shares(shares):
    mask, random, kept = shares
    settings = MaskingSettings(
        max_predictions_per_seq=64, mask_share=mask, random_share=random, kept_share=kept
    )
    original, (ids, is_masked) = many(settings, 0.15)
    shown, label = ids[is_masked], original[is_masked]
    size = len(VOCABULARY.replacements)  # a random token may be the original, or [MASK]
    expected = {
        "mask": mask + random / size,
        "kept": kept + random / size,
        "random": random * (1 - 2 / size),
    }
    observed = {
        "mask": np.sum(shown == VOCABULARY.mask),
        "kept": np.sum(shown == label),
        "random": np.sum((shown != VOCABULARY.mask) & (shown != label)),
    }
    for name in expected:
        if expected[name] == 0:
            assert observed.pop(name) == 0
    if len(observed) > 1:
        total = is_masked.sum()
        assert chi_squared([*observed.values()], [total * expected[name] for name in observed]) < bound(
            len(observed) - 1
        )


def test_random_tokens_are_drawn_evenly_from_the_whole_vocabulary():
    settings = MaskingSettings(max_predictions_per_seq=64, mask_share=0, random_share=1, kept_share=0)
    _, (ids, is_masked) = many(settings, 0.4)
    found = np.bincount(ids[is_masked], minlength=VOCABULARY.size)
    size = VOCABULARY.size
    assert chi_squared(found, [is_masked.sum() / size] * size) < bound(size - 1)


def test_masks_of_neighbours_and_of_epochs_are_independent():
    settings = MaskingSettings(max_predictions_per_seq=64, mask_counts="drawn")
    _, (_, is_masked) = many(settings, 0.15)
    pairs = is_masked[:-1] * 2 + is_masked[1:]
    expected = np.array([0.85 * 0.85, 0.85 * 0.15, 0.85 * 0.15, 0.15 * 0.15]) * pairs.size
    assert chi_squared(np.bincount(pairs.ravel(), minlength=4), expected) < bound(3) * 2


# Examples with masks of their own


@pytest.mark.parametrize("name", [name for name in case_names("bert") if not load_case(name).settings.remask])
def test_masked_examples_are_restored_first(name):
    case = load_case(name)
    static, vocabulary = make(case, "native")
    unmasked, _ = make(
        type(case)(case.folder, case.inputs, case.settings.with_changes(masks=False)), "native"
    )
    with_masks, without = static.batch(0, len(static)), unmasked.batch(0, len(unmasked))
    assert isinstance(with_masks, BertBatch)
    assert isinstance(without, BertBatch)
    assert list(remove_masks(with_masks).examples()) == list(without.examples())
    masker = make_masker(vocabulary, MaskingSettings(max_predictions_per_seq=20))
    draws = draws_of(len(static))
    ours, theirs = masker.mask_batch(with_masks, draws), masker.mask_batch(without, draws)
    assert list(ours.examples()) == list(theirs.examples())


def test_a_label_wider_than_the_ids_is_put_back_whole():
    rows = [BertExample(ids=[1, 2, 3], first_length=3, positions=[1], labels=[70_000], next_label=0)]
    batch = columns.convert_to_arrays(BertBatch.of(rows, wide=True))
    batch = replace(batch, ids=batch.ids.astype(np.uint16))
    assert remove_masks(batch).ids.tolist() == [1, 70_000, 3]


# Bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"masked_lm_prob": 0}, "masked_lm_prob is 0, expected a share above 0, at most 1"),
        ({"masked_lm_prob": 1.5}, "masked_lm_prob is 1.5, expected a probability from 0 to 1"),
        ({"masked_lm_prob": float("nan")}, "masked_lm_prob is nan, expected a probability from 0 to 1"),
        ({"mask_share": 1.2}, "mask_share is 1.2, expected a share from 0 to 1"),
        ({"kept_share": -0.1}, "kept_share is -0.1, expected a share from 0 to 1"),
        (
            {"mask_share": 0.9},
            "mask_share 0.9, random_share 0.1, kept_share 0.1: their sum is 1.1, expected 1",
        ),
        ({"mask_counts": "some"}, "mask_counts is 'some', expected one of fixed, drawn"),
        ({"max_predictions_per_seq": 0}, "max_predictions_per_seq is 0, expected 1 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, message):
    with pytest.raises(SettingsError) as error:
        make_masker(VOCABULARY, MaskingSettings(**{"max_predictions_per_seq": 20} | changes))
    assert str(error.value) == message


@pytest.mark.parametrize("engine", ENGINES)
def test_an_id_outside_the_vocabulary_is_named(engine):
    with pytest.raises(DatasetError, match="id 99, expected less than 37, the size of the vocabulary"):
        masked([[1, 99]], MaskingSettings(max_predictions_per_seq=2), draws_of(1), engine)


def test_thresholds_of_shares_cover_all_draws():
    whole = prepare_masking_rules(VOCABULARY, MaskingSettings(max_predictions_per_seq=1))
    assert (whole.mask_limit, whole.random_limit) == (round(0.8 * WORD), round(0.9 * WORD))
    settings = MaskingSettings(max_predictions_per_seq=1, mask_share=1, random_share=0, kept_share=0)
    assert prepare_masking_rules(VOCABULARY, settings).mask_limit == WORD
