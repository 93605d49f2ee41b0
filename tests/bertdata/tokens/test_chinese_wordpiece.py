"""``create --chinese-words``: whole words of Chinese in WordPiece, whose tokens are single ideographs."""

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import bertdata as face
from bertdata.config.dialects import find_dialect
from bertdata.tokens.files import VocabularyFile
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.wordpiece import WordPieceTokenizer
from tests.support.commands import Program, contents

WORDS = ["我们", "在", "北京大学", "学习", "自然语言", "处理", "。"]
LINES = ["".join(WORDS), "他来到了上海，天气很好！Hello wording 3", "ords \u2f00 \x07天", "好"]
CHARACTERS = sorted(set("".join(LINES)) | {"一"})


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    pytest.importorskip("jieba")
    path = tmp_path / "vocab.txt"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS, "hello", "word", "##ing"]
    path.write_text("".join(f"{token}\n" for token in dict.fromkeys(tokens)), encoding="utf-8")
    return path


def file_of(vocabulary: Path, dialect: str = "mlperf") -> VocabularyFile:
    return VocabularyFile(path=str(vocabulary), dialect=dialect, chinese_words=True)


@pytest.mark.parametrize("dialect", ["mlperf", "nvidia", "graphcore"])
@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.thorough_after_first
def test_ids_are_those_of_wordpiece_and_words_those_of_jieba(vocabulary, engine, dialect):
    text = "\n".join([LINES[0], LINES[1], "", LINES[2], "\x07", LINES[3]]).encode()
    documents = tokenizer_of(file_of(vocabulary, dialect), engine).encode([text], ["text"])
    plain = tokenizer_of(VocabularyFile(path=str(vocabulary), dialect=dialect), engine)
    assert type(plain) is WordPieceTokenizer
    expected = plain.encode([text], ["text"])
    assert list(documents.ids) == list(expected.ids)
    assert list(documents.sentence_ends) == list(expected.sentence_ends)
    starts = documents.word_starts
    assert starts is not None
    assert len(starts) == documents.tokens
    first = documents.sentence_ends[0]
    assert list(starts[:first]) == [int(i == 0) for word in WORDS for i in range(len(word))]
    words = plain.vocabulary.words
    ing = [place for place, token in enumerate(documents.ids) if words[token] == "##ing"]
    assert [starts[place] for place in ing] == [0]
    assert starts[ing[0] - 1] == 1


def test_the_vocabulary_tells_no_words_where_the_documents_do(vocabulary):
    assert vocabulary_of(file_of(vocabulary)).continues_word is None
    assert vocabulary_of(VocabularyFile(path=str(vocabulary), dialect="mlperf")).continues_word is not None
    assert find_dialect("mlperf").max_word_chars > 100


@pytest.fixture
def part(tmp_path: Path) -> Path:
    path = tmp_path / "part"
    path.write_text("".join(f"{line}\n" for line in LINES[:2]) * 40, encoding="utf-8")
    return path


SETTINGS = ("--objective=mlm", "--whole-word-mask", "--max-seq-length=64", "--masked-lm-prob=0.3")


def test_words_are_masked_whole_by_both_engines(vocabulary, part, tmp_path, bertdata: Program):
    for engine in ("native", "python"):
        given = ("create", part, "--vocab", vocabulary, *SETTINGS, "--chinese-words", f"--engine={engine}")
        assert bertdata(*given, "--output", tmp_path / engine).status == 0
    assert contents(tmp_path / "native") == contents(tmp_path / "python")
    record = json.loads((tmp_path / "native/manifest.json").read_text())["settings"]["tokenizer"]
    assert record["chinese_words"] is True
    first_line = tokenizer_of(file_of(vocabulary)).encode([LINES[0].encode()], ["line"])
    ids, bounds = list(first_line.ids), [i for i, start in enumerate(first_line.word_starts or b"") if start]
    seen = 0
    for example in face.open_dataset(tmp_path / "native"):
        original = list(example.ids)
        for position, label in zip(example.positions, example.labels, strict=True):
            original[position] = label
        for start in range(len(original) - len(ids)):
            if original[start : start + len(ids)] == ids:
                for first, stop in pairwise([*bounds, len(ids)]):
                    masked = {start + i in example.positions for i in range(first, stop)}
                    assert len(masked) == 1
                    seen += masked == {True} and stop - first > 1
    assert seen > 10


def test_masks_at_load_have_the_words_too(vocabulary, part, tmp_path, bertdata: Program):
    words = ("create", part, "--vocab", vocabulary, *SETTINGS, "--chinese-words", "--no-masks")
    assert bertdata(*words, "--output", tmp_path / "set").status == 0
    assert json.loads((tmp_path / "set/manifest.json").read_text())["settings"]["objective"]["name"] == (
        "mlm_word_starts"
    )
    example = next(iter(face.open_dataset(tmp_path / "set")))
    line = tokenizer_of(file_of(vocabulary)).encode([LINES[0].encode()], ["line"])
    ids, count = list(example.ids), line.tokens
    place = next(start for start in range(len(ids)) if ids[start : start + count] == list(line.ids))
    assert list(example.word_starts[place : place + count]) == list(line.word_starts or b"")
    assert bertdata("verify-md5", tmp_path / "set").status == 0


def test_what_does_not_fit_is_one_line(vocabulary, part, tmp_path, bertdata: Program, monkeypatch):
    other = ("create", part, "--tokenizer", vocabulary, "--chinese-words", "--output", tmp_path / "set")
    refused = bertdata(*other)
    assert refused.status == 2
    assert "--chinese-words goes with --vocab" in refused.err
    monkeypatch.setitem(sys.modules, "jieba", None)
    tokenizer_of.__globals__["_load_wordpiece_tokenizer"].cache_clear()
    refused = bertdata(
        "create", part, "--vocab", vocabulary, *SETTINGS, "--chinese-words", "--output", tmp_path / "set"
    )
    assert refused.status == 2
    assert refused.err.count("\n") == 1
    assert "words of Chinese need the package jieba" in refused.err
    assert not (tmp_path / "set").exists()
