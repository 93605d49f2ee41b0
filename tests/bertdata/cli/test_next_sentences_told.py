"""``create`` says what share of next sentences is random, and warns where documents are single sentences."""

from pathlib import Path

import pytest

from bertdata import open_dataset
from tests.support.commands import SMALL, Program


@pytest.fixture
def run(bertdata: Program, small_vocabulary_file: Path, tmp_path: Path):
    def call(text: str, *flags: str) -> tuple[str, str]:
        (tmp_path / "part.txt").write_text(text)
        common = ("--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL)
        outcome = bertdata("create", tmp_path / "part.txt", *common, *flags)
        assert outcome.status == 0, outcome.err
        return outcome.out.splitlines()[-1], outcome.err

    return call


TEXT = "".join(f"It was sentence {n}.\nThen there was one more.\nAnd the end.\n\n" for n in range(60))


@pytest.mark.parametrize("flags", [(), ("--shuffle", "global", "--num-shards", "2"), ("--bin-size", "16")])
def test_the_last_line_says_the_share_of_random_next_sentences(flags, run, tmp_path: Path) -> None:
    last, errors = run(TEXT, *flags)
    labels = [example.next_label for example in open_dataset(tmp_path / "out")]
    share = sum(int(label) for label in labels) / len(labels)
    assert last.endswith(f", {share:.1%} of next sentences random")
    assert "single sentence" not in errors


def test_shards_that_were_kept_and_other_objectives_say_none(run) -> None:
    run(TEXT)
    assert "random" not in run(TEXT)[0]


def test_other_objectives_say_none(run) -> None:
    assert "random" not in run(TEXT, "--objective", "sop")[0]


@pytest.mark.parametrize(("single", "warned"), [(53, False), (55, True), (60, True)])
def test_more_than_nine_of_ten_single_sentences_are_told(single: int, warned: bool, run) -> None:
    text = "It was old.\n\n" * single + "It was old.\nIt was new.\n\n" * (60 - single)
    _, errors = run(text)
    assert ("a single sentence" in errors) == warned
    if warned:
        assert "bertdata segment" in errors
        assert "every document" in errors if single == 60 else f"{single / 60:.1%} of the documents" in errors
