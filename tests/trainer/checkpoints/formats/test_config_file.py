"""The longest sequence that another program's tokeniser file tells."""

import json
from pathlib import Path

import pytest

from trainer.checkpoints.formats.config_file import read_exported_length


@pytest.mark.parametrize(
    ("value", "expected"),
    [(512, 512), (1, 1), (8192, 8192), (10**30, None), (0, None), (-1, None), (True, None), ("512", None)],
)
def test_a_length_is_a_number_that_a_sequence_may_have(
    tmp_path: Path, value: object, expected: int | None
) -> None:
    """transformers writes 10**30 where it does not know the length."""
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": value}))
    (tmp_path / "model.safetensors").touch()
    assert read_exported_length(str(tmp_path)) == expected
    assert read_exported_length(str(tmp_path / "model.safetensors")) == expected


def test_without_the_file_or_the_key_the_length_is_not_known(tmp_path: Path) -> None:
    assert read_exported_length(str(tmp_path)) is None
    (tmp_path / "tokenizer_config.json").write_text("{}")
    assert read_exported_length(str(tmp_path)) is None
