"""Progress within a part, as a task tells of it while its shards are made."""

from itertools import pairwise
from pathlib import Path

import pytest

import bertdata
from bertdata.io import worker_process
from bertdata.shards import write
from bertdata.steps.progress import StepProgress
from tests.support.commands import contents


@pytest.mark.parametrize("recipe", ["mlperf", "habana"])  # one phase, two
def test_a_single_part_s_progress_moves_on_while_its_shards_are_made(
    recipe: str,
    corpus: list[Path],
    small_vocabulary_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_process, "REPORT_SECONDS", 0)
    monkeypatch.setattr(write, "BATCH", 16)
    told: list[StepProgress] = []
    bertdata.create(
        corpus[:1],
        tmp_path / "out",
        vocab=small_vocabulary_file,
        recipe=recipe,
        workers=1,
        progress=told.append,
    )
    size = corpus[0].stat().st_size
    amounts = [one.done for one in told]
    assert amounts == sorted(amounts)
    assert (amounts[0], amounts[-1]) == (0, size)
    between = sorted({amount for amount in amounts if 0 < amount < size})
    assert len(between) > 20
    steps = [after - before for before, after in pairwise(between)]
    assert max(steps) < size / 3
    assert [one.finished for one in told if one.finished] == [told[-1].finished]


def test_what_is_done_never_falls_when_one_of_several_parts_is_finished(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "REPORT_SECONDS", 0)  # workers are forked, and have it too
    told: list[int] = []
    settings = {"vocab": small_vocabulary_file, "dupe_factor": 2}
    bertdata.create(
        corpus, tmp_path / "out", **settings, workers=2, progress=lambda now: told.append(now.done)
    )
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0, sum(part.stat().st_size for part in corpus))
    assert len(set(told)) > len(corpus) + 1
    bertdata.create(corpus, tmp_path / "undisturbed", **settings, workers=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")
