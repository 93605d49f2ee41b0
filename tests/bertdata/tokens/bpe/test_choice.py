"""A tokenizer.json is run by the kernel where it knows the file, else by the library: one result."""

import json
from pathlib import Path

import pytest

from bertdata import _native
from bertdata.tokens import load
from bertdata.tokens.bpe.tokenizer import ByteBpeTokenizer
from bertdata.tokens.files import TokenizerJson
from bertdata.tokens.library_tokenizer import LibraryTokenizer
from tests.support.byte_bpe import LANGUAGES, byte_bpe


def write(path: Path, **changes: object) -> TokenizerJson:
    file = path / "tokenizer.json"
    file.write_text(json.dumps(byte_bpe("llama3", tokens="all", composes=True, **changes)))
    return TokenizerJson(path=str(file), roles=(("mask", "<mask>"), ("unk", "<unk>")))


@pytest.mark.skipif(not _native.available(), reason="the kernels are not built")
def test_a_known_file_is_run_by_the_kernel(tmp_path):
    file = write(tmp_path)
    assert isinstance(load.tokenizer_of(file), ByteBpeTokenizer)
    note = load.describe_engine(file)
    assert note is not None
    assert note.endswith("run by the byte-level BPE kernel")


def test_the_twin_is_run_where_it_is_asked_for(tmp_path):
    note = load.describe_engine(write(tmp_path), "python")
    assert note is not None
    assert note.endswith("run by the readable twin of the byte-level BPE kernel")


def test_another_file_is_run_by_the_library_and_the_note_says_why(tmp_path):
    file = write(tmp_path, normalizer={"type": "Lowercase"})
    assert isinstance(load.tokenizer_of(file), LibraryTokenizer)
    note = load.describe_engine(file)
    assert note is not None
    assert note.endswith("library: its normaliser is Lowercase")


def test_without_kernels_the_library_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "available", lambda: False)
    note = load.describe_engine(write(tmp_path))
    assert note is not None
    assert note.endswith("run by the tokenizers library: the kernels are not built")


@pytest.mark.parametrize("between", [" ", ""])
def test_both_ways_make_the_same_documents(tmp_path, between):
    text = "".join(f"{sentence}\n  {sentence} <mask>.\n\n" for sentence in LANGUAGES.values()).encode()
    file = write(tmp_path)
    ours = load.tokenizer_of(TokenizerJson(path=file.path, roles=file.roles, between=between))
    parsed = json.loads(Path(file.path).read_text())
    library = LibraryTokenizer(parsed, ours.vocabulary, between)
    found, expected = (tokenizer.encode([text], ["text"]) for tokenizer in (ours, library))
    for name in ("ids", "sentence_ends", "document_ends", "word_starts"):
        assert list(getattr(found, name)) == list(getattr(expected, name)), name
    assert found.unknown == expected.unknown
