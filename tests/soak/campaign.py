"""A campaign against everything that this program writes (``python -m tests.soak.campaign``).

    python -m tests.soak.campaign --cases 10000 --kills 100 --seed 56
    python -m tests.soak.campaign --parts damage kills --commands create pretrain

Four parts, each over every command, pipeline and training (``tests.soak.writing_commands``):

- damage: bit flips, cuts and extensions of every kind of file (``tests.soak.damaged_outputs``);
- kills: the whole run killed at one of its operations on the disk, half of the time with a power cut, which
  loses what was not forced to disk (``tests.soak.power_loss``);
- accidents: a full and a read-only disk, changed inputs, two runs at once, the clock set back;
- buckets: a bucket whose operations fail (``tests.soak.hostile_bucket``).

Prints each fault with its seed, then a table. Exit status 1 where anything was wrong. Linux only.
"""

import argparse
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.soak.accidents import ACCIDENTS, Undisturbed, run_counted, run_undisturbed
from tests.soak.damaged_outputs import damage_all, damage_unfinished
from tests.soak.hostile_bucket import read_expected, try_bucket
from tests.soak.writing_commands import WritingCommand, find_commands, make_commands

STOPPED = ("create", "create, shuffled", "segment, records", "extract", "pack, Habana", "convert to mds")
"""Commands whose stopped runs are damaged too."""
IN_BUCKETS = ("create", "create, shuffled", "segment, records", "pack, Habana", "convert to mds", "extract")


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One case: the kind of attack, what was attacked, and what was wrong, or ""."""

    attack: str
    target: str
    fault: str


def try_damage(commands: Sequence[WritingCommand], count: int, seed: int, place: Path) -> Iterator[Tried]:
    """Damage finished outputs, and for a twentieth of the cases those of stopped runs."""
    stopped = [command for command in commands if command.name in STOPPED]
    unfinished = count // 20 if stopped else 0
    for found in damage_all(commands, count - unfinished, seed, place):
        fault = found.fault and f"{found.file}: {found.damage}: {found.fault}"
        yield Tried(attack="damaged file", target=found.output, fault=fault)
    for command in stopped:
        stream = random.Random(f"{seed} {command.name} stopped")
        whole = run_undisturbed(command, place / f"whole-{command.name}")
        for number in range(3):
            here = place / f"stopped-{number}-{command.name}"
            here.mkdir()
            run_counted(command, here, stream.randint(whole.events // 3, whole.events))
            each = max(1, unfinished // len(stopped) // 3)
            for found in damage_unfinished(command, whole, here, each, stream):
                fault = found.fault and f"{found.file}: {found.damage}: {found.fault}"
                yield Tried(attack="damaged file of a stopped run", target=command.name, fault=fault)
            shutil.rmtree(here)


def try_kills(commands: Sequence[WritingCommand], count: int, seed: int, place: Path) -> Iterator[Tried]:
    """Kill each command in turn, with and without a power cut."""
    yield from _try_accidents(commands, ("power cut", "kill"), count, seed, place)


def try_accidents(commands: Sequence[WritingCommand], count: int, seed: int, place: Path) -> Iterator[Tried]:
    """Let the other accidents happen to each command in turn."""
    yield from _try_accidents(commands, tuple(ACCIDENTS)[2:], count, seed, place)


def _try_accidents(
    commands: Sequence[WritingCommand], names: Sequence[str], count: int, seed: int, place: Path
) -> Iterator[Tried]:
    """Deal ``count`` cases among the pairs of an accident and a command, until all have had their turn."""
    pairs = [
        (name, command)
        for command, name in itertools.product(commands, names)
        if command.inputs or name != "changed input"
    ]
    known: dict[str, Undisturbed] = {}
    for number in range(count):
        name, command = pairs[number % len(pairs)]
        stream = random.Random(f"{seed} {name} {command.name} {number}")
        here = place / f"case-{number}"
        here.mkdir()
        if command.name not in known:
            known[command.name] = run_undisturbed(command, place / f"whole-{len(known)}")
        faults = list(ACCIDENTS[name](known[command.name], here / "place", stream))
        yield Tried(
            attack=name, target=command.name, fault="; ".join(faults[:5]) and f"{number}: {faults[:5]}"
        )
        shutil.rmtree(here, ignore_errors=True)


def try_buckets(commands: Sequence[WritingCommand], count: int, seed: int, place: Path) -> Iterator[Tried]:
    """Let commands write into a hostile bucket."""
    chosen = [command for command in commands if command.name in IN_BUCKETS]
    expected = {}
    for number in range(count if chosen else 0):
        command = chosen[number % len(chosen)]
        if command.name not in expected:
            whole = place / f"bucket-{number}"
            run_undisturbed(command, whole)
            expected[command.name] = read_expected(whole)
        stream = random.Random(f"{seed} bucket {number}")
        faults = try_bucket(command, expected[command.name], f"s3://bucket/{number}", stream)
        yield Tried(
            attack="hostile bucket", target=command.name, fault=(faults and f"{number}: {faults}") or ""
        )


PARTS: dict[str, Callable[[Sequence[WritingCommand], int, int, Path], Iterator[Tried]]] = {
    "damage": try_damage,
    "kills": try_kills,
    "accidents": try_accidents,
    "buckets": try_buckets,
}


def format_table(results: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """Return the lines of a table: for each attack and its target, the cases and how many of them held."""
    lines = ["| attack | what was attacked | cases | held |", "|---|---|---|---|"]
    for (attack, target), counts in results.items():
        lines.append(f"| {attack} | {target} | {counts.total()} | {counts['held']} |")
    total = sum((counts for counts in results.values()), Counter[str]())
    lines.append(f"| all | | {total.total()} | {total['held']} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", type=int, default=10_000, help="damaged files (default: 10000)")
    parser.add_argument("--kills", type=int, default=100, help="kills and power cuts (default: 100)")
    parser.add_argument("--accidents", type=int, default=100, help="other accidents (default: 100)")
    parser.add_argument("--buckets", type=int, default=60, help="runs in hostile buckets (default: 60)")
    parser.add_argument("--minutes", type=float, default=600, help="begin no case after this time")
    parser.add_argument("--seed", type=int, default=56)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--commands", nargs="+", default=[], help="names of commands (default: all)")
    flags = parser.parse_args(arguments)
    counts = {
        "damage": flags.cases,
        "kills": flags.kills,
        "accidents": flags.accidents,
        "buckets": flags.buckets,
    }
    results: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    faulty, start = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        commands = find_commands(flags.commands, make_commands(Path(name, "inputs")))
        for part in flags.parts:
            place = Path(name, part)
            place.mkdir()
            for tried in PARTS[part](commands, counts[part], flags.seed, place):
                if time.monotonic() - start > 60 * flags.minutes:
                    print(f"{part}: the time is over", flush=True)
                    break
                results[tried.attack, tried.target]["wrong" if tried.fault else "held"] += 1
                if tried.fault:
                    faulty += 1
                    print(f"{tried.attack}, {tried.target}: {tried.fault}", flush=True)
    print(*format_table(results), sep="\n")
    print(f"seed {flags.seed}, {(time.monotonic() - start) / 60:.1f} minutes: {faulty} faults")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
