"""Fuzzer of the readers of foreign files, with a corpus that is kept and grows.

    python -m tests.soak.corpus_fuzz --seconds 60 --seed 7

A file is drawn from the corpus, damaged, and read. The reader must end with a result or with one of this
package's errors, in ten seconds. A file with an outcome that was not seen before (an error with other words,
or another number of records) joins the corpus, so that later damages start from it. Every form begins with a
sound file (``tests.soak.sound_files``). The committed corpus, ``tests/soak/corpus``, holds small files that
were found so; what grows is in ``.soak/corpus``. A file on which a reader crashes is kept in
``.soak/faults``; it becomes a test.
"""

import argparse
import contextlib
import hashlib
import io
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bertdata.cli.main import main as bertdata
from bertdata.errors import BertDataError
from tests.soak.hostile import DAMAGES, in_a_process, measured
from tests.soak.sound_files import SHARD_FORMS, make_sound_file
from tests.support.paths import ROOT

COMMITTED = ROOT / "tests" / "soak" / "corpus"
GROWN = ROOT / ".soak" / "corpus"
FAULTS = ROOT / ".soak" / "faults"
LARGEST = 64_000
"""Bytes of a file that may join the corpus."""
MOST_NEW = 400
"""Files of one form in the grown corpus. After that nothing new is kept."""

_SEGMENT = ("--output=OUT", "--sentences=lines", "--workers=1", "--text-field=text", "--part-size=1")
SOURCES: dict[str, tuple[str, tuple[str, ...]]] = {
    "jsonl": ("segment", (*_SEGMENT, "--input-kind=jsonl")),
    "csv": ("segment", (*_SEGMENT, "--input-kind=csv")),
    "tsv": ("segment", (*_SEGMENT, "--input-kind=tsv")),
    "records.parquet": ("segment", (*_SEGMENT, "--input-kind=parquet")),
    "records.arrow": ("segment", (*_SEGMENT, "--input-kind=arrow")),
    "text.gz": ("segment", ("--output=OUT", "--sentences=lines", "--workers=1", "--input-kind=text")),
    "text.bz2": ("segment", ("--output=OUT", "--sentences=lines", "--workers=1", "--input-kind=text")),
    "text.xz": ("segment", ("--output=OUT", "--sentences=lines", "--workers=1", "--input-kind=text")),
    "text.zst": ("segment", ("--output=OUT", "--sentences=lines", "--workers=1", "--input-kind=text")),
    "articles": ("segment", ("--output=OUT", "--sentences=lines", "--workers=1", "--eval-articles=0")),
    "dump.xml": ("extract", ("--output=OUT", "--workers=1")),
    "dump.xml.bz2": ("extract", ("--output=OUT", "--workers=1", "--extractor=2.75")),
}
"""Forms of sources: the command that reads the file, and its flags."""


def list_forms() -> list[str]:
    """Return the names of all forms of files."""
    return [*SHARD_FORMS, *SOURCES]


def read_form(form: str, data: bytes) -> str:
    """Read a file of this form, and return the outcome in words, without numbers and names of the file."""
    try:
        if form in SOURCES:
            return _read_source(form, data)
        _, readings = SHARD_FORMS[form]
        counts = [len(found) for found in (read(data) for read in readings) if isinstance(found, list)]
        return f"read {counts}"
    except BertDataError as error:
        return _shorten(str(error))


def _read_source(form: str, data: bytes) -> str:
    """Run the command of the form on the file."""
    name, flags = SOURCES[form]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"wiki-20200101-pages-articles.{form}" if form != "articles" else "wiki_00")
        path.write_bytes(data)
        words = [name, str(path), *(flag.replace("OUT", f"{folder}/out") for flag in flags)]
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = bertdata(words)
        made = sorted(Path(folder, "out").glob("*")) if not status else []
        last = (said.getvalue().splitlines() or [""])[-1]
        if "Traceback" in said.getvalue():
            raise RuntimeError(said.getvalue())
        return f"status {status}, {len(made)} files: {_shorten(last.replace(folder, ''))}"


def _shorten(text: str) -> str:
    """Return a message without numbers, quoted words and names of files."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+|0x[0-9a-f]+|/\S+", "#", text)[:150]


class Corpus:
    """The files of one form, committed and grown, and the outcomes that are known."""

    def __init__(self, form: str) -> None:
        self._grown = GROWN / form
        self._grown.mkdir(parents=True, exist_ok=True)
        paths = [*sorted((COMMITTED / form).glob("*")), *sorted(self._grown.glob("*"))]
        self._files = [make_sound_file(form), *(path.read_bytes() for path in paths)]
        self._room = MOST_NEW - len(list(self._grown.iterdir()))
        self._known = {read_form(form, data) for data in self._files[:100]}

    def draw(self, stream: random.Random) -> bytes:
        """Return a damaged file, or a mixture of two files."""
        data = stream.choice(self._files)
        for _ in range(stream.choice((1, 1, 1, 2, 4))):
            if data and stream.random() < 0.1:
                other = stream.choice(self._files)
                data = data[: stream.randrange(len(data))] + other[stream.randrange(len(other) or 1) :]
            with contextlib.suppress(ValueError, IndexError):  # too short for this damage
                data = stream.choice(DAMAGES)(bytearray(data), stream)
        return data

    def add(self, data: bytes, outcome: str) -> bool:
        """Keep a file with an outcome that is not known. Return True if it was kept."""
        if outcome in self._known or len(data) > LARGEST or self._room <= 0:
            return False
        self._known.add(outcome)
        self._files.append(data)
        self._room -= 1
        (self._grown / hashlib.md5(data, usedforsecurity=False).hexdigest()[:16]).write_bytes(data)
        return True


def fuzz_form(form: str, seconds: float, count: int, seed: int, channel: Connection) -> None:
    """Read damaged files of a form for so many seconds. Sends the results as ``tests.soak.hostile`` does."""
    corpus, results, wrong = Corpus(form), Counter[str](), list[str]()
    under_way = FAULTS / f"{form}-{seed}"
    deadline, number = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        stream = random.Random(f"{seed} {form} {number}")
        data = corpus.draw(stream)
        under_way.write_bytes(data)  # kept if this process dies
        what = f"{form} {seed} {number}"
        channel.send(what)
        before = len(wrong)
        with measured(wrong, what):
            try:
                outcome = read_form(form, data)
                results["tried"] += 1
                results["new outcomes"] += corpus.add(data, outcome)
            except Exception as error:
                wrong.append(f"{what}: {type(error).__name__}: {error}")
        if len(wrong) > before:
            (FAULTS / f"{form}-{seed}-{number}").write_bytes(data)
        number += 1
    under_way.unlink()
    channel.send((results, wrong))


def fuzz_forms(forms: list[str], seconds: float, seed: int) -> Iterator[tuple[str, Counter[str], list[str]]]:
    """Yield (form, counts, faults) of each form. Each has an equal share of the seconds."""
    FAULTS.mkdir(parents=True, exist_ok=True)
    for form in forms:
        work: Callable[[int, int, Any], None] = partial(fuzz_form, form, seconds / len(forms))
        yield (form, *in_a_process(work, 0, seed))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="time for all forms (default: 60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forms", nargs="+", choices=list_forms(), default=list_forms())
    flags = parser.parse_args()
    faults = []
    for form, results, wrong in fuzz_forms(flags.forms, flags.seconds, flags.seed):
        print(f"{form}: {results['tried']} tried, {results['new outcomes']} new outcomes, {len(wrong)} wrong")
        faults += wrong
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
