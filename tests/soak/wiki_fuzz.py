"""Fuzzer of wiki mark-up: the kernel of an extractor against the package wikiextractor, or against its twin.

    python -m tests.soak.wiki_fuzz --against package --pages 100000 --seed 7
    python -m tests.soak.wiki_fuzz --against twin --pages 100000 --seed 7

Half of the pages are generated, half are mutated pieces of the reference kit's (``tests.soak.wiki_pages``).
Each page that differs is printed with the seed of its round; then the exit status is 1. Pages that the
kernel leaves to the package, or that break a limit, are declared: they are counted by their reasons.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import corpus
from bertdata._native import kernels
from bertdata.wiki.extractor import BlockState
from bertdata.wiki.mlperf import MlperfExtractor
from bertdata.wiki.mlperf.compute import compute
from bertdata.wiki.pages import LIMIT, UNKNOWN
from tests.soak.wiki_pages import generated_round, mutated_round
from tests.support.package_pair import PackagePair
from tests.support.wiki_extraction import START, Extraction, split_head

MAX_WORK = 1 << 26
"""A generated page with more work may be one on which the package never ends."""


class PairedResult(NamedTuple):
    """What the kernel and the other made of one page: reason, detail and article of each."""

    source: bytes
    kernel: tuple[str, str, bytes]
    other: tuple[str, str, bytes]

    @property
    def is_declared(self) -> bool:
        return self.kernel[0] == UNKNOWN or (self.kernel[0] == self.other[0] == LIMIT)

    @property
    def differs(self) -> bool:
        return not self.is_declared and self.kernel != self.other


def against_package(dump: bytes) -> Iterator[PairedResult]:
    """The pages of a dump by the kernel of 3.1.0. The package gets the pages that the kernel knows."""
    head, data = split_head(dump, "3.1.0")
    with tempfile.TemporaryDirectory() as directory:
        try:
            pair = PackagePair(head, data, directory)
        except AssertionError:
            yield PairedResult(data, ("other definitions than the package's", "", b""), ("", "", b""))
            return
        known = []
        for outcome in pair.kernel.extract(data, START)[1]:
            source = data[outcome[3] : outcome[4]]
            if outcome[0] in (UNKNOWN, LIMIT):
                yield PairedResult(source, (*outcome[:2], b""), (*outcome[:2], b""))
            else:
                known.append(source)
        data = b"".join(known)
        yield from _paired(
            data, pair.kernel.extract(data, START), pair.package.extract(data, BlockState(*START))
        )


def against_twin(dump: bytes) -> Iterator[PairedResult]:
    """The pages of a dump by the kernel of mlperf and its twin."""
    _, data = split_head(dump)
    settings: dict[str, Any] = {"templates": True, "block": 1 << 30, "max_work": MAX_WORK}
    kernel = Extraction(_mlperf_kernel, dump, **settings)
    twin = Extraction(MlperfExtractor, dump, **settings)
    if kernel.definitions != twin.definitions or kernel.states != twin.states:
        yield PairedResult(data, ("definitions or states", "", b""), ("", "", b""))
    ours, theirs = ((None, found.outcomes) for found in (kernel, twin))
    yield from _paired(data, (kernel.articles, *ours[1:]), (twin.articles, *theirs[1:]))


def _mlperf_kernel(**arguments: Any) -> Any:
    return kernels.MlperfExtractor(compute=compute, **arguments)


def _paired(data: bytes, kernel: Any, other: Any) -> Iterator[PairedResult]:
    """The pages of a block, and one more where the numbers of pages differ."""
    ours, theirs = (list(_articles(found[0], found[1])) for found in (kernel, other))
    for (begin, end), mine, yours in zip([found[3:5] for found in kernel[1]], ours, theirs, strict=False):
        yield PairedResult(data[begin:end], mine, yours)
    if len(ours) != len(theirs):
        yield PairedResult(data, (f"{len(ours)} pages", "", b""), (f"{len(theirs)} pages", "", b""))


def _articles(articles: bytes, outcomes: Any) -> Iterator[tuple[str, str, bytes]]:
    place = 0
    for reason, detail, size, *_ in outcomes:
        yield reason, "" if reason == LIMIT else detail, articles[place : place + size]
        place += size


def run(kind: str, make: Callable[[int], bytes], against: str, pages: int, seed: int) -> int:
    """Compare so many pages, rounds of seeds from ``seed`` on. Returns the number of differences."""
    started, seen, differences = time.monotonic(), 0, 0
    reasons: Counter[str] = Counter()
    compare = against_package if against == "package" else against_twin
    while seen < pages:
        for outcome in compare(make(seed)):
            seen += not outcome.kernel[0].startswith("namespace")  # templates
            if outcome.is_declared:
                reasons[f"{outcome.kernel[0]}: {outcome.kernel[1]}"] += 1
            if outcome.differs:
                differences += 1
                _show(kind, seed, outcome)
        seed += 1
    minutes = (time.monotonic() - started) / 60
    print(f"{kind}: {seen} pages against the {against}, {differences} differ, {minutes:.1f} minutes")
    for reason, count in reasons.most_common():
        print(f"  declared, {reason}: {count}")
    sys.stdout.flush()
    return differences


def _show(kind: str, seed: int, outcome: PairedResult) -> None:
    print(f"{kind} round of seed {seed}: a page differs")
    for name, value in zip(outcome._fields, outcome, strict=True):
        print(f"  {name}: {value!r}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", choices=["package", "twin"], required=True)
    parser.add_argument("--pages", type=int, default=100_000, help="pages in all (default: 100000)")
    parser.add_argument("--seed", type=int, default=7, help="of the first round (default: 7)")
    args = parser.parse_args()
    kit: Path | None = corpus.find_kit()
    rounds: dict[str, Callable[[int], bytes]] = {"generated": generated_round}
    if kit is not None:
        rounds["mutated"] = lambda seed: mutated_round(seed, kit)
    each = -(-args.pages // len(rounds))
    differences = sum(run(kind, make, args.against, each, args.seed) for kind, make in rounds.items())
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
