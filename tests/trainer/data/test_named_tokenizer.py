"""The casing of the tokeniser that a user names."""

from pathlib import Path

import pytest

from bertdata.errors import UsageError
from bertdata.tokens.files import VocabularyFile
from tests.support.tokenizer_files import train_bpe
from trainer.data.named_tokenizer import change_casing, find_named_tokenizer


@pytest.mark.parametrize("given", [None, True, False])
def test_a_vocabulary_lower_cases_text_unless_told_otherwise(tmp_path: Path, given: bool | None) -> None:
    path = tmp_path / "words.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n")
    file = change_casing(find_named_tokenizer(str(path)), given)
    assert isinstance(file, VocabularyFile)
    assert file.lower_case == (given is not False)


@pytest.mark.parametrize("given", [True, False])
def test_a_tokenizer_json_determines_the_casing_itself(tmp_path: Path, given: bool) -> None:
    file = find_named_tokenizer(str(train_bpe(tmp_path / "tokenizer.json", ["some words"])))
    assert change_casing(file, None) == file
    with pytest.raises(
        UsageError, match=r"tokenizer\.json: a tokenizer\.json says itself how text is read; "
    ):
        change_casing(file, given)
