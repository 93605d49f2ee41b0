"""Sentences of Chinese, Japanese and Korean by their end marks, and of other languages by lines."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import InputError
from bertdata.text.marked_sentences import MarkSplitter
from tests.support.strategies import SPACES, tries

CODES = ("zh", "ja", "ko", "th")
CLOSING = "”’」』）】》〉〕］｝〗〙»)]}"
ENDS = "。｡！？…‥!?"


def split(code: str, text: str) -> list[str]:
    return MarkSplitter(code).segment_lines(text.encode()).decode().removesuffix("\n").split("\n")


# "|" is a boundary, and stands for nothing in the text.


@pytest.mark.parametrize("code", ["zh", "ja"])
@pytest.mark.parametrize(
    "marked",
    [
        "他来了。|她走了！|真的吗？|是",
        "他说：“好。”|然后走了……|后来呢",  # closing quotes, an ellipsis
        "「そうです。」|と言った。|（本当！）|はい",
        "『もう？！』|だめ‥|ﾊｲ｡|いいえ",  # a run of marks, half width
        "好吗?|不好!|嗯",  # ASCII marks need no blank
        "他用 a?b=c 和 Yahoo!7 查。|好",  # but not within a word
        "共３．１４元，v2．0版．|完",  # a wide period within a number
        "“真好！|太好了。”|她笑了。",  # a quote of two sentences
        "……你好。|再见",  # no sentence begins with a mark
    ],
)
def test_wide_marks_end_sentences(code: str, marked: str) -> None:
    assert "|".join(split(code, marked.replace("|", ""))) == marked
    assert "|".join(split(code, marked.replace("|", " \u3000"))) == marked  # as behind blanks


@pytest.mark.parametrize(
    "marked",
    [
        "나는 집에 갔다.|비가 왔다!|정말?|네",
        '"좋아요."|그가 말했다.|(아니요.)|끝',
        "오늘은 2019. 3. 1. 금요일이다.|J. K. 김이 왔다.|3.14는 수다.",  # a date, initials, a number
        "글쎄... 모르겠다.|그게… 뭐지?!|응",  # an ellipsis ends none
        "누리집은 a.kr 이다.|끝",
    ],
)
def test_korean_marks_end_sentences_before_white_space(marked: str) -> None:
    assert "|".join(split("ko", marked.replace("|", " "))) == marked


def test_each_line_is_a_sentence_of_another_language() -> None:
    assert split("th", "ฝนตก. ไป! \n\n \t\n มา?\n") == ["ฝนตก. ไป!", "", "มา?"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("text", "stripped", "indented"),
    [
        ("", "", ""),
        ("\n", "\n", "\n"),
        ("好\n\n\n坏", "好\n\n\n坏\n", "好\n\n\n坏\n"),
        (" \u3000好 \xa0\n\u3000\n", "好\n", " \u3000好\n"),
    ],
)
def test_lines_are_kept_as_punkt_keeps_them(code: str, text: str, stripped: str, indented: str) -> None:
    splitter = MarkSplitter(code)
    assert splitter.segment_lines(text.encode()).decode() == stripped
    assert splitter.segment_lines(text.encode(), keeps_indent=True).decode() == indented


def specified(line: str) -> list[str]:
    """The sentences of a line of Chinese, mark by mark, where no Latin letter is near."""
    sentences, first, i = [], 0, 1
    while i < len(line):
        is_end = line[i] in ENDS and not line[i - 1].isspace() and line[i - 1] not in ENDS
        i += 1
        if is_end:
            for marks in (ENDS, CLOSING):
                while i < len(line) and line[i] in marks:
                    i += 1
            rest = line[i:].lstrip()
            if rest and rest[0] not in ENDS + CLOSING:
                sentences.append(line[first:i])
                first = i
    return [sentence.strip() for sentence in [*sentences, line[first:]] if sentence.strip()]


PIECE = st.one_of(*map(st.sampled_from, (ENDS, CLOSING, "“「（", "好人はい,，", SPACES, " ")))


@tries(10)
@given(st.lists(PIECE, max_size=25).map("".join))
def test_generated_lines_split_mark_by_mark(text: str) -> None:
    found = split("zh", text.replace("\n", ""))
    assert [sentence for sentence in found if sentence] == specified(text.replace("\n", ""))


@given(st.text(), st.sampled_from(CODES))
def test_sentences_lose_nothing_but_white_space(text: str, code: str) -> None:
    made = MarkSplitter(code).segment_lines(text.encode(errors="ignore")).decode()
    assert "".join(made.split()) == "".join(text.encode(errors="ignore").decode().split())


@pytest.mark.parametrize("text", ["。", "a。", ". ", ".)", "？ ", "」", "。" + " " * 50, "．", "?!"])
@pytest.mark.parametrize("code", ["zh", "ko"])
def test_time_does_not_grow_faster_than_the_text(code: str, text: str) -> None:
    assert MarkSplitter(code).segment_lines((text * 100_000 + "\n").encode())  # quadratic work takes minutes


def test_bad_utf8_is_an_error_that_names_the_line() -> None:
    with pytest.raises(InputError, match=r"part: line 2: byte 0xff at offset 4 is not UTF-8"):
        MarkSplitter("zh").segment_lines("好\n".encode() + b"\xff", "part")


@pytest.mark.parametrize(("code", "least"), [("zh", 3.0), ("th", 1.0)])
def test_contexts_of_xquad_have_sentences_of_sensible_length(kit: Path, code: str, least: float) -> None:
    data = json.loads((kit / "squad" / f"xquad.{code}.json").read_text(encoding="utf-8"))["data"]
    contexts = [" ".join(one["context"].split()) for article in data for one in article["paragraphs"]]
    sentences = split(code, "\n".join(contexts))
    assert least <= len(sentences) / len(contexts) < 8
    assert all(len(sentence) > 1 for sentence in sentences)
