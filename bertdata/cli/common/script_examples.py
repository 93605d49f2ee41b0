"""Examples made as the original scripts make them, for ``create-pretraining-data`` and ``like``.

The scripts take comma-separated file names and patterns, and they check few bounds of their settings.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace

from bertdata._native import Engine
from bertdata.build.warnings import check_documents, text_warnings
from bertdata.cli.common.folded_warnings import FoldedWarnings
from bertdata.config.dialects import SPECIAL_TOKENS, Dialect
from bertdata.config.settings import LONGEST_SEQUENCE, require
from bertdata.dataset.lost_text import count_lost, warn_of_lost
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
from bertdata.tokens.fit import casing_warnings, unknown_warnings
from bertdata.tokens.vocabulary import WordPieceVocabulary, parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer


@dataclass(frozen=True, slots=True)
class FileNames:
    """Values of a script's flags that name files. Inputs and outputs may be several, separated by commas.

    inputs: file names or patterns. flags: names of the flags for inputs and outputs, for errors.
    casing_remedies: advice in warnings, first for a vocabulary with capitals, then for one without.
    """

    inputs: str
    outputs: str
    vocabulary: str
    flags: tuple[str, str] = ("--input_file", "--output_file")
    casing_remedies: tuple[str, str] = ("give --do_lower_case=false", "give --do_lower_case=true")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptSettings(BertSettings):
    """Settings with the scripts' loose bounds.

    max_predictions_per_seq may be 0 or exceed the sequence length.
    pad_position: as in ShardLayout. Graphcore's script has a flag for it.
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
    """Make the examples of all inputs together and write them to the outputs in turn.

    With two outputs, the first gets examples 0, 2, 4, ... and the second 1, 3, 5, ...
    overwrite: also replace existing files that are not TFRecord files, as the scripts do.
    """
    inputs = find_inputs(names.inputs, names.flags[0])
    outputs = _split(names.flags[1], names.outputs)
    if not outputs:
        raise SettingsError(f"{names.flags[1]}={names.outputs}: names no file")
    if find_repeated(outputs) is not None:
        raise SettingsError(f"{names.flags[1]}={names.outputs}: names an output twice")
    for output in outputs:
        check_output(output, [*inputs, names.vocabulary], TFRECORD, overwrite=overwrite)
    with (
        ExitStack() as stack
    ):  # opening all files first finds bad paths before the long work; none appears until all are complete
        files = [stack.enter_context(storage.open_output(output)) for output in outputs]
        sinks = [HashingSink(file.write) for file in files]
        documents, examples = _make(
            inputs, find_vocabulary(names.vocabulary), settings, engine, names.casing_remedies
        )
        for start, sink in enumerate(sinks):
            write_examples(examples, settings, sink, engine=engine, start=start, step=len(outputs))
    for start, (output, sink) in enumerate(zip(outputs, sinks, strict=True)):
        say(f"{output}: {len(range(start, len(examples), len(outputs)))} examples, {sink.bytes} bytes")
    _tell_lost(", ".join(inputs), count_lost(examples), documents.tokens, settings)


def _tell_lost(name: str, lost: int | None, tokens: int, settings: ScriptSettings) -> None:
    """Report how much of the text is in no example: as a warning if it is much, otherwise as a line."""
    if warnings := warn_of_lost(name, lost, tokens, settings.max_seq_length, "or raise --max_seq_length"):
        warn(warnings)
    elif lost:
        say(f"in no example: {lost} of the {tokens} tokens of the text")


def probability(value: float) -> float:
    """Return the value limited to 0 to 1. The scripts accept other values, which act like 0 or 1."""
    return min(max(value, 0.0), 1.0)


def _split(flag: str, names: str) -> list[str]:
    """Return the names between commas. Warn about empty names and leave them out."""
    split = split_names(names, ",")
    if not all(split):
        warn([f"{flag}={names}: a name between commas is empty; it is left out"])
    return [name for name in split if name]


def find_inputs(names: str, flag: str = "--input_file") -> list[str]:
    """Return the files of a comma-separated list of patterns. The files of each pattern are sorted.

    The scripts take a pattern's files in the order of the directory, hidden files included. Like the scripts,
    continue if a pattern names no file, but with a warning. MissingInputError if no pattern names a file.
    """
    found: list[str] = []
    for pattern in _split(flag, names):
        try:
            found += expand_patterns([pattern])
        except MissingInputError as error:
            warn([f"{error}; it is left out, as by the script"])
    if not found:
        raise MissingInputError(f"{flag}={names}: names no file")
    return found


def _make(
    inputs: list[str],
    vocabulary_path: str,
    settings: BertSettings,
    engine: Engine | None,
    remedies: tuple[str, str],
) -> tuple[Documents, MadeExamples]:
    """Read all inputs as one text and return its documents and their examples."""
    vocabulary = _load_vocabulary(vocabulary_path, settings.rules)
    tokenizer = WordPieceTokenizer(vocabulary, settings.rules, lower_case=settings.lower_case, engine=engine)
    warn(warn_about_local_name(vocabulary_path, vocabulary.md5))
    warn(casing_warnings(vocabulary, settings.lower_case, remedies=remedies))
    texts = [storage.read_bytes(path) for path in inputs]
    for text, path in zip(texts, inputs, strict=True):
        refuse_other_kinds(text, path)
    documents = tokenizer.encode(texts, inputs)
    together = ", ".join(inputs)
    check_documents(documents, together)
    warn(unknown_warnings(documents.unknown, documents.tokens, together))
    found = zip(texts, inputs, strict=True)
    _warn_folded([one for text, path in found for one in text_warnings(text, path, settings.dialect)])
    warn(BERT.warnings(documents, together))
    del texts
    return documents, BERT.make(documents, vocabulary, settings, engine)


def _load_vocabulary(path: str, dialect: Dialect) -> WordPieceVocabulary:
    """Load a vocabulary that may lack [PAD]. The scripts never look it up but pad with id 0."""
    required = tuple(token for token in SPECIAL_TOKENS if token != "[PAD]")
    vocabulary = parse_vocabulary(storage.read_bytes(path), path, dialect, required)
    if "[PAD]" not in vocabulary.ids:
        warn([f"{path}: lacks [PAD]; examples are padded with id 0, which is {vocabulary.words[0]!r} here"])
    return vocabulary


def _warn_folded(warnings: list[str]) -> None:
    """Print warnings with similar ones folded (see FoldedWarnings)."""
    folded = FoldedWarnings()
    warn([*filter(folded.is_first, warnings), *folded.rest()])


def warn(warnings: list[str]) -> None:
    """Print the warnings, one per line."""
    for warning in warnings:
        say_error(f"bertdata: warning: {warning}")
