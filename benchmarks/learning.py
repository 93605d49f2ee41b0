"""Check that a tiny model learns in a few CPU minutes, by its accuracy at masked words of unseen articles.

The kit's text is used: two parts to train on, and six articles withheld from them. The shards have 128 ids
and 20 masks per example, with BERT's published vocabulary. The configuration is ``tiny``, with one worker.
The accuracy is printed next to a baseline: the accuracy of a model that always predicts the token that is
masked most often in training.
"""

import csv
import sys
import tempfile
from pathlib import Path

from benchmarks import corpus, measure

WANTED = 2


def create_shards(parts: list[Path], output: Path) -> None:
    """Make shards of the parts."""
    words = ["create", *map(str, parts), "--output", str(output), "--vocab", str(corpus.find_vocabulary())]
    measure.measure_command(sys.executable, "-m", "bertdata", *words, "--recipe", "nvidia", "--phase", "1")


def run_training(place: Path) -> measure.Cost:
    """Train and evaluate with the trainer's command and return its cost."""
    data = ["--train-data", str(place / "train"), "--eval-data", str(place / "eval")]
    how = ["--config", "tiny", "--checkpoint-every", "0"]
    words = [sys.executable, "-m", "trainer", "pretrain", *how, *data, "--output-dir", str(place / "run")]
    return measure.measure_command(*words)


def main() -> None:
    """Train, evaluate, and print the accuracy."""
    kit = corpus.find_kit()
    if kit is None:
        sys.exit("benchmarks.learning: no reference kit; set BERTDATA_REFERENCE_KIT")
    results = kit / "results"
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        create_shards(sorted(results.glob("part-*")), place / "train")
        create_shards([results / "eval.txt"], place / "eval")
        cost = run_training(place)
        with (place / "run" / "evaluation.csv").open(encoding="utf-8") as file:
            *_, last = csv.DictReader(file)
    accuracy, guess = float(last["masked_lm_accuracy"]), float(last["most_frequent_accuracy"])
    print(f"configuration tiny, {last['step']} updates, {last['trained']} examples, {cost.cpu:.0f} CPU s, "
          f"{cost.wall:.0f} s; evaluated on {last['examples']} examples of withheld articles:")  # fmt: skip
    print(f"  masked-word accuracy {accuracy:.4f}, always guessing the most frequent token {guess:.4f}, "
          f"ratio {accuracy / guess:.2f} (wanted: {WANTED})")  # fmt: skip


if __name__ == "__main__":
    main()
