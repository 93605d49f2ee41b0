"""Byte-level BPE: the kernel and its twin make what the library tokenizers makes."""

import json
from itertools import pairwise
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata.errors import InputError
from bertdata.io.foreign_text import replace_line_ends
from bertdata.records import Documents
from bertdata.tokens.bpe.tokenizer import ByteBpeTokenizer
from bertdata.tokens.document_text import DocumentsBuilder, compute_word_starts, read_documents
from tests.support.byte_bpe import (
    LANGUAGES,
    PRE_TOKENIZERS,
    ROBERTA,
    bpe_texts,
    byte_bpe,
    byte_level,
    tokenizer_of,
    vocabulary_of,
)
from tests.support.strategies import blank_lines, broken_texts, line_ends

ENGINES = [
    "python",
    pytest.param("native", marks=pytest.mark.skipif(not _native.available(), reason="no kernels")),
]

CASES: dict[str, dict[str, Any]] = {
    **{name: {"pre_tokenizer": name, "post_processor": byte_level(False)} for name in PRE_TOKENIZERS},
    **{f"{name}, NFC": {"pre_tokenizer": name, "tokens": "all", "composes": True} for name in PRE_TOKENIZERS},
    "added tokens": {"tokens": "all", "ignore_merges": True, "post_processor": byte_level(True)},
    "stripping": {"pre_tokenizer": "gpt2 with a blank", "tokens": "stripping"},
    "roberta": {"pre_tokenizer": "gpt2 with a blank", "post_processor": ROBERTA | {"add_prefix_space": True}},
    "trimmed twice": {
        "post_processor": {"type": "Sequence", "processors": [byte_level(True), byte_level(False)]}
    },
}


class Trio:
    """The library, and our tokeniser by both engines."""

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.parsed = parsed
        # The post-processor takes letters off a place where the text has no blank: see LibraryTokenizer.
        self.library = tokenizers.Tokenizer.from_str(json.dumps({**parsed, "post_processor": None}))
        engines: list[Any] = ["python", *(["native"] if _native.available() else [])]
        self.ours = {
            between: [tokenizer_of(parsed, engine, between) for engine in engines]
            for between in (" ", "", " é ")
        }

    def library_tokens(self, text: str) -> list[tuple[int, int, int, int]]:
        encoding = self.library.encode(text, add_special_tokens=False)
        starts = compute_word_starts(encoding.word_ids)
        return [
            (token_id, start, stop, starts_word)
            for token_id, (start, stop), starts_word in zip(
                encoding.ids, encoding.offsets, starts, strict=True
            )
        ]

    def library_documents(self, text: str, between: str) -> object:
        found = DocumentsBuilder(vocabulary_of(self.parsed))
        for document in read_documents(replace_line_ends(text.encode()), between):
            encoding = self.library.encode(document.text, add_special_tokens=False)
            starts = [start for start, _ in encoding.offsets]
            found.add(document, encoding.ids, starts, compute_word_starts(encoding.word_ids))
        return plain(found.build())


ASSIGNED = (0, 1, 2, 3, 14)
"""The planes with assigned characters. Of the others, alike throughout, some are looked at."""

QUICK = {"gpt2", "llama3, NFC", "added tokens", "stripping"}


@pytest.fixture(
    scope="module",
    params=[pytest.param(case, marks=() if case in QUICK else pytest.mark.thorough) for case in CASES],
)
def trio(request) -> Trio:
    return Trio(byte_bpe(**CASES[request.param]))


def plain(documents: Documents) -> object:
    columns = (documents.ids, documents.sentence_ends, documents.document_ends, documents.word_starts)
    return [list(column) for column in columns], memoryview(documents.ids).itemsize, documents.unknown


def each(tokenizer: ByteBpeTokenizer, texts: list[str]) -> list[list[tuple[int, int, int, int]]]:
    found = tokenizer.encode_each(texts)
    tokens = list(zip(found.ids, found.starts, found.stops, found.word_starts, strict=True))
    bounds = [0, *found.ends]
    return [tokens[start:stop] for start, stop in pairwise(bounds)]


@given(texts=st.lists(bpe_texts, max_size=4))
def test_ids_places_and_word_starts_of_each_text_are_the_library_s(trio, texts):
    expected = [trio.library_tokens(text) for text in texts]
    for tokenizer in trio.ours[" "]:
        assert each(tokenizer, texts) == expected
        assert each(tokenizer, texts) == expected, "the second time, from the cache of words"


@st.composite
def documents(draw: st.DrawFn) -> str:
    rows = draw(st.lists(st.one_of(bpe_texts, bpe_texts, blank_lines), max_size=8))
    return "".join(row.replace("\n", draw(st.sampled_from(" \n"))) + draw(line_ends) for row in rows)


@given(text=documents(), between=st.sampled_from([" ", "", " é "]))
def test_documents_are_the_library_s(trio, text, between):
    expected = trio.library_documents(text, between)
    for tokenizer in trio.ours[between]:
        assert plain(tokenizer.encode([text.encode()], ["text"])) == expected


def test_documents_in_twelve_languages_are_the_library_s(trio):
    for sentence in LANGUAGES.values():
        text = f"{sentence}\n{sentence} {sentence}\n \n{sentence}  <mask>.\n\u3000{sentence}\n"
        for between, ours in trio.ours.items():
            expected = trio.library_documents(text, between)
            found = [plain(tokenizer.encode([text.encode()], ["text"])) for tokenizer in ours]
            assert found == [expected] * len(ours), sentence


@pytest.mark.thorough
@pytest.mark.skipif(not _native.available(), reason="the kernels are not built")
def test_long_runs_are_the_library_s(trio):
    for unit in ("a", "the", "é", "e\u0301", "\u0323\u0301", " ", "!", "1", "'", "\0", "\n"):
        for length in (14, 15, 16, 95, 96, 97, 255, 256, 257, 3000):
            text = (unit * length)[:length]
            assert each(trio.ours[" "][-1], [text]) == [trio.library_tokens(text)]


@pytest.mark.skipif(not _native.available(), reason="the kernels are not built")
@pytest.mark.parametrize("pre_tokenizer", ["gpt2", "llama3"])
def test_a_run_of_a_million_letters_takes_no_quadratic_time(pre_tokenizer):
    tokenizer = tokenizer_of(byte_bpe(pre_tokenizer, composes=True), "native")
    for unit in ("a", "the", "e\u0301", "\u0323\u0301"):
        found = tokenizer.encode_each([unit * 400_000])  # minutes, were it quadratic
        assert len(found.ids) >= 400_000 // 4


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("plane", "case"),
    [
        *((0, case) for case in (*PRE_TOKENIZERS, "llama3, NFC")),
        *((plane, case) for plane in range(1, 17) for case in ("gpt2", "llama3, NFC")),
    ],
)
def test_every_character_of_every_plane_is_split_as_the_library_splits_it(plane, case):
    trio = Trio(byte_bpe(**CASES[case]))
    step = 1 if plane in ASSIGNED else 61
    points = [point for point in range(plane << 16, plane + 1 << 16, step) if not 0xD800 <= point < 0xE000]
    for start in range(0, len(points), 2048):
        characters = [chr(point) for point in points[start : start + 2048]]
        for text in (
            "".join(f"a{c} {c}1{c}" for c in characters),
            "".join(f"'{c}x!{c}\n{c}" for c in characters),
        ):
            assert each(trio.ours[" "][-1], [text]) == [trio.library_tokens(text)]


@given(text=broken_texts())
def test_engines_report_the_same_invalid_bytes(text):
    def outcome(tokenizer: ByteBpeTokenizer) -> object:
        try:
            return plain(tokenizer.encode([b"first\n", text], ["one", "two"]))
        except InputError as error:
            return str(error)

    parsed = byte_bpe("llama3", tokens="all", composes=True)
    outcomes = [outcome(tokenizer) for tokenizer in Trio(parsed).ours[" "]]
    assert outcomes == outcomes[:1] * len(outcomes)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_literal_document(engine):
    """Ids by hand: bytes are numbered as in the alphabet, merges from 256 on."""
    from bertdata.tokens.bpe.settings import make_byte_alphabet

    units = make_byte_alphabet()
    ids = {unit: byte for byte, unit in enumerate(units)}
    merges = [("Ġ", "a"), ("b", "a"), ("a", "b"), ("Ġa", "b"), ("ab", "ab")]
    for merge in merges:
        ids["".join(merge)] = len(ids)
    model = {"type": "BPE", "vocab": ids, "merges": [list(merge) for merge in merges]}
    parsed = byte_bpe(model=model, added_tokens=[])
    tokenizer = tokenizer_of(parsed, engine)
    found = tokenizer.encode([b"aab abab\nab\n\n\xc3\xa9\n"], ["text"])
    # a + ab, blank-a-b + ab (b + a goes before a + b: "Ġabab" is Ġa, ba, b), then the second sentence's Ġab
    assert list(found.ids) == [ord("a"), 258, 256, 257, ord("b"), 259, 0xC3, 0xA9]
    assert (list(found.sentence_ends), list(found.document_ends)) == ([5, 6, 8], [2, 3])
    assert list(found.word_starts) == [1, 0, 1, 0, 0, 1, 1, 0]
    tokens = tokenizer.encode_each(["é ab"])
    assert (list(tokens.starts), list(tokens.stops)) == ([0, 0, 1], [1, 1, 4])
    assert found.unknown is None


@pytest.mark.parametrize("engine", ENGINES)
def test_the_unknown_token_is_counted_where_the_text_names_it(engine):
    assert tokenizer_of(byte_bpe(), engine).encode([b"a <unk> b<unk>\n"], ["text"]).unknown == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_half_a_surrogate_pair_is_no_text(engine):
    with pytest.raises(UnicodeEncodeError):
        tokenizer_of(byte_bpe(), engine).encode_each(["a", "b\ud800"])


@pytest.mark.parametrize("engine", ENGINES)
def test_ids_above_65535_are_32_bits_wide(engine):
    parsed = byte_bpe(added_tokens=[])
    vocabulary = parsed["model"]["vocab"]
    vocabulary |= {f"filling {number}": number for number in range(len(vocabulary), 70_000)}
    merges = parsed["model"]["merges"]
    first, second = next(merge for merge in merges if len("".join(merge)) == 2 and "".join(merge).isascii())
    vocabulary[first + second] = 70_000
    parsed = byte_bpe(model=parsed["model"], added_tokens=[])
    found = tokenizer_of(parsed, engine).encode([(first + second).encode()], ["text"])
    assert (list(found.ids), memoryview(found.ids).itemsize) == ([70_000], 4)
