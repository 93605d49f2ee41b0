"""Words of Chinese by jieba, as starts of characters."""

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import MissingExtraError
from bertdata.tokens.chinese_words import VERSION, ChineseWords
from bertdata.unicode.characters import is_ideograph


@pytest.fixture(scope="module")
def words() -> ChineseWords:
    pytest.importorskip("jieba")
    return ChineseWords()


@pytest.mark.parametrize(
    "marked",
    [
        "我们|在|北京大学|学习|自然语言|处理|。",
        "他|来到|了|上海|，|天气|很|好|！",
        "𠮷|野家|",  # one beyond those that jieba knows is a word
    ],
)
def test_an_ideograph_continues_the_word_of_the_one_before_it(words: ChineseWords, marked: str) -> None:
    expected = b"".join(b"\1" + bytes(len(word) - 1) for word in marked.split("|") if word)
    assert words.find_word_starts(marked.replace("|", "")) == expected


def test_other_characters_are_left_to_the_tokeniser(words: ChineseWords) -> None:
    for text in ("abc 3.14 e-mail", "T恤", "日本の人", " \n\t", ""):
        kept = words.find_word_starts(text)
        assert len(kept) == len(text)
        assert all(
            start or (is_ideograph(char) and i)
            for i, (char, start) in enumerate(zip(text, kept, strict=True))
        )
    assert words.find_word_starts("T恤") == b"\1\1"  # a word with a Latin letter counts as its characters


@given(st.text(st.sampled_from("我们在北京大学习上海天气很好，。aB1 𠮷\n")))
def test_no_word_goes_on_over_anything_but_ideographs(words: ChineseWords, text: str) -> None:
    starts = words.find_word_starts(text)
    assert len(starts) == len(text)
    for i, start in enumerate(starts):
        assert start or (i and is_ideograph(text[i]) and is_ideograph(text[i - 1]))


@pytest.mark.thorough
def test_the_words_are_those_of_jieba_itself(words: ChineseWords) -> None:
    jieba = pytest.importorskip("jieba")
    for text in ("小明硕士毕业于中国科学院计算所，后在日本京都大学深造。", "这个门把手坏了，把手拿开。"):
        cut = list(jieba.cut(text))
        assert words.find_word_starts(text) == b"".join(b"\1" + bytes(len(word) - 1) for word in cut)


def test_a_missing_or_another_jieba_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    expected = r"need the package jieba .*: pip install --editable '.\[chinese\]'"
    with pytest.raises(MissingExtraError, match=expected):
        ChineseWords()
    monkeypatch.setitem(sys.modules, "jieba", SimpleNamespace(__version__="0.1"))
    with pytest.raises(MissingExtraError, match=rf"jieba 0\.1 is installed, expected {VERSION}"):
        ChineseWords()
