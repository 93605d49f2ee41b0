"""A WordPiece tokenizer.json on the kernel: the ids of the tokenizers library."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata.config.dialects import SPECIAL_TOKENS
from bertdata.errors import InputError
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.files import TokenizerJson
from bertdata.tokens.library_tokenizer import LibraryTokenizer
from bertdata.tokens.load import describe_engine, tokenizer_of
from bertdata.tokens.tokenizer_json import find_tokenizer_json, read_tokenizer_json
from bertdata.tokens.wordpiece_json import WordPieceJsonTokenizer, find_obstacle
from bertdata.unicode.tables import load_bert_normalizer_differences
from tests.support.strategies import cuts, texts, tries

tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")

LETTERS = [*"abcdefxyz", *(f"##{letter}" for letter in "abcdefxyz"), *".,!中文σς", "##σ", "##ς", "äb", "##ß"]


def make_json(tokens: list[str], **normalizer: Any) -> dict[str, Any]:
    """A tokenizer.json as the library saves BERT's."""
    rules = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    ids = {token: number for number, token in enumerate(dict.fromkeys([*SPECIAL_TOKENS, *tokens]))}
    added = [
        {"id": ids[token], "content": token, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for token in SPECIAL_TOKENS
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", **rules, **normalizer},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }


def load(value: dict[str, Any], place: Path, between: str = " ") -> tuple[dict[str, Any], Vocabulary]:
    path = place / "tokenizer.json"
    path.write_text(json.dumps(value))
    return read_tokenizer_json(find_tokenizer_json(str(path), {}, between=between))


def both(value: dict[str, Any], place: Path, between: str = " ") -> Any:
    parsed, vocabulary = load(value, place)
    assert find_obstacle(parsed, vocabulary, between) is None
    return (
        WordPieceJsonTokenizer(parsed, vocabulary, between),
        LibraryTokenizer(parsed, vocabulary, between),
    )


def plain(found: Documents) -> tuple[Any, ...]:
    ids, width = list(found.ids), memoryview(found.ids).itemsize
    assert found.word_starts is None
    return ids, width, list(found.sentence_ends), list(found.document_ends), found.unknown


RULES = [
    {"lowercase": lowercase, "strip_accents": accents, "handle_chinese_chars": chinese}
    for lowercase, accents, chinese in product((True, False), (None, True, False), (True, False))
]


@st.composite
def texts_with_tokens(draw: st.DrawFn) -> tuple[list[bytes], list[str]]:
    found = draw(st.lists(texts(), min_size=1, max_size=2))
    words = sorted(set(b" ".join(found).decode().lower().split()))
    tokens = list(LETTERS)
    for word in draw(st.lists(st.sampled_from(words), max_size=8)) if words else []:
        tokens += draw(cuts(word))
    return found, tokens


@tries(2)
@given(case=texts_with_tokens(), rules=st.sampled_from(RULES), between=st.sampled_from([" ", ""]))
def test_ids_and_sentences_are_the_librarys(case, rules, between, tmp_path_factory):
    inputs, tokens = case
    kernel, library = both(make_json(tokens, **rules), tmp_path_factory.mktemp("made"), between)
    names = ["a"] * len(inputs)
    expected = plain(library.encode(inputs, names))
    assert plain(kernel.encode(inputs, names)) == expected
    assert plain(kernel.encode(inputs, names)) == expected, "the second time, from the cache of words"


POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
EDGES = sorted(
    {
        point
        for edge in (
            *(edge for pair in load_bert_normalizer_differences() for edge in pair),
            *range(0, 0x110000, 0x10000),
            0x300,
            0x3A3,
        )
        for point in range(max(0, edge - 24), min(0x110000, edge + 24))
        if not 0xD800 <= point < 0xE000
    }
)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(EDGES, id="edges"),
        *(pytest.param(POINTS[i::8], id=f"all-{i}", marks=pytest.mark.thorough) for i in range(8)),
    ],
)
@pytest.mark.parametrize("rules", [RULES[0], RULES[4], RULES[6], RULES[8]], ids=str)
def test_each_character_is_treated_as_in_the_library(points, rules, tmp_path):
    """Between letters, and before marks that are put in order."""
    pieces = [chr(point) for point in points]
    tokens = [*LETTERS, *pieces, *(f"##{piece}" for piece in pieces)]
    known = [piece for piece in pieces if not is_different(ord(piece)) and piece not in "\r\n"]
    kernel, library = both(make_json(tokens, **rules), tmp_path)
    lines = [f"a{piece}b {piece}\u0301\u0323c A\u0345{piece}" for piece in known]
    data = "\n".join(" ".join(lines[i : i + 8]) for i in range(0, len(lines), 8)).encode()
    kernel._library = None  # not needed
    assert plain(kernel.encode([data], ["a"])) == plain(library.encode([data], ["a"]))


def is_different(point: int) -> bool:
    return any(first <= point <= last for first, last in load_bert_normalizer_differences())


def test_documents_with_an_added_token_or_another_character_are_the_librarys(tmp_path):
    kernel, library = both(make_json(LETTERS), tmp_path)
    seen = []
    encode = kernel._library.encode
    kernel._library.encode = lambda texts, names: (seen.extend(texts), encode(texts, names))[1]
    odd = ["\ue000a b\nc", "x [MASK] y", "a\u0301\ua7ba", "[PAD]", "[UNK\n]", "\ue000"]
    documents = [item for text in odd for item in (text, "ab. cd\ne, f", "\u200b", "[mask] [[MAS] 中")]
    data = "\n\n".join(documents).encode()
    expected = plain(library.encode([data], ["a"]))
    assert plain(kernel.encode([data], ["a"])) == expected
    assert [text.decode().strip() for text in seen] == [text for text in odd if text != "[UNK\n]"]
    seen.clear()
    data = b"\n\n".join([b"a b", b"c [SEP]"])
    assert plain(kernel.encode([data], ["a"])) == plain(library.encode([data], ["a"]))
    assert seen == [b"c [SEP]"]


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        ("ab.\ncd", "kernel"),
        ("ab\n.cd", "kernel"),
        ("中\ncd", "kernel"),
        ("ab \ncd", "kernel"),
        ("ab\n\u3000cd", "kernel"),
        ("ab\n\ncd", "kernel"),
        ("ab\ncd", "library"),
        ("ab\x0b\ncd", "library"),
        ("ab.\u200b\ncd", "library"),
        ("ab.\n\u200b\ncd", "library"),
        ("ab[\nMASK]", "library"),
        ("äb\nβ", "library"),
    ],
)
def test_lines_that_follow_without_a_blank_are_the_kernels_where_no_word_goes_on(text, whose, tmp_path):
    kernel, library = both(make_json(LETTERS), tmp_path, between="")
    left_out = kernel._kernel.tokenize(text.encode())[4]
    assert len(left_out) == (3 if whose == "library" else 0)
    assert plain(kernel.encode([text.encode()], ["a"])) == plain(library.encode([text.encode()], ["a"]))


def test_ids_of_32_bits(tmp_path):
    tokens = [*LETTERS, *(f"w{number}" for number in range(70_000))]
    kernel, library = both(make_json(tokens), tmp_path)
    data = b"w69999 [MASK] a\n\nw1 w69998\n"
    found = plain(kernel.encode([data], ["a"]))
    assert found == plain(library.encode([data], ["a"]))
    assert found[1] == 4


@pytest.mark.parametrize("prefix", ["@", "#", "", "###"])
def test_a_piece_of_another_prefix_continues_a_word_as_in_the_library(prefix, tmp_path):
    """The prefixes are less and greater than ## as texts."""
    value = changed("model.continuing_subword_prefix", prefix)
    value["model"]["vocab"][f"{prefix}q"] = len(value["model"]["vocab"])
    load(value, tmp_path)
    path = str(tmp_path / "tokenizer.json")
    tokenizer = tokenizer_of(find_tokenizer_json(path, {}))
    expected = tokenizers.Tokenizer.from_file(path).encode("aq a ##b", add_special_tokens=False)
    found = tokenizer.encode([b"aq a ##b"], ["a"])
    assert list(found.ids) == expected.ids
    # The first "aq" is one word of two pieces. In "##b", each "#" and the "b" are words.
    assert list(found.word_starts) == [1, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("most", [0, 1, 150, (1 << 32) - 1, 1 << 32, (1 << 33) - 1, (1 << 63) - 1])
def test_the_longest_word_may_be_any_number_of_the_library(most, tmp_path):
    kernel, library = both(changed("model.max_input_chars_per_word", most), tmp_path)
    data = f"a {'a' * 150} {'a' * 151} bc".encode()
    assert plain(kernel.encode([data], ["a"])) == plain(library.encode([data], ["a"]))


def test_a_byte_that_is_not_utf8_is_named(tmp_path):
    kernel, _ = both(make_json(LETTERS), tmp_path)
    with pytest.raises(InputError, match=r"^b: line 2: byte 0xff "):
        kernel.encode([b"a\n", b"b\n\xff\n"], ["a", "b"])


def test_each_text_by_itself_has_places(tmp_path):
    kernel, _ = both(make_json(LETTERS), tmp_path)
    found = kernel.encode_each(["Ab c", "", "äX"])
    assert (list(found.ends), list(found.starts), list(found.stops)) == (
        [3, 3, 5],
        [0, 1, 3, 0, 1],
        [1, 2, 4, 1, 2],
    )
    assert list(found.word_starts) == [1, 0, 1, 1, 0]


ADDED = make_json([])["added_tokens"][1]


def changed(path: str, to: Any) -> dict[str, Any]:
    value = make_json(LETTERS)
    *parents, last = path.split(".")
    place: Any = value
    for name in parents:
        place = place[int(name)] if name.isdigit() else place[name]
    place[int(last) if last.isdigit() else last] = to
    return value


@pytest.mark.parametrize(
    ("value", "between", "reason"),
    [
        (changed("normalizer", None), " ", "its normalizer is not BertNormalizer"),
        (changed("normalizer.clean_text", False), " ", "its normalizer does not clean the text"),
        (changed("pre_tokenizer", {"type": "Whitespace"}), " ", "its pre_tokenizer is not BertPreTokenizer"),
        (changed("model.continuing_subword_prefix", "@"), " ", "its pieces do not begin with ##"),
        (changed("model.continuing_subword_prefix", "#"), " ", "its pieces do not begin with ##"),
        (changed("model.continuing_subword_prefix", ""), " ", "its pieces do not begin with ##"),
        (changed("added_tokens.0.normalized", True), " ", "an added token is looked for in normalised text"),
        (changed("added_tokens.0.content", "a b"), " ", "an added token is empty or holds white space"),
        (
            changed("added_tokens.0", {**ADDED, "content": "new", "id": 70_000}),
            " ",
            "an added token has an id of more bits than the model's",
        ),
        (make_json(LETTERS), " - ", "its sentences are joined by ' - '"),
    ],
)
def test_other_files_are_the_librarys_and_the_note_says_why(value, between, reason, tmp_path):
    assert find_obstacle(*load(value, tmp_path), between) == reason


def test_the_note_names_the_engine(tmp_path):
    load(make_json(LETTERS), tmp_path)
    file = TokenizerJson(path=str(tmp_path / "tokenizer.json"), roles=(("unk", "[UNK]"),))
    kind = f"{file.path}: wordpiece of {len(make_json(LETTERS)['model']['vocab'])} tokens"
    assert describe_engine(file) == f"{kind}, run by the WordPiece kernel"
    assert isinstance(tokenizer_of(file), WordPieceJsonTokenizer)
    assert describe_engine(file, "python") == f"{kind}, run by the tokenizers library: --engine python"
    other = TokenizerJson(path=file.path, roles=(("unk", "[PAD]"),))
    assert describe_engine(other) == f"{kind}, run by the tokenizers library: another token has the role unk"
