"""CPU time of splitting text into sentences in one thread: the C++ kernel and nltk, on the same text.

python -m benchmarks.punkt
"""

import json
import lzma
import os
import time
from collections.abc import Callable
from pathlib import Path

from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

from bertdata.text.load_splitter import LoadSplitter
from bertdata.text.punkt.tables import TABLE_FILES, PunktTables, parse_tables
from bertdata.text.punkt.variants import VARIANTS
from bertdata.text.sentences import SentenceSplitter

KIT = Path(os.environ.get("BERTDATA_REFERENCE_KIT", Path(__file__).parents[2] / "shared" / "reference"))
ROUNDS = 7
LANGUAGE_ROUNDS = 40


def main() -> None:
    """Print the speeds of both programs, and of the kernel for each language."""
    text, tables = read_kit()
    rates = compare_programs(text, tables)
    print("sentences of the kit's cleaned text, one thread:")
    for name, megabytes_per_second in rates.items():
        ratio = megabytes_per_second / rates["nltk"]
        print(f"  {name:24}{megabytes_per_second:10.1f} MB/s   {ratio:6.1f} times nltk")
    print("  (wanted: 20 times)")
    print("sentences of XQuAD's contexts by language, one thread:")
    for code, rate in measure_language_rates().items():
        print(f"  {code:24}{rate:10.1f} MB/s")


def read_kit() -> tuple[bytes, PunktTables]:
    """Return a text of the reference kit, and the tables of the sentence splitter Punkt for it."""
    punkt_tab = KIT / "nltk_data/tokenizers/punkt_tab/english"
    tables = parse_tables({name: (punkt_tab / name).read_bytes() for name in TABLE_FILES})
    return b"".join(
        lzma.decompress(path.read_bytes()) for path in sorted(KIT.glob("stages/wiki_*.2.xz"))
    ), tables


def measure_language_rates() -> dict[str, float]:
    """Return the speeds for the kit's XQuAD contexts in MB per CPU second, by language and way of splitting.

    The ways are Punkt, end marks (such as full stops) and line ends. They are measured alternately.
    """
    segments, texts = {}, {}
    for code in ("en", "de", "zh", "th"):
        data = json.loads((KIT / "squad" / f"xquad.{code}.json").read_text(encoding="utf-8"))["data"]
        contexts = [paragraph["context"] for article in data for paragraph in article["paragraphs"]]
        texts[code] = ("\n".join(contexts) + "\n").encode() * 20
        segments[code] = LoadSplitter("3.4.5", language=code)().segment_lines
    least = dict.fromkeys(texts, float("inf"))
    for _ in range(LANGUAGE_ROUNDS):
        for code, text in texts.items():
            least[code] = min(least[code], _time_segmenting(segments[code], text))
    return {code: len(text) / 1e6 / least[code] for code, text in texts.items()}


def measure_nltk_rate() -> float:
    """Return the speed of nltk in MB of text per CPU second."""
    text, tables = read_kit()
    segment = _make_nltk(tables)
    return len(text) / 1e6 / min(_time_segmenting(segment, text) for _ in range(2))


def compare_programs(text: bytes, tables: PunktTables) -> dict[str, float]:
    """Return the speed of each program in MB per CPU second, from the best of several rounds.

    Each program gets UTF-8 bytes and returns UTF-8 bytes.
    """
    programs = {
        "nltk": _make_nltk(tables),
        "python engine (3.10.0)": SentenceSplitter(tables, "3.10.0", engine="python").segment_lines,
        **{
            f"kernel ({variant})": SentenceSplitter(tables, variant, engine="native").segment_lines
            for variant in VARIANTS
        },
    }
    seconds = {
        name: min(_time_segmenting(segment, text) for _ in range(ROUNDS))
        for name, segment in programs.items()
    }
    return {name: len(text) / 1e6 / taken for name, taken in seconds.items()}


def _make_nltk(tables: PunktTables) -> Callable[[bytes], bytes]:
    """Return a function that splits a text into lines of one sentence with nltk."""
    parameters = PunktParameters()
    parameters.abbrev_types |= tables.abbreviations
    parameters.collocations |= tables.collocations
    parameters.sent_starters |= tables.sentence_starters
    parameters.ortho_context.update(tables.contexts)
    tokenizer = PunktSentenceTokenizer(parameters)

    def segment(text: bytes) -> bytes:
        """Return the text with one sentence per line."""
        lines = text.decode().removesuffix("\n").split("\n")
        found = (tokenizer.tokenize(line) if line else [""] for line in lines)
        return "".join(f"{sentence.strip()}\n" for sentences in found for sentence in sentences).encode()

    return segment


def _time_segmenting(segment: Callable[[bytes], bytes], text: bytes) -> float:
    """Return the CPU seconds of splitting the text once."""
    start = time.process_time()
    segment(text)
    return time.process_time() - start


if __name__ == "__main__":
    main()
