"""``bertdata show``: print examples in readable form."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from bertdata.cli.common.objective_flag import add_objective, load_objective
from bertdata.cli.common.parser import Parser, parse_not_negative, parse_positive
from bertdata.dataset.discover import FoundDataset, find_shard
from bertdata.dataset.vocabulary import load_dataset_vocabulary
from bertdata.errors import UsageError
from bertdata.examples.objectives import find_objective
from bertdata.io.terminal import say_text
from bertdata.records import ShardLayout
from bertdata.shards.containers import open_reader
from bertdata.shards.mds.names import IDS_TYPE_HELP, IDS_TYPES
from bertdata.shards.packed.packs import PackReader
from bertdata.shards.protocol import ShardReader
from bertdata.tokens.readable import make_words_readable

EXAMPLE = "  bertdata show shards/part-00000-of-00500.tfrecord --vocab vocab.txt --index 5 --num 2"

SUMMARY = """\
Prints examples of a shard in any file format: their words, their padding and their masks (position, whether
it now holds [MASK], its own token or a random one, and the original token). Words come from the vocabulary
next to the shard's manifest; words of BPE and Unigram include the blank before them. For a shard of another
tool, give --vocab: without it token ids are printed, and [MASK] cannot be told from a random token. In a
shard of packed rows, --index and --num count rows, and each row's sequences are printed in order."""

_ROWS = 64
_Titled = tuple[str, Any, ShardLayout]


def make_parser() -> Parser:
    """Return the parser of ``bertdata show``."""
    parser = Parser("bertdata show", EXAMPLE, SUMMARY)
    parser.add_argument(
        "shard", metavar="SHARD", help="TFRecord, HDF5, Parquet or MDS file, or directory of MDS shards"
    )
    parser.add_argument(
        "--index",
        type=parse_not_negative,
        default=0,
        metavar="N",
        help="number of the first example (or packed row) to print, from 0 (default: 0)",
    )
    parser.add_argument(
        "--num",
        type=parse_positive,
        default=1,
        metavar="N",
        help="how many examples (or packed rows) to print (default: 1)",
    )
    parser.add_argument(
        "--vocab", metavar="FILE", help="vocabulary or tokenizer.json that the shard was made with"
    )
    parser.add_argument("--ids-type", choices=IDS_TYPES, metavar="TYPE", help=IDS_TYPE_HELP)
    add_objective(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Print the examples and return the exit status."""
    args = make_parser().parse_args(arguments)
    load_objective(args.objective)
    dataset, shard = find_shard(args.shard, args.objective)
    with open_reader(
        shard.path,
        objective=shard.objective,
        vocabulary=args.vocab,
        padding_id=shard.padding_id,
        ids_type=args.ids_type,
    ) as reader:
        objective = find_objective(reader.layout.objective)
        words, mask_id = _find_words(dataset, args.vocab)
        texts = _list_packed_rows(reader) if isinstance(reader, PackReader) else _list_examples(reader)
        chosen = list(islice(texts, args.index, args.index + args.num))
        if not chosen:
            kind, count = (
                ("rows", reader.rows) if isinstance(reader, PackReader) else ("examples", len(reader))
            )
            raise UsageError(
                f"--index {args.index}: {args.shard} holds {count} {kind}, the last is {count - 1}"
            )
        for titled in chosen:
            for title, example, layout in titled:
                say_text(f"{title}: {objective.describe(example, words, mask_id, layout)}")
    return 0


def _list_examples(reader: ShardReader) -> Iterator[list[_Titled]]:
    """Yield each example with its title, as a list with one entry.

    This is the form in which packed rows, which have several entries, are printed too.
    """
    for number, example in enumerate(reader):
        yield [(f"example {number}", example, reader.layout)]


def _list_packed_rows(reader: PackReader) -> Iterator[list[_Titled]]:
    """Yield the sequences of each packed row as a list. Each sequence has a title and a layout of its length.

    The last sequence of a row includes the padding of the row, so that the padding is printed once.
    """
    for number, row in enumerate(row for packs in reader.packs(_ROWS) for row in packs.rows()):
        left = reader.layout.max_seq_length - sum(len(example.ids) for example in row)
        titled = []
        for place, example in enumerate(row, 1):
            length = len(example.ids) + (left if place == len(row) else 0)
            title = f"row {number}, sequence {place} of {len(row)}"
            titled.append((title, example, replace(reader.layout, max_seq_length=length)))
        yield titled


def _find_words(dataset: FoundDataset, vocab: str | None) -> tuple[list[str], int | None]:
    """Return the text of each token by token id, and the id of [MASK].

    Returns ([], None) if the vocabulary is not available.
    """
    vocabulary = load_dataset_vocabulary(vocab, dataset)
    return (make_words_readable(vocabulary), vocabulary.mask) if vocabulary else ([], None)
