"""fairseq's masks beside what its head and v0.12.2 made of the kit's text, by the twin and by the kernel."""

import re
from typing import Any

import numpy as np
import pytest

from bertdata.errors import SettingsError
from bertdata.examples.dynamic_masking.masker import Draws
from bertdata.examples.fairseq.blocks import make_fairseq_blocks
from bertdata.examples.fairseq.load_masker import make_fairseq_masker
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.records import ShardLayout, Vocabulary
from tests.support.encoders_kit import END, Lines, dictionary_words, md5_of_rows, oracle

PAD = 1
FILES = {"fairseq": "masks_pcg64.json", "fairseq-0.12": "masks_mt19937.json"}
SETTINGS = {
    "mask_prob": "masked_lm_prob",
    "leave_unmasked_prob": "kept_share",
    "random_token_prob": "random_share",
}


def vocabulary_of(words: list[str], kind: str) -> Vocabulary:
    special = {"cls": 0, "pad": PAD, "sep": 2, "unk": 3, "mask": len(words) - 1}
    return Vocabulary(
        name="dictionary",
        md5="",
        words=words,
        continues_word=None,
        replacements=tuple(range(len(words))),
        kind=kind,
        **special,
    )


def blocks_of(lines: Lines, breaks: str, length: int) -> list[list[int]]:
    """fairseq's blocks, with the blank lines, and with lines that are too long left whole."""
    ended = [[*line, END] for line in lines]
    ids = np.array([token for line in ended for token in line], np.uint16)
    made = make_fairseq_blocks(ids, np.cumsum(list(map(len, ended))), breaks, length)
    return [one.ids for one in made.examples()]


def settings_of(name: str) -> tuple[dict[str, int], MaskingSettings]:
    """seed and epoch, and the settings, by the end of a case's name."""
    numbers = {key: int(re.search(rf"{key}(\d+)", name)[1]) for key in ("seed", "epoch")}
    shares = {"kept_share": 0.1, "random_share": 0.1}
    shares |= {
        ours: float(found[1])
        for key, ours in SETTINGS.items()
        if (found := re.search(rf"{key}([\d.]+)", name))
    }
    mask_share = 1 - shares["kept_share"] - shares["random_share"]
    settings = MaskingSettings(
        max_predictions_per_seq=0, mask_share=mask_share, whole_word_mask="__whole" in name, **shares
    )
    return numbers, settings


def masked_rows(
    rows: list[list[int]],
    vocabulary: Vocabulary,
    release: str,
    settings: MaskingSettings,
    engine: Any,
    **numbers: int,
) -> tuple[list[list[int]], list[list[int]]]:
    """Source and target rows as fairseq has them."""
    layout = ShardLayout(objective="mlm", max_seq_length=max(map(len, rows)))
    masker = make_fairseq_masker(vocabulary, settings, layout, release, engine=engine)
    lengths = np.array(list(map(len, rows)), np.int32)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    ids = np.array([token for row in rows for token in row], np.int32)
    keys, own = masker.streams(
        numbers["seed"], numbers["epoch"], "", 0, np.arange(len(rows), dtype=np.uint64)
    )
    draws = Draws(keys=keys, numbers=own, rates=np.full(len(rows), settings.masked_lm_prob))
    made = masker.mask(ids, starts, lengths, draws)
    targets = np.full(len(ids), PAD)
    used = np.arange(made.positions.shape[1]) < made.counts[:, np.newaxis]
    targets[(starts[:, np.newaxis] + made.positions)[used]] = made.labels[used]
    bounds = [
        slice(start, start + length) for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
    return [ids[own].tolist() for own in bounds], [targets[own].tolist() for own in bounds]


@pytest.mark.parametrize("engine", ["native", pytest.param("python", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("release", FILES)
def test_every_mask_is_fairseqs(release, engine, kit, lines, encoders):
    cases = oracle(encoders / "fairseq" / FILES[release])
    for name, wanted in cases.items():
        text, tokens, breaks, length, *_ = name.split("__")
        words = dictionary_words(kit, tokens)
        vocabulary = vocabulary_of(words, "wordpiece" if tokens == "W" else "bpe")
        rows = blocks_of(lines[f"{text}__{tokens}"], breaks, int(length))
        numbers, settings = settings_of(name)
        sources, targets = masked_rows(rows, vocabulary, release, settings, engine, **numbers)
        assert (len(rows), sum(map(len, rows))) == (wanted["examples_n"], wanted["tokens"]), name
        assert md5_of_rows(sources) == wanted["source_md5"], name
        assert md5_of_rows(targets) == wanted["target_md5"], name
    assert len(cases) == 19


@pytest.mark.thorough
def test_every_block_is_fairseqs(lines, encoders):
    cases = oracle(encoders / "fairseq" / "blocks.json")
    for case, wanted in cases.items():
        text, tokens, breaks, length = case.split("__")
        rows = blocks_of(lines[f"{text}__{tokens}"], breaks, int(length))
        assert (len(rows), sum(map(len, rows))) == (wanted["blocks"], wanted["tokens"]), case
        assert md5_of_rows(rows) == wanted["md5"], case
    assert len(cases) == 36


WRITTEN = [[5, 6], [], [7], [8, 9, 10, 11, 12], [13], [], [], [14, 15, 16]]
"""Lines without their end token. An empty one is a blank line."""


@pytest.mark.parametrize(
    ("breaks", "blocks"),
    [
        # Every 5 ids, wherever a line ends.
        ("none", [[5, 6, 2, 2, 7], [2, 8, 9, 10, 11], [12, 2, 13, 2, 2], [2, 14, 15, 16, 2]]),
        # As many whole lines as fit into 5 ids. Blank lines are lines, and a longer line is left whole.
        ("complete", [[5, 6, 2, 2], [7, 2], [8, 9, 10, 11, 12, 2], [13, 2, 2, 2], [14, 15, 16, 2]]),
        # A blank line ends the block and is dropped.
        ("complete_doc", [[5, 6, 2], [7, 2], [8, 9, 10, 11, 12, 2], [13, 2], [14, 15, 16, 2]]),
        # Each line, also a blank one.
        ("eos", [[5, 6, 2], [2], [7, 2], [8, 9, 10, 11, 12, 2], [13, 2], [2], [2], [14, 15, 16, 2]]),
    ],
)
def test_lines_are_cut_as_fairseqs_program_says(breaks, blocks):
    """_get_slice_indices_fast of fairseq/data/token_block_utils_fast.pyx, followed by hand."""
    assert blocks_of(WRITTEN, breaks, 6) == [[0, *block] for block in blocks]


def test_blank_lines_alone_are_no_blocks_of_documents_and_blocks_of_other_modes():
    blank: list[list[int]] = [[], [], []]
    found = {breaks: blocks_of(blank, breaks, 6) for breaks in ("none", "complete", "complete_doc", "eos")}
    assert found == {
        "none": [[0, 2, 2, 2]],
        "complete": [[0, 2, 2, 2]],
        "complete_doc": [],
        "eos": [[0, 2], [0, 2], [0, 2]],
    }


def test_blocks_that_cannot_be_are_refused():
    with pytest.raises(
        SettingsError, match="blocks is 'all', expected one of none, complete, complete_doc, eos"
    ):
        make_fairseq_blocks(np.array([5, 2]), np.array([2]), "all", 8)
    with pytest.raises(SettingsError, match="tokens_per_sample is 1, expected 2 or more"):
        make_fairseq_blocks(np.array([5, 2]), np.array([2]), "eos", 1)
    assert not len(make_fairseq_blocks(np.zeros(0, np.int64), np.zeros(0, np.int64), "none", 8))
