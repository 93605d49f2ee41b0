"""N-grams drawn at load: the kernel equals the specification, and the dataset tells their lengths."""

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bertdata as face
from bertdata import _native
from bertdata.cli.main import main
from bertdata.config.dialects import DIALECTS
from bertdata.errors import SettingsError
from bertdata.examples.dynamic_masking.masker import Draws
from bertdata.examples.masking.prepared_settings import find_role_ids
from bertdata.examples.masking.settings import SPECIAL_ROLES, MaskingSettings
from bertdata.examples.objectives import find_objective
from bertdata.examples.sop.load_masker import NgramMasker, make_ngram_masker
from tests.support.strategies import small_vocabulary, tries

VOCABULARY = small_vocabulary(DIALECTS["mlperf"])
SPECIAL = find_role_ids(VOCABULARY, SPECIAL_ROLES)
needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")


def draws(count: int, rate: float, key: int = 7) -> Draws:
    return Draws(
        keys=np.full(count, key, np.uint64),
        numbers=np.arange(count, dtype=np.uint64),
        rates=np.full(count, rate),
    )


def drawn(masker: NgramMasker, rows: list[list[int]], rate: float, words: Any = None) -> list[Any]:
    """Ids, positions and labels of each example."""
    lengths = np.array([len(row) for row in rows])
    ids = np.array([token for row in rows for token in row], np.int32)
    starts = np.cumsum(lengths) - lengths
    masks = masker.mask(ids, starts, lengths, draws(len(rows), rate), words)
    return [ids.tolist(), masks.positions.tolist(), masks.labels.tolist(), masks.counts.tolist()]


@needs_kernels
@tries(4)
@given(
    rows=st.lists(st.lists(st.sampled_from(VOCABULARY.replacements), min_size=1, max_size=80), max_size=6),
    rate=st.one_of(st.floats(0.01, 1), st.just(0.15)),
    most=st.integers(1, 30),
    longest=st.one_of(st.integers(1, 4), st.integers(1, 64)),
    favors_shorter=st.booleans(),
    whole=st.booleans(),
    by_place=st.booleans(),
)
def test_engines_draw_the_same_ngrams(rows, rate, most, longest, favors_shorter, whole, by_place):
    settings = MaskingSettings(max_predictions_per_seq=most, whole_word_mask=whole)
    of_data = {"ngram": longest, "favor_shorter_ngram": favors_shorter, "whole_word_mask": False}
    found = []
    for engine in ("native", "python"):
        masker = make_ngram_masker(VOCABULARY, settings, of_data, engine)
        size = sum(map(len, rows))
        words = np.arange(size, dtype=np.uint8) % 3 % 2 if by_place else None
        found.append(drawn(masker, rows, rate, words))
    assert found[0] == found[1]


def test_masks_are_as_many_as_asked_and_never_special():
    masker = make_ngram_masker(VOCABULARY, MaskingSettings(max_predictions_per_seq=40), {})
    plain = [token for token in VOCABULARY.replacements if token not in SPECIAL]
    rows = [[*(plain * 9)[: 50 + number], VOCABULARY.sep] for number in range(100)]
    _, positions, labels, counts = drawn(masker, rows, 0.2)
    for row, places, originals, count in zip(rows, positions, labels, counts, strict=True):
        assert 0 <= max(1, round(0.2 * len(row))) - count <= 3
        assert places[:count] == sorted(set(places[:count]))
        assert originals[:count] == [row[place] for place in places[:count]]
        assert not SPECIAL & set(originals[:count])


def test_lengths_are_those_of_the_dataset():
    """The first n-gram of three masks among 500 words stands as it is drawn; few touch another."""
    word = VOCABULARY.words.index("w3")
    for of_data, expected in (
        ({"ngram": 1}, [0.98, 0.02, 0.0]),
        ({"ngram": 3}, [36 / 121, 33 / 121 + 30 / 121, 22 / 121]),
        ({"ngram": 3, "favor_shorter_ngram": False}, [4 / 121, 33 / 121 + 18 / 121, 66 / 121]),
    ):
        masker = make_ngram_masker(VOCABULARY, MaskingSettings(max_predictions_per_seq=3), of_data)
        _, positions, _, counts = drawn(masker, [[word] * 500] * 3_000, 0.006)
        assert set(counts) == {3}
        shapes = Counter((b - a == 1) + (c - b == 1) for a, b, c in positions)
        for neighbours, share in enumerate(expected):
            assert abs(shapes[neighbours] / 3_000 - share) < 0.05


def test_it_is_what_the_objective_masks_with_and_can_be_sent_to_a_worker():
    masker = find_objective("sop").masker(VOCABULARY, MaskingSettings(), {"ngram": 2})
    assert isinstance(masker, NgramMasker)
    assert masker.settings.whole_word_mask
    rows = [[*VOCABULARY.replacements] * 3]
    assert drawn(pickle.loads(pickle.dumps(masker)), rows, 0.3) == drawn(masker, rows, 0.3)


def test_counts_that_are_drawn_go_with_single_words_only():
    settings = MaskingSettings(mask_counts="drawn")
    with pytest.raises(SettingsError, match="mask_counts is drawn, expected fixed: n-grams mask the share"):
        make_ngram_masker(VOCABULARY, settings, {})
    assert make_ngram_masker(VOCABULARY, settings, {"ngram": 1}).settings.mask_counts == "drawn"


def test_open_dataset_masks_by_the_manifest(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    words = ["create", str(corpus[0]), f"--vocab={small_vocabulary_file}", "--objective=sop", "--no-masks"]
    more = ["--max-seq-length=64", "--dupe-factor=1", "--workers=1"]
    shares = {}
    for longest in (1, 6):
        place = tmp_path / str(longest)
        assert main([*words, *more, f"--output={place}", f"--ngram={longest}"]) == 0
        masked = list(face.open_dataset(str(place)).masked(masked_lm_prob=0.1))
        pairs = [b - a == 1 for one in masked for a, b in zip(one.positions, one.positions[1:], strict=False)]
        shares[longest] = sum(pairs) / len(pairs)
        assert {len(one.word_starts) - len(one.ids) for one in masked} == {0}
    assert shares[6] > shares[1] + 0.2
