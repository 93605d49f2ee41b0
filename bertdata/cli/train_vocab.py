"""``bertdata train-vocab``: train a vocabulary on your text."""

import argparse

from bertdata.cli.common.parser import Parser, add_overwrite, parse_positive
from bertdata.cli.common.request_flags import add_flags, make_request
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.cli.common.text_flags import add_language_settings, add_record_settings
from bertdata.io.terminal import say
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.train_vocab import TrainVocabRequest, plan_training
from bertdata.tokens.training.special_tokens import KINDS

EXAMPLE = """\
  bertdata train-vocab part-* --output vocab.txt --size 8000
  bertdata train-vocab part-* --output tokenizer.json --size 32000 --kind bpe
  bertdata train-vocab corpus/*.jsonl.zst --text-field text --output vocab.txt --size 32000"""

SUMMARY = """\
Trains a vocabulary: WordPiece and byte-level BPE with the tokenizers library, Unigram with sentencepiece
(both in the extra vocab). The same text and the same releases of these packages give the same file;
FILE.manifest.json names the releases. If FILE ends in .json, it is a tokenizer.json, which transformers
loads. Otherwise it is a WordPiece vocabulary with one token per line.
A wordpiece vocabulary starts as BERT's does, with [PAD] [UNK] [CLS] [SEP] [MASK]. bpe (with GPT-2's word
pattern) and unigram have RoBERTa's special tokens: <s> <pad> </s> <unk> first, <mask> last."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata train-vocab``."""
    parser = Parser("bertdata train-vocab", EXAMPLE, SUMMARY)
    parser.add_argument(
        "texts",
        nargs="+",
        metavar="TEXT",
        help="text files, patterns, URLs, a directory made by bertdata segment, or records (JSONL, Parquet, "
        "Arrow, extracted articles; for other formats give --input-kind)",
    )
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="vocabulary or tokenizer.json to write"
    )
    parser.add_argument(
        "--size",
        required=True,
        type=parse_positive,
        metavar="N",
        help="largest number of tokens in the vocabulary",
    )
    parser.add_argument(
        "--kind", choices=KINDS, default="wordpiece", help="type of vocabulary (default: wordpiece)"
    )
    parser.add_argument(
        "--special",
        nargs="+",
        action="extend",
        default=[],
        metavar="TOKEN",
        help="additional special tokens, whose ids follow the ids of the usual special tokens. ROLE=TOKEN "
        "replaces the usual token for cls, sep, pad, mask or unk (only in a .json file). A token that "
        "is not a single word, such as [CITY], is recognised in text only with a .json file",
    )
    parser.add_argument(
        "--lower-case",
        action=argparse.BooleanOptionalAction,
        help="lower-case the text; wordpiece also strips accents (default: only for wordpiece)",
    )
    add_overwrite(parser)
    parser.add_argument(
        "--keep-accents",
        action="store_true",
        help="wordpiece: keep the accents of lower-cased text; give bertdata create the same flag",
    )
    sources = parser.add_argument_group(
        "records", "for records in place of text files; bertdata segment explains these flags"
    )
    add_flags(sources, CreateRequest, "input_kind")
    add_language_settings(sources)
    add_record_settings(sources)
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata train-vocab`` and return the exit status."""
    request = make_request(TrainVocabRequest, make_parser().parse_args(arguments))
    training = plan_training(request)
    say(*training.notes)
    with StepProgressDisplay() as progress:
        made = training.train(progress)
    say(f"{made.path}: {made.tokens} tokens")
    return 0
