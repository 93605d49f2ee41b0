"""Defaults of the objectives' settings: those of the programs and papers they follow, and of the pages."""

import re
from typing import Any

import pytest

from bertdata.config.settings import ExampleSettings
from bertdata.examples.objectives import find_objective
from tests.support.paths import ROOT

SHARES = {"mask_share": 0.8, "random_share": 0.1, "kept_share": 0.1}
ORIGINALS: dict[str, dict[str, Any]] = {
    # The flags of create_pretraining_data.py in MLPerf's instructions. short_seq_prob and the mask of single
    # word pieces are the script's own.
    "bert": {
        "max_seq_length": 512,
        "max_predictions_per_seq": 76,
        "random_seed": 12345,
        "dupe_factor": 10,
        "masked_lm_prob": 0.15,
        "short_seq_prob": 0.1,
        "lower_case": True,
        "whole_word_mask": False,
        **SHARES,
    },
    # The flags' defaults in ALBERT's create_pretraining_data.py.
    "sop": {
        "max_seq_length": 512,
        "max_predictions_per_seq": 20,
        "random_seed": 12345,
        "dupe_factor": 40,
        "masked_lm_prob": 0.15,
        "short_seq_prob": 0.1,
        "lower_case": True,
        "whole_word_mask": True,
        "permutation": False,
        "favor_shorter_ngram": True,
        "random_next_sentence": False,
        "ngram": 3,
        **SHARES,
    },
    # Liu et al. 2019, and --mask-prob, --random-token-prob and --leave-unmasked-prob of fairseq's masked_lm.
    "mlm": {
        "max_seq_length": 512,
        "masked_lm_prob": 0.15,
        "whole_word_mask": False,
        **SHARES,
    },
    # Joshi et al. 2020.
    "span": {
        "max_seq_length": 512,
        "masked_lm_prob": 0.15,
        "shortest_span": 1,
        "longest_span": 10,
        "geometric_p": 0.2,
        "replacement": "span",
        "endpoints": "external",
        **SHARES,
    },
    # build_pretraining_dataset.py of ELECTRA. Its length, 128, is that of its small model, and not ours.
    "electra": {"lower_case": True, "keep_accents": False},
}
DOCUMENTED = re.compile(r"((?:`--[\w-]+`(?:, )?)+) \(([^)]+)\)")


def make_defaults(name: str) -> ExampleSettings:
    return find_objective(name).settings_type()


@pytest.mark.parametrize("name", ORIGINALS)
def test_defaults_are_those_of_the_original(name):
    settings = make_defaults(name)
    assert settings.objective == name
    assert {key: getattr(settings, key) for key in ORIGINALS[name]} == ORIGINALS[name]


def test_the_page_of_formats_tells_the_defaults():
    """A row of its tables begins ``| `--shortest-span`, `--longest-span` (1, 10) |``."""
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    counts = {}
    for section in page.split("\n### ")[1:]:
        name = section.partition(":")[0]
        if name not in ORIGINALS:
            continue
        settings, counts[name] = make_defaults(name), 0
        for row in re.findall(r"^\| (`--.*?) \|", section, re.MULTILINE):
            for flags, values in DOCUMENTED.findall(row):
                keys = [flag.replace("-", "_") for flag in re.findall(r"`--([\w-]+)`", flags)]
                assert [str(getattr(settings, key)) for key in keys] == values.replace("`", "").split(", ")
                counts[name] += len(keys)
    assert counts["mlm"] > 0
    assert counts["sop"] > 0
    assert counts["span"] > 0
