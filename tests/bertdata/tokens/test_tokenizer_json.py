"""A tokenizer.json: its kind, its tokens, the roles of its tokens, and what is refused."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from bertdata.errors import BertDataError, MissingInputError, SettingsError, VocabularyError
from bertdata.tokens import tokenizer_json
from bertdata.tokens.files import TokenizerJson
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.readable import make_words_readable
from bertdata.tokens.roles import parse_roles
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from tests.support.tokenizer_files import TRAINERS

LINES = ["Two gulls sit on the mast.", "Zwei Möwen sitzen auf dem Mast.", "マストにカモメが二羽いる。"] * 9
LAYOUTS = {
    "bpe": {"cls": "<s>", "sep": "</s>", "pad": "<pad>", "mask": "<mask>", "unk": "<unk>"},
    "unigram": {"cls": "[CLS]", "sep": "[SEP]", "pad": "<pad>", "mask": "[MASK]", "unk": "<unk>"},
    "wordpiece": {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]", "unk": "[UNK]"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    return {kind: train(folder / f"{kind}.json", LINES) for kind, train in TRAINERS.items()}


def changed(path: Path, target: Path, **changes: Any) -> str:
    target.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return str(target)


@pytest.mark.parametrize("kind", TRAINERS)
def test_the_kind_the_tokens_and_their_roles_are_found(kind: str, files: dict[str, Path]) -> None:
    file = find_tokenizer_json(str(files[kind]), {})
    assert dict(file.roles) == LAYOUTS[kind]
    vocabulary = vocabulary_of(file)
    assert vocabulary.kind == kind
    assert vocabulary.md5 == hashlib.md5(files[kind].read_bytes()).hexdigest()
    for role, token in LAYOUTS[kind].items():
        assert vocabulary.words[vocabulary.role(role)] == token
    assert vocabulary.padding_id == vocabulary.pad
    assert sorted(vocabulary.replacements) == list(range(vocabulary.size))
    assert (vocabulary.continues_word is None) == (kind != "wordpiece")


def test_a_person_comes_first_then_the_models_files_then_the_post_processor(
    files: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.json").write_bytes(files["bpe"].read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"pad_token": "a", "cls_token": {"content": "b"}}')
    (tmp_path / "special_tokens_map.json").write_text('{"pad_token": "c"}')
    found = dict(find_tokenizer_json(str(tmp_path), {"cls": "d"}).roles)
    # As transformers has it: special_tokens_map.json goes before tokenizer_config.json.
    assert found == LAYOUTS["bpe"] | {"cls": "d", "pad": "c"}


def test_a_template_tells_what_stands_before_and_behind(files: dict[str, Path], tmp_path: Path) -> None:
    single = [{"SpecialToken": {"id": token, "type_id": 0}} for token in ("x", "y")]
    single.insert(1, {"Sequence": {"id": "A", "type_id": 0}})
    template = {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {}}
    whole = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template]}
    path = changed(files["bpe"], tmp_path / "made.json", post_processor=whole, added_tokens=[])
    assert dict(find_tokenizer_json(path, {}).roles) == {"cls": "x", "sep": "y"}


def test_ids_without_a_token_are_drawn_by_no_mask(files: dict[str, Path], tmp_path: Path) -> None:
    model = {"type": "WordLevel", "vocab": {"a": 0, "b": 7}, "unk_token": "a"}
    path = changed(files["bpe"], tmp_path / "made.json", model=model, added_tokens=[])
    vocabulary = vocabulary_of(find_tokenizer_json(path, {}))
    assert (vocabulary.size, vocabulary.tokens, vocabulary.replacements) == (8, 2, (0, 7))


def test_a_role_that_no_token_has_asks_for_the_flag(files: dict[str, Path], tmp_path: Path) -> None:
    path = changed(files["bpe"], tmp_path / "made.json", added_tokens=[])
    with pytest.raises(SettingsError, match=r"names no mask token.*--role mask=TOKEN"):
        vocabulary_of(find_tokenizer_json(path, {})).role("mask")


@pytest.mark.parametrize("given", ["mask", "mask=", "eos=</s>", "=x"])
def test_a_role_in_another_form_is_refused(given: str) -> None:
    with pytest.raises(SettingsError, match=r"expected NAME=TOKEN.*cls, sep, pad, mask, unk"):
        parse_roles([given])


def test_a_role_given_twice_is_refused() -> None:
    with pytest.raises(SettingsError, match="the role mask is given twice"):
        parse_roles(["mask=a", "mask=b"])


BROKEN = {
    "empty": (b"", r"is not JSON \(Expecting value: line 1 column 1 .*\); "),
    "a vocabulary": (
        b"[PAD]\n[UNK]\nthe\n",
        r"is not JSON \(Expecting value: line 1 column 2 .*\); .*goes with --vocab",
    ),
    "latin1": (b'{"model": "\xe9"}', r"is not JSON \(line 1 is not UTF-8\); "),
    "deep": (b"[" * 100_000, r"is not JSON \(the text is damaged\); "),
    "a long number": (b'{"model": ' + b"1" * 9_999 + b"}", r"is not JSON \(the text is damaged\); "),
    "no number": (b'{"model": NaN}', r"is not JSON \(NaN is no number of JSON\); "),
    "a key twice": (
        b'{"model": {"type": "BPE", "type": "BPE"}}',
        r"is not JSON \(the key 'type' stands twice in one object\); ",
    ),
    "a list": (b"[1, 2]", "is JSON, but no object"),
    "vocab.json": (b'{"the": 0, "a": 1}', "holds no model with a vocabulary"),
    "no vocabulary": (b'{"model": {"type": "BPE"}}', "holds no model with a vocabulary"),
    "another model": (b'{"model": {"type": "Markov", "vocab": {}}}', "its model is 'Markov'"),
    "a step": (b'{"model": {"vocab": {"a": 0}}, "normalizer": 3}', "normalizer is no object"),
    "added": (b'{"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": "0"}]}', "added_tokens are no list"),
    "no tokens": (b'{"model": {"vocab": {}}}', "has no tokens"),
    "a negative id": (b'{"model": {"vocab": {"a": -1}}}', "token 'a' has the id -1"),
    "a huge id": (b'{"model": {"vocab": {"a": 4294967296}}}', "token 'a' has the id 4294967296"),
    "an id of text": (b'{"model": {"vocab": {"a": "0"}}}', "token 'a' has the id '0'"),
    "a nameless piece": (b'{"model": {"vocab": [[null, 0.5]]}}', "token None has the id 0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_tokenizer_json_is_refused_in_a_line(name: str, tmp_path: Path) -> None:
    data, problem = BROKEN[name]
    (tmp_path / "made.json").write_bytes(data)
    with pytest.raises(VocabularyError, match=rf"^{tmp_path}/made.json: {problem}") as caught:
        find_tokenizer_json(str(tmp_path / "made.json"), {})
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]},
        {"type": "BPE", "vocab": {"a": 0}, "merges": 7},
        {"type": "Unigram", "vocab": [["a", "x"]], "unk_id": 0},
        {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 9},
        {"type": "WordPiece", "vocab": {"a": 0}},
    ],
)
def test_a_broken_model_is_refused_in_a_line(
    model: dict[str, Any], files: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = changed(files["unigram"], tmp_path / "made.json", model=model, added_tokens=[])
    with pytest.raises(BertDataError, match=rf"^{tmp_path}/made.json: ") as caught:
        tokenizer_of(find_tokenizer_json(path, {}))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_large_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 500_000_000)
    monkeypatch.setattr(tokenizer_json.storage, "read_bytes", None)
    with pytest.raises(VocabularyError, match="has 500000000 bytes, at most 134217728 are read"):
        find_tokenizer_json(str(path), {})


def test_a_directory_without_the_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="holds no tokenizer.json; save its tokeniser"):
        find_tokenizer_json(str(tmp_path), {})
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(
        MissingInputError, match=rf"holds no tokenizer.json; give --vocab {tmp_path}/vocab.txt"
    ):
        find_tokenizer_json(str(tmp_path), {})


def test_a_file_whose_ids_the_library_counts_otherwise_is_refused(
    files: dict[str, Path], tmp_path: Path
) -> None:
    added = [{"id": 90_000, "content": "<far>", "special": True, "single_word": False, "lstrip": False}]
    added[0] |= {"rstrip": False, "normalized": False}
    path = changed(files["unigram"], tmp_path / "made.json", added_tokens=added)
    with pytest.raises(VocabularyError, match="the tokenizers library gives '<far>' the id"):
        tokenizer_of(find_tokenizer_json(path, {}))


def test_a_file_that_is_changed_is_read_anew(files: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(files["bpe"].read_bytes())
    file = TokenizerJson(path=str(path))
    first = vocabulary_of(file)
    assert vocabulary_of(file) is first
    path.write_bytes(files["unigram"].read_bytes())
    assert vocabulary_of(file).kind == "unigram"


def test_tokens_are_readable(files: dict[str, Path]) -> None:
    vocabulary = vocabulary_of(find_tokenizer_json(str(files["bpe"]), {}))
    found = dict(zip(vocabulary.words, make_words_readable(vocabulary), strict=True))
    assert found["Ġ"] == " "
    assert found["<mask>"] == "<mask>"
    assert found["Ã"] == "Ã"  # the first byte of a letter of two
    assert " sitzen" in found.values()
    vocabulary = vocabulary_of(find_tokenizer_json(str(files["unigram"]), {}))
    assert " " in make_words_readable(vocabulary)
