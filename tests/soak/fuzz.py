"""All fuzzers in turn for some minutes (``make soak``).

    python -m tests.soak.fuzz --minutes 10 [--seed 7] [--only kernels corpus]

Each round gives every fuzzer a seed of its own, so that another ``make soak`` tries other cases:

- kernels: senseless calls and damaged shards, under AddressSanitizer and UndefinedBehaviorSanitizer;
- wiki kernels: generated and mutated pages against their twin, under the sanitizers, and against the package
  wikiextractor;
- tokenizers: tokenizer.json files and models' directories, byte pairs among them, against the library;
- readers: settings, manifests, logs, tables and checkpoints that other people wrote (variants);
- corpus: shards, records and dumps, damaged, from a corpus that grows.

Prints one line for each fuzzer and round, and the output of those that found something. Exit status 1 then.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.soak.sanitized_kernels import build_sanitized_kernels
from tests.support.paths import ROOT

LIMIT_SECONDS = 1200
"""A round of a fuzzer that takes longer hangs."""


@dataclass(frozen=True, kw_only=True)
class Fuzzer:
    """A program of ``tests.soak`` with arguments for a round of some seconds, and SEED in place of the seed.

    sanitized: run it with the kernels that were compiled with sanitizers.
    """

    name: str
    words: tuple[str, ...]
    sanitized: bool = False

    def command(self, seed: int) -> list[str]:
        """Return the command line of a round."""
        words = [word.replace("SEED", str(seed)) for word in self.words]
        program = [f"tests.soak.{words[0]}", *words[1:]]
        if self.sanitized:
            program = ["tests.soak.sanitized_kernels", *program]
        return [sys.executable, "-m", *program]


FUZZERS = (
    Fuzzer(
        name="kernels",
        words=("hostile", "--files=84", "--calls=6000", "--seed=SEED"),
        sanitized=True,
    ),
    Fuzzer(
        name="wiki kernels and twin",
        words=("wiki_fuzz", "--against=twin", "--pages=60", "--seed=SEED"),
        sanitized=True,
    ),
    Fuzzer(
        name="wiki kernels and package",
        words=("wiki_fuzz", "--against=package", "--pages=200", "--seed=SEED"),
    ),
    Fuzzer(name="tokenizers", words=("tokenizer_fuzz", "--cases=200", "--seed=SEED")),
    Fuzzer(
        name="tokenizers of models",
        words=("tokenizer_fuzz", "--what=directories", "--cases=40", "--seed=SEED"),
    ),
    Fuzzer(name="readers", words=("hostile_files", "--variants=120", "--seed=SEED")),
    Fuzzer(name="checkpoints", words=("hostile_checkpoints", "--states=6", "--files=40", "--seed=SEED")),
    Fuzzer(name="corpus", words=("corpus_fuzz", "--seconds=12", "--seed=SEED")),
)


def run_round(fuzzer: Fuzzer, seed: int) -> tuple[bool, float]:
    """Run a round and print its line, and its output if it found something. Return whether it did not."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            fuzzer.command(seed), cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )
        status, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        status, said = -1, f"hangs: {late.stdout!r}"
    seconds = time.monotonic() - start
    print(f"{fuzzer.name}, seed {seed}: {'sound' if not status else 'FAULT'}, {seconds:.0f} s", flush=True)
    if status:
        print(said, flush=True)
    return not status, seconds


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes", type=float, default=10, help="begin no round after this time (default: 10)"
    )
    parser.add_argument("--seed", type=int, help="seed of the first round (default: the time of day)")
    names = [fuzzer.name for fuzzer in FUZZERS]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    flags = parser.parse_args(arguments)
    chosen = [fuzzer for fuzzer in FUZZERS if fuzzer.name in flags.only]
    start = time.monotonic()
    seed = int(time.time()) % 1_000_000 if flags.seed is None else flags.seed
    if any(fuzzer.sanitized for fuzzer in chosen):
        build_sanitized_kernels()
        print(f"compiled the kernels with sanitizers, {time.monotonic() - start:.0f} s", flush=True)
    faults = rounds = 0
    while time.monotonic() - start < 60 * flags.minutes:
        fuzzer = chosen[rounds % len(chosen)]
        is_sound, _ = run_round(fuzzer, seed + rounds // len(chosen))
        faults, rounds = faults + (not is_sound), rounds + 1
    print(f"{rounds} rounds, {faults} of them found something")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
