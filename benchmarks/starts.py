"""Time and memory of starting commands: printing help, making one update, making one small shard.

usage: python -m benchmarks.starts [--before FOLDER]

FOLDER: a checkout of another commit, with its kernels built. The commands of both checkouts run alternately.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.corpus import ROOT
from benchmarks.measure import Cost, measure_command

ROUNDS = 5


def measure_start(tree: Path, words: Sequence[str]) -> Cost:
    """Run ``python -m`` with these words in a checkout, and return the cost.

    tree: directory of the checkout.
    """
    return measure_command("env", f"--chdir={tree}", sys.executable, "-m", *words)


def print_comparison(trees: Mapping[str, Path], title: str, words: Sequence[str], folder: Path) -> None:
    """Print the least cost of a command in each checkout. The checkouts run alternately.

    trees: directories of the checkouts, by name.
    title: description of the command.
    words: the command. In it, OUTPUT is replaced with a directory that does not exist, and SHARDS with the
        dataset of the checkout.
    """
    outputs = (str(folder / f"{len(words)}-{number}") for number in count())
    costs: dict[str, list[Cost]] = {name: [] for name in trees}
    for _ in range(ROUNDS):
        for name, tree in trees.items():
            places = {"OUTPUT": next(outputs), "SHARDS": str(folder / name)}
            given = [reduce(lambda word, place: word.replace(*place), places.items(), word) for word in words]
            costs[name].append(measure_start(tree, given))
    for name, found in costs.items():
        wall, cpu, memory = (
            min(getattr(cost, field) for cost in found) for field in ("wall", "cpu", "megabytes")
        )
        print(f"{title}, {name}: {wall:.2f} s, {cpu:.2f} s of processor, {memory:.0f} MB", flush=True)


def main() -> None:
    """Print the cost of starting each command, in one checkout or two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--before", type=Path, help="checkout of another commit")
    before = parser.parse_args().before
    trees = {"before": before.resolve(), "now": ROOT} if before else {"now": ROOT}
    parts = [str(path) for path in sorted((ROOT / "golden" / "corpus").glob("part-*"))]
    vocab = str(ROOT / "golden" / "vocab.txt")
    with TemporaryDirectory() as place:
        folder = Path(place)
        sizes = ["--max-seq-length=64", "--max-predictions-per-seq=10", "--workers=1"]
        for (
            name,
            tree,
            # Each checkout makes its own shards, because an old checkout cannot read a new manifest.
        ) in trees.items():
            output = f"--output={folder / name}"
            measure_start(tree, ["bertdata", "create", *parts, output, "--vocab", vocab, *sizes])
        plain = ["--config=tiny", "--device=cpu", "--train-data=SHARDS", "--steps=1", "--batch-size=2"]
        create = ["bertdata", "create", parts[0], "--vocab", vocab, "--dupe-factor=1", "--workers=1"]
        print_comparison(trees, "bertdata create --help", ["bertdata", "create", "--help"], folder)
        print_comparison(trees, "bertdata create of one part", [*create, "--output", "OUTPUT"], folder)
        print_comparison(trees, "pretrain --help", ["trainer", "pretrain", "--help"], folder)
        print_comparison(trees, "one update", ["trainer", "pretrain", *plain, "--output-dir=OUTPUT"], folder)


if __name__ == "__main__":
    main()
