"""Documents are mixed by their keys alone, into shards of near equal numbers of tokens."""

import json
from array import array
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.build.shuffle.document_cuts import (
    count_prefix_bits,
    count_tokens,
    divide_part_into_shards,
    find_shard_cuts,
)
from bertdata.build.shuffle.gather import gather_documents
from bertdata.build.shuffle.keys import SortedDocuments, derive_shard_seed, sort_documents
from bertdata.errors import SettingsError
from bertdata.records import Documents
from golden.cases import GOLDEN
from golden.shuffled import SETTINGS, SHARDS, as_text, cut, flat, read_corpus, seed

Text = list[list[list[int]]]
"""Documents of sentences of token ids."""


def documents_of(text: Text, kind: str = "H") -> Documents:
    sentences = list(chain.from_iterable(text))
    return Documents(
        ids=array(kind, chain.from_iterable(sentences)),
        sentence_ends=array("I", accumulate(map(len, sentences))),
        document_ends=array("I", accumulate(map(len, text))),
    )


def text_of(documents: Documents) -> Text:
    ids, sentences = list(documents.ids), [0, *documents.sentence_ends]
    cut_up = [ids[a:b] for a, b in pairwise(sentences)]
    ends = [0, *documents.document_ends]
    return [cut_up[a:b] for a, b in pairwise(ends)]


def shuffle(parts: Sequence[SortedDocuments], shards: int) -> list[Documents]:
    """The documents of each shard."""
    histogram: dict[int, int] = {}
    for part in parts:
        for prefix, tokens in count_tokens(part.prefixes, part.tokens, shards).items():
            histogram[prefix] = histogram.get(prefix, 0) + tokens
    cuts = find_shard_cuts(histogram, shards)
    blocks: list[list[bytes]] = [[] for _ in range(shards)]
    for part in parts:
        for shard, start, stop in divide_part_into_shards(
            part.prefixes, part.starts, len(part.records), cuts, shards
        ):
            blocks[shard].append(part.records[start:stop])
    return [gather_documents(found, wide=False) for found in blocks]


texts = st.lists(
    st.lists(st.lists(st.integers(0, 65535), min_size=1, max_size=4), min_size=1, max_size=3), min_size=1
)


def test_the_sample_corpus_is_dealt_out_as_the_specification_says() -> None:
    expected = cut(read_corpus())
    assert as_text(expected) == (GOLDEN / "shuffle" / "shards.txt").read_text(encoding="utf-8")
    by_part: dict[str, Text] = {}
    for document in read_corpus():
        by_part.setdefault(document.part, []).append(document.sentences)
    parts = [sort_documents(documents_of(text), name) for name, text in by_part.items()]
    assert [text_of(shard) for shard in shuffle(parts, SHARDS)] == [text_of(flat(s)) for s in expected]
    assert [derive_shard_seed(SETTINGS.random_seed, number) for number in range(SHARDS)] == [
        *map(seed, range(SHARDS))
    ]
    assert len(json.loads((GOLDEN / "shuffle" / "expected.json").read_text())) == SHARDS


@given(st.lists(texts, min_size=1, max_size=4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_no_document_is_lost_and_the_order_of_parts_changes_nothing(
    corpus: list[Text], shards: int, random: Random
) -> None:
    parts = [sort_documents(documents_of(text), f"part-{n}") for n, text in enumerate(corpus)]
    shards = min(
        shards, len({prefix >> (64 - count_prefix_bits(shards)) for p in parts for prefix in p.prefixes})
    )
    made = [text_of(shard) for shard in shuffle(parts, shards)]
    assert all(made)
    assert sorted(chain.from_iterable(made)) == sorted(chain.from_iterable(corpus))
    random.shuffle(parts)
    assert [text_of(shard) for shard in shuffle(parts, shards)] == made


def test_equal_documents_have_keys_of_their_own() -> None:
    part = documents_of([[[5, 6], [7]]] * 3)
    found = {*sort_documents(part, "a").prefixes, *sort_documents(part, "b").prefixes}
    assert len(found) == 6


def test_sentence_ends_are_part_of_a_document_s_content() -> None:
    one, other = (documents_of([text]) for text in ([[5, 6], [7]], [[5], [6, 7]]))
    assert list(sort_documents(one, "a").prefixes) != list(sort_documents(other, "a").prefixes)


def test_ids_of_a_large_vocabulary_keep_their_width() -> None:
    text = [[[70_000, 1], [2]], [[3]]]
    (block,) = [sort_documents(documents_of(text, "I"), "a").records]
    gathered = gather_documents([block], wide=True)
    assert gathered.ids.itemsize == 4
    assert sorted(text_of(gathered)) == sorted(text)


@pytest.mark.parametrize("shards", [2, 7, 20])
def test_shards_of_a_thousand_documents_are_balanced_within_5_percent(shards: int) -> None:
    """With lengths as uneven as an encyclopaedia's: log-normal, the longest 200 times the median."""
    random = Random(shards)
    lengths = [max(1, min(40_000, int(random.lognormvariate(5.3, 1.0)))) for _ in range(1100 * shards)]
    keys = sorted(random.getrandbits(64) for _ in lengths)
    prefixes, tokens = array("Q", keys), array("Q", lengths)
    cuts = find_shard_cuts(count_tokens(prefixes, tokens, shards), shards)
    sums = []
    for _, start, stop in divide_part_into_shards(
        prefixes, array("Q", range(len(keys))), len(keys), cuts, shards
    ):
        assert stop - start >= 1000 * 0.8
        sums.append(sum(lengths[start:stop]))
    mean = sum(lengths) / shards
    assert len(sums) == shards
    assert max(abs(found - mean) for found in sums) <= 0.05 * mean


def test_a_cut_lies_at_the_nearer_side_and_every_shard_gets_something() -> None:
    assert list(find_shard_cuts({1: 10, 2: 10, 3: 10, 4: 10}, 2)) == [3]
    assert list(find_shard_cuts({1: 10, 2: 11, 3: 10}, 2)) == [2]
    assert list(find_shard_cuts({1: 1, 2: 1, 3: 1000}, 3)) == [2, 3]
    assert list(find_shard_cuts({1: 1000, 2: 1, 3: 1}, 3)) == [2, 3]
    assert list(find_shard_cuts({7: 3}, 1)) == []


def test_more_shards_than_documents_are_refused() -> None:
    with pytest.raises(SettingsError, match="--num-shards 3: each shard must hold a document; .* about 2$"):
        find_shard_cuts({1: 5, 9: 5}, 3)
