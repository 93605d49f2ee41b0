"""Folded words, and n-grams that texts share: the kernel equals its twin, and cases that are written out."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bertdata._native import kernels
from bertdata.errors import InputError, SettingsError
from bertdata.text.selection.evaluation_texts import load_ngrams, read_evaluation_texts
from bertdata.text.selection.ngrams import Ngrams, SharedNgram
from bertdata.text.selection.settings import EvaluationFile, SelectionSettings, find_evaluation_files
from bertdata.text.selection.words import fold_words
from tests.support.record_files import FILES, kind_of, make_documents, write

ENGINES = pytest.mark.parametrize("engine", ["native", "python"])

CASES = {
    "It's 3.5 %, they say (twice).": "it s 3 5 they say twice",
    "Straße, İstanbul, ΟΔΟΣ naïve": "straße istanbul οδος naive",
    "e\u0301te\u0301 \u00e9t\u00e9": "ete ete",
    "中文字 ab中cd": "中 文 字 ab 中 cd",
    "a\u00a0b\u3000c\u2028d\x0be\x1cf": "a b c def",
    "soft\u00adhyphen zero\u200bwidth a\x00b": "softhyphen zerowidth ab",
    "« Oui », „ja“ – nein… ¿qué?": "oui ja nein que",
    "--- ... !": "",
    "": "",
}


@pytest.mark.parametrize(("text", "words"), CASES.items())
def test_words_are_lower_case_without_accents_and_punctuation(text: str, words: str) -> None:
    assert " ".join(fold_words(text)) == words
    assert kernels.fold_words(text.encode()) == words


CHARACTERS = st.characters(exclude_categories=["Cs"])
MARKS = st.sampled_from(
    "aBz9 \t\n\r.,-'\u0301\u0308ßΣςσİ中\u3000\u00a0\u2028\x0b\x85\u200d\ufffd\u1e9e\uac01"
)


@given(st.text(st.one_of(CHARACTERS, MARKS)))
@example("ΑΣ. ΑΣΑ Σ")
def test_the_kernel_folds_words_as_its_twin_does(text: str) -> None:
    assert kernels.fold_words(text.encode()) == " ".join(fold_words(text))


@given(st.binary(max_size=20))
def test_the_kernel_refuses_what_is_not_utf8(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        with pytest.raises(kernels.InvalidUtf8):
            kernels.fold_words(data)
    else:
        assert kernels.fold_words(data) == " ".join(fold_words(text))


WORDS = st.lists(st.sampled_from(["a", "B", "ab", "é", "."]), max_size=12).map(" ".join)


@given(st.integers(1, 4), st.lists(WORDS, max_size=8), WORDS)
def test_the_kernel_finds_the_n_gram_that_its_twin_finds(size: int, added: list[str], text: str) -> None:
    native, twin = Ngrams(size, engine="native"), Ngrams(size, engine="python")
    for source, one in enumerate(added):
        assert native.add(one, source) == twin.add(one, source)
    assert len(native) == len(twin)
    assert native.find(text.encode()) == twin.find(text.encode())


@ENGINES
def test_the_first_n_gram_of_the_text_and_the_first_source_are_told(engine: str) -> None:
    ngrams = Ngrams(3, engine=engine)  # type: ignore[arg-type]
    ngrams.add("w x y z", 0)
    ngrams.add("a b c", 1)
    ngrams.add("a b c d", 2)
    assert ngrams.find(b"q A, b\nC! d w x y") == SharedNgram("a b c", 1)
    assert ngrams.find(b"b c d") == SharedNgram("b c d", 2)
    assert ngrams.find(b"ab c d a b") is None
    assert ngrams.find(b"xa b c") is None
    assert ngrams.find(b"") is None


@ENGINES
def test_many_n_grams_are_found_and_no_others(engine: str) -> None:
    ngrams = Ngrams(2, engine=engine)  # type: ignore[arg-type]
    ngrams.add(" ".join(map(str, range(20_000))), 0)
    assert len(ngrams) == 19_999
    for number in range(0, 19_999, 397):
        assert ngrams.find(f"x {number} {number + 1} y".encode()) == SharedNgram(f"{number} {number + 1}", 0)
        assert ngrams.find(f"x {number} {number + 2} y".encode()) is None


def test_sizes_and_sources_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        kernels.NgramSet(0)
    ngrams = kernels.NgramSet(1)
    ngrams.add(b"a", 3)
    with pytest.raises(ValueError, match="do not ascend"):
        ngrams.add(b"b", 2)


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_its_texts(name: str, tmp_path: Path) -> None:
    documents = make_documents(30)
    path = write(tmp_path, name, documents)
    found = [re.sub(r"\s+", " ", text) for text in read_evaluation_texts(str(path))]
    assert set(found) >= {re.sub(r"\s+", " ", text) for text in documents}
    heading = name.startswith("a.csv")  # its line of names counts too
    assert kind_of(name) is not None or len(found) == len(documents) + heading


SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "T",
            "paragraphs": [
                {
                    "context": "The “quoted” context.",
                    "qas": [{"question": "Which?", "answers": [{"text": "context", "answer_start": 13}]}],
                }
            ],
        }
    ],
}


@pytest.mark.parametrize("indent", [None, 1])
def test_squad_gives_contexts_questions_and_answers(indent: int | None, tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(SQUAD, indent=indent))
    found = list(read_evaluation_texts(str(tmp_path / "dev.json")))
    assert found == ["1.1", "T", "The “quoted” context.", "Which?", "context"]


def test_all_columns_of_texts_are_looked_through(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,answer\nwho,me\nwhere,\n")
    expected = ["question", "answer", "who", "me", "where", ""]  # the first line may be a record
    assert list(read_evaluation_texts(str(tmp_path / "a.csv"))) == expected


def test_a_record_that_cannot_be_read_ends_the_run_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": "b"}\n{"a": "b"}\n{"a": \n')
    with pytest.raises(InputError, match=r"a\.jsonl: record 3: is not JSON"):
        list(read_evaluation_texts(str(tmp_path / "a.jsonl")))
    (tmp_path / "a.json").write_text("[\n1,\n")
    with pytest.raises(InputError, match=r"a\.json: is not JSON, nor JSON lines"):
        list(read_evaluation_texts(str(tmp_path / "a.json")))


def test_a_file_without_a_text_of_so_many_words_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n\nthree four five\n")
    files = find_evaluation_files([str(tmp_path)])
    assert len(load_ngrams(files, 3, None)) == 1
    with pytest.raises(InputError, match="its longest text has 3 words, expected 4 or more"):
        load_ngrams(files, 4, None)


def test_files_are_ordered_by_their_names_whatever_order_they_are_given_in(tmp_path: Path) -> None:
    for name in ("y/a.txt", "x/b.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    given = [str(tmp_path / name) for name in ("x/b.txt", "y/a.txt", "x/b.txt")]
    found: tuple[EvaluationFile, ...] = find_evaluation_files(given)
    assert [one.name for one in found] == ["a.txt", "b.txt"]


@pytest.mark.parametrize("words", [10_001, 99_999_999_999, 9_223_372_036_854_775_807, 1 << 64])
def test_ngrams_of_more_words_than_texts_have_are_refused(words: int) -> None:
    with pytest.raises(SettingsError, match="expected 1 to 10000"):
        SelectionSettings(exclude_ngram=words)
