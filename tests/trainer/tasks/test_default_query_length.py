"""The default of max_query_length: 64 tokens, or as many as a given max_seq_length has room for."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bertdata.io.manifest_file import MANIFEST_NAME
from tests.support.fine_tuning import QUICK, squad_file
from tests.support.training_runs import refuse
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.tasks.squad.data import SquadData
from trainer.tasks.squad.features import SquadSettings, choose_query_length

FITTED = "trainer: max_query_length is 28 instead of 64, the most that max_seq_length 32 has room for\n"


def read_query_length(dataset: Path) -> int:
    settings = json.loads((dataset / MANIFEST_NAME).read_text(encoding="utf-8"))["settings"]
    found: int = settings["objective"]["max_query_length"]
    return found


@pytest.mark.parametrize(
    ("length", "separators", "expected"),
    [(384, 1, 64), (68, 1, 64), (67, 1, 63), (32, 1, 28), (32, 2, 27), (5, 1, 1), (4, 1, 1)],
)
def test_the_default_leaves_room_for_a_token_of_the_context(length, separators, expected):
    assert choose_query_length(length, separators) == expected
    if length > 4:
        SquadSettings(max_seq_length=length, max_query_length=expected).check_room(separators)


def test_features_of_short_sequences_have_the_longest_questions_that_fit(
    trainer: Any, small_vocabulary_file: str, tmp_path: Path
) -> None:
    source = squad_file(tmp_path / "train.json", 6)
    words = ("features", "--task=squad", source, f"--vocab={small_vocabulary_file}", "--training")
    short = trainer(*words, "--max-seq-length=32", f"--dataset={tmp_path / 'short'}")
    assert short.status == 0, short.err
    assert short.err.count(FITTED) == 1
    assert read_query_length(tmp_path / "short") == 28
    usual = trainer(*words, "--max-seq-length=68", f"--dataset={tmp_path / 'usual'}")
    assert usual.status == 0
    assert "max_query_length" not in usual.err
    assert read_query_length(tmp_path / "usual") == 64
    given = trainer(*words, "--max-seq-length=32", "--max-query-length=29", f"--dataset={tmp_path / 'given'}")
    refuse(given, 2, "max_query_length is 29, expected at most max_seq_length - 4 (28)")


def test_a_fine_tuning_on_short_sequences_has_the_longest_questions_that_fit(
    trainer: Any, pretrained: Path, tmp_path: Path
) -> None:
    data, run = squad_file(tmp_path / "train.json", 6), tmp_path / "run"
    start = ("finetune", "--task=squad", f"--start-from-ckpt={pretrained}", f"--output-dir={run}", *QUICK)
    files = (f"--train-file={data}", f"--eval-file={data}", "--steps=2", "--eval-every=0", "--batch-size=4")
    trained = trainer(*start, *files, "--max-seq-length=32")
    assert trained.status == 0, trained.err
    assert trained.err.count(FITTED) == 1
    assert {read_query_length(path) for path in (run / "features").iterdir()} == {28}
    # The run records that nobody gave the key, so that another length can be given later.
    assert read_state(find_checkpoints(str(run))[2]).config["max_query_length"] is None
    again = trainer("evaluate", f"--output-dir={run}", f"--eval-file={data}", "--max-seq-length=24")
    assert again.status == 0, again.err
    assert "max_query_length is 20 instead of 64" in again.err
    context = "Anna went to the bridge . Later Peter saw the tower ."
    assert trainer("predict", run, "Where was Anna ?", "--context", context).status == 0
    run = tmp_path / "given"
    given = ("--max-seq-length=32", "--max-query-length=64", f"--output-dir={run}")
    refuse(trainer(*start, *files, *given), 2, "max_query_length is 64, expected at most max_seq_length - 4")


@pytest.mark.parametrize(
    ("length", "fitting"), [(3, None), (4, None), (5, 1), (67, 63), (68, None), (384, None)]
)
def test_a_line_is_said_only_where_fewer_tokens_fit_and_one_at_least(
    length: int, fitting: int | None
) -> None:
    vocabulary: Any = SimpleNamespace(pair_separators=1)
    given = {"max_seq_length": length, "max_query_length": None}
    found, lines = SquadData().choose_feature_defaults(given, vocabulary)
    assert found == ({} if fitting is None else {"max_query_length": fitting})
    assert len(lines) == len(found)
