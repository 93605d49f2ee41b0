"""Memory and time of ``train-vocab``, and how many tokens its vocabularies need for another text.

usage: python -m benchmarks.vocabularies [--before FOLDER] [--megabytes N ...] [--kinds KIND ...] [--forms
    FORM ...]

FOLDER: a checkout of another commit, whose figures come first in each row.
FORM: ``documents``, or ``one`` for the same text without blank lines, which is a single document.

The training text is that of make_growing_text in benchmarks/corpus.py. The other text consists of the
articles that the kit holds out and of the sentences of MRPC. Without the kit it is the sample articles.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import corpus, measure

KINDS = ("wordpiece", "bpe", "unigram")
FORMS = {"documents": ".txt", "one": ".one"}
"""For each form of the text, the ending of its file's name."""
SIZE = 30_000
MEGABYTE = 1_000_000


def write_text(path: Path, megabytes: int) -> None:
    """Write a text of this size to ``path``. Write the same text without blank lines to a file next to it."""
    rest = megabytes * MEGABYTE
    with path.open("wb") as documents, path.with_suffix(".one").open("wb") as one:
        for copy in corpus.make_growing_text(rest):
            copy = copy[:rest]
            documents.write(copy)
            one.write(re.sub(rb"\n\n+", b"\n", copy))
            rest -= len(copy)


def read_other_text() -> str:
    """Return a text on which no vocabulary is trained: held-out articles, and the news sentences of MRPC."""
    place = corpus.find_kit()
    if place:
        articles = (place / "results" / "eval.txt").read_text(encoding="utf-8")
        rows = (place / "mrpc" / "msr_paraphrase_train.txt").read_text(encoding="utf-8-sig").splitlines()
        return "\n\n".join([articles, *("\n".join(row.split("\t")[3:]) for row in rows[1:])])
    paths = sorted((corpus.ROOT / "golden" / "articles").glob("*"))
    return "".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())


def count_tokens(path: Path, text: str) -> int:
    """Return the number of tokens into which a tokenizer.json splits a text."""
    from tokenizers import Tokenizer

    documents = text.split("\n\n")
    encoded = Tokenizer.from_file(str(path)).encode_batch(documents, add_special_tokens=False)
    return sum(len(one.ids) for one in encoded)


def measure_training(tree: Path, text: Path, kind: str, output: Path) -> measure.Cost:
    """Train a vocabulary with the code of a checkout, and return the cost.

    tree: directory of the checkout.
    kind: type of the vocabulary, such as "bpe".
    """
    start = (
        f"import sys; sys.path.insert(0, {str(tree)!r}); from bertdata.cli.main import main; sys.exit(main())"
    )
    words = ("train-vocab", str(text), "--output", str(output), "--size", str(SIZE), "--kind", kind)
    return measure.measure_command(sys.executable, "-c", start, *words)


def main() -> None:
    """Print a row for each size and form of the text and each type of vocabulary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, help="checkout of another commit")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[25, 100])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        write_text(args.write, args.megabytes[0])
        return
    trees = ([args.before.resolve()] if args.before else []) + [corpus.ROOT]
    other = read_other_text()
    with TemporaryDirectory() as place:
        for megabytes in args.megabytes:
            text = Path(place) / "text.txt"
            # This runs in a new process, because the peak memory of a child process includes the parent's
            # memory when it is forked.
            words = ["-m", "benchmarks.vocabularies", "--write", str(text), "--megabytes", str(megabytes)]
            subprocess.run([sys.executable, *words], check=True)
            for kind in args.kinds:
                for form in args.forms:
                    print_row(trees, text.with_suffix(FORMS[form]), kind, megabytes, other)


def print_row(trees: list[Path], text: Path, kind: str, megabytes: int, other: str) -> None:
    """Print a row of the table: the figures of each checkout, one after another.

    trees: directories of the checkouts.
    other: the text on which no vocabulary is trained.
    """
    costs, tokens = [], []
    for tree in trees:
        output = text.with_name("vocabulary.json")
        costs.append(measure_training(tree, text, kind, output))
        tokens.append(count_tokens(output, other))
    form = "one document" if text.suffix == FORMS["one"] else "documents"
    memory = ", ".join(f"{cost.megabytes:.0f}" for cost in costs)
    seconds = ", ".join(f"{cost.cpu:.0f}" for cost in costs)
    made = ", ".join(map(str, tokens))
    print(f"{kind:9} {megabytes:3} MB, {form:12}: {memory} MB; {seconds} CPU s; {made} tokens", flush=True)


if __name__ == "__main__":
    main()
