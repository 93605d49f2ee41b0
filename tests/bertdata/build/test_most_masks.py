"""A default number of masks follows a short sequence length, and only a typed one is refused."""

from pathlib import Path

import pytest

import bertdata
from bertdata.build.plan import choose_settings
from bertdata.errors import SettingsError


def most_masks(recipe: str | None = None, phase: int | None = None, **changes: object) -> list[int]:
    _, settings = choose_settings(recipe, phase, changes)
    return [one.layout.max_predictions_per_seq for one in settings.values()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # the pairs of the originals stay as they are
        ({"recipe": "mlperf"}, [76]),
        ({"recipe": "google"}, [20]),
        ({"recipe": "nvidia"}, [20, 80]),
        ({"recipe": "graphcore"}, [20, 58]),
        ({"max_seq_length": 128}, [76]),
        ({"max_seq_length": 76}, [76]),
        # 15 % of the ids, rounded, are the masks of a full example
        ({"max_seq_length": 75}, [11]),
        ({"max_seq_length": 32}, [5]),
        ({"max_seq_length": 5}, [1]),
        ({"max_seq_length": 32, "masked_lm_prob": 0.5}, [16]),
        ({"max_seq_length": 32, "masked_lm_prob": 0.0}, [1]),
        ({"recipe": "google", "max_seq_length": 16}, [2]),
        ({"recipe": "nvidia", "phase": 1, "max_seq_length": 16}, [2]),
        ({"recipe": "graphcore", "phase": 2, "max_seq_length": 40, "remask": True}, [6]),
        ({"objective": "sop", "max_seq_length": 12}, [2]),
        ({"objective": "sop", "max_seq_length": 12, "permutation": True}, [4]),
        ({"objective": "mlm", "max_seq_length": 32}, [5]),
    ],
)
def test_the_default_is_the_recipes_or_the_masks_of_a_full_example(given, expected):
    assert most_masks(**given) == expected


@pytest.mark.parametrize("masks", [33, 76])
def test_a_typed_number_above_the_length_is_refused(masks):
    with pytest.raises(SettingsError, match=rf"max_predictions_per_seq is {masks}, expected 1 to max_seq_"):
        most_masks(max_seq_length=32, max_predictions_per_seq=masks)


def test_the_examples_are_those_of_the_number_typed(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    settings = {"vocab": small_vocabulary_file, "max_seq_length": 32, "dupe_factor": 1}
    bertdata.create(corpus[0], tmp_path / "default", **settings)
    bertdata.create(corpus[0], tmp_path / "typed", max_predictions_per_seq=5, **settings)
    assert (tmp_path / "default" / "MD5SUMS").read_bytes() == (tmp_path / "typed" / "MD5SUMS").read_bytes()
