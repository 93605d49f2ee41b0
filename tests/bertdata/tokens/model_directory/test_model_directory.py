"""A model's directory is the tokeniser that AutoTokenizer makes of all its files, or one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertdata.errors import MissingInputError, VocabularyError
from bertdata.tokens.bpe.settings import make_byte_alphabet
from bertdata.tokens.files import TokenizerJson, VocabularyFile
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.tokenizer_json import find_model_tokenizer, find_tokenizer_json, read_tokenizer_bytes
from tests.soak.tokenizer_fuzz import DIFFERS, compare_directory, run_cases
from tests.support.byte_bpe import byte_bpe
from tests.support.model_directories import COVID, IDS, WORDS, bert_json, german_directory, write_json


def words_of(directory: Path, text: str) -> list[str]:
    file = find_tokenizer_json(str(directory), {})
    words = vocabulary_of(file).words
    return [words[number] for number in tokenizer_of(file).encode_each([text]).ids]


def test_added_tokens_and_accents_of_a_directory_are_read(tmp_path: Path) -> None:
    directory = german_directory(tmp_path / "m")
    assert words_of(directory, "Er möchte covid19.") == ["er", "möchte", "covid19", "."]
    file = find_model_tokenizer(str(directory))
    assert file.path == f"{directory}/tokenizer.json"  # it says the same: its bytes are kept
    assert vocabulary_of(file).words[COVID] == "covid19"


@pytest.mark.parametrize(
    ("settings", "text", "expected"),
    [
        ({"strip_accents": True}, "möchte", ["mochte"]),
        ({"strip_accents": None}, "möchte", ["mochte"]),
        ({"do_lower_case": False}, "Er er", ["[UNK]", "er"]),
        ({"tokenize_chinese_chars": False}, "a日", ["[UNK]"]),
        ({"tokenize_chinese_chars": True}, "a日", ["a", "[UNK]"]),
        ({"tokenizer_class": "ElectraTokenizerFast"}, "möchte", ["möchte"]),
        ({"mask_token": "das"}, "das[MASK]", ["das", "[MASK]"]),
        ({"extra_special_tokens": ["er möchte"]}, "das er möchte er", ["das", "er möchte", "er"]),
    ],
)
def test_each_key_of_its_configuration_counts(
    settings: dict[str, Any], text: str, expected: list[str], tmp_path: Path
) -> None:
    assert words_of(german_directory(tmp_path / "m", **settings), text) == expected


def test_the_configuration_goes_before_the_steps_of_tokenizer_json(tmp_path: Path) -> None:
    directory = german_directory(tmp_path / "m")
    write_json(directory / "tokenizer.json", bert_json(IDS, {}, lower_case=False))
    assert words_of(directory, "ER möchte covid19") == ["er", "möchte", "covid19"]
    file = find_tokenizer_json(str(directory), {})
    assert file.path == str(directory)
    assert json.loads(read_tokenizer_bytes(file.path))["normalizer"]["lowercase"] is True


def test_a_class_that_takes_the_file_as_it_is_leaves_the_other_keys_out(tmp_path: Path) -> None:
    directory = german_directory(
        tmp_path / "m", tokenizer_class="PreTrainedTokenizerFast", strip_accents=True
    )
    assert words_of(directory, "Er möchte covid19.") == ["er", "möchte", "covid19", "."]


def test_a_vocabulary_alone_with_its_added_tokens_is_enough(tmp_path: Path) -> None:
    directory = german_directory(tmp_path / "m")
    (directory / "tokenizer.json").unlink()
    assert words_of(directory, "Er möchte covid19.") == ["er", "möchte", "covid19", "."]


def test_added_tokens_json_counts_where_no_decoder_is_there(tmp_path: Path) -> None:
    directory = german_directory(tmp_path / "m")
    (directory / "tokenizer.json").unlink()
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer"})
    write_json(directory / "added_tokens.json", {"covid19": 4000})  # the library counts ids itself
    assert words_of(directory, "Er möchte covid19.") == ["er", "mochte", "covid19", "."]


def test_a_plain_vocabulary_stays_one_with_its_casing(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    write_json(tmp_path / "config.json", {"model_type": "bert"})
    write_json(tmp_path / "tokenizer_config.json", {"do_lower_case": False})
    path = str(tmp_path / "vocab.txt")
    found = find_model_tokenizer(str(tmp_path))
    assert found == VocabularyFile(path=path, dialect="google", lower_case=False)
    write_json(tmp_path / "tokenizer_config.json", {"do_lower_case": True, "strip_accents": False})
    assert isinstance(find_model_tokenizer(str(tmp_path)), TokenizerJson)


def test_a_directory_that_was_changed_is_read_again(tmp_path: Path) -> None:
    directory = german_directory(tmp_path / "m", strip_accents=True)
    assert words_of(directory, "möchte") == ["mochte"]
    german_directory(tmp_path / "m", strip_accents=None, do_lower_case=False)
    assert words_of(directory, "möchte") == ["möchte"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"tokenizer_class": "BertJapaneseTokenizer"},
            "tokenizer_config.json: its tokeniser is BertJapaneseTokenizer, which is not known here",
        ),
        ({"auto_map": {"AutoTokenizer": ["a.B", None]}}, "is a program of its own (auto_map)"),
        ({"do_lower_case": "false"}, "do_lower_case is 'false', expected true or false"),
        ({"strip_accents": 0}, "strip_accents is 0, expected true or false"),
        ({"split_special_tokens": True}, "split_special_tokens is True, which is not known here"),
        ({"added_tokens_decoder": []}, "added_tokens_decoder is no object"),
        ({"added_tokens_decoder": {"x": {}}}, "added_tokens_decoder has the id 'x', expected a number"),
        ({"added_tokens_decoder": {"7": 3}}, "added_tokens_decoder holds 3, expected a token's text"),
        ({"cls_token": 5}, "cls_token holds 5, expected a token's text"),
        ({"cls_token": None}, "cls_token is null, but a BertTokenizer needs one"),
        ({"tokenizer_class": 5}, "its tokenizer_class is 5, expected a name"),
        ({"extra_special_tokens": 5}, "its extra special tokens are 5, expected a list"),
        ({"fast_tokenizer_files": ["tokenizer.4.0.0.json"]}, "fast_tokenizer_files names several files"),
        ({"tokenizer_class": "RobertaTokenizer"}, "its model is WordPiece, but the directory's class"),
    ],
)
def test_what_is_not_read_as_transformers_does_is_one_line(
    settings: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    directory = german_directory(tmp_path / "m", **settings)
    with pytest.raises(VocabularyError) as caught:
        find_tokenizer_json(str(directory), {})
    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(directory))
    assert "\n" not in str(caught.value)


def test_a_class_without_its_files_is_one_line(tmp_path: Path) -> None:
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})
    (tmp_path / "vocab.txt").write_text("a\n")
    with pytest.raises(
        MissingInputError, match=r"holds no tokenizer.json; give --vocab .*/vocab.txt instead"
    ):
        find_tokenizer_json(str(tmp_path), {})


@pytest.mark.parametrize("before", ["", "\n", "[PAD]\n[UNK]\n"])
def test_a_line_that_is_not_utf8_is_named_by_its_number(tmp_path: Path, before: str) -> None:
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer"})
    (tmp_path / "vocab.txt").write_bytes(before.encode() + b"na\xefve\n")
    line = before.count("\n") + 1
    with pytest.raises(VocabularyError, match=rf"vocab\.txt: line {line}: not UTF-8"):
        find_tokenizer_json(str(tmp_path), {})


def test_a_byte_level_bpe_of_two_files_is_read(tmp_path: Path) -> None:
    vocabulary = {unit: number for number, unit in enumerate(make_byte_alphabet())} | {
        "Ġa": 256,
        "<mask>": 257,
        "Ġlamp": 258,
    }
    write_json(tmp_path / "config.json", {"model_type": "roberta"})
    write_json(tmp_path / "vocab.json", vocabulary)
    (tmp_path / "merges.txt").write_text("#version: 0.2\nĠ a\n")
    # No merge makes "Ġlamp": transformers' class does not take a word of the vocabulary without its merges.
    ids = tokenizer_of(find_tokenizer_json(str(tmp_path), {})).encode_each(["b a<mask> lamp"]).ids
    assert list(ids) == [vocabulary["b"], 256, 257, *(vocabulary[unit] for unit in "Ġlamp")]


@pytest.mark.parametrize(("end", "is_told"), [(256, False), (300, True)])
def test_ids_that_a_saved_tokeniser_would_not_keep_are_refused(
    tmp_path: Path, end: int, is_told: bool
) -> None:
    """Behind a gap, ids of tokens that only the configuration names change when the tokeniser is saved."""
    transformers = pytest.importorskip("transformers")
    vocabulary = {unit: number for number, unit in enumerate(make_byte_alphabet())} | {"</s>": end}
    special = {"id": end, "content": "</s>", "special": True, "normalized": False}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    value = byte_bpe(vocab=vocabulary, merges=[], added_tokens=[{**special, **flags}])
    write_json(tmp_path / "tokenizer.json", value)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "<mask>", "pad_token": "<pad>"}
    write_json(tmp_path / "tokenizer_config.json", settings)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    expected = loaded("a<mask>", add_special_tokens=False).input_ids
    loaded.save_pretrained(tmp_path / "saved")
    saved = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert (saved("a<mask>", add_special_tokens=False).input_ids != expected) == is_told
    if is_told:
        with pytest.raises(
            VocabularyError, match="gives '<pad>' the id 301, and 257 once its tokeniser is sav"
        ):
            find_tokenizer_json(str(tmp_path), {})
    else:
        assert (
            list(tokenizer_of(find_tokenizer_json(str(tmp_path), {})).encode_each(["a<mask>"]).ids)
            == expected
        )


@pytest.mark.parametrize(
    "given", [{}, {"special": True}, {"special": False}, {"normalized": True}, {"normalized": False}], ids=str
)
@pytest.mark.parametrize("lower_case", [True, False])
def test_an_extra_token_is_searched_for_in_text_as_autotokenizer_does(
    tmp_path: Path, given: dict[str, bool], lower_case: bool
) -> None:
    """In the normalised text, unless its flags say that it is special or not normalised."""
    transformers = pytest.importorskip("transformers")
    extra = [{"content": "<X>", "__type": "AddedToken", **given}]
    directory = german_directory(tmp_path / "m", extra_special_tokens=extra, do_lower_case=lower_case)
    texts = ["er <X> er", "er <x> er", "er<X>das"]
    library = transformers.AutoTokenizer.from_pretrained(str(directory))
    expected = [library(text, add_special_tokens=False).input_ids for text in texts]
    ours = tokenizer_of(find_tokenizer_json(str(directory), {}))
    assert [list(ours.encode_each([text]).ids) for text in texts] == expected


@pytest.mark.parametrize("given", [{}, {"add_prefix_space": True}, {"add_prefix_space": False}], ids=str)
@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}], ids=["none", "NFC"])
def test_an_xlm_roberta_is_read_as_autotokenizer_reads_it(
    tmp_path: Path, given: dict[str, bool], normalizer: dict[str, str] | None
) -> None:
    """A blank goes before each word unless add_prefix_space is false. The file's normaliser is not used."""
    transformers = pytest.importorskip("transformers")
    words = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", "\u2581the", "the", "a", "\u0301", "\xe1", "<mask>"]
    model = {
        "type": "Unigram",
        "unk_id": 3,
        "vocab": [[word, -1.0] for word in words],
        "byte_fallback": False,
    }
    parts = dict.fromkeys(("truncation", "padding", "pre_tokenizer", "post_processor", "decoder"))
    value = {"version": "1.0", **parts, "normalizer": normalizer, "added_tokens": [], "model": model}
    write_json(tmp_path / "tokenizer.json", value)
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": "XLMRobertaTokenizer", **given})
    library = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    texts = ["the the", " a", "a\u0301 thea"]
    expected = [library(text, add_special_tokens=False).input_ids for text in texts]
    ours = tokenizer_of(find_tokenizer_json(str(tmp_path), {}))
    assert [list(ours.encode_each([text]).ids) for text in texts] == expected


@pytest.mark.parametrize("has_json", [False, True])
@pytest.mark.parametrize("name", ["RobertaTokenizer", "GPT2Tokenizer"])
def test_a_byte_level_class_merges_a_word_that_is_a_token_itself(
    name: str, has_json: bool, tmp_path: Path
) -> None:
    """No merges lead to "ab". Only a model with ignore_merges gives its id, and these classes have none."""
    transformers = pytest.importorskip("transformers")
    units = [*make_byte_alphabet(), "<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>", "Ġa", "ab"]
    vocabulary = {unit: number for number, unit in enumerate(units)}
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": name})
    if has_json:
        value = byte_bpe(vocab=vocabulary, merges=[["Ġ", "a"]], ignore_merges=True, added_tokens=[])
        write_json(tmp_path / "tokenizer.json", value)
    else:
        write_json(tmp_path / "vocab.json", vocabulary)
        (tmp_path / "merges.txt").write_text("#version: 0.2\nĠ a\n")
    expected = transformers.AutoTokenizer.from_pretrained(tmp_path)("ab a", add_special_tokens=False)
    file = find_tokenizer_json(str(tmp_path), {})
    assert list(tokenizer_of(file).encode_each(["ab a"]).ids) == expected.input_ids
    assert expected.input_ids == [vocabulary[unit] for unit in ("a", "b", "Ġa")]


def test_directories_drawn_at_random_are_read_as_autotokenizer_reads_them() -> None:
    """A share of the fuzz of tests/soak/tokenizer_fuzz.py. Transformers refuses the same, or more is told."""
    pytest.importorskip("transformers")
    outcomes = run_cases(compare_directory, 11, 0, 60)
    assert [found for found in outcomes if found[1].kind == DIFFERS] == []
