"""fairseq's binarised text: made of text and of blocks, cut to blocks by create, converted."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import bertdata as face
from bertdata.build.binarised_part import BinarisedPart
from bertdata.examples.fairseq.blocks import make_fairseq_blocks
from bertdata.examples.mlm.reference import cut_text_blocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.shards.fairseq.lines import read_lines
from bertdata.tokens.load import find_tokenizer_file, vocabulary_of
from tests.support.commands import contents

END = 2


@pytest.fixture(scope="session")
def encoders(kit: Path) -> Path:
    folder = kit / "encoders"
    if not folder.is_dir():
        pytest.skip("the kit has no oracles for encoders")
    return folder


def md5_of_rows(rows: Iterable[list[int]]) -> str:
    text = "".join(json.dumps(list(map(int, row)), separators=(",", ":")) + "\n" for row in rows)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def rows_of(path: Path) -> list[list[int]]:
    """The lines of a .bin without their end tokens."""
    with path.open("rb") as file:
        lines = read_lines(file, str(path))
    rows = [row.tolist() for row in np.split(lines.ids, lines.ends[:-1])]
    assert all(row[-1] == END for row in rows)
    return [row[:-1] for row in rows]


def binarise(bertdata: Any, text: Path, out: Path, tokenizer: Path, *more: str) -> Path:
    outcome = bertdata("convert", text, out, "--to=fairseq", f"--tokenizer={tokenizer}", "--workers=1", *more)
    assert outcome.status == 0, outcome.err
    return out


def test_lines_of_text_are_the_kits_files(bertdata, kit, encoders, tmp_path):
    text = (kit / "results" / "eval.txt").read_bytes().splitlines(keepends=True)[:120]
    (tmp_path / "lines.txt").write_bytes(b"".join(text))
    out = binarise(
        bertdata, tmp_path / "lines.txt", tmp_path / "out", encoders / "tokenizers" / "bpe-roberta.json"
    )
    theirs = encoders / "fairseq" / "mmap"
    for name in ("train.bin", "train.idx"):
        assert (out / name).read_bytes() == (theirs / name).read_bytes()
    ours, made_up = ((place / "dict.txt").read_text().splitlines() for place in (out, theirs))
    assert [line.split(" ")[0] for line in ours] == [line.split(" ")[0] for line in made_up]
    ids = np.fromfile(out / "train.bin", "<u2")
    assert [int(line.split(" ")[1]) for line in ours] == np.bincount(ids, minlength=3072)[4:-1].tolist()
    assert bertdata("verify-md5", out).status == 0


@pytest.mark.parametrize("tokens", ["W", "B"])
def test_ids_of_either_tokeniser_are_those_that_fairseq_read(tokens, bertdata, kit, encoders, tmp_path):
    """BERT's vocabulary is renumbered: <s> <pad> </s> <unk>, all other words, <mask>."""
    files = {"W": kit / "vocab" / "bert-base-uncased.txt", "B": encoders / "tokenizers" / "bpe-roberta.json"}
    out = binarise(bertdata, kit / "results" / "eval.txt", tmp_path / "out", files[tokens])
    rows = rows_of(out / "train.bin")
    expected = json.loads((encoders / "ids.json").read_text())[f"eval__{tokens}"]
    assert (len(rows), rows.count([]), sum(map(len, rows))) == (1148, expected["blank"], expected["ids"])
    assert md5_of_rows(rows) == expected["md5"]


@pytest.mark.parametrize("tokens", ["W", "B"])
def test_a_bin_is_cut_into_fairseqs_blocks(tokens, bertdata, kit, encoders, tmp_path):
    files = {"W": kit / "vocab" / "bert-base-uncased.txt", "B": encoders / "tokenizers" / "bpe-roberta.json"}
    out = binarise(bertdata, kit / "results" / "eval.txt", tmp_path / "out", files[tokens])
    tokenizer = find_tokenizer_file(str(out / "dict.txt"))
    documents = BinarisedPart(str(out / "train.bin"), tokenizer).load(MlmSettings()).documents
    blocks = cut_text_blocks(documents, vocabulary_of(tokenizer), "complete_doc", 512)
    expected = json.loads((encoders / "fairseq" / "blocks.json").read_text())
    assert md5_of_rows(blocks) == expected[f"eval__{tokens}__complete_doc__512"]["md5"]


def test_a_data_bin_gives_every_block_of_fairseqs_modes(bertdata, kit, encoders, tmp_path):
    """The lines as they lie on disk, blank ones too, cut as TokenBlockDataset cuts them."""
    tokenizer = encoders / "tokenizers" / "bpe-roberta.json"
    path = binarise(bertdata, kit / "results" / "eval.txt", tmp_path / "out", tokenizer) / "train.bin"
    with path.open("rb") as file:
        lines = read_lines(file, str(path))
    cases = json.loads((encoders / "fairseq" / "blocks.json").read_text())
    found = {name: case for name, case in cases.items() if name.startswith("eval__B__")}
    for name, case in found.items():
        *_, breaks, length = name.split("__")
        blocks = make_fairseq_blocks(lines.ids, lines.ends, breaks, int(length))
        assert md5_of_rows(example.ids for example in blocks.examples()) == case["md5"], name
    assert len({name.split("__")[2] for name in found}) == 4


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: Any) -> Path:
    """A tokenizer.json in RoBERTa's layout, of words."""
    plain = "the lamp on tower was lit at dusk keeper slept gulls cried"
    words = ["<s>", "<pad>", "</s>", "<unk>", *plain.split(), "<mask>"]
    path = tmp_path_factory.mktemp("roberta") / "tokenizer.json"
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    special = [number for number, word in enumerate(words) if word.startswith("<")]
    added = [{"id": number, "content": words[number], **flags} for number in special]
    model = {"type": "WordLevel", "vocab": {word: n for n, word in enumerate(words)}, "unk_token": "<unk>"}
    steps = {"normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None}
    parsed = {"version": "1.0", "added_tokens": added, **steps, "decoder": None, "model": model}
    path.write_text(json.dumps(parsed))
    return path


TEXT = "the lamp was lit\nthe keeper slept\n\ngulls cried at dusk\n\n\nthe tower\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def test_every_line_is_an_item_and_blank_lines_stay(bertdata, text, roberta, tmp_path):
    out = binarise(bertdata, text, tmp_path / "out", roberta)
    words = json.loads(roberta.read_text())["model"]["vocab"]
    assert rows_of(out / "train.bin") == [
        [words[word] for word in line.split()] for line in TEXT.splitlines()
    ]
    assert sorted(path.name for path in out.iterdir()) == [
        "MD5SUMS",
        "dict.txt",
        "manifest.json",
        "train.bin",
        "train.idx",
    ]
    assert (out / "dict.txt").read_text().startswith("the 3\nlamp 1\non 0\n")


def test_a_dictionary_alone_reads_its_own_text_again(bertdata, text, roberta, tmp_path):
    out = binarise(bertdata, text, tmp_path / "out", roberta)
    again = binarise(bertdata, text, tmp_path / "again", out / "dict.txt")
    for name in ("train.bin", "train.idx", "dict.txt"):
        assert (again / name).read_bytes() == (out / name).read_bytes()


def test_bytes_are_the_same_for_any_workers_and_runs(bertdata, text, roberta, tmp_path):
    other = tmp_path / "text2.txt"
    other.write_text("gulls cried\n")
    out = tmp_path / "out"
    words = ["convert", tmp_path / "text*.txt", out, "--to=fairseq", f"--tokenizer={roberta}"]
    assert bertdata(*words, "--workers=2").status == 0
    before = contents(out)
    (out / "train.idx").unlink()
    assert bertdata(*words, "--workers=1").status == 0
    assert contents(out) == before
    assert len(rows_of(out / "train.bin")) == len(TEXT.splitlines()) + 1


def create(bertdata: Any, source: Path, out: Path, tokenizer: Path, *more: str) -> Path:
    words = ["create", source, f"--output={out}", f"--tokenizer={tokenizer}", "--objective=mlm", *more]
    outcome = bertdata(*words, "--max-seq-length=12", "--workers=1")
    assert outcome.status == 0, outcome.err
    return out


@pytest.mark.parametrize("blocks", ["none", "complete", "complete_doc", "eos"])
def test_create_makes_the_same_blocks_of_a_bin_as_of_its_text(blocks, bertdata, text, roberta, tmp_path):
    out = binarise(bertdata, text, tmp_path / "out", roberta)
    more = (f"--blocks={blocks}", "--no-masks")
    ours = create(bertdata, text, tmp_path / "ours", roberta, *more)
    theirs = create(bertdata, out / "train.bin", tmp_path / "theirs", out / "dict.txt", *more)
    rows = [[example.ids for example in face.open_dataset(place)] for place in (theirs, ours)]
    assert rows[0] == rows[1] != []
    assert bertdata("verify-md5", theirs).status == 0
    assert json.loads((theirs / "tokenizer.json").read_text())["model"]["type"] == "WordLevel"
    assert "the lamp" in bertdata("show", theirs / "train.bin.tfrecord", "--num=9").out


def test_blocks_become_items_and_come_back(bertdata, text, roberta, tmp_path):
    blocks = create(bertdata, text, tmp_path / "blocks", roberta, "--no-masks")
    out = tmp_path / "out"
    assert bertdata("convert", blocks, out, "--to=fairseq", "--workers=1").status == 0
    examples = [example.ids for example in face.open_dataset(blocks)]
    assert [example.ids for example in face.open_dataset(out)] == examples
    assert rows_of(out / "train.bin") == [ids[1:-1] for ids in examples]
    assert [example.ids for example in face.open_dataset(out, unverified=True)] == examples
    assert bertdata("verify-md5", out, "--content").status == 0
    before = contents(out)
    (out / "train.idx").write_bytes(b"")
    assert "train.idx" in bertdata("verify-md5", out).out
    outcome = bertdata("convert", blocks, out, "--to=fairseq", "--workers=1")
    assert "made train.bin" in outcome.err
    assert contents(out) == before


def test_a_directory_of_theirs_is_converted_with_its_own_dictionary(bertdata, text, roberta, tmp_path):
    theirs = binarise(bertdata, text, tmp_path / "theirs", roberta)
    out = tmp_path / "out"
    assert bertdata("convert", theirs, out, "--to=arrow", "--unverified", "--workers=1").status == 0
    assert [example.ids[1:-1] for example in face.open_dataset(out)] == [
        row for row in rows_of(theirs / "train.bin") if row
    ]
    schema = pyarrow.ipc.open_stream((out / "data-00000-of-00001.arrow").read_bytes()).schema
    assert schema.names == ["input_ids", "attention_mask"]


def test_examples_that_fairseq_cannot_hold_are_refused(
    bertdata, text, roberta, training_set, block_set, tmp_path
):
    out = tmp_path / "out"
    words = ["--to=fairseq", "--workers=1"]
    bertdata("convert", training_set, out, *words).assert_one_error(
        2, "fairseq holds blocks of ids", "not examples of the objective bert"
    )
    bertdata("convert", block_set, out, *words).assert_one_error(2, "have masks, which fairseq draws itself")
    blocks = create(bertdata, text, tmp_path / "blocks", roberta, "--no-masks")
    bertdata("convert", blocks, out, *words, "--num-shards=2").assert_one_error(
        2, "is 2, expected none: fairseq has one file"
    )
    assert not out.exists()


def test_ids_in_another_order_are_refused(bertdata, corpus, small_vocabulary_file, tmp_path):
    blocks = tmp_path / "blocks"
    words = ["create", corpus[0], f"--output={blocks}", f"--vocab={small_vocabulary_file}", "--workers=1"]
    assert bertdata(*words, "--objective=mlm", "--no-masks", "--max-seq-length=32").status == 0
    bertdata("convert", blocks, tmp_path / "out", "--to=fairseq", "--workers=1").assert_one_error(
        2, "its ids are not in fairseq's order"
    )


def test_a_directory_of_something_else_stays(bertdata, text, roberta, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    words = ["convert", text, out, "--to=fairseq", f"--tokenizer={roberta}", "--workers=1"]
    bertdata(*words).assert_one_error(2, "is not empty and no binarised lines of ours (it holds notes.txt)")
    words[1:3] = [text, tmp_path / "other"]
    bertdata(*words, "--unverified").assert_one_error(
        2, "--unverified goes with a dataset, --tokenizer with text"
    )
    bertdata(*words, "--size-limit=9").assert_one_error(2, "--size-limit goes with a dataset")
    text.write_bytes(b"the lamp\n\xff\xfe\n")
    bertdata(*words).assert_one_error(1, "text.txt: line 2: byte 0xff")


def test_a_bin_that_does_not_fit_its_tokeniser_is_refused(bertdata, text, roberta, tmp_path):
    out = binarise(bertdata, text, tmp_path / "out", roberta)
    words = ["create", out / "train.bin", f"--output={tmp_path / 'blocks'}", "--objective=mlm", "--workers=1"]
    small = tmp_path / "dict.txt"
    small.write_text("the 1\n")
    bertdata(*words, f"--tokenizer={small}").assert_one_error(
        1, "train.bin: has the id", "expected 0 to 5, those of"
    )
    data = np.fromfile(out / "train.bin", "<u2")
    data[4] = 7
    data.tofile(out / "train.bin")
    bertdata(*words, f"--tokenizer={roberta}").assert_one_error(
        1, "line 0 does not end with the id 2 of </s>"
    )
