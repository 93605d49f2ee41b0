"""bertdata.train_vocab: the file of the command, its numbers, and errors."""

import json

import pytest

import bertdata
from bertdata.errors import SettingsError, UsageError
from tests.support.commands import Program

pytest.importorskip("tokenizers")

TEXTS = ["The old mill stands at the edge of the town.", "Der Müller heißt Jakob."] * 20


@pytest.mark.parametrize(
    ("name", "flags"), [("vocab.txt", {"size": 60}), ("t.json", {"size": 300, "kind": "bpe"})]
)
def test_the_function_writes_the_files_of_the_command(name, flags, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    seen = []
    made = bertdata.train_vocab(tmp_path / "text.txt", tmp_path / name, **flags, progress=seen.append)
    (tmp_path / "other").mkdir()
    words = [f"--{flag}={value}" for flag, value in flags.items()]
    done = Program(capsys)(
        "train-vocab", tmp_path / "text.txt", "--output", tmp_path / "other" / name, *words
    )
    assert done.status == 0
    for file in (name, f"{name}.manifest.json"):
        assert (tmp_path / file).read_bytes() == (tmp_path / "other" / file).read_bytes()
    assert (made.path, made.warnings) == (str(tmp_path / name), ())
    assert f"{name}: {made.tokens} tokens\n" in done.out
    assert made.manifest.dump() == (tmp_path / f"{name}.manifest.json").read_bytes()
    assert seen[0].stage == "reading"
    assert seen[-1].stage.startswith("learning from ")


def test_records_in_memory_give_the_vocabulary_of_their_file(tmp_path):
    records = bertdata.Records(TEXTS)
    bertdata.train_vocab(records, tmp_path / "a.txt", size=60)
    bertdata.train_vocab(records.write(tmp_path), tmp_path / "b.txt", size=60)
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()
    bertdata.train_vocab(
        [{"t": text, "u": "x"} for text in TEXTS], tmp_path / "c.txt", size=60, text_field="t"
    )
    assert (tmp_path / "c.txt").read_bytes() == (tmp_path / "a.txt").read_bytes()


def test_special_tokens_are_in_the_file(tmp_path):
    bertdata.train_vocab(bertdata.Records(TEXTS), tmp_path / "t.json", size=300, kind="bpe", special="[CITY]")
    added = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["added_tokens"]
    assert "[CITY]" in {token["content"] for token in added}


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"size": 0}, SettingsError, "size is 0, expected 1 or more"),
        (
            {"size": 60, "kind": "words"},
            UsageError,
            "kind is 'words', expected one of wordpiece, bpe",
        ),
        ({"size": 300, "kind": "bpe"}, UsageError, "makes a tokenizer.json: end the name"),
        ({"size": 60, "special": ["mask=<m>"]}, UsageError, "knows its roles by BERT's names"),
        ({"size": 60, "keep_accents": True, "lower_case": False}, UsageError, "goes with lower_case=True"),
    ],
)
def test_wrong_arguments_are_told_before_a_file_is_written(given, error, said, tmp_path):
    with pytest.raises(error) as caught:
        bertdata.train_vocab(bertdata.Records(TEXTS), tmp_path / "vocab.txt", **given)
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []
