"""All figures of the README: ``make bench`` (some minutes)."""

import sys

from benchmarks import (
    beam_overhead,
    corpus,
    examples,
    extract,
    punkt,
    segmenting,
    tokenizing,
    two_workers,
    wikipedia,
)


def main() -> None:
    sys.argv = sys.argv[:1]
    examples.main()
    tokenizing.main()
    two_workers.main()
    beam_overhead.main()
    if corpus.kit() is None:
        print("no reference kit (BERTDATA_REFERENCE_KIT): the text stages are left out")
        return
    punkt.main()
    segmenting.main()
    extract.main()
    wikipedia.main()


if __name__ == "__main__":
    main()
