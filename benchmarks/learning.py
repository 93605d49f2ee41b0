"""Check that a tiny model learns within a few CPU minutes.

The measure is the accuracy at masked words, in articles that the model is not trained on. The model is
trained on two parts of the kit's text, and six articles are held out from them. The shards have 128 ids and
20 masks per example, with BERT's published vocabulary. The configuration is ``tiny``, with one worker.

The accuracy is printed next to a baseline, which is the accuracy of always predicting the token that is
masked most often in the training data.
"""

import csv
import sys
import tempfile
from pathlib import Path

from benchmarks import corpus, measure

WANTED = 2


def create_shards(parts: list[Path], output: Path) -> None:
    """Make shards of the text parts in the directory ``output``."""
    words = ["create", *map(str, parts), "--output", str(output), "--vocab", str(corpus.find_vocabulary())]
    measure.measure_command(sys.executable, "-m", "bertdata", *words, "--recipe", "nvidia", "--phase", "1")


def run_training(place: Path) -> measure.Cost:
    """Train and evaluate with the trainer's command, and return the command's cost."""
    data = ["--train-data", str(place / "train"), "--eval-data", str(place / "eval")]
    how = ["--config", "tiny", "--checkpoint-every", "0"]
    words = [sys.executable, "-m", "trainer", "pretrain", *how, *data, "--output-dir", str(place / "run")]
    return measure.measure_command(*words)


def main() -> None:
    """Train and evaluate, and print the accuracy next to the baseline."""
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
