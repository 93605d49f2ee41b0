"""Memory of ``train-vocab``: that of the words of a text, not of the text."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytest.importorskip("tokenizers")

RUN = """
import re, sys
from bertdata.cli.main import main
from bertdata.tokens.training import unigram
unigram.MOST_CHARACTERS = 1 << 20  # as if the text were longer
assert main(sys.argv[1:]) == 0
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(int(peak[1]) << 10)
"""


def peak_bytes_of(*words: object) -> int:
    """The most memory of a process of the program, Python and its libraries among it."""
    command = [sys.executable, "-c", RUN, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return int(done.stdout.split("\n")[-2])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read memory from")
@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
@pytest.mark.thorough_after_first
def test_a_long_document_of_few_words_takes_no_more_memory_than_a_short_one(
    kind: str, tmp_path: Path
) -> None:
    if kind == "unigram":
        pytest.importorskip("sentencepiece")
    peaks = []
    for number in (1, 60_000):
        text = tmp_path / f"{number}.txt"
        text.write_text("international understanding of something\n" * number)
        flags = ("--output", tmp_path / "vocab.json", "--size=300", "--kind", kind)
        peaks.append(peak_bytes_of("train-vocab", text, *flags))
    assert peaks[1] < peaks[0] + (16 << 20)
