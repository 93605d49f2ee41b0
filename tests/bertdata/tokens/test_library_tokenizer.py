"""A tokenizer.json run by the tokenizers library, against a slow calculation from one encoding a document."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bertdata.errors import InputError, VocabularyError
from bertdata.tokens import library_tokenizer
from bertdata.tokens.library_tokenizer import LibraryTokenizer
from bertdata.tokens.load import describe_engine, tokenizer_of
from bertdata.tokens.tokenizer_json import find_tokenizer_json, read_tokenizer_json
from tests.support.tokenizer_files import TRAINERS

LINES = [
    "The ferry leaves at seven, and nobody waits for it.",
    "Im Hafen riecht es nach Öl und nassem Holz.",
    "渡し船は七時に出る。 誰も待たない。",
    "Паром уходит в семь часов.",
    "L'été, les mouettes crient 😀 toute la nuit  .",
]
TEXT = "\n".join(
    [*LINES, "", "  ", LINES[0] + "  ", "\tA <mask> [MASK] line.", "\x1f", "", LINES[2]]
).encode()


@pytest.fixture(scope="module", params=TRAINERS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LibraryTokenizer:
    path = TRAINERS[request.param](tmp_path_factory.mktemp("tokens") / "tokenizer.json", LINES * 20)
    return load(path)


def load(path: Path, between: str = " ") -> LibraryTokenizer:
    file = find_tokenizer_json(str(path), {}, between=between)
    parsed, vocabulary = read_tokenizer_json(file)
    return LibraryTokenizer(parsed, vocabulary, between)


def slow_documents(path: str, text: bytes, between: str = " ") -> list[list[tuple[list[int], list[int]]]]:
    """Sentences of each document, each its ids and word starts, counted character by character."""
    library = Tokenizer.from_file(path)
    value = json.loads(library.to_str())
    value["post_processor"] = None  # it would cut the blank off a token's place
    library = Tokenizer.from_str(json.dumps(value))
    lines = text.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    documents: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            documents[-1].append(line)
        else:
            documents.append([])
    found = []
    for sentences in documents:
        owners = "".join(
            chr(number) * (len(sentence) + (len(between) if number else 0))
            for number, sentence in enumerate(sentences)
        )
        encoding = library.encode(between.join(sentences), add_special_tokens=False)
        made: list[tuple[list[int], list[int]]] = [([], []) for _ in sentences]
        for index, token in enumerate(encoding.ids):
            word = encoding.word_ids[index]
            starts = index == 0 or word is None or word != encoding.word_ids[index - 1]
            place = encoding.offsets[index][0]
            number = ord(owners[min(place, len(owners) - 1)])
            made[number][0].append(token)
            made[number][1].append(int(starts))
        if whole := [one for one in made if one[0]]:
            found.append(whole)
    return found


def documents_of(tokenizer: LibraryTokenizer, text: bytes) -> list[list[tuple[list[int], list[int]]]]:
    found = tokenizer.encode([text], ["part"])
    vocabulary = tokenizer.vocabulary
    if vocabulary.continues_word is None:
        starts = list(found.word_starts)  # type: ignore[call-overload]
    else:
        assert found.word_starts is None
        starts = [1 - vocabulary.continues_word[number] for number in found.ids]
    made, first_sentence, first = [], 0, 0
    for end in found.document_ends:
        made.append([])
        for stop in found.sentence_ends[first_sentence:end]:
            made[-1].append((list(found.ids[first:stop]), starts[first:stop]))
            first = stop
        first_sentence = end
    assert first == len(found.ids)
    return made


def test_ids_sentences_and_word_starts_are_the_librarys(tokenizer: LibraryTokenizer) -> None:
    expected = slow_documents(tokenizer.vocabulary.name, TEXT)
    assert [len(document) for document in expected] == [5, 2, 1]
    assert documents_of(tokenizer, TEXT) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(
        st.one_of(
            st.sampled_from("ab .\n\n\r\t<>mask[]\u3000\x85é"), st.characters(exclude_categories=["Cs"])
        )
    )
)
def test_generated_text_is_encoded_as_the_library_does(tokenizer: LibraryTokenizer, text: str) -> None:
    expected = slow_documents(tokenizer.vocabulary.name, text.encode())
    assert documents_of(tokenizer, text.encode()) == expected


def test_slices_change_nothing(tokenizer: LibraryTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = documents_of(tokenizer, TEXT)
    monkeypatch.setattr(library_tokenizer, "SLICE_CHARACTERS", 30)
    assert documents_of(tokenizer, TEXT) == whole


def test_languages_without_blanks_join_sentences_with_nothing(tmp_path: Path) -> None:
    path = TRAINERS["bpe"](tmp_path / "tokenizer.json", LINES)
    text = f"{LINES[2]}\n{LINES[2]}\n".encode()
    tight = load(path, between="")
    assert documents_of(tight, text) == slow_documents(str(path), text, between="")
    assert tight.encode([text], ["part"]).tokens < load(path).encode([text], ["part"]).tokens


def test_each_text_has_the_librarys_places(tokenizer: LibraryTokenizer) -> None:
    library = Tokenizer.from_file(tokenizer.vocabulary.name)
    library.post_processor = None  # it takes letters off places
    texts = ["", *LINES, " <mask> at  the end "]
    found = tokenizer.encode_each(texts)
    encodings = [library.encode(text, add_special_tokens=False) for text in texts]
    assert list(found.lists()) == [one.ids for one in encodings]
    places = [place for one in encodings for place in one.offsets]
    assert list(zip(found.starts, found.stops, strict=True)) == places  # type: ignore[arg-type]


def test_unknown_tokens_are_counted(tmp_path: Path) -> None:
    tokenizer = load(TRAINERS["wordpiece"](tmp_path / "tokenizer.json", LINES))
    found = tokenizer.encode(["The ፈ ferry ፈ.\n".encode()], ["part"])
    assert found.unknown == list(found.ids).count(tokenizer.vocabulary.unk) == 2


def test_bytes_that_are_not_utf8_are_named(tokenizer: LibraryTokenizer) -> None:
    with pytest.raises(InputError, match=r"^two: line 2: byte 0xff at offset 5 is not UTF-8"):
        tokenizer.encode([b"One.\n", b"Two.\n\xff\n"], ["one", "two"])


def test_truncation_padding_and_dropout_of_the_file_are_left_out(tmp_path: Path) -> None:
    path = TRAINERS["bpe"](tmp_path / "tokenizer.json", LINES * 20)
    plain = load(path).encode([TEXT], ["part"])
    value = json.loads(path.read_text())
    library = Tokenizer.from_file(str(path))
    library.enable_truncation(4)
    library.enable_padding(length=64)
    changed = json.loads(library.to_str())
    changed["model"] = value["model"] | {"dropout": 0.9}
    path.write_text(json.dumps(changed))
    assert list(load(path).encode([TEXT], ["part"]).ids) == list(plain.ids)


def with_pattern(path: Path, pattern: str) -> Path:
    value = json.loads(path.read_text())
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    value["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, value["pre_tokenizer"]]}
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("text", ["a" * 60, ("a" * 18 + " c ") * 400])
def test_a_pattern_that_never_ends_is_an_error_that_names_it(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = with_pattern(TRAINERS["bpe"](tmp_path / "tokenizer.json", LINES), "(a+)+b")
    monkeypatch.setattr(library_tokenizer, "SLICE_SECONDS", 0.5)
    tokenizer, start = load(path), time.monotonic()
    with pytest.raises(VocabularyError, match=r"^[^\n]*tokenizer\.json: [^\n]*$") as refused:
        tokenizer.encode([text.encode()], ["part"])  # the time is over, or the library gives up before
    assert re.search(r"the pattern '\(a\+\)\+b' (takes more|\()", str(refused.value))
    assert "of part" in str(refused.value)
    assert time.monotonic() - start < 5
    assert capfd.readouterr().err == ""  # the library's own report


def test_a_file_without_a_regular_expression_has_no_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = TRAINERS["bpe"](tmp_path / "tokenizer.json", LINES)
    value = json.loads(path.read_text())
    split = {"type": "Split", "pattern": {"String": "(a+)+b"}, "behavior": "Isolated", "invert": False}
    value["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, value["pre_tokenizer"]]}
    path.write_text(json.dumps(value))
    monkeypatch.setattr(library_tokenizer, "SLICE_SECONDS", 0.0)
    text = "\n".join(LINES * 1000)  # takes longer than a time limit of 0 s
    expected = Tokenizer.from_file(str(path)).encode(text, add_special_tokens=False).ids
    assert list(load(path).encode_each([text]).ids) == expected


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([10, 20, 30], [[10, 20], [30]]),
        ([10, 21, 30], [[10], [21], [30]]),
        ([31, 30, 1], [[31], [30], [1]]),
        ([0, 30, 0, 1], [[0, 30, 0], [1]]),
        ([29, 1, 15, 15, 1], [[29, 1], [15, 15], [1]]),
    ],
)
def test_the_library_encodes_at_most_so_many_characters_at_a_time(
    lengths: list[int], groups: list[list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = load(TRAINERS["bpe"](tmp_path / "tokenizer.json", LINES))
    monkeypatch.setattr(library_tokenizer, "SLICE_CHARACTERS", 30)
    seen: list[list[int]] = []
    library = tokenizer._library

    class Recorder:
        """The library, which notes the lengths of the texts of each call."""

        def encode_batch(self, texts: list[str], *, add_special_tokens: bool) -> Any:
            seen.append([len(text) for text in texts])
            return library.encode_batch(texts, add_special_tokens=add_special_tokens)

    tokenizer._library = Recorder()
    tokenizer.encode_each(["a" * length for length in lengths])
    assert seen == groups


def test_what_others_write_to_stderr_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    from bertdata.tokens.time_limit import without_stderr

    with without_stderr():
        os.write(2, b"kept\n")
    with suppress(ValueError), without_stderr():
        os.write(2, b"dropped\n")
        raise ValueError
    assert capfd.readouterr().err == "kept\n"


def test_the_kernel_encodes_documents_as_the_library_does(tmp_path: Path) -> None:
    path = TRAINERS["bpe"](tmp_path / "tokenizer.json", LINES * 20)
    file = find_tokenizer_json(str(path), {})
    assert "run by the byte-level BPE kernel" in str(describe_engine(file, "native"))
    found = tokenizer_of(file, "native").encode([TEXT], ["part"])
    expected = load(path).encode([TEXT], ["part"])
    assert list(found.ids) == list(expected.ids)
    assert list(found.sentence_ends) == list(expected.sentence_ends)
    assert list(found.document_ends) == list(expected.document_ends)
    assert bytes(found.word_starts) == bytes(expected.word_starts)  # type: ignore[arg-type]
    assert found.unknown == expected.unknown == 0


def test_a_file_that_no_kernel_knows_runs_on_the_library_and_says_why(tmp_path: Path) -> None:
    path = TRAINERS["unigram"](tmp_path / "tokenizer.json", LINES * 20)
    note = describe_engine(find_tokenizer_json(str(path), {}))
    assert note is not None
    assert note.endswith("run by the tokenizers library: its model is Unigram")


@pytest.mark.thorough
def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """Of 30 MB no more than of 10, but for the text itself and its ids; in a process of its own."""
    path = TRAINERS["wordpiece"](tmp_path / "tokenizer.json", LINES * 20)
    small, large = (_peak_megabytes(path, megabytes) for megabytes in (10, 30))
    # Bytes a byte: 1 of text, some 2 of ids and ends. All encodings at once would take 30 and more.
    assert large - small < 20 * 6


def _peak_megabytes(path: Path, megabytes: int) -> int:
    program = (
        "import resource, sys\n"
        "from bertdata.tokens.library_tokenizer import LibraryTokenizer\n"
        "from bertdata.tokens.tokenizer_json import find_tokenizer_json, read_tokenizer_json\n"
        "file = find_tokenizer_json(sys.argv[1], {})\n"
        "parsed, vocabulary = read_tokenizer_json(file)\n"
        "document = b'The ferry leaves at seven, and nobody waits for it.\\n' * 200 + b'\\n'\n"
        "text = document * (int(sys.argv[2]) * 1_000_000 // len(document))\n"
        "LibraryTokenizer(parsed, vocabulary, ' ').encode([text], ['part'])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)\n"
    )
    words = [sys.executable, "-c", program, str(path), str(megabytes)]
    return int(subprocess.run(words, capture_output=True, check=True, text=True).stdout)
