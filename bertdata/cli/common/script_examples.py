"""Creation of examples as BERT's original scripts do it, for ``create-pretraining-data`` and ``like``.

The scripts are create_pretraining_data.py of Google, MLPerf and Graphcore. They accept comma-separated lists
of file names and patterns, and they check few bounds of their settings.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace

from bertdata._native import Engine
from bertdata.build.warnings import check_documents, list_dropped_byte_warnings
from bertdata.cli.common.folded_warnings import FoldedWarnings
from bertdata.config.dialects import SPECIAL_TOKENS, Dialect
from bertdata.config.settings import LONGEST_SEQUENCE, require
from bertdata.dataset.lost_text import count_lost, make_lost_warnings
from bertdata.errors import MissingInputError, SettingsError
from bertdata.examples.bert.objective import BERT
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.fields import VALUE_LIMIT
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary, warn_about_local_name
from bertdata.io.file_check import HashingSink
from bertdata.io.file_kind import refuse_other_kinds
from bertdata.io.name_lists import split_names
from bertdata.io.outputs import TFRECORD, check_output
from bertdata.io.patterns import expand_patterns
from bertdata.io.real_paths import find_repeated
from bertdata.io.terminal import say, say_error
from bertdata.records import Documents, MadeExamples, ShardLayout
from bertdata.shards.write import write_examples
from bertdata.tokens.fit import warn_of_casing, warn_of_unknown_tokens
from bertdata.tokens.vocabulary import WordPieceVocabulary, parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer


@dataclass(frozen=True, slots=True)
class FileNames:
    """Values of a script's flags that name files. Inputs and outputs are comma-separated lists.

    inputs: file names or patterns of the input files.
    flags: names of the script's flags for inputs and for outputs, for error messages.
    casing_remedies: advice in warnings about letter case. The first is for a vocabulary with capitals, the
        second for one without.
    """

    inputs: str
    outputs: str
    vocabulary: str
    flags: tuple[str, str] = ("--input_file", "--output_file")
    casing_remedies: tuple[str, str] = ("give --do_lower_case=false", "give --do_lower_case=true")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptSettings(BertSettings):
    """Settings of BERT's examples, with the loose bounds of BERT's original scripts.

    max_predictions_per_seq may be 0 or larger than the sequence length.

    pad_position: position id of padding, which is a flag of Graphcore's script.
    """

    pad_position: int | None = None

    def __post_init__(self) -> None:
        super(ScriptSettings, self).__post_init__()
        require(
            self.pad_position is None or 0 <= self.pad_position < VALUE_LIMIT,
            f"pad_position_value is {self.pad_position}, expected 0 to {VALUE_LIMIT - 1}",
        )

    @property
    def layout(self) -> ShardLayout:
        return replace(super(ScriptSettings, self).layout, pad_position=self.pad_position)

    def check_predictions(self) -> None:
        """Raise SettingsError unless max_predictions_per_seq is from 0 to LONGEST_SEQUENCE."""
        require(
            0 <= self.max_predictions_per_seq <= LONGEST_SEQUENCE,
            f"max_predictions_per_seq is {self.max_predictions_per_seq}, expected 0 to {LONGEST_SEQUENCE}",
        )


def make_files(
    names: FileNames, settings: ScriptSettings, engine: Engine | None, *, overwrite: bool = False
) -> None:
    """Create the examples of all input files together and write them to the output files in turn.

    With two outputs, the first gets examples 0, 2, 4, ... and the second gets examples 1, 3, 5, ...

    overwrite: True allows an output to replace an existing file that is not a TFRecord file, as BERT's
        original scripts do.
    """
    inputs = find_inputs(names.inputs, names.flags[0])
    outputs = _split_names(names.flags[1], names.outputs)
    if not outputs:
        raise SettingsError(f"{names.flags[1]}={names.outputs}: names no file")
    if find_repeated(outputs) is not None:
        raise SettingsError(f"{names.flags[1]}={names.outputs}: names an output twice")
    for output in outputs:
        check_output(output, [*inputs, names.vocabulary], TFRECORD, overwrite=overwrite)
    # Open all outputs before the work, which takes long, so that a wrong path is reported at once. The files
    # get their final names only when all of them are complete.
    with ExitStack() as stack:
        files = [stack.enter_context(storage.open_output(output)) for output in outputs]
        sinks = [HashingSink(file.write) for file in files]
        documents, examples = _make_examples(
            inputs, find_vocabulary(names.vocabulary), settings, engine, names.casing_remedies
        )
        for start, sink in enumerate(sinks):
            write_examples(examples, settings, sink, engine=engine, start=start, step=len(outputs))
    for start, (output, sink) in enumerate(zip(outputs, sinks, strict=True)):
        say(f"{output}: {len(range(start, len(examples), len(outputs)))} examples, {sink.bytes} bytes")
    _report_lost_text(", ".join(inputs), count_lost(examples), documents.tokens, settings)


def _report_lost_text(name: str, lost: int | None, tokens: int, settings: ScriptSettings) -> None:
    """Print what share of the text is in no example. It is a warning if the share is large.

    lost: number of tokens that are in no example. None if they were not counted.
    tokens: number of tokens of the text.
    """
    if warnings := make_lost_warnings(
        name, lost, tokens, settings.max_seq_length, "or raise --max_seq_length"
    ):
        print_warnings(warnings)
    elif lost:
        say(f"in no example: {lost} of the {tokens} tokens of the text")


def clip_probability(value: float) -> float:
    """Return the value limited to the range from 0 to 1.

    BERT's original scripts accept values outside of this range. They treat them like 0 or like 1.
    """
    return min(max(value, 0.0), 1.0)


def _split_names(flag: str, names: str) -> list[str]:
    """Return the names in a comma-separated list. Empty names are left out with a warning."""
    split = split_names(names, ",")
    if not all(split):
        print_warnings([f"{flag}={names}: a name between commas is empty; it is left out"])
    return [name for name in split if name]


def find_inputs(names: str, flag: str = "--input_file") -> list[str]:
    """Return the files that a comma-separated list of patterns means. The files of each pattern are sorted.

    BERT's original scripts do not sort the files, and they include hidden files. If a pattern matches no
    file, they silently continue. This function continues too, but prints a warning. Raises MissingInputError
    if no pattern matches a file.
    """
    found: list[str] = []
    for pattern in _split_names(flag, names):
        try:
            found += expand_patterns([pattern])
        except MissingInputError as error:
            print_warnings([f"{error}; it is left out, as by the script"])
    if not found:
        raise MissingInputError(f"{flag}={names}: names no file")
    return found


def _make_examples(
    inputs: list[str],
    vocabulary_path: str,
    settings: BertSettings,
    engine: Engine | None,
    remedies: tuple[str, str],
) -> tuple[Documents, MadeExamples]:
    """Read the input files as one text. Return its documents and their examples.

    remedies: advice in warnings about letter case, for a vocabulary with capitals and for one without.
    """
    vocabulary = _load_vocabulary(vocabulary_path, settings.rules)
    tokenizer = WordPieceTokenizer(vocabulary, settings.rules, lower_case=settings.lower_case, engine=engine)
    print_warnings(warn_about_local_name(vocabulary_path, vocabulary.md5))
    print_warnings(warn_of_casing(vocabulary, settings.lower_case, remedies=remedies))
    texts = [storage.read_bytes(path) for path in inputs]
    for text, path in zip(texts, inputs, strict=True):
        refuse_other_kinds(text, path)
    documents = tokenizer.encode(texts, inputs)
    together = ", ".join(inputs)
    check_documents(documents, together)
    print_warnings(warn_of_unknown_tokens(documents.unknown, documents.tokens, together))
    found = zip(texts, inputs, strict=True)
    _print_folded_warnings(
        [one for text, path in found for one in list_dropped_byte_warnings(text, path, settings.dialect)]
    )
    print_warnings(BERT.warnings(documents, together))
    del texts
    return documents, BERT.make(documents, vocabulary, settings, engine)


def _load_vocabulary(path: str, dialect: Dialect) -> WordPieceVocabulary:
    """Load a vocabulary, which may lack [PAD], because BERT's original scripts always pad with id 0 and never
    look [PAD] up.
    """
    required = tuple(token for token in SPECIAL_TOKENS if token != "[PAD]")
    vocabulary = parse_vocabulary(storage.read_bytes(path), path, dialect, required)
    if "[PAD]" not in vocabulary.ids:
        print_warnings(
            [f"{path}: lacks [PAD]; examples are padded with id 0, which is {vocabulary.words[0]!r} here"]
        )
    return vocabulary


def _print_folded_warnings(warnings: list[str]) -> None:
    """Print the warnings.

    From each group of similar warnings, print the first and a line that counts the others.
    """
    folded = FoldedWarnings()
    print_warnings([*filter(folded.is_first, warnings), *folded.summarise_others()])


def print_warnings(warnings: list[str]) -> None:
    """Print the warnings, one per line."""
    for warning in warnings:
        say_error(f"bertdata: warning: {warning}")
