"""The command line of a tiny run with two phases."""

from pathlib import Path
from shlex import split

from tests.support.training_runs import MODEL


def of_each_phase(first: object, second: object) -> list[str]:
    return [f"--train-data-phase1={first}", f"--train-data-phase2={second}"]


def both(training_set: Path, longer_set: Path, place: Path, *more: object) -> list[str]:
    """Return Habana's command with a tiny model on the CPU: 3 updates in phase 1, then 4 in phase 2."""
    shape = "--config habana_large --device cpu --precision fp32 --max_seq_length 64 96 --log-every 1"
    sizes = "--max_predictions_per_seq 10 15 --vocab_size 2000 --batch_size 4 2 --global_batch_size 8 8"
    rates = "--steps 3 4 --warmup 0 --base_learning_rate 6e-3 4e-3 --checkpoint-every 2 --no-progress-bar"
    data = [*of_each_phase(training_set, longer_set), "--output-dir", place]
    return ["pretrain", *split(f"{shape} {sizes} {rates}"), *MODEL, *map(str, [*data, *more])]
