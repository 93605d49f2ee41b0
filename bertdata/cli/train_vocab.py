"""``bertdata train-vocab``: train a vocabulary on your text."""

import argparse

from bertdata.build.given_parts import find_training_text
from bertdata.cli.common.parser import Parser, add_overwrite, parse_positive
from bertdata.cli.common.request_flags import add_flags
from bertdata.cli.common.text_flags import (
    SHARED_FLAGS,
    add_language_settings,
    add_record_settings,
    read_record_settings,
)
from bertdata.cli.common.training_progress import TrainingProgress
from bertdata.io import storage
from bertdata.io.file_check import FileEntry, compute_md5
from bertdata.io.outputs import (
    TOKENIZER_JSON,
    VOCABULARY,
    VOCABULARY_MANIFEST,
    check_output,
    refuse_input_as_output,
)
from bertdata.io.terminal import say, say_error
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.record_source import warn_of_escaped_markup
from bertdata.steps.source_parts import has_record_sources, plan_texts
from bertdata.tokens.training.manifest import (
    VocabularyManifest,
    describe_text,
    find_package_versions,
    make_manifest_path,
)
from bertdata.tokens.training.special_tokens import KINDS, SpecialTokens, number_special_tokens
from bertdata.tokens.training.texts import RecordFiles, TextFiles, VocabularyText
from bertdata.tokens.training.train import train_tokenizer
from bertdata.tokens.training.warnings import find_text_warnings, warn_of_unused_special_tokens
from bertdata.tokens.training.word_counts import WordCounts
from bertdata.tokens.training.wordpiece import train_vocabulary

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
    parser = make_parser()
    args = parser.parse_args(arguments)
    special = number_special_tokens(args.kind, args.special)
    as_json = args.output.endswith(".json")
    if not as_json and args.kind != "wordpiece":
        parser.error(f"--kind {args.kind} makes a tokenizer.json: end the name {args.output!r} in .json")
    if not as_json and special.roles != number_special_tokens("wordpiece").roles:
        parser.error("a vocabulary of lines knows its roles by BERT's names: without ROLE=, or write a .json")
    args.lower_case = args.kind == "wordpiece" if args.lower_case is None else args.lower_case
    refuse_input_as_output(args.output, args.texts)
    if args.keep_accents and args.kind != "wordpiece":
        parser.error(f"--keep-accents: {args.kind} keeps accents; leave it out")
    if args.keep_accents and not args.lower_case:
        parser.error("--keep-accents goes with --lower-case: text that keeps its case keeps its accents")
    text = _find_text(args)
    form = TOKENIZER_JSON if as_json else VOCABULARY
    check_output(
        args.output, text.files, form, overwrite=args.overwrite
    )  # the check also finds an output that is a symbolic link to an input
    beside = make_manifest_path(args.output)
    check_output(beside, text.files, VOCABULARY_MANIFEST, overwrite=args.overwrite)
    # Both outputs are opened before the training, which takes long, so that a wrong path is reported at once.
    with storage.open_output(args.output) as file, storage.open_output(beside) as manifest:
        with TrainingProgress(args.output, text.bytes) as progress:
            data, tokens = (_train_json if as_json else _train_wordpiece)(text, special, args, progress)
            progress.warn(_list_warnings(args, special, progress.words, as_json))
        file.write(data)
        manifest.write(_make_manifest(args, data, progress.words).dump())
    say(f"{args.output}: {tokens} tokens")
    return 0


def _find_text(args: argparse.Namespace) -> VocabularyText:
    """Return the text to train on, which consists of records or of text files.

    Raises an error if there is no text, or if a flag does not apply to this kind of text.
    """
    own = {name: value for name in SHARED_FLAGS if (value := getattr(args, name)) is not None}
    given = read_record_settings(args) | own
    if has_record_sources(args.texts, given, skip_bad_inputs=False):
        plan = plan_texts(args.texts, given)
        for note in (*plan.notes, *warn_of_escaped_markup(plan)):
            say_error(f"bertdata: warning: {note}")
        return RecordFiles(plan)
    found = find_training_text(args.texts)
    say(*found.notes)
    return TextFiles(found.parts)


def _train_wordpiece(
    text: VocabularyText, special: SpecialTokens, args: argparse.Namespace, progress: TrainingProgress
) -> tuple[bytes, int]:
    """Train a WordPiece vocabulary.

    Return the contents of its file, which has one token per line, and the number of tokens.
    """
    tokens = train_vocabulary(
        text,
        size=args.size,
        lower_case=args.lower_case,
        keep_accents=args.keep_accents,
        special=special,
        on_read=progress.on_read,
        on_counted=progress.on_counted,
    )
    return "".join(f"{token}\n" for token in tokens).encode(), len(tokens)


def _train_json(
    text: VocabularyText, special: SpecialTokens, args: argparse.Namespace, progress: TrainingProgress
) -> tuple[bytes, int]:
    """Train the vocabulary of a tokenizer.json. Return the contents of the file, and the number of tokens."""
    tokenizer = train_tokenizer(
        text,
        kind=args.kind,
        size=args.size,
        lower_case=args.lower_case,
        keep_accents=args.keep_accents,
        special=special,
        on_read=progress.on_read,
        on_counted=progress.on_counted,
    )
    return f"{tokenizer.to_str(pretty=True)}\n".encode(), tokenizer.get_vocab_size()


def _list_warnings(
    args: argparse.Namespace, special: SpecialTokens, words: WordCounts, as_json: bool
) -> list[str]:
    """Return the warnings about the new vocabulary, for example that it is smaller than requested."""
    found = find_text_warnings(words, args.kind, args.output)
    return (
        found if as_json else [*found, *warn_of_unused_special_tokens(special, args.lower_case, args.output)]
    )


def _make_manifest(args: argparse.Namespace, data: bytes, words: WordCounts) -> VocabularyManifest:
    """Return the manifest of the new vocabulary: settings, package versions and counts of the text."""
    settings = {
        "kind": args.kind,
        "size": args.size,
        "lower_case": args.lower_case,
        "special": args.special,
    }
    if args.keep_accents:
        settings["keep_accents"] = True
    file = FileEntry(name=storage.get_base_name(args.output), bytes=len(data), md5=compute_md5(data))
    return VocabularyManifest(settings, find_package_versions(args.kind), describe_text(words), file)
