"""fairseq's masks: kernel beside twin on generated input, and what is refused."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata._native import kernels
from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.dynamic_masking.masker import Draws, Masker
from bertdata.examples.fairseq.load_masker import FairseqMasker, make_fairseq_masker
from bertdata.examples.fairseq.masks import (
    FairseqRules,
    compute_cumulative_shares,
    compute_most_masks,
    draw_masks,
)
from bertdata.examples.fairseq.streams import RELEASES, STREAMS
from bertdata.examples.fairseq.words import find_word_begins
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.records import ShardLayout, Vocabulary

PIECES = [
    "\u0120the",
    "\u0120la",
    "mp",
    "s",
    "\u0120sho",
    "ne",
    "madeupword0000",
    ".",
    "\u0120a",
    "##",
    "\u2581b",
]
WORDS = ["<s>", "<pad>", "</s>", "<unk>", *PIECES, "<mask>"]
MASK, LONGEST = len(WORDS) - 1, 90
VOCABULARY = Vocabulary(
    name="pieces",
    md5="",
    words=WORDS,
    continues_word=None,
    replacements=tuple(range(len(WORDS))),
    kind="bpe",
    cls=0,
    pad=1,
    sep=2,
    unk=3,
    mask=MASK,
)
LAYOUT = ShardLayout(objective="mlm", max_seq_length=LONGEST)
SETTINGS = MaskingSettings(max_predictions_per_seq=0)

rates = st.floats(1e-9, 1) | st.sampled_from([0.15, 0.5, 1.0])
rows_of_ids = st.lists(
    st.lists(st.integers(0, MASK - 1), max_size=LONGEST - 1).map(lambda ids: [0, *ids]), max_size=8
)


@st.composite
def rules_of(draw: st.DrawFn) -> FairseqRules:
    random, kept = draw(
        st.sampled_from([(0.1, 0.1), (0.0, 0.0), (0.2, 0.0), (0.0, 0.3), (0.5, 0.5), (0.3, 0.6)])
    )
    return FairseqRules(
        mask=MASK,
        random_share=random,
        kept_share=kept,
        limits=compute_cumulative_shares(
            draw(st.lists(st.integers(1, 900), min_size=len(WORDS), max_size=len(WORDS)))
        ),
        begins_word=draw(st.sampled_from([None, find_word_begins(VOCABULARY)])),
        multiple=draw(st.sampled_from([1, 1, 3])),
    )


def masked(
    rows: list[list[int]], masker: Masker, rate: float, seeds: list[int]
) -> list[tuple[list[int], list[int], list[int]]]:
    """(ids, positions, labels) of each row."""
    lengths = np.array(list(map(len, rows)), np.int32)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    ids = np.array([token for row in rows for token in row], np.int32)
    count = len(rows)
    draws = Draws(
        keys=np.array(seeds, np.uint64), numbers=np.zeros(count, np.uint64), rates=np.full(count, rate)
    )
    made = masker.mask(ids, starts, lengths, draws)
    return [
        (ids[start : start + length].tolist(), places[:used].tolist(), labels[:used].tolist())
        for start, length, places, labels, used in zip(
            starts, lengths, made.positions, made.labels, made.counts, strict=True
        )
    ]


@pytest.mark.parametrize("release", RELEASES)
@given(rows_of_ids, rules_of(), rates, st.integers(0, 999_992))
def test_the_kernel_masks_as_its_twin(release, rows, rules, rate, seed):
    seeds = [seed + number for number in range(len(rows))]
    plain = make_fairseq_masker(
        VOCABULARY, replace(SETTINGS, max_predictions_per_seq=LONGEST), LAYOUT, release
    )
    masker = FairseqMasker(plain._rules, rules, release, "native")
    found = masked(rows, masker, rate, seeds)
    twin = [
        draw_masks(row, rate, rules, STREAMS[release](seed)) for row, seed in zip(rows, seeds, strict=True)
    ]
    assert found == [(one.ids, one.positions, one.labels) for one in twin]


def test_a_large_block_is_chosen_from_as_numpy_does():
    """Above 10,000 units the head shuffles where it chooses more than a 50th."""
    rows = [[0, *([4, 5, 6] * 5000)]]
    layout = replace(LAYOUT, max_seq_length=20_000)
    for release in RELEASES:
        made = [
            masked(rows, make_fairseq_masker(VOCABULARY, SETTINGS, layout, release, engine=engine), 0.15, [7])
            for engine in ("native", "python")
        ]
        assert made[0] == made[1]


@given(st.integers(1, 2000), rates)
def test_room_is_enough_for_masks_by_id(length, rate):
    assert (
        min(int(rate * length + (1 - 2**-53)), length)
        <= compute_most_masks(length, rate)
        <= rate * length + 1
    )


@pytest.mark.parametrize("release", RELEASES)
@given(rows_of_ids, rates, st.booleans(), st.integers(0, 999_992))
def test_no_mask_is_cut(release, rows, rate, whole, seed):
    settings = replace(SETTINGS, masked_lm_prob=rate, whole_word_mask=whole)
    masked(rows, make_fairseq_masker(VOCABULARY, settings, LAYOUT, release), rate, [seed] * len(rows))


def test_words_begin_as_fairseq_has_it():
    begins = [word for word, bit in zip(WORDS, find_word_begins(VOCABULARY), strict=True) if bit]
    expected = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "\u0120the",
        "\u0120la",
        "\u0120sho",
        "madeupword0000",
        "\u0120a",
    ]
    assert begins == expected
    pieces = replace(VOCABULARY, words=[*WORDS[:4], "the", "##n", "lamp", "<mask>"], kind="wordpiece")
    assert find_word_begins(pieces) == bytes([1, 1, 1, 1, 1, 0, 1, 1])
    unigram = replace(VOCABULARY, words=[*WORDS[:4], "\u2581the", "n", "<mask>"], kind="unigram")
    assert find_word_begins(unigram) == bytes([1, 1, 1, 1, 1, 0, 0])


def test_a_masker_survives_pickling():
    for engine in ("native", "python"):
        masker = make_fairseq_masker(VOCABULARY, SETTINGS, LAYOUT, "fairseq", engine=engine)  # type: ignore[arg-type]
        again = pickle.loads(pickle.dumps(masker))
        rows = [[0, 4, 5, 6, 2]] * 3
        assert masked(rows, again, 0.5, [1, 2, 3]) == masked(rows, masker, 0.5, [1, 2, 3])


@pytest.mark.parametrize("engine", ["native", "python"])
def test_text_with_the_mask_token_is_refused(engine):
    masker = make_fairseq_masker(VOCABULARY, SETTINGS, LAYOUT, "fairseq", engine=engine)
    with pytest.raises(DatasetError, match=r"the text holds the mask token \(id 15\), which fairseq refuses"):
        masked([[0, MASK]], masker, 0.15, [1])


def test_a_dictionary_is_fairseqs_also_if_no_role_names_its_padding():
    """Its second word then says that id 1 is the padding."""
    for engine in ("native", "python"):
        rows = [[0, 4, 5, 6, 8, 9, 2]] * 3
        found = [
            masked(
                rows,
                make_fairseq_masker(replace(VOCABULARY, pad=pad), SETTINGS, LAYOUT, "fairseq", engine=engine),  # type: ignore[arg-type]
                0.5,
                [1, 2, 3],
            )
            for pad in (1, None)
        ]
        assert found[0] == found[1]


def make(vocabulary: Vocabulary = VOCABULARY, objective: str = "mlm", **changes: Any) -> FairseqMasker:
    settings = replace(SETTINGS, **changes)
    return make_fairseq_masker(vocabulary, settings, replace(LAYOUT, objective=objective), "fairseq-0.12")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"vocabulary": replace(VOCABULARY, cls=4)},
            "needs fairseq's dictionary, with cls 0, .* found cls 4, pad 1",
        ),
        ({"vocabulary": replace(VOCABULARY, mask=5)}, "mask 15; found .* mask 5; make the data with"),
        ({"vocabulary": replace(VOCABULARY, pad=5)}, "cls 0, pad 1, .* found cls 0, pad 5, sep 2"),
        (
            {"vocabulary": replace(VOCABULARY, pad=None, words=["<s>", "the", *WORDS[2:]])},
            "cls 0, pad 1, .* found cls 0, pad None, sep 2",
        ),
        ({"objective": "bert"}, "needs blocks of one segment, .* the data has the objective bert"),
        ({"objective": "span"}, "needs blocks of one segment, .* the data has the objective span"),
        ({"mask_counts": "drawn"}, "mask_counts is drawn, expected fixed: masking fairseq-0.12"),
        ({"max_predictions_per_seq": 13}, "max_predictions_per_seq is 13, expected 14 or more, or none"),
        ({"max_predictions_per_seq": 89, "whole_word_mask": True}, "is 89, expected 90 or more, or none"),
        ({"masked_lm_prob": 0.0}, "masked_lm_prob is 0, expected a share above 0"),
        (
            {"vocabulary": replace(VOCABULARY, words=["x"] * 16), "whole_word_mask": True},
            "its pieces do not tell where words begin; leave whole_word_mask out",
        ),
    ],
)
def test_what_fairseq_does_not_have_is_refused_in_a_line(changes, message):
    with pytest.raises(SettingsError, match=message) as error:
        make(**changes)
    assert "\n" not in str(error.value)


def test_the_kernel_refuses_more_masks_than_it_has_room_for():
    kernel = kernels.FairseqMasker(
        most=1,
        mask=5,
        random_share=0.0,
        kept_share=0.0,
        limits=[0.5, 0.7, 0.8, 0.9, 0.95, 1.0],
        begins_word=b"",
        multiple=1,
        draws_pcg=True,
    )
    ids, room = np.array([0, 4, 4, 4], np.int32), np.zeros(1, np.int32)
    arguments = {
        "starts": np.zeros(1, np.int64),
        "lengths": np.array([4], np.int32),
        "positions": room,
        "labels": np.zeros(1, np.int32),
        "counts": np.zeros(1, np.int32),
        "keys": np.zeros(1, np.uint64),
        "numbers": np.zeros(1, np.uint64),
        "rates": np.ones(1),
    }
    with pytest.raises(ValueError, match="more masks than there is room for"):
        kernel.mask(ids=ids, **arguments)
    assert ids.tolist() == [0, 4, 4, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limits": [0.6, 0.5, 1.0]}, "ascending shares, the last one 1"),
        ({"limits": [0.1, 0.5, 0.9]}, "ascending shares, the last one 1"),
        ({"mask": 3}, "outside the vocabulary"),
        ({"begins_word": b"12"}, "a byte for each id"),
        ({"multiple": 0}, "multiple: expected"),
        ({"most": 65536}, "most: expected"),
    ],
)
def test_the_kernel_refuses_rules_that_cannot_be(changes, message):
    rules = {
        "most": 1,
        "mask": 2,
        "random_share": 0.1,
        "kept_share": 0.1,
        "limits": [0.2, 0.5, 1.0],
        "begins_word": b"",
        "multiple": 1,
        "draws_pcg": False,
    }
    with pytest.raises(ValueError, match=message):
        kernels.FairseqMasker(**rules | changes)
