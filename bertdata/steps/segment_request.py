"""The arguments of ``segment`` as a dataclass (the request), and the settings that ``create`` shares with
``segment``.
"""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from bertdata.config.declared import repeat_setting, setting
from bertdata.sources.kinds import RECORD_KINDS
from bertdata.sources.settings import RecordSettings
from bertdata.steps.keywords import PUNKT_TABLES_HELP, GivenRun, collect_given, convert_paths
from bertdata.steps.values import AnyPath, AnyPaths, AnySources, convert_share, join_names
from bertdata.text.input_kinds import CHOSEN_KINDS
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import SegmentSettings

INPUT_KINDS = (*CHOSEN_KINDS, *RECORD_KINDS)
INPUT_KIND_HELP = """\
format of the input. Default: recognised from the contents; a *.txt file without articles is read as blocks.
articles: files that bertdata extract writes; in a directory, the files wiki_<nn>. text: plain text, one
document per file; in a directory, the files *.txt. All other formats are records, which may be compressed
(.gz .zst .bz2 .xz). blocks: plain text with blank lines between documents. jsonl: one JSON object per line.
json: a list of objects, or objects over several lines. csv, tsv: tables with a column of text. parquet:
Parquet. arrow: Arrow files, as saved by datasets too"""
CONFIG_HELP = (
    "file of settings as printed by bertdata recipes NAME --as toml, of which this command uses {}; flags "
    "override the file"
)


@dataclass(frozen=True, kw_only=True)
class GivenRecordSettings:
    """Settings of text parts that are made from records.

    A setting that is None is taken from the file ``config``. If the file does not have it, it has its
    default. Defaults and bounds are declared in the class that the line of each setting names. Python callers
    may also give keep_languages as a list, and eval_share as a number between 0 and 1.
    """

    part_size: float | None = repeat_setting(PartSettings, "part_size", default=None)
    sentences: str | None = repeat_setting(PartSettings, "sentences", default=None)
    language: str | None = repeat_setting(SegmentSettings, "language", default=None)
    escaped_articles: str | None = repeat_setting(SegmentSettings, "escaped_articles")
    text_field: str | None = repeat_setting(RecordSettings, "text_field")
    id_field: str | None = repeat_setting(RecordSettings, "id_field")
    language_field: str | None = repeat_setting(RecordSettings, "language_field")
    max_record_bytes: int | None = repeat_setting(RecordSettings, "max_record_bytes", default=None)
    skip_bad_records: bool | None = repeat_setting(RecordSettings, "skip_bad_records", default=None)
    encoding: str | None = repeat_setting(RecordSettings, "encoding", default=None)
    quoting: str | None = repeat_setting(RecordSettings, "quoting")
    separator: str | None = repeat_setting(RecordSettings, "separator")
    no_heading: bool | None = repeat_setting(RecordSettings, "no_heading", default=None)
    as_is: bool | None = repeat_setting(RecordSettings, "as_is", default=None)
    keep_languages: str | Iterable[str] | None = repeat_setting(SelectionSettings, "keep_languages")
    exclude: AnyPaths | None = repeat_setting(SelectionSettings, "exclude", default=None)
    exclude_ngram: int | None = repeat_setting(SelectionSettings, "exclude_ngram", default=None)
    dedup: str | None = repeat_setting(SelectionSettings, "dedup")
    eval_share: str | float | None = repeat_setting(SelectionSettings, "eval_share")

    def __post_init__(self) -> None:
        convert_paths(self, lists=("exclude",))
        if self.keep_languages is not None:
            object.__setattr__(self, "keep_languages", join_names("keep_languages", self.keep_languages))
        if self.eval_share is not None:
            object.__setattr__(self, "eval_share", convert_share("eval_share", self.eval_share))


@dataclass(frozen=True, kw_only=True)
class GivenTextSettings(GivenRecordSettings):
    """All settings of ``segment``. They may also be set in the table ``text`` of a settings file."""

    recipe: str | None = repeat_setting(SegmentSettings, "recipe", default=None)
    eval_articles: int | None = repeat_setting(SegmentSettings, "eval_articles", default=None)
    block_size: float | None = repeat_setting(SegmentSettings, "block_size", default=None)
    training_shards: int | None = repeat_setting(SegmentSettings, "training_shards", default=None)
    test_shards: int | None = repeat_setting(SegmentSettings, "test_shards", default=None)
    test_fraction: float | None = repeat_setting(SegmentSettings, "test_fraction", default=None)
    punkt: str | None = repeat_setting(SegmentSettings, "punkt", default=None)
    prefix: str | None = repeat_setting(SegmentSettings, "prefix", default=None)
    abbreviations: AnyPath | None = repeat_setting(SegmentSettings, "abbreviations")

    def __post_init__(self) -> None:
        super().__post_init__()
        convert_paths(self, paths=("abbreviations",))


@dataclass(frozen=True)
class SegmentRequest(GivenRun, GivenTextSettings):
    """All arguments of ``segment``.

    sources: extracted articles, plain text or files of records, or directories of them. Or records in memory.
    output: directory of the parts.
    """

    sources: AnySources
    output: AnyPath
    _: KW_ONLY
    input_kind: str | None = setting(None, INPUT_KIND_HELP, INPUT_KINDS, metavar="KIND")
    books: AnyPaths | None = setting(
        None,
        """\
plain-text files, each one document, or a directory of them (*.txt), to add to the articles. They are read
before the articles, as in NVIDIA's and Habana's wiki_books. May be repeated""",
        metavar="FILE|DIR",
        repeated=True,
    )
    punkt_tables: AnyPath | None = setting(None, PUNKT_TABLES_HELP, metavar="DIR|URL")
    config: AnyPath | None = setting(None, CONFIG_HELP.format("only the table [text]"), metavar="FILE.toml")

    def __post_init__(self) -> None:
        GivenRun.__post_init__(self)
        convert_paths(
            self, lists=("books",), paths=("output", "punkt_tables", "config"), sources=("sources",)
        )
        GivenTextSettings.__post_init__(self)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the caller set, by name."""
        return collect_given(self, GivenTextSettings)
