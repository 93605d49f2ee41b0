"""The kit's texts binarised as fairseq does, opened as its blocks and masked as its dataset masks them."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertdata
from bertdata.errors import SettingsError, ShardError
from bertdata.shards.fairseq.lines import LinesWriter
from tests.support.encoders_kit import END, byte_pair_file, md5_of_rows, oracle, text_lines

FILES = {"fairseq": "masks_pcg64.json", "fairseq-0.12": "masks_mt19937.json"}


def binarise(lines: list[list[int]], place: Path) -> Path:
    """The lines as ``train.bin`` and ``train.idx``."""
    ended = [[*line, END] for line in lines]
    ids = np.array([token for line in ended for token in line], np.uint16)
    sink = BytesIO()
    writer = LinesWriter(sink=sink, kind="u2")
    writer.write(ids, np.cumsum(list(map(len, ended))))
    (place / "train.bin").write_bytes(sink.getvalue())
    (place / "train.idx").write_bytes(writer.index())
    return place / "train.bin"


@pytest.fixture(scope="module")
def binarised(kit, tmp_path_factory) -> Path:
    """``eval`` by the byte-level BPE."""
    if not (kit / "encoders").is_dir():
        pytest.skip("the kit has no oracles for encoders")
    return binarise(text_lines(kit, "eval", "B"), tmp_path_factory.mktemp("bin"))


def targets_of(one: Any) -> list[int]:
    """An example's targets as fairseq has them, padding where there is none."""
    found = [1] * len(one.ids)
    for position, label in zip(one.positions, one.labels, strict=True):
        found[position] = label
    return found


@pytest.mark.parametrize("breaks", ["none", "complete", "complete_doc", "eos"])
def test_blocks_are_fairseqs_in_its_order(breaks, kit, binarised):
    cases = oracle(kit / "encoders" / "fairseq" / "blocks.json")
    for length in (64, 512):
        wanted = cases.get(f"eval__B__{breaks}__{length}")
        if wanted:
            data = bertdata.open_dataset(str(binarised), blocks=breaks, tokens_per_sample=length)
            assert (len(data), data.layout.max_seq_length) == (wanted["blocks"], wanted["longest"])
            assert md5_of_rows([one.ids for one in data]) == wanted["md5"]


@pytest.mark.parametrize("release", FILES)
@pytest.mark.parametrize("case", ["none__128__seed7__epoch1__whole", "complete_doc__64__seed1__epoch1"])
def test_masks_of_a_binarised_text_are_fairseqs(case, release, kit, binarised):
    wanted = oracle(kit / "encoders" / "fairseq" / FILES[release])[f"eval__B__{case}"]
    breaks, length, seed, epoch, *whole = case.split("__")
    data = bertdata.open_dataset(str(binarised), blocks=breaks, tokens_per_sample=int(length))
    numbers = {"seed": int(seed.removeprefix("seed")), "epoch": int(epoch.removeprefix("epoch"))}
    masked = data.masked(masking=release, vocab=byte_pair_file(kit), whole_word_mask=bool(whole), **numbers)
    examples = list(masked)
    assert md5_of_rows([one.ids for one in examples]) == wanted["source_md5"]
    assert md5_of_rows(map(targets_of, examples)) == wanted["target_md5"]


def test_what_is_no_binarised_text_is_refused(binarised, tmp_path):
    with pytest.raises(SettingsError, match="blocks is 'all', expected one of none, complete"):
        bertdata.open_dataset(str(binarised), blocks="all")
    with pytest.raises(SettingsError, match="blocks are cut of one .bin, found 2 paths"):
        bertdata.open_dataset([str(binarised), str(binarised)], blocks="eos")
    other = tmp_path / "train.bin"
    other.write_bytes(binarised.read_bytes())
    with pytest.raises(ShardError, match=r"train\.idx is missing"):
        bertdata.open_dataset(str(other), blocks="eos")
