"""The trainer's size, and what a command costs before it trains: files, lines, modules, seconds, memory.

usage: python -m benchmarks.trainer_start [--before FOLDER]

FOLDER: a checkout of another commit, with its kernels built; its commands run in turn with this one's.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import bertdata
from benchmarks.corpus import ROOT
from benchmarks.measure import Cost, command

ROUNDS = 5

_MODULES = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from trainer.__main__ import main
with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
    try:
        status = main(sys.argv[1:])
    except SystemExit as ended:
        status = ended.code
assert not status
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] == "trainer")))
"""


def count_lines(paths: Sequence[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def describe_size(tree: Path) -> str:
    """Files and lines of the core and of its extensions."""
    found = sorted((tree / "trainer").rglob("*.py"))
    around = [path for path in found if "extensions" in path.parts]
    parts = {"core": [path for path in found if path not in around], "extensions": around, "all": found}
    return "; ".join(
        f"{name}: {len(files)} files, {count_lines(files):,} lines" for name, files in parts.items()
    )


def find_imported(tree: Path, words: Sequence[str]) -> list[Path]:
    """The files of the trainer that a command imports."""
    python = [sys.executable, "-c", _MODULES, *words]
    done = subprocess.run(python, cwd=tree, capture_output=True, text=True, check=True)
    found = [tree / name.replace(".", "/") for name in json.loads(done.stdout)]
    return [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in found]


def measure(tree: Path, words: Sequence[str]) -> Cost:
    """Cost of a command of the checkout's trainer."""
    return command("env", f"--chdir={tree}", sys.executable, "-m", "trainer", *words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--before", type=Path, help="checkout of another commit")
    before = parser.parse_args().before
    trees = {"before": before.resolve(), "now": ROOT} if before else {"now": ROOT}
    for name, tree in trees.items():
        print(f"{name}: {describe_size(tree)}")
    with TemporaryDirectory() as folder:
        shards = Path(folder, "shards")
        parts = [str(path) for path in sorted((ROOT / "golden" / "corpus").glob("part-*"))]
        vocab = ROOT / "golden" / "vocab.txt"
        bertdata.create(parts, shards, vocab=vocab, max_seq_length=64, max_predictions_per_seq=10)
        plain = ["--config=tiny", "--device=cpu", f"--train-data={shards}", "--steps=1", "--batch-size=2"]
        _compare(trees, "pretrain --help", ["pretrain", "--help"], folder)
        _compare(trees, "a plain run of one update", ["pretrain", *plain], folder)


def _compare(trees: Mapping[str, Path], title: str, words: Sequence[str], folder: str) -> None:
    """Print what the command imports and costs in each checkout, measured in turn."""
    outputs = (f"--output-dir={folder}/{number}-{len(words)}" for number in count())
    costs: dict[str, list[Cost]] = {name: [] for name in trees}
    for _ in range(ROUNDS):
        for name, tree in trees.items():
            costs[name].append(measure(tree, [*words, next(outputs)]))
    for name, tree in trees.items():
        files = find_imported(tree, [*words, next(outputs)])
        wall, cpu, memory = (
            min(getattr(cost, field) for cost in costs[name]) for field in ("wall", "cpu", "megabytes")
        )
        print(
            f"{title}, {name}: imports {len(files)} files of {count_lines(files):,} lines; "
            f"{wall:.2f} s, {cpu:.2f} s of processor, {memory:.0f} MB"
        )


if __name__ == "__main__":
    main()
