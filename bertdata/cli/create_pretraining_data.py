"""``bertdata create-pretraining-data``: a drop-in for MLPerf's script of that name."""

import argparse
import sys
from contextlib import ExitStack

from bertdata._native import Engine
from bertdata.build.warnings import check_documents, text_warnings
from bertdata.cli.common.parser import Parser, add_engine
from bertdata.config.dialects import DIALECTS
from bertdata.errors import SettingsError
from bertdata.examples.bert.objective import BERT
from bertdata.examples.bert.settings import BertSettings
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.io.file_check import HashingSink
from bertdata.records import ExampleSource
from bertdata.shards.write import write_examples
from bertdata.tokens.load import load_tokenizer, load_vocabulary

EXAMPLE = """\
  bertdata create-pretraining-data --input_file=part-00000-of-00500 \\
      --output_file=part-00000.tfrecord --vocab_file=vocab.txt --max_seq_length=512 \\
      --max_predictions_per_seq=76 --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=10"""

SUMMARY = """\
All inputs together (patterns and commas allowed) become examples, dealt in turn to the outputs.
Flags mean what they mean in the script; files that exist are overwritten."""


def make_parser() -> Parser:
    parser = Parser("bertdata create-pretraining-data", EXAMPLE, SUMMARY)
    parser.add_argument(
        "--input_file", required=True, metavar="A,B", help="text files or patterns, by commas"
    )
    parser.add_argument(
        "--output_file", required=True, metavar="C,D", help="TFRecord files to write, by commas"
    )
    parser.add_argument("--vocab_file", required=True, metavar="FILE|NAME", help="WordPiece vocabulary")
    parser.add_argument(
        "--do_lower_case",
        type=_boolean,
        nargs="?",
        const=True,
        default=True,
        metavar="BOOL",
        help="lower-case the text (default: true)",
    )
    parser.add_argument(
        "--nodo_lower_case", dest="do_lower_case", action="store_false", help=argparse.SUPPRESS
    )
    parser.add_argument("--max_seq_length", type=int, default=128, metavar="INT", help="default: 128")
    parser.add_argument("--max_predictions_per_seq", type=int, default=20, metavar="INT", help="default: 20")
    parser.add_argument("--random_seed", type=int, default=12345, metavar="INT", help="default: 12345")
    parser.add_argument("--dupe_factor", type=int, default=10, metavar="INT", help="default: 10")
    parser.add_argument("--masked_lm_prob", type=float, default=0.15, metavar="FLOAT", help="default: 0.15")
    parser.add_argument("--short_seq_prob", type=float, default=0.1, metavar="FLOAT", help="default: 0.1")
    parser.add_argument(
        "--do_whole_word_mask",
        type=_boolean,
        nargs="?",
        const=True,
        default=False,
        metavar="BOOL",
        help="Google's script has it: mask whole words (default: false)",
    )
    parser.add_argument("--dialect", choices=tuple(DIALECTS), default="mlperf", help="default: mlperf")
    add_engine(parser)
    return parser


def _boolean(text: str) -> bool:
    known = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return known[text.lower()]


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    settings = BertSettings(
        dialect=args.dialect,
        max_seq_length=args.max_seq_length,
        max_predictions_per_seq=args.max_predictions_per_seq,
        dupe_factor=args.dupe_factor,
        random_seed=args.random_seed,
        masked_lm_prob=args.masked_lm_prob,
        short_seq_prob=args.short_seq_prob,
        lower_case=args.do_lower_case,
        whole_word_mask=args.do_whole_word_mask,
    )
    inputs = find_inputs(args.input_file)
    outputs = _split("--output_file", args.output_file)
    if len(set(outputs)) < len(outputs):
        raise SettingsError(f"--output_file={args.output_file}: names an output twice")
    with ExitStack() as stack:  # all files open before the long work, none appears before all are whole
        files = [stack.enter_context(storage.open_output(output)) for output in outputs]
        sinks = [HashingSink(file.write) for file in files]
        examples = _make(inputs, find_vocabulary(args.vocab_file), settings, args.engine)
        for start, sink in enumerate(sinks):
            write_examples(examples, settings, sink, engine=args.engine, start=start, step=len(outputs))
    for start, (output, sink) in enumerate(zip(outputs, sinks, strict=True)):
        print(f"{output}: {len(range(start, len(examples), len(outputs)))} examples, {sink.bytes} bytes")
    return 0


def _split(flag: str, names: str) -> list[str]:
    split = names.split(",")
    if not all(split):
        raise SettingsError(f"{flag}={names}: holds an empty name, expected names separated by commas")
    return split


def find_inputs(flag: str) -> list[str]:
    """The files of a comma-separated list of patterns in the script's order: as listed, each sorted."""
    return [path for pattern in _split("--input_file", flag) for path in storage.expand([pattern])]


def _make(inputs: list[str], vocabulary: str, settings: BertSettings, engine: Engine | None) -> ExampleSource:
    tokenizer = load_tokenizer(vocabulary, settings.dialect, settings.lower_case, engine)
    texts = [storage.read_bytes(path) for path in inputs]
    documents = tokenizer.encode(texts, inputs)
    together = ", ".join(inputs)
    check_documents(documents, together)
    for text, path in zip(texts, inputs, strict=True):
        _warn(text_warnings(text, path, settings.dialect))
    _warn(BERT.warnings(documents, together))
    del texts
    return BERT.make(documents, load_vocabulary(vocabulary, settings.dialect), settings, engine)


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        print(f"bertdata: warning: {warning}", file=sys.stderr)
