"""Recorded trainings of the originals, made again by the product: the first updates lose the same.

``python -m benchmarks.trajectories`` makes all updates.
"""

import dataclasses

import pytest

from benchmarks.trajectories import __main__ as program
from benchmarks.trajectories.recorded import read_run
from benchmarks.trajectories.training import train_again

PARTED = {
    "google-run_classifier": 8,
    "habana-nvlamb": 4,
    "habana-tf-adam": 6,
    "habana-tf-lamb": 12,
    "mlperf-lamb-2-replicas": 12,
    "mlperf-lamb-steps_per_update-4": 4,
    "modernbert-packed-composer": 6,
    "nvidia-run_glue-bertadam": 4,
    "roberta-fairseq": 12,
    "transformers-3.0.2-run_glue": 75,
    "transformers-5.23-trainer": 4,
}
"""Updates by which the losses parted, where the door did not give the program's settings."""


@pytest.mark.parametrize("name", PARTED)
def test_a_door_loses_what_its_program_lost(kit, name):
    root = kit / "trajectories"
    run = read_run(root / "runs" / f"{name}.json", root)
    updates = PARTED[name]
    assert train_again(run, root, updates).find_largest_difference(updates) < 1e-5


def test_a_run_that_parts_ends_with_status_1(kit, monkeypatch, capsys):
    root = kit / "trajectories"
    path = root / "runs" / "transformers-5.23-trainer.json"
    run = read_run(path, root)
    other = dataclasses.replace(run, losses=[*run.losses[:2], run.losses[2] + 2e-4, *run.losses[3:]])
    monkeypatch.setattr(program, "read_run", lambda *_: other)
    monkeypatch.setattr(program, "train_again", lambda found, place: train_again(found, place, 3))
    monkeypatch.setattr("sys.argv", ["trajectories", "--runs", str(path.parent), "--only", path.stem])
    with pytest.raises(SystemExit, match="1 of the runs differ"):
        program.main()
    assert "fell" in capsys.readouterr().out
