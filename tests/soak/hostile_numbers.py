"""Numbers out of any range as flags of both programs (``python -m tests.soak.hostile_numbers``).

Each flag that takes a number gets 0, negative ones, the powers of two where widths end, ones of 300 and of
5,000 digits, NaN, infinities, the largest and smallest floats. The command must end with its result or with
one line of error. Each runs in a process of its own, which may take twenty seconds of the processor and four
GiB: a flag may ask for more work or memory than there is, which is counted as too large, but no crash and no
traceback. Prints a line for each command; exit status 1 where anything is wrong.
"""

import argparse
import itertools
import multiprocessing
import os
import random
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bertdata.cli.main import main as bertdata
from bertdata.config.value_check import list_types
from tests.soak.hostile_checkpoints import Ending, ran
from tests.soak.hostile_files import make_place, wrong
from trainer.__main__ import main as trainer
from trainer.config.settings import get_known_names
from trainer.programs.choice import load_programs

SECONDS = 20
"""Of the processor."""

PATIENCE = 300
"""Seconds after which a command hangs."""

MEMORY_BYTES = 4 << 30

VALUES = (
    *("0", "-1", "1", "255", "256", "65536", "2147483647", "2147483648", "4294967296"),
    *("9007199254740991", "9223372036854775807", "18446744073709551616", "9" * 299, "9" * 5_000, "x"),
    *("nan", "inf", "-inf", "1e38", "1e308", "1e999", "5e-324", "0.5", "1_000", "\u0663", ""),
)

_CREATE = ("text", "--output=out", "--vocab=vocab.txt", "--max-seq-length=16", "--workers=1")
_SIZES = ("--max-predictions-per-seq=2",)
COMMANDS: dict[str, tuple[str, ...]] = {
    "segment": ("segment", "a.jsonl", "--output=out", "--text-field=text", "--workers=1"),
    "segment articles": ("segment", "articles", "--output=out", "--workers=1", "--eval-articles=2"),
    "create": ("create", *_CREATE, *_SIZES),
    "create sop": ("create", *_CREATE, *_SIZES, "--objective=sop"),
    **{f"create {name}": ("create", *_CREATE, f"--objective={name}") for name in ("mlm", "span", "electra")},
    "create-pretraining-data": (
        "create-pretraining-data",
        "--input_file=text",
        "--output_file=out",
        "--vocab_file=vocab.txt",
        "--max_seq_length=16",
        "--max_predictions_per_seq=2",
    ),
    "pack": ("pack", "set", "--output=out", "--workers=1"),
    "show": ("show", "set/text.tfrecord"),
    "report": ("report", "set", "--output=out.html"),
    "convert mds": ("convert", "ids", "out", "--to=mds", "--workers=1"),
    "convert lddl": ("convert", "set", "out", "--to=lddl", "--workers=1"),
    "convert nvidia-mlperf": ("convert", "set", "out", "--to=nvidia-mlperf", "--num-shards=2", "--workers=1"),
    "pick-eval": ("pick-eval", "set/text.tfrecord", "out"),
    **{
        f"train-vocab {kind}": ("train-vocab", "text", "--output=out.json", "--size=300", f"--kind={kind}")
        for kind in ("wordpiece", "bpe", "unigram")
    },
}
"""The commands of bertdata, by a name for the table."""

_RUN = (
    "pretrain",
    "--hidden-size=8",
    "--num-hidden-layers=1",
    "--num-attention-heads=2",
    "--batch-size=2",
    "--intermediate-size=8",
    "--train-data=set",
    "--output-dir=out",
    "--steps=2",
    "--warmup=0",
    "--no-progress-bar",
    "--max-position-embeddings=16",
)
_STARTS_PROCESSES = ("world_size", "replicas", "copies", "stages")


def commands() -> Iterator[tuple[str, Any, list[str], list[str]]]:
    """Yield (name, program, words, flags that take a number) of each command."""
    for name, words in COMMANDS.items():
        yield name, bertdata, list(words), _flags_of(words)
    numeric = [
        f"--{name.replace('_', '-')}"
        for name, schema in get_known_names().items()
        if not {"integer", "number"}.isdisjoint(list_types(schema)) and name not in _STARTS_PROCESSES
    ]
    yield "pretrain", trainer, list(_RUN), numeric
    split = [
        "split",
        *_RUN[1:6],
        "--devices=2",
        "--memory=1",
        "--max-position-embeddings=16",
        "--vocab-size=16",
    ]
    yield "split", trainer, split, [*numeric, "--devices", "--memory", "--stages", "--copies"]
    for program, facts in load_programs().items():
        published = shlex.split(facts.published[0])  # the last of a flag's values counts
        yield f"like {program}", trainer, ["like", program, *published], _flags_of_program(program)


def _flags_of(words: Sequence[str]) -> list[str]:
    """The flags of a command of bertdata whose help names a number as their value."""
    told = _printed(bertdata, words[0], "--help")
    return _flags_in(told, ("N", "INT", "FLOAT", "X", "MIB", "P%", "I", "SEED", "BYTES"))


def _flags_of_program(program: str) -> list[str]:
    return _flags_in(_printed(trainer, "like", program, "--help"), ("N", "X", "INT", "FLOAT"))


def _flags_in(text: str, kinds: Sequence[str]) -> list[str]:
    words = text.replace(",", " ").split()
    return sorted({a for a, b in itertools.pairwise(words) if a.startswith("--") and b in kinds})


def _printed(program: Any, *words: str) -> str:
    import contextlib
    import io

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        program(list(words))
    return output.getvalue()


def apart(program: Any, words: Sequence[str]) -> Ending | None:
    """The ending of a command in a process of its own. None where it takes too long."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_run, args=(theirs, program, words))
    process.start()
    theirs.close()
    try:
        ending: Ending | None = ours.recv() if ours.poll(PATIENCE) else Ending(-9, "", "hangs")
    except EOFError:
        process.join()
        too_long = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        ending = None if too_long else Ending(process.exitcode or -1, "", f"died with {process.exitcode}")
    process.kill()
    process.join()
    return ending


def _run(pipe: Connection, program: Any, words: Sequence[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES + _used(), resource.RLIM_INFINITY))
    spent = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + SECONDS, spent + SECONDS + 5))
    pipe.send(ran(program, *words))


def _used() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def try_numbers(count: int, seed: int, only: str = "") -> Iterator[tuple[str, str, Ending | None, str]]:
    """Yield (command, flag with value, ending, what is wrong) of ``count`` pairs drawn at random."""
    pairs = [
        (name, program, [*words, f"{flag}={value}"])
        for name, program, words, flags in commands()
        for flag in flags
        for value in VALUES
        if only in name
    ]
    for name, program, words in random.Random(seed).sample(pairs, min(count, len(pairs))):
        more = ["--", "--print-config"] if words[0] == "like" else []
        ending = apart(program, [*words, *more])
        fault = "" if ending is None else wrong(ending, 0)
        yield name, f"{words[-1]:.80}", ending, fault
        for made in (Path("out"), Path("out.html"), Path("out.json")):
            if made.is_dir():
                shutil.rmtree(made, ignore_errors=True)
            else:
                made.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=2_000, help="flags with a value (default: 2,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--command", default="", help="only the commands with this in their name")
    given = parser.parse_args()
    results, faults = Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "place"
        place.mkdir()
        made = multiprocessing.get_context("fork").Process(target=_make, args=(place,))
        made.start()  # apart: a process that has trained cannot be forked well
        made.join()
        os.chdir(place)
        import_module("trainer.run.pretrain")  # once, for all of the processes below
        for command, what, ending, fault in try_numbers(given.pairs, given.seed, given.command):
            outcome = "too large" if ending is None else "refused" if ending.status else "done"
            results[f"{command}: {'wrong' if fault else outcome}"] += 1
            if fault:
                faults += 1
                print(f"{command}: {what}: {fault}", flush=True)
            elif ending is None:
                print(f"{command}: {what}: too large", flush=True)
        os.chdir(place.parent)
    print(*(f"{name}: {count}" for name, count in sorted(results.items())), sep="\n")
    return 1 if faults else 0


def _make(place: Path) -> None:
    make_place(place)
    folder = place / "articles" / "AA"
    folder.mkdir(parents=True)
    article = '<doc id="{0}" url="?" title="T">\nT\n\nThe water runs. It is cold.\n\n</doc>\n'
    (folder / "wiki_00").write_text("".join(article.format(number) for number in range(9)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
