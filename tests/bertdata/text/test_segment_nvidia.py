"""NVIDIA's text stage: formatted articles, and their deterministic shards."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import InputError
from bertdata.text.nvidia import make_articles
from bertdata.text.nvidia_format import format_articles, join_formatted_articles
from bertdata.text.nvidia_sharding import distribute_articles
from bertdata.text.reading import find_extracted_files
from bertdata.text.segment import segment_files
from bertdata.text.settings import SegmentSettings
from tests.support.commands import contents
from tests.support.fake_splitters import load_no_splitter, load_period_splitter, load_shard_splitter, read_kit
from tests.support.original_sharding import deal_as_the_original

KIT_SETTINGS = SegmentSettings(
    recipe="nvidia", training_shards=4, test_shards=2, test_fraction=0.1, prefix="shard"
)
SHARDS = [f"shard_training_{index}.txt" for index in range(4)] + [
    f"shard_test_{index}.txt" for index in range(2)
]


def test_formatted_articles_equal_the_kit(kit: Path) -> None:
    files = find_extracted_files([str(kit / "extracted")]).files
    texts = [format_articles(Path(path).read_bytes(), path) for path in files]
    assert b"".join(join_formatted_articles(text.articles) for text in texts) == read_kit(
        kit, "nvidia/formatted.txt"
    )
    assert [text.outside for text in texts] == [0, 0]


@pytest.mark.parametrize("workers", [1, 2])
def test_shards_equal_the_kit(kit: Path, tmp_path: Path, workers: int) -> None:
    files = find_extracted_files([str(kit / "extracted")]).files
    load = partial(load_shard_splitter, kit)
    counts = segment_files(files, str(tmp_path), KIT_SETTINGS, load, workers=workers)
    assert sorted(contents(tmp_path)) == ["MD5SUMS", "manifest.json", *sorted(SHARDS)]
    for name in SHARDS:
        assert (tmp_path / name).read_bytes() == read_kit(kit, f"nvidia/{name}")
    assert (counts.files, counts.articles, counts.empty, counts.lines_outside) == (2, 78, 0, 0)
    assert counts.bytes_out == sum((tmp_path / name).stat().st_size for name in SHARDS)


@given(
    st.lists(st.integers(1, 40), min_size=8, max_size=120),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.1, 0.5, 0.93, 1.0]),
)
def test_articles_are_dealt_as_in_the_original(
    sentences: list[int], training_shards: int, test_shards: int, fraction: float
) -> None:
    dealt = distribute_articles(
        sentences, training_shards=training_shards, test_shards=test_shards, test_fraction=fraction
    )
    shards = dealt.training + dealt.test
    assert shards == deal_as_the_original(sentences, training_shards, test_shards, fraction)
    assert sorted(number for shard in shards for number in shard) == list(range(len(sentences)))


def test_fewer_articles_than_shards_is_an_error() -> None:
    with pytest.raises(InputError, match="2 articles found, expected at least one for each of 3 shards"):
        distribute_articles([5, 6], training_shards=2, test_shards=1, test_fraction=0.1)


def test_an_article_that_no_shard_can_take_is_an_error() -> None:
    with pytest.raises(InputError, match=r"article 2 \(from 0\) has no sentence, so no shard can take it"):
        distribute_articles([5, 6, 0, 4], training_shards=1, test_shards=1, test_fraction=0.1)


def test_an_article_begins_with_the_white_space_it_had() -> None:
    data = '<doc id="1">\nTitle\n\n  Indented. Next.\nLast\u3000\r\n\n</doc>\n'.encode()
    assert format_articles(data, "wiki_00").articles == ["  Indented. Next. Last "]
    text = make_articles(data, "wiki_00", load_period_splitter().segment_lines)
    assert text.articles == [b"  Indented.\nNext.\nLast\n\n"]


def test_empty_articles_and_lines_outside_articles_are_counted() -> None:
    data = b'<doc id="1">\nTitle\n\n</doc>\nlost\n \n<doc id="2">\nB\nText.\n</doc> and more\n'
    text = make_articles(data, "wiki_00", load_period_splitter().segment_lines)
    assert (text.articles, text.empty, text.outside) == ([b"Text.\n\n"], 1, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "wiki_00: no article found"),
        (b'<doc id="1">\nA\ntext\n', "wiki_00: line 1: <doc> is not closed"),
        (b'<doc id="1">\nA\ntext\n<doc id="2">\nB\n</doc>\n', "before the next one opens on line 4"),
        (b'<doc id="1">\nA\nte\xffxt\n</doc>\n', "wiki_00: line 3: byte 0xff"),
    ],
)
def test_a_file_at_fault_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_articles(data, "wiki_00", load_period_splitter().segment_lines)


def test_an_article_without_sentences_is_an_error() -> None:
    with pytest.raises(InputError, match="expected at least one sentence of each"):
        make_articles(b'<doc id="1">\nA\ntext\n</doc>\n', "wiki_00", load_no_splitter().segment_lines)
