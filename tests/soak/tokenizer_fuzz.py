"""Fuzzer of tokenizer.json files and models' directories against the libraries that define them.

    python -m tests.soak.tokenizer_fuzz --what files --cases 100000 --seed 7
    python -m tests.soak.tokenizer_fuzz --what directories --cases 10000 --seed 7

Each case is a variation of a file (``tests.soak.tokenizer_variations``) with three texts, whose ids and
places are held against the tokenizers library's, or of a directory (``tests.soak.directory_variations``),
whose ids are held against those of transformers' AutoTokenizer. The cases run in child processes, because a
file may end the library's process. A file that the library reads and this package refuses in a line is told:
it is counted by the line. Every other difference is printed with its seed; then the exit status is 1.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

BATCH = 200
"""Cases in a child process."""

EQUAL, REFUSED, TOLD, DIFFERS = "equal", "refused by both", "told", "DIFFERS"


class Outcome(NamedTuple):
    """What came of a case: one of the words above, and what is counted or printed."""

    kind: str
    detail: str


Compare = Callable[[Random, Path], Outcome]


def compare_file(random: Random, folder: Path) -> Outcome:
    """Draw a tokenizer.json and compare this package with the library on it."""
    from tokenizers import Tokenizer

    from bertdata.errors import BertDataError
    from bertdata.tokens.load import describe_engine, tokenizer_of
    from bertdata.tokens.tokenizer_json import find_tokenizer_json
    from tests.soak.tokenizer_variations import dumped, text, variation

    file = variation(random)
    data, texts = dumped(file), [text(random, file) for _ in range(3)]
    engine: Any = random.choice((None, None, None, "python"))
    path = folder / f"{random.getrandbits(60):x}.json"
    path.write_bytes(data)
    try:
        ours: Any = None
        try:
            given = find_tokenizer_json(str(path), {})
            tokenizer = tokenizer_of(given, engine)
            ours = [_of_ours(tokenizer, one) for one in texts]
            runner = (describe_engine(given, engine) or "").rpartition("run by the ")[2].partition(":")[0]
        except BertDataError as error:
            refusal = str(error).replace(str(path), "FILE")
            if "\n" in refusal:
                return Outcome(DIFFERS, f"a refusal of several lines: {refusal!r}")
        _say_ours(ours is None)
        try:
            library = Tokenizer.from_str(data.decode())
            library.no_truncation()
            library.no_padding()
            library.post_processor = None  # it takes letters off places
            if type(library.model).__name__ == "BPE":
                library.model.dropout = None
            theirs: Any = [_of_library(library, one) for one in texts]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            if ours is None:
                return Outcome(REFUSED, _short(refusal))
            return Outcome(DIFFERS, f"the library refuses it ({error!s:.200}), this package does not")
        if ours is None:
            return Outcome(TOLD, _short(refusal))
        if ours != theirs:
            pairs = zip(texts, ours, theirs, strict=True)
            return Outcome(DIFFERS, repr(next(pair for pair in pairs if pair[1] != pair[2])))
        return Outcome(EQUAL, runner)
    finally:
        path.unlink()


def _of_ours(tokenizer: Any, text: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Ids of a document, and ids and places of the text by itself."""
    documents = tokenizer.encode([text.encode()], ["text"])
    one = tokenizer.encode_each([text])
    return list(documents.ids), list(one.ids), list(zip(one.starts, one.stops, strict=True))


def _of_library(library: Any, text: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    whole = library.encode(text, add_special_tokens=False)
    ids = list(whole.ids)
    return ids if text.strip() else [], ids, [tuple(place) for place in whole.offsets]


def compare_directory(random: Random, folder: Path) -> Outcome:
    """Draw a model's directory and compare this package with AutoTokenizer on it."""
    import transformers

    from bertdata.errors import BertDataError
    from bertdata.tokens.load import tokenizer_of
    from bertdata.tokens.tokenizer_json import find_tokenizer_json
    from tests.soak.directory_variations import TEXTS, write_directory

    transformers.logging.set_verbosity(50)
    directory = folder / f"{random.getrandbits(60):x}"
    kind = write_directory(random, directory)
    ours: Any = None
    try:
        file = find_tokenizer_json(str(directory), {})
        ours = [list(tokenizer_of(file).encode_each([text]).ids) for text in TEXTS]
    except BertDataError as error:
        refusal = str(error).replace(str(directory), "DIR")
        if "\n" in refusal:
            return Outcome(DIFFERS, f"a refusal of several lines: {refusal!r}")
    _say_ours(ours is None)
    try:
        loaded = transformers.AutoTokenizer.from_pretrained(str(directory))
        theirs = [loaded.backend_tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
    except BaseException as error:  # the library's panics are no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        if ours is None:
            return Outcome(REFUSED, _short(refusal))
        return Outcome(DIFFERS, f"{kind}: AutoTokenizer refuses it ({error!s:.300}), this package does not")
    if ours is None:
        return Outcome(TOLD, _short(refusal))
    if ours != theirs:
        pairs = zip(TEXTS, ours, theirs, strict=True)
        return Outcome(DIFFERS, f"{kind}: " + repr(next(pair for pair in pairs if pair[1] != pair[2])))
    return Outcome(EQUAL, kind)


COMPARE: dict[str, Compare] = {"files": compare_file, "directories": compare_directory}


def _short(refusal: str) -> str:
    """A refusal without what differs from file to file."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "#", refusal.partition(": ")[2])
    return plain[:110]


_pipe = -1
"""The pipe to the parent process, in a child."""


def _say_ours(refused: bool) -> None:
    """Tell the parent what this package said, in case that the library ends the process."""
    if _pipe >= 0:
        os.write(_pipe, b"ours refused\n" if refused else b"ours read\n")


def run_cases(compare: Compare, seed: int, first: int, last: int) -> list[tuple[int, Outcome]]:
    """Run cases first to last, last not among them, in child processes. Each has a generator of its own."""
    found: list[tuple[int, Outcome]] = []
    while first < last:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _be_child(compare, seed, range(first, last), writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            lines = [line.rstrip("\n") for line in pipe]
        status = os.waitpid(child, 0)[1]
        ours = ""
        for line in lines:
            word, _, rest = line.partition("\t")
            if word == "ours refused" or word == "ours read":
                ours = word
            elif word == "done":
                kind, _, detail = rest.partition("\t")
                found.append((first, Outcome(kind, detail)))
                first, ours = first + 1, ""
        if first < last:
            end = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else str(status)
            kind = TOLD if ours == "ours refused" else DIFFERS
            found.append(
                (
                    first,
                    Outcome(
                        kind, f"the process ends ({end}), of {'the library' if ours else 'this package'}"
                    ),
                )
            )
            first += 1
    return found


def _be_child(compare: Compare, seed: int, numbers: range, pipe: int) -> None:
    """Run the cases, telling each result. Never returns."""
    global _pipe
    _pipe = pipe
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)  # the library's panics
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in numbers:
                try:
                    outcome = compare(Random(f"{seed} {number}"), Path(folder))
                except BaseException as error:  # a traceback is what is looked for
                    outcome = Outcome(DIFFERS, f"{type(error).__name__}: {error}")
                detail = outcome.detail.replace("\n", "\\n").replace("\t", "\\t")
                os.write(pipe, f"done\t{outcome.kind}\t{detail[:1500]}\n".encode("utf-8", "replace"))
    finally:
        os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--what", choices=COMPARE, default="files")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    compare, counts, details, differences = COMPARE[given.what], Counter[str](), Counter[str](), 0
    # Imported once, before the children are made.
    import tokenizers  # noqa: F401

    import bertdata.tokens.load  # noqa: F401

    if given.what == "directories":
        from transformers import AutoTokenizer  # noqa: F401
    start = time.monotonic()
    for first in range(given.first, given.first + given.cases, BATCH):
        last = min(first + BATCH, given.first + given.cases)
        for number, outcome in run_cases(compare, given.seed, first, last):
            counts[outcome.kind] += 1
            details[f"{outcome.kind}: {outcome.detail}"] += outcome.kind != DIFFERS
            if outcome.kind == DIFFERS:
                differences += 1
                print(f"case {number} of seed {given.seed}: {outcome.detail}", flush=True)
    for line, count in sorted(details.items(), key=lambda item: -item[1]):
        if count:
            print(f"{count:8,}  {line}")
    total = ", ".join(f"{kind} {counts[kind]:,}" for kind in (EQUAL, REFUSED, TOLD, DIFFERS))
    print(f"{sum(counts.values()):,} cases in {time.monotonic() - start:.0f} s: {total}")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
