"""``bertdata show``: examples as a person reads them."""

from itertools import islice

from bertdata.cli.common.example_flags import add_objective, load_objective
from bertdata.cli.common.parser import Parser, positive
from bertdata.dataset.discover import FoundDataset, find_shard
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import UsageError
from bertdata.examples.objectives import find_objective
from bertdata.io.terminal import say_text
from bertdata.shards.containers import open_reader

EXAMPLE = "  bertdata show shards/part-00000-of-00500.tfrecord --vocab vocab.txt --index 5 --num 2"

SUMMARY = """\
Prints words, masks (position, what stands there: [MASK], kept or random, and the label) and padding
of examples in a shard of any container. Words come from the vocabulary beside the shard's manifest. For
another tool's shard give --vocab: without it ids are printed, and [MASK] looks like a random word."""


def make_parser() -> Parser:
    parser = Parser("bertdata show", EXAMPLE, SUMMARY)
    parser.add_argument("shard", metavar="SHARD", help="TFRecord, HDF5 or Parquet file")
    parser.add_argument(
        "--index", type=int, default=0, metavar="I", help="first example to show (default: 0)"
    )
    parser.add_argument("--num", type=positive, default=1, metavar="N", help="how many (default: 1)")
    parser.add_argument("--vocab", metavar="FILE", help="the vocabulary that the shard was made with")
    add_objective(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    if args.index < 0:
        raise UsageError(f"--index {args.index}: expected 0 or more")
    load_objective(args.objective)
    dataset, shard = find_shard(args.shard, args.objective)
    with open_reader(shard.path, objective=shard.objective) as reader:
        objective = find_objective(reader.layout.objective)
        words, mask_id = _words(dataset, args.vocab)
        examples = (example for batch in reader.batches(64) for example in batch.examples())
        chosen = list(islice(examples, args.index, args.index + args.num))
        if not chosen:
            raise UsageError(f"--index {args.index}: {args.shard} holds {len(reader)} examples, the last is "
                             f"{len(reader) - 1}")  # fmt: skip
        for number, example in enumerate(chosen, args.index):
            say_text(f"example {number}: {objective.describe(example, words, mask_id, reader.layout)}")
    return 0


def _words(dataset: FoundDataset, vocab: str | None) -> tuple[list[str], int | None]:
    """The word of each id and the id of [MASK]; nothing of both where no vocabulary is known."""
    vocabulary = known_vocabulary(vocab, dataset)
    return (list(vocabulary.words), vocabulary.mask) if vocabulary else ([], None)
