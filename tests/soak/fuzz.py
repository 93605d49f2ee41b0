"""All fuzzers in turn for some minutes (``make soak``).

    python -m tests.soak.fuzz --minutes 10 [--seed 7] [--only kernels corpus]

Each round has a seed of its own, so that another ``make soak`` tries other cases:

- kernels: senseless calls and damaged shards, under AddressSanitizer and UndefinedBehaviorSanitizer;
- wiki kernels: generated and mutated pages against their twin, under the sanitizers, and against the package
  wikiextractor;
- tokenizers: tokenizer.json files and models' directories, byte pairs among them, against the library;
- readers: settings, manifests, logs, tables and checkpoints that other people wrote (variants);
- corpus: shards, records and dumps, damaged, from a corpus that grows.

The kernels are compiled with sanitizers while the other fuzzers run. Prints one line for each round, and the
output of those that found something. Exit status 1 then.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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


def run_round(fuzzer: Fuzzer, seed: int) -> bool:
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
    return not status


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes", type=float, default=10, help="begin no round after this time (default: 10)"
    )
    parser.add_argument(
        "--seed", type=int, help="seed of the first round (default: the time of day, or 56 in CI)"
    )
    names = [fuzzer.name for fuzzer in FUZZERS]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    flags = parser.parse_args(arguments)
    chosen = [fuzzer for fuzzer in FUZZERS if fuzzer.name in flags.only]
    seed = flags.seed
    if seed is None:
        seed = 56 if "CI" in os.environ else int(time.time()) % 1_000_000
    rounds = run_rounds(chosen, seed, flags.minutes)
    faults = sum(not is_sound for is_sound in rounds)
    print(f"{len(rounds)} rounds, {faults} of them found something")
    return 1 if faults else 0


def run_rounds(fuzzers: Sequence[Fuzzer], seed: int, minutes: float) -> list[bool]:
    """Run the fuzzers in turn. Return for each round whether it found nothing.

    The kernels are compiled with sanitizers meanwhile. Fuzzers that need them wait for that, and each of them
    has at least one round, after the minutes if need be. Without a compiler that has sanitizers they are left
    out.
    """
    start, rounds = time.monotonic(), list[bool]()
    waiting = [fuzzer for fuzzer in fuzzers if fuzzer.sanitized]
    ready = [fuzzer for fuzzer in fuzzers if not fuzzer.sanitized]
    with ThreadPoolExecutor(1) as pool:
        compiling = pool.submit(_can_sanitize) if waiting else None
        while time.monotonic() - start < 60 * minutes and (ready or waiting):
            if compiling is not None and waiting and (compiling.done() or not ready):
                ready, waiting = [*(waiting if compiling.result() else []), *ready], []
                continue
            rounds.append(run_round(ready[len(rounds) % len(ready)], seed + len(rounds)))
        if compiling is not None and waiting and compiling.result():
            rounds += [run_round(fuzzer, seed) for fuzzer in waiting]
    return rounds


def _can_sanitize() -> bool:
    """Compile the kernels with sanitizers. Return False, and say why, if that cannot be done here."""
    start = time.monotonic()
    try:
        build_sanitized_kernels()
    except RuntimeError as error:
        print(f"left out: {error}", flush=True)
        return False
    print(f"the kernels were compiled with sanitizers in {time.monotonic() - start:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
