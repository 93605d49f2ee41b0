"""The step that trains a vocabulary on a text."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from bertdata.build.given_parts import find_training_text
from bertdata.build.part_names import name_parts
from bertdata.config.declared import repeat_setting, setting
from bertdata.errors import SettingsError, UsageError
from bertdata.io import storage
from bertdata.io.file_check import FileEntry, compute_file_md5s, compute_md5
from bertdata.io.outputs import (
    TOKENIZER_JSON,
    VOCABULARY,
    VOCABULARY_MANIFEST,
    check_output,
    refuse_input_as_output,
)
from bertdata.sources.kinds import CHOSEN_KINDS
from bertdata.sources.settings import RecordSettings
from bertdata.steps.keywords import accept_keywords, collect_given, convert_paths
from bertdata.steps.memory_sources import open_records
from bertdata.steps.progress import GivenProgress, OnProgress, add_warnings_first, choose_progress
from bertdata.steps.record_source import warn_of_escaped_markup
from bertdata.steps.segment_request import INPUT_KIND_HELP
from bertdata.steps.source_parts import has_record_sources, plan_texts
from bertdata.steps.values import (
    AnyPath,
    AnySources,
    check_positive_integer,
    convert_path,
    join_names,
    list_paths,
)
from bertdata.steps.vocabulary_progress import VocabularyProgress
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import SegmentSettings
from bertdata.tokens.training.manifest import (
    VocabularyManifest,
    describe_text,
    find_package_versions,
    make_manifest_path,
)
from bertdata.tokens.training.special_tokens import KINDS, Kind, SpecialTokens, number_special_tokens
from bertdata.tokens.training.texts import RecordFiles, TextFiles, VocabularyText
from bertdata.tokens.training.train import train_tokenizer
from bertdata.tokens.training.warnings import find_text_warnings, warn_of_unused_special_tokens
from bertdata.tokens.training.wordpiece import train_vocabulary

WORDPIECE: Kind = "wordpiece"


@dataclass(frozen=True, kw_only=True)
class GivenTextRecords:
    """Settings for records in the place of text files. None means that the user did not set the setting."""

    input_kind: str | None = setting(None, INPUT_KIND_HELP, CHOSEN_KINDS, metavar="KIND")
    language: str | None = repeat_setting(SegmentSettings, "language", default=None)
    escaped_articles: str | None = repeat_setting(SegmentSettings, "escaped_articles")
    text_field: str | None = repeat_setting(RecordSettings, "text_field")
    id_field: str | None = repeat_setting(RecordSettings, "id_field")
    language_field: str | None = repeat_setting(RecordSettings, "language_field")
    max_record_bytes: int | None = repeat_setting(RecordSettings, "max_record_bytes", default=None)
    skip_bad_records: bool | None = repeat_setting(RecordSettings, "skip_bad_records", default=None)
    encoding: str | None = repeat_setting(RecordSettings, "encoding", default=None)
    keep_languages: str | Iterable[str] | None = repeat_setting(SelectionSettings, "keep_languages")
    quoting: str | None = repeat_setting(RecordSettings, "quoting")
    separator: str | None = repeat_setting(RecordSettings, "separator")
    no_heading: bool | None = repeat_setting(RecordSettings, "no_heading", default=None)
    as_is: bool | None = repeat_setting(RecordSettings, "as_is", default=None)


@dataclass(frozen=True)
class TrainVocabRequest(GivenTextRecords):
    """All arguments of ``train_vocab``.

    texts: text files, a directory made by ``segment``, or records, also in memory.
    output: the file to write. If its name ends in .json, it is a tokenizer.json. Otherwise it is a WordPiece
        vocabulary with one token per line.
    """

    texts: AnySources
    output: AnyPath
    _: KW_ONLY
    size: int = field(metadata={"help": "largest number of tokens in the vocabulary"})
    kind: Kind = setting(WORDPIECE, "type of vocabulary", KINDS)
    special: Sequence[str] = setting(
        (),
        "further special tokens, with the ids after the usual ones. ROLE=TOKEN replaces the usual token for "
        "cls, sep, pad, mask or unk (only in a .json file)",
    )
    lower_case: bool | None = setting(
        None, "lower-case the text; wordpiece also strips accents (None: only for wordpiece)"
    )
    keep_accents: bool = setting(False, "wordpiece: keep the accents of lower-cased text")
    overwrite: bool = setting(False, "replace an existing file that is not a vocabulary")
    progress: GivenProgress = None

    def __post_init__(self) -> None:
        convert_paths(self, sources=("texts",), paths=("output",))
        check_positive_integer("size", self.size)
        if self.keep_languages is not None:
            object.__setattr__(self, "keep_languages", join_names("keep_languages", self.keep_languages))
        if self.kind not in KINDS:
            raise UsageError(f"kind is {self.kind!r}, expected one of {', '.join(KINDS)}")
        given = (self.special,) if isinstance(self.special, str) else tuple(self.special)
        object.__setattr__(self, "special", given)
        lower_case = self.kind == WORDPIECE if self.lower_case is None else self.lower_case
        object.__setattr__(self, "lower_case", lower_case)

    @property
    def source_settings(self) -> dict[str, Any]:
        """Settings for reading records that the caller has given, by name."""
        return collect_given(self, GivenTextRecords)

    @property
    def is_json(self) -> bool:
        """True if the output is a tokenizer.json, False if it is a list of tokens."""
        return convert_path(self.output).endswith(".json")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainVocabResult:
    """The result of ``train_vocab``.

    path: the vocabulary or tokenizer.json.
    tokens: number of tokens in the vocabulary.
    manifest: the contents of the file PATH.manifest.json: settings, package versions, counts of the text.
    warnings: warnings about the text, the settings and the vocabulary.
    """

    path: str
    tokens: int
    manifest: VocabularyManifest
    warnings: tuple[str, ...]


@accept_keywords(TrainVocabRequest)
def train_vocab(request: TrainVocabRequest) -> TrainVocabResult:
    """Train a vocabulary on texts and write it to ``output``, as ``bertdata train-vocab`` does.

    The texts may be text files, a directory made by ``segment``, files of records, or records in memory, as
    for ``segment``. ``create`` takes the vocabulary as vocab, and a tokenizer.json as tokenizer.

    progress: function called with a StepProgress. None: a bar in a notebook. False: no bar.

    Raises UsageError (or a subclass) if the call is wrong, and DataError (or a subclass) if the text is at
    fault.
    """
    with open_records(request, "texts") as opened:
        return plan_training(opened).train(choose_progress(request.progress))


@dataclass(frozen=True, kw_only=True, slots=True)
class VocabularyTraining:
    """A planned training of a vocabulary.

    text: the text to train on.
    special: the special tokens with their ids.
    notes: lines for the user about files that are left out.
    warnings: warnings about the text.
    """

    request: TrainVocabRequest
    text: VocabularyText
    special: SpecialTokens
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def train(self, progress: OnProgress) -> TrainVocabResult:
        """Train the vocabulary, and write it and its manifest."""
        request, output = self.request, convert_path(self.request.output)
        beside = make_manifest_path(output)
        # Both outputs are opened before the training, which takes long, so that a wrong path is reported at
        # once.
        with storage.open_output(output) as file, storage.open_output(beside) as written:
            shown = VocabularyProgress(output, self.text.bytes, add_warnings_first(self.warnings, progress))
            data, tokens = (self._train_json if request.is_json else self._train_wordpiece)(shown)
            found = find_text_warnings(shown.words, request.kind, output)
            if not request.is_json:
                found += warn_of_unused_special_tokens(self.special, bool(request.lower_case), output)
            shown.warn(found)
            file.write(data)
            entry = FileEntry(name=storage.get_base_name(output), bytes=len(data), md5=compute_md5(data))
            versions = find_package_versions(request.kind)
            inputs = _list_text_files(self.text.files)
            manifest = VocabularyManifest(
                _list_settings(request), versions, describe_text(shown.words), entry, inputs
            )
            written.write(manifest.dump())
        return TrainVocabResult(
            path=output, tokens=tokens, manifest=manifest, warnings=(*self.warnings, *found)
        )

    def _train_wordpiece(self, progress: VocabularyProgress) -> tuple[bytes, int]:
        """Train a WordPiece vocabulary.

        Return the contents of its file, which has one token per line, and the number of tokens.
        """
        tokens = train_vocabulary(
            self.text,
            size=self.request.size,
            lower_case=bool(self.request.lower_case),
            keep_accents=self.request.keep_accents,
            special=self.special,
            on_read=progress.on_read,
            on_counted=progress.on_counted,
        )
        return "".join(f"{token}\n" for token in tokens).encode(), len(tokens)

    def _train_json(self, progress: VocabularyProgress) -> tuple[bytes, int]:
        """Train the vocabulary of a tokenizer.json.

        Return the contents of the file, and the number of tokens.
        """
        tokenizer = train_tokenizer(
            self.text,
            kind=self.request.kind,
            size=self.request.size,
            lower_case=bool(self.request.lower_case),
            keep_accents=self.request.keep_accents,
            special=self.special,
            on_read=progress.on_read,
            on_counted=progress.on_counted,
        )
        return f"{tokenizer.to_str(pretty=True)}\n".encode(), tokenizer.get_vocab_size()


def plan_training(request: TrainVocabRequest) -> VocabularyTraining:
    """Return the planned training of a vocabulary. Raises an error if the request or an output is wrong."""
    output, kind = convert_path(request.output), request.kind
    special = number_special_tokens(kind, request.special)
    if not request.is_json and kind != WORDPIECE:
        raise UsageError(f"--kind {kind} makes a tokenizer.json: end the name {output!r} in .json")
    if not request.is_json and special.roles != number_special_tokens(WORDPIECE).roles:
        raise UsageError(
            "a vocabulary of lines knows its roles by BERT's names: without ROLE=, or write a .json"
        )
    refuse_input_as_output(output, list_paths(request.texts))
    if request.keep_accents and kind != WORDPIECE:
        raise UsageError(f"--keep-accents: {kind} keeps accents; leave it out")
    if request.keep_accents and not request.lower_case:
        raise UsageError("--keep-accents goes with --lower-case: text that keeps its case keeps its accents")
    planned = _find_text(request, special)
    form = TOKENIZER_JSON if request.is_json else VOCABULARY
    # the check also finds an output that is a symbolic link to an input
    check_output(output, planned.text.files, form, overwrite=request.overwrite)
    beside = make_manifest_path(output)
    check_output(beside, planned.text.files, VOCABULARY_MANIFEST, overwrite=request.overwrite)
    return planned


def _find_text(request: TrainVocabRequest, special: SpecialTokens) -> VocabularyTraining:
    """Return the training with its text, which consists of records or of text files.

    Raises an error if there is no text, or if a setting does not apply to this kind of text.
    """
    paths, given = list_paths(request.texts), request.source_settings
    if has_record_sources(paths, given, skip_bad_inputs=False):
        plan = plan_texts(paths, given)
        warnings = (*plan.notes, *warn_of_escaped_markup(plan))
        return VocabularyTraining(request=request, text=RecordFiles(plan), special=special, warnings=warnings)
    found = find_training_text(paths)
    return VocabularyTraining(
        request=request, text=TextFiles(found.parts), special=special, notes=found.notes
    )


def _list_settings(request: TrainVocabRequest) -> dict[str, Any]:
    """Return the settings that the manifest of the new vocabulary stores, by name."""
    settings: dict[str, Any] = {
        "kind": request.kind,
        "size": request.size,
        "lower_case": request.lower_case,
        "special": list(request.special),
    }
    if request.keep_accents:
        settings["keep_accents"] = True
    if given := request.source_settings:
        settings["records"] = given
    return settings


def _list_text_files(paths: Sequence[str]) -> tuple[FileEntry, ...]:
    """Return name, size and md5 of each text file, sorted by name.

    A file is called by its name, or by its path below the folder of all files if several have this name.
    """
    try:
        names = name_parts(paths)
    except SettingsError:  # names that create could not tell apart
        names = {path: storage.get_base_name(path) for path in paths}
    sizes = storage.map_paths(paths, storage.read_size)
    md5s = compute_file_md5s(paths)
    return tuple(
        sorted(
            FileEntry(name=names[path], bytes=size, md5=md5)
            for path, size, md5 in zip(paths, sizes, md5s, strict=True)
        )
    )
